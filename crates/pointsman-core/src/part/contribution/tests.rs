//! The road of a contribution, fact by fact, without any owner.

use std::time::Duration;

use super::*;
use crate::config::RiskClass;
use crate::known_secrets::FoundSecrets;
use crate::workflow::Refused;

const HOUR: Duration = Duration::from_secs(3600);

fn sha(digit: char) -> Sha {
    Sha::new(&digit.to_string().repeat(40)).unwrap()
}

/// A contribution on its way, with a clock and a person of its own.
struct Road {
    part: Contribution,
    policy: Policy,
    asked: Option<Cause>,
    now: Timestamp,
}

impl Road {
    fn new() -> Self {
        let policy = Policy {
            has_ci: true,
            review: ReviewMode::Human,
            approvals: Approvals::default(),
            ci_timeout: HOUR,
            review_timeout: 3 * HOUR,
            queue_timeout: 48 * HOUR,
            ci_fixes: 1,
            review_rounds: 1,
            infra_retries: 1,
            merge_conflicts: 1,
        };
        let part = Contribution::new("pointsman/issue-3".into());
        Self { part, policy, asked: None, now: Timestamp(1_000) }
    }

    fn take(&mut self, fact: &Fact<'_>) -> Result<Vec<String>, Refused> {
        let around = OwnerFacts { asked: self.asked, policy: &self.policy, now: self.now };
        let reactions = self.part.happened(fact, &around)?;
        let written = serde_json::to_string(&self.part).unwrap();
        assert_eq!(serde_json::from_str::<Contribution>(&written).unwrap(), self.part, "it reads back");
        Ok(reactions.iter().map(name).collect())
    }

    fn hears(&mut self, fact: &Fact<'_>) -> String {
        self.take(fact).unwrap_or_else(|refused| panic!("{fact:?}: {refused}")).join(" ")
    }

    fn refuses(&mut self, fact: &Fact<'_>) {
        let before = self.part.clone();
        assert!(self.take(fact).is_err(), "{fact:?} was taken");
        assert_eq!(self.part, before, "what is refused changes nothing");
    }

    fn later(&mut self, span: Duration) -> String {
        self.now = self.now.after(span);
        let around = OwnerFacts { asked: self.asked, policy: &self.policy, now: self.now };
        self.part.time_passed(&around).iter().map(name).collect::<Vec<_>>().join(" ")
    }

    fn pushed(digit: char) -> Self {
        let mut road = Self::new();
        road.part.await_push(road.now.after(HOUR));
        assert_eq!(
            road.hears(&Fact::Pushed { head: Some(&sha(digit)), protected: &[], secret: None, risk: None }),
            "open awaits:Checks check"
        );
        road.hears(&Fact::Opened { number: 7 });
        road
    }

    fn ci(&mut self, verdict: &CiVerdict) -> String {
        let head = self.part.head().unwrap().clone();
        self.hears(&Fact::ChecksFinished { sha: &head, run: self.part.ci_run, verdict })
    }

    fn review(&mut self, verdict: ReviewVerdict) -> String {
        let head = self.part.head().unwrap().clone();
        self.hears(&Fact::Reviewed { sha: &head, verdict, by: "ann", by_agent: false, body: "please" })
    }

    fn queued() -> Self {
        let mut road = Self::pushed('a');
        assert_eq!(road.ci(&CiVerdict::Passed), "record tell:CiPassed awaits:Review review");
        assert_eq!(road.review(ReviewVerdict::Approve), "tell:Approved awaits:Queue enqueue");
        assert!(road.part.is_queued(&sha('a')));
        road
    }

    fn queue(&mut self, outcome: &QueueOutcome) -> String {
        let head = self.part.head().unwrap().clone();
        self.hears(&Fact::QueueReported { head: &head, outcome })
    }
}

fn name(reaction: &Reaction) -> String {
    match reaction {
        Reaction::Push => "push".to_owned(),
        Reaction::Open => "open".to_owned(),
        Reaction::Check { .. } => "check".to_owned(),
        Reaction::RequestReview { .. } => "review".to_owned(),
        Reaction::Enqueue { .. } => "enqueue".to_owned(),
        Reaction::Dequeue => "dequeue".to_owned(),
        Reaction::Record { .. } => "record".to_owned(),
        Reaction::Tell { headline, .. } => format!("tell:{headline:?}"),
        Reaction::Awaits(what) => format!("awaits:{what:?}"),
        Reaction::Returned { .. } => "returned".to_owned(),
        Reaction::Exhausted { .. } => "exhausted".to_owned(),
        Reaction::Ask { cause, .. } => format!("ask:{cause:?}"),
        Reaction::Closed => "closed".to_owned(),
        Reaction::Merged { .. } => "merged".to_owned(),
    }
}

fn red() -> CiVerdict {
    CiVerdict::Failed { summary: "exit 1".into(), log: "boom\n".into() }
}

fn infra() -> CiVerdict {
    CiVerdict::Infra { reason: "exit 137".into(), log: String::new() }
}

#[test]
fn it_goes_from_a_push_to_the_main_branch() {
    let mut road = Road::queued();
    assert_eq!(road.queue(&QueueOutcome::Landed { sha: sha('f') }), "dequeue merged");
    let part = &road.part;
    assert_eq!((part.merged_as(), part.head(), part.pr()), (Some(&sha('f')), Some(&sha('a')), Some(7)));
    assert_eq!((part.awaited(), part.wake_at()), (None, None));
    // It is there once, whoever says so again.
    assert_eq!(road.hears(&Fact::FoundMerged { sha: &sha('e') }), "");
    road.refuses(&Fact::QueueReported { head: &sha('a'), outcome: &QueueOutcome::Landed { sha: sha('f') } });
    assert_eq!(road.part.merged_as(), Some(&sha('f')));
}

#[test]
fn nothing_is_known_of_a_head_that_was_never_pushed() {
    let mut road = Road::new();
    let head = sha('a');
    let green = CiVerdict::Passed;
    road.refuses(&Fact::Opened { number: 7 });
    road.refuses(&Fact::HeadMoved);
    road.refuses(&Fact::ChecksStarted { sha: &head });
    road.refuses(&Fact::ChecksFinished { sha: &head, run: 0, verdict: &green });
    road.refuses(&Fact::Reviewed {
        sha: &head,
        verdict: ReviewVerdict::Approve,
        by: "ann",
        by_agent: false,
        body: "",
    });
    road.refuses(&Fact::QueueReported {
        head: &head,
        outcome: &QueueOutcome::Stale { reason: String::new() },
    });
    // People can merge what we never saw.
    assert_eq!(road.hears(&Fact::Observed(&PrFact::Merged { sha: sha('f') })), "merged");
    assert_eq!((road.part.merged_as(), road.part.head()), (Some(&sha('f')), None));
}

#[test]
fn what_is_said_about_another_commit_is_stale() {
    let mut road = Road::pushed('a');
    let (other, green) = (sha('b'), CiVerdict::Passed);
    road.refuses(&Fact::ChecksFinished { sha: &other, run: 1, verdict: &green });
    road.refuses(&Fact::ChecksFinished { sha: &sha('a'), run: 9, verdict: &green });
    road.refuses(&Fact::Reviewed {
        sha: &other,
        verdict: ReviewVerdict::Approve,
        by: "ann",
        by_agent: false,
        body: "",
    });
    road.refuses(&Fact::QueueReported { head: &other, outcome: &QueueOutcome::Stale { reason: "x".into() } });
}

#[test]
fn a_push_voids_verdict_approval_and_entry_but_not_the_pull_request() {
    let mut road = Road::queued();
    assert_eq!(road.hears(&Fact::HeadMoved), "push");
    assert_eq!(
        road.hears(&Fact::Pushed { head: Some(&sha('b')), protected: &[], secret: None, risk: None }),
        "dequeue awaits:Checks check"
    );
    assert_eq!((road.part.review(), road.part.pr()), (&Review::None, Some(7)));
    assert!(
        !road.part.passed(&sha('a')) && !road.part.is_queued(&sha('a')) && !road.part.is_queued(&sha('b'))
    );
    assert_eq!(road.part.pending(), Some((&sha('b'), 2)), "the numbers of runs go on");
}

#[test]
fn the_same_head_again_goes_on_where_it_was() {
    let mut road = Road::queued();
    assert_eq!(
        road.hears(&Fact::Pushed { head: Some(&sha('a')), protected: &[], secret: None, risk: None }),
        ""
    );
    let mut road = Road::pushed('a');
    assert_eq!(
        road.hears(&Fact::Pushed { head: Some(&sha('a')), protected: &[], secret: None, risk: None }),
        "",
        "CI is at it"
    );
    road.ci(&CiVerdict::Passed);
    road.review(ReviewVerdict::RequestChanges);
    road.part.await_push(road.now.after(HOUR));
    assert_eq!(
        road.hears(&Fact::Pushed { head: Some(&sha('a')), protected: &[], secret: None, risk: None }),
        "returned",
        "the changes are not made"
    );
}

#[test]
fn red_is_handed_back_as_often_as_allowed() {
    let mut road = Road::pushed('a');
    assert_eq!(road.ci(&red()), "record returned tell:CiFailed");
    assert_eq!((road.part.awaited(), road.part.log_end()), (None, "boom"));
    road.hears(&Fact::Pushed { head: Some(&sha('b')), protected: &[], secret: None, risk: None });
    assert_eq!(road.ci(&red()), "record exhausted");
    // So is an empty push.
    let mut road = Road::new();
    assert_eq!(
        road.hears(&Fact::Pushed { head: None, protected: &[], secret: None, risk: None }),
        "returned tell:CiFailed"
    );
    assert_eq!(
        road.hears(&Fact::Pushed { head: None, protected: &[], secret: None, risk: None }),
        "exhausted"
    );
}

#[test]
fn infrastructure_is_tried_again_for_each_head_then_a_person_is_asked() {
    let mut road = Road::pushed('a');
    assert_eq!(road.ci(&infra()), "record awaits:Checks check");
    assert_eq!(road.ci(&infra()), "record ask:Ci");
    assert_eq!(road.part.attempts.ci_fixes, 0);
    road.hears(&Fact::Pushed { head: Some(&sha('b')), protected: &[], secret: None, risk: None });
    assert_eq!(road.ci(&infra()), "record awaits:Checks check");
}

#[test]
fn every_wait_has_an_end() {
    let mut road = Road::pushed('a');
    assert_eq!(road.later(HOUR / 2), "");
    road.hears(&Fact::ChecksStarted { sha: &sha('a') });
    assert_eq!(road.later(HOUR / 2), "", "the clock starts with the runner");
    assert_eq!(road.later(HOUR / 2), "tell:CiTimeout ask:Ci");
    assert_eq!((road.part.ci(), road.part.wake_at()), (&Ci::TimedOut, None));
    road.refuses(&Fact::ChecksStarted { sha: &sha('a') });
    // A late answer counts while a person is asked about it, and only then.
    let mut settled = Road { part: road.part.clone(), ..Road::new() };
    settled.now = road.now;
    assert_eq!(settled.ci(&CiVerdict::Passed), "record");
    road.asked = Some(Cause::Ci);
    assert_eq!(road.ci(&CiVerdict::Passed), "record tell:CiPassed awaits:Review review");
    assert_eq!(road.later(3 * HOUR), "tell:NoReview ask:Review");

    let mut road = Road::new();
    road.part.await_push(road.now.after(HOUR));
    assert_eq!(road.later(HOUR), "ask:Daemon");
    let mut road = Road::queued();
    assert_eq!(road.later(48 * HOUR), "dequeue ask:Daemon");
    assert!(!road.part.is_queued(&sha('a')));
}

#[test]
fn without_a_ci_or_a_reviewer_it_goes_on_at_once() {
    let mut road = Road::new();
    road.policy.has_ci = false;
    assert_eq!(
        road.hears(&Fact::Pushed { head: Some(&sha('a')), protected: &[], secret: None, risk: None }),
        "open awaits:Review review"
    );
    assert_eq!(road.part.ci(), &Ci::None, "nobody reads that CI passed");
    road.policy.has_ci = true;
    assert_eq!(road.review(ReviewVerdict::Approve), "awaits:Checks check", "there is a CI by now");
    assert_eq!(road.ci(&CiVerdict::Passed), "record tell:CiPassed awaits:Queue enqueue");
    let mut road = Road::pushed('a');
    road.policy.review = ReviewMode::None;
    assert_eq!(road.ci(&CiVerdict::Passed), "record tell:CiPassed awaits:Queue enqueue");
}

#[test]
fn reviews_are_rounds_and_nobody_is_overtaken() {
    let mut road = Road::queued();
    assert_eq!(road.review(ReviewVerdict::RequestChanges), "dequeue returned tell:ChangesRequested");
    assert_eq!(
        road.review(ReviewVerdict::RequestChanges),
        "returned tell:ChangesRequested",
        "the same round"
    );
    road.hears(&Fact::Pushed { head: Some(&sha('b')), protected: &[], secret: None, risk: None });
    assert_eq!(road.review(ReviewVerdict::RequestChanges), "exhausted");
    assert_eq!(Road::queued().review(ReviewVerdict::Discuss), "dequeue ask:Review");
    // Whoever works on it waits for an answer to something else.
    let mut road = Road::pushed('a');
    road.ci(&CiVerdict::Passed);
    road.part.rest();
    road.asked = Some(Cause::Agent);
    assert_eq!(road.review(ReviewVerdict::Approve), "");
    assert_eq!(road.review(ReviewVerdict::RequestChanges), "tell:ChangesRequested");
}

#[test]
fn the_merge_queue_hands_back_what_it_cannot_land() {
    let conflict = QueueOutcome::Conflict { files: vec!["a.rs".into()], with: None };
    let mut road = Road::queued();
    assert_eq!(road.queue(&conflict), "returned tell:MergeConflict");
    road.refuses(&Fact::QueueReported { head: &sha('a'), outcome: &conflict });
    road.hears(&Fact::Pushed { head: Some(&sha('b')), protected: &[], secret: None, risk: None });
    road.ci(&CiVerdict::Passed);
    road.review(ReviewVerdict::Approve);
    assert_eq!(road.queue(&conflict), "returned tell:MergeConflict ask:Conflict");

    let mut road = Road::queued();
    assert_eq!(
        road.queue(&QueueOutcome::Red { summary: "x".into(), log: "y".into() }),
        "returned tell:CiFailed"
    );
    assert_eq!(road.part.ci(), &Ci::Failed { infra: false, summary: "x".into() });
    let mut road = Road::queued();
    assert_eq!(road.queue(&QueueOutcome::Infra { reason: "x".into(), log: "y".into() }), "ask:Ci");
    let mut road = Road::queued();
    assert_eq!(road.queue(&QueueOutcome::Stale { reason: "x".into() }), "awaits:Push push");
    assert_eq!(
        road.hears(&Fact::Pushed { head: Some(&sha('a')), protected: &[], secret: None, risk: None }),
        "awaits:Queue enqueue"
    );
}

#[test]
fn refused_hosts_cost_nothing_and_the_same_commit_is_tested_again_when_a_person_allows_them() {
    let hosts = vec!["registry.example.org:443".to_owned()];
    let unreached = CiVerdict::Unreached {
        hosts: hosts.clone(),
        programs: vec!["npm".to_owned()],
        log: "no route\n".into(),
    };
    let mut road = Road::pushed('a');
    assert_eq!(road.ci(&unreached), "record ask:Hosts");
    assert_eq!((road.part.refused_hosts(), road.part.attempts), (hosts.as_slice(), Attempts::default()));
    road.refuses(&Fact::HostsAllowed);
    road.asked = Some(Cause::Hosts);
    assert_eq!(road.hears(&Fact::HostsAllowed), "awaits:Checks check");
    assert_eq!((road.part.head(), road.part.ci_run), (Some(&sha('a')), 2));
    road.refuses(&Fact::HostsAllowed);
    road.asked = None;
    assert_eq!(road.ci(&CiVerdict::Passed), "record tell:CiPassed awaits:Review review");

    // More than one question can show are not asked about at once.
    let many: Vec<String> = (0..20).map(|n| format!("host-{n}.example.org:443")).collect();
    let mut road = Road::pushed('a');
    road.ci(&CiVerdict::Unreached { hosts: many.clone(), programs: Vec::new(), log: String::new() });
    assert_eq!(road.part.refused_hosts(), &many[..8]);
    let asked = crate::words::reason::unreached(road.part.refused_hosts(), &[]);
    assert!(road.part.refused_hosts().iter().all(|host| asked.contains(host)), "{asked}");

    // The gate is asked again, and CI is not.
    let mut road = Road::queued();
    assert_eq!(
        road.queue(&QueueOutcome::Unreached { hosts, programs: Vec::new(), log: String::new() }),
        "ask:Hosts"
    );
    road.asked = Some(Cause::Hosts);
    assert_eq!(road.hears(&Fact::HostsAllowed), "awaits:Queue enqueue");
    // Another commit is another matter.
    let mut road = Road::pushed('a');
    road.ci(&unreached);
    road.hears(&Fact::Pushed { head: Some(&sha('b')), protected: &[], secret: None, risk: None });
    assert!(road.part.refused_hosts().is_empty());
}

#[test]
fn work_that_begins_anew_remembers_only_the_numbers_of_its_runs() {
    let mut road = Road::pushed('a');
    road.ci(&red());
    road.part.begin_anew();
    assert_eq!(road.part, Contribution { ci_run: 1, ..Contribution::new("pointsman/issue-3".into()) });
    road.refuses(&Fact::ChecksFinished { sha: &sha('a'), run: 1, verdict: &CiVerdict::Passed });
}

#[test]
fn protected_paths_need_a_person_whoever_else_reviews() {
    let paths = ["ci.sh".to_owned()];
    let head = sha('a');
    for mode in [ReviewMode::None, ReviewMode::Command, ReviewMode::Human] {
        let mut road = Road::new();
        (road.policy.has_ci, road.policy.review) = (false, mode);
        let pushed =
            road.hears(&Fact::Pushed { head: Some(&head), protected: &paths, secret: None, risk: None });
        let asks = match mode {
            ReviewMode::None => "open ask:Review",
            ReviewMode::Command | ReviewMode::Human | ReviewMode::Risk(_) => "open awaits:Review review",
        };
        assert_eq!(pushed, asks, "{mode:?}");
        let approve = |by_agent| Fact::Reviewed {
            sha: &head,
            verdict: ReviewVerdict::Approve,
            by: "ann",
            by_agent,
            body: "",
        };
        assert_eq!(road.hears(&approve(true)), "ask:Review", "{mode:?}");
        assert_eq!(road.hears(&approve(false)), "tell:Approved awaits:Queue enqueue", "{mode:?}");
        assert_eq!(road.hears(&approve(true)), "", "{mode:?}: a person has approved it");
        let other =
            road.hears(&Fact::Pushed { head: Some(&sha('b')), protected: &[], secret: None, risk: None });
        assert!(other.starts_with("dequeue"), "{mode:?}: {other}");
    }
}

#[test]
fn a_secret_keeps_a_branch_here_and_what_looks_like_one_is_told() {
    let head = sha('a');
    let mut road = Road::new();
    road.part.await_push(road.now.after(HOUR));
    let found = |what: &str, fingerprints: &[&str]| FoundSecrets {
        what: what.to_owned(),
        fingerprints: fingerprints.iter().map(|&one| one.to_owned()).collect(),
    };
    let token = found("a.txt holds a token", &["1"]);
    let withheld = Fact::Pushed { head: None, protected: &[], secret: Some(&token), risk: None };
    assert_eq!(road.hears(&withheld), "returned tell:CiFailed");
    let key = found("line 1 of a.txt looks like a key", &["2"]);
    let warned = Fact::Pushed { head: Some(&head), protected: &[], secret: Some(&key), risk: None };
    assert_eq!(road.hears(&warned), "tell:WritePhase open awaits:Checks check");
    road.hears(&Fact::Opened { number: 7 });
    assert_eq!(road.hears(&warned), "", "it was told");
    let moved = found("line 7 of a.txt looks like a key", &["2"]);
    let again = Fact::Pushed { head: Some(&sha('b')), protected: &[], secret: Some(&moved), risk: None };
    assert_eq!(road.hears(&again), "awaits:Checks check", "the same in another line");
    let both = found("a.txt and b.txt look like keys", &["2", "3"]);
    let more = Fact::Pushed { head: Some(&sha('c')), protected: &[], secret: Some(&both), risk: None };
    assert_eq!(road.hears(&more), "tell:WritePhase awaits:Checks check", "another one");
}

#[test]
fn two_approvals_are_those_of_two_people_for_this_very_commit() {
    let approvals = Approvals { usual: 2, protected: 2 };
    let by = |road: &mut Road, name: &str, verdict: ReviewVerdict, by_agent: bool| {
        road.hears(&Fact::Reviewed { sha: &sha('a'), verdict, by: name, by_agent, body: "" })
    };
    let (yes, no) = (ReviewVerdict::Approve, ReviewVerdict::RequestChanges);
    let landed = "tell:Approved awaits:Queue enqueue";
    let road = || {
        let mut road = Road::pushed('a');
        road.policy.approvals = approvals;
        road.ci(&CiVerdict::Passed);
        road
    };

    let mut two = road();
    assert_eq!(by(&mut two, "ann", yes, false), "");
    assert_eq!(by(&mut two, "ann", yes, false), "", "the same person twice is one approval");
    assert_eq!(by(&mut two, "judge", yes, true), "", "the review agent is nobody");
    assert!(!two.part.is_approved(&sha('a')));
    assert_eq!(two.part.awaited(), Some(Awaited::Review));
    assert_eq!(by(&mut two, "bob", yes, false), landed);
    assert_eq!(two.part.review(), &Review::Approved { by: "ann, bob".into() });

    // A push voids what was said about another commit.
    let mut pushed = road();
    by(&mut pushed, "ann", yes, false);
    pushed.hears(&Fact::Pushed { head: Some(&sha('b')), protected: &[], secret: None, risk: None });
    assert!(pushed.part.approvals().is_empty());

    // Whoever wants changes has everybody look again.
    let mut changed = road();
    by(&mut changed, "ann", yes, false);
    by(&mut changed, "bob", no, false);
    assert!(changed.part.approvals().is_empty());

    // The queue's own round trip keeps approvals: the head is the same.
    assert_eq!(two.queue(&QueueOutcome::Stale { reason: "x".into() }), "awaits:Push push");
    let again = Fact::Pushed { head: Some(&sha('a')), protected: &[], secret: None, risk: None };
    assert_eq!(two.hears(&again), "awaits:Queue enqueue");
    assert_eq!(two.part.approvals(), ["ann", "bob"]);

    // Protected paths may need more people than everything else.
    let rows = [(ReviewMode::Human, 1, 2), (ReviewMode::Command, 1, 2), (ReviewMode::None, 1, 2)];
    for (mode, plain, protected) in rows {
        let approvals = Approvals { usual: 1, protected: 2 };
        assert_eq!(
            (approvals.needed(mode, false, None), approvals.needed(mode, true, None)),
            (plain, protected),
            "{mode:?}"
        );
    }
    assert_eq!(Approvals { usual: 2, protected: 1 }.needed(ReviewMode::Human, true, None), 2);
    assert_eq!(Approvals { usual: 2, protected: 1 }.needed(ReviewMode::Command, false, None), 1);
}

/// Pushes one of this class in a project where the risk decides, without CI.
fn pushed_at_risk(keys: &str, risk: Option<&Risk>) -> (Road, String) {
    let text = format!("name = \"shop\"\nreview.mode = \"risk\"\n{keys}");
    let config = config::Config::parse(&text, "pointsman.toml").unwrap();
    let mut road = Road::new();
    (road.policy.has_ci, road.policy.review) = (false, ReviewMode::new(&config));
    let told = road.hears(&Fact::Pushed { head: Some(&sha('a')), protected: &[], risk, secret: None });
    (road, told)
}

fn risk(class: RiskClass, sampled: bool) -> Risk {
    Risk { class, reasons: vec!["a rule".to_owned()], sampled, findings: RiskClass::High }
}

#[test]
fn a_class_needs_nobody_the_review_agent_one_person_or_two() {
    use RiskClass::{Critical, High, Low, Medium};
    let two = "risk.critical = \"two_people\"";
    let head = sha('a');
    let by =
        |by, by_agent| Fact::Reviewed { sha: &head, verdict: ReviewVerdict::Approve, by, by_agent, body: "" };
    let (waits, lands) = ("open awaits:Review review", "tell:Approved awaits:Queue enqueue");
    // The risk; what follows from the push, from the agent's approval, from a person's, and from another person's.
    let rows = [
        (Some(risk(Low, false)), "open awaits:Queue enqueue", ["", "", ""]),
        (Some(risk(Low, true)), waits, ["", lands, ""]),
        (Some(risk(Medium, false)), waits, [lands, "", ""]),
        (Some(risk(High, false)), waits, ["", lands, ""]),
        (Some(risk(Critical, false)), waits, ["", "", lands]),
        (None, waits, ["", lands, ""]),
    ];
    for (risk, pushed, answers) in rows {
        let (mut road, told) = pushed_at_risk(two, risk.as_ref());
        assert_eq!(told, pushed, "{risk:?}");
        for (says, follows) in [by("judge", true), by("ann", false), by("bob", false)].iter().zip(answers) {
            assert_eq!(road.hears(says), follows, "{risk:?} {says:?}");
        }
        let kept: Contribution = serde_json::from_str(&serde_json::to_string(&road.part).unwrap()).unwrap();
        assert_eq!(kept, road.part);
    }
}

#[test]
fn what_the_review_agent_finds_brings_a_person() {
    let head = sha('a');
    let says = |verdict, by_agent| Fact::Reviewed { sha: &head, verdict, by: "x", by_agent, body: "odd" };
    let medium = risk(RiskClass::Medium, false);
    let (mut road, _) = pushed_at_risk("", Some(&medium));
    assert_eq!(road.part.judge(road.policy.review), ReviewMode::Command);
    assert_eq!(road.hears(&says(ReviewVerdict::Discuss, true)), "review", "people are asked instead");
    assert_eq!(road.part.judge(road.policy.review), ReviewMode::Human);
    let raised = road.part.risk().unwrap();
    assert_eq!(raised.class, RiskClass::High);
    assert!(raised.reasons[0].contains("odd"), "{raised:?}");
    // Handed in again, it is not forgotten; and the agent cannot approve any more.
    road.hears(&Fact::Pushed { head: Some(&head), protected: &[], risk: Some(&medium), secret: None });
    assert_eq!(road.part.risk().unwrap().class, RiskClass::High);
    assert_eq!(road.hears(&says(ReviewVerdict::Approve, true)), "");
    assert_eq!(road.hears(&says(ReviewVerdict::Approve, false)), "tell:Approved awaits:Queue enqueue");
    // A request for changes by the agent goes to whoever works on it, as ever.
    let (mut road, _) = pushed_at_risk("", Some(&medium));
    assert!(road.hears(&says(ReviewVerdict::RequestChanges, true)).contains("tell:ChangesRequested"));
}

#[test]
fn protected_paths_need_a_person_where_the_risk_decides() {
    let paths = ["ci.sh".to_owned()];
    let low = risk(RiskClass::Low, false);
    let (mut road, _) = pushed_at_risk("", Some(&low));
    let head = sha('b');
    let told =
        road.hears(&Fact::Pushed { head: Some(&head), protected: &paths, risk: Some(&low), secret: None });
    assert!(told.contains("awaits:Review"), "{told}");
    let approve = |by_agent| Fact::Reviewed {
        sha: &head,
        verdict: ReviewVerdict::Approve,
        by: "ann",
        by_agent,
        body: "",
    };
    assert_eq!(road.hears(&approve(true)), "");
    assert_eq!(road.hears(&approve(false)), "tell:Approved awaits:Queue enqueue");
}
