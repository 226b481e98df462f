use std::time::{Duration, Instant};

use clap::Subcommand;
use pointsman_core::config::NotifierKind;
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::Health;
use pointsman_core::text::clean_line;
use pointsman_core::words;
use pointsman_store::{Delivery, NoticeRow, Store, Waiting};
use pointsman_view::notice as view;

use super::context::Context;
use super::failure::{Code, Failure};
use super::table::{Cell, Table};
use super::{style, time};
use crate::control::protocol::Request;
use crate::daemon::notifier::{LISTENER, health, health_name};

/// How long a test notice is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The part that reads the room, for people.
const LISTENING: &str = "listening to matrix";
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(100);

/// List and test notifications to people
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  pointsman notify test && pointsman notify list")]
pub(crate) enum Command {
    /// Send a test notice through every notifier of the project, and wait until it is delivered
    #[command(after_help = "Example:\n  pointsman notify test && pointsman notify list")]
    Test,
    /// List the notices that were sent, newest first
    #[command(after_help = "Example:\n  pointsman notify list -n 5")]
    List {
        /// How many to list
        #[arg(short = 'n', long, default_value_t = 20)]
        number: u32,
    },
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Test => test(context),
            Self::List { number } => list(context, number),
        }
    }
}

/// A part of telling people that does not work.
pub(super) struct BrokenNotifier {
    part: String,
    health: Health,
    waiting: Waiting,
}

impl BrokenNotifier {
    pub(super) fn view(&self, project: &ProjectName) -> view::BrokenNotifier {
        view::BrokenNotifier::new(project.clone(), self.part.clone(), &self.health, self.waiting.pending)
    }

    /// Whether this notifier's work suffers from it.
    pub(super) fn is_of(&self, kind: NotifierKind) -> bool {
        self.part == kind.as_str() || (kind == NotifierKind::Matrix && self.part == LISTENING)
    }

    pub(super) fn line(&self) -> String {
        let since = words::rough(time::now().since(self.health.since));
        let waiting = match self.waiting.pending {
            0 => String::new(),
            1 => "; one notice waits".to_owned(),
            n => format!("; {n} notices wait"),
        };
        format!("{} for {since}: {}{waiting}", self.part, clean_line(&self.health.error, 300))
    }
}

/// The parts of a project that do not work.
pub(super) fn ill(store: &Store, project: &ProjectName) -> Result<Vec<BrokenNotifier>, Failure> {
    let mut found = Vec::new();
    for kind in [NotifierKind::Desktop, NotifierKind::Webhook, NotifierKind::Matrix] {
        if let Some(health) = health(store, project, &health_name(kind))? {
            found.push(BrokenNotifier {
                part: kind.to_string(),
                health,
                waiting: store.waiting(project, kind)?,
            });
        }
    }
    if let Some(health) = health(store, project, LISTENER)? {
        found.push(BrokenNotifier { part: LISTENING.to_owned(), health, waiting: Waiting::default() });
    }
    Ok(found)
}

#[allow(clippy::disallowed_methods, reason = "waits for a notice to be told: there is nobody to be woken by")]
fn test(context: &Context) -> Result<(), Failure> {
    context.people_only("calling people")?;
    let project = context.project()?;
    let key = format!("{}-{}", std::process::id(), time::now().0);
    let request = Request::TryNotifiers { project: project.config.name.clone(), key };
    let view::Testing { key } = context.ask_daemon(&request)?;
    let deadline = Instant::now() + PATIENCE;
    let deliveries = loop {
        let store = context.store()?.ok_or_else(|| Failure::failed("the store is gone"))?;
        let notices = store.notices(Some(&project.config.name), 100)?;
        let notice = notices.iter().find(|row| row.posting.key == key);
        let deliveries = notice.map(|row| store.deliveries_of(row.id)).transpose()?.unwrap_or_default();
        let failing = ill(&store, &project.config.name)?;
        let settled = |delivery: &Delivery| {
            delivery.status != "pending" || failing.iter().any(|ill| ill.part == delivery.notifier.as_str())
        };
        if deliveries.iter().all(settled) || Instant::now() >= deadline {
            break deliveries.into_iter().map(|delivery| tested(&delivery, &failing)).collect::<Vec<_>>();
        }
        std::thread::sleep(LOOK);
    };
    let failed = deliveries.iter().filter(|told| told.status != "sent").count();
    if context.out.is_json() {
        context.out.value(&deliveries)?;
    } else if deliveries.is_empty() {
        context.out.line("Notices go only to the log; set [notify] to to send them elsewhere.")?;
    } else {
        for told in &deliveries {
            let why = told.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            context.out.line(format!("{}  {}{why}", told.notifier, told.status))?;
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(Code::Unavailable, "not every notice was delivered").hint("pointsman doctor")),
    }
}

fn tested(delivery: &Delivery, failing: &[BrokenNotifier]) -> view::Tested {
    let why =
        failing.iter().find(|ill| ill.part == delivery.notifier.as_str()).map(|ill| ill.health.error.clone());
    let error = delivery.error.clone().or(why).filter(|_| delivery.status != "sent");
    view::Tested { notifier: delivery.notifier, status: delivery.status.clone(), error }
}

fn list(context: &Context, number: u32) -> Result<(), Failure> {
    let project = context.project()?;
    let Some(store) = context.store()? else { return show(context, &[]) };
    let rows = store.notices(Some(&project.config.name), number)?;
    let rows: Vec<(NoticeRow, Vec<Delivery>)> = rows
        .into_iter()
        .map(|row| Ok((row.clone(), store.deliveries_of(row.id)?)))
        .collect::<Result<_, Failure>>()?;
    show(context, &rows)
}

fn show(context: &Context, rows: &[(NoticeRow, Vec<Delivery>)]) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(&rows.iter().map(view_of).collect::<Vec<_>>());
    }
    let mut table = Table::new(["WHEN", "TOPIC", "TOLD", "NOTICE"]);
    let now = time::now();
    for (row, deliveries) in rows {
        let told: Vec<String> =
            deliveries.iter().map(|one| format!("{} {}", one.notifier, one.status)).collect();
        let colour = if row.posting.notice.urgent { style::BAD } else { style::QUIET };
        let times = if row.times > 1 { format!(" ({} times)", row.times) } else { String::new() };
        table.row([
            time::relative(row.at, now).into(),
            row.posting.topic.to_string().into(),
            if told.is_empty() { "log".to_owned() } else { told.join(", ") }.into(),
            Cell::styled(format!("{}{times}", clean_line(&row.posting.notice.title, 160)), colour),
        ]);
    }
    context.out.table(&table, "No notifications have been sent.")
}

fn view_of((row, deliveries): &(NoticeRow, Vec<Delivery>)) -> view::Notice {
    let told = |one: &Delivery| view::Delivery {
        notifier: one.notifier,
        status: one.status.clone(),
        not_before: one.not_before.into(),
        settled_at: one.settled_at.map(Into::into),
        error: one.error.clone(),
    };
    view::Notice::new(&row.posting, row.at.into(), row.times, deliveries.iter().map(told).collect())
}
