use proptest::prelude::*;

use super::*;
use crate::config::Config;

const TWO: &str = r#"name = "tidy"
description = "Tidies {{project}}"
version = 1
model = "sonnet"

[context]
files = ["AGENTS.md", "docs/plan.md"]

[[steps]]
id = "write"
title = "Write for {{ project }}"
description = """
Write on {{primary_branch}}.
"""
needs = ["look"]

[[steps]]
id = "look"
title = "Look"
description = "Look round."
"#;

fn mistake(text: &str) -> (usize, String) {
    let error = Formula::parse(text, "tidy.toml").unwrap_err();
    (error.line(), error.message().to_owned())
}

#[test]
fn steps_come_after_what_they_need() {
    let formula = Formula::parse(TWO, "tidy.toml").unwrap();
    let ids: Vec<&str> = formula.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["look", "write"]);
    assert_eq!(
        (formula.name.as_str(), formula.version, formula.model.as_deref()),
        ("tidy", 1, Some("sonnet"))
    );
    assert_eq!(formula.files, ["AGENTS.md", "docs/plan.md"]);
    assert_eq!(formula.step("write").map(|(place, _)| place), Some(2));
}

#[test]
fn variables_are_filled_in_strictly() {
    let config = Config::parse("name = \"shop\"\n[variables]\nteam = \"fruit\"\n", "p.toml").unwrap();
    let known = variables(&config);
    let formula = Formula::render(TWO, "tidy.toml", &known).unwrap();
    assert_eq!(formula.description, "Tidies shop");
    assert_eq!(formula.step("write").unwrap().1.title, "Write for shop");
    assert_eq!(formula.step("write").unwrap().1.description, "Write on main.");
    let own = TWO.replace("Look round.", "Ask {{team}}.");
    assert_eq!(Formula::render(&own, "t", &known).unwrap().steps[0].description, "Ask fruit.");
    let unknown = TWO.replace("on {{primary_branch}}", "on {{branch}}");
    let error = Formula::render(&unknown, "tidy.toml", &known).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tidy.toml:13:10: there is no variable `branch`\n   |\n13 | Write on {{branch}}.\n   |          ^^^^^^^^^^"
    );
    // What is filled in is data.
    let mut sly = known.clone();
    sly.insert("team".to_owned(), "{{project}} {{nothing}}".to_owned());
    assert_eq!(
        Formula::render(&own, "t", &sly).unwrap().steps[0].description,
        "Ask {{project}} {{nothing}}."
    );
}

#[test]
fn mistakes_are_told_with_their_line() {
    let cases = [
        (TWO.replace("needs = [\"look\"]", "neds = [\"look\"]"), 15, "unknown key `neds`"),
        (TWO.replace("version = 1", "version = 1\ncolour = 2"), 4, "unknown key `colour`"),
        (TWO.replace("[\"look\"]", "[\"nap\"]"), 15, "`write` needs the step `nap`, which does not exist"),
        (TWO.replace("id = \"look\"", "id = \"write\""), 18, "there are two steps `write`"),
        (
            TWO.replace("id = \"look\"", "id = \"Look\""),
            18,
            "the id of a step has the form [a-z0-9][a-z0-9._-]{0,63}",
        ),
        (
            TWO.replace("\"docs/plan.md\"", "\"../secrets\""),
            7,
            "it must be a path inside the repository, without `..`",
        ),
        (
            TWO.replace("\"docs/plan.md\"", "\".git/config\""),
            7,
            "it must be a path inside the repository, without `..`",
        ),
        (TWO.replace("{{primary_branch}}", "{{ primary"), 13, "`{{` without `}}` on the same line"),
        (
            TWO.replace("{{primary_branch}}", "{{ a.b | safe }}"),
            13,
            "a variable is written {{name}}, with lower-case letters, digits and _",
        ),
        (TWO.replace("\"sonnet\"", "\"--model\""), 4, "it is not the name of a model"),
        (
            TWO.replace("name = \"tidy\"", "name = \"../tidy\""),
            1,
            "the name of a formula has the form [a-z0-9][a-z0-9._-]{0,63}",
        ),
        (TWO.replace("title = \"Look\"\n", ""), 17, "the key `title` is missing"),
        (
            "name = \"a\"\ndescription = \"b\"\nversion = 1\n".to_owned(),
            1,
            "a formula has between 1 and 50 [[steps]]",
        ),
    ];
    for (text, line, message) in cases {
        assert_eq!(mistake(&text), (line, message.to_owned()), "{text}");
    }
}

#[test]
fn circles_are_named() {
    let step = |id: &str, needs: &str| {
        format!("[[steps]]\nid = \"{id}\"\ntitle = \"t\"\ndescription = \"d\"\nneeds = {needs}\n")
    };
    let head = "name = \"a\"\ndescription = \"b\"\nversion = 1\n";
    let three = format!(
        "{head}{}{}{}{}",
        step("z", "[\"c\"]"),
        step("a", "[\"b\"]"),
        step("b", "[\"c\"]"),
        step("c", "[\"a\"]")
    );
    assert_eq!(mistake(&three), (20, "steps depend on each other in a circle: c → a → b → c".to_owned()));
    let own = format!("{head}{}", step("a", "[\"a\"]"));
    assert_eq!(mistake(&own), (5, "steps depend on each other in a circle: a → a".to_owned()));
}

#[test]
fn every_shipped_formula_is_right() {
    let known = variables(&Config::default());
    for (name, text) in SHIPPED {
        let formula = Formula::render(text, name, &known).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(formula.name, name);
    }
    let steps = |name: &str| -> Vec<String> {
        let formula = Formula::parse(shipped(name).unwrap(), name).unwrap();
        formula.steps.into_iter().map(|step| step.id).collect()
    };
    let model = |name: &str| Formula::parse(shipped(name).unwrap(), name).unwrap().model;
    assert_eq!(
        steps("run-gardener"),
        ["preflight", "grooming", "blocked-review", "agents-update", "commit-and-pr"]
    );
    assert_eq!(
        steps("run-supervisor"),
        ["preflight", "health-assessment", "decide-actions", "report", "journal"]
    );
    assert_eq!(
        steps("run-planner"),
        ["preflight", "prediction-triage", "strategic-planning", "journal-and-memory", "commit-and-pr"]
    );
    assert_eq!(steps("run-predictor"), ["preflight", "collect-signals", "analyze-and-predict"]);
    assert_eq!(model("run-planner").as_deref(), Some("opus"));
    assert_eq!(model("run-supervisor").as_deref(), Some("sonnet"));
    assert_eq!(model("run-predictor").as_deref(), Some("sonnet"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_panic(text in "\\PC{0,200}", at in 0usize..400) {
        let _ = Formula::parse(&text, "x");
        let mut torn = TWO.to_owned();
        let place = at.min(torn.len());
        if torn.is_char_boundary(place) {
            torn.insert_str(place, &text);
        }
        let _ = Formula::render(&torn, "x", &Variables::new());
    }

    /// Any graph of needs is put in order or has a circle named in it, never both.
    #[test]
    fn any_needs_are_ordered_or_refused(needs in prop::collection::vec(prop::collection::vec(0usize..8, 0..3), 1..8)) {
        let count = needs.len();
        let mut text = "name = \"a\"\ndescription = \"b\"\nversion = 1\n".to_owned();
        for (place, needs) in needs.iter().enumerate() {
            let needs: Vec<String> = needs.iter().map(|need| format!("\"s{}\"", need % count)).collect();
            text += &format!("[[steps]]\nid = \"s{place}\"\ntitle = \"t\"\ndescription = \"d\"\nneeds = [{}]\n", needs.join(", "));
        }
        match Formula::parse(&text, "x") {
            Ok(formula) => {
                prop_assert_eq!(formula.steps.len(), count);
                for (place, step) in formula.steps.iter().enumerate() {
                    let before = |need: &String| formula.steps[..place].iter().any(|s| s.id == *need);
                    prop_assert!(step.needs.iter().all(before));
                }
            }
            Err(error) => {
                let message = error.message().to_owned();
                let circle: Vec<&str> = message.rsplit(": ").next().unwrap_or("").split(" → ").collect();
                prop_assert!(circle.len() >= 2 && circle.first() == circle.last(), "{message}");
                for pair in circle.windows(2) {
                    let place: usize = pair[0][1..].parse().unwrap();
                    let needed: usize = pair[1][1..].parse().unwrap();
                    prop_assert!(needs[place].iter().any(|need| need % count == needed), "{message}");
                }
            }
        }
    }
}
