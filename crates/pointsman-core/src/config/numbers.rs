//! `[timing]` and `[limits]`: every number of the seeds under a name.

use serde::{Deserialize, Serialize};

use super::Span;
use super::sections::table;

table! {
    Timing {
        /// No result of the CI for this long is a time-out.
        ci_timeout: Span,
        /// No review for this long is a time-out.
        review_timeout: Span,
        /// An unanswered escalation is repeated this often.
        escalation_renotify: Span,
        /// An escalation unanswered for this long blocks the task.
        escalation_timeout: Span,
        queue_timeout: Span,
        /// A working session without a new phase for this long is replaced.
        session_timeout: Span,
        /// Between two looks at an agent's prompt.
        idle_look: Span,
        /// An agent not seen for this long is shown as stale.
        stale_after: Span,
        /// How often the forge is asked.
        forge_poll: Span,
        /// A message without acknowledgement for this long is sent again.
        ack_timeout: Span,
        /// Claude Code that has not reported by then has no working hooks.
        hook_silence: Span,
        /// After the merge, for the agent to say done.
        done_grace: Span,
        /// Before the second restart; doubles each time.
        restart_backoff: Span,
        restart_backoff_max: Span,
        /// Slow look at phase files, should a notification be lost.
        phase_rescan: Span,
        /// For a session to come up.
        /// A run of `tree.setup` or `tree.teardown`.
        setup_timeout: Span,
        start_grace: Span,
        /// For a session to end before it is killed.
        stop_grace: Span,
        /// How long one turn of a headless session may take.
        turn_timeout: Span,
        /// How often a session's `last_seen` is renewed.
        heartbeat: Span,
        /// For a session to save its work and exit.
        handoff_timeout: Span,
        /// Outside trouble without a known end is waited for this long.
        park: Span,
        /// Between two polls of checks by the idle hook.
        check_backoff: Span,
        /// An action session idle for this long is ended.
        action_idle_timeout: Span,
        /// An action session is ended after this long in any case.
        action_max_lifetime: Span,
        /// Longest run of the supervisor.
        supervisor_session: Span,
        /// A vault action nobody decided is rejected.
        vault_timeout: Span,
        /// An approval of a vault action that was not used is void.
        vault_approval: Span,
        /// Longest look of the vault's agent at an action.
        vault_look: Span,
        /// Longest run of a vault action's program.
        vault_handler: Span,
        /// A dependency open for longer is reported.
        stale_dependency: Span,
        /// An issue that nobody touched for longer is looked at.
        stale_issue: Span,
    }
}

table! {
    Limits {
        /// CI failures handed to the agent.
        ci_fixes: u32,
        /// Change requests handed to the agent.
        review_rounds: u32,
        /// Infrastructure failures retried per head.
        infra_retries: u32,
        /// Looks at an idle prompt before the session is given up.
        idle_looks: u32,
        /// Sessions started because one died.
        restarts: u32,
        /// Merge conflicts handed to the agent.
        merge_conflicts: u32,
        /// `done` claimed without a merge.
        premature_done: u32,
        /// Attempts to deliver a message.
        delivery_tries: u32,
        /// Nothing new begins while this much of a rate limit is used.
        rate_limit_percent: u32,
        /// Lines of the terminal in a diagnostic comment.
        pane_lines: u32,
        /// Sessions that hand over because of a full context, per task.
        handoffs: u32,
        checkpoints: u32,
        /// Issues that one review may file.
        review_followups: u32,
        /// Issues that one session may file by itself.
        session_issues: u32,
        /// Issues that all sessions of the project may file by themselves within a day.
        session_issues_per_day: u32,
        /// Issues the planner may file per run.
        planner_issues: u32,
        /// Predictions the predictor may file per run.
        predictor_issues: u32,
        /// Deeds of the gardener per run.
        gardener_actions: u32,
        /// Duplicates that the gardener may close per run.
        gardener_closes: u32,
        /// Commits of the main branch after which `AGENTS.md` is looked at again; 0 for never.
        gardener_refresh: u32,
        /// Scheduled roles wait while less memory is free.
        min_free_memory_mb: u64,
    }
}

table! {
    /// `[health]`: when something is wrong.
    Health {
        /// Less free memory is a crisis.
        min_memory_mb: u64,
        /// More swap in use is a crisis.
        max_swap_mb: u64,
        /// A fuller disk is told.
        max_disk_percent: u32,
        /// A load over 15 minutes of more than this share of the cores is told.
        max_load_percent: u64,
        /// An error that our own log has so often within an hour is told.
        max_log_errors: u64,
        /// Nothing that could go on for this long stands still.
        stalled_after: Span,
        /// Logs and working trees of what is over are kept this long.
        keep: Span,
        /// A warning that somebody wants ignored is not told for this long.
        ignore_for: Span,
        /// Whether the supervisor carries out safe remedies, or only tells them.
        remedies: bool,
        /// Whether a session is asked about what no remedy covers.
        ask_model: bool,
    }
}
