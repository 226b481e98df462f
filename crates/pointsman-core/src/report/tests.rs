use std::time::Duration;

use super::{Ci, Counter, Figures, Logged, Reviews, SessionFacts, Spread};
use crate::ids::{ProjectName, Sha};
use crate::log::{Entry, TaskEntry, TaskMove};
use crate::role::Role;
use crate::session::budget::Spent;
use crate::task::{CiVerdict, Event, Exit, QueueOutcome, ReviewVerdict, State};
use crate::time::Timestamp;

const MINUTE: Duration = Duration::from_secs(60);

fn shop() -> ProjectName {
    ProjectName::new("shop").unwrap()
}

fn sha(digit: char) -> Sha {
    Sha::new(&digit.to_string().repeat(40)).unwrap()
}

fn minute(minute: u32) -> Timestamp {
    Timestamp(0).after(MINUTE * minute)
}

/// A log in the making, and its reader.
struct Log(Counter);

impl Log {
    fn since(minutes: u32) -> Self {
        Self(Counter::new(minute(minutes)))
    }

    fn task(&mut self, at: u32, issue: u64, event: Event, to: State) -> &mut Self {
        let moved = TaskMove { from: None, to };
        let (kind, data) = TaskEntry { event, moved, refused: None }.stored();
        let project = shop();
        self.0.take(Logged {
            at: minute(at),
            project: Some(&project),
            issue: Some(issue),
            kind: &kind,
            data: &data,
        });
        self
    }

    fn entry(&mut self, at: u32, entry: &Entry) -> &mut Self {
        let (kind, data) = entry.stored();
        let project = shop();
        self.0.take(Logged {
            at: minute(at),
            project: Some(&project),
            issue: None,
            kind: &kind,
            data: &data,
        });
        self
    }

    fn ci(&mut self, at: u32, issue: u64, commit: char, verdict: CiVerdict, to: State) -> &mut Self {
        self.task(at, issue, Event::ChecksFinished { sha: sha(commit), run: 1, verdict, flaky: false }, to)
    }

    fn review(&mut self, at: u32, issue: u64, commit: char, verdict: ReviewVerdict, by: &str) -> &mut Self {
        let to = if verdict == ReviewVerdict::Approve { State::MergeQueue } else { State::Working };
        let by_agent = by == "agent";
        let (by, body) = (by.to_owned(), String::new());
        self.task(at, issue, Event::ReviewPosted { sha: sha(commit), verdict, by, by_agent, body }, to)
    }

    fn lands(&mut self, at: u32, issue: u64, commit: char) -> &mut Self {
        let outcome = QueueOutcome::Landed { sha: sha(commit) };
        self.task(at, issue, Event::QueueReported { head: sha(commit), outcome }, State::Merged)
    }

    fn finish(self, sessions: &[SessionFacts]) -> Figures {
        self.0.finish(sessions)
    }
}

fn red() -> CiVerdict {
    CiVerdict::Failed { summary: "1 failed".to_owned(), log: String::new() }
}

fn session(issue: u64, role: Role, agent: &str, cents: u64, exit: Exit) -> SessionFacts {
    SessionFacts {
        project: shop(),
        issue: Some(issue),
        role,
        agent: Some(agent.to_owned()),
        created_at: minute(100),
        exit: Some(exit),
        spent: Spent { micro_usd: cents * 10_000, turns: 1, ..Spent::default() },
    }
}

#[test]
fn figures_are_counted_from_the_log() {
    let mut log = Log::since(100);
    // #1 began before the span, passes at the first try and lands in it.
    log.task(90, 1, Event::Claimed, State::Backlog)
        .task(95, 1, Event::Claimed, State::Working)
        .task(105, 1, Event::HeadMoved, State::AwaitingCi)
        .ci(110, 1, 'a', CiVerdict::Passed, State::AwaitingReview)
        .review(130, 1, 'a', ReviewVerdict::Approve, "ada")
        .lands(135, 1, 'a')
        // #2 is red once, is sent back by the review agent, overruled by a person, and conflicts once.
        .task(100, 2, Event::Claimed, State::Working)
        .ci(110, 2, 'b', red(), State::Working)
        .ci(115, 2, 'c', CiVerdict::Infra { reason: "x".into(), log: String::new() }, State::AwaitingCi)
        .ci(120, 2, 'c', CiVerdict::Passed, State::AwaitingReview)
        .review(121, 2, 'c', ReviewVerdict::RequestChanges, "agent")
        .review(133, 2, 'c', ReviewVerdict::Approve, "ada")
        .task(
            140,
            2,
            Event::QueueReported {
                head: sha('c'),
                outcome: QueueOutcome::Conflict { files: Vec::new(), with: None },
            },
            State::Working,
        )
        .lands(200, 2, 'd')
        // #3 is given up; #4 landed before.
        .task(150, 3, Event::Claimed, State::Working)
        .review(152, 3, 'e', ReviewVerdict::RequestChanges, "eve")
        .task(160, 3, Event::TimePassed, State::Blocked);
    let reverted = |issue| Entry::LandingReverted { sha: sha('a'), by: sha('f'), issue, pr: None };
    log.entry(210, &reverted(Some(1))).entry(211, &reverted(None));
    let sessions = [
        session(1, Role::Dev, "opus", 100, Exit::Done),
        session(2, Role::Dev, "opus", 200, Exit::Crashed),
        session(2, Role::Dev, "sonnet", 50, Exit::Done),
        session(2, Role::Review, "sonnet", 5, Exit::Done),
        session(3, Role::Dev, "sonnet", 30, Exit::Failed),
        SessionFacts { created_at: minute(99), ..session(1, Role::Dev, "opus", 900, Exit::Done) },
    ];
    let figures = log.finish(&sessions);
    assert_eq!(figures.issues_landed, 2);
    assert_eq!(figures.first_pass_rate, Some(0.5));
    // Once, and four times: red, sent back, in conflict, landed.
    assert_eq!(figures.attempts_per_landed, Some(2.5));
    // 45 and 100 minutes.
    assert_eq!(figures.lead_time, Some(Spread { p50: MINUTE * 45, p90: MINUTE * 100 }));
    let stage = |state| figures.stages.get(&state).copied();
    assert_eq!(stage(State::Backlog), Some(Spread { p50: MINUTE * 5, p90: MINUTE * 5 }));
    // #1: 95 to 105. #2: 100 to 115, 121 to 133 and 140 to 200.
    assert_eq!(stage(State::Working), Some(Spread { p50: MINUTE * 10, p90: MINUTE * 87 }));
    assert_eq!(stage(State::AwaitingReview), Some(Spread { p50: MINUTE, p90: MINUTE * 20 }));
    assert_eq!(stage(State::Escalated), None);
    assert_eq!((figures.total.micro_usd, figures.wasted.micro_usd), (3_850_000, 300_000));
    let costs: Vec<(u64, bool, u64)> =
        figures.per_issue.iter().map(|c| (c.issue.1, c.landed, c.spent.micro_usd / 10_000)).collect();
    assert_eq!(costs, [(1, true, 100), (2, true, 255), (3, false, 30)]);
    // Ada: 2 minutes, and 3 until her next act. Eve: 2 minutes.
    assert_eq!(figures.person, MINUTE * 7);
    assert_eq!(figures.acceptance_rate, Some(2.0 / 3.0));
    assert_eq!(figures.reverts, 2);
    assert_eq!(figures.ci, Ci { runs: 4, red: 1, flaky: 1 });
    assert_eq!(figures.reviews, Reviews { asked: 2, found: 1, overruled: 1, reverted: 0 });
    let share = |agent: &str| figures.by_agent[&Some(agent.to_owned())];
    assert_eq!((share("opus").sessions, share("opus").crashed, share("opus").landed), (2, 1, 2));
    assert_eq!((share("sonnet").sessions, share("sonnet").landed), (3, 1));
    assert_eq!(figures.by_role[&Role::Review].spent.micro_usd, 50_000);
}

#[test]
fn a_figure_without_a_base_is_absent() {
    let mut log = Log::since(100);
    log.task(10, 1, Event::Claimed, State::Working).lands(99, 1, 'a');
    let figures = log.finish(&[]);
    assert_eq!(figures.issues_landed, 0, "it landed before");
    assert_eq!((figures.first_pass_rate, figures.attempts_per_landed), (None, None));
    assert_eq!((figures.lead_time, figures.acceptance_rate), (None, None));
}

#[test]
fn an_agent_s_approval_of_what_was_reverted_is_counted() {
    let mut log = Log::since(0);
    log.task(1, 1, Event::Claimed, State::Working)
        .review(2, 1, 'a', ReviewVerdict::Approve, "agent")
        .lands(3, 1, 'a')
        .entry(4, &Entry::LandingReverted { sha: sha('a'), by: sha('b'), issue: Some(1), pr: None });
    assert_eq!(log.finish(&[]).reviews.reverted, 1);
}

#[test]
fn an_issue_that_begins_anew_has_a_new_history() {
    let mut log = Log::since(0);
    log.task(1, 1, Event::Claimed, State::Working)
        .ci(2, 1, 'a', red(), State::Working)
        .lands(3, 1, 'a')
        .task(4, 1, Event::TimePassed, State::Closed)
        .task(50, 1, Event::HeadMoved, State::Backlog)
        .lands(60, 1, 'b');
    let figures = log.finish(&[]);
    assert_eq!((figures.issues_landed, figures.first_pass_rate), (1, Some(1.0)));
    assert_eq!(figures.lead_time, Some(Spread { p50: MINUTE * 10, p90: MINUTE * 10 }));
}

#[test]
fn landings_and_reverts_are_counted_by_class_of_risk() {
    use crate::config::RiskClass::{High, Low, Medium};
    use crate::report::ClassShare;
    use crate::review::Risk;
    let pushed = |digit, class| Event::BranchSynced {
        head: Some(sha(digit)),
        protected: vec![],
        risk: Some(Risk { class, reasons: vec![], sampled: false, findings: High }),
        secret: None,
    };
    let mut log = Log::since(5);
    log.task(1, 1, pushed('a', Low), State::MergeQueue)
        .lands(2, 1, 'a')
        .task(6, 2, pushed('b', Low), State::MergeQueue)
        .lands(7, 2, 'b')
        .task(8, 3, pushed('c', Medium), State::AwaitingReview)
        .review(9, 3, 'c', ReviewVerdict::Discuss, "agent")
        .review(10, 3, 'c', ReviewVerdict::Approve, "ann")
        .lands(11, 3, 'c')
        .entry(12, &Entry::LandingReverted { sha: sha('a'), by: sha('f'), issue: Some(1), pr: None })
        .entry(13, &Entry::LandingReverted { sha: sha('c'), by: sha('e'), issue: Some(3), pr: None });
    let figures = log.finish(&[]);
    let told: Vec<_> = figures.by_class.iter().map(|(class, share)| (*class, *share)).collect();
    assert_eq!(
        told,
        [(Low, ClassShare { landed: 1, reverted: 1 }), (High, ClassShare { landed: 1, reverted: 1 }),],
        "the first landed before, and the third was raised by what the review agent found"
    );
}
