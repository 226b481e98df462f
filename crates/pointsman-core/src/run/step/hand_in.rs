//! The contribution of a run that hands files in: facts about it are handed to the part, and its reactions are followed here.
//!
//! The session is over, so nobody mends what cannot land: people are told what it needs, once for each commit, and the next
//! run of its role may take its place.

use super::{Draft, Refused};
use crate::hand_in::{HandIn, HandInFiles, Landing, Need, Outcome, Stage, Turn};
use crate::ids::Sha;
use crate::part::contribution::{
    Awaited, Contribution, Event, Fact, OwnerFacts, PrFact, QueueOutcome, Reaction, ReviewMode,
};
use crate::part::question::Cause;
use crate::task::Effect;
use crate::time::Timestamp;
use crate::words;

/// The one who stands in the way of a contribution.
#[derive(Clone, Copy)]
enum Hindrance {
    Ci,
    Review,
    Queue,
}

impl Draft<'_> {
    pub(super) fn handed_in(&mut self, files: Option<&HandInFiles>) -> Result<(), Refused> {
        if self.run.hand_in.is_some() {
            return Err(Refused::Stale(words::run::HANDED_IN_ALREADY.to_owned()));
        }
        self.run.looked_through = true;
        self.run.hand_in = files.map(|files| HandIn { files: files.clone(), stage: Stage::Waiting });
        if self.run.cleaning {
            // Only now may the tree go: what was in it is written down.
            self.order(Effect::CleanUp);
        }
        Ok(())
    }

    pub(super) fn landing_begun(&mut self, turn: &Turn) -> Result<(), Refused> {
        let patience = self.patience();
        let Some(HandIn { stage: stage @ Stage::Waiting, .. }) = &mut self.run.hand_in else {
            return Err(Refused::Stale(words::run::HANDED_IN_ALREADY.to_owned()));
        };
        let branch = turn.branch.clone();
        let mut contribution = match &turn.replaces {
            None => Contribution::new(branch),
            Some((pr, head)) => Contribution::at(branch, head.clone(), Some(*pr)),
        };
        contribution.await_push(patience);
        *stage = Stage::Open(Box::new(Landing { contribution, told: None, ours: turn.ours.clone() }));
        self.order(Effect::SyncBranch);
        Ok(())
    }

    /// A forge that is down may keep it waiting as long as the merge queue may.
    fn patience(&self) -> Timestamp {
        self.now.after(self.policy.contribution.queue_timeout)
    }

    /// It cannot be brought to the forge. That is ordered again later: where nobody can see it, nobody can help it, and
    /// nothing newer may take its place.
    pub(super) fn not_brought(&mut self) {
        let patience = self.patience();
        let mut reactions = Vec::new();
        let Ok(landing) = self.on_its_way() else { return };
        if landing.told != Some(Need::Taken) {
            landing.contribution.leave_queue(&mut reactions);
            landing.contribution.await_push(patience);
            self.follow_contribution(reactions, Hindrance::Queue);
        }
    }

    pub(super) fn hand_in_dropped(&mut self) -> Result<(), Refused> {
        match &self.run.hand_in {
            Some(handed_in) if handed_in.is_open() => {
                self.landing_over(Outcome::Dropped);
                Ok(())
            }
            Some(_) | None => Err(Refused::Stale(words::run::NOTHING_ON_ITS_WAY.to_owned())),
        }
    }

    /// What is on its way; refused if nothing is.
    pub(super) fn on_its_way(&mut self) -> Result<&mut Landing, Refused> {
        match self.run.hand_in.as_mut().map(|handed_in| &mut handed_in.stage) {
            Some(Stage::Open(landing)) => Ok(landing),
            Some(Stage::Waiting | Stage::Over { .. }) | None => {
                Err(Refused::NotNow(words::run::NOTHING_ON_ITS_WAY.to_owned()))
            }
        }
    }

    /// It is followed to its end, and nothing more is done about it.
    pub(super) fn branch_taken(&mut self, commit: &Sha) -> Result<(), Refused> {
        if self.run.hand_in.as_ref().is_some_and(|handed_in| handed_in.owns(commit)) {
            return Err(Refused::Stale(words::run::STILL_OURS.to_owned()));
        }
        let mut reactions = Vec::new();
        let landing = self.on_its_way()?;
        landing.contribution.leave_queue(&mut reactions);
        landing.contribution.rest();
        self.follow_contribution(reactions, Hindrance::Queue);
        self.tell_need(Need::Taken);
        Ok(())
    }

    pub(super) fn contributed(&mut self, event: &Event) -> Result<(), Refused> {
        let (now, policy) = (self.now, self.policy);
        let fact = event.fact();
        let landing = self.on_its_way()?;
        let taken = landing.told == Some(Need::Taken);
        if taken && !ends(&fact) {
            return Err(Refused::NotNow(words::run::NOT_OURS.to_owned()));
        }
        let queued = landing.contribution.awaited() == Some(Awaited::Queue);
        if queued && fact == Fact::Observed(&PrFact::Closed) {
            // The queue may be about to say that it landed.
            let mut reactions = Vec::new();
            landing.contribution.leave_queue(&mut reactions);
            self.follow_contribution(reactions, Hindrance::Queue);
            return Ok(());
        }
        let around = OwnerFacts { asked: asked(landing), policy: &policy.contribution, now };
        let reactions = landing.contribution.happened(&fact, &around)?;
        let hindrance = match fact {
            Fact::Reviewed { .. } => Hindrance::Review,
            Fact::QueueReported { .. } => Hindrance::Queue,
            Fact::Pushed { .. }
            | Fact::HeadMoved
            | Fact::Opened { .. }
            | Fact::Observed(_)
            | Fact::ChecksStarted { .. }
            | Fact::ChecksFinished { .. }
            | Fact::HostsAllowed
            | Fact::FoundMerged { .. } => Hindrance::Ci,
        };
        self.follow_contribution(reactions, hindrance);
        Ok(())
    }

    pub(super) fn landing_time_passed(&mut self) {
        let (now, policy, patience) = (self.now, self.policy, self.patience());
        let is_brought = self.run.hand_in.as_ref().is_some_and(HandIn::is_brought);
        let Ok(landing) = self.on_its_way() else { return };
        if !is_brought && landing.contribution.awaited() == Some(Awaited::Push) {
            landing.contribution.await_push(patience);
            self.order(Effect::SyncBranch);
            return;
        }
        let hindrance = match landing.contribution.awaited() {
            Some(Awaited::Checks) => Hindrance::Ci,
            Some(Awaited::Review) => Hindrance::Review,
            Some(Awaited::Push | Awaited::Queue) | None => Hindrance::Queue,
        };
        let around = OwnerFacts { asked: asked(landing), policy: &policy.contribution, now };
        let reactions = landing.contribution.time_passed(&around);
        self.follow_contribution(reactions, hindrance);
    }

    /// Only a person can review it now.
    pub(super) fn needs_review(&mut self) {
        if let Some(commit) = self.head() {
            self.tell_need(Need::Review { commit });
        }
    }

    fn head(&self) -> Option<Sha> {
        self.run.contribution().and_then(Contribution::head).cloned()
    }

    fn follow_contribution(&mut self, reactions: Vec<Reaction>, hindrance: Hindrance) {
        for reaction in reactions {
            match reaction {
                Reaction::Push => self.order(Effect::SyncBranch),
                Reaction::Open => self.order(Effect::OpenPullRequest),
                Reaction::Check { sha, run } => self.order(Effect::RunChecks { sha, run }),
                Reaction::RequestReview { sha } => {
                    self.order(Effect::RequestReview { sha });
                    let judge =
                        self.run.contribution().map(|part| part.judge(self.policy.contribution.review));
                    if judge == Some(ReviewMode::Human) {
                        self.needs_review();
                    }
                }
                Reaction::Enqueue { head } => self.order(Effect::Enqueue { head }),
                Reaction::Dequeue => self.order(Effect::Dequeue),
                // Nobody works on it who could be told.
                Reaction::Record { .. } | Reaction::Tell { .. } => {}
                Reaction::Awaits(_) => {
                    if let Ok(landing) = self.on_its_way() {
                        landing.told = None;
                    }
                }
                Reaction::Ask { cause: Cause::Review, reason } => self.hindered(Hindrance::Review, reason),
                Reaction::Returned { why }
                | Reaction::Exhausted { reason: why }
                | Reaction::Ask { reason: why, .. } => self.hindered(hindrance, why),
                Reaction::Closed => self.landing_over(Outcome::Dismissed),
                Reaction::Merged { .. } => self.landing_over(Outcome::Merged),
            }
        }
    }

    fn hindered(&mut self, hindrance: Hindrance, why: String) {
        let patience = self.patience();
        let Ok(landing) = self.on_its_way() else { return };
        match landing.contribution.pr() {
            Some(_) => landing.contribution.rest(),
            // Nobody can settle what has no pull request, so it is brought to the forge again.
            None => landing.contribution.await_push(patience),
        }
        let silent = *landing.contribution.ci() == crate::part::contribution::Ci::TimedOut;
        let Some(commit) = landing.contribution.head().cloned() else { return };
        self.tell_need(match hindrance {
            Hindrance::Ci if silent => Need::Silent { commit },
            Hindrance::Ci => Need::Checks { commit },
            Hindrance::Review => Need::Review { commit },
            Hindrance::Queue => Need::Line { commit, why },
        });
    }

    /// Tells people, once for each commit and need.
    fn tell_need(&mut self, need: Need) {
        let Ok(landing) = self.on_its_way() else { return };
        if landing.told.as_ref() != Some(&need) {
            landing.told = Some(need.clone());
            self.order(Effect::NotifyNeed { need });
        }
    }

    fn landing_over(&mut self, outcome: Outcome) {
        let pr = self.run.contribution().and_then(Contribution::pr);
        if let Some(handed_in) = &mut self.run.hand_in {
            handed_in.stage = Stage::Over { outcome, pr };
        }
    }
}

/// The cause that people were told of.
fn asked(landing: &Landing) -> Option<Cause> {
    landing.told.as_ref().map(|need| match need {
        Need::Checks { .. } | Need::Silent { .. } => Cause::Ci,
        Need::Review { .. } => Cause::Review,
        Need::Line { .. } | Need::Taken => Cause::Daemon,
    })
}

/// Whether a fact can end a contribution whose branch is somebody else's.
fn ends(fact: &Fact<'_>) -> bool {
    match fact {
        Fact::Observed(_) | Fact::FoundMerged { .. } => true,
        Fact::QueueReported { outcome, .. } => matches!(outcome, QueueOutcome::Landed { .. }),
        Fact::Pushed { .. }
        | Fact::HeadMoved
        | Fact::Opened { .. }
        | Fact::ChecksStarted { .. }
        | Fact::ChecksFinished { .. }
        | Fact::HostsAllowed
        | Fact::Reviewed { .. } => false,
    }
}
