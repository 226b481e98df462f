//! A count of what was played: every kind of event of every workflow, and every place of a crash.
//!
//! The lists are exhaustive by the compiler or by an assertion, so that a new kind of event that no story plays is found.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_core::concern::Event as ConcernEvent;
use pointsman_core::deed::Ending;
use pointsman_core::notifier::Event as NotifierEvent;
use pointsman_core::part::contribution::Event as About;
use pointsman_core::part::session::Event as SessionEvent;
use pointsman_core::role_memory::{Event as RoleEvent, Heard};
use pointsman_core::run::Event as RunEvent;
use pointsman_core::task::Event as TaskEvent;
use pointsman_core::vault::Event as VaultEvent;
use pointsman_core::workflow::Event;

/// The places in which a daemon can die.
pub(super) const PLACES: [&str; 12] = [
    "between two steps",
    "after effects were handed out",
    "after an effect was performed",
    "after an outcome was absorbed",
    "before an entry of the queue is written",
    "after the branch was pushed",
    "after main was pushed",
    "after a look was begun",
    "after a firing was written down",
    "after a handler ran",
    "after a person was heard",
    "after a notice was told",
];

/// The name of each kind, and all of them. One list for both, so that none can be missing.
macro_rules! kinds {
    ($name:ident, $all:ident, $type:ty, $($pattern:pat => $kind:literal,)*) => {
        const $all: &[&str] = &[$($kind),*];

        fn $name(event: &$type) -> &'static str {
            match event {
                $($pattern => $kind,)*
            }
        }
    };
}

kinds! { of_task, TASK, TaskEvent,
    TaskEvent::IssueObserved { .. } => "issue_observed",
    TaskEvent::Claimed => "claimed",
    TaskEvent::ClaimLost { .. } => "claim_lost",
    TaskEvent::SessionStarted { .. } => "session_started",
    TaskEvent::SessionNotStarted { .. } => "session_not_started",
    TaskEvent::SessionEnded { .. } => "session_ended",
    TaskEvent::IdleLooked { .. } => "idle_looked",
    TaskEvent::PhaseClaimed { .. } => "phase_claimed",
    TaskEvent::PhaseRejected { .. } => "phase_rejected",
    TaskEvent::BranchSynced { .. } => "branch_synced",
    TaskEvent::PullRequestOpened { .. } => "pull_request_opened",
    TaskEvent::PullRequestObserved { .. } => "pull_request_observed",
    TaskEvent::HeadMoved => "head_moved",
    TaskEvent::ChecksStarted { .. } => "checks_started",
    TaskEvent::ChecksFinished { .. } => "checks_finished",
    TaskEvent::ReviewPosted { .. } => "review_posted",
    TaskEvent::QueueReported { .. } => "queue_reported",
    TaskEvent::MergeLooked { .. } => "merge_looked",
    TaskEvent::ContextMeasured { .. } => "context_measured",
    TaskEvent::SymptomSeen { .. } => "symptom_seen",
    TaskEvent::ContextCompacted { .. } => "context_compacted",
    TaskEvent::TurnEnded { .. } => "turn_ended",
    TaskEvent::TurnFailed { .. } => "turn_failed",
    TaskEvent::ResponseGiven { .. } => "response_given",
    TaskEvent::DialogSeen { .. } => "dialog_seen",
    TaskEvent::HooksSilent { .. } => "hooks_silent",
    TaskEvent::BudgetReached { .. } => "budget_reached",
    TaskEvent::BudgetGranted => "budget_granted",
    TaskEvent::HostsAllowed { .. } => "hosts_allowed",
    TaskEvent::SetupFailed { .. } => "setup_failed",
    TaskEvent::SetupRetried { .. } => "setup_retried",
    TaskEvent::PlanDecided { .. } => "plan_decided",
    TaskEvent::PortsAssigned { .. } => "ports_assigned",
    TaskEvent::Answered { .. } => "answered",
    TaskEvent::Taken { .. } => "taken",
    TaskEvent::Given { .. } => "given",
    TaskEvent::Ordered { .. } => "ordered",
    TaskEvent::TimePassed => "time_passed",
    TaskEvent::TimeSkipped { .. } => "time_skipped",
    TaskEvent::EffectGaveUp { .. } => "effect_gave_up",
    TaskEvent::MessageUnacknowledged { .. } => "message_unacknowledged",
}

kinds! { of_run, RUN, RunEvent,
    RunEvent::Begun => "begun",
    RunEvent::Session { told: SessionEvent::Started, .. } => "started",
    RunEvent::Session { told: SessionEvent::NotStarted { .. }, .. } => "not_started",
    RunEvent::Session { told: SessionEvent::Ended { .. }, .. } => "ended",
    RunEvent::Session { told: SessionEvent::IdleLooked { .. }, .. } => "idle_looked",
    RunEvent::Session { told: SessionEvent::PhaseClaimed { .. }, .. } => "phase_claimed",
    RunEvent::Session { told: SessionEvent::PhaseRejected { .. }, .. } => "phase_rejected",
    RunEvent::Session { told: SessionEvent::ContextMeasured { .. }, .. } => "context_measured",
    RunEvent::Session { told: SessionEvent::SymptomSeen { .. }, .. } => "symptom_seen",
    RunEvent::Session { told: SessionEvent::ContextCompacted, .. } => "context_compacted",
    RunEvent::Session { told: SessionEvent::TurnEnded, .. } => "turn_ended",
    RunEvent::Session { told: SessionEvent::TurnFailed { .. }, .. } => "turn_failed",
    RunEvent::Session { told: SessionEvent::ResponseGiven { .. }, .. } => "response_given",
    RunEvent::Session { told: SessionEvent::DialogSeen { .. }, .. } => "dialog_seen",
    RunEvent::Session { told: SessionEvent::HooksSilent { .. }, .. } => "hooks_silent",
    // Nobody grants anything to a run: it is over.
    RunEvent::Session { told: SessionEvent::BudgetReached { .. } | SessionEvent::BudgetGranted, .. } => "budget_reached",
    RunEvent::Session { told: SessionEvent::MessageUnacknowledged { .. }, .. } => "message_unacknowledged",
    RunEvent::StepDone { .. } => "step_done",
    RunEvent::Finished { .. } => "finished",
    RunEvent::GaveUp { .. } => "gave_up",
    RunEvent::SetupFailed { .. } => "setup_failed",
    RunEvent::SetupRetried { .. } => "setup_retried",
    RunEvent::PortsAssigned { .. } => "ports_assigned",
    RunEvent::Answered { .. } => "answered",
    RunEvent::TimePassed => "time_passed",
    RunEvent::TimeSkipped { .. } => "time_skipped",
    RunEvent::Stopped { .. } => "stopped",
    RunEvent::HandedIn { .. } => "handed_in",
    RunEvent::LandingBegun { .. } => "landing_begun",
    RunEvent::HandInDropped { .. } => "hand_in_dropped",
    RunEvent::CommitPut { .. } => "commit_put",
    RunEvent::BranchTaken { .. } => "branch_taken",
    RunEvent::Contribution { about: About::Pushed { .. } } => "pushed",
    RunEvent::Contribution { about: About::Opened { .. } } => "opened",
    RunEvent::Contribution { about: About::Observed { .. } } => "observed",
    RunEvent::Contribution { about: About::ChecksStarted { .. } } => "checks_started",
    RunEvent::Contribution { about: About::ChecksFinished { .. } } => "checks_finished",
    RunEvent::Contribution { about: About::Reviewed { .. } } => "reviewed",
    RunEvent::Contribution { about: About::QueueReported { .. } } => "queue_reported",
    RunEvent::CleanedUp => "cleaned_up",
    RunEvent::DeedWanted { .. } => "deed_wanted",
    RunEvent::DeedEnded { ending: Ending::Done { .. }, .. } => "deed_done",
    RunEvent::DeedEnded { ending: Ending::Gone, .. } => "deed_gone",
    RunEvent::DeedEnded { ending: Ending::Refused { .. }, .. } => "deed_refused",
    RunEvent::EffectGaveUp { .. } => "effect_gave_up",
}

kinds! { of_role, ROLE, RoleEvent,
    RoleEvent::Looked { .. } => "looked",
    RoleEvent::Hindered { .. } => "hindered",
    RoleEvent::Heard { heard: Heard::Answer { .. }, .. } => "heard_answer",
    RoleEvent::Heard { heard: Heard::Nothing { .. }, .. } => "heard_nothing",
    RoleEvent::Measured { .. } => "measured",
    RoleEvent::Inspected { .. } => "inspected",
    RoleEvent::Spoken { .. } => "spoken",
    RoleEvent::ActionRefused { .. } => "action_refused",
    RoleEvent::DeedEnded { ending: Ending::Done { .. }, .. } => "deed_done",
    RoleEvent::DeedEnded { ending: Ending::Gone, .. } => "deed_gone",
    RoleEvent::DeedEnded { ending: Ending::Refused { .. }, .. } => "deed_refused",
    RoleEvent::Counted { .. } => "counted",
    RoleEvent::Resumed => "resumed",
    // It has no deadlines, so nobody tells it the time.
    RoleEvent::EffectGaveUp { .. } | RoleEvent::TimePassed => "effect_gave_up",
}

kinds! { of_action, ACTION, VaultEvent,
    VaultEvent::Submitted { .. } => "submitted",
    VaultEvent::Approved { .. } => "approved",
    VaultEvent::Rejected { .. } => "rejected",
    VaultEvent::Raised { .. } => "raised",
    VaultEvent::LookEnded { .. } => "look_ended",
    VaultEvent::TimePassed => "time_passed",
    VaultEvent::FiringBegun => "firing_begun",
    VaultEvent::FiringEnded { .. } => "firing_ended",
    VaultEvent::FiringLost => "firing_lost",
    VaultEvent::Told => "told",
}

kinds! { of_concern, CONCERN, ConcernEvent,
    ConcernEvent::Raised { .. } => "raised",
    ConcernEvent::Lifted { .. } => "lifted",
    ConcernEvent::Approved { .. } => "approved",
    ConcernEvent::Rejected { .. } => "rejected",
    ConcernEvent::Answered { .. } => "answered",
    ConcernEvent::Dismissed { .. } => "dismissed",
    ConcernEvent::TimePassed => "time_passed",
    ConcernEvent::EffectGaveUp { .. } => "effect_gave_up",
}

kinds! { of_notifier, NOTIFIER, NotifierEvent,
    NotifierEvent::Told => "told",
    NotifierEvent::Failed { .. } => "failed",
    // It has no deadlines, so nobody tells it the time.
    NotifierEvent::EffectGaveUp { .. } | NotifierEvent::TimePassed => "effect_gave_up",
}

/// The counts of all stories together.
#[derive(Clone, Debug, Default)]
pub(super) struct Played(Arc<Mutex<BTreeMap<String, u64>>>);

impl Played {
    /// A workflow took this event.
    pub(super) fn event(&self, event: &Event) {
        self.count(match event {
            Event::Task(event) => format!("task {}", of_task(event)),
            Event::Run(event) => format!("run {}", of_run(event)),
            Event::Vault(event) => format!("action {}", of_action(event)),
            Event::Concern(event) => format!("concern {}", of_concern(event)),
            Event::Role(event) => format!("role {}", of_role(event)),
            Event::Notifier(event) => format!("notifier {}", of_notifier(event)),
        });
    }

    /// The daemon died here.
    pub(super) fn crash(&self, place: &str) {
        assert!(PLACES.contains(&place), "{place} is not in the list of places");
        self.count(format!("crash {place}"));
    }

    fn count(&self, name: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
    }

    /// How often each was played, and those that never were.
    pub(super) fn report(&self) -> (String, Vec<String>) {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let named =
            |of: &str, names: &[&str]| names.iter().map(|name| format!("{of} {name}")).collect::<Vec<_>>();
        let all = [
            named("task", TASK),
            named("run", RUN),
            named("action", ACTION),
            named("concern", CONCERN),
            named("role", ROLE),
            named("notifier", NOTIFIER),
            named("crash", &PLACES),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        let count = |name: &String| counts.get(name).copied().unwrap_or(0);
        let table = all.iter().map(|name| format!("{:8}  {name}\n", count(name))).collect();
        (table, all.into_iter().filter(|name| count(name) == 0).collect())
    }
}
