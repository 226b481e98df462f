//! The next step with a chain of candidates.
//!
//! A plan is computed anew from what is known; it remembers nothing. It counts on four things of whoever carries it out:
//!
//! 1. **Landing, ejecting, setting aside and bringing back change the chain.** Do the one that is asked for (a plan asks
//!    for at most one of them, and then for no tests), rebuild the candidates and plan again.
//! 2. **When main moves away from a tree that was [green](Standing::Green), suspects beside the chain stay there**, each
//!    with the candidate that raised the suspicion: its base is proven, so it can still be judged. When main moves away
//!    from any other tree, they all go back into the merge queue: on that base nobody could be blamed.
//! 3. **What runs is told by its tree, not by its subject**: a place in the chain and a place beside it can mean the same
//!    candidate a moment later.
//! 4. **A batch under test keeps its length.** An entry that arrives, or a new [`batch_size`](super::batch_size), waits
//!    until the run has ended; otherwise a stream of arrivals would start the test over and over.

use std::ops::Range;

use super::{EntryId, GateVerdict, Runs};

/// The way in which the merge queue tests its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Sequential,
    /// So many are tested together; a red batch is bisected.
    Batch {
        size: usize,
    },
    /// So many candidates are tested at once, each on top of those ahead of it.
    Speculative {
        depth: usize,
    },
}

/// The rules of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How the merge queue is worked through.
    pub strategy: Strategy,
    /// How many gates may run at the same time.
    pub runners: usize,
}

/// One candidate of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateRuns {
    /// The branch that it adds to the one before it.
    pub entry: EntryId,
    /// What is known of its tree.
    pub runs: Runs,
}

/// All that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueFacts {
    /// What is known of the main branch's own tree.
    pub main: Runs,
    /// The candidates in order: `members[k]` holds the branches of `members[0]..=members[k]`.
    pub members: Vec<CandidateRuns>,
    /// Suspects that were taken out of the chain, each with the candidate under suspicion.
    pub aside: Vec<CandidateRuns>,
}

/// Something that can be tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// The main branch as it is.
    Main,
    /// The candidate at this place of the chain.
    Member(usize),
    /// The candidate of a suspect beside the chain.
    Aside(EntryId),
}

/// The reasons why a branch leaves the queue without landing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its tests fail on a base where they pass.
    Red,
    /// Its tests cannot be run; or they fail, and those of its base cannot be run.
    Infra,
}

/// The next step. At most one of `land`, `eject`, `set_aside` and `bring_back` is asked for; then plan again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Land this candidate, and with it all before it.
    pub land: Option<usize>,
    pub eject: Vec<(EntryId, Fault)>,
    /// These are tested once more beside the chain, which goes on without them; or, red on a red main, held there until
    /// main moves.
    pub set_aside: Vec<EntryId>,
    /// These were no culprits: they go back to their place in the merge queue.
    pub bring_back: Vec<EntryId>,
    /// What should be under test, most urgent first and not more than there are runners. What runs and is not listed
    /// is of no use any more.
    pub test: Vec<Subject>,
    /// The main branch itself is red: nobody is ejected for it.
    pub main_is_red: bool,
}

impl Strategy {
    /// The number of candidates that are worth building.
    pub fn window(self) -> usize {
        match self {
            Self::Sequential => 1,
            Self::Batch { size } => size.max(1),
            Self::Speculative { depth } => depth.max(1),
        }
    }
}

/// Decides. A plan for a chain with anything in it is empty only if all that is left is held because main is red.
pub fn plan(policy: &Policy, chain: &QueueFacts) -> Plan {
    let main = chain.main.standing();
    let mut plan = Plan { main_is_red: main == GateVerdict::Red, ..Plan::default() };

    // Green is exactly what was tested, and proves all before it innocent, whatever their own runs said.
    plan.land = chain.members.iter().rposition(|member| member.runs.standing() == GateVerdict::Green);
    if plan.land.is_some() {
        return plan;
    }
    let front = chain.members.first().map(|member| (member.entry, ruling(member.runs.standing(), main)));
    let aside: Vec<_> =
        chain.aside.iter().map(|member| (member.entry, ruling(member.runs.standing(), main))).collect();

    plan.eject =
        aside.iter().chain(&front).filter_map(|(entry, ruling)| Some((*entry, ruling.fault()?))).collect();
    if !plan.eject.is_empty() {
        return plan;
    }
    plan.set_aside =
        front.iter().filter(|(_, r)| is_in_the_way(*r, policy, chain)).map(|(entry, _)| *entry).collect();
    if !plan.set_aside.is_empty() {
        return plan;
    }
    plan.bring_back = those(&aside, Ruling::Innocent).collect();
    if !plan.bring_back.is_empty() {
        return plan;
    }
    plan.test = tests(policy, chain, front.map(|(_, ruling)| ruling), &aside);
    plan
}

/// What follows for one branch from the runs of a candidate that adds nothing else to its base.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ruling {
    Open,
    /// Red once: a second run decides.
    Confirm,
    Innocent,
    /// Red; whether it is to blame depends on main, which is not known.
    AskMain,
    /// Red, and so is main.
    Hold,
    Out(Fault),
}

impl Ruling {
    fn fault(self) -> Option<Fault> {
        match self {
            Self::Out(fault) => Some(fault),
            Self::Open | Self::Confirm | Self::Innocent | Self::AskMain | Self::Hold => None,
        }
    }
}

/// Nobody is called red unless main was shown to be green.
fn ruling(standing: GateVerdict, main: GateVerdict) -> Ruling {
    match (standing, main) {
        (GateVerdict::Unknown, _) => Ruling::Open,
        (GateVerdict::Suspect, _) => Ruling::Confirm,
        (GateVerdict::Green, _) => Ruling::Innocent,
        (GateVerdict::Red, GateVerdict::Green) => Ruling::Out(Fault::Red),
        (GateVerdict::Red, GateVerdict::Red) => Ruling::Hold,
        (GateVerdict::Red, GateVerdict::Unknown | GateVerdict::Suspect) => Ruling::AskMain,
        // Main cannot be shown to be green: the branch must not wait for that for ever, and is not to blame either.
        (GateVerdict::Red, GateVerdict::Undecided) | (GateVerdict::Undecided, _) => Ruling::Out(Fault::Infra),
    }
}

/// Whether the first entry must leave the chain for the others to go on.
fn is_in_the_way(front: Ruling, policy: &Policy, chain: &QueueFacts) -> bool {
    match front {
        Ruling::Hold => true,
        // Confirmed where it stands if nothing could go on meanwhile: a flake then costs no rebuilding.
        Ruling::Confirm => match policy.strategy {
            Strategy::Sequential => false,
            Strategy::Batch { .. } | Strategy::Speculative { .. } => {
                policy.runners > 1 && chain.members.len() > 1
            }
        },
        Ruling::Open | Ruling::Innocent | Ruling::AskMain | Ruling::Out(_) => false,
    }
}

fn those(aside: &[(EntryId, Ruling)], wanted: Ruling) -> impl Iterator<Item = EntryId> {
    aside.iter().filter(move |(_, ruling)| *ruling == wanted).map(|(entry, _)| *entry)
}

/// What to test, most urgent first.
fn tests(
    policy: &Policy,
    chain: &QueueFacts,
    front: Option<Ruling>,
    aside: &[(EntryId, Ruling)],
) -> Vec<Subject> {
    let runners = policy.runners.max(1);
    let main = chain.main.standing();
    let mut tests: Vec<_> =
        those(aside, Ruling::Confirm).chain(those(aside, Ruling::Open)).map(Subject::Aside).collect();

    let members =
        if front == Some(Ruling::AskMain) { 0..0 } else { members_to_test(policy.strategy, chain, main) };
    if matches!(main, GateVerdict::Unknown | GateVerdict::Suspect) {
        let demanded = front == Some(Ruling::AskMain) || those(aside, Ruling::AskMain).next().is_some();
        // Sooner or later somebody will be blamed. A runner that can be spared finds out about main before that, so that
        // nobody waits for it then; the chain keeps at least one.
        let spared = tests.len() + usize::from(!members.is_empty()) < runners;
        if demanded || (spared && blame_is_near(policy.strategy, chain)) {
            tests.push(Subject::Main);
        }
    }
    tests.extend(members.map(Subject::Member));
    tests.truncate(runners);
    tests
}

fn blame_is_near(strategy: Strategy, chain: &QueueFacts) -> bool {
    let doubt = !chain.aside.is_empty() || first_doubtful(&chain.members).is_some();
    match strategy {
        Strategy::Sequential | Strategy::Batch { .. } => doubt,
        // The first wave may already point at its first entry, and all behind it wait.
        Strategy::Speculative { .. } => doubt || chain.members.len() > 1,
    }
}

/// The first entry that was tested, and not green.
fn first_doubtful(members: &[CandidateRuns]) -> Option<usize> {
    members.iter().position(|member| match member.runs.standing() {
        GateVerdict::Suspect | GateVerdict::Red | GateVerdict::Undecided => true,
        GateVerdict::Unknown | GateVerdict::Green => false,
    })
}

/// Which entries to test, in a chain without a green one.
fn members_to_test(strategy: Strategy, chain: &QueueFacts, main: GateVerdict) -> Range<usize> {
    let length = chain.members.len().min(strategy.window());
    if length == 0 {
        return 0..0;
    }
    match (strategy, first_doubtful(&chain.members[..length])) {
        (Strategy::Sequential, _) | (_, Some(0)) => 0..1,
        (Strategy::Batch { .. }, None) => length - 1..length,
        // On a red main all candidates up to a repair are red: halving says nothing, so each gets its own chance.
        (Strategy::Batch { .. }, Some(_)) if main == GateVerdict::Red => 0..1,
        // The culprit is one of 0..=bad. Red once is enough to steer by; a flake is found out at the end of the search.
        (Strategy::Batch { .. }, Some(bad)) => bad / 2..bad / 2 + 1,
        (Strategy::Speculative { .. }, None) => 0..length,
        // What stands behind a doubtful entry will most likely be rebuilt without it.
        (Strategy::Speculative { .. }, Some(bad)) => 0..bad,
    }
}
