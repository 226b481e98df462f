//! The reaction matrix of the phase protocol, cell by cell.

use std::time::Duration;

use super::{HOUR, Play, alive, infra, red, sha};
use crate::task::{
    Ci, CiVerdict, Effect, Event, Exit, Headline, Phase, PrFact, QueueOutcome, ReviewMode, ReviewVerdict,
    Stage, State,
};

#[test]
fn awaiting_ci_brings_the_branch_to_the_forge_opens_the_pr_and_polls_ci() {
    let play = Play::working().says(Phase::AwaitingCi).is(State::AwaitingCi);
    assert_eq!(play.kinds(), ["sync_branch"]);
    let play = play.synced(sha('a'));
    assert_eq!(play.kinds(), ["open_pull_request", "run_checks"]);
    let play = play.event(Event::PullRequestOpened { number: 7 });
    assert_eq!(play.task.pr, Some(7));
}

#[test]
fn awaiting_ci_with_a_pr_already_open_opens_no_second_one() {
    let play = Play::awaiting_ci().ci(red()).says(Phase::AwaitingCi).synced(sha('b'));
    assert_eq!(play.kinds(), ["run_checks"]);
}

#[test]
fn awaiting_ci_with_nothing_pushed_goes_back_to_the_agent_and_counts() {
    let play = Play::working().says(Phase::AwaitingCi).event(Event::BranchSynced {
        head: None,
        protected: vec![],
        secret: None,
        risk: None,
    });
    assert_eq!(play.told(), [Headline::CiFailed]);
    assert_eq!(play.task.attempts.ci_fixes, 1);
    play.is(State::Working);
}

#[test]
fn awaiting_ci_on_success_injects_ci_passed_and_asks_for_a_review() {
    let play = Play::awaiting_ci().ci(CiVerdict::Passed).is(State::AwaitingReview);
    assert_eq!(play.told(), [Headline::CiPassed]);
    assert!(play.kinds().contains(&"request_review"));
    assert!(play.kinds().contains(&"record_ci_result"));
}

#[test]
fn awaiting_ci_on_success_without_a_reviewer_goes_to_the_merge_queue() {
    let mut play = Play::awaiting_ci();
    play.policy.review = ReviewMode::None;
    let play = play.ci(CiVerdict::Passed).is(State::MergeQueue);
    assert!(play.kinds().contains(&"enqueue"));
    assert_eq!(play.told(), [Headline::CiPassed]);
}

#[test]
fn awaiting_ci_without_any_ci_counts_as_green() {
    let mut play = Play::working();
    play.policy.has_ci = false;
    let play = play.says(Phase::AwaitingCi).synced(sha('a')).is(State::AwaitingReview);
    assert_eq!(play.kinds(), ["open_pull_request", "request_review"]);
    // Nobody may read anywhere that CI passed.
    assert_eq!(play.task.ci, Ci::None);
    play.review(ReviewVerdict::Approve).is(State::MergeQueue);
}

#[test]
fn an_approval_from_before_there_was_a_ci_waits_for_it() {
    let mut play = Play::working();
    play.policy.has_ci = false;
    let mut play = play.says(Phase::AwaitingCi).synced(sha('a')).is(State::AwaitingReview);
    play.policy.has_ci = true;
    let play = play.review(ReviewVerdict::Approve).is(State::AwaitingCi);
    play.ci(CiVerdict::Passed).is(State::MergeQueue);
}

#[test]
fn awaiting_ci_on_failure_injects_the_error_log() {
    let play = Play::awaiting_ci().ci(red()).is(State::Working);
    let details = play.ordered.iter().find_map(|e| match e {
        Effect::Deliver { headline: Headline::CiFailed, details, .. } => Some(details.clone()),
        _ => None,
    });
    assert!(details.expect("a message").contains("boom"));
    assert_eq!(play.task.attempts.ci_fixes, 1);
}

#[test]
fn awaiting_ci_three_fixes_are_allowed_and_the_fourth_failure_blocks() {
    let mut play = Play::awaiting_ci();
    for digit in ['b', 'c', 'd'] {
        play = play.ci(red()).is(State::Working).says(Phase::AwaitingCi).synced(sha(digit));
    }
    let play = play.ci(red()).is(State::Blocked);
    assert!(play.kinds().contains(&"end_session"));
    assert!(play.told().is_empty());
}

#[test]
fn awaiting_ci_infrastructure_is_retried_once_without_costing_a_fix_then_a_person_is_asked() {
    let play = Play::awaiting_ci().ci(infra()).is(State::AwaitingCi);
    assert!(play.kinds().contains(&"run_checks"));
    assert_eq!(play.task.attempts.ci_fixes, 0);
    let play = play.ci(infra()).is(State::Escalated);
    assert_eq!(play.task.attempts.ci_fixes, 0);
    assert!(play.told().is_empty(), "the agent cannot mend infrastructure");
}

#[test]
fn awaiting_ci_on_timeout_injects_ci_timeout_and_escalates() {
    let play = Play::awaiting_ci().later(Duration::from_secs(1800)).is(State::Escalated);
    assert_eq!(play.told(), [Headline::CiTimeout]);
    assert_eq!(play.notices(), 1);
    assert!(alive(&play));
}

#[test]
fn awaiting_ci_the_runner_reports_its_own_timeout() {
    let play = Play::awaiting_ci().ci(CiVerdict::TimedOut { log: String::new() }).is(State::Escalated);
    assert_eq!(play.told(), [Headline::CiTimeout]);
}

#[test]
fn awaiting_ci_the_clock_of_the_timeout_starts_when_a_runner_is_free() {
    let play =
        Play::awaiting_ci().later(Duration::from_secs(1700)).event(Event::ChecksStarted { sha: sha('a') });
    play.later(Duration::from_secs(1700))
        .is(State::AwaitingCi)
        .later(Duration::from_secs(100))
        .is(State::Escalated);
}

#[test]
fn awaiting_ci_a_late_success_after_the_timeout_still_counts() {
    let play = Play::awaiting_ci().later(Duration::from_secs(1800)).ci(CiVerdict::Passed);
    play.is(State::AwaitingReview);
}

#[test]
fn awaiting_ci_an_answer_for_another_commit_or_try_is_stale() {
    let mut play = Play::awaiting_ci();
    play.refuses(Event::ChecksFinished { sha: sha('b'), run: 1, verdict: CiVerdict::Passed, flaky: false });
    play.refuses(Event::ChecksFinished { sha: sha('a'), run: 9, verdict: CiVerdict::Passed, flaky: false });
    assert_eq!(play.task.state, State::AwaitingCi);
}

#[test]
fn awaiting_ci_a_new_push_runs_ci_on_the_new_head() {
    let mut play = Play::awaiting_ci().event(Event::HeadMoved).synced(sha('b'));
    assert_eq!(play.kinds(), ["run_checks"]);
    play.refuses(Event::ChecksFinished { sha: sha('a'), run: 1, verdict: CiVerdict::Passed, flaky: false });
    play.ci(CiVerdict::Passed).is(State::AwaitingReview);
}

#[test]
fn awaiting_review_waits_and_a_repeated_claim_does_not_move_the_deadline() {
    let play = Play::awaiting_review();
    let deadline = play.task.deadline;
    let mut play = play.says(Phase::AwaitingReview);
    play.now = play.now.after(HOUR);
    let play = play.synced(sha('a')).is(State::AwaitingReview);
    assert_eq!(play.task.deadline, deadline);
    assert!(play.kinds().is_empty());
}

#[test]
fn awaiting_review_on_request_changes_injects_the_review_text() {
    let play = Play::awaiting_review().review(ReviewVerdict::RequestChanges).is(State::Working);
    assert_eq!(play.told(), [Headline::ChangesRequested]);
    assert_eq!(play.task.attempts.review_rounds, 1);
}

#[test]
fn awaiting_review_claimed_late_on_a_head_that_must_change_leaves_it_working() {
    let play = Play::awaiting_review().review(ReviewVerdict::RequestChanges).says(Phase::AwaitingReview);
    let play = play.synced(sha('a')).is(State::Working);
    assert!(play.ordered.is_empty());
    play.says(Phase::AwaitingReview).synced(sha('b')).is(State::AwaitingCi);
}

#[test]
fn awaiting_review_after_fixes_the_new_head_goes_through_ci_first() {
    let play = Play::awaiting_review().review(ReviewVerdict::RequestChanges).says(Phase::AwaitingReview);
    let play = play.synced(sha('b')).is(State::AwaitingCi);
    play.ci(CiVerdict::Passed).is(State::AwaitingReview).review(ReviewVerdict::Approve).is(State::MergeQueue);
}

#[test]
fn awaiting_review_on_approve_injects_approved_and_queues_the_branch() {
    let play = Play::awaiting_review().review(ReviewVerdict::Approve).is(State::MergeQueue);
    assert_eq!(play.told(), [Headline::Approved]);
    assert_eq!(play.ordered.last(), Some(&Effect::Enqueue { head: sha('a') }));
}

#[test]
fn awaiting_review_on_timeout_after_three_hours_injects_no_review_and_escalates() {
    let play = Play::awaiting_review().later(3 * HOUR - Duration::from_secs(1)).is(State::AwaitingReview);
    let play = play.later(Duration::from_secs(1)).is(State::Escalated);
    assert_eq!(play.told(), [Headline::NoReview]);
    play.review(ReviewVerdict::Approve).is(State::MergeQueue);
}

#[test]
fn awaiting_review_claimed_late_does_not_take_a_question_about_that_commit_back() {
    let unusable = Event::EffectGaveUp { effect: "request_review".into(), error: "rubbish".into() };
    for asked in [Play::awaiting_review().event(unusable), Play::awaiting_review().later(3 * HOUR)] {
        let play = asked.is(State::Escalated).says(Phase::AwaitingReview).is(State::Escalated);
        let play = play.synced(sha('a')).is(State::Escalated);
        assert!(play.ordered.is_empty(), "nobody is asked for a review again");
        // New work is new, and a person's word counts all the same.
        let play = play.says(Phase::AwaitingReview).synced(sha('b')).is(State::AwaitingCi);
        play.ci(CiVerdict::Passed).review(ReviewVerdict::Approve).is(State::MergeQueue);
    }
}

#[test]
fn awaiting_review_a_review_of_an_older_commit_does_not_count() {
    let mut play = Play::awaiting_review();
    play.refuses(Event::ReviewPosted {
        sha: sha('9'),
        verdict: ReviewVerdict::Approve,
        by: "ann".into(),
        by_agent: false,
        body: String::new(),
    });
}

#[test]
fn awaiting_review_a_push_voids_the_approval() {
    let play = Play::in_queue().event(Event::HeadMoved).synced(sha('b')).is(State::AwaitingCi);
    assert!(play.kinds().contains(&"dequeue"));
    play.ci(CiVerdict::Passed).is(State::AwaitingReview);
}

#[test]
fn awaiting_review_five_rounds_are_allowed_and_the_sixth_blocks() {
    let mut play = Play::awaiting_review();
    for digit in ['b', 'c', 'd', 'e', 'f'] {
        play = play.review(ReviewVerdict::RequestChanges).is(State::Working).says(Phase::AwaitingReview);
        play = play.synced(sha(digit)).ci(CiVerdict::Passed);
    }
    play.review(ReviewVerdict::RequestChanges).is(State::Blocked);
}

#[test]
fn awaiting_review_an_approval_before_ci_is_done_counts_when_it_is() {
    let play = Play::awaiting_ci().review(ReviewVerdict::Approve).is(State::AwaitingCi);
    play.ci(CiVerdict::Passed).is(State::MergeQueue);
}

#[test]
fn awaiting_review_discuss_asks_a_person() {
    Play::awaiting_review().review(ReviewVerdict::Discuss).is(State::Escalated);
}

#[test]
fn escalate_notifies_with_reason_and_link_and_the_session_stays_alive() {
    let play = Play::escalated().is(State::Escalated);
    let Some(Effect::Notify(notice)) = play.ordered.first() else { panic!("no notice") };
    assert!(notice.body.contains("because") && notice.body.contains("#42"), "{}", notice.body);
    assert_eq!(play.task.session.stage, Stage::Alive);
    assert!(play.kinds().contains(&"comment"));
}

#[test]
fn escalate_is_asked_again_every_six_hours() {
    let mut play = Play::escalated();
    for _ in 0..3 {
        play = play.later(6 * HOUR).is(State::Escalated);
        assert_eq!(play.kinds(), ["notify"]);
    }
    assert_eq!(play.task.escalation.as_ref().map(|e| e.notices), Some(4));
}

#[test]
fn escalate_after_24_hours_the_issue_is_blocked_and_the_session_ended() {
    let play = Play::escalated().later(24 * HOUR).is(State::Blocked);
    assert_eq!(play.kinds()[0], "end_session");
    assert!(play.labels().0.contains(&"blocked".to_owned()));
}

#[test]
fn escalate_a_person_answers_and_the_task_is_working_again() {
    let play = Play::escalated().event(Event::Answered { by: "ann".into(), text: "use blue".into() });
    assert_eq!(play.told(), [Headline::Answer]);
    play.is(State::Working);
}

#[test]
fn escalate_nobody_asked_so_an_answer_is_refused() {
    Play::working().refuses(Event::Answered { by: "ann".into(), text: "hm".into() });
}

#[test]
fn done_and_merged_ends_the_session_cleans_labels_and_closes_the_issue() {
    let play = Play::merged().is(State::Merged);
    assert_eq!(play.told(), [Headline::Merged]);
    let play = play.says(Phase::Done).is(State::Closed);
    assert_eq!(play.kinds(), ["end_session", "set_labels", "close_issue", "clean_up"]);
    assert!(play.labels().1.contains(&"in-progress".to_owned()));
    play.ended(Exit::Done).is(State::Closed);
}

#[test]
fn done_but_not_merged_injects_pr_not_merged_yet() {
    let play = Play::working().says(Phase::Done);
    assert_eq!(play.kinds(), ["verify_merge"]);
    let play = play.event(Event::MergeLooked { merged_as: None });
    assert_eq!(play.told(), [Headline::NotMerged]);
    play.is(State::Working);
}

#[test]
fn done_said_too_early_counts_as_soon_as_the_merge_is_there() {
    let play = Play::in_queue().says(Phase::Done).event(Event::MergeLooked { merged_as: None });
    let play = play.is(State::MergeQueue);
    let landed = QueueOutcome::Landed { sha: sha('f') };
    play.event(Event::QueueReported { head: sha('a'), outcome: landed }).is(State::Closed);
}

#[test]
fn done_verified_by_git_even_if_nobody_told_us_of_the_merge() {
    let play = Play::awaiting_review().says(Phase::Done);
    play.event(Event::MergeLooked { merged_as: Some(sha('f')) }).is(State::Closed);
}

#[test]
fn done_claimed_again_and_again_asks_a_person() {
    let mut play = Play::working();
    for _ in 0..6 {
        play = play.says(Phase::Done).event(Event::MergeLooked { merged_as: None });
    }
    play.is(State::Escalated);
}

#[test]
fn done_never_said_after_the_merge_closes_after_a_grace() {
    Play::merged().later(Duration::from_secs(300)).is(State::Closed);
}

#[test]
fn failed_blocks_ends_the_session_restores_backlog_and_posts_the_last_lines() {
    let play = Play::working().says(Phase::Failed).is(State::Blocked);
    assert_eq!(play.kinds(), ["end_session", "set_labels", "clean_up", "notify"]);
    let (add, remove) = play.labels();
    assert_eq!((add, remove), (vec!["blocked".into(), "backlog".into()], vec!["in-progress".into()]));
    assert!(play.task.reason.as_deref().is_some_and(|r| r.contains("because")));
    let play = play.ended(Exit::Failed).is(State::Blocked);
    let Some(Effect::Comment { body, .. }) = play.ordered.first() else { panic!("no diagnosis") };
    assert!(body.contains("last words") && body.contains("because"), "{body}");
}

#[test]
fn idle_prompt_three_consecutive_looks_end_the_session_first_then_fail() {
    let look = |p: Play, at_prompt| {
        let generation = p.task.session.generation;
        p.event(Event::IdleLooked { generation, at_prompt })
    };
    let play = look(look(Play::working(), true), true).is(State::Working);
    let play = look(look(look(play, false), true), true).is(State::Working);
    // The third one asks for a phase, once, and the count begins anew.
    let play = look(play, true).is(State::Working);
    let [Effect::Deliver { headline: Headline::WritePhase, details, .. }] = &play.ordered[..] else {
        panic!("{:?}", play.ordered)
    };
    assert!(details.contains("PHASE:awaiting_ci"), "{details}");
    let play = look(look(look(play, true), true), true).is(State::Blocked);
    assert_eq!(play.ordered[0], Effect::EndSession { generation: 1, exit: Exit::IdlePrompt });
    assert!(play.task.reason.as_deref().is_some_and(|r| r.starts_with("idle_prompt")));
    assert!(play.ordered.iter().all(|e| !matches!(e, Effect::Deliver { .. })), "the session is dead by then");
}

#[test]
fn idle_prompt_does_not_apply_once_any_phase_was_written() {
    let mut play = Play::awaiting_ci();
    play.refuses(Event::IdleLooked { generation: 1, at_prompt: true });
    // Back at work, it may have forgotten to hand in: it is asked, once, and its deadline does the rest.
    let looked = || Event::IdleLooked { generation: 1, at_prompt: true };
    let play = play.ci(red()).event(looked()).event(looked()).event(looked()).is(State::Working);
    assert!(matches!(play.ordered[..], [Effect::Deliver { headline: Headline::WritePhase, .. }]));
    let mut play = play;
    play.refuses(looked());
    // Handing in again begins anew.
    let play = play.says(Phase::AwaitingCi);
    assert!(!play.task.session.reminded);
}

#[test]
fn a_pr_closed_without_a_merge_blocks() {
    Play::awaiting_review().event(Event::PullRequestObserved { fact: PrFact::Closed }).is(State::Blocked);
}

#[test]
fn a_pr_merged_by_someone_else_is_merged() {
    let play =
        Play::awaiting_review().event(Event::PullRequestObserved { fact: PrFact::Merged { sha: sha('f') } });
    assert_eq!(play.told(), [Headline::Merged]);
    play.is(State::Merged);
}

#[test]
fn merge_queue_a_conflict_goes_to_the_agent_with_the_files() {
    let outcome = QueueOutcome::Conflict { files: vec!["src/a.rs".into()], with: None };
    let play = Play::in_queue().event(Event::QueueReported { head: sha('a'), outcome }).is(State::Working);
    assert_eq!(play.told(), [Headline::MergeConflict]);
}

#[test]
fn merge_queue_red_on_the_main_branch_costs_a_fix() {
    let outcome = QueueOutcome::Red { summary: "exit 1".into(), log: "boom".into() };
    let play = Play::in_queue().event(Event::QueueReported { head: sha('a'), outcome }).is(State::Working);
    assert_eq!(play.told(), [Headline::CiFailed]);
    assert_eq!(play.task.attempts.ci_fixes, 1);
}

#[test]
fn merge_queue_changes_requested_meanwhile_take_it_out() {
    let play = Play::in_queue().review(ReviewVerdict::RequestChanges).is(State::Working);
    assert_eq!(play.kinds(), ["dequeue", "deliver"]);
}

#[test]
fn an_unusable_phase_file_is_shown_on_the_task_and_changes_nothing_else() {
    let play = Play::working().event(Event::PhaseRejected { generation: 1, why: "a symlink".into() });
    assert!(play.task.reason.as_deref().is_some_and(|r| r.contains("a symlink")));
    assert_eq!(play.kinds(), ["notify"]);
    play.is(State::Working);
}

#[test]
fn a_phase_of_an_earlier_session_is_stale() {
    let mut play = Play::working().ended(Exit::Crashed);
    play.refuses(Event::PhaseClaimed {
        generation: 1,
        phase: Phase::Done,
        reason: None,
        refusal: None,
        plan: None,
    });
}
