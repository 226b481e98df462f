//! The people of the play: they file issues, review pull requests and answer questions, all by the
//! command line.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::{Phase, State};
use pointsman_core::vault::Status;
use pointsman_view::forge::{Issue, PullRequest};
use pointsman_view::task::Ordered;
use pointsman_view::vault::Action;

use super::stage::Stage;
use super::stories::{Act, Opinion, Order, STORIES};
use super::watch::Seen;

/// How often a person tries a command that fails before the demo gives up. One may fail because
/// the task has just moved on.
const TRIES: u32 = 10;

/// An issue of one of the projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) project: &'static str,
    pub(super) issue: Number,
}

impl Part {
    /// Its name for people.
    pub(super) fn label(self) -> String {
        format!("{} #{}", self.project, self.issue)
    }
}

/// An issue that was filed, and its part in the play.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filed {
    pub(super) part: Part,
    /// The story it belongs to.
    pub(super) story: &'static str,
    pub(super) act: &'static Act,
    /// The issue it waits for.
    pub(super) after: Option<Part>,
    /// How it follows the others of its story.
    pub(super) order: Order,
}

/// Files all issues.
pub(super) fn file_issues(stage: &Stage) -> anyhow::Result<Vec<Filed>> {
    let mut filed = Vec::new();
    for story in STORIES {
        let mut after: Option<Part> = None;
        for act in story.acts {
            let body = act.body(after.map(|part| part.issue));
            let order =
                ["forge", "issue", "create", "--title", act.title, "--body", &body, "--label", "backlog"];
            let issue: Issue = stage.pointsman_in(story.project, &order)?;
            let part = Part { project: story.project, issue: issue.number };
            filed.push(Filed { part, story: story.name, act, after, order: story.order });
            if story.order == Order::Chain {
                after = Some(part);
            }
        }
    }
    Ok(filed)
}

/// Whether the reviewer has to wait for the other tasks of its story.
pub(super) fn review_has_to_wait(of: &Filed, all: &[Filed], seen: &BTreeMap<Part, Seen>) -> bool {
    let state = |filed: &Filed| seen.get(&filed.part).and_then(Seen::state);
    let is_ready = |filed: &&Filed| match state(filed) {
        Some(State::MergeQueue | State::Merged | State::Closed) => true,
        Some(State::AwaitingReview) => {
            let task = seen.get(&filed.part).and_then(|seen| seen.task.as_ref());
            task.is_some_and(|task| task.phase == Some(Phase::AwaitingReview))
        }
        _ => false,
    };
    let mut others = all.iter().filter(|other| other.story == of.story && other.part != of.part);
    match of.order {
        Order::Chain => false,
        Order::AtOnce => !others.all(|other| is_ready(&other)),
        Order::InTurn => !others.all(|other| {
            if other.part < of.part { state(other) == Some(State::Closed) } else { is_ready(&other) }
        }),
    }
}

/// Reviewer and boss, who remember what they have said.
#[derive(Debug, Default)]
pub(super) struct People {
    reviewed: BTreeMap<Part, Vec<Sha>>,
    answered: BTreeSet<Part>,
    approved: BTreeSet<Part>,
    /// Since when somebody waits for their word.
    waits: BTreeMap<Part, Instant>,
    failures: u32,
}

impl People {
    /// Does what is to be done for one task now, once somebody has waited for it that long.
    pub(super) fn act(
        &mut self,
        stage: &Stage,
        filed: &Filed,
        seen: &Seen,
        reaction: Duration,
    ) -> anyhow::Result<()> {
        let Some(word) = self.next_word(filed, seen) else {
            self.waits.remove(&filed.part);
            return Ok(());
        };
        if self.waits.entry(filed.part).or_insert_with(Instant::now).elapsed() < reaction {
            return Ok(());
        }
        self.waits.remove(&filed.part);
        let done = match word {
            Word::Review { pr, head, opinion } => review(stage, filed.part.project, pr, opinion)
                .map(|()| self.reviewed.entry(filed.part).or_default().push(head)),
            Word::Answer(text) => {
                let Part { project, issue } = filed.part;
                let order = ["task", "answer", &issue.to_string(), text];
                stage.pointsman_in::<Ordered>(project, &order).map(|_| self.answered.extend([filed.part]))
            }
            Word::LetGo(action) => {
                let order = ["vault", "approve", action];
                stage
                    .pointsman_in::<Action>(filed.part.project, &order)
                    .map(|_| self.approved.extend([filed.part]))
            }
        };
        if let Err(error) = done {
            self.failures += 1;
            if self.failures >= TRIES {
                return Err(error);
            }
        }
        Ok(())
    }

    /// What a person has to say, if it was not said before.
    fn next_word(&self, filed: &Filed, seen: &Seen) -> Option<Word> {
        if seen.action == Some(Status::Pending) && !self.approved.contains(&filed.part) {
            return filed.act.ends.fires.map(Word::LetGo);
        }
        let task = seen.task.as_ref()?;
        match task.state {
            // A polite reviewer waits until the agent says that it is ready.
            State::AwaitingReview if task.phase == Some(Phase::AwaitingReview) => {
                let (pr, head) = (task.contribution.pr()?, task.contribution.head()?.clone());
                let said = self.reviewed.get(&filed.part).map_or(&[][..], Vec::as_slice);
                if said.contains(&head) {
                    return None;
                }
                let reviews = filed.act.reviews;
                let opinion = *reviews.get(said.len()).or(reviews.last())?;
                Some(Word::Review { pr, head, opinion })
            }
            State::Escalated if !self.answered.contains(&filed.part) => filed.act.answer.map(Word::Answer),
            State::AwaitingReview
            | State::Escalated
            | State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::AwaitingCi
            | State::MergeQueue
            | State::Blocked
            | State::Refused
            | State::Paused
            | State::Merged
            | State::Closed => None,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Word {
    Review { pr: Number, head: Sha, opinion: Opinion },
    Answer(&'static str),
    LetGo(&'static str),
}

fn review(stage: &Stage, project: &str, pr: Number, opinion: Opinion) -> anyhow::Result<()> {
    let pr = pr.to_string();
    let (verdict, body) = match opinion {
        Opinion::Approve => ("--approve", "Good."),
        Opinion::RequestChanges(wish) => ("--request-changes", wish),
    };
    let order = ["forge", "pr", "review", &pr, verdict, "--body", body];
    stage.pointsman_in::<PullRequest>(project, &order).map(drop)
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::{ProjectName, Sha, TaskKey};
    use pointsman_core::task::{Contribution, Phase, State, Task};
    use pointsman_core::time::Timestamp;

    use super::{Filed, Opinion, Part, People, Status, Word};
    use crate::demo::stories::STORIES;
    use crate::demo::watch::Seen;

    const PART: Part = Part { project: "shop", issue: 3 };

    fn filed(story: &str) -> Filed {
        let story = STORIES.iter().find(|s| s.name == story).unwrap();
        Filed { part: PART, story: story.name, act: &story.acts[0], after: None, order: story.order }
    }

    fn seen(state: State, head: &str) -> Seen {
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue: 3 };
        let mut task = Task::new(key, String::new(), String::new(), Timestamp(0));
        task.state = state;
        task.phase = Some(Phase::AwaitingReview);
        let head = Sha::new(&head.repeat(40)).unwrap();
        task.contribution = Contribution::at(String::new(), head, Some(9));
        Seen { task: Some(task), ..Seen::default() }
    }

    #[test]
    fn a_reviewer_speaks_once_about_each_head_and_repeats_the_last_word() {
        let filed = filed("changes_requested");
        let mut people = People::default();
        let mut opinions = Vec::new();
        for head in ["a", "b", "c"] {
            let seen = seen(State::AwaitingReview, head);
            let Some(Word::Review { pr: 9, head, opinion }) = people.next_word(&filed, &seen) else {
                panic!()
            };
            opinions.push(opinion);
            people.reviewed.entry(PART).or_default().push(head);
            assert_eq!(people.next_word(&filed, &seen), None);
        }
        assert!(matches!(opinions[..], [Opinion::RequestChanges(_), Opinion::Approve, Opinion::Approve]));
    }

    #[test]
    fn an_action_of_the_story_is_let_go_once() {
        let mut people = People::default();
        let mut waiting = seen(State::Working, "a");
        waiting.action = Some(Status::Pending);
        assert_eq!(people.next_word(&filed("vault"), &waiting), Some(Word::LetGo("ring-the-bell")));
        assert_eq!(people.next_word(&filed("clean"), &waiting), None);
        people.approved.insert(PART);
        assert_eq!(people.next_word(&filed("vault"), &waiting), None);
    }

    #[test]
    fn a_question_is_answered_once_and_only_where_the_story_has_an_answer() {
        let mut people = People::default();
        let asked = seen(State::Escalated, "a");
        assert_eq!(people.next_word(&filed("clean"), &asked), None);
        assert!(matches!(people.next_word(&filed("escalation"), &asked), Some(Word::Answer(_))));
        people.answered.insert(PART);
        assert_eq!(people.next_word(&filed("escalation"), &asked), None);
    }
}
