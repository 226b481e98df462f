//! The way of the roles that ask a model: a look, the question, the answer, and the deeds that rules allow of it.

use serde::{Deserialize, Serialize};

use super::{Event, Heard, Look, Orders};
use crate::config::Config;
use crate::deed::{Act, Deeds, Ending};
use crate::forge::Issue;
use crate::ids::{Number, ProjectName, RoleKey};
use crate::log;
use crate::run::RunId;
use crate::task::Notice;
use crate::time::Timestamp;
use crate::value::{Done, Outcome};
use crate::words;
use crate::workflow::Refused;

/// The obstacle that kept a role from asking, and when it last did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obstacle {
    pub why: String,
    pub at: Timestamp,
}

/// The end of a plan that was carried out, as it is told.
#[derive(Default)]
pub(crate) struct Closing {
    /// What was not done, and why.
    pub(crate) left: Vec<String>,
    /// Whether anything came of it.
    pub(crate) useful: bool,
    /// Further entries of the log, and the issues they are about.
    pub(crate) events: Vec<(Number, log::Entry)>,
    pub(crate) notice: Option<Notice>,
}

/// The memory of a role that asks a model.
pub(crate) trait Planning {
    /// What the log says of a look.
    fn said_looked(lines: Vec<String>) -> log::Entry;

    /// What the log says when something came of an answer.
    fn said_settled(run: RunId, lines: Vec<String>) -> log::Entry;

    /// The run that was asked.
    fn asked(&self) -> Option<RunId>;

    fn hindered(&mut self) -> &mut Option<Obstacle>;

    /// Takes in what was seen, and remembers what `run` is asked about. False if the look is another role's.
    fn look(&mut self, look: &Look, run: Option<RunId>, config: &Config, now: Timestamp) -> bool;

    /// Reads an answer, and plans what is done of it; a sentence if it is of no use.
    fn decide(
        &mut self,
        result: Option<&serde_json::Value>,
        issues: &[Issue],
        formulas: &[String],
        config: &Config,
        now: Timestamp,
    ) -> Result<(), String>;

    fn is_planned(&self) -> bool;

    /// The first act of a deed of the plan.
    fn act(&self, place: usize, run: RunId, project: &ProjectName) -> Option<Act>;

    /// The acts that follow once its issue is filed.
    fn follow_ups(&self, place: usize, run: RunId, filed: Number) -> Vec<Act>;

    /// A deed of the plan in words.
    fn line(&self, place: usize, filed: Option<Number>) -> String;

    fn deeds(&mut self) -> &mut Deeds;

    /// What became of the deeds of the plan, in their order.
    fn done(&mut self) -> &mut Vec<Done>;

    /// All of the plan is done: what is remembered and told of it.
    fn close(&mut self, run: RunId, key: &RoleKey) -> Closing;

    /// The answer was of no use.
    fn give_up(&mut self);

    /// Nobody has answered, which is nobody's fault: it is asked again.
    fn put_back(&mut self);
}

/// Steps such a memory; answers what a result that is settled by it counts as.
pub(super) fn step<M: Planning>(
    memory: &mut M,
    event: &Event,
    orders: &mut Orders<'_>,
) -> Result<Option<Outcome>, Refused> {
    match event {
        Event::Looked { look, run, lines } => {
            if memory.asked().is_some() {
                return Err(Refused::Stale(words::reason::ANSWER_AWAITED.to_owned()));
            }
            if !memory.look(look, *run, orders.config, orders.now) {
                return Err(Refused::NotNow(words::reason::OTHER_ROLE.to_owned()));
            }
            *memory.hindered() = None;
            if !lines.is_empty() {
                orders.log(M::said_looked(lines.clone()));
            }
            Ok(None)
        }
        Event::Hindered { found, why } => {
            let now = orders.now;
            let before = memory.hindered().replace(Obstacle { why: why.clone(), at: now });
            // Said once.
            if before.is_none_or(|before| before.why != *why) {
                orders.log(M::said_looked(vec![words::daemon::factory::asks_later(found, why)]));
            }
            Ok(None)
        }
        Event::Heard { run, heard } => heard_of(memory, *run, heard, orders),
        Event::DeedEnded { name, ending } => deed_ended(memory, name, ending, orders),
        Event::Measured { .. }
        | Event::Inspected { .. }
        | Event::Spoken { .. }
        | Event::ActionRefused { .. }
        | Event::Counted { .. }
        | Event::Resumed
        | Event::TimePassed
        | Event::EffectGaveUp { .. } => Err(Refused::NotNow(words::reason::OTHER_ROLE.to_owned())),
    }
}

fn heard_of<M: Planning>(
    memory: &mut M,
    run: RunId,
    heard: &Heard,
    orders: &mut Orders<'_>,
) -> Result<Option<Outcome>, Refused> {
    if memory.asked() != Some(run) || memory.deeds().are_under_way() {
        return Err(Refused::Stale(words::reason::ANSWER_KNOWN.to_owned()));
    }
    let useless = match heard {
        // An earlier program planned it, and did some of it.
        _ if memory.is_planned() => None,
        Heard::Answer { result, issues, formulas } => memory
            .decide(result.as_ref(), issues, formulas, orders.config, orders.now)
            .err()
            .map(|why| (why, false)),
        Heard::Nothing { why, unheard } => Some((why.clone(), *unheard)),
    };
    match useless {
        None => {
            let first = memory.done().len();
            for place in first.. {
                let Some(act) = memory.act(place, run, orders.project()) else { break };
                order(memory, place.to_string(), act, orders);
            }
            Ok(close(memory, run, orders))
        }
        Some((why, true)) => {
            memory.put_back();
            orders.log(M::said_settled(run, vec![words::daemon::factory::not_heard(run, &why)]));
            Ok(None)
        }
        Some((why, false)) => {
            memory.give_up();
            orders.log(M::said_settled(run, vec![words::daemon::factory::of_no_use(run, &why)]));
            Ok(Some(Outcome::Noise))
        }
    }
}

fn order<M: Planning>(memory: &mut M, name: String, act: Act, orders: &mut Orders<'_>) {
    if memory.deeds().order(&name) {
        orders.deed(name, act);
    }
}

/// The place of a deed in its plan, and which of its acts it is: the first is 0, those that follow are counted from 1.
fn parse(name: &str) -> Option<(usize, usize)> {
    match name.split_once('.') {
        None => Some((name.parse().ok()?, 0)),
        Some((place, part)) => Some((place.parse().ok()?, part.parse().ok()?)),
    }
}

fn deed_ended<M: Planning>(
    memory: &mut M,
    name: &str,
    ending: &Ending,
    orders: &mut Orders<'_>,
) -> Result<Option<Outcome>, Refused> {
    let stale = || Refused::Stale(words::reason::deed_is_over(name));
    let run = memory.asked().ok_or_else(stale)?;
    let (place, part) = parse(name).ok_or_else(stale)?;
    memory.deeds().end(name, ending)?;
    let act = match part {
        0 => memory.act(place, run, orders.project()),
        _ => {
            let filed = memory.done().get(place).and_then(|done| done.filed);
            filed.and_then(|filed| memory.follow_ups(place, run, filed).into_iter().nth(part - 1))
        }
    };
    let filed = match ending {
        Ending::Done { filed } => *filed,
        Ending::Gone | Ending::Refused { .. } => None,
    };
    let line = memory.line(place, filed);
    let (line, failed) = match ending {
        Ending::Done { .. } => (line, false),
        Ending::Gone => (words::daemon::factory::deed_gone(&line), true),
        Ending::Refused { error } => {
            orders.tell_refused(&line, error);
            (words::daemon::factory::deed_refused(&line, error), true)
        }
    };
    let closed = act.as_ref().and_then(Act::closes).filter(|_| !failed);
    if part == 0 {
        memory.done().push(Done { line, filed, closed: closed.into_iter().collect(), failed });
        let follow_ups = filed.map(|filed| memory.follow_ups(place, run, filed)).unwrap_or_default();
        for (n, act) in follow_ups.into_iter().enumerate() {
            order(memory, format!("{place}.{}", n + 1), act, orders);
        }
    } else if let Some(done) = memory.done().get_mut(place) {
        done.closed.extend(closed);
        if failed {
            done.line = line;
        }
    }
    Ok(close(memory, run, orders))
}

/// Closes the plan if nothing of it is left.
fn close<M: Planning>(memory: &mut M, run: RunId, orders: &mut Orders<'_>) -> Option<Outcome> {
    if memory.deeds().are_under_way() {
        return None;
    }
    let mut lines: Vec<String> = memory.done().iter().map(|done| done.line.clone()).collect();
    let closing = memory.close(run, orders.key);
    memory.deeds().clear();
    lines.extend(closing.left);
    orders.log(M::said_settled(run, lines));
    for (issue, entry) in closing.events {
        orders.log_about(issue, entry);
    }
    if let Some(notice) = closing.notice {
        orders.notify(notice);
    }
    Some(if closing.useful { Outcome::Used } else { Outcome::Noise })
}
