//! Running: stories of runs, one event after the other.

use std::collections::BTreeMap;

use super::super::condition::Verdict;
use super::super::run::{
    Arrival, Event, NodeStatus, Order, Outcome, PipelineRun, Refused, Rules, Stage, Status, begin, step,
};
use super::{ATTRACTOR, HARNESS, pipeline};
use crate::time::Timestamp;

/// A run, what it ordered last, and a clock.
struct Play {
    run: PipelineRun,
    orders: Vec<Order>,
    now: Timestamp,
    rules: Rules,
}

fn play(text: &str) -> Play {
    let (rules, now) = (Rules::default(), Timestamp(1_000_000));
    let next = begin(pipeline(text), &rules, now);
    Play { run: next.run, orders: next.orders, now, rules }
}

/// A plan with a start `s`, an exit `e` and this between.
fn attractor(body: &str) -> Play {
    play(&format!("digraph {{ s [shape=Mdiamond] e [shape=Msquare] {body} }}"))
}

fn harness(body: &str) -> Play {
    play(&format!("digraph {{ s [shape=Mdiamond handler=start] e [shape=Msquare handler=exit] {body} }}"))
}

impl Play {
    fn send(&mut self, event: &Event) -> &mut Self {
        // A snapshot survives being stored between any two events.
        let stored = serde_json::to_string(&self.run).expect("can be stored");
        let run = PipelineRun::from_json(&stored).expect("can be read");
        let next =
            step(&run, event, &self.rules, self.now).unwrap_or_else(|refused| panic!("{event:?}: {refused}"));
        (self.run, self.orders) = (next.run, next.orders);
        self
    }

    fn ticket(&self, node: &str) -> u64 {
        match self.run.nodes[node].stage {
            Stage::Working { ticket } => ticket,
            ref other => panic!("{node} is {other:?}"),
        }
    }

    fn ends(&mut self, node: &str, outcome: Outcome) -> &mut Self {
        let ticket = self.ticket(node);
        self.send(&Event::Finished { node: node.into(), ticket, outcome: Some(outcome) })
    }

    fn succeeds(&mut self, node: &str) -> &mut Self {
        self.ends(node, Outcome::of(Verdict::Success))
    }

    fn fails(&mut self, node: &str) -> &mut Self {
        self.ends(node, Outcome::failed("broken"))
    }

    fn answers(&mut self, node: &str, answer: &str) -> &mut Self {
        let ticket = self.ticket(node);
        self.send(&Event::Answered { node: node.into(), ticket, answer: answer.into() })
    }

    fn lands(&mut self, node: &str) -> &mut Self {
        self.send(&Event::Landed { node: node.into() })
    }

    /// Done, green and on main.
    fn is_done(&mut self, node: &str) -> &mut Self {
        self.succeeds(node);
        self.lands(node)
    }

    fn files(&mut self, node: &str, issue: u64) -> &mut Self {
        let ticket = self.ticket(node);
        self.send(&Event::IssueFiled { node: node.into(), ticket, issue })
    }

    fn wakes(&mut self) -> &mut Self {
        self.now = self.run.wake_at().expect("waits for a time");
        self.send(&Event::Woke)
    }

    /// Nodes that something was ordered for and that have not ended.
    fn working(&self) -> Vec<&str> {
        let works = |id: &&String| matches!(self.run.nodes[*id].stage, Stage::Working { .. });
        self.run.nodes.keys().filter(works).map(String::as_str).collect()
    }

    fn status(&self, node: &str) -> NodeStatus {
        self.run.nodes[node].status
    }

    #[track_caller]
    fn is(&self, status: Status, reason: &str) {
        assert_eq!(self.run.status, status, "{:?}", self.run.reason);
        assert!(self.run.reason.as_deref().unwrap_or_default().contains(reason), "{:?}", self.run.reason);
        assert_eq!(self.run.wake_at(), None);
    }
}

const TOOLS: &str = "node [shape=parallelogram, tool_command=x]";

#[test]
fn a_task_lands_before_what_follows_begins() {
    let mut play = attractor("a [prompt=A] b [prompt=B] s -> a -> b -> e");
    assert!(matches!(&play.orders[..], [Order::FileIssue { node, issue: None, .. }] if node == "a"));
    assert_eq!(play.status("a"), NodeStatus::Active);
    play.files("a", 7).succeeds("a");
    assert_eq!(play.orders, [Order::Land { node: "a".into() }]);
    assert_eq!(
        (play.status("a"), play.working()),
        (NodeStatus::Validated, vec![]),
        "nothing to judge it but the queue"
    );
    play.lands("a");
    assert_eq!((play.status("a"), play.working()), (NodeStatus::Merged, vec!["b"]));
    assert!(matches!(&play.orders[..], [Order::FileIssue { depends_on, .. }] if depends_on == &["a"]));
    play.is_done("b").is(Status::Done, "");
}

#[test]
fn gates_judge_before_the_queue_and_a_failure_goes_back() {
    let mut play = play(HARNESS);
    assert_eq!(play.working(), ["setup"]);
    play.succeeds("setup");
    assert_eq!(play.working(), ["impl_api", "impl_ui"]);
    play.files("impl_api", 10).succeeds("impl_api");
    assert_eq!(
        (play.status("impl_api"), play.working()),
        (NodeStatus::ImplComplete, vec!["impl_ui", "tech_api"])
    );
    assert!(matches!(&play.orders[..], [Order::StartGate { judges, .. }] if judges == &["impl_api"]));
    // The first gate says no: the second has nothing to judge, the diamond sends the task back with the reason.
    play.ends("tech_api", Outcome::failed("no tests"));
    assert_eq!(play.status("biz_api"), NodeStatus::Skipped);
    assert_eq!(play.working(), ["impl_api", "impl_ui"]);
    let [Order::ResumeIssue { issue: 10, feedback, .. }] = &play.orders[..] else {
        panic!("{:?}", play.orders)
    };
    assert_eq!(feedback.as_deref(), Some("no tests"));
    play.succeeds("impl_api").succeeds("tech_api");
    assert_eq!(play.status("impl_api"), NodeStatus::ImplComplete, "one gate is left");
    play.succeeds("biz_api");
    assert_eq!(play.orders, [Order::Land { node: "impl_api".into() }]);
    assert_eq!((play.status("impl_api"), play.working()), (NodeStatus::Validated, vec!["impl_ui"]));
    play.lands("impl_api");
    assert_eq!(play.status("impl_api"), NodeStatus::Merged);
    // The other stream has a person as its gate.
    play.succeeds("impl_ui");
    assert!(matches!(&play.orders[..], [Order::AskPerson { choices, .. }] if choices.len() == 2));
    play.answers("look_ui", "pass").lands("impl_ui");
    assert_eq!(play.working(), ["e2e"], "both streams joined");
    assert!(
        matches!(&play.orders[..], [Order::StartGate { judges, .. }] if judges.is_empty()),
        "main is judged, not a task"
    );
    play.succeeds("e2e").is(Status::Done, "");
    assert_eq!(play.run.nodes["impl_api"].visits, 2);
}

#[test]
fn a_landing_that_fails_is_a_failure_of_the_task() {
    let mut play = harness(
        "a [handler=codergen bead_id=1] g [shape=hexagon handler=\"wait.human\" gate=technical] d [shape=diamond handler=conditional] \
         s -> a -> g -> d d -> e [condition=pass] d -> a [condition=fail]",
    );
    play.succeeds("a").succeeds("g");
    play.send(&Event::LandingFailed { node: "a".into(), reason: "red on main".into() });
    assert_eq!(
        (play.working(), play.status("g")),
        (vec!["a"], NodeStatus::Skipped),
        "its yes counts for nothing"
    );
    assert_eq!(play.run.nodes["a"].reason.as_deref(), Some("red on main"));
    play.succeeds("a").succeeds("g").lands("a").is(Status::Done, "");
}

#[test]
fn a_person_may_merge_first() {
    let mut play = attractor("a [prompt=A] s -> a -> e");
    play.lands("a").is(Status::Done, "");
    assert_eq!(play.status("a"), NodeStatus::Merged);
}

#[test]
fn edges_are_chosen_by_condition_label_suggestion_weight_and_name() {
    let targets = "m [tool_command=x] n [tool_command=x] o [tool_command=x] m -> e n -> e o -> e";
    let with = |label: &str, suggested: &str, context: &[(&str, &str)], verdict: Verdict| Outcome {
        preferred_label: (!label.is_empty()).then(|| label.to_owned()),
        suggested: if suggested.is_empty() { vec![] } else { vec![suggested.to_owned()] },
        context: context.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        ..Outcome::of(verdict)
    };
    use Verdict::{Fail, PartialSuccess, Success};
    for (edges, outcome, target) in [
        ("w -> n w -> m w -> o", with("", "", &[], Success), "m"),
        ("w -> n [weight=1] w -> m w -> o", with("", "", &[], Success), "n"),
        ("w -> n [weight=1] w -> m w -> o", with("", "o", &[], Success), "o"),
        ("w -> n [label=\"[N] Next\"] w -> m w -> o", with("next", "o", &[], Success), "n"),
        (
            "w -> n [label=next] w -> m [condition=\"outcome=success\"] w -> o",
            with("next", "o", &[], Success),
            "m",
        ),
        ("w -> n [condition=\"context.k=v\"] w -> m w -> o", with("", "", &[("k", "v")], Success), "n"),
        ("w -> n [condition=\"context.k=v\"] w -> m w -> o", with("", "", &[("k", "w")], Success), "m"),
        (
            "w -> n [condition=\"context.k!=v && outcome=success\"] w -> m w -> o",
            with("", "", &[], Success),
            "n",
        ),
        ("w -> o [condition=pass, weight=1] w -> m [condition=pass] w -> n", with("", "", &[], Success), "o"),
        ("w -> n [condition=\"preferred_label=x\"] w -> m w -> o", with("x", "", &[], Success), "n"),
        ("w -> n [condition=partial] w -> m w -> o", with("", "", &[], PartialSuccess), "n"),
        ("w -> n [condition=pass] w -> m w -> o", with("", "", &[], PartialSuccess), "n"),
        ("w -> n [condition=fail] w -> m w -> o", with("", "", &[], Fail), "n"),
        ("w -> n [condition=\"outcome!=success\"] w -> m w -> o", with("", "", &[], Fail), "n"),
        ("w -> m [condition=fail] w -> n w -> o", with("", "n", &[], Success), "n"),
    ] {
        let mut play = attractor(&format!("{TOOLS} w {targets} s -> w {edges}"));
        play.ends("w", outcome);
        assert_eq!(play.working(), [target], "{edges}");
    }
}

#[test]
fn diamonds_judge_what_came_before() {
    let body = format!(
        "{TOOLS} w good bad d [shape=diamond] s -> w -> d d -> good [condition=\"outcome=success\"] d -> bad [condition=\"outcome!=success\"] good -> e bad -> e"
    );
    let mut first = attractor(&body);
    assert_eq!(first.fails("w").working(), ["bad"]);
    assert_eq!((first.status("w"), first.status("d")), (NodeStatus::Failed, NodeStatus::Validated));
    first.succeeds("bad").is(Status::Done, "");
    assert_eq!(first.status("good"), NodeStatus::Skipped);
    assert_eq!(attractor(&body).succeeds("w").working(), ["good"]);
}

#[test]
fn tries_are_limited_and_rest_between() {
    let mut play = attractor(&format!("{TOOLS} w [max_retries=2] s -> w -> e"));
    play.fails("w");
    assert_eq!(play.run.wake_at(), Some(play.now.after(play.rules.first_rest)));
    assert_eq!((play.working(), play.status("w")), (vec![], NodeStatus::Active));
    play.wakes().fails("w");
    assert_eq!(play.run.wake_at(), Some(play.now.after(play.rules.first_rest * 2)), "it doubles");
    play.wakes();
    assert_eq!(play.run.nodes["w"].attempts, 3);
    play.fails("w").is(Status::Failed, "`w` failed, and no edge follows its failure: broken");
}

#[test]
fn what_was_reached_counts_where_the_file_says_so() {
    let retry = || Outcome::of(Verdict::Retry);
    let mut partial = attractor(&format!("{TOOLS} w [allow_partial=true, max_retries=1] s -> w -> e"));
    partial.ends("w", retry()).wakes().ends("w", retry()).is(Status::Done, "");
    assert_eq!(partial.run.nodes["w"].outcome, Some(Verdict::PartialSuccess));
    attractor(&format!("{TOOLS} w s -> w -> e"))
        .ends("w", retry())
        .is(Status::Failed, "no attempts are left");
    let silent = |attributes: &str| {
        let mut play = attractor(&format!("{TOOLS} w [{attributes}] s -> w -> e"));
        let ticket = play.ticket("w");
        play.send(&Event::Finished { node: "w".into(), ticket, outcome: None }).run.status
    };
    assert_eq!((silent("auto_status=true"), silent("")), (Status::Done, Status::Failed));
}

#[test]
fn time_outs_stop_a_node() {
    let mut play = attractor(&format!("{TOOLS} w [timeout=\"2m\", max_retries=1] s -> w -> e"));
    assert_eq!(play.run.wake_at(), Some(Timestamp(1_000_000 + 120_000)));
    let ticket = play.ticket("w");
    play.wakes();
    assert_eq!(play.orders, [Order::StopNode { node: "w".into(), ticket }]);
    play.wakes().wakes().is(Status::Failed, "it timed out after 120 s");
    let ask = "q [shape=hexagon, timeout=\"1h\", \"human.default_choice\"=n] n [shape=parallelogram, tool_command=x] s -> q q -> e [label=Yes] q -> n [label=No] n -> e";
    let mut asked = attractor(ask);
    assert_eq!(asked.wakes().working(), ["n"], "the default choice");
}

#[test]
fn people_choose_by_name_label_or_key() {
    let ask = format!(
        "{TOOLS} q [shape=hexagon, label=\"Ship it?\"] fix s -> q q -> e [label=\"[A] Approve\"] q -> fix [label=\"[F] Fix it\"] fix -> q"
    );
    let offered = attractor(&ask);
    let [Order::AskPerson { question, choices, .. }] = &offered.orders[..] else {
        panic!("{:?}", offered.orders)
    };
    assert_eq!((question.as_str(), choices.len(), choices[0].key), ("Ship it?", 2, Some('A')));
    for answer in ["fix", "[F] Fix it", "fix IT", "f"] {
        let mut play = attractor(&ask);
        assert_eq!(play.answers("q", answer).working(), ["fix"], "{answer}");
        assert_eq!(play.run.context["human.gate.label"], "[F] Fix it");
        play.succeeds("fix").answers("q", "a").is(Status::Done, "");
    }
    let play = attractor(&ask);
    let event = Event::Answered { node: "q".into(), ticket: play.ticket("q"), answer: "perhaps".into() };
    let refused = step(&play.run, &event, &play.rules, play.now);
    assert_eq!(refused, Err(Refused::NoChoice { node: "q".into(), answer: "perhaps".into() }));
    // With a single way on a person says yes or no.
    let mut no = attractor(&format!("{TOOLS} w q [shape=hexagon, retry_target=w] s -> w -> q -> e"));
    assert_eq!(no.succeeds("w").answers("q", "fail").working(), ["w"]);
    no.succeeds("w").answers("q", "pass").is(Status::Done, "");
}

#[test]
fn goal_gates_hold_the_exit() {
    let body = format!("{TOOLS} w [goal_gate=true, retry_target=w] s -> w -> e w -> e [condition=fail]");
    let mut play = attractor(&body);
    assert_eq!(play.fails("w").working(), ["w"], "back instead of out");
    play.succeeds("w").is(Status::Done, "");
    let nowhere = body.replace(", retry_target=w", "");
    attractor(&nowhere).fails("w").is(Status::Failed, "the goal gate `w` did not succeed");
    // One that the run never came to holds nothing.
    let mut other =
        attractor(&format!("{TOOLS} w x [goal_gate=true] s -> w w -> e w -> x [condition=fail] x -> e"));
    other.succeeds("w").is(Status::Done, "");
}

#[test]
fn failures_follow_their_route() {
    let mut back = attractor(&format!(
        "{TOOLS} a b [retry_target=nobody2, fallback_retry_target=a] nobody2 s -> a -> b -> e s -> nobody2 nobody2 -> e"
    ));
    assert_eq!(back.succeeds("a").fails("b").working(), ["nobody2"], "the first target wins");
    let mut fallback = attractor(&format!("{TOOLS} a b [fallback_retry_target=a] s -> a -> b -> e"));
    assert_eq!(fallback.succeeds("a").fails("b").working(), ["a"]);
    // A failure ends the run at once, and what else was under way is called back.
    let mut play =
        harness("a [handler=tool command=x] b [handler=tool command=x] s -> a s -> b a -> e b -> e");
    let ticket = play.ticket("b");
    play.fails("a").is(Status::Failed, "`a` failed");
    assert_eq!(play.orders, [Order::StopNode { node: "b".into(), ticket }]);
    assert_eq!(play.status("b"), NodeStatus::Skipped);
}

#[test]
fn a_circle_that_gets_nowhere_ends_with_a_reason() {
    let mut play = attractor(&format!(
        "{TOOLS} w d [shape=diamond] s -> w -> d d -> e [condition=pass] d -> w [condition=fail]"
    ));
    for _ in 0..play.rules.max_visits {
        assert_eq!(play.run.status, Status::Running);
        play.fails("w");
    }
    play.is(Status::Failed, "`w` was entered 20 times without progress; the last time: broken");
    // A circle of nodes that take no time ends as well.
    let instant = attractor(
        "c [shape=diamond] d [shape=diamond] s -> c c -> d [condition=pass] c -> e [condition=fail] d -> c [condition=pass] d -> e [condition=fail]",
    );
    instant.is(Status::Failed, "was entered 20 times");
}

#[test]
fn branches_join_where_they_meet() {
    let mut play = play(ATTRACTOR);
    play.is_done("plan");
    assert_eq!(play.working(), ["api", "pages"]);
    play.is_done("pages");
    assert_eq!(play.working(), ["api"], "the fan-in waits");
    play.is_done("api");
    assert_eq!(play.working(), ["tests"]);
    // The way round the outer loop does not make branches wait for each other.
    play.fails("tests").wakes().fails("tests");
    assert_eq!(play.working(), ["fix"]);
    play.is_done("fix")
        .succeeds("tests")
        .is_done("review")
        .succeeds("child")
        .answers("ask", "approve")
        .is(Status::Done, "");
}

#[test]
fn a_join_waits_for_a_branch_that_repairs_itself() {
    let mut play = harness(
        "node [handler=tool command=x] a fix b j d [shape=diamond handler=conditional] \
         s -> a -> d s -> b -> j d -> j [condition=pass] d -> fix [condition=fail] fix -> a j -> e",
    );
    play.succeeds("b").fails("a");
    assert_eq!(play.working(), ["fix"], "the fix leads back to `a` and from there to the join");
    play.succeeds("fix").succeeds("a");
    assert_eq!(play.working(), ["j"]);
    play.succeeds("j").is(Status::Done, "");
}

#[test]
fn a_branch_may_fail_where_the_others_go_on() {
    let body = |policy: &str| {
        format!(
            "{TOOLS} f [shape=component, error_policy={policy}] a b c j [shape=tripleoctagon] t s -> f f -> a f -> b f -> c a -> j b -> j c -> j j -> t -> e"
        )
    };
    let mut play = attractor(&body("continue"));
    play.fails("a").succeeds("b").fails("c");
    assert_eq!((play.working(), play.run.nodes["j"].outcome), (vec!["t"], Some(Verdict::PartialSuccess)));
    attractor(&body("continue")).fails("a").fails("b").fails("c").is(Status::Failed, "every branch failed");
    attractor(&body("fail_fast")).fails("a").is(Status::Failed, "`a` failed");
}

#[test]
fn a_fan_out_keeps_to_its_limit() {
    let mut play = attractor(&format!(
        "{TOOLS} f [shape=component, max_parallel=2] a b c d j [shape=tripleoctagon] s -> f f -> {{a b c d}} {{a b c d}} -> j -> e"
    ));
    assert_eq!(play.working(), ["a", "b"]);
    assert_eq!(play.succeeds("b").working(), ["a", "c"]);
    play.succeeds("a").succeeds("c").succeeds("d").is(Status::Done, "");
}

#[test]
fn children_threads_and_models_are_ordered() {
    let mut play = play(ATTRACTOR);
    let [Order::FileIssue { thread: Some(thread), model, .. }] = &play.orders[..] else {
        panic!("{:?}", play.orders)
    };
    assert_eq!(
        (thread.id.as_str(), &thread.predecessor, model.name.as_deref()),
        ("talk", &None, Some("sonnet"))
    );
    play.is_done("plan");
    let api = play.orders.iter().find_map(|order| match order {
        Order::FileIssue { node, thread, .. } if node == "api" => Some(thread.clone()),
        _ => None,
    });
    assert_eq!(api.flatten().and_then(|thread| thread.predecessor).as_deref(), Some("plan"));
    play.is_done("api").is_done("pages").succeeds("tests").is_done("review");
    assert!(matches!(&play.orders[..], [Order::StartChild { file, .. }] if file == "docs.dot"));
}

#[test]
fn late_and_foreign_events_change_nothing() {
    let mut play = attractor(&format!("{TOOLS} w s -> w -> e"));
    let finished = |node: &str, ticket| Event::Finished { node: node.into(), ticket, outcome: None };
    for (event, refused) in [
        (finished("w", 99), Refused::Stale("w".into())),
        (finished("nobody", 1), Refused::NoNode("nobody".into())),
        (Event::Landed { node: "w".into() }, Refused::Stale("w".into())),
        (Event::LandingFailed { node: "w".into(), reason: String::new() }, Refused::Stale("w".into())),
    ] {
        assert_eq!(step(&play.run, &event, &play.rules, play.now), Err(refused));
    }
    let before = play.run.clone();
    assert_eq!(play.send(&Event::Woke).run, before, "too early to wake");
    let ticket = play.ticket("w");
    play.send(&Event::SessionStarted { node: "w".into(), ticket, session: "x-1".into() });
    play.send(&Event::Stopped { by: "ann".into() }).is(Status::Stopped, "stopped by ann");
    assert_eq!(play.orders, [Order::StopNode { node: "w".into(), ticket }]);
    assert_eq!(step(&play.run, &Event::Woke, &play.rules, play.now), Err(Refused::Ended));
}

#[test]
fn a_snapshot_of_another_version_is_not_guessed_at() {
    let play = attractor("a [prompt=x] s -> a -> e");
    let stored = serde_json::to_string(&play.run).expect("can be stored").replacen(
        "\"version\":1",
        "\"version\":2",
        1,
    );
    assert!(PipelineRun::from_json(&stored).expect_err("newer").contains("version 2"));
    assert!(PipelineRun::from_json("{}").is_err());
}

#[test]
fn the_context_is_bounded_and_clean() {
    let mut play = attractor(&format!("{TOOLS} w s -> w -> e"));
    let context: BTreeMap<String, String> =
        (0..1_000).map(|n| (format!("key{n}"), "x\u{1b}[31m".repeat(1_000))).collect();
    play.ends("w", Outcome { context, ..Outcome::of(Verdict::Success) });
    assert!(play.run.context.len() <= 256);
    assert!(
        play.run.context.values().all(|value| value.chars().count() <= 1_000 && !value.contains('\u{1b}'))
    );
}

const GATE: &str = "shape=hexagon handler=\"wait.human\" gate=technical";

#[test]
fn work_that_the_queue_has_when_a_run_ends_is_not_called_skipped() {
    let plan = "a [handler=codergen bead_id=1] b [handler=tool command=x] c [handler=tool command=x] s -> a -> c -> e s -> b -> e";
    let mut play = harness(plan);
    play.succeeds("a").fails("b").is(Status::Failed, "`b` failed");
    assert_eq!((play.status("a"), play.status("c")), (NodeStatus::Validated, NodeStatus::Skipped));
    // The queue tells what became of it, and the run stays what it is.
    let mut landed = harness(plan);
    landed.succeeds("a").fails("b").lands("a").is(Status::Failed, "`b` failed");
    assert_eq!((landed.status("a"), landed.orders.len()), (NodeStatus::Merged, 0));
    let again = step(&landed.run, &Event::Landed { node: "a".into() }, &landed.rules, landed.now);
    assert_eq!(again, Err(Refused::Ended));
    play.send(&Event::LandingFailed { node: "a".into(), reason: "red".into() });
    assert_eq!((play.status("a"), play.run.nodes["a"].reason.as_deref()), (NodeStatus::Failed, Some("red")));
}

#[test]
fn a_gate_over_several_tasks_judges_those_again_that_are_not_sent_back() {
    let plan = format!(
        "api [handler=codergen bead_id=1] ui [handler=codergen bead_id=2] g [{GATE}] d [shape=diamond handler=conditional] \
         s -> api s -> ui api -> g ui -> g g -> d d -> e [condition=pass] d -> api [condition=fail]"
    );
    let mut play = harness(&plan);
    play.succeeds("ui").succeeds("api").ends("g", Outcome::failed("no docs"));
    assert_eq!((play.working(), play.status("ui")), (vec!["api"], NodeStatus::ImplComplete));
    play.succeeds("api");
    assert!(matches!(&play.orders[..], [Order::StartGate { judges, .. }] if judges == &["api", "ui"]));
    play.succeeds("g");
    let land = |node: &str| Order::Land { node: node.into() };
    assert_eq!(play.orders, [land("api"), land("ui")]);
    play.lands("api");
    assert_eq!(play.run.status, Status::Running, "one is left to land");
    play.lands("ui").is(Status::Done, "");
    // Work that nothing leads back to failed.
    let mut given_up = harness(&plan.replace("d -> api", "d -> e"));
    given_up.succeeds("ui").succeeds("api").fails("g").is(Status::Done, "");
    assert_eq!((given_up.status("api"), given_up.status("ui")), (NodeStatus::Failed, NodeStatus::Failed));
}

/// A gate that judges only the other task goes on, and what waits for that task still does.
#[test]
fn the_work_that_is_not_sent_back_keeps_its_other_judges_and_ways() {
    let mut play = harness(&format!(
        "api [handler=codergen bead_id=1] ui [handler=codergen bead_id=2] g [{GATE}] h [{GATE}] t [handler=tool command=x] \
         d [shape=diamond handler=conditional] s -> api s -> ui api -> g ui -> g ui -> h h -> e ui -> t t -> e \
         fix [handler=codergen bead_id=3] fix -> g g -> d d -> e [condition=pass] d -> fix [condition=fail]"
    ));
    play.succeeds("api").succeeds("ui").fails("g");
    assert_eq!(play.working(), ["fix", "h"]);
    play.succeeds("h").succeeds("fix");
    assert!(matches!(&play.orders[..], [Order::StartGate { judges, .. }] if judges == &["api", "ui", "fix"]));
    play.succeeds("g").lands("api").lands("fix");
    assert!(play.working().is_empty());
    assert_eq!(play.lands("ui").working(), ["t"]);
    play.succeeds("t").is(Status::Done, "");
}

#[test]
fn the_feedback_is_the_last_failure() {
    let mut play = harness(&format!(
        "a [handler=codergen bead_id=1 max_retries=1] g [{GATE}] d [shape=diamond handler=conditional] \
         s -> a -> g -> d d -> e [condition=pass] d -> a [condition=fail]"
    ));
    play.files("a", 7).succeeds("a").ends("g", Outcome::failed("no docs"));
    let feedback = |play: &Play| match &play.orders[..] {
        [Order::ResumeIssue { feedback, .. }] => feedback.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(feedback(&play).as_deref(), Some("no docs"));
    play.ends("a", Outcome::failed("does not compile")).wakes();
    assert_eq!(feedback(&play).as_deref(), Some("does not compile"));
}

#[test]
fn a_merge_by_a_person_counts_at_any_moment_and_is_not_ordered_again() {
    let plan = "a [prompt=A max_retries=2] s -> a -> e";
    let mut working = attractor(plan);
    let ticket = working.ticket("a");
    working.lands("a").is(Status::Done, "");
    assert_eq!(working.orders, [Order::StopNode { node: "a".into(), ticket }]);
    let mut resting = attractor(plan);
    resting.fails("a").lands("a").is(Status::Done, "");
    assert_eq!((resting.status("a"), resting.orders.len()), (NodeStatus::Merged, 0));
    // A gate that is judging the work goes on.
    let mut judged = harness(&format!("a [handler=codergen bead_id=1] g [{GATE}] s -> a -> g -> e"));
    judged.succeeds("a").lands("a");
    assert_eq!((judged.status("a"), judged.working()), (NodeStatus::Merged, vec!["g"]));
    judged.succeeds("g").is(Status::Done, "");
}

#[test]
fn a_task_that_the_queue_has_is_not_begun_again_before_it_is_decided() {
    let mut play = attractor("a [prompt=A] s -> a -> e");
    play.succeeds("a");
    let task = play.run.nodes.get_mut("a").expect("there");
    let again = Arrival {
        from: "s".into(),
        verdict: Verdict::Fail,
        preferred_label: None,
        thread_id: None,
        lost: false,
    };
    (task.stage, task.arrivals) = (Stage::Idle, vec![again]);
    assert!(play.send(&Event::Woke).working().is_empty());
    assert_eq!(play.lands("a").working(), ["a"]);
}

/// Two branches that wait for each other, and work that waits for a gate behind them: the first one begins.
#[test]
fn work_that_waits_for_a_gate_does_not_hold_up_the_gate() {
    let mut play = harness(&format!(
        "api [handler=codergen bead_id=1] ui [handler=codergen bead_id=2] g [{GATE}] t [handler=tool command=x] \
         d [shape=diamond handler=conditional] s -> api s -> ui api -> g ui -> g ui -> t t -> e \
         g -> d d -> e [condition=pass] d -> api [condition=fail]"
    ));
    assert_eq!(play.working(), ["ui"]);
    assert_eq!(play.succeeds("ui").working(), ["api"]);
}

#[test]
fn an_answer_is_the_label_that_a_person_sees() {
    let plan =
        format!("{TOOLS} q [shape=hexagon] a b s -> q q -> a [label=b] q -> b [label=a] a -> e b -> e");
    assert_eq!(attractor(&plan).answers("q", "a").working(), ["b"]);
    assert_eq!(attractor(&plan).answers("q", "b").working(), ["a"]);
}
