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
    const VERSION: u32 = 3;

    fn upgrade(version: u32, value: Value) -> Result<Value, String> {
        match version {
            1 => Ok(escalation_is_a_question(session_is_a_part(value))),
            2 => Ok(escalation_is_a_question(value)),
            3 => Ok(value),
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
impl Snapshot for crate::health::Memory {}
impl Snapshot for crate::hand_in::Memory {}
impl Snapshot for crate::value::RoleValue {}
impl Snapshot for crate::value::Following {}
impl Snapshot for crate::timetable::ScheduleMemory {}
impl Snapshot for crate::decision::Memory {}
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
        None if name == crate::decision::MEMORY => crate::decision::Memory::read(version, text).map(drop),
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
    use crate::ids::{ProjectName, TaskKey};
    use crate::part::question::{self, Cause, Owner};
    use crate::task::{State, Task};
    use crate::time::Timestamp;

    #[test]
    fn what_is_no_task_at_all_is_unreadable_in_every_version() {
        for version in [1, 2, 3] {
            for text in ["[]", "3", "\"task\"", "null", "{}", "{\"attempts\": 3}", "", "{"] {
                assert!(crate::task::Task::read(version, text).is_err(), "version {version}: {text}");
            }
        }
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
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue: 3 };
        let mut task = Task::new(key, "Apples".into(), "pointsman/issue-3".into(), Timestamp(1));
        task.state = State::Escalated;
        let mut stored = serde_json::to_value(&task).unwrap();
        stored["deadline"] = json!(9_000);
        stored["pr"] = json!(12);
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
