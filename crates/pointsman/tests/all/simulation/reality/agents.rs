//! Sessions and the agents in them.

use std::collections::VecDeque;

use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::{Headline, Phase, Refusal, RefusalStatus};

use super::{Quality, Reality};

/// What belongs to a task and stays when a session goes.
#[derive(Clone, Debug, Default)]
pub(in crate::simulation) struct Desk {
    pub(in crate::simulation) gateway: Option<Sha>,
    /// Its branch on the forge.
    pub(in crate::simulation) remote: Option<Sha>,
    pub(in crate::simulation) phase: Option<PhaseFile>,
    pub(in crate::simulation) pane: Option<Pane>,
}

/// A phase file with something in it.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct PhaseFile {
    /// Tells two writes of the same words apart, as a file's times do.
    pub(in crate::simulation) stamp: u64,
    /// None is rubbish.
    pub(in crate::simulation) phase: Option<Phase>,
    pub(in crate::simulation) refusal: Option<Refusal>,
}

/// A terminal. It stays when its process has died.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct Pane {
    pub(in crate::simulation) generation: u32,
    pub(in crate::simulation) alive: bool,
    /// Sits at its prompt and says nothing.
    pub(in crate::simulation) idle: bool,
    /// Has read its first prompt.
    begun: bool,
    /// Lines it has not read yet.
    unread: VecDeque<Headline>,
}

impl Pane {
    pub(in crate::simulation) fn new(generation: u32) -> Self {
        Self { generation, alive: true, idle: false, begun: false, unread: VecDeque::new() }
    }

    pub(in crate::simulation) fn type_line(&mut self, headline: Headline) {
        self.unread.push_back(headline);
    }

    fn has_something_to_do(&self) -> bool {
        self.alive && !self.idle && (!self.begun || !self.unread.is_empty())
    }
}

/// What an agent does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// Edit, commit, push, and say so.
    Work,
    /// Say so without having done anything.
    Claim(Phase),
    /// Push once more without saying so.
    Push,
    Escalate,
    Fail,
    Refuse,
    /// Write something that is no phase.
    Scribble,
    Idle,
    /// Do nothing at all, for ever.
    Hang,
    Die,
    /// Read, and wait for more.
    Wait,
}

impl Reality {
    /// Issues whose agent has something to do.
    pub(in crate::simulation) fn busy_agents(&self) -> Vec<Number> {
        let busy = |session_files: &Desk| session_files.pane.as_ref().is_some_and(Pane::has_something_to_do);
        self.desks.iter().filter(|(_, session_files)| busy(session_files)).map(|(issue, _)| *issue).collect()
    }

    /// Issues with a live session.
    pub(in crate::simulation) fn live_agents(&self) -> Vec<Number> {
        let alive = |session_files: &Desk| session_files.pane.as_ref().is_some_and(|pane| pane.alive);
        self.desks.iter().filter(|(_, session_files)| alive(session_files)).map(|(issue, _)| *issue).collect()
    }

    /// An agent reads one thing and acts on it.
    pub(in crate::simulation) fn agent_acts(&mut self, issue: Number) {
        let Some(pane) = self.session_files(issue).pane.as_mut().filter(|pane| pane.has_something_to_do())
        else {
            return;
        };
        let heard = if pane.begun { pane.unread.pop_front() } else { None };
        pane.begun = true;
        let deed = if self.calm { self.honest_deed(issue, heard) } else { self.any_deed(issue, heard) };
        self.trace.say(format!("agent #{issue} on {heard:?}: {deed:?}"));
        self.do_deed(issue, deed);
    }

    fn honest_deed(&self, issue: Number, heard: Option<Headline>) -> Deed {
        let pushed = self.desks[&issue].gateway.as_ref();
        let fine = pushed.is_some_and(|sha| self.quality[sha] == Quality::Good)
            && pushed.is_some_and(|sha| self.landed_as(sha).is_none());
        match heard {
            None | Some(Headline::NotMerged | Headline::Answer | Headline::WritePhase) if fine => {
                Deed::Claim(Phase::AwaitingCi)
            }
            None | Some(Headline::NotMerged | Headline::Answer | Headline::WritePhase) => Deed::Work,
            Some(Headline::CiFailed | Headline::ChangesRequested | Headline::MergeConflict) => Deed::Work,
            Some(Headline::CiPassed) => Deed::Claim(Phase::AwaitingReview),
            Some(Headline::CiTimeout | Headline::Approved | Headline::NoReview | Headline::CheckpointNow) => {
                Deed::Wait
            }
            Some(Headline::SaveAndExit) => Deed::Die,
            Some(Headline::Merged) => Deed::Claim(Phase::Done),
        }
    }

    fn any_deed(&mut self, issue: Number, heard: Option<Headline>) -> Deed {
        let honest = self.honest_deed(issue, heard);
        self.chance.weighted(&[
            (60, honest),
            (8, Deed::Work),
            (3, Deed::Push),
            (3, Deed::Claim(Phase::AwaitingCi)),
            (2, Deed::Claim(Phase::AwaitingReview)),
            (2, Deed::Claim(Phase::Done)),
            (4, Deed::Escalate),
            (2, Deed::Fail),
            (2, Deed::Refuse),
            (2, Deed::Scribble),
            (2, Deed::Idle),
            (2, Deed::Hang),
            (4, Deed::Die),
            (4, Deed::Wait),
        ])
    }

    fn do_deed(&mut self, issue: Number, deed: Deed) {
        match deed {
            Deed::Work => {
                self.push(issue);
                self.write_phase(issue, Some(Phase::AwaitingCi), None);
            }
            Deed::Claim(phase) => self.write_phase(issue, Some(phase), None),
            Deed::Push => self.push(issue),
            Deed::Escalate => self.write_phase(issue, Some(Phase::Escalate), None),
            Deed::Fail => self.write_phase(issue, Some(Phase::Failed), None),
            Deed::Refuse => {
                let status = *self.chance.pick(&[
                    RefusalStatus::UnmetDependency,
                    RefusalStatus::TooLarge,
                    RefusalStatus::AlreadyDone,
                ]);
                let others: Vec<Number> = self.issues.keys().copied().filter(|n| *n != issue).collect();
                let blocked_by = if others.is_empty() { vec![] } else { vec![*self.chance.pick(&others)] };
                let refusal = Refusal { status, reason: "not for me".to_owned(), blocked_by };
                self.write_phase(issue, Some(Phase::Failed), Some(refusal));
            }
            Deed::Scribble => self.write_phase(issue, None, None),
            Deed::Idle | Deed::Hang => {
                let pane = self.session_files(issue).pane.as_mut().expect("its agent acts");
                pane.idle = deed == Deed::Idle;
                pane.unread.clear();
            }
            Deed::Die => self.agent_dies(issue),
            Deed::Wait => {}
        }
    }

    /// The process is gone; its terminal shows that.
    pub(in crate::simulation) fn agent_dies(&mut self, issue: Number) {
        if let Some(pane) = &mut self.session_files(issue).pane {
            pane.alive = false;
        }
    }

    /// Most of what agents push is good; all of it once they are honest.
    fn push(&mut self, issue: Number) {
        let quality = if self.fault(4) { Quality::Red } else { Quality::Good };
        let sha = self.commit(quality);
        self.session_files(issue).gateway = Some(sha);
    }

    fn write_phase(&mut self, issue: Number, phase: Option<Phase>, refusal: Option<Refusal>) {
        let stamp = self.fresh();
        self.session_files(issue).phase = Some(PhaseFile { stamp, phase, refusal });
    }
}
