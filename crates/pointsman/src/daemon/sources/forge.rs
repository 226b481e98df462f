//! News of the forge, polled again and again: issues, pull requests, reviews, people's comments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pointsman_adapters::forge::Error;
use pointsman_adapters::git::gateway::Gateway;
use pointsman_core::dependencies;
use pointsman_core::forge::{Comment, Issue, IssueState, Review};
use pointsman_core::hand_in::Landing;
use pointsman_core::ids::{Number, RunKey, Sha, TaskKey};
use pointsman_core::labels::{BACKLOG, has};
use pointsman_core::part::contribution::{self, Awaited};
use pointsman_core::part::question::{Binding, Question, QuestionId, bind};
use pointsman_core::run::{self, Run};
use pointsman_core::task::{Event, PrFact, State, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::workflow::Workflow;

use super::outages;
use crate::daemon::board::{TaskMap, WorkflowMap};
use crate::daemon::engine::Input;
use crate::daemon::factory::ForgeIssues;
use crate::daemon::served::Served;

/// A server's times have whole seconds: what happened within the same one is seen by a second look so much later.
const RESOLUTION: Duration = Duration::from_secs(2);
/// What has not changed, as far as the server says, is looked at again after so many paces all the same.
pub(crate) const NET: u32 = 120;

/// Answers that need not be asked for again. All of them can be lost.
#[derive(Default)]
pub(crate) struct ForgeCache {
    looks: BTreeMap<TaskKey, ReadTimes<TaskSigns>>,
    hand_ins: BTreeMap<RunKey, ReadTimes<LandingSigns>>,
    /// Issues that are closed. One that is opened again is in the list of the open ones.
    closed: BTreeSet<Number>,
    /// Issues that look like orphans, and since when.
    orphans: BTreeMap<Number, Timestamp>,
}

/// The times at which something was read on the forge, and the signs that it changes with.
pub(crate) struct ReadTimes<S> {
    signs: S,
    first: Timestamp,
    last: Timestamp,
}

impl<S: PartialEq> ReadTimes<S> {
    /// It is being read now; `known` is when it was read before.
    pub(crate) fn again(known: Option<&Self>, signs: S, now: Timestamp) -> Self {
        let first = known.filter(|look| look.signs == signs).map_or(now, |look| look.first);
        Self { signs, first, last: now }
    }

    /// Whether everything was seen that these signs tell of.
    pub(crate) fn is_enough(&self, signs: &S, net: Duration, now: Timestamp) -> bool {
        self.signs == *signs && self.last >= self.first.after(RESOLUTION) && now < self.last.after(net)
    }
}

/// What tells whether there is something new about a task: on the forge, or in what we want to know of it.
#[derive(PartialEq)]
struct TaskSigns {
    issue: Option<String>,
    pull: Option<String>,
    pr: Option<Number>,
    head: Option<Sha>,
    state: State,
    since: Timestamp,
}

impl TaskSigns {
    fn of(task: &Task, marks: &BTreeMap<Number, String>) -> Self {
        Self {
            issue: marks.get(&task.key.issue).cloned(),
            pull: task.contribution.pr().and_then(|pr| marks.get(&pr).cloned()),
            pr: task.contribution.pr(),
            head: task.contribution.head().cloned(),
            state: task.state,
            since: task.since,
        }
    }
}

/// Signs of news about what a run hands in.
#[derive(PartialEq)]
struct LandingSigns {
    pull: String,
    landing: Landing,
}

impl LandingSigns {
    /// Nothing if the forge does not list its pull request: then it is not open.
    fn of(run: &Run, marks: &BTreeMap<Number, String>) -> Option<Self> {
        let landing = run.landing()?;
        let pull = marks.get(&landing.contribution.pr()?)?.clone();
        Some(Self { pull, landing: landing.clone() })
    }
}

/// Asks the forge about everything that matters for the project's tasks. Where the forge tells what has changed, the rest
/// is not asked for.
pub(crate) fn ask(
    served: &Served,
    picture: &TaskMap,
    workflows: &WorkflowMap,
    memory: &mut ForgeCache,
    now: Timestamp,
) -> Result<Vec<Input>, Error> {
    let mut inputs = Vec::new();
    let issues = served.forge.open_issues()?;
    served.saw(ForgeIssues { issues: issues.clone(), at: now });
    let open: BTreeMap<Number, Issue> = issues.into_iter().map(|issue| (issue.number, issue)).collect();
    let marks = served.forge.marks();
    memory.closed.retain(|number| !open.contains_key(number));
    let graph: BTreeMap<Number, BTreeSet<Number>> =
        open.iter().map(|(n, issue)| (*n, dependencies::parse(&issue.body))).collect();
    let tasks = || picture.values().filter(|t| t.key.project == served.config.name);

    let mut of_interest: BTreeSet<Number> = tasks().map(|t| t.key.issue).collect();
    of_interest.extend(open.values().filter(|i| has(&i.labels, BACKLOG)).map(|i| i.number));
    let mut closing = None;
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
        for dependency in &wanted {
            if !is_closed(served, &open, &mut memory.closed, *dependency)? {
                open_dependencies.push(*dependency);
            }
        }
        // Somebody is at it already: a second change for the same issue would be thrown away. Nobody has to look while it
        // waits for something else.
        if open_dependencies.is_empty()
            && issue.state == IssueState::Open
            && has(&issue.labels, BACKLOG)
            && is_yet_to_begin(picture.get(&key))
        {
            let closing = match &mut closing {
                Some(closing) => closing,
                unknown @ None => unknown.insert(closing_changes(served)?),
            };
            open_dependencies.extend(closing.get(&number).into_iter().flatten().copied());
        }
        let event = Event::IssueObserved {
            title: issue.title,
            open: issue.state == IssueState::Open,
            labels: issue.labels,
            dependencies: wanted.into_iter().collect(),
            open_dependencies,
            cycle: dependencies::cycle_through(&graph, number),
            asked_at: Some(now),
        };
        inputs.push(Input::new(key, event));
    }
    let net = served.config.timing.forge_poll.duration() * NET;
    let mut looks = Vec::new();
    for task in tasks() {
        let signs = marks.as_ref().map(|marks| TaskSigns::of(task, marks));
        let known = memory.looks.get(&task.key);
        match (&signs, known) {
            (Some(signs), Some(look)) if look.is_enough(signs, net, now) => {
                inputs.extend(moved(served, task));
            }
            _ => {
                inputs.extend(ask_about(served, task, signs.as_ref())?);
                let look = signs.map(|signs| ReadTimes::again(known, signs, now));
                looks.extend(look.map(|look| (task.key.clone(), look)));
            }
        }
    }
    let mut seen = Vec::new();
    for run in workflows.values().filter_map(landing_of).filter(|run| run.project == served.config.name) {
        let signs = marks.as_ref().and_then(|marks| LandingSigns::of(run, marks));
        let known = memory.hand_ins.get(&run.key());
        match (&signs, known) {
            (Some(signs), Some(look)) if look.is_enough(signs, net, now) => {}
            (Some(_) | None, _) => {
                inputs.extend(ask_about_landing(served, run)?);
                let look = signs.map(|signs| ReadTimes::again(known, signs, now));
                seen.extend(look.map(|look| (run.key(), look)));
            }
        }
    }
    memory.hand_ins.retain(|key, _| workflows.contains_key(&key.clone().into()));
    memory.hand_ins.extend(seen);
    inputs.extend(outages::orphans(served, &open, picture, workflows, &mut memory.orphans, now));
    // Only now: what was found is lost if a later question fails.
    memory.looks.retain(|key, _| picture.contains_key(key));
    memory.looks.extend(looks);
    Ok(inputs)
}

/// The open pull requests that say which issue they close, by that issue; those of the daemon's own branches are left out.
fn closing_changes(served: &Served) -> Result<BTreeMap<Number, Vec<Number>>, Error> {
    let mut closing: BTreeMap<Number, Vec<Number>> = BTreeMap::new();
    for pr in served.forge.open_pull_requests()? {
        for issue in dependencies::closes(&format!("{}\n\n{}", pr.title, pr.body)) {
            if pr.head != served.config.branch(issue) {
                closing.entry(issue).or_default().push(pr.number);
            }
        }
    }
    Ok(closing)
}

/// Whether no session has worked on it yet.
fn is_yet_to_begin(task: Option<&Arc<Task>>) -> bool {
    task.is_none_or(|task| match task.state {
        State::Backlog | State::WaitingDependencies => true,
        State::Working
        | State::AwaitingCi
        | State::AwaitingReview
        | State::MergeQueue
        | State::Escalated
        | State::Blocked
        | State::Refused
        | State::Paused
        | State::Merged
        | State::Closed => false,
    })
}

/// A dependency is met only if it is known to be closed; a number that names nothing is a question
/// for a person, and shown as such.
fn is_closed(
    served: &Served,
    open: &BTreeMap<Number, Issue>,
    known: &mut BTreeSet<Number>,
    number: Number,
) -> Result<bool, Error> {
    if open.contains_key(&number) {
        return Ok(false);
    }
    if known.contains(&number) {
        return Ok(true);
    }
    let closed = match served.forge.issue(number)? {
        Some(issue) => issue.state == IssueState::Closed,
        None => served.forge.pull_request(number)?.is_some_and(|pr| pr.state == IssueState::Closed),
    };
    if closed {
        known.insert(number);
    }
    Ok(closed)
}

fn ask_about(served: &Served, task: &Task, signs: Option<&TaskSigns>) -> Result<Vec<Input>, Error> {
    let mut inputs = Vec::new();
    if !task.state.has_session() && task.state != State::Blocked {
        return Ok(inputs);
    }
    let key = &task.key;
    if let Some(number) = task.contribution.pr()
        && signs.is_some_and(|signs| signs.pull.is_some())
    {
        let found = served.forge.open_reviews(number, task.contribution.head())?;
        inputs.extend(reviews(served, key, task, found));
    } else if let Some(number) = task.contribution.pr()
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
        inputs.extend(reviews(served, key, task, pr.reviews));
    }
    if let Some(question) = &task.escalation {
        for comment in answers(served, key.issue, question)? {
            let by = served.person(&comment.author).unwrap_or(comment.author);
            let mut input = Input::new(key.clone(), Event::Answered { by, text: comment.body });
            input.dedup = Some(format!("comment:{}:{}", key.project, comment.id));
            input.answers = question.id;
            inputs.push(input);
        }
    }
    inputs.extend(moved(served, task));
    Ok(inputs)
}

fn landing_of(workflow: &Workflow) -> Option<&Run> {
    match workflow {
        Workflow::Run(run) => run.landing().map(|_| run.as_ref()),
        Workflow::Task(_)
        | Workflow::Vault(_)
        | Workflow::Concern(_)
        | Workflow::Role(_)
        | Workflow::Notifier(_) => None,
    }
}

fn ask_about_landing(served: &Served, run: &Run) -> Result<Vec<Input>, Error> {
    let (Some(contribution), Some(handed_in)) = (run.contribution(), &run.hand_in) else {
        return Ok(Vec::new());
    };
    let Some(number) = contribution.pr() else { return Ok(Vec::new()) };
    let about = |about| Input::of_run(run.key(), run::Event::Contribution { about });
    let observed = |fact| vec![about(contribution::Event::Observed { fact })];
    // One that the forge has no more is not wanted any more.
    let Some(pr) = served.forge.pull_request(number)? else { return Ok(observed(PrFact::Closed)) };
    match (pr.merged, pr.state) {
        (true, _) => {
            let sha = pr.merge_sha.or(pr.head_sha);
            return Ok(sha.map_or_else(Vec::new, |sha| observed(PrFact::Merged { sha })));
        }
        (false, IssueState::Closed) => return Ok(observed(PrFact::Closed)),
        (false, IssueState::Open) => {}
    }
    let mut inputs = Vec::new();
    // The queue itself sees to a branch that moved.
    let queued = contribution.awaited() == Some(Awaited::Queue);
    if let Some(commit) = pr.head_sha.filter(|at| !queued && !handed_in.owns(at)) {
        inputs.push(Input::of_run(run.key(), run::Event::BranchTaken { commit }));
    }
    let counts = |review: &Review| !review.dismissed && contribution.head() == Some(&review.sha);
    inputs.extend(pr.reviews.into_iter().filter(counts).filter_map(|review| {
        let (by, by_agent) = reviewer(served, &review)?;
        let Review { id, sha, verdict, body, .. } = review;
        let dedup = Some(format!("review:{}:{id}:run-{}", run.project, run.id));
        Some(Input { dedup, ..about(contribution::Event::Reviewed { sha, verdict, by, by_agent, body }) })
    }));
    Ok(inputs)
}

/// The comments on an issue that answer a question there: those under the comment that asks it, and those that came
/// before that one and after the question. Outside text must not direct an agent, so only of those who could change the
/// code themselves.
pub(in crate::daemon) fn answers(
    served: &Served,
    issue: Number,
    question: &Question,
) -> Result<Vec<Comment>, Error> {
    let me = served.forge.me();
    let comments = served.forge.comments_after(issue, 0)?;
    let mark = question.comment.as_deref().map(words::comment::marker);
    let asks = |comment: &Comment| {
        comment.author == me && mark.as_ref().is_some_and(|mark| comment.body.trim_end().ends_with(mark))
    };
    let asked = comments.iter().rposition(asks);
    let id: Vec<QuestionId> = question.id.into_iter().collect();
    let mut answers = Vec::new();
    for (place, comment) in comments.into_iter().enumerate() {
        // By place as well: a clock that was set back makes no answer void.
        let after = asked.is_some_and(|asked| place > asked) || comment.at >= question.asked_at;
        if comment.author != me
            && after
            && matches!(bind(&id, &comment.body), Binding::To(_))
            && served.may_direct(&comment.author)?
        {
            answers.push(comment);
        }
    }
    Ok(answers)
}

/// Whether the agent has pushed while it was not its turn.
fn moved(served: &Served, task: &Task) -> Option<Input> {
    if !matches!(task.state, State::AwaitingCi | State::AwaitingReview | State::MergeQueue) {
        return None;
    }
    let branch = served.branch(task).ok()?;
    let pushed = Gateway::at(&served.session_files(&task.key).gateway, &branch).head().ok().flatten();
    let moved =
        pushed.is_some() && task.contribution.head().is_some() && pushed.as_ref() != task.contribution.head();
    moved.then(|| Input::new(task.key.clone(), Event::HeadMoved))
}

fn reviews<'a>(
    served: &'a Served,
    key: &'a TaskKey,
    task: &'a Task,
    reviews: Vec<pointsman_core::forge::Review>,
) -> impl Iterator<Item = Input> + 'a {
    reviews.into_iter().filter(|r| !r.dismissed && task.contribution.head() == Some(&r.sha)).filter_map(
        |review| {
            let (by, by_agent) = reviewer(served, &review)?;
            let mut input = Input::new(
                key.clone(),
                Event::ReviewPosted {
                    sha: review.sha,
                    verdict: review.verdict,
                    by_agent,
                    by,
                    body: review.body,
                },
            );
            input.dedup = Some(format!("review:{}:{}:{}", key.project, review.id, task.claims));
            Some(input)
        },
    )
}

/// The name under which a review is recorded, and whether our own account wrote it; none if its writer's word does not count.
fn reviewer(served: &Served, review: &Review) -> Option<(String, bool)> {
    match served.forge.reviewer() == Some(review.author.as_str()) {
        true => Some((review.author.clone(), true)),
        false => Some((served.person(&review.author)?, false)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pointsman_core::ids::Sha;
    use pointsman_core::task::State;
    use pointsman_core::time::Timestamp;

    use super::{ReadTimes, TaskSigns};

    fn signs(pull: &str, head: &str, state: State) -> TaskSigns {
        let (pull, head) = (Some(pull.to_owned()), Sha::new(&head.repeat(40)));
        TaskSigns { issue: None, pull, pr: Some(2), head, state, since: Timestamp(0) }
    }

    #[test]
    fn what_has_not_changed_is_read_twice_and_then_not_again_for_long() {
        let net = Duration::from_secs(60);
        let seen = || signs("12:00:00", "a", State::AwaitingReview);
        let enough = |first: i64, last: i64, now: i64, signs: &TaskSigns| {
            let look = ReadTimes { signs: seen(), first: Timestamp(first), last: Timestamp(last) };
            look.is_enough(signs, net, Timestamp(now))
        };
        // Something else may have happened within the same second.
        assert!(!enough(0, 0, 10_000, &seen()));
        assert!(!enough(0, 1_999, 10_000, &seen()));
        assert!(enough(0, 2_000, 10_000, &seen()));
        assert!(!enough(0, 2_000, 62_000, &seen()), "the net");
        for other in [
            signs("12:00:01", "a", State::AwaitingReview),
            signs("12:00:00", "b", State::AwaitingReview),
            signs("12:00:00", "a", State::Working),
        ] {
            assert!(!enough(0, 2_000, 10_000, &other));
        }
    }
}
