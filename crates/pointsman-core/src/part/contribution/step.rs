//! The reaction of a contribution to facts and to time.

use super::{
    Awaited, Ci, CiVerdict, Contribution, Fact, Policy, PrFact, Progress, Pushed, QueueOutcome, Reaction,
    Review, ReviewMode, ReviewVerdict, Wait,
};
use crate::ids::{Number, Sha};
use crate::known_secrets::FoundSecrets;
use crate::part::question::Cause;
use crate::review::Risk;
use crate::task::Headline;
use crate::time::Timestamp;
use crate::words;
use crate::workflow::Refused;

/// The facts that the rules look at beside the contribution itself.
#[derive(Clone, Copy, Debug)]
pub struct OwnerFacts<'a> {
    /// The reason of the question that its owner asks a person at present.
    pub asked: Option<Cause>,
    pub policy: &'a Policy,
    pub now: Timestamp,
}

type Reactions = Vec<Reaction>;

/// A review, without its verdict.
#[derive(Clone, Copy)]
struct Said<'a> {
    by: &'a str,
    /// Whether our own review account wrote it, and not a person.
    by_agent: bool,
    body: &'a str,
}

/// The most hosts that one question is about.
const HOSTS_ASKED: usize = 8;

impl Contribution {
    /// Takes in a fact. What it says about a commit that is not the head is refused.
    pub fn happened(&mut self, fact: &Fact<'_>, around: &OwnerFacts<'_>) -> Result<Reactions, Refused> {
        let mut reactions = Vec::new();
        match *fact {
            Fact::Pushed { head: None, secret: Some(found), .. } => {
                self.leave_queue(&mut reactions);
                let words = words::message::withheld(&found.what);
                self.hand_back_red(words::reason::withheld(&found.what), words, around, &mut reactions);
            }
            Fact::Pushed { head, protected, risk, secret } => {
                if let Some(found) = secret {
                    self.warn(found, &mut reactions);
                }
                self.branch_pushed(head, (protected, risk), around, &mut reactions);
            }
            Fact::HeadMoved => match self.awaited() {
                Some(Awaited::Push | Awaited::Checks | Awaited::Review | Awaited::Queue) => {
                    reactions.push(Reaction::Push);
                }
                None => return Err(Refused::NotNow(words::task::refused::NO_CLAIM.to_owned())),
            },
            Fact::Opened { number } => self.opened(number)?,
            Fact::Observed(PrFact::Open) => {}
            Fact::Observed(PrFact::Closed) => reactions.push(Reaction::Closed),
            Fact::Observed(PrFact::Merged { sha }) | Fact::FoundMerged { sha } => {
                self.merged(sha, &mut reactions);
            }
            Fact::HostsAllowed => self.hosts_allowed(around, &mut reactions)?,
            Fact::ChecksStarted { sha } => self.checks_started(sha, around)?,
            Fact::ChecksFinished { sha, run, verdict } => {
                self.checks_finished(sha, run, verdict, around, &mut reactions)?;
            }
            Fact::Reviewed { sha, verdict, by_agent: true, body, .. }
                if self.head() == Some(sha)
                    && matches!(around.policy.review, ReviewMode::Risk(_))
                    && verdict != ReviewVerdict::RequestChanges
                    && !(verdict == ReviewVerdict::Approve
                        && self.judge(around.policy.review) == ReviewMode::Command) =>
            {
                self.found(body, around, &mut reactions);
            }
            Fact::Reviewed { sha, verdict: ReviewVerdict::Approve, by_agent: true, .. }
                if self.head() == Some(sha) && !self.protected().is_empty() =>
            {
                if !self.is_approved(sha) {
                    self.ask_person(around, &mut reactions);
                }
            }
            Fact::Reviewed { sha, verdict, by, by_agent, body } => {
                let said = Said { by, by_agent, body };
                self.reviewed(sha, verdict, said, around, &mut reactions)?;
            }
            Fact::QueueReported { head, outcome } => {
                self.queue_reported(head, outcome, around, &mut reactions)?;
            }
        }
        Ok(reactions)
    }

    /// Looks at the clock. Every wait has an end.
    pub fn time_passed(&mut self, around: &OwnerFacts<'_>) -> Reactions {
        let mut reactions = Vec::new();
        let Some(what) = self.awaited().filter(|_| self.wake_at().is_some_and(|at| at <= around.now)) else {
            return reactions;
        };
        match what {
            Awaited::Push | Awaited::Checks => match self.ci() {
                Ci::Pending { .. } => self.ci_timed_out(around, &mut reactions),
                Ci::None | Ci::Passed | Ci::Failed { .. } | Ci::TimedOut => {
                    ask(Cause::Daemon, words::reason::NEVER_SYNCED.to_owned(), &mut reactions);
                }
            },
            Awaited::Review => {
                let timeout = around.policy.review_timeout;
                tell(Headline::NoReview, words::message::no_review(timeout), &mut reactions);
                ask(Cause::Review, words::reason::no_review(timeout), &mut reactions);
            }
            Awaited::Queue => {
                self.leave_queue(&mut reactions);
                ask(Cause::Daemon, words::reason::QUEUE_STUCK.to_owned(), &mut reactions);
            }
        }
        self.rest();
        reactions
    }

    /// Takes the branch out of the merge queue if it is in there.
    pub fn leave_queue(&mut self, reactions: &mut Reactions) {
        if self.awaited() == Some(Awaited::Queue) {
            self.rest();
            reactions.push(Reaction::Dequeue);
        }
    }

    /// Tells about everything that looks like a secret once, however often it is pushed.
    fn warn(&mut self, found: &FoundSecrets, reactions: &mut Reactions) {
        let before = self.warned.len();
        self.warned.extend(found.fingerprints.iter().cloned());
        if self.warned.len() > before {
            tell(Headline::WritePhase, words::message::looks_like_secret(&found.what), reactions);
        }
    }

    fn pushed_mut(&mut self) -> Option<&mut Pushed> {
        match &mut self.progress {
            Progress::Local { .. } => None,
            Progress::Pushed { pushed, .. } => Some(pushed),
            Progress::Merged { pushed, .. } => pushed.as_mut(),
        }
    }

    /// The branch is on the forge as `head`: everything about it is decided here.
    fn branch_pushed(
        &mut self,
        head: Option<&Sha>,
        (protected, risk): (&[String], Option<&Risk>),
        around: &OwnerFacts<'_>,
        reactions: &mut Reactions,
    ) {
        let Some(head) = head else {
            self.leave_queue(reactions);
            let summary = words::reason::NOTHING_PUSHED.to_owned();
            self.hand_back_red(summary, words::message::nothing_pushed(), around, reactions);
            return;
        };
        match &mut self.progress {
            Progress::Merged { .. } => return,
            Progress::Local { until } => {
                let wait = until.map(|until| Wait { what: Awaited::Push, until });
                self.progress = Progress::Pushed { pushed: Pushed::new(head.clone(), None), wait };
                self.attempts.infra_retries = 0;
            }
            Progress::Pushed { pushed, .. } if pushed.head != *head => {
                // A verdict and an approval are bound to a commit: any push voids them.
                *pushed = Pushed::new(head.clone(), pushed.pr);
                self.attempts.infra_retries = 0;
                self.leave_queue(reactions);
            }
            Progress::Pushed { wait: Some(Wait { what: Awaited::Queue, .. }), .. } => return,
            Progress::Pushed { pushed: Pushed { review: Review::ChangesRequested { .. }, .. }, .. } => {
                // Nothing was pushed since the reviewer wanted changes: they are still to be made.
                self.hand_back(words::reason::CHANGES_STILL_WANTED.to_owned(), reactions);
                return;
            }
            Progress::Pushed { .. } => {}
        }
        if let Some(pushed) = self.pushed_mut() {
            pushed.protected = protected.to_vec();
            // What the review agent found of this very commit is not forgotten because it is handed in again.
            let is_raised =
                matches!((&pushed.risk, risk), (Some(known), Some(now)) if known.class > now.class);
            if !is_raised {
                pushed.risk = risk.cloned();
            }
        }
        if self.pr().is_none() {
            reactions.push(Reaction::Open);
        }
        if self.needs_no_ci(around) {
            self.green(around, reactions);
        } else if self.pending().is_none() {
            self.check(around, reactions);
        }
    }

    fn opened(&mut self, number: Number) -> Result<(), Refused> {
        let pushed = self.pushed_mut().ok_or_else(|| {
            // An earlier claim of the work asked for it. It is found again when there is something to show in it.
            Refused::Stale(words::task::refused::NOTHING_TO_OPEN.to_owned())
        })?;
        pushed.pr = Some(number);
        Ok(())
    }

    /// A runner was free: only now does the clock of the time-out start.
    fn checks_started(&mut self, sha: &Sha, around: &OwnerFacts<'_>) -> Result<(), Refused> {
        match &mut self.progress {
            Progress::Pushed {
                pushed: Pushed { head, ci: Ci::Pending { .. }, .. },
                wait: Some(Wait { what: Awaited::Push | Awaited::Checks, until }),
            } if head == sha => {
                *until = around.now.after(around.policy.ci_timeout);
                Ok(())
            }
            Progress::Local { .. } | Progress::Pushed { .. } | Progress::Merged { .. } => {
                Err(Refused::Stale(words::task::ci_not_awaited(sha, None)))
            }
        }
    }

    fn checks_finished(
        &mut self,
        sha: &Sha,
        run: u32,
        verdict: &CiVerdict,
        around: &OwnerFacts<'_>,
        reactions: &mut Reactions,
    ) -> Result<(), Refused> {
        let (awaited, last_run) = (self.awaited(), self.ci_run);
        let pushed =
            self.pushed_mut().filter(|pushed| pushed.head == *sha).filter(|pushed| match pushed.ci {
                Ci::Pending { run: ordered } => ordered == run,
                // A late answer is still an answer.
                Ci::TimedOut => last_run == run,
                Ci::None | Ci::Passed | Ci::Failed { .. } => false,
            });
        let Some(pushed) = pushed else {
            return Err(Refused::Stale(words::task::ci_not_awaited(sha, Some(run))));
        };
        let (ci, log) = match verdict {
            CiVerdict::Passed => (Ci::Passed, None),
            CiVerdict::Failed { summary, log } => {
                (Ci::Failed { infra: false, summary: summary.clone() }, Some(log))
            }
            CiVerdict::Infra { reason, log } => {
                (Ci::Failed { infra: true, summary: reason.clone() }, Some(log))
            }
            CiVerdict::Unreached { hosts, programs, log } => {
                (Ci::Failed { infra: true, summary: words::sandbox::unlisted(hosts, programs) }, Some(log))
            }
            CiVerdict::TimedOut { log } => (Ci::TimedOut, Some(log)),
        };
        pushed.ci = ci;
        pushed.log_end = log.map(|log| words::notice::log_end(log)).unwrap_or_default();
        reactions.push(Reaction::Record { text: words::message::ci_result(sha, verdict) });
        // Somebody who works on it meanwhile hands in something else. Otherwise the verdict decides, unless a person was
        // asked about something else.
        let decides = match awaited {
            Some(Awaited::Push | Awaited::Checks) => true,
            Some(Awaited::Review | Awaited::Queue) => false,
            None => around.asked == Some(Cause::Ci),
        };
        if !decides {
            return Ok(());
        }
        match verdict {
            CiVerdict::Passed => {
                let judge = self.judge(around.policy.review);
                let is_reviewed = judge != ReviewMode::None || !self.protected().is_empty();
                tell(Headline::CiPassed, words::message::ci_passed(sha, is_reviewed), reactions);
                self.green(around, reactions);
            }
            CiVerdict::Failed { summary, log } => {
                let words = words::message::ci_failed(sha, summary, log);
                self.hand_back_red(summary.clone(), words, around, reactions);
            }
            CiVerdict::Infra { reason, .. } => self.infra_trouble(reason, around, reactions),
            CiVerdict::Unreached { hosts, programs, .. } => self.unreached(hosts, programs, reactions),
            CiVerdict::TimedOut { .. } => self.ci_timed_out(around, reactions),
        }
        Ok(())
    }

    /// Whether CI has nothing to say about the head any more: it passed, or there is no CI. Without CI nothing is
    /// recorded, so that nobody reads that CI passed.
    fn needs_no_ci(&self, around: &OwnerFacts<'_>) -> bool {
        !around.policy.has_ci || *self.ci() == Ci::Passed
    }

    /// The head is green: on to the reviewer, or to the merge queue if there is nobody to ask.
    fn green(&mut self, around: &OwnerFacts<'_>, reactions: &mut Reactions) {
        let nobody_reviews = self.judge(around.policy.review) == ReviewMode::None;
        let Progress::Pushed { pushed, wait } = &mut self.progress else { return };
        let approved = matches!(pushed.review, Review::Approved { .. });
        if nobody_reviews && !approved && !pushed.protected.is_empty() {
            self.ask_person(around, reactions);
        } else if nobody_reviews || approved {
            let until = around.now.after(around.policy.queue_timeout);
            *wait = Some(Wait { what: Awaited::Queue, until });
            reactions.push(Reaction::Awaits(Awaited::Queue));
            reactions.push(Reaction::Enqueue { head: pushed.head.clone() });
        } else if !matches!(wait, Some(Wait { what: Awaited::Review, .. })) {
            let until = around.now.after(around.policy.review_timeout);
            *wait = Some(Wait { what: Awaited::Review, until });
            reactions.push(Reaction::Awaits(Awaited::Review));
            reactions.push(Reaction::RequestReview { sha: pushed.head.clone() });
        }
    }

    /// The review agent found something or did not decide, so the head is in a higher class. People are asked by the wait for
    /// their review. What the agent says about a head that needs a person anyway changes nothing.
    fn found(&mut self, body: &str, around: &OwnerFacts<'_>, reactions: &mut Reactions) {
        if self.judge(around.policy.review) != ReviewMode::Command {
            return;
        }
        let why = words::risk::found(words::review::gist(body));
        if let Some(pushed) = self.pushed_mut() {
            pushed.risk = pushed.risk.as_ref().map(|risk| risk.with_findings(why));
            if matches!(self.awaited(), Some(Awaited::Review)) {
                reactions.extend(self.head().cloned().map(|sha| Reaction::RequestReview { sha }));
            }
        }
    }

    /// It changes what only a person may let through, and nobody looks at pull requests by themselves.
    fn ask_person(&mut self, around: &OwnerFacts<'_>, reactions: &mut Reactions) {
        self.leave_queue(reactions);
        self.rest();
        // An agent that waits for an answer goes first; what it hands in then is looked at anew.
        if around.asked != Some(Cause::Agent) {
            ask(Cause::Review, words::reason::needs_person(self.protected()), reactions);
        }
    }

    /// Has CI look at the head.
    fn check(&mut self, around: &OwnerFacts<'_>, reactions: &mut Reactions) {
        let Progress::Pushed { pushed, wait } = &mut self.progress else { return };
        self.ci_run += 1;
        let run = self.ci_run;
        pushed.ci = Ci::Pending { run };
        let until = around.now.after(around.policy.ci_timeout);
        *wait = Some(Wait { what: Awaited::Checks, until });
        reactions.push(Reaction::Awaits(Awaited::Checks));
        reactions.push(Reaction::Check { sha: pushed.head.clone(), run });
    }

    /// Somebody has something to fix, as often as allowed.
    fn hand_back_red(
        &mut self,
        summary: String,
        words: (String, String),
        around: &OwnerFacts<'_>,
        reactions: &mut Reactions,
    ) {
        self.attempts.ci_fixes += 1;
        let limit = around.policy.ci_fixes;
        if self.attempts.ci_fixes > limit {
            reactions.push(Reaction::Exhausted { reason: words::reason::ci_exhausted(limit, &summary) });
            return;
        }
        self.hand_back(summary, reactions);
        tell(Headline::CiFailed, words, reactions);
    }

    fn hand_back(&mut self, why: String, reactions: &mut Reactions) {
        self.rest();
        reactions.push(Reaction::Returned { why });
    }

    /// Neither red nor green: tried again without costing a fix, then a person is asked. Nobody who writes commits can mend
    /// infrastructure.
    fn infra_trouble(&mut self, reason: &str, around: &OwnerFacts<'_>, reactions: &mut Reactions) {
        if self.attempts.infra_retries < around.policy.infra_retries {
            self.attempts.infra_retries += 1;
            self.check(around, reactions);
        } else {
            self.rest();
            ask(Cause::Ci, words::reason::infra(reason), reactions);
        }
    }

    /// Trying again changes nothing, and neither does another commit: a person decides about the hosts.
    fn unreached(&mut self, hosts: &[String], programs: &[String], reactions: &mut Reactions) {
        self.rest();
        // A person sees every host that a yes allows. What is left over is asked about after the next run.
        let hosts = &hosts[..hosts.len().min(HOSTS_ASKED)];
        if let Some(pushed) = self.pushed_mut() {
            pushed.hosts = hosts.to_vec();
        }
        ask(Cause::Hosts, words::reason::unreached(hosts, programs), reactions);
    }

    /// The same commit is looked at again, by CI or by the gate, whichever was refused.
    fn hosts_allowed(&mut self, around: &OwnerFacts<'_>, reactions: &mut Reactions) -> Result<(), Refused> {
        if around.asked != Some(Cause::Hosts) || self.refused_hosts().is_empty() {
            return Err(Refused::NotNow(words::task::refused::WAITS_FOR_NO_HOST.to_owned()));
        }
        if let Some(pushed) = self.pushed_mut() {
            pushed.hosts.clear();
        }
        if self.needs_no_ci(around) {
            self.green(around, reactions);
        } else {
            self.check(around, reactions);
        }
        Ok(())
    }

    fn ci_timed_out(&mut self, around: &OwnerFacts<'_>, reactions: &mut Reactions) {
        let timeout = around.policy.ci_timeout;
        self.rest();
        if let Some(pushed) = self.pushed_mut() {
            pushed.ci = Ci::TimedOut;
            tell(Headline::CiTimeout, words::message::ci_timeout(&pushed.head, timeout), reactions);
        }
        ask(Cause::Ci, words::reason::ci_timeout(timeout), reactions);
    }

    /// A review is bound to a commit.
    fn reviewed(
        &mut self,
        sha: &Sha,
        verdict: ReviewVerdict,
        said: Said<'_>,
        around: &OwnerFacts<'_>,
        reactions: &mut Reactions,
    ) -> Result<(), Refused> {
        let Said { by, by_agent, body } = said;
        let Policy { approvals, review, .. } = *around.policy;
        let needed = self.approvals_needed(approvals, review);
        let said = (by, body);
        let Some(pushed) = self.pushed_mut().filter(|pushed| pushed.head == *sha) else {
            return Err(Refused::Stale(words::task::not_the_head(sha)));
        };
        match verdict {
            ReviewVerdict::Approve => {
                // The same person twice is one approval.
                if !by_agent && !pushed.approvals.iter().any(|name| name == by) {
                    pushed.approvals.push(by.to_owned());
                }
                if needed > 1 && pushed.approvals.len() < needed {
                    return Ok(());
                }
                let by = if needed > 1 { pushed.approvals.join(", ") } else { by.to_owned() };
                pushed.review = Review::Approved { by };
                self.approved(sha, said, around, reactions);
            }
            ReviewVerdict::RequestChanges => {
                let same_round = matches!(pushed.review, Review::ChangesRequested { .. });
                // Whoever approved before was of another mind than this one: all look again.
                pushed.approvals.clear();
                pushed.review = Review::ChangesRequested { by: by.to_owned(), body: body.to_owned() };
                self.attempts.review_rounds += u32::from(!same_round);
                self.changes_requested(sha, said, around, reactions);
            }
            ReviewVerdict::Discuss => {
                self.leave_queue(reactions);
                self.rest();
                ask(Cause::Review, words::reason::discuss(by, body), reactions);
            }
        }
        Ok(())
    }

    fn approved(
        &mut self,
        sha: &Sha,
        (by, body): (&str, &str),
        around: &OwnerFacts<'_>,
        reactions: &mut Reactions,
    ) {
        // Approved before CI was done, or while whoever works on it waits for an answer: remembered, and acted on when that
        // is settled.
        if self.awaited() == Some(Awaited::Queue) || around.asked == Some(Cause::Agent) {
            return;
        }
        if !self.needs_no_ci(around) {
            // The head was handed in while there was no CI, and there is one now.
            if *self.ci() == Ci::None && self.awaited() == Some(Awaited::Review) {
                self.check(around, reactions);
            }
            return;
        }
        tell(Headline::Approved, words::message::approved(sha, by, body), reactions);
        self.green(around, reactions);
    }

    fn changes_requested(
        &mut self,
        sha: &Sha,
        (by, body): (&str, &str),
        around: &OwnerFacts<'_>,
        reactions: &mut Reactions,
    ) {
        let limit = around.policy.review_rounds;
        if self.attempts.review_rounds > limit {
            reactions.push(Reaction::Exhausted { reason: words::reason::review_exhausted(limit) });
            return;
        }
        self.leave_queue(reactions);
        if around.asked != Some(Cause::Agent) {
            self.hand_back(words::reason::changes_requested(by), reactions);
        }
        tell(Headline::ChangesRequested, words::message::changes_requested(sha, by, body), reactions);
    }

    fn queue_reported(
        &mut self,
        head: &Sha,
        outcome: &QueueOutcome,
        around: &OwnerFacts<'_>,
        reactions: &mut Reactions,
    ) -> Result<(), Refused> {
        if let QueueOutcome::Landed { sha } = outcome {
            // It is on the main branch, whatever was ordered meanwhile: facts decide.
            if self.merged_as().is_some() {
                return Err(Refused::Stale(words::task::refused::MERGED_ALREADY.to_owned()));
            }
            self.merged(sha, reactions);
            return Ok(());
        }
        let Some(pushed) = (match &mut self.progress {
            Progress::Pushed { pushed, wait: Some(Wait { what: Awaited::Queue, .. }) }
                if pushed.head == *head =>
            {
                Some(pushed)
            }
            Progress::Local { .. } | Progress::Pushed { .. } | Progress::Merged { .. } => None,
        }) else {
            return Err(Refused::Stale(words::task::not_in_queue(head)));
        };
        match outcome {
            QueueOutcome::Landed { .. } => {}
            QueueOutcome::Conflict { files, with } => {
                self.attempts.merge_conflicts += 1;
                self.hand_back(words::reason::conflict(files), reactions);
                let words = words::message::merge_conflict(files, with.as_deref());
                tell(Headline::MergeConflict, words, reactions);
                if self.attempts.merge_conflicts > around.policy.merge_conflicts {
                    ask(Cause::Conflict, words::reason::conflicts(files), reactions);
                }
            }
            QueueOutcome::Red { summary, log } => {
                pushed.ci = Ci::Failed { infra: false, summary: summary.clone() };
                pushed.log_end = words::notice::log_end(log);
                let words = words::message::queue_red(head, summary, log);
                self.hand_back_red(summary.clone(), words, around, reactions);
            }
            QueueOutcome::Infra { reason, log } => {
                pushed.log_end = words::notice::log_end(log);
                self.rest();
                ask(Cause::Ci, words::reason::infra(reason), reactions);
            }
            QueueOutcome::Unreached { hosts, programs, log } => {
                pushed.log_end = words::notice::log_end(log);
                self.unreached(hosts, programs, reactions);
            }
            QueueOutcome::Stale { .. } => {
                self.await_push(around.now.after(around.policy.ci_timeout));
                reactions.push(Reaction::Awaits(Awaited::Push));
                reactions.push(Reaction::Push);
            }
        }
        Ok(())
    }

    fn merged(&mut self, sha: &Sha, reactions: &mut Reactions) {
        self.leave_queue(reactions);
        let before = std::mem::replace(&mut self.progress, Progress::Local { until: None });
        let pushed = match before {
            Progress::Merged { .. } => {
                self.progress = before;
                return;
            }
            Progress::Pushed { pushed, .. } => Some(pushed),
            Progress::Local { .. } => None,
        };
        self.progress = Progress::Merged { sha: sha.clone(), pushed };
        reactions.push(Reaction::Merged { sha: sha.clone() });
    }
}

fn tell(headline: Headline, words: (String, String), reactions: &mut Reactions) {
    reactions.push(Reaction::Tell { headline, words });
}

fn ask(cause: Cause, reason: String, reactions: &mut Reactions) {
    reactions.push(Reaction::Ask { cause, reason });
}
