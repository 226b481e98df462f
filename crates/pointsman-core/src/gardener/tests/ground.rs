//! What is seen beside the issues: the main branch, and why tasks are blocked.

use super::*;
use crate::ids::Sha;
use crate::words;

fn sha(digit: &str) -> Sha {
    Sha::new(&digit.repeat(40)).unwrap()
}

fn asked(issues: &[Issue], memory: &Memory) -> Vec<Question> {
    questions(&findings(issues, memory, &config(), NOW), issues, memory)
}

/// A session was asked all of it and said nothing.
fn decide_all(issues: &[Issue], memory: &mut Memory) {
    let asked = asked(issues, memory);
    let plan = plan(&Answer::default(), &asked, issues, memory, &config(), NOW);
    memory.decided.extend(plan.decided);
}

#[test]
fn agents_md_is_asked_about_once_when_main_has_moved_far_enough() {
    let at = |head: &str, commits: u64, missing: bool| Memory {
        ground: RepositoryFacts {
            main: Some(Main { head: sha(head), commits, missing }),
            ..RepositoryFacts::default()
        },
        ..Memory::default()
    };
    let table =
        [(19, false, None), (20, false, Some("since it was last checked: 20")), (500, true, Some("missing"))];
    for (commits, missing, words) in table {
        let found = asked(&[], &at("a", commits, missing));
        let said: Vec<String> = found.iter().map(|one| words::gardener::finding(&one.finding)).collect();
        assert_eq!(said.len(), usize::from(words.is_some()), "{commits} {missing}");
        assert!(
            said.iter().all(|line| line.contains(words.unwrap()) && line.starts_with("AGENTS.md:")),
            "{said:?}"
        );
    }
    assert_eq!(asked(&[], &Memory::default()), [], "nobody looked, or its pull request is open");
    let never = Config::parse("name = \"shop\"\n[limits]\ngardener_refresh = 0", "pointsman.toml").unwrap();
    assert_eq!(findings(&[], &at("a", 5000, true), &never, NOW), []);

    let mut memory = at("a", 20, false);
    assert_eq!(memory.refreshed_at(), None);
    let briefing = words::gardener::briefing(&asked(&[], &memory), &[]);
    assert!(briefing.contains("last checked: 20\n\nAGENTS.md needs no line"), "{briefing}");
    decide_all(&[], &mut memory);
    assert_eq!(memory.refreshed_at(), Some(sha("a")), "from here on it is counted");
    assert_eq!(asked(&[], &memory), [], "the same head is not asked about twice");
    // It goes first: thirty other findings are not in its way.
    let many: Vec<Issue> =
        (1..=40).map(|n| issue(n, &format!("Thing {n} {}", n * 7919), "words", &[])).collect();
    assert_eq!(asked(&many, &at("b", 20, false))[0].finding.key(), "agents-md");
}

#[test]
fn useless_answers_about_agents_md_count_although_main_moves_on() {
    let mut memory = Memory::default();
    for (head, again) in [("a", true), ("b", false)] {
        memory.ground.main = Some(Main { head: sha(head), commits: 20, missing: false });
        memory.asked = Some((crate::run::RunId(1), asked(&[], &memory)));
        memory.heard_nothing_useful();
        assert_eq!(memory.refreshed_at().is_none(), again, "{head}");
    }
    assert_eq!(memory.refreshed_at(), Some(sha("b")));
}

#[test]
fn no_line_of_an_answer_is_about_agents_md() {
    let memory = Memory {
        ground: RepositoryFacts {
            main: Some(Main { head: sha("a"), commits: 20, missing: false }),
            ..RepositoryFacts::default()
        },
        ..Memory::default()
    };
    let asked = asked(&[], &memory);
    for line in [
        r#"ESCALATE: {"issue": 0, "question": "?"}"#,
        r#"ACTION: {"issue": 0, "do": "unblock", "why": "x"}"#,
        r#"DUST: {"issue": 0, "group": "g", "title": "t", "reason": "r"}"#,
    ] {
        let plan = plan(&Answer::read([line]).unwrap(), &asked, &[], &memory, &config(), NOW);
        assert_eq!((plan.deeds.len(), plan.refused.len()), (0, 1), "{line}");
    }
}

#[test]
fn a_blocked_issue_is_looked_at_again_when_what_blocked_it_changed() {
    let waits = issue(3, "Apples", &format!("{GOOD}\nDepends on #1 and #9"), &["blocked"]);
    let one = issue(1, "A rocket to Mars", GOOD, &[]);
    let seven = issue(7, "Pears for winter", GOOD, &[]);
    let all = [one.clone(), waits.clone(), seven.clone()];
    let task = |because: &str, waits_for: &[Number]| RepositoryFacts {
        blocked: [(3, Blocker { because: Some(because.to_owned()), waits_for: waits_for.to_vec() })].into(),
        ..RepositoryFacts::default()
    };
    let mut memory = Memory { ground: task("CI fails", &[7]), ..Memory::default() };
    let found = asked(&all, &memory);
    assert_eq!(found.len(), 1);
    assert_eq!(
        words::gardener::finding(&found[0].finding),
        "#3 is blocked, its task says: \"CI fails\"; it waits for #1, #7; of the issues it waited for, #9 is done"
    );
    decide_all(&all, &mut memory);
    let again = |issues: &[Issue], ground: RepositoryFacts| {
        let memory = Memory { ground, ..memory.clone() };
        asked(issues, &memory).iter().any(|one| one.finding.key() == "blocked:3")
    };
    let same = || task("CI fails", &[7]);
    let table: [(&str, Vec<Issue>, RepositoryFacts, bool); 8] = [
        ("nothing changed", all.to_vec(), same(), false),
        (
            "somebody else's issue came",
            [all.to_vec(), vec![issue(8, "x", GOOD, &[])]].concat(),
            same(),
            false,
        ),
        ("a dependency was closed", vec![waits.clone(), seven.clone()], same(), true),
        ("what its agent waited for was closed", vec![one.clone(), waits.clone()], same(), true),
        (
            "a dependency was opened again",
            [all.to_vec(), vec![issue(9, "x", GOOD, &[])]].concat(),
            same(),
            true,
        ),
        ("its task is blocked for another reason", all.to_vec(), task("red on main", &[7]), true),
        ("its task is gone", all.to_vec(), RepositoryFacts::default(), true),
        (
            "somebody wrote to it",
            vec![
                one.clone(),
                Issue { body: "Depends on #1 and #9, now!".to_owned(), ..waits.clone() },
                seven,
            ],
            same(),
            true,
        ),
    ];
    for (what, issues, ground, expected) in table {
        assert_eq!(again(&issues, ground), expected, "{what}");
    }
}

#[test]
fn a_blocked_issue_without_a_known_reason_is_asked_about_once() {
    let all = [issue(3, "Apples", GOOD, &["blocked"])];
    let mut memory = Memory::default();
    assert_eq!(asked(&all, &memory)[0].state, super::super::memory::state(&all[0]));
    decide_all(&all, &mut memory);
    assert_eq!(asked(&all, &memory), []);
}
