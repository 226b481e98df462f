//! `session explain`: the evidence is looked for here, what it amounts to is the core's to say.

use pointsman_core::session::liveness::{Rules, colour};
use pointsman_core::session::work::{TestsStatus, WorkState};
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::{MessageRow, MessageStatus, SessionRow};
use pointsman_view::session::Explained;

use super::context::Context;
use super::failure::Failure;
use super::hook_status::HookStatus;
use super::{style, time};
use crate::identity;
use crate::process_probe::{ProcessProbe, terminal};
use crate::project::Project;

/// The newest messages tell whether it still listens.
const MESSAGES: usize = 3;

pub(crate) fn run(context: &Context, project: &Project, row: &SessionRow) -> Result<(), Failure> {
    let (now, rules, witness) = (time::now(), Rules::of(&project.config.timing), ProcessProbe::new());
    let health = witness.health(row, &rules, now);
    let (mut messages, mut work, mut hooks) = (Vec::new(), None, None);
    if let Some(store) = context.store()? {
        if let Some(owner) = WorkflowId::parse_identity(&row.identity) {
            messages = store.messages(&owner)?;
        }
        work = store.work_state(&row.identity)?;
        hooks = HookStatus::of(&store, project, row, now)?;
    }
    messages.retain(|message| message.generation == row.generation);

    let mut evidence: Vec<String> = ended(row, now).into_iter().collect();
    evidence.extend(words::session::evidence(
        &witness.evidence(row, terminal(&context.paths, row)),
        &rules,
        now,
    ));
    evidence.extend(hooks.map(|hooks| hooks.words().to_owned()));
    evidence.push(listening(row, &messages));
    evidence.extend(messages.iter().rev().take(MESSAGES).map(|message| message_line(message, now)));
    evidence.extend(work.iter().map(|work| doing(work, now)));
    let paths = context.paths.project(&project.config.name);
    evidence.extend(Context::enclosure()?.refused_session(&row.session, &paths));

    let colour = colour(health);
    if context.out.is_json() {
        return context.out.value(&Explained {
            session: row.session.clone(),
            liveness: colour,
            verdict: health.word().to_owned(),
            status: identity::status(row),
            hooks: hooks.map(HookStatus::view),
            evidence,
            work_state: work.as_ref().map(Into::into),
        });
    }
    let (strong, shown) = (style::STRONG, style::of_session(colour));
    context.out.line(format!("{strong}{}{strong:#}", row.session))?;
    context.out.line(format!("{shown}{} {}{shown:#}", colour.mark(), health.word()))?;
    evidence.iter().try_for_each(|line| context.out.line(format!("  - {line}")))
}

fn ended(row: &SessionRow, now: Timestamp) -> Option<String> {
    let at = time::relative(row.ended_at?, now);
    Some(match row.exit {
        Some(exit) => format!("recorded as ended {at}: {}", exit.name()),
        None => format!("recorded as ended {at}; it is not known how"),
    })
}

fn listening(row: &SessionRow, messages: &[MessageRow]) -> String {
    let acknowledged = messages.iter().filter(|m| m.status == MessageStatus::Acknowledged).count();
    match (messages.len(), acknowledged) {
        (0, _) => "no message has been sent to it".to_owned(),
        (_, 0) if !row.acknowledges => {
            "it has acknowledged no message, which not every program does".to_owned()
        }
        (all, acknowledged) => format!("it has acknowledged {acknowledged} of {all} messages"),
    }
}

fn message_line(message: &MessageRow, now: Timestamp) -> String {
    let sent = message.sent_at.map(|at| time::relative(at, now)).unwrap_or_default();
    let status = match message.status {
        MessageStatus::Queued => "waits to be sent".to_owned(),
        MessageStatus::Sent if message.tries == 0 => {
            "is held back, because the session shows no prompt to type it into".to_owned()
        }
        MessageStatus::Sent => format!("was sent {sent} and not acknowledged yet"),
        MessageStatus::Unacknowledged => {
            format!("was sent {} times, last {sent}, and never acknowledged", message.tries)
        }
        MessageStatus::Superseded => "lost its session before it was acknowledged".to_owned(),
        MessageStatus::Acknowledged => match message.acknowledged_at {
            Some(at) => format!("was acknowledged {}", time::relative(at, now)),
            None => "was acknowledged".to_owned(),
        },
    };
    format!("message m-{} ({}) {status}", message.id.0, message.headline.text())
}

fn doing(work: &WorkState, now: Timestamp) -> String {
    let tests = match work.tests_status {
        TestsStatus::Unknown => "",
        TestsStatus::Running => ", tests run",
        TestsStatus::Passing => ", tests pass",
        TestsStatus::Failing => ", tests fail",
    };
    let files = match work.files_modified.len() {
        0 => String::new(),
        1 => ", 1 file changed".to_owned(),
        n => format!(", {n} files changed"),
    };
    let at = time::relative(work.last_checkpoint_at, now);
    format!(
        "working on {} ({}{files}{tests}), as of {at}",
        clean_line(&work.work_summary, 200),
        work.work_phase
    )
}
