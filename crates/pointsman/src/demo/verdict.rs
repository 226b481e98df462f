//! Whether a task went as its story says, judged by facts from git and the forge.

use pointsman_core::ids::Number;
use pointsman_core::labels::{BLOCKED, IN_PROGRESS};
use pointsman_core::task::{Exit, State};
use pointsman_core::vault::Status;

use super::stories::{Act, Outcome};
use crate::embedded_forge::REVIEW_ACCOUNT;

/// What is true of one task in the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Where it stands; none if the daemon never found it.
    pub(super) state: Option<State>,
    /// Why it is blocked, if it is.
    pub(super) reason: Option<String>,
    /// Every state it was in.
    pub(super) states: Vec<State>,
    /// How many sessions it took.
    pub(super) sessions: usize,
    /// How they ended, oldest first.
    pub(super) exits: Vec<Option<Exit>>,
    /// How often CI looked at it.
    pub(super) ci_runs: u32,
    pub(super) pr: Option<Number>,
    /// Whether the commit that it landed as is an ancestor of the main branch.
    pub(super) on_main: bool,
    /// Whether the pull request is marked as merged.
    pub(super) pr_merged: bool,
    /// Whether the issue is open.
    pub(super) issue_open: bool,
    pub(super) labels: Vec<String>,
    pub(super) comments: Vec<String>,
    /// Which of the story's lines are in files of the main branch.
    pub(super) lines_on_main: Vec<bool>,
    /// Orders about it that could never be done, and why.
    pub(super) gave_up: Vec<String>,
    /// State files of the protocol that are still there.
    pub(super) leftovers: Vec<String>,
    /// Who reviewed its pull request, oldest first.
    pub(super) reviewers: Vec<String>,
    /// Where the vault action of its story stands.
    pub(super) action: Option<Status>,
    /// How often the bell of the vault was rung, by anybody.
    pub(super) rung: usize,
    /// The event by which its first session ran.
    pub(super) started: Option<i64>,
    /// The event by which it was closed.
    pub(super) closed: Option<i64>,
}

impl Facts {
    /// How it ended, in one word.
    pub(super) fn outcome(&self) -> &'static str {
        match self.state {
            Some(State::Closed) if self.on_main => Outcome::Merged.name(),
            Some(State::Blocked) => Outcome::Blocked.name(),
            Some(state) => state.name(),
            None => "unseen",
        }
    }
}

/// Everything that is otherwise than the story says. `before` is the task it had to wait for.
pub(super) fn differences(act: &Act, facts: &Facts, before: Option<&Facts>) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |holds: bool, otherwise: String| {
        if !holds {
            found.push(otherwise);
        }
    };
    let ends = &act.ends;
    let reason = facts.reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default();
    check(
        facts.outcome() == ends.outcome.name(),
        format!("it should be {} and is {}{reason}", ends.outcome.name(), facts.outcome()),
    );
    check(
        facts.sessions == ends.sessions,
        format!("it should take {} sessions and took {}", ends.sessions, facts.sessions),
    );
    for (n, (wanted, ended)) in ends.exits.iter().zip(&facts.exits).enumerate() {
        let otherwise = format!("session {} should end as {wanted:?} and ended as {ended:?}", n + 1);
        check(*ended == Some(*wanted), otherwise);
    }
    check(
        facts.ci_runs == ends.ci_runs,
        format!("CI should look {} times and looked {}", ends.ci_runs, facts.ci_runs),
    );
    check(
        in_order(ends.by_way_of, &facts.states),
        format!("its way should be {} and was {}", way(ends.by_way_of), way(&facts.states)),
    );
    check(facts.pr.is_some(), "it has no pull request".to_owned());
    for ((path, line), there) in ends.lines.iter().zip(&facts.lines_on_main) {
        match ends.outcome {
            Outcome::Merged => check(*there, format!("{path} on main lacks the line `{line}`")),
            Outcome::Blocked => check(!there, format!("{path} on main has the line `{line}`")),
        }
    }
    let labelled = |label: &str| facts.labels.iter().any(|l| l == label);
    check(!labelled(IN_PROGRESS), format!("the issue is still labelled {IN_PROGRESS}"));
    match ends.outcome {
        Outcome::Merged => {
            check(facts.on_main, "no commit of it is on main".to_owned());
            check(facts.pr_merged, "its pull request is not marked as merged".to_owned());
            check(!facts.issue_open, "its issue is still open".to_owned());
        }
        Outcome::Blocked => {
            check(labelled(BLOCKED), format!("the issue is not labelled {BLOCKED}"));
            check(facts.issue_open, "its issue is closed".to_owned());
            let told = facts.comments.iter().any(|c| c.contains("**Blocked:**"));
            check(told, "no comment says why it is blocked".to_owned());
        }
    }
    if !act.answers.is_empty() {
        let by_agent = facts.reviewers.iter().all(|author| author == REVIEW_ACCOUNT);
        let said = format!(
            "it should be reviewed {} times by the agent, and was by {:?}",
            act.answers.len(),
            facts.reviewers
        );
        check(by_agent && facts.reviewers.len() == act.answers.len(), said);
    }
    if ends.fires.is_some() {
        check(
            facts.action == Some(Status::Fired),
            format!("its action should be fired and is {:?}", facts.action),
        );
        check(facts.rung == 1, format!("the bell should ring once and rang {} times", facts.rung));
    }
    for order in &facts.gave_up {
        check(false, format!("the daemon gave up on an order: {order}"));
    }
    for file in &facts.leftovers {
        check(false, format!("the state file {file} was left behind"));
    }
    if let Some(before) = before {
        let waited = before.closed.zip(facts.started).is_some_and(|(closed, started)| closed < started);
        check(waited, "it did not wait for the issue it depends on".to_owned());
    }
    found
}

/// Whether `way` holds all of `wanted` in this order.
fn in_order(wanted: &[State], way: &[State]) -> bool {
    let mut way = way.iter();
    wanted.iter().all(|state| way.any(|passed| passed == state))
}

/// States as a person reads them.
pub(super) fn way(states: &[State]) -> String {
    let names: Vec<&str> = states.iter().map(|s| s.name()).collect();
    if names.is_empty() { "nowhere".to_owned() } else { names.join(" → ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::stories::STORIES;

    fn act(story: &str) -> &'static Act {
        let story = STORIES.iter().find(|s| s.name == story).unwrap();
        story.acts.last().unwrap()
    }

    /// Facts that are just as the story wants them.
    fn as_told(act: &Act) -> Facts {
        let merged = act.ends.outcome == Outcome::Merged;
        Facts {
            state: act.ends.by_way_of.last().copied(),
            states: act.ends.by_way_of.to_vec(),
            sessions: act.ends.sessions,
            exits: act.ends.exits.iter().copied().map(Some).collect(),
            ci_runs: act.ends.ci_runs,
            pr: Some(9),
            on_main: merged,
            pr_merged: merged,
            issue_open: !merged,
            labels: if merged { vec![] } else { vec!["backlog".to_owned(), "blocked".to_owned()] },
            comments: if merged { vec![] } else { vec!["**Blocked:** CI".to_owned()] },
            lines_on_main: vec![merged; act.ends.lines.len()],
            reviewers: vec![REVIEW_ACCOUNT.to_owned(); act.answers.len()],
            action: act.ends.fires.map(|_| Status::Fired),
            rung: usize::from(act.ends.fires.is_some()),
            started: Some(5),
            closed: merged.then_some(9),
            ..Facts::default()
        }
    }

    #[test]
    fn a_story_that_went_as_told_has_no_differences() {
        for act in STORIES.iter().flat_map(|s| s.acts) {
            assert_eq!(differences(act, &as_told(act), None), [""; 0], "{}", act.title);
            assert_eq!(as_told(act).outcome(), act.ends.outcome.name());
        }
    }

    #[test]
    fn each_fact_that_is_otherwise_is_named() {
        type Bend = fn(&mut Facts);
        let cases: [(&str, Bend, &str); 18] = [
            ("review", |f| f.reviewers[0] = "anna".to_owned(), "should be reviewed 2 times by the agent"),
            ("vault", |f| f.action = Some(Status::Pending), "should be fired and is Some(Pending)"),
            ("vault", |f| f.rung = 2, "rang 2 times"),
            ("clean", |f| f.state = Some(State::Blocked), "it should be merged and is blocked"),
            ("clean", |f| f.on_main = false, "no commit of it is on main"),
            ("clean", |f| f.pr_merged = false, "not marked as merged"),
            ("clean", |f| f.issue_open = true, "still open"),
            ("clean", |f| f.labels = vec!["in-progress".to_owned()], "still labelled in-progress"),
            ("clean", |f| f.lines_on_main = vec![false], "lacks the line `apples 3 crowns`"),
            ("clean", |f| f.states.truncate(3), "its way should be"),
            ("clean", |f| f.pr = None, "no pull request"),
            ("clean", |f| f.gave_up = vec!["clean_up: no".to_owned()], "gave up on an order: clean_up: no"),
            ("clean", |f| f.leftovers = vec!["x.phase".to_owned()], "x.phase was left behind"),
            ("ci_fix", |f| f.ci_runs = 1, "CI should look 2 times and looked 1"),
            ("killed", |f| f.sessions = 1, "should take 2 sessions and took 1"),
            ("handoff", |f| f.exits = vec![Some(Exit::Stuck)], "session 1 should end as Handoff"),
            ("hopeless", |f| f.labels.clear(), "not labelled blocked"),
            ("hopeless", |f| f.comments.clear(), "no comment says why"),
        ];
        for (story, bend, otherwise) in cases {
            let mut facts = as_told(act(story));
            bend(&mut facts);
            let found = differences(act(story), &facts, None);
            assert!(found.iter().any(|d| d.contains(otherwise)), "{story}: {otherwise} not in {found:?}");
        }
    }

    #[test]
    fn a_task_must_not_begin_before_what_it_depends_on_is_closed() {
        let (act, before) = (act("dependency"), as_told(act("clean")));
        let mut facts = as_told(act);
        assert_eq!(differences(act, &facts, Some(&before)).len(), 1);
        facts.started = Some(10);
        assert_eq!(differences(act, &facts, Some(&before)), [""; 0]);
    }
}
