//! The entries of the log as types, so that whoever reads the log reads values and not keys.
//!
//! A [`TaskEntry`] is an event of a task, an [`Entry`] anything else; what other programs wait for is a
//! [`Signal`](crate::signal::Signal). The stored form of an entry is its kind and its data. It stays readable for
//! ever: a field is added with a default, and never renamed.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::concern::{self, About};
use crate::decision::{self, Unconfirmed};
use crate::health::Finding;
use crate::ids::{Number, Sha};
use crate::notifier::Topic;
use crate::part::question::{self, Owner, QuestionId, Settled};
use crate::queue::{EntryId, EntryStatus, StoppedBy};
use crate::role::Role;
use crate::run::{self, RunId};
use crate::session::work::{TestsStatus, WorkPhase};
use crate::signal::Signal;
use crate::snapshot::Unreadable;
use crate::task;
use crate::vault::{self, ActionId};

/// An event of a task, with the states that the task moved between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskEntry {
    #[serde(flatten)]
    pub event: task::Event,
    #[serde(flatten)]
    pub moved: TaskMove,
    /// The reason why the task refused the event, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The states that a task moved between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMove {
    /// None if the task stayed where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<task::State>,
    pub to: task::State,
}

impl TaskEntry {
    /// The stored form: the name of the event, and the data that goes with it.
    pub fn stored(&self) -> (String, Value) {
        let Ok(Value::Object(mut data)) = serde_json::to_value(self) else { return Default::default() };
        let kind = match data.remove("event") {
            Some(Value::String(kind)) => kind,
            _ => String::new(),
        };
        (kind, Value::Object(data))
    }

    /// Reads a stored entry; none if it is not of a task, or of a later program.
    pub fn read(kind: &str, data: &Value) -> Option<Self> {
        let Value::Object(data) = data else { return None };
        let mut stored = data.clone();
        stored.insert("event".to_owned(), kind.into());
        serde_json::from_value(Value::Object(stored)).ok()
    }
}

impl TaskMove {
    /// Reads the states alone, which works for events of later programs too; none if the entry is not of a task. A run
    /// and a vault action have states of their own, and some have the same names.
    pub fn read(kind: &str, data: &Value) -> Option<Self> {
        let moved = Self::deserialize(data).ok()?;
        Entry::read(kind, data).is_none().then_some(moved)
    }
}

/// An entry of the log that is not an event of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
pub enum Entry {
    /// An effect is done, and its task learns nothing from it.
    EffectDone {
        effect: String,
    },
    /// Something was seen of a session's work.
    WorkObserved {
        work_phase: WorkPhase,
        tests_status: TestsStatus,
    },
    /// A person spoke to a session from the command line.
    OperatorSpoke,
    /// A person spoke in a room.
    PersonSpoke {
        by: String,
        topic: Topic,
        text: String,
    },

    QuestionAsked(Question),
    QuestionReminded(Question),
    QuestionSettled(Question),
    /// Something happened to a condition that needs a person.
    ConcernChanged {
        about: About,
        #[serde(flatten)]
        event: concern::Event,
        /// The reason why it was refused, if it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },

    /// A person gave more of a budget.
    BudgetGranted {
        name: String,
    },

    QueueEntered(QueueEntry),
    QueueMoved(QueueEntry),
    QueuePaused {
        by: StoppedBy,
        reason: String,
    },
    QueueResumed,
    /// Everything on the main branch up to a commit is accounted for.
    MainAudited {
        upto: Sha,
        direct: u64,
        person: u64,
        paused: bool,
    },
    /// Something that landed was taken back.
    LandingReverted {
        sha: Sha,
        by: Sha,
        issue: Option<Number>,
        pr: Option<Number>,
    },

    ScheduleLooked {
        formula: String,
        skipped_because: Option<String>,
    },
    RunBegun(Run),
    RunSessionStarted(Run),
    /// Something about its session that changes nothing for the run itself.
    RunSessionObserved(Run),
    RunNotStarted(Run),
    RunStepDone(Run),
    RunFinished(Run),
    RunGaveUp(Run),
    RunSessionDied(Run),
    /// Its session asked a person.
    RunAsked(Run),
    RunAnswered(Run),
    RunTimePassed(Run),
    RunTimedOut(Run),
    RunStopped(Run),
    RunSessionEnded(Run),
    /// What its sessions left is put away.
    RunCleanedUp(Run),
    /// Something became known about what a run hands in.
    RunContribution(Run),
    /// An order of it could not be carried out.
    RunEffectFailed(Run),
    /// Something is wanted on the forge about a run, or has ended there.
    RunDeed(Run),

    /// A text that is no action was submitted.
    VaultRefused {
        from: Option<String>,
        why: String,
    },
    VaultSubmitted(Action),
    VaultApproved(Action),
    VaultRejected(Action),
    VaultRaised(Action),
    VaultLooked(Action),
    VaultExpired(Action),
    VaultFiring(Action),
    VaultFired(Action),
    VaultLost(Action),
    VaultTold(Action),
    /// Something was due: a reminder, or an order that an earlier program did not remember.
    VaultTimePassed(Action),

    SupervisorLooked {
        findings: Vec<Finding>,
        unknown: Vec<String>,
        done: Vec<String>,
        told: bool,
        lines: Vec<String>,
    },
    SupervisorJudged {
        run: RunId,
        lines: Vec<String>,
    },
    SupervisorHeard {
        by: String,
        words: String,
        ignored: Option<String>,
        lines: Vec<String>,
    },
    GardenerLooked {
        lines: Vec<String>,
    },
    GardenerGroomed {
        run: RunId,
        lines: Vec<String>,
    },
    PlannerLooked {
        lines: Vec<String>,
    },
    PlannerPlanned {
        run: RunId,
        lines: Vec<String>,
    },
    PredictorFiled {
        lines: Vec<String>,
    },
    /// Something happened to files that a role hands in.
    HandIn(HandIn),
    HandInOver(HandIn),
    RoleFiled(RoleIssue),
    RoleClosed(RoleIssue),
    PredictionTriaged {
        issue: Number,
        verdict: String,
        run: RunId,
    },
    /// It is known what became of something that a role did.
    ResultOver {
        role: Role,
        outcome: String,
    },
    /// A result of a role was counted.
    RoleCounted {
        role: Role,
        used: bool,
        paused: bool,
    },
    RoleResumed {
        role: Role,
    },
    RoleLookWanted {
        role: Role,
    },
    /// What is remembered under a name changed, and nothing else is to be said about it.
    Remembered {
        name: String,
    },

    ProjectAdded {
        config_path: PathBuf,
    },
    ProjectRemoved,
    /// The daemon read a changed `pointsman.toml`, and goes by it.
    SettingsChanged {
        keys: Vec<String>,
    },
    /// A changed `pointsman.toml` is wrong. The settings from before stay in force.
    SettingsRefused {
        why: String,
    },
    /// A person decided whether something that was found in a branch may leave.
    SecretDecided {
        fingerprint: String,
        accepted: bool,
    },
    /// A person's decision was kept because no daemon ran. It has no effect.
    DecisionKept(Unconfirmed),
    /// A kept decision came to its end.
    DecisionSettled {
        kept: Unconfirmed,
        outcome: decision::Outcome,
    },
    /// A snapshot cannot be read, and what it belongs to stands still.
    Unreadable(Unreadable),
}

/// A question to a person, as it is then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub question: QuestionId,
    pub kind: question::Kind,
    pub owner: Owner,
    pub subject: String,
    /// How often it was asked.
    pub notices: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
}

/// An entry of the merge queue, as it is then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueEntry {
    pub entry: EntryId,
    pub branch: String,
    pub head: Sha,
    pub status: EntryStatus,
    pub issue: Option<Number>,
    pub pr: Option<Number>,
    pub candidate: Option<Sha>,
    pub reason: Option<String>,
}

/// A run of a formula, as it is then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub run: RunId,
    pub formula: String,
    /// The step that is next.
    pub step: Option<String>,
    pub to: run::Status,
    pub reason: Option<String>,
    /// What happened to it. Events of 0.1.0 had other forms and are left out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_event")]
    pub event: Option<run::Event>,
}

/// An action of the vault, as it is then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    pub id: ActionId,
    #[serde(rename = "type")]
    pub kind: String,
    pub source: String,
    pub hash: String,
    pub to: vault::Status,
    pub reason: Option<String>,
    pub decided_by: Option<String>,
    /// What happened to it; nothing at its submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<vault::Event>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<vault::Status>,
}

/// Files that a role hands in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandIn {
    pub role: Role,
    pub run: RunId,
    /// Which files, where a run was looked through; there is nothing here for one that handed none in.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub files: Option<Option<Vec<String>>>,
    /// Their pull request, once it is spoken of.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub pr: Option<Option<Number>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    pub lines: Vec<String>,
}

/// An issue that a role has filed or closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleIssue {
    pub role: Role,
    /// Because of which run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// A key that is there is told from one that is not, also if it has nothing.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

fn known_event<'de, D: Deserializer<'de>>(from: D) -> Result<Option<run::Event>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

impl Entry {
    /// The entry for a change of a question; nothing for one without a number, which nobody can name.
    pub fn of_question(change: &question::Change) -> Option<Self> {
        let entry = |asked: &question::Question| {
            Some(Question {
                question: asked.id?,
                kind: asked.kind,
                owner: asked.source.owner.clone(),
                subject: asked.subject.clone(),
                notices: asked.notices,
                settled: asked.settled.clone(),
            })
        };
        match change {
            question::Change::Asked(asked) => entry(asked).map(Self::QuestionAsked),
            question::Change::Reminded(asked) => entry(asked).map(Self::QuestionReminded),
            question::Change::Settled(asked) => entry(asked).map(Self::QuestionSettled),
        }
    }

    /// The stored form: a kind, and the data that goes with it.
    pub fn stored(&self) -> (String, Value) {
        let Ok(Value::Object(mut stored)) = serde_json::to_value(self) else { return Default::default() };
        let kind = match stored.remove("kind") {
            Some(Value::String(kind)) => kind,
            _ => String::new(),
        };
        (kind, stored.remove("data").unwrap_or_default())
    }

    /// Reads a stored entry; nothing if it is of a task, a signal, or of a later program.
    pub fn read(kind: &str, data: &Value) -> Option<Self> {
        serde_json::from_value(json!({ "kind": kind, "data": data })).ok()
    }

    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::EffectDone { .. } => "effect_done",
            Self::WorkObserved { .. } => "work_observed",
            Self::OperatorSpoke => "operator_spoke",
            Self::PersonSpoke { .. } => "person_spoke",
            Self::QuestionAsked(_) => "question_asked",
            Self::QuestionReminded(_) => "question_reminded",
            Self::QuestionSettled(_) => "question_settled",
            Self::ConcernChanged { .. } => "concern_changed",
            Self::BudgetGranted { .. } => "budget_granted",
            Self::QueueEntered(_) => "queue_entered",
            Self::QueueMoved(_) => "queue_moved",
            Self::QueuePaused { .. } => "queue_paused",
            Self::QueueResumed => "queue_resumed",
            Self::MainAudited { .. } => "main_audited",
            Self::LandingReverted { .. } => LANDING_REVERTED,
            Self::ScheduleLooked { .. } => "schedule_looked",
            Self::RunBegun(_) => "run_begun",
            Self::RunSessionStarted(_) => "run_session_started",
            Self::RunSessionObserved(_) => "run_session_observed",
            Self::RunNotStarted(_) => "run_not_started",
            Self::RunStepDone(_) => "run_step_done",
            Self::RunFinished(_) => "run_finished",
            Self::RunGaveUp(_) => "run_gave_up",
            Self::RunSessionDied(_) => "run_session_died",
            Self::RunAsked(_) => "run_asked",
            Self::RunAnswered(_) => "run_answered",
            Self::RunTimePassed(_) => "run_time_passed",
            Self::RunTimedOut(_) => "run_timed_out",
            Self::RunStopped(_) => "run_stopped",
            Self::RunSessionEnded(_) => "run_session_ended",
            Self::RunCleanedUp(_) => "run_cleaned_up",
            Self::RunContribution(_) => "run_contribution",
            Self::RunEffectFailed(_) => "run_effect_failed",
            Self::RunDeed(_) => "run_deed",
            Self::VaultRefused { .. } => "vault_refused",
            Self::VaultSubmitted(_) => "vault_submitted",
            Self::VaultApproved(_) => "vault_approved",
            Self::VaultRejected(_) => "vault_rejected",
            Self::VaultRaised(_) => "vault_raised",
            Self::VaultLooked(_) => "vault_looked",
            Self::VaultExpired(_) => "vault_expired",
            Self::VaultFiring(_) => "vault_firing",
            Self::VaultFired(_) => "vault_fired",
            Self::VaultLost(_) => "vault_lost",
            Self::VaultTold(_) => "vault_told",
            Self::VaultTimePassed(_) => "vault_time_passed",
            Self::SupervisorLooked { .. } => "supervisor_looked",
            Self::SupervisorJudged { .. } => "supervisor_judged",
            Self::SupervisorHeard { .. } => SUPERVISOR_HEARD,
            Self::GardenerLooked { .. } => "gardener_looked",
            Self::GardenerGroomed { .. } => "gardener_groomed",
            Self::PlannerLooked { .. } => "planner_looked",
            Self::PlannerPlanned { .. } => "planner_planned",
            Self::PredictorFiled { .. } => "predictor_filed",
            Self::HandIn(_) => "hand_in",
            Self::HandInOver(_) => HAND_IN_OVER,
            Self::RoleFiled(_) => ROLE_FILED,
            Self::RoleClosed(_) => ROLE_CLOSED,
            Self::PredictionTriaged { .. } => PREDICTION_TRIAGED,
            Self::ResultOver { .. } => RESULT_OVER,
            Self::RoleCounted { .. } => "role_counted",
            Self::RoleResumed { .. } => "role_resumed",
            Self::RoleLookWanted { .. } => "role_look_wanted",
            Self::Remembered { .. } => "remembered",
            Self::ProjectAdded { .. } => "project_added",
            Self::ProjectRemoved => "project_removed",
            Self::SettingsChanged { .. } => "settings_changed",
            Self::SettingsRefused { .. } => "settings_refused",
            Self::SecretDecided { .. } => "secret_decided",
            Self::DecisionKept(_) => "decision_kept",
            Self::DecisionSettled { .. } => "decision_settled",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// Whether events of this kind can be in the log: events of tasks, other entries, and signals.
pub fn is_kind(name: &str) -> bool {
    Signal::ALL.into_iter().any(|signal| signal.name() == name)
        || is_variant::<crate::task::Event>("event", name)
        || is_variant::<Entry>("kind", name)
}

/// Whether a tagged enum has this variant. Its fields are missing here, and that is another mistake than its name.
fn is_variant<T: serde::de::DeserializeOwned>(tag: &str, name: &str) -> bool {
    let value = serde_json::json!({ tag: name });
    match serde_json::from_value::<T>(value) {
        Ok(_) => true,
        Err(error) => !error.to_string().starts_with("unknown variant"),
    }
}

/// Kinds that readers of the log ask for by name.
pub const LANDING_REVERTED: &str = "landing_reverted";
/// See [`Entry::SupervisorHeard`].
pub const SUPERVISOR_HEARD: &str = "supervisor_heard";
/// See [`Entry::HandInOver`].
pub const HAND_IN_OVER: &str = "hand_in_over";
/// See [`Entry::RoleFiled`].
pub const ROLE_FILED: &str = "role_filed";
/// See [`Entry::RoleClosed`].
pub const ROLE_CLOSED: &str = "role_closed";
/// See [`Entry::PredictionTriaged`].
pub const PREDICTION_TRIAGED: &str = "prediction_triaged";
/// See [`Entry::ResultOver`].
pub const RESULT_OVER: &str = "result_over";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Entry, TaskEntry, TaskMove};
    use crate::task::{Event, State};

    /// Events of a task as 0.1.0 wrote them: with the states of the task among the fields of the event.
    #[test]
    fn events_of_tasks_are_read_and_written_as_they_were() {
        let stored = [
            (
                "phase_claimed",
                json!({ "generation": 1, "phase": "awaiting_ci", "reason": null, "refusal": null, "to": "working" }),
            ),
            (
                "checks_finished",
                json!({
                    "sha": "a".repeat(40), "run": 1, "verdict": { "verdict": "timed_out", "log": "" },
                    "from": "awaiting_ci", "to": "escalated",
                }),
            ),
            ("claimed", json!({ "to": "blocked", "refused": "it is blocked already" })),
        ];
        for (kind, data) in stored {
            let entry = TaskEntry::read(kind, &data).unwrap_or_else(|| panic!("{kind} {data}"));
            assert_eq!(entry.stored(), (kind.to_owned(), data.clone()));
            assert_eq!(TaskMove::read(kind, &data), Some(entry.moved));
        }
        let moved = TaskMove { from: None, to: State::Blocked };
        let entry = TaskEntry { event: Event::Claimed, moved, refused: None };
        assert_eq!(entry.stored(), ("claimed".to_owned(), json!({ "to": "blocked" })));
        assert_eq!(TaskMove::read("of_a_later_program", &json!({ "to": "blocked" })), Some(moved));
        let of_run = json!({ "run": 3, "formula": "tidy", "step": null, "to": "working", "reason": null });
        assert_eq!(
            TaskMove::read("run_begun", &of_run).is_none(),
            Entry::read("run_begun", &of_run).is_some()
        );
        assert_eq!(TaskMove::read("operator_spoke", &json!(null)), None);
    }

    /// What 0.1.0 wrote, key by key.
    #[test]
    fn entries_of_the_first_release_are_read_and_written_as_they_were() {
        let stored = [
            ("effect_done", json!({ "effect": "set_labels" })),
            ("work_observed", json!({ "work_phase": "implementation", "tests_status": "unknown" })),
            ("operator_spoke", json!(null)),
            ("person_spoke", json!({ "by": "@ada:example.org", "topic": "task/3", "text": "go on" })),
            (
                "landing_reverted",
                json!({ "sha": "a".repeat(40), "by": "b".repeat(40), "issue": 3, "pr": null }),
            ),
            ("schedule_looked", json!({ "formula": "run-gardener", "skipped_because": null })),
            (
                "run_begun",
                json!({ "run": 3, "formula": "tidy", "step": "sweep", "to": "starting", "reason": null }),
            ),
            (
                "run_stopped",
                json!({
                    "run": 3, "formula": "tidy", "step": null, "to": "stopped", "reason": "enough",
                    "event": { "event": "stopped", "by": "ada" },
                }),
            ),
            ("vault_refused", json!({ "from": null, "why": "not JSON" })),
            (
                "vault_approved",
                json!({
                    "id": "deploy-1", "type": "deploy", "source": "action-shop-3.1", "hash": "h", "to": "approved",
                    "reason": null, "decided_by": "ada", "from": "pending",
                    "event": { "event": "approved", "by": "ada", "hash": "h", "again": false },
                }),
            ),
            (
                "supervisor_looked",
                json!({ "findings": [], "unknown": ["load"], "done": [], "told": true, "lines": ["all is well"] }),
            ),
            ("supervisor_judged", json!({ "run": 4, "lines": ["run 4 says: nothing"] })),
            (
                "supervisor_heard",
                json!({ "by": "ada", "words": "ignore it", "ignored": "disk", "lines": [] }),
            ),
            ("gardener_looked", json!({ "lines": ["3 look alike, and asked nobody: no money"] })),
            ("gardener_groomed", json!({ "run": 4, "lines": ["closed #7"] })),
            ("planner_planned", json!({ "run": 4, "lines": [] })),
            ("predictor_filed", json!({ "lines": ["#9 the disk fills"] })),
            ("hand_in", json!({ "role": "gardener", "run": 4, "files": null, "lines": ["x"] })),
            ("hand_in", json!({ "role": "gardener", "run": 4, "files": ["AGENTS.md"], "lines": ["x"] })),
            ("hand_in", json!({ "role": "gardener", "run": 4, "pr": 12, "lines": ["x"] })),
            (
                "hand_in_over",
                json!({ "role": "gardener", "run": 4, "pr": null, "outcome": "merged", "lines": ["x"] }),
            ),
            ("role_filed", json!({ "role": "predictor" })),
            ("role_closed", json!({ "role": "gardener", "run": 4 })),
            ("prediction_triaged", json!({ "issue": 9, "verdict": "watch", "run": 4 })),
            ("result_over", json!({ "role": "planner", "outcome": "landed" })),
            ("role_counted", json!({ "role": "planner", "used": true, "paused": false })),
            ("role_resumed", json!({ "role": "planner" })),
            ("role_look_wanted", json!({ "role": "planner" })),
        ];
        for (kind, data) in stored {
            let entry = Entry::read(kind, &data).unwrap_or_else(|| panic!("{kind} {data}"));
            assert_eq!(entry.kind(), kind);
            assert_eq!(entry.stored(), (kind.to_owned(), data));
        }
        for kind in ["phase_claimed", "role_resumed", "project_removed", "AGENT_CRASHED"] {
            assert!(super::is_kind(kind), "{kind}");
        }
        assert!(!super::is_kind("phase_claim") && !super::is_kind(""));
        assert_eq!(Entry::read("phase_claimed", &json!({ "to": "working" })), None);
        assert_eq!(TaskEntry::read("operator_spoke", &json!(null)), None);
        assert_eq!(TaskEntry::read("queue_resumed", &json!({ "to": "working" })), None);
        assert_eq!(Entry::read("hand_in_over", &json!("nonsense")), None);
    }
}
