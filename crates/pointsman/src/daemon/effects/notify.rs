//! Telling people: a line in the log and one in a file at once; the notice is written together with the effect that
//! orders it, and louder notifiers tell it by their own lanes.

use std::io::Write;
use std::path::Path;

use pointsman_adapters::phase_file;
use pointsman_adapters::secret::known;
use pointsman_core::config::NotifierKind;
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::task::Notice;
use pointsman_core::vault::{self, Entry, Policy};
use pointsman_core::words;
use pointsman_core::workflow::{Event, Workflow};
use serde_json::json;

use super::{EffectError, EffectPerformer, Outcome, Performed};
use crate::daemon::clock;
use crate::daemon::crash::crash_point;
use crate::daemon::jobs::Jobs;
use crate::daemon::notifier::{self, NotifierReport};
use crate::daemon::served::Served;

impl EffectPerformer {
    /// The notice's key is in the file, so a reader can drop the one line a crash may write twice.
    pub(super) fn notify(
        &self,
        served: &Served,
        owner: &Workflow,
        key: &str,
        notice: &Notice,
    ) -> Result<Outcome, EffectError> {
        let id = owner.id();
        let (link, asks) = match owner {
            Workflow::Task(task) => {
                (Some(served.forge.issue_link(task.key.issue)), task.escalation.is_some())
            }
            Workflow::Run(_)
            | Workflow::Vault(_)
            | Workflow::Concern(_)
            | Workflow::Role(_)
            | Workflow::Notifier(_) => (None, false),
        };
        let topic = topic(owner);
        let project = id.project().clone();
        let posting =
            Posting { key: key.to_owned(), project, topic, link, question: None, notice: notice.clone() };
        let posting = self.log(posting)?;
        if notice.urgent && asks {
            let stamp = format!("{}\n", clock::rfc3339(clock::now()));
            phase_file::write_state_file(&served.files_of(&id).renotify, stamp.as_bytes())?;
        }
        Ok(Outcome::notice(posting))
    }

    /// Tells people of the question of a workflow, in the thread of the question. One that is settled meanwhile is not
    /// told.
    pub(super) fn notify_question(&self, owner: &Workflow) -> Result<Outcome, EffectError> {
        let Some((asked, id)) = owner.question().and_then(|asked| Some((asked, asked.id?))) else {
            return Ok(Outcome::done());
        };
        let posting = self.log(Posting {
            key: format!("question/{id}/{}", asked.notices),
            project: asked.source.project.clone(),
            topic: Topic::Question(id),
            link: None,
            question: None,
            notice: match owner {
                Workflow::Run(run) => words::run::question(run, asked),
                Workflow::Task(_)
                | Workflow::Vault(_)
                | Workflow::Concern(_)
                | Workflow::Role(_)
                | Workflow::Notifier(_) => words::question::notice(asked),
            },
        })?;
        Ok(Outcome::notice(posting))
    }

    /// Tells people how a vault action stands. The key names the status and the reminder, so that nothing is told twice,
    /// whoever ordered it. What is settled meanwhile is not told.
    pub(super) fn notify_action(&self, served: &Served, entry: &Entry) -> Result<Outcome, EffectError> {
        let Some(before) = entry.told.checked_sub(1) else { return Ok(Outcome::done()) };
        let (project, id, status) = (&entry.project, entry.id(), entry.status.as_str());
        let posting = self.log(Posting {
            key: format!("vault/{project}/{id}/{}/{status}/{before}", entry.firings),
            project: project.clone(),
            topic: Topic::Vault(id.clone()),
            link: None,
            question: entry.question(),
            notice: words::vault::notice(entry, &Policy::new(&served.config)),
        })?;
        let events = vec![Event::Vault(vault::Event::Told)];
        Ok(Outcome::Done(Performed { events, notices: vec![posting], ..Performed::default() }))
    }

    /// Tells it in the log at once, once for each key. All others tell what is left, without known secrets, as soon as it
    /// is written down.
    pub(super) fn log(&self, posting: Posting) -> std::io::Result<Posting> {
        let served = self.project(&posting.project);
        if served.is_none_or(|served| served.config.tells(NotifierKind::Log)) {
            self.log_notice(&posting)?;
        }
        crash_point("notice-posted");
        Ok(masked(&posting))
    }

    /// Tells people of something that no effect has ordered, once for each key.
    pub(in crate::daemon) fn put_up(&self, posting: &Posting) -> std::io::Result<()> {
        let posting = self.log(posting.clone())?;
        notifier::send(&self.jobs.inbox, NotifierReport::Posted(posting));
        Ok(())
    }

    /// Tells it in the log alone, once for each key. For the loop itself, which must not wait for itself.
    pub(in crate::daemon) fn log_notice(&self, posting: &Posting) -> std::io::Result<()> {
        log_notice(&self.paths.notices(), posting)
    }
}

/// The thread in which a workflow tells people something.
pub(super) fn topic(owner: &Workflow) -> Topic {
    match owner {
        Workflow::Task(task) => Topic::Task(task.key.issue),
        Workflow::Run(run) => Topic::of_formula(&run.formula.name),
        Workflow::Vault(entry) => Topic::Vault(entry.id().clone()),
        Workflow::Concern(concern) => {
            let id = concern.asked.as_ref().and_then(|asked| asked.id);
            id.map_or(Topic::Room, Topic::Question)
        }
        Workflow::Role(memory) => Topic::of_role(memory.key.role),
        Workflow::Notifier(_) => Topic::Room,
    }
}

/// Tells people from a job, once for each key.
pub(in crate::daemon) fn put_up_from_job(jobs: &Jobs, served: &Served, posting: &Posting) {
    if served.config.tells(NotifierKind::Log)
        && let Err(error) = log_notice(jobs.notices(), posting)
    {
        tracing::error!(%error, "a notice could not be logged");
    }
    notifier::send(&jobs.inbox, NotifierReport::Posted(masked(posting)));
}

/// A notice without secrets that the daemon knows.
fn masked(posting: &Posting) -> Posting {
    let (known, mut posting) = (known(), posting.clone());
    posting.notice.title = known.mask(&posting.notice.title).into_owned();
    posting.notice.body = known.mask(&posting.notice.body).into_owned();
    posting
}

fn log_notice(path: &Path, posting: &Posting) -> std::io::Result<()> {
    let posting = &masked(posting);
    let Posting { key, project, topic, link, notice, .. } = posting;
    let entry = json!({
        "key": key,
        "at": clock::rfc3339(clock::now()),
        "project": project,
        "topic": topic,
        "issue": topic.issue(),
        "title": notice.title,
        "body": notice.body,
        "link": link,
        "urgent": notice.urgent,
        "repeat": notice.repeat,
    });
    if !already_told(path, key) {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path)?;
        file.write_all(format!("{entry}\n").as_bytes())?;
        file.sync_data()?;
        tracing::warn!(%project, title = notice.title, link, "notice");
    }
    Ok(())
}

/// Whether the last lines of the file hold this notice: a crash may lie between writing and
/// remembering it.
fn already_told(path: &std::path::Path, key: &str) -> bool {
    use std::io::{Read, Seek, SeekFrom};
    const LOOK_BACK: u64 = 256 * 1024;
    let Ok(mut file) = std::fs::File::open(path) else { return false };
    let length = file.metadata().map_or(0, |m| m.len());
    if file.seek(SeekFrom::Start(length.saturating_sub(LOOK_BACK))).is_err() {
        return false;
    }
    let mut tail = Vec::new();
    if file.read_to_end(&mut tail).is_err() {
        return false;
    }
    let wanted = serde_json::Value::from(key);
    String::from_utf8_lossy(&tail)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .any(|entry| entry.get("key") == Some(&wanted))
}
