//! Values that are stored whole and read back by later programs.
//!
//! A snapshot is stored with the version of its form. One that cannot be read is never replaced by a default: whatever it
//! belongs to stops, and a person is asked.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ids::{ActionKey, ProjectName, TaskKey};
use crate::role::Role;
use crate::words;
use crate::workflow::WorkflowId;

/// A value that is stored with the version of its form.
///
/// A field may be added with a default. Any other change of the form needs a new version, and [`upgrade`](Self::upgrade)
/// brings the older ones to it.
pub trait Snapshot: Serialize + DeserializeOwned {
    /// The version that is written now.
    const VERSION: u32 = 1;

    /// Brings an older form to the present one; a sentence if this program does not know that form.
    fn upgrade(version: u32, value: Value) -> Result<Value, String> {
        match version == Self::VERSION {
            true => Ok(value),
            false => Err(words::reason::unknown_version(version, Self::VERSION)),
        }
    }

    /// Reads what was stored.
    fn read(version: u32, text: &str) -> Result<Self, String> {
        // The usual case, without a detour over a tree of values.
        if version == Self::VERSION {
            return serde_json::from_str(text).map_err(|error| error.to_string());
        }
        let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        serde_json::from_value(Self::upgrade(version, value)?).map_err(|error| error.to_string())
    }
}

impl Snapshot for crate::task::Task {
    const VERSION: u32 = 4;

    fn upgrade(version: u32, value: Value) -> Result<Value, String> {
        match version {
            1 => Ok(contribution_is_a_part(escalation_is_a_question(session_is_a_part(value)))),
            2 => Ok(contribution_is_a_part(escalation_is_a_question(value))),
            3 => Ok(contribution_is_a_part(value)),
            4 => Ok(value),
            _ => Err(words::reason::unknown_version(version, Self::VERSION)),
        }
    }
}
impl Snapshot for crate::part::question::Question {}
impl Snapshot for crate::run::Run {
    const VERSION: u32 = 2;

    fn upgrade(version: u32, value: Value) -> Result<Value, String> {
        match version {
            1 => Ok(run_has_a_session(value)),
            2 => Ok(value),
            _ => Err(words::reason::unknown_version(version, Self::VERSION)),
        }
    }
}
impl Snapshot for crate::vault::Entry {}
impl Snapshot for crate::gardener::Memory {}
impl Snapshot for crate::planner::Memory {}
impl Snapshot for crate::predictor::Memory {}
impl Snapshot for crate::action::Memory {}
impl Snapshot for crate::health::Memory {}
impl Snapshot for crate::hand_in::Memory {}
impl Snapshot for crate::value::RoleValue {}
impl Snapshot for crate::value::Following {}
impl Snapshot for crate::timetable::ScheduleMemory {}
impl Snapshot for crate::decision::Memory {}
impl Snapshot for crate::session::budget::Grants {}
impl Snapshot for crate::config::Trust {}
impl Snapshot for crate::known_secrets::SecretDecisions {}
impl Snapshot for crate::session::work::WorkState {}

/// Version 1 of a task had the fields of its session beside its own.
fn session_is_a_part(mut value: Value) -> Value {
    // Not a task at all. Whoever reads it as one says so.
    if !value.is_object() {
        return value;
    }
    let mut take = |name: &str| value.get_mut(name).map(Value::take).unwrap_or_default();
    let (mut session, mut context) = (serde_json::Map::new(), serde_json::Map::new());
    let put = |part: &mut serde_json::Map<String, Value>, name: &str, found: Value| {
        // What is not there keeps its default.
        if !found.is_null() {
            part.insert(name.to_owned(), found);
        }
    };
    for (old, new) in
        [("gauge", "gauge"), ("gauge_at", "measured_at"), ("symptoms", "symptoms"), ("urgency", "urgency")]
    {
        put(&mut context, new, take(old));
    }
    put(&mut session, "stage", take("session"));
    for name in
        ["generation", "restart_at", "continues", "idle_looks", "parked_until", "handoff", "exhausted"]
    {
        put(&mut session, name, take(name));
    }
    let attempts = take("attempts");
    for name in ["restarts", "handoffs"] {
        put(&mut session, name, attempts.get(name).cloned().unwrap_or_default());
    }
    put(&mut session, "context", Value::Object(context));
    value["attempts"] = attempts;
    value["session"] = Value::Object(session);
    value
}

/// Version 1 of a run had a few fields in place of a session. One whose session was about to start, or perhaps had, is
/// ordered anew: the order finds a session that is there.
fn run_has_a_session(mut value: Value) -> Value {
    let mut take = |name: &str| value.get_mut(name).map(Value::take).unwrap_or_default();
    let (generation, restarts) = (take("generation").as_u64().unwrap_or(1), take("restarts"));
    let (not_before, open) = (take("not_before"), take("session_open").as_bool().unwrap_or(false));
    let starting = value["status"] == "starting";
    let stage = if open && !starting { "alive" } else { "none" };
    let mut session = serde_json::Map::new();
    let mut put = |name: &str, found: Value| session.insert(name.to_owned(), found);
    put("generation", if starting { generation.saturating_sub(1) } else { generation }.into());
    put("stage", stage.into());
    if !restarts.is_null() {
        put("restarts", restarts);
    }
    if starting {
        put("restart_at", not_before);
    }
    value["session"] = Value::Object(session);
    value
}

/// Until version 2 a task had an escalation of its own, and its time-out was the task's deadline. The question has no
/// number: it gets one when the task is loaded.
fn escalation_is_a_question(mut value: Value) -> Value {
    let Some(escalation) = value.get("escalation").filter(|escalation| !escalation.is_null()).cloned() else {
        return value;
    };
    let reason = escalation["reason"].as_str().unwrap_or_default();
    let subject = crate::text::clean_line(reason, 200);
    value["escalation"] = json!({
        "id": null,
        "kind": "question",
        "cause": escalation["cause"],
        "source": {
            "project": value["key"]["project"],
            "owner": format!("task/{}", value["key"]["issue"]),
            "issue": value["key"]["issue"],
            "pr": value["pr"],
        },
        "subject": subject,
        "asked_at": escalation["at"],
        "notices": escalation["notices"],
        "remind_at": escalation["renotify_at"],
        "expires_at": value["deadline"],
    });
    value
}

/// Until version 3 a task had the fields of its contribution beside its own, and the time-out of CI, of a review and of the
/// merge queue was the task's deadline.
fn contribution_is_a_part(mut value: Value) -> Value {
    // Not a task at all. Whoever reads it as one says so.
    if !value.is_object() {
        return value;
    }
    let mut take = |name: &str| value.get_mut(name).map(Value::take).unwrap_or_default();
    let (branch, head, pr) = (take("branch"), take("head"), take("pr"));
    let (merged_as, ci_run, log_end) = (take("merged_as"), take("ci_run"), take("ci_log_end"));
    // What was said about another commit than the head counted for nothing.
    let about_head = |said: Value| if said["sha"] == head { said } else { json!({ "status": "none" }) };
    let (ci, review) = (about_head(take("ci")), about_head(take("review")));
    let awaited = match value["state"].as_str() {
        Some("awaiting_ci") if ci["status"] == "pending" => Some("checks"),
        Some("awaiting_ci") => Some("push"),
        Some("awaiting_review") => Some("review"),
        Some("merge_queue") => Some("queue"),
        Some(_) | None => None,
    };
    let until = match (awaited, value["deadline"].is_null()) {
        (None, _) => Value::Null,
        (Some(_), false) => value["deadline"].take(),
        // Every wait has an end. One that is not known is over now, and a person is asked.
        (Some(_), true) => value["since"].clone(),
    };
    let log_end = log_end.as_str().unwrap_or_default();
    let pushed = match head.is_null() {
        true => Value::Null,
        false => json!({ "head": head, "pr": pr, "ci": ci, "log_end": log_end, "review": review }),
    };
    let progress = if !merged_as.is_null() {
        json!({ "stage": "merged", "sha": merged_as, "pushed": pushed })
    } else if pushed.is_null() {
        json!({ "stage": "local", "until": until })
    } else {
        let wait = awaited.map(|what| json!({ "what": what, "until": until }));
        json!({ "stage": "pushed", "pushed": pushed, "wait": wait })
    };
    let attempts = value["attempts"].take();
    if let Some(count) = attempts.get("premature_done") {
        value["premature_done"] = count.clone();
    }
    value["contribution"] =
        json!({ "branch": branch, "ci_run": ci_run, "attempts": attempts, "progress": progress });
    value
}

/// The kinds of things that have a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Task,
    Run,
    VaultAction,
    /// What a role, a schedule or a count remembers.
    Memory,
    /// An order to the world that waits in the outbox.
    Effect,
    /// What is known of the work of an identity's sessions.
    WorkState,
    /// A question to a person.
    Question,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Task => "task",
            Self::Run => "run",
            Self::VaultAction => "vault action",
            Self::Memory => "memory",
            Self::Effect => "effect of",
            Self::WorkState => "work state",
            Self::Question => "question",
        })
    }
}

/// A snapshot that cannot be read. What it belongs to stands still.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unreadable {
    pub what: Kind,
    pub project: ProjectName,
    /// An issue's or a run's number, an action's id, the name of a memory, or an identity.
    pub name: String,
    pub version: u32,
    pub why: String,
}

impl Unreadable {
    /// The workflow that waits because of it, if its name is known.
    pub fn workflow(&self) -> Option<WorkflowId> {
        match self.what {
            Kind::Task => {
                let issue = self.name.parse().ok()?;
                Some(WorkflowId::Task(TaskKey { project: self.project.clone(), issue }))
            }
            Kind::Effect => WorkflowId::parse_lane(&self.project, &self.name),
            Kind::VaultAction => {
                let id = self.name.clone().try_into().ok()?;
                Some(WorkflowId::Vault(ActionKey { project: self.project.clone(), id }))
            }
            Kind::Run | Kind::Memory | Kind::WorkState | Kind::Question => None,
        }
    }
}

/// Whether a memory can be read, by its name. A name that nobody uses any more has nothing to say.
pub fn check_memory(name: &str, version: u32, text: &str) -> Result<(), String> {
    if let Ok(role) = name.parse::<Role>() {
        return role.check_memory(version, text);
    }
    match name.split_once('.') {
        None if name == "results" => crate::value::Following::read(version, text).map(drop),
        None if name == crate::known_secrets::SecretDecisions::MEMORY => {
            crate::known_secrets::SecretDecisions::read(version, text).map(drop)
        }
        None if name == crate::config::trust::MEMORY => crate::config::Trust::read(version, text).map(drop),
        None if name == crate::decision::MEMORY => crate::decision::Memory::read(version, text).map(drop),
        None | Some(_) if name == crate::session::budget::Grants::MEMORY => {
            crate::session::budget::Grants::read(version, text).map(drop)
        }
        Some(("hand-in", _)) => crate::hand_in::Memory::read(version, text).map(drop),
        Some(("value", _)) => crate::value::RoleValue::read(version, text).map(drop),
        Some(("timetable", _)) => crate::timetable::ScheduleMemory::read(version, text).map(drop),
        None | Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::{Value, json};

    use super::Snapshot;
    use crate::part::contribution::Awaited;
    use crate::part::question::{self, Cause, Owner};
    use crate::task::{Ci, Review, Task};
    use crate::time::Timestamp;

    #[test]
    fn what_is_no_task_at_all_is_unreadable_in_every_version() {
        for version in [1, 2, 3, 4] {
            for text in ["[]", "3", "\"task\"", "null", "{}", "{\"attempts\": 3}", "", "{"] {
                assert!(crate::task::Task::read(version, text).is_err(), "version {version}: {text}");
            }
        }
    }

    /// A task of version 3 in a state, with the fields that its contribution had there.
    fn stored_as_version_3(state: &str, fields: &Value) -> Value {
        let mut stored = json!({
            "key": { "project": "shop", "issue": 3 }, "title": "Apples", "state": state, "since": 1, "phase": null,
            "reason": null, "ready": false, "open_dependencies": [], "claimed": true, "branch": "pointsman/issue-3",
            "pr": null, "head": null, "session": {}, "ci": { "status": "none" }, "ci_run": 2,
            "review": { "status": "none" }, "attempts": { "ci_fixes": 1, "premature_done": 2 }, "escalation": null,
            "refusal": null, "deadline": 9_000, "block_seen": false, "diagnosis_due": false, "merged_as": null,
        });
        for (name, value) in fields.as_object().unwrap() {
            stored[name] = value.clone();
        }
        stored
    }

    fn version_3(state: &str, fields: &Value) -> Task {
        Task::read(3, &stored_as_version_3(state, fields).to_string()).unwrap()
    }

    #[test]
    fn the_contribution_of_an_older_task_is_a_part_and_keeps_its_clock() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let head = crate::ids::Sha::new(&a).unwrap();
        let pending = json!({ "status": "pending", "sha": a, "run": 2 });
        let green = json!({ "status": "passed", "sha": a });
        let approved = json!({ "status": "approved", "sha": a, "by": "ann" });

        let task = version_3("awaiting_ci", &json!({ "head": a, "pr": 7, "ci": pending }));
        let part = &task.contribution;
        assert_eq!(
            (part.branch.as_str(), part.pr(), part.pending()),
            ("pointsman/issue-3", Some(7), Some((&head, 2)))
        );
        assert_eq!(
            (part.awaited(), part.wake_at(), task.deadline),
            (Some(Awaited::Checks), Some(Timestamp(9_000)), None)
        );
        assert_eq!((part.ci_run, part.attempts.ci_fixes, task.premature_done), (2, 1, 2));

        let task = version_3("awaiting_ci", &json!({}));
        assert_eq!((task.contribution.awaited(), task.contribution.head()), (Some(Awaited::Push), None));
        let task = version_3("awaiting_review", &json!({ "head": a, "ci": green }));
        assert_eq!(task.contribution.awaited(), Some(Awaited::Review));
        assert!(task.contribution.passed(&head));
        let task = version_3(
            "merge_queue",
            &json!({ "head": a, "ci": green, "review": approved, "deadline": null }),
        );
        assert!(task.wants_to_land(&head) && task.contribution.is_approved(&head));
        assert_eq!(task.wake_at(), Some(Timestamp(1)), "an unknown end is now");

        // What was said about another commit counts for nothing, as it did before.
        let task = version_3("working", &json!({ "head": b, "ci": green, "review": approved }));
        assert_eq!((task.contribution.ci(), task.contribution.review()), (&Ci::None, &Review::None));
        assert_eq!((task.contribution.awaited(), task.deadline), (None, Some(Timestamp(9_000))));

        let task = version_3("closed", &json!({ "head": a, "pr": 7, "ci": green, "merged_as": b }));
        assert_eq!(task.contribution.merged_as().map(crate::ids::Sha::as_str), Some(b.as_str()));
        assert_eq!((task.contribution.pr(), task.contribution.head()), (Some(7), Some(&head)));
        let written = serde_json::to_string(&task).unwrap();
        assert_eq!(Task::read(Task::VERSION, &written).unwrap(), task);
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Second {
        seats: u32,
    }

    impl Snapshot for Second {
        const VERSION: u32 = 2;

        fn upgrade(version: u32, mut value: Value) -> Result<Value, String> {
            if version == 1 {
                value["seats"] = value["chairs"].take();
                return Ok(value);
            }
            Err(crate::words::reason::unknown_version(version, Self::VERSION))
        }
    }

    #[test]
    fn an_escalation_of_an_older_task_is_a_question_without_a_number() {
        let mut stored = stored_as_version_3("escalated", &json!({ "pr": 12 }));
        stored["escalation"] = json!({
            "cause": "review", "reason": "nobody reviewed\nit", "at": 5, "renotify_at": 7_000, "notices": 2,
        });
        let read = Task::read(2, &stored.to_string()).unwrap();
        let asked = read.escalation.unwrap();
        assert_eq!((asked.id, asked.kind, asked.cause), (None, question::Kind::Question, Cause::Review));
        assert_eq!(
            (asked.subject.as_str(), asked.notices, asked.asked_at),
            ("nobody reviewed it", 2, Timestamp(5))
        );
        assert_eq!((asked.remind_at, asked.expires_at), (Some(Timestamp(7_000)), Some(Timestamp(9_000))));
        assert_eq!((asked.source.owner, asked.source.pr), (Owner::Task(3), Some(12)));
        stored["escalation"] = json!(null);
        assert_eq!(Task::read(2, &stored.to_string()).unwrap().escalation, None);
    }

    #[test]
    fn an_older_form_is_brought_up_to_date_and_nothing_becomes_a_default() {
        assert_eq!(Second::read(2, r#"{"seats": 4}"#), Ok(Second { seats: 4 }));
        assert_eq!(Second::read(1, r#"{"chairs": 4}"#), Ok(Second { seats: 4 }));
        assert!(Second::read(3, r#"{"seats": 4}"#).unwrap_err().contains("version 3"));
        assert!(Second::read(2, r#"{"chairs": 4}"#).unwrap_err().contains("seats"));
        assert!(Second::read(2, "{").is_err());
    }
}
