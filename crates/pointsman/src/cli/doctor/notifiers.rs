//! Checks of the notifiers: can people be told, does anything wait, is anybody listened to?

use pointsman_adapters::notify::desktop;
use pointsman_core::config::NotifierKind;
use pointsman_core::text::clean_line;
use pointsman_core::words;

use super::project::find_agent;
use super::{Check, Grade, chain};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{notify, time};
use crate::daemon::timetable::SystemZone;
use crate::project::Project;

pub(super) fn checks(context: &Context, project: &Project) -> Vec<Check> {
    let config = &project.config;
    let mut checks = Vec::new();
    for kind in &config.notify.to {
        let check = match kind {
            NotifierKind::Log => continue,
            NotifierKind::Desktop => desktop(project),
            NotifierKind::Webhook => webhook(context, project),
            NotifierKind::Matrix => matrix(context, project),
        };
        checks.push(with_backlog(context, project, *kind, check));
    }
    if config.notify.quiet_hours.is_some() && SystemZone::find(config.quiet_zone()).is_none() {
        let detail = format!(
            "this system does not know the time zone {}, so quiet hours are in UTC",
            config.quiet_zone()
        );
        checks.push(Check::warn("quiet_hours", detail, "correct notify.timezone, or install tzdata"));
    }
    checks
}

fn matrix(context: &Context, project: &Project) -> Check {
    const ID: &str = "matrix";
    let config = &project.config;
    let matrix = match context.matrix(config) {
        Ok(matrix) => matrix,
        Err(error) => {
            return Check::fail(
                ID,
                chain(error),
                "provide the token as configured in [matrix]; see docs/notifications.md",
            );
        }
    };
    match matrix.look() {
        Err(error) => Check::fail(ID, chain(error), "check matrix.homeserver, matrix.room and its token"),
        Ok(there) => {
            let people = match config.matrix.people.len() {
                0 => "nobody may give commands (matrix.people)".to_owned(),
                1 => "one person may give commands".to_owned(),
                n => format!("{n} people may give commands"),
            };
            let host = matrix.host();
            let total = host.counts().total();
            let average = total.waited.as_millis() / u128::from(total.calls.max(1));
            let name = host.name();
            Check::ok(
                ID,
                format!(
                    "logged in as `{}` in {}; {people}; {name} answers in {average} ms",
                    there.me, there.room
                ),
            )
        }
    }
}

fn webhook(context: &Context, project: &Project) -> Check {
    const ID: &str = "webhook";
    match context.webhook(&project.config) {
        Ok(hook) => Check::ok(
            ID,
            format!("{} will be called; to try it, run `pointsman notify test`", hook.host().name()),
        ),
        Err(error) => Check::fail(
            ID,
            chain(error),
            "provide the address as configured in [webhook]; see docs/notifications.md",
        ),
    }
}

fn desktop(project: &Project) -> Check {
    const ID: &str = "desktop";
    match find_agent(desktop::PROGRAM, project.checkout()) {
        Some(path) => Check::ok(ID, format!("{} is {}", desktop::PROGRAM, path.display())),
        None => Check::fail(
            ID,
            format!("{} is not found", desktop::PROGRAM),
            "install libnotify-bin, or remove desktop from notify.to",
        ),
    }
}

/// What the daemon could not tell so far is worth a warning, also if it could now.
fn with_backlog(context: &Context, project: &Project, kind: NotifierKind, check: Check) -> Check {
    if check.status != Grade::Ok {
        return check;
    }
    let name = &project.config.name;
    let look = || -> Result<Option<String>, Failure> {
        let Some(store) = context.store()? else { return Ok(None) };
        let waiting = store.waiting(name, kind)?;
        let ill = notify::ill(&store, name)?;
        let of_this = ill.iter().filter(|ill| ill.is_of(kind)).map(notify::BrokenNotifier::line);
        let mut lines: Vec<String> = of_this.collect();
        if let (true, Some(oldest)) = (lines.is_empty() && waiting.pending > 0, waiting.oldest) {
            let since = words::rough(time::now().since(oldest));
            lines.push(format!("{} notices are waiting, the oldest for {since}", waiting.pending));
        }
        if waiting.dropped > 0 {
            lines.push(format!("{} notices were dropped so far", waiting.dropped));
        }
        Ok((!lines.is_empty()).then(|| lines.join("; ")))
    };
    match look() {
        Ok(None) => check,
        Ok(Some(lines)) => {
            let detail = format!("{}; {}", check.detail, clean_line(&lines, 600));
            Check::warn(
                &check.id,
                detail,
                "`pointsman notify list` shows them; a running daemon tries again by itself",
            )
        }
        Err(failure) => Check::warn(
            &check.id,
            failure.message().to_owned(),
            "pointsman doctor, when the store can be read",
        ),
    }
}
