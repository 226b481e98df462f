//! What the forge says, asked again and again: issues, pull requests, reviews, people's comments.

use std::collections::{BTreeMap, BTreeSet};

use pointsman_adapters::forge::Error;
use pointsman_adapters::git::gateway::Gateway;
use pointsman_core::dependencies;
use pointsman_core::forge::{Issue, IssueState};
use pointsman_core::ids::{Number, TaskKey};
use pointsman_core::labels::{BACKLOG, has};
use pointsman_core::task::{Event, PrFact, State, Task};

use crate::daemon::board::Picture;
use crate::daemon::clock;
use crate::daemon::engine::Input;
use crate::daemon::factory::Seen;
use crate::daemon::served::Served;

/// Asks the forge about everything that matters for the project's tasks.
pub(crate) fn ask(served: &Served, picture: &Picture) -> Result<Vec<Input>, Error> {
    let mut inputs = Vec::new();
    let issues = served.forge.open_issues()?;
    served.saw(Seen { issues: issues.clone(), at: clock::now() });
    let open: BTreeMap<Number, Issue> = issues.into_iter().map(|issue| (issue.number, issue)).collect();
    let graph: BTreeMap<Number, BTreeSet<Number>> =
        open.iter().map(|(n, issue)| (*n, dependencies::parse(&issue.body))).collect();
    let tasks = || picture.values().filter(|t| t.key.project == served.config.name);

    let mut of_interest: BTreeSet<Number> = tasks().map(|t| t.key.issue).collect();
    of_interest.extend(open.values().filter(|i| has(&i.labels, BACKLOG)).map(|i| i.number));
    let mut known_closed = BTreeMap::new();
    for number in of_interest {
        let key = TaskKey { project: served.config.name.clone(), issue: number };
        let issue = match open.get(&number) {
            Some(issue) => Some(issue.clone()),
            None => served.forge.issue(number)?,
        };
        let Some(issue) = issue else { continue };
        let refused_for = picture.get(&key).and_then(|t| t.refusal.as_ref()).map(|r| r.blocked_by.clone());
        let mut wanted = graph.get(&number).cloned().unwrap_or_default();
        wanted.extend(refused_for.unwrap_or_default());
        if issue.state == IssueState::Open && has(&issue.labels, BACKLOG) {
            wanted.extend(served.forge.dependencies(number)?);
        }
        wanted.remove(&number);
        let mut open_dependencies = Vec::new();
        for dependency in wanted {
            if !is_closed(served, &open, &mut known_closed, dependency)? {
                open_dependencies.push(dependency);
            }
        }
        let event = Event::IssueObserved {
            title: issue.title,
            open: issue.state == IssueState::Open,
            labels: issue.labels,
            open_dependencies,
            cycle: dependencies::cycle_through(&graph, number),
        };
        inputs.push(Input::new(key, event));
    }
    for task in tasks() {
        inputs.extend(ask_about(served, task)?);
    }
    Ok(inputs)
}

/// A dependency is met only if it is known to be closed; a number that names nothing is a question
/// for a person, and shown as such.
fn is_closed(
    served: &Served,
    open: &BTreeMap<Number, Issue>,
    known: &mut BTreeMap<Number, bool>,
    number: Number,
) -> Result<bool, Error> {
    if open.contains_key(&number) {
        return Ok(false);
    }
    if let Some(closed) = known.get(&number) {
        return Ok(*closed);
    }
    let closed = match served.forge.issue(number)? {
        Some(issue) => issue.state == IssueState::Closed,
        None => served.forge.pull_request(number)?.is_some_and(|pr| pr.state == IssueState::Closed),
    };
    known.insert(number, closed);
    Ok(closed)
}

fn ask_about(served: &Served, task: &Task) -> Result<Vec<Input>, Error> {
    let mut inputs = Vec::new();
    if !task.state.has_session() && task.state != State::Blocked {
        return Ok(inputs);
    }
    let key = &task.key;
    if let Some(number) = task.pr
        && let Some(pr) = served.forge.pull_request(number)?
    {
        let fact = match (pr.merged, pr.state) {
            (true, _) => pr.merge_sha.or(pr.head_sha).map(|sha| PrFact::Merged { sha }),
            (false, IssueState::Closed) => Some(PrFact::Closed),
            (false, IssueState::Open) => None,
        };
        if let Some(fact) = fact {
            inputs.push(Input::new(key.clone(), Event::PullRequestObserved { fact }));
        }
        inputs.extend(reviews(key, task, pr.reviews));
    }
    if let Some(escalation) = &task.escalation {
        let me = served.forge.me();
        for comment in served.forge.comments_after(key.issue, 0)? {
            // Outside text must not direct an agent: only of those who could change the code themselves.
            if comment.author != me
                && comment.at >= escalation.at
                && served.forge.may_direct(&comment.author)?
            {
                let mut input =
                    Input::new(key.clone(), Event::Answered { by: comment.author, text: comment.body });
                input.dedup = Some(format!("comment:{}:{}", key.project, comment.id));
                inputs.push(input);
            }
        }
    }
    if matches!(task.state, State::AwaitingCi | State::AwaitingReview | State::MergeQueue)
        && let Ok(branch) = served.branch(task)
    {
        let pushed = Gateway::at(&served.desk(key).gateway, &branch).head().ok().flatten();
        if pushed.is_some() && task.head.is_some() && pushed != task.head {
            inputs.push(Input::new(key.clone(), Event::HeadMoved));
        }
    }
    Ok(inputs)
}

fn reviews<'a>(
    key: &'a TaskKey,
    task: &'a Task,
    reviews: Vec<pointsman_core::forge::Review>,
) -> impl Iterator<Item = Input> + 'a {
    reviews.into_iter().filter(|r| !r.dismissed && task.head.as_ref() == Some(&r.sha)).map(|review| {
        let mut input = Input::new(
            key.clone(),
            Event::ReviewPosted {
                sha: review.sha,
                verdict: review.verdict,
                by: review.author,
                body: review.body,
            },
        );
        input.dedup = Some(format!("review:{}:{}:{}", key.project, review.id, task.claims));
        input
    })
}
