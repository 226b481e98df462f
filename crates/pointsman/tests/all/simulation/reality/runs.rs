//! Sessions of runs, the agents in them, and what the effects of a run do.

use std::collections::VecDeque;
use std::path::PathBuf;

use pointsman::daemon::outcome::{Note, Outcome, Performed};
use pointsman_core::ids::RunKey;
use pointsman_core::part::session;
use pointsman_core::run::{self, Run};
use pointsman_core::session::budget::Spent;
use pointsman_core::task::{Effect, Exit, Headline, Opening, Phase};
use pointsman_core::workflow::Event;
use pointsman_store::{Outgoing, SessionRow};
use serde_json::{Value, json};

use super::Reality;
use super::agents::PhaseFile;

/// What belongs to a run and stays when a session goes.
#[derive(Clone, Debug, Default)]
pub(in crate::simulation) struct RunDesk {
    pub(in crate::simulation) phase: Option<PhaseFile>,
    pub(in crate::simulation) result: Option<Value>,
    pub(in crate::simulation) pane: Option<RunPane>,
}

/// The terminal of a run's session.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct RunPane {
    pub(in crate::simulation) generation: u32,
    pub(in crate::simulation) alive: bool,
    /// Sits at its prompt and says nothing.
    pub(in crate::simulation) idle: bool,
    /// Does nothing until it hears something.
    waits: bool,
    unread: VecDeque<Headline>,
}

/// What an agent of a run does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulation) enum RunDeed {
    /// The next step, or the result if none is left.
    GoOn,
    /// Say that it is through, with a result that cannot be used.
    Boast,
    Escalate,
    Fail,
    /// Write something that is no phase.
    Scribble,
    Idle,
    /// Do nothing at all, for ever.
    Hang,
    Die,
}

impl Reality {
    pub(in crate::simulation) fn run_desk(&mut self, key: &RunKey) -> &mut RunDesk {
        self.runs.entry(key.clone()).or_default()
    }

    /// Runs whose agent has something to do.
    pub(in crate::simulation) fn busy_runs(&self) -> Vec<RunKey> {
        let busy = |pane: &RunPane| pane.alive && !pane.idle && (!pane.waits || !pane.unread.is_empty());
        let busy = |desk: &RunDesk| desk.pane.as_ref().is_some_and(busy);
        self.runs.iter().filter(|(_, desk)| busy(desk)).map(|(key, _)| key.clone()).collect()
    }

    /// An agent reads what it was told and chooses.
    pub(in crate::simulation) fn choose(&mut self, key: &RunKey) -> RunDeed {
        let heard = self.run_desk(key).pane.as_mut().and_then(|pane| pane.unread.pop_front());
        if heard == Some(Headline::SaveAndExit) {
            return RunDeed::Die;
        }
        if self.calm {
            return RunDeed::GoOn;
        }
        self.chance.weighted(&[
            (80, RunDeed::GoOn),
            (4, RunDeed::Escalate),
            (12, RunDeed::Boast),
            (2, RunDeed::Fail),
            (2, RunDeed::Scribble),
            (2, RunDeed::Idle),
            (1, RunDeed::Hang),
            (3, RunDeed::Die),
        ])
    }

    /// Does what needs nobody else.
    pub(in crate::simulation) fn act_in_run(&mut self, key: &RunKey, deed: RunDeed) {
        let stamp = self.fresh();
        let phase = |phase| Some(PhaseFile { stamp, phase, refusal: None });
        let desk = self.run_desk(key);
        let Some(pane) = desk.pane.as_mut() else { return };
        pane.waits = !matches!(deed, RunDeed::Scribble);
        match deed {
            RunDeed::GoOn => {
                desk.result = Some(json!({
                    "risk": "low", "reversible": true, "requires_human": false, "reason": "it is harmless",
                }));
                desk.phase = phase(Some(Phase::Done));
            }
            RunDeed::Boast => {
                desk.result = Some(json!({ "approved": true }));
                desk.phase = phase(Some(Phase::Done));
            }
            RunDeed::Escalate => desk.phase = phase(Some(Phase::Escalate)),
            RunDeed::Fail => desk.phase = phase(Some(Phase::Failed)),
            RunDeed::Scribble => desk.phase = phase(None),
            RunDeed::Idle => pane.idle = true,
            RunDeed::Hang => {}
            RunDeed::Die => pane.alive = false,
        }
    }

    pub(super) fn act_for_run(&mut self, outgoing: &Outgoing, run: &Run) -> Outcome {
        let key = run.key();
        match &outgoing.effect {
            Effect::StartSession { generation, opening } => {
                // One that was started once was set up before.
                if !self.record.started_runs.contains(&(key, *generation)) && self.fault(10) {
                    return self.setup_of_run_fails(run, *generation, *opening);
                }
                self.start_run_session(run, *generation)
            }
            Effect::ReservePorts if run.status.is_over() => Outcome::done(),
            Effect::ReservePorts => {
                let port = self.port_for_run(&key);
                Outcome::learned(Event::Run(run::Event::PortsAssigned { ports: vec![port] }))
            }
            Effect::EndSession { generation, exit } => self.end_run_session(run, *generation, *exit),
            Effect::Checkpoint { .. } => Outcome::done(),
            Effect::Deliver { generation, headline, .. } => {
                let told = (key.clone(), *generation, outgoing.id);
                let pane = self.run_desk(&key).pane.as_mut();
                let Some(pane) = pane.filter(|pane| pane.alive && pane.generation == *generation) else {
                    return Outcome::note(Note::MessageSuperseded);
                };
                let mut pane = pane.clone();
                if self.record.run_lines.insert(told) {
                    pane.unread.push_back(*headline);
                    self.run_desk(&key).pane = Some(pane);
                }
                Outcome::note(Note::MessageSent { path: PathBuf::from(format!("{}.md", outgoing.id)) })
            }
            Effect::Notify(_) | Effect::NotifyQuestion | Effect::NotifyNeed { .. } => {
                Outcome::notice(self.posting(outgoing))
            }
            Effect::ReadResult { generation } => {
                let (generation, result) = (*generation, self.run_desk(&key).result.clone());
                let checked = match run.next_step() {
                    None => run::check_result(run, result.as_ref()),
                    Some(_) => Ok(()),
                };
                Outcome::learned(Event::Run(match checked {
                    Ok(()) => run::Event::Finished { generation, result },
                    Err(why) => run::Event::GaveUp { generation, why, unusable: true },
                }))
            }
            Effect::CleanUp if run.is_to_be_looked_through() => self.look_through(run),
            Effect::CleanUp => {
                let desk = self.run_desk(&key);
                (desk.phase, desk.pane) = (None, None);
                self.record.run_ports.remove(&key);
                let freed = (!run.ports.is_empty()).then(|| run::Event::PortsAssigned { ports: Vec::new() });
                let events = freed.into_iter().chain([run::Event::CleanedUp]).map(Event::Run).collect();
                Outcome::Done(Performed { events, ..Performed::default() })
            }
            Effect::RequestReview { .. } => Outcome::done(),
            Effect::Deed { name, act } => self.deed(outgoing, name, act),
            effect @ (Effect::SyncBranch
            | Effect::OpenPullRequest
            | Effect::RunChecks { .. }
            | Effect::Enqueue { .. }
            | Effect::Dequeue) => self.act_for_hand_in(effect, run),
            Effect::ClaimIssue
            | Effect::SetLabels { .. }
            | Effect::Comment { .. }
            | Effect::CloseIssue
            | Effect::RecordCiResult { .. }
            | Effect::VerifyMerge
            | Effect::LookAtAction { .. }
            | Effect::CallOffLook { .. }
            | Effect::FireAction { .. }
            | Effect::NotifyAction
            | Effect::Tell { .. } => panic!("no run orders {:?}", outgoing.effect),
        }
    }

    /// The lowest port that no other run has.
    fn port_for_run(&mut self, key: &RunKey) -> u16 {
        let taken: Vec<u16> =
            self.record.run_ports.iter().filter(|(of, _)| *of != key).map(|(_, port)| *port).collect();
        let free = (43_000..).find(|port| !taken.contains(port));
        *self.record.run_ports.entry(key.clone()).or_insert_with(|| free.expect("there are enough ports"))
    }

    fn setup_of_run_fails(&mut self, run: &Run, generation: u32, opening: Opening) -> Outcome {
        let (error, log) = ("exit code 1".to_owned(), "npm ERR!".to_owned());
        let failed = run::Event::SetupFailed { generation, opening, error, log };
        let (ended_at, exit) = (Some(self.now), Some(Exit::Failed));
        let row = self.run_session(&run.key(), generation);
        let row = SessionRow { pid: None, pane: None, start_time: None, ended_at, exit, ..row };
        Outcome::Done(Performed {
            events: vec![Event::Run(failed)],
            sessions: vec![row],
            ..Performed::default()
        })
    }

    fn start_run_session(&mut self, run: &Run, generation: u32) -> Outcome {
        let key = run.key();
        let found = self.run_desk(&key).pane.clone();
        if found.as_ref().is_none_or(|pane| pane.generation != generation) {
            if let Some(old) = found.filter(|pane| pane.alive) {
                let excused = self.record.unended_runs.contains(&(key.clone(), old.generation));
                assert!(excused, "{key}: session {generation} starts beside session {}", old.generation);
            }
            let news = self.record.started_runs.insert((key.clone(), generation));
            assert!(news, "{key}: session {generation} was started twice");
            let alive = !self.fault(15);
            let (waits, unread) = (false, VecDeque::new());
            self.run_desk(&key).pane = Some(RunPane { generation, alive, idle: false, waits, unread });
        }
        let row = self.run_session(&key, generation);
        self.record.rows.insert(row.session.clone(), row.clone());
        let started = run::Event::Session { generation, told: session::Event::Started };
        Outcome::Done(Performed {
            events: vec![Event::Run(started)],
            sessions: vec![row],
            ..Performed::default()
        })
    }

    fn end_run_session(&mut self, run: &Run, generation: u32, exit: Exit) -> Outcome {
        let key = run.key();
        let desk = self.run_desk(&key);
        if desk.pane.as_ref().is_some_and(|pane| pane.generation == generation) {
            desk.pane = None;
        }
        let mut sessions = self.record.ended(&key.session(generation), exit, self.now);
        if sessions.is_empty() {
            // It was ordered and never launched.
            let (ended_at, exit) = (Some(self.now), Some(exit));
            let row = self.run_session(&key, generation);
            sessions.push(SessionRow { pid: None, pane: None, start_time: None, ended_at, exit, ..row });
        }
        let told = session::Event::Ended { exit, tail: format!("last words of {generation}") };
        let ended = run::Event::Session { generation, told };
        Outcome::Done(Performed { events: vec![Event::Run(ended)], sessions, ..Performed::default() })
    }

    fn run_session(&self, key: &RunKey, generation: u32) -> SessionRow {
        SessionRow {
            session: key.session(generation),
            identity: key.identity(),
            project: key.project.clone(),
            issue: None,
            role: key.role,
            generation,
            host: "signal-box".to_owned(),
            model: None,
            bead_id: None,
            node_id: None,
            hook_path: None,
            tmux_session: Some(key.identity()),
            pane: Some("%1".to_owned()),
            pid: Some(generation),
            start_time: Some(u64::from(generation)),
            tree: None,
            created_at: self.now,
            last_seen: self.now,
            times_stale: 0,
            ended_at: None,
            exit: None,
            acknowledges: false,
            predecessor: (generation > 1).then(|| key.session(generation - 1)),
            gauge: None,
            spent: Spent::default(),
        }
    }
}
