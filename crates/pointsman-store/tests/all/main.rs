//! The store from outside: one contract for every backend, and what is special to SQLite files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod files;
mod forge;
mod kill;
mod migration;
mod one_writer;
mod world;

/// Runs the contract's stories against one backend. A second backend adds a second call.
macro_rules! keeps_the_contract {
    ($backend:ident, $fresh:path, [$($group:ident :: $story:ident),+ $(,)?]) => {
        mod $backend {
            $(#[test]
            fn $story() {
                let mut fresh = $fresh();
                crate::contract::$group::$story(&mut fresh.store);
            })+
        }
    };
}

keeps_the_contract!(
    sqlite,
    crate::world::Fresh::new,
    [
        agents::r1_3_a_session_is_registered_before_it_is_launched,
        agents::r1_4_last_seen_is_touched_for_live_sessions_and_never_goes_back,
        agents::r1_7_an_end_is_terminated_or_crashed,
        agents::a_measurement_outlives_rows_that_are_written_later,
        agents::agents_are_the_newest_sessions_with_what_their_tasks_are_at,
        agents::a_session_counts_those_of_its_identity_that_died_before_it,
        agents::events_of_a_session_are_counted,
        agents::r2_4_a_work_state_is_committed_with_its_signal,
        agents::signals_follow_their_event_and_are_read_on_from_where_one_was,
        commit::a_change_is_an_event_a_snapshot_and_its_effects,
        commit::changes_of_one_commit_keep_their_order,
        commit::an_error_in_the_third_change_writes_none_of_them,
        commit::a_change_about_two_tasks_is_refused,
        commit::the_same_input_counts_once,
        commit::a_duplicate_still_settles_its_effect,
        commit::an_effect_that_failed_frees_the_lane,
        commit::cursors_and_sessions_are_written_with_the_event,
        commit::hostile_text_comes_back_as_it_was,
        commit::no_change_is_no_event,
        commit::a_commit_has_a_key_that_tells_whether_it_happened,
        commit::events_are_numbered_in_their_project_without_gaps,
        commit::what_has_a_history_is_not_written_without_an_event,
        commit::a_memory_comes_back_as_it_was_and_one_that_cannot_be_read_stops_nobody_else,
        commit::a_time_is_found_in_the_log_without_reading_it,
        ledger::a_report_that_comes_twice_or_late_counts_once,
        ledger::a_day_is_charged_what_it_adds,
        ledger::a_clock_set_back_over_midnight_charges_nothing_twice,
        ledger::a_day_is_shared_out_by_role,
        ledger::an_issue_is_charged_for_its_reviews_and_its_task_is_not,
        ledger::time_of_sessions_that_told_nothing_is_counted_apart,
        ledger::wall_time_is_counted_from_starts_and_ends_in_parallel_and_over_midnight,
        ledger::a_session_after_a_death_is_a_restart_of_the_day_it_began,
        ledger::a_day_that_is_none_is_refused,
        ledger::a_checkpoint_is_remembered_once_under_its_number,
        ledger::a_checkpoint_can_be_forgotten_unless_it_is_the_newest,
        ledger::an_entry_has_a_priority_attempts_and_a_style,
        queue_states::a_merge_queue_is_at_work_until_it_is_paused_and_keeps_its_first_reason,
        queue_states::an_audit_is_counted_once_with_how_far_it_came,
        queue_states::a_landing_is_found_by_its_candidate,
        queue_states::a_gates_pace_is_the_middle_of_its_last_runs,
        notices::a_notice_is_written_once_and_told_by_each_for_itself,
        notices::a_lane_is_told_in_its_order_and_the_other_does_not_wait_for_it,
        notices::the_same_words_and_the_same_question_are_found,
        notices::threads_are_found_by_what_they_are_about_and_by_their_first_message,
        notices::what_people_said_is_written_once_and_taken_once,
        outbox::only_the_first_effect_of_each_task_is_due,
        outbox::a_postponed_effect_holds_its_lane_and_no_other,
        outbox::a_lane_that_somebody_works_on_is_passed_over,
        outbox::a_new_generation_supersedes_messages_to_older_ones_only,
        outbox::an_effect_can_be_superseded_by_hand,
        outbox::a_settled_effect_stays_what_it_is,
        outbox::a_message_goes_from_queued_to_acknowledged,
        outbox::a_message_is_sent_and_settled_in_one_go,
        outbox::an_acknowledgement_that_overtakes_the_record_of_sending_stays,
        outbox::a_message_nobody_acknowledges_is_shown_as_such,
        questions::questions_are_numbered_over_all_projects_and_found,
        questions::a_question_that_is_settled_stays_what_it_is,
        questions::a_workflow_asks_one_question_of_a_kind_at_a_time,
        questions::a_question_is_not_written_without_an_event_or_a_number,
        rows::events_are_filtered_and_paged,
        rows::open_tasks_are_those_not_closed,
        rows::every_state_of_a_task_is_stored_under_its_name,
        rows::an_ended_session_stays_ended,
        rows::sessions_are_listed_by_project_and_life,
        rows::a_verdict_is_remembered_per_object_and_gate,
        rows::asking_twice_to_land_the_same_head_is_asking_once,
        rows::an_entry_is_updated_and_leaves_the_line,
        rows::a_removed_project_is_not_listed_and_can_come_back,
        rows::cursors_belong_to_a_project_or_to_nobody,
        runs::runs_are_numbered_and_found,
        vault::an_action_is_written_with_its_event_and_found_while_it_is_open,
        vault::a_name_in_the_vault_stays_with_its_action,
    ]
);
