//! What effects do to the pretended world.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pointsman::daemon::outcome::{Note, Outcome, PerformEffects, Performed};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::known_secrets::FoundSecrets;
use pointsman_core::labels::{BACKLOG, BLOCKED, IN_PROGRESS, UNDERSPECIFIED};
use pointsman_core::role::Role;
use pointsman_core::session::budget::Spent;
use pointsman_core::task::{Effect, Event, Exit, Headline, Opening, State, Task};
use pointsman_core::workflow::{self, Workflow};
use pointsman_store::{EffectId, NewEntry, Outgoing, SessionRow};

use super::agents::Pane;
use super::forge::{ME, PullRequest};
use super::{Reality, Record};

/// The world as the effect runner meets it.
pub(in crate::simulation) struct Pretended(Mutex<Reality>);

impl Pretended {
    pub(in crate::simulation) fn new(reality: Reality) -> Self {
        Self(Mutex::new(reality))
    }

    pub(in crate::simulation) fn look(&self) -> MutexGuard<'_, Reality> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PerformEffects for Pretended {
    /// As in reality, trouble comes before the deed or after it, and cannot be told apart.
    fn perform(&self, outgoing: &Outgoing, owner: &Workflow) -> Outcome {
        let mut reality = self.look();
        let hopeless = reality.story.hopeless == Some(outgoing.effect.kind());
        // Sessions that cannot start are few otherwise: every workflow starts only some.
        let one_in = if matches!(outgoing.effect, Effect::StartSession { .. }) { 12 } else { 40 };
        if hopeless || reality.fault(one_in) {
            if let Effect::EndSession { generation, .. } = &outgoing.effect {
                let record = &mut reality.record;
                let _ = match owner {
                    Workflow::Task(task) => record.unended.insert((task.key.issue, *generation)),
                    Workflow::Run(run) => record.unended_runs.insert((run.key(), *generation)),
                    Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_) => {
                        false
                    }
                };
            }
            reality.roles.given_up.insert(outgoing.id);
            return Outcome::Never { error: "this can never be done".to_owned() };
        }
        if reality.fault(12) {
            return Outcome::Later { error: "not reached".to_owned() };
        }
        let outcome = match owner {
            Workflow::Task(task) => reality.act(outgoing, task),
            Workflow::Run(run) => reality.act_for_run(outgoing, run),
            Workflow::Concern(_) => Outcome::notice(reality.posting(outgoing)),
            Workflow::Role(_) => reality.act_for_role(outgoing),
            Workflow::Vault(_) | Workflow::Notifier(_) => {
                panic!("the loop is asked for {}", outgoing.workflow)
            }
        };
        if reality.fault(12) {
            return Outcome::Later { error: "the answer was lost".to_owned() };
        }
        outcome
    }
}

/// A secret in a commit.
enum Holds {
    Nothing,
    /// It is told.
    Shape,
    /// It is not pushed.
    Known,
}

impl Reality {
    fn act(&mut self, outgoing: &Outgoing, task: &Task) -> Outcome {
        let issue = task.key.issue;
        match &outgoing.effect {
            Effect::ClaimIssue => self.claim(issue),
            Effect::StartSession { generation, opening } => {
                // One that was started once was set up before.
                if !self.record.started.contains(&(issue, *generation)) && self.fault(10) {
                    return self.setup_fails(task, *generation, *opening);
                }
                if let (Opening::Given, Some(given)) = (opening, &task.given) {
                    self.session_files(issue).gateway = Some(given.head.clone());
                }
                self.start_session(task, *generation)
            }
            Effect::EndSession { generation, exit } => self.end_session(task, *generation, *exit),
            Effect::SyncBranch => {
                // A look at the branch finds the same as long as the branch is the same.
                let found = FoundSecrets { what: "src/a.txt".to_owned(), fingerprints: vec!["1".to_owned()] };
                let (head, secret) = match self.holds_secret(issue) {
                    Holds::Known => (None, Some(found)),
                    Holds::Shape => (self.sync(issue), Some(found)),
                    Holds::Nothing => (self.sync(issue), None),
                };
                Outcome::event(Event::BranchSynced { head, protected: vec![], risk: None, secret })
            }
            Effect::OpenPullRequest => {
                Outcome::event(Event::PullRequestOpened { number: self.ensure_pull_request(issue) })
            }
            Effect::RunChecks { sha, run } => {
                self.checks.insert((issue, sha.clone(), *run));
                Outcome::done()
            }
            Effect::RequestReview { .. } | Effect::RecordCiResult { .. } | Effect::Checkpoint { .. } => {
                Outcome::done()
            }
            Effect::Enqueue { head } => Outcome::note(Note::Enqueue(Box::new(NewEntry {
                project: task.key.project.clone(),
                branch: task.contribution.branch.clone(),
                issue: Some(issue),
                pr: task.contribution.pr(),
                identity: Some(task.key.identity()),
                head: head.clone(),
                requested_at: self.now,
                priority: 0,
                worktree: None,
                style: None,
            }))),
            Effect::Dequeue => Outcome::note(Note::Dequeue { branch: task.contribution.branch.clone() }),
            Effect::Deliver { generation, headline, details, .. } => {
                self.deliver(issue, outgoing.id, *generation, *headline, details)
            }
            Effect::SetLabels { add, remove } => {
                let labels = &mut self.issue(issue).labels;
                labels.extend(add.iter().cloned());
                labels.retain(|label| !remove.contains(label));
                let labels = labels.iter().cloned().collect();
                // Read back, as the real world does.
                if !matches!(task.state, State::Blocked | State::Refused) {
                    return Outcome::done();
                }
                Outcome::event(Event::IssueObserved {
                    title: task.title.clone(),
                    open: true,
                    labels,
                    dependencies: Vec::new(),
                    open_dependencies: task.open_dependencies.clone(),
                    cycle: None,
                    asked_at: None,
                })
            }
            Effect::Comment { marker, .. } => self.comment(issue, marker, outgoing.id),
            Effect::Notify(_) => Outcome::notice(self.posting(outgoing)),
            Effect::CloseIssue => self.close(issue, outgoing.id),
            Effect::CleanUp => {
                self.session_files(issue).phase = None;
                if task.state == State::Closed && !task.ports.is_empty() {
                    self.record.ports.remove(&issue);
                    return Outcome::event(Event::PortsAssigned { ports: Vec::new() });
                }
                Outcome::done()
            }
            Effect::ReservePorts
            | Effect::ReadResult { .. }
            | Effect::NotifyQuestion
            | Effect::NotifyNeed { .. }
            | Effect::LookAtAction { .. }
            | Effect::CallOffLook { .. }
            | Effect::FireAction { .. }
            | Effect::NotifyAction
            | Effect::Deed { .. }
            | Effect::Tell { .. } => panic!("no task orders this"),
            Effect::VerifyMerge => {
                let recorded =
                    task.contribution.pr().and_then(|pr| self.pull_requests[&pr].merged_as.clone());
                let found =
                    || task.contribution.head().filter(|head| self.main.iter().any(|l| l.sha == **head));
                let merged_as = recorded.or_else(|| found().cloned());
                Outcome::event(Event::MergeLooked { merged_as })
            }
        }
    }

    fn claim(&mut self, number: Number) -> Outcome {
        let lost = |reason: &str| Outcome::event(Event::ClaimLost { reason: reason.to_owned() });
        let is_ours = self.issue(number).assignee.as_deref() == Some(ME);
        if !is_ours && self.fault(8) {
            return lost("somebody was faster and let go again");
        }
        let issue = self.issue(number);
        if !issue.open {
            return lost("the issue is closed");
        }
        if issue.assignee.as_deref().is_some_and(|other| other != ME) {
            return lost("the issue is assigned to somebody");
        }
        if issue.has(IN_PROGRESS) && issue.assignee.is_none() {
            return lost("somebody else has it in progress");
        }
        issue.assignee = Some(ME.to_owned());
        issue.label(&[IN_PROGRESS], &[BACKLOG, BLOCKED, UNDERSPECIFIED]);
        let events = vec![Event::PortsAssigned { ports: vec![self.port_for(number)] }, Event::Claimed];
        let events = events.into_iter().map(workflow::Event::Task).collect();
        Outcome::Done(Performed { events, ..Performed::default() })
    }

    /// The lowest port that no other task has.
    fn port_for(&mut self, number: Number) -> u16 {
        let free =
            (42_000..).find(|port| !self.record.ports.iter().any(|(of, had)| *of != number && had == port));
        *self.record.ports.entry(number).or_insert_with(|| free.expect("there are enough ports"))
    }

    fn start_session(&mut self, task: &Task, generation: u32) -> Outcome {
        let issue = task.key.issue;
        let found = self.session_files(issue).pane.clone();
        if found.as_ref().is_none_or(|pane| pane.generation != generation) {
            if let Some(old) = found.filter(|pane| pane.alive) {
                let excused = self.record.unended.contains(&(issue, old.generation));
                assert!(excused, "#{issue}: session {generation} starts beside session {}", old.generation);
            }
            let news = self.record.started.insert((issue, generation));
            assert!(news, "#{issue}: session {generation} was started twice");
            let mut pane = Pane::new(generation);
            pane.alive = !self.fault(15);
            self.session_files(issue).pane = Some(pane);
        }
        let row = self.task_session(task, generation);
        self.record.rows.insert(row.session.clone(), row.clone());
        let events = vec![workflow::Event::Task(Event::SessionStarted { generation })];
        Outcome::Done(Performed { events, sessions: vec![row], ..Performed::default() })
    }

    fn setup_fails(&mut self, task: &Task, generation: u32, opening: Opening) -> Outcome {
        let (error, log) = ("exit code 1".to_owned(), "npm ERR!".to_owned());
        let failed = Event::SetupFailed { generation, opening, error, log };
        let (ended_at, exit) = (Some(self.now), Some(Exit::Failed));
        let row = self.task_session(task, generation);
        let row = SessionRow { pid: None, pane: None, start_time: None, ended_at, exit, ..row };
        Outcome::Done(Performed {
            events: vec![workflow::Event::Task(failed)],
            sessions: vec![row],
            ..Performed::default()
        })
    }

    fn end_session(&mut self, task: &Task, generation: u32, exit: Exit) -> Outcome {
        let session_files = self.session_files(task.key.issue);
        if session_files.pane.as_ref().is_some_and(|pane| pane.generation == generation) {
            session_files.pane = None;
        }
        let tail = format!("last words of {generation}");
        let mut sessions = self.record.ended(&task.key.session(generation), exit, self.now);
        if sessions.is_empty() {
            // It was ordered and never launched.
            let (ended_at, exit) = (Some(self.now), Some(exit));
            let row = self.task_session(task, generation);
            sessions.push(SessionRow { pid: None, pane: None, start_time: None, ended_at, exit, ..row });
        }
        let events = vec![workflow::Event::Task(Event::SessionEnded { generation, exit, tail })];
        Outcome::Done(Performed { events, sessions, ..Performed::default() })
    }

    fn task_session(&self, task: &Task, generation: u32) -> SessionRow {
        SessionRow {
            session: task.key.session(generation),
            identity: task.key.identity(),
            project: task.key.project.clone(),
            issue: Some(task.key.issue),
            role: Role::Dev,
            generation,
            host: "signal-box".to_owned(),
            model: None,
            bead_id: None,
            node_id: None,
            hook_path: None,
            tmux_session: Some(task.key.identity()),
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
            predecessor: (generation > 1).then(|| task.key.session(generation - 1)),
            gauge: None,
            spent: Spent::default(),
        }
    }

    /// The branch goes to the forge as it is in the gateway, if it holds anything of its own.
    /// Whether the pushed commit holds a secret, by its name: looked at again, it is the same.
    fn holds_secret(&mut self, issue: Number) -> Holds {
        let pushed = self.session_files(issue).gateway.clone();
        let number = pushed.map_or(0, |sha| sha.as_str().bytes().map(u32::from).sum::<u32>() % 16);
        match number {
            1 => Holds::Known,
            2 => Holds::Shape,
            _ => Holds::Nothing,
        }
    }

    fn sync(&mut self, issue: Number) -> Option<Sha> {
        let pushed = self.session_files(issue).gateway.clone()?;
        if self.main.iter().any(|landed| landed.sha == pushed) {
            return None;
        }
        self.session_files(issue).remote = Some(pushed.clone());
        Some(pushed)
    }

    fn ensure_pull_request(&mut self, issue: Number) -> Number {
        if let Some(number) = self.open_pull_request(issue) {
            return number;
        }
        let number = 1_000 + self.fresh();
        let pr = PullRequest { issue, open: true, merged_as: None, reviews: Vec::new() };
        self.pull_requests.insert(number, pr);
        number
    }

    fn deliver(
        &mut self,
        issue: Number,
        id: EffectId,
        generation: u32,
        headline: Headline,
        details: &str,
    ) -> Outcome {
        let pane = self.session_files(issue).pane.as_mut();
        let Some(pane) = pane.filter(|pane| pane.alive && pane.generation == generation) else {
            return Outcome::note(Note::MessageSuperseded);
        };
        let mut pane = pane.clone();
        if self.record.typed.insert((issue, generation, id)) {
            for word in said_once(details) {
                let before = self.record.said.insert(word.clone(), id);
                assert!(before.is_none(), "#{issue}: {word} was told in {before:?} and again in {id}");
            }
            pane.type_line(headline);
            self.session_files(issue).pane = Some(pane);
        }
        Outcome::note(Note::MessageSent { path: PathBuf::from(format!("{id}.md")) })
    }

    fn comment(&mut self, issue: Number, marker: &str, id: EffectId) -> Outcome {
        let place = (issue, marker.to_owned());
        let by = *self.record.comments.entry(place).or_insert(id);
        assert_eq!(by, id, "#{issue}: the comment {marker} was never posted, an older one has its marker");
        Outcome::done()
    }

    fn close(&mut self, number: Number, id: EffectId) -> Outcome {
        if self.issue(number).open {
            let before = self.record.closed_by.insert(number, id);
            assert_ne!(before, Some(id), "#{number} was closed twice by the same order");
            self.issue(number).open = false;
        }
        Outcome::event(Event::IssueObserved {
            title: format!("issue {number}"),
            open: false,
            labels: Vec::new(),
            dependencies: Vec::new(),
            open_dependencies: Vec::new(),
            cycle: None,
            asked_at: None,
        })
    }

    /// What a merge leaves on the forge.
    pub(in crate::simulation) fn record_merge(&mut self, pr: Option<Number>, sha: &Sha) {
        if let Some(pr) = pr.and_then(|number| self.pull_requests.get_mut(&number)) {
            pr.open = false;
            pr.merged_as = Some(sha.clone());
        }
    }

    /// What is still to come for a task that is over: nothing may be left running.
    pub(in crate::simulation) fn is_at_rest(&self, task: &Task) -> bool {
        let alive = self.desks[&task.key.issue].pane.as_ref().is_some_and(|pane| pane.alive);
        task.state == State::Closed && !self.issues[&task.key.issue].open && !alive
    }
}

impl Record {
    /// The row of a session that has ended.
    pub(in crate::simulation) fn ended(
        &self,
        session: &str,
        exit: Exit,
        at: pointsman_core::time::Timestamp,
    ) -> Vec<SessionRow> {
        let row = self.rows.get(session).cloned();
        row.map(|row| SessionRow { ended_at: Some(at), exit: Some(exit), ..row }).into_iter().collect()
    }
}

/// The words in a message that may be said only once: `once:ci-4-2;`.
fn said_once(details: &str) -> Vec<String> {
    details
        .split("once:")
        .skip(1)
        .filter_map(|rest| rest.split_once(';'))
        .map(|(w, _)| w.to_owned())
        .collect()
}
