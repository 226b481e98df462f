//! Random graphs, run by the interpreter and by a plain reference that knows only the graph.
//!
//! The reference shares nothing with the interpreter: its own types, no parser, no model, no bit sets. Dominators are
//! found by taking a node away, reachability by asking again each time. Both are driven by the same events in the same
//! random order and must have the same nodes under way after each of them, and the same way behind them at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::super::condition::Verdict;
use super::super::run::{Event, Order, Outcome, PipelineRun, Rules, Stage, Status, begin, step};
use super::pipeline;
use crate::time::Timestamp;

const GRAPHS: u64 = 1_000;
const MAX_VISITS: u32 = 5;

/// A small generator of numbers, the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }

    fn place(&mut self, from: usize, below: usize) -> usize {
        from + usize::try_from(self.roll((below - from) as u64)).expect("small")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Start,
    Exit,
    Task,
    Tool,
    Gate,
    Diamond,
    Fan,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum When {
    Always,
    Pass,
    Fail,
    Partial,
}

#[derive(Clone, Debug)]
struct Arc {
    from: usize,
    to: usize,
    when: When,
    weight: i64,
}

#[derive(Clone, Debug)]
struct Plan {
    harness: bool,
    kinds: Vec<Kind>,
    arcs: Vec<Arc>,
    retry: Vec<Option<usize>>,
}

fn random_plan(dice: &mut Dice) -> Plan {
    let harness = dice.roll(2) == 0;
    let inner = 2 + dice.place(0, 9);
    let exit = inner + 1;
    let mut kinds = vec![Kind::Start];
    for _ in 0..inner {
        kinds.push(match dice.roll(10) {
            0..=2 => Kind::Task,
            3..=5 => Kind::Tool,
            6 if harness => Kind::Gate,
            6 | 7 => Kind::Fan,
            _ => Kind::Diamond,
        });
    }
    kinds.push(Kind::Exit);
    let mut arcs: Vec<Arc> = Vec::new();
    let mut add = |from: usize, to: usize, when: When, weight: i64| {
        if !arcs.iter().any(|arc: &Arc| {
            arc.from == from && arc.to == to && (arc.when == when || arc.when == When::Always)
        }) {
            arcs.push(Arc { from, to, when, weight });
        }
    };
    for (node, kind) in kinds.iter().copied().enumerate().take(exit) {
        let on = |dice: &mut Dice| dice.place(node + 1, exit + 1);
        if kind == Kind::Diamond {
            add(node, on(dice), When::Pass, 0);
            // A failure goes back to any earlier node but the start, or on.
            let to = if dice.roll(2) == 0 { dice.place(1, node + 1) } else { on(dice) };
            add(node, to, When::Fail, 0);
            if dice.roll(4) == 0 {
                add(node, on(dice), When::Partial, 0);
            }
            continue;
        }
        for _ in 0..1 + dice.roll(if kind == Kind::Fan { 4 } else { 2 }) {
            add(node, on(dice), When::Always, i64::try_from(dice.roll(3)).expect("small"));
        }
        if matches!(kind, Kind::Task | Kind::Tool) && dice.roll(3) == 0 {
            let to = if dice.roll(2) == 0 { dice.place(1, node + 1) } else { on(dice) };
            add(node, to, When::Fail, 0);
        }
    }
    // Whatever nothing leads to follows an earlier node that is no diamond.
    for node in 1..=exit {
        if !arcs.iter().any(|arc| arc.to == node && arc.from < node) {
            let free: Vec<usize> = (0..node).filter(|from| kinds[*from] != Kind::Diamond).collect();
            let from = free[dice.place(0, free.len())];
            arcs.push(Arc { from, to: node, when: When::Always, weight: 0 });
        }
    }
    let retry = (0..=exit)
        .map(|node| {
            let can = matches!(kinds[node], Kind::Task | Kind::Tool | Kind::Gate);
            (can && dice.roll(3) == 0).then(|| dice.place(1, node + 1))
        })
        .collect();
    Plan { harness, kinds, arcs, retry }
}

fn name(node: usize) -> String {
    format!("n{node:02}")
}

fn file(plan: &Plan) -> String {
    let mut text = "digraph {\n".to_owned();
    for (node, kind) in plan.kinds.iter().enumerate() {
        let (shape, word, more) = match kind {
            Kind::Start => ("Mdiamond", "start", ""),
            Kind::Exit => ("Msquare", "exit", ""),
            Kind::Task => ("box", "codergen", "prompt=x "),
            Kind::Tool => ("box", "tool", "command=x "),
            Kind::Gate => ("hexagon", "wait.human", "gate=e2e "),
            Kind::Diamond => ("diamond", "conditional", ""),
            Kind::Fan => (
                if plan.harness { "parallelogram" } else { "component" },
                "parallel",
                "error_policy=fail_fast max_parallel=99 ",
            ),
        };
        let key = if plan.harness { "handler" } else { "type" };
        let retry = plan.retry[node].map(|to| format!("retry_target={} ", name(to))).unwrap_or_default();
        writeln!(text, "  {} [shape={shape} {key}=\"{word}\" {more}{retry}]", name(node)).expect("text");
    }
    for arc in &plan.arcs {
        let when = match arc.when {
            When::Always => String::new(),
            When::Pass => "condition=pass".to_owned(),
            When::Fail => "condition=fail".to_owned(),
            When::Partial => "condition=partial".to_owned(),
        };
        writeln!(text, "  {} -> {} [weight={} {when}]", name(arc.from), name(arc.to), arc.weight)
            .expect("text");
    }
    text + "}\n"
}

/// How the world answers: by node and visit, so that both sides get the same.
fn verdict(seed: u64, node: usize, visit: u32) -> Verdict {
    let mut dice = Dice(seed.wrapping_mul(31).wrapping_add(node as u64 * 1_009 + u64::from(visit) * 97) | 1);
    dice.roll(7);
    match dice.roll(10) {
        0 | 1 => Verdict::Fail,
        2 => Verdict::PartialSuccess,
        _ => Verdict::Success,
    }
}

/// The reference: nodes that are busy, ways that arrived, hops that were made.
struct Reference<'a> {
    plan: &'a Plan,
    seed: u64,
    arrived: BTreeMap<usize, Vec<Verdict>>,
    working: BTreeSet<usize>,
    landing: BTreeMap<usize, Vec<usize>>,
    visits: BTreeMap<usize, u32>,
    hops: Vec<(usize, usize, u32)>,
    over: Option<bool>,
    /// For each node those that every way from the start to it passes.
    passed: Vec<BTreeSet<usize>>,
}

impl<'a> Reference<'a> {
    fn begin(plan: &'a Plan, seed: u64) -> Self {
        let mut reference = Self {
            plan,
            seed,
            arrived: BTreeMap::from([(0, vec![Verdict::Success])]),
            working: BTreeSet::new(),
            landing: BTreeMap::new(),
            visits: BTreeMap::new(),
            hops: Vec::new(),
            over: None,
            passed: Vec::new(),
        };
        let nodes = 0..plan.kinds.len();
        reference.passed = nodes
            .clone()
            .map(|node| nodes.clone().filter(|over| reference.always_passes(*over, node)).collect())
            .collect();
        reference.go_on();
        reference
    }

    fn next_of(&self, node: usize) -> Vec<usize> {
        let arcs = self.plan.arcs.iter().filter(|arc| arc.from == node).map(|arc| arc.to);
        arcs.chain(self.plan.retry[node]).collect()
    }

    fn reaches(&self, from: Vec<usize>, to: usize, without: &dyn Fn(usize) -> bool) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), from);
        while let Some(node) = open.pop() {
            if node == to {
                return true;
            }
            if !without(node) && seen.insert(node) {
                open.extend(self.next_of(node));
            }
        }
        false
    }

    /// Every way from the start to `node` passes `over`.
    fn always_passes(&self, over: usize, node: usize) -> bool {
        over == node || over == 0 || !self.reaches(vec![0], node, &|n| n == over)
    }

    fn may_come(&self, from: usize, to: usize, first: Vec<usize>) -> bool {
        let shared = |n: usize| self.passed[from].contains(&n) && self.passed[to].contains(&n);
        !self.passed[from].contains(&to) && self.reaches(first, to, &shared)
    }

    fn can_begin(&self, node: usize) -> bool {
        let waits = self.arrived.keys().chain(&self.working).copied().filter(|other| *other != node);
        let mut others = waits.map(|other| (other, self.next_of(other))).collect::<Vec<_>>();
        others.extend(self.landing.iter().map(|(other, owed)| (*other, owed.clone())));
        others
            .into_iter()
            .filter(|(other, _)| *other != node)
            .all(|(other, first)| !self.may_come(other, node, first))
    }

    fn go_on(&mut self) {
        while self.over.is_none() {
            let idle = |node: &usize| !self.working.contains(node) && !self.landing.contains_key(node);
            let waiting: Vec<usize> = self.arrived.keys().copied().filter(|node| idle(node)).collect();
            let ready = waiting.iter().copied().find(|node| self.can_begin(*node));
            let stalled = self.working.is_empty() && self.landing.is_empty();
            match (ready, stalled) {
                (Some(node), _) => self.enter(node),
                (None, false) => return,
                (None, true) => match waiting.first().copied() {
                    Some(node) => self.enter(node),
                    None => self.over = Some(false),
                },
            }
        }
    }

    fn enter(&mut self, node: usize) {
        let arrived = self.arrived.remove(&node).unwrap_or_default();
        let visits = self.visits.entry(node).or_default();
        *visits += 1;
        if *visits > MAX_VISITS {
            self.over = Some(false);
            return;
        }
        match self.plan.kinds[node] {
            Kind::Exit => self.over = Some(true),
            Kind::Task | Kind::Tool | Kind::Gate => {
                self.working.insert(node);
            }
            Kind::Start | Kind::Fan => self.leave(node, Verdict::Success),
            Kind::Diamond => {
                let worst = |v: &Verdict| {
                    [Verdict::Success, Verdict::PartialSuccess, Verdict::Fail].iter().position(|x| x == v)
                };
                let verdict = arrived.into_iter().max_by_key(worst).unwrap_or(Verdict::Success);
                self.leave(node, verdict);
            }
        }
    }

    /// What the world reports about a busy node: its end, or that it landed.
    fn hear(&mut self, node: usize) {
        if let Some(owed) = self.landing.remove(&node) {
            let verdict = verdict(self.seed, node, self.visits[&node]);
            owed.into_iter().for_each(|to| self.hop(node, to, verdict));
        } else {
            self.working.remove(&node);
            self.leave(node, verdict(self.seed, node, self.visits[&node]));
        }
        self.go_on();
    }

    fn hop(&mut self, from: usize, to: usize, verdict: Verdict) {
        self.hops.push((from, to, self.visits[&from]));
        self.arrived.entry(to).or_default().push(verdict);
    }

    fn leave(&mut self, node: usize, verdict: Verdict) {
        let targets = match verdict {
            Verdict::Fail | Verdict::Retry => match self.after_failure(node) {
                Some(targets) => targets,
                None => {
                    self.over = Some(false);
                    return;
                }
            },
            Verdict::Success => self.after_success(node, When::Pass),
            Verdict::PartialSuccess => {
                let thought_of =
                    self.plan.arcs.iter().any(|arc| arc.from == node && arc.when == When::Partial);
                self.after_success(node, if thought_of { When::Partial } else { When::Pass })
            }
        };
        if targets.is_empty() {
            self.over = Some(false);
            return;
        }
        let targets: BTreeSet<usize> = targets.into_iter().collect();
        if self.plan.kinds[node] == Kind::Task && verdict != Verdict::Fail {
            self.landing.insert(node, targets.into_iter().collect());
        } else {
            targets.into_iter().for_each(|to| self.hop(node, to, verdict));
        }
    }

    fn arcs(&self, node: usize, when: When) -> Vec<&Arc> {
        self.plan.arcs.iter().filter(|arc| arc.from == node && arc.when == when).collect()
    }

    fn after_success(&self, node: usize, when: When) -> Vec<usize> {
        let (held, free) = (self.arcs(node, when), self.arcs(node, When::Always));
        let all = match self.plan.kinds[node] {
            Kind::Fan => true,
            Kind::Diamond => false,
            _ => self.plan.harness,
        };
        if all {
            return held.iter().chain(&free).map(|arc| arc.to).collect();
        }
        let of = if held.is_empty() { free } else { held };
        let heaviest = of.iter().map(|arc| arc.weight).max();
        of.iter().filter(|arc| Some(arc.weight) == heaviest).map(|arc| arc.to).min().into_iter().collect()
    }

    fn after_failure(&self, node: usize) -> Option<Vec<usize>> {
        let held = self.arcs(node, When::Fail);
        if !held.is_empty() {
            return Some(held.iter().map(|arc| arc.to).collect());
        }
        let mut at = node;
        let mut seen = BTreeSet::from([node]);
        loop {
            let free = self.arcs(at, When::Always);
            if let Some(arc) = free.iter().find(|arc| self.plan.kinds[arc.to] == Kind::Diamond) {
                return Some(vec![arc.to]);
            }
            match free.iter().find(|arc| self.plan.kinds[arc.to] == Kind::Gate) {
                Some(arc) if seen.insert(arc.to) => at = arc.to,
                Some(_) | None => return self.plan.retry[node].map(|to| vec![to]),
            }
        }
    }
}

/// The nodes that wait for the world, and those that wait for the queue.
fn under_way(run: &PipelineRun) -> (BTreeSet<String>, BTreeSet<String>) {
    let stage = |wanted: fn(&Stage) -> bool| {
        run.nodes.iter().filter(|(_, node)| wanted(&node.stage)).map(|(id, _)| id.clone()).collect()
    };
    (
        stage(|stage| matches!(stage, Stage::Working { .. })),
        stage(|stage| matches!(stage, Stage::Owing { .. })),
    )
}

#[test]
fn a_thousand_random_graphs_take_the_same_way() {
    let rules = Rules { max_visits: MAX_VISITS, ..Rules::default() };
    let now = Timestamp(0);
    let (mut done, mut failed, mut events, mut joined) = (0, 0, 0, 0);
    for seed in 1..=GRAPHS {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let plan = random_plan(&mut dice);
        let text = file(&plan);
        let mut reference = Reference::begin(&plan, seed);
        let mut run = begin(pipeline(&text), &rules, now).run;
        loop {
            let names =
                |nodes: &mut dyn Iterator<Item = usize>| nodes.map(name).collect::<BTreeSet<String>>();
            let expected = (
                names(&mut reference.working.iter().copied()),
                names(&mut reference.landing.keys().copied()),
            );
            if reference.over.is_none() {
                assert_eq!(under_way(&run), expected, "seed {seed}\n{text}");
            }
            assert_eq!(
                run.status == Status::Running,
                reference.over.is_none(),
                "seed {seed}: {:?}\n{text}",
                run.reason
            );
            let busy: Vec<usize> =
                reference.working.iter().chain(reference.landing.keys()).copied().collect();
            if reference.over.is_some() || busy.is_empty() {
                break;
            }
            let node = busy[dice.place(0, busy.len())];
            let event = match run.nodes[&name(node)].stage {
                Stage::Working { ticket } => {
                    let verdict = verdict(seed, node, reference.visits[&node]);
                    Event::Finished { node: name(node), ticket, outcome: Some(Outcome::of(verdict)) }
                }
                _ => Event::Landed { node: name(node) },
            };
            let next = step(&run, &event, &rules, now).expect("it waits for this");
            assert!(next.orders.iter().all(|order| !matches!(order, Order::AskPerson { .. })));
            run = next.run;
            reference.hear(node);
            events += 1;
        }
        let mut ours: Vec<(String, String, u32)> =
            run.hops.iter().map(|hop| (hop.from.clone(), hop.to.clone(), hop.visit)).collect();
        let mut theirs: Vec<(String, String, u32)> =
            reference.hops.iter().map(|(from, to, visit)| (name(*from), name(*to), *visit)).collect();
        joined += usize::from(
            theirs.iter().any(|hop| theirs.iter().any(|other| other.1 == hop.1 && other.0 != hop.0)),
        );
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "seed {seed}\n{text}");
        match run.status {
            Status::Done => done += 1,
            Status::Failed => failed += 1,
            Status::Running | Status::Stopped => panic!("seed {seed} hangs\n{text}"),
        }
        assert_eq!(run.status == Status::Done, reference.over == Some(true), "seed {seed}");
    }
    // The graphs are worth their time: some end well, some do not, many join.
    assert!(
        done > 200 && failed > 100 && joined > 300 && events > 3_000,
        "{done} {failed} {joined} {events}"
    );
}
