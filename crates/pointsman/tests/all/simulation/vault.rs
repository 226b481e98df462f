//! Vault actions and runs: what people order, what the agents of runs do, and the effects of actions, which talk to the
//! loop while they are performed.

use std::sync::Arc;

use pointsman::daemon::engine::Input;
use pointsman::daemon::outcome::{Outcome, PerformEffects, Performed};
use pointsman_core::config::Config;
use pointsman_core::formula::{Formula, shipped, variables};
use pointsman_core::ids::{ActionKey, RunKey};
use pointsman_core::part::question::Cause;
use pointsman_core::part::session::{self, Demand, Stage};
use pointsman_core::role::Role;
use pointsman_core::run::{Event as RunEvent, Run, Subject, vault_key};
use pointsman_core::task::{Effect, Exit, Phase};
use pointsman_core::time::Timestamp;
use pointsman_core::vault::{
    Action, ActionId, Entry, Estimate, Event, FORMULA, Firing, Outcome as Handled, Risk, Status, heard, rule,
};
use pointsman_core::workflow::{self, Workflow};
use pointsman_store::{Outgoing, RunScope, VaultScope};

use super::daemon::{Daemon, Item, Source};
use super::reality::Reality;
use super::reality::runs::RunDeed;

/// The actions that people submit in a story.
const ACTIONS: u64 = 5;
/// The runs that people begin in a story.
const RUNS: usize = 6;
const ANN: &str = "ann";

impl Daemon {
    /// Somebody does something to the vault.
    pub(super) fn somebody_acts_on_the_vault(&mut self) {
        let number = 1 + self.reality().chance.next() % ACTIONS;
        let id = ActionId::new(&format!("a{number}")).expect("a name");
        let key = ActionKey { project: self.reality().story.project(), id };
        let stored = self.action(&key);
        let Some(entry) = stored else { return self.submit(&key, number) };
        let whim = self.reality().chance.below(12);
        let (again, reason) = (entry.status == Status::Uncertain, "because".to_owned());
        let event = match whim {
            0 => return self.submit(&key, number),
            1..6 => Event::Approved { by: ANN.to_owned(), hash: entry.hash, again },
            6 => Event::Approved { by: ANN.to_owned(), hash: "0".repeat(64), again: true },
            7 | 8 => Event::Rejected { by: ANN.to_owned(), reason },
            9 => {
                let estimate = Estimate { risk: Risk::High, reversible: false, requires_human: true };
                Event::Raised { by: ANN.to_owned(), estimate, reason }
            }
            _ => return,
        };
        self.decide(key, event);
    }

    fn submit(&mut self, key: &ActionKey, number: u64) {
        let kind = ["low", "medium", "high"][usize::try_from(number % 3).expect("below three")];
        let text = format!(
            r#"{{"id": "{}", "type": "{kind}", "source": "ann", "risk": "low", "reversible": true,
                "requires_human": false, "payload": {number}}}"#,
            key.id
        );
        let action = Action::parse(text.as_bytes()).expect("an action");
        let (now, config) = self.reality().setting();
        let entry = Entry::new(key.project.clone(), action, now);
        let input = Input::submit(entry, rule(&config, kind));
        self.hear(input);
    }

    fn decide(&mut self, key: ActionKey, event: Event) {
        let mut input = Input::of_action(key, event);
        // Some come by chat, and a chat tells everything twice.
        if self.reality().chance.one_in(3) {
            input.dedup = Some(format!("chat:{}", self.reality().fresh()));
            self.hear(input.clone());
        }
        self.hear(input);
    }

    /// A person is heard at once. The daemon may die before they are told so.
    fn hear(&mut self, input: Input) {
        self.say(format!("person: {} {:?}", input.workflow, input.event));
        self.take_group(&[input], Vec::new());
        self.may_crash("after a person was heard", 30);
    }

    pub(super) fn action(&mut self, key: &ActionKey) -> Option<Entry> {
        self.engine().store().vault_entry(&key.project, &key.id).expect("actions can be read")
    }

    fn actions(&mut self) -> Vec<Entry> {
        let project = self.reality().story.project();
        self.engine().store().vault_entries(&project, VaultScope::All).expect("actions can be read")
    }

    pub(super) fn runs(&mut self) -> Vec<Run> {
        self.engine().runs().values().map(|run| Run::clone(run)).collect()
    }

    /// Performs an effect of an action. Nothing if the daemon died over it.
    pub(super) fn perform_for_action(&mut self, outgoing: &Outgoing, entry: &Entry) -> Option<Outcome> {
        if self.reality().fault(40) {
            return Some(Outcome::Never { error: "this can never be done".to_owned() });
        }
        if self.reality().fault(12) {
            return Some(Outcome::Later { error: "not reached".to_owned() });
        }
        if let Effect::FireAction { firing } = &outgoing.effect {
            return self.fire(entry, *firing);
        }
        if let Effect::LookAtAction { hash } = &outgoing.effect {
            return self.begin_look(entry, hash);
        }
        if let Effect::CallOffLook { hash } = &outgoing.effect {
            let about = self.engine().store().runs_about(&entry.project, &vault_key(hash));
            for run in about.expect("runs can be read").iter().filter(|run| !run.status.is_over()) {
                let stopped = Input::of_run(run.key(), RunEvent::Stopped { by: "vault".to_owned() });
                self.told(Source::Workers, Item::Inputs(vec![stopped]));
            }
            return Some(Outcome::done());
        }
        assert_eq!(outgoing.effect, Effect::NotifyAction, "no action orders anything else");
        Some(match entry.told {
            0 => Outcome::done(),
            _ => {
                let events = vec![workflow::Event::Vault(Event::Told)];
                let notices = vec![self.reality().posting(outgoing)];
                Outcome::Done(Performed { events, notices, ..Performed::default() })
            }
        })
    }

    /// The handler of an action. Every run of it can be seen from outside.
    fn fire(&mut self, entry: &Entry, firing: u32) -> Option<Outcome> {
        let learned = |event| Some(Outcome::learned(workflow::Event::Vault(event)));
        match entry.firing(firing) {
            Firing::Begin => {}
            Firing::InDoubt => return learned(Event::FiringLost),
            Firing::Overtaken => return Some(Outcome::done()),
        }
        let begun = Input::of_action(entry.key(), Event::FiringBegun);
        self.take_group(&[begun], Vec::new());
        if self.may_crash("after a firing was written down", 6) {
            return None;
        }
        let now = self.action(&entry.key()).expect("it is there");
        if (now.status, now.firings) != (Status::Firing, firing) {
            return Some(Outcome::done());
        }
        self.say(format!("FIRE {} for the {firing}. time", entry.id()));
        let news = self.reality().record.handled.insert((entry.id().clone(), firing));
        assert!(news, "{}: run {firing} of its handler began twice", entry.id());
        let by = now.decided_by.as_deref();
        assert!(firing == 1 || by == Some(ANN), "{}: fired again, and nobody said so: {now:?}", entry.id());
        if self.may_crash("after a handler ran", 4) {
            return None;
        }
        if self.reality().fault(30) {
            return Some(Outcome::Never { error: "it panicked".to_owned() });
        }
        let outcome = self.reality().handled();
        learned(Event::FiringEnded { firing, outcome })
    }

    fn begin_look(&mut self, entry: &Entry, hash: &str) -> Option<Outcome> {
        let project = entry.project.clone();
        if !entry.awaits_look || entry.hash != hash {
            return Some(Outcome::done());
        }
        let about = self.engine().store().runs_about(&project, &vault_key(hash)).expect("runs can be read");
        if let Some(run) = about.first() {
            let over = heard(run).map(|event| Outcome::learned(workflow::Event::Vault(event)));
            return Some(over.unwrap_or_else(Outcome::done));
        }
        let subject = Subject::Vault { id: entry.id().clone(), hash: hash.to_owned() };
        self.begin(FORMULA, Some(subject));
        match self.may_crash("after a look was begun", 4) {
            true => None,
            false => Some(Outcome::done()),
        }
    }

    /// Somebody begins a run, answers one or stops one.
    pub(super) fn somebody_acts_on_runs(&mut self) {
        let runs = self.runs();
        let whim = self.reality().chance.below(10);
        if runs.is_empty() || whim < 2 {
            let project = self.reality().story.project();
            let all = self.engine().store().runs(&project, RunScope::Last(100)).expect("runs can be read");
            if all.iter().filter(|run| run.subject.is_none()).count() < RUNS {
                self.begin(Role::Gardener.formula(), None);
            }
            return;
        }
        let run = self.reality().chance.pick(&runs).clone();
        match whim {
            2 => self.hear(Input::of_run(run.key(), RunEvent::Stopped { by: ANN.to_owned() })),
            _ => self.answer_run(&run),
        }
    }

    pub(super) fn answer_run(&mut self, run: &Run) {
        let text = format!("answer {}", self.reality().fresh());
        let asks_about_setup = run.question.as_ref().is_some_and(|asked| asked.cause == Cause::Setup);
        let event = match asks_about_setup && self.reality().fresh().is_multiple_of(2) {
            true => RunEvent::SetupRetried { by: ANN.to_owned() },
            false => RunEvent::Answered { by: ANN.to_owned(), text },
        };
        let answers = run.question.as_ref().and_then(|asked| asked.id);
        self.hear(Input { answers, ..Input::of_run(run.key(), event) });
    }

    pub(super) fn begin(&mut self, formula: &str, subject: Option<Subject>) {
        let (now, config) = self.reality().setting();
        let text = shipped(formula).expect("a formula that we ship");
        let formula = Formula::render(text, formula, &variables(&config)).expect("a formula");
        let id = self.engine().store().next_run(&config.name).expect("runs can be read");
        self.say(format!("run {id} begins, about {subject:?}"));
        let run = Run::new(id, formula, &config, ANN, now).about(subject);
        self.take_group(&[Input::begin(run)], Vec::new());
    }

    /// An agent of a run does something.
    pub(super) fn run_acts(&mut self, key: &RunKey) {
        let deed = self.reality().choose(key);
        let run = self.engine().runs().get(key).cloned();
        self.say(format!("agent of {key}: {deed:?}"));
        let next = run.as_ref().and_then(|run| run.next_step()).map(|step| step.id.clone());
        match (deed, next) {
            (RunDeed::GoOn, Some(step)) => {
                let generation = run.map_or(0, |run| run.session.generation);
                self.take_group(
                    &[Input::of_run(key.clone(), RunEvent::StepDone { generation, step })],
                    Vec::new(),
                );
            }
            (deed, _) => self.reality().act_in_run(key, deed),
        }
    }

    /// Reads the phase files of all runs, looks for those that ended, and for idle prompts.
    pub(super) fn look_at_runs(&mut self) {
        for run in self.runs().into_iter().filter(|run| run.session.stage != Stage::None) {
            self.look_at_run(&run);
        }
    }

    fn look_at_run(&mut self, run: &Run) {
        let (key, generation) = (run.key(), run.session.generation);
        let desk = self.reality().run_desk(&key).clone();
        let tell = |told| Input::of_session(key.clone().into(), generation, told);
        let name = format!("phase-{key}");
        let remembered =
            self.engine().store().cursor(Some(&key.project), &name).expect("cursors can be read");
        let mut inputs = Vec::new();
        if let Some(file) = desk.phase.filter(|file| remembered != Some(file.stamp.to_string())) {
            let reason = Some("because".to_owned());
            let told = match file.phase {
                Some(phase) => session::Event::PhaseClaimed { phase, reason, refusal: None, plan: None },
                None => session::Event::PhaseRejected { why: "no phase".to_owned() },
            };
            inputs.push(Input { cursor: Some((name, file.stamp.to_string())), ..tell(told) });
        }
        let pane = desk.pane.filter(|pane| pane.generation == generation);
        if run.session.stage == Stage::Alive && !pane.as_ref().is_some_and(|pane| pane.alive) {
            let (exit, tail) = (Exit::Crashed, "gone".to_owned());
            let mut ended = tell(session::Event::Ended { exit, tail });
            ended.sessions = self.written_off(&key.session(generation));
            inputs.push(ended);
        } else if run.session.stage == Stage::Alive && run.demand() == Demand::Work && run.phase.is_none() {
            let at_prompt = pane.is_some_and(|pane| pane.idle);
            inputs.push(tell(session::Event::IdleLooked { at_prompt }));
        }
        if !inputs.is_empty() {
            self.told(Source::Runs, Item::Inputs(inputs));
        }
    }

    /// Everybody does what runs and actions wait for.
    pub(super) fn everybody_decides(&mut self) {
        for entry in self.actions() {
            let again = entry.status == Status::Uncertain;
            if matches!(entry.status, Status::Pending | Status::Uncertain) && !entry.awaits_look {
                let event = Event::Approved { by: ANN.to_owned(), hash: entry.hash.clone(), again };
                self.decide(entry.key(), event);
            }
        }
        for run in self.runs().into_iter().filter(|run| run.phase == Some(Phase::Escalate)) {
            self.answer_run(&run);
        }
    }

    /// Whether nothing is left to be done about runs and actions.
    pub(super) fn are_runs_and_actions_over(&mut self) -> bool {
        self.engine().runs().is_empty() && self.actions().iter().all(|entry| !entry.is_open())
    }

    /// One of the workers performs its effect; nothing if the daemon died over it.
    pub(super) fn perform(&mut self, outgoing: &Outgoing, owner: &Workflow) -> Option<Outcome> {
        match owner {
            Workflow::Vault(entry) => self.perform_for_action(outgoing, entry),
            Workflow::Notifier(notifier) => self.tell(outgoing, notifier),
            Workflow::Task(_) | Workflow::Run(_) | Workflow::Concern(_) | Workflow::Role(_) => {
                Some(self.world.perform(outgoing, owner))
            }
        }
    }
}

impl Reality {
    fn setting(&self) -> (Timestamp, Arc<Config>) {
        (self.now, Arc::clone(&self.story.config))
    }

    /// The end of a handler.
    fn handled(&mut self) -> Handled {
        let why = || "exit code 1".to_owned();
        let ends =
            [Handled::Done, Handled::Done, Handled::Failed { why: why() }, Handled::Unknown { why: why() }];
        if self.calm { Handled::Done } else { self.chance.pick(&ends).clone() }
    }
}
