//! Does what a person said. Each message counts once, by its name on the server: what follows from it and the answer to
//! it are written together.

use std::time::Duration;

use pointsman_adapters::notify::matrix::Own;
use pointsman_core::chat::{ChatAction, Command, MessageContext, PersonMessage, Reply, Report, act};
use pointsman_core::config::NotifierKind;
use pointsman_core::ids::{ActionKey, ProjectName, TaskKey};
use pointsman_core::log;
use pointsman_core::notifier::{Lane, Posting, Topic};
use pointsman_core::part::question::{
    self as question, Act, Binding, Kind, Owner, Question, QuestionId, Settled, bind,
};
use pointsman_core::role::Role;
use pointsman_core::run::Run;
use pointsman_core::task::{Effect, Event, Headline, Notice, Order, Refused, Stage, State, Task};
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::vault::{self as core_vault, ActionId};
use pointsman_core::words;
use pointsman_store::{Change, Delivered, Error, NewNotice, NewReply, RunScope, VaultScope, Write};

use super::standing;
use crate::control::protocol::{InboxCommand, Reply as Answer};
use crate::daemon::answer::no_budget;
use crate::daemon::crash::crash_point;
use crate::daemon::engine::{Engine, Input};
use crate::daemon::outcome::NotTaken;
use crate::daemon::questions;
use crate::daemon::{runs, vault};

type Result<T> = std::result::Result<T, pointsman_store::Error>;

/// Clocks of servers that differ by less are not corrected; an answer is not refused for it.
const SAME_CLOCK: Duration = Duration::from_secs(5);
/// Whoever reads what is said in the room about the machine.
const SUPERVISOR: &str = Role::Supervisor.as_str();

/// One message of a person, with all that is known about where it was said.
struct PersonInput<'a> {
    project: &'a ProjectName,
    said: &'a PersonMessage,
    topic: Topic,
    /// Its name among all inputs.
    name: String,
    now: Timestamp,
}

/// Takes in what a listed person said in a room of ours.
pub(super) fn take(
    engine: &mut Engine,
    project: &ProjectName,
    place: &str,
    said: &PersonMessage,
    now: Timestamp,
) -> Result<()> {
    match hear(engine, project, place, said, now) {
        // Whatever cannot be read keeps nobody else in the room from being heard.
        Err(Error::Unreadable(what)) => {
            let name = input_name(project, said);
            let words = PersonInput { project, said, topic: Topic::Room, name, now };
            words.answer(engine, words::chat::not_taken(&words::reason::unreadable(&what)))
        }
        heard => heard,
    }
}

/// What was said counts once, by this name.
fn input_name(project: &ProjectName, said: &PersonMessage) -> String {
    format!("matrix:{project}:{}", said.event)
}

fn hear(
    engine: &mut Engine,
    project: &ProjectName,
    place: &str,
    said: &PersonMessage,
    now: Timestamp,
) -> Result<()> {
    let name = input_name(project, said);
    if engine.store().knows_input(&name)? {
        return Ok(());
    }
    let topic = match &said.place {
        MessageContext::Room => None,
        MessageContext::Thread(root) => engine.store().topic_of_thread(project, place, root)?,
        MessageContext::Answer(to) => match engine.store().topic_of_thread(project, place, to)? {
            Some(topic) => Some(topic),
            None => engine.store().topic_of_message(project, to)?,
        },
    };
    // People talk to each other in threads that are none of ours.
    if topic.is_none() && said.place != MessageContext::Room {
        return Ok(());
    }
    let hash = match &topic {
        Some(Topic::Vault(id)) => engine.store().vault_entry(project, id)?.map(|entry| entry.hash),
        Some(Topic::Task(_) | Topic::Agent(_) | Topic::Question(_) | Topic::Room) | None => None,
    };
    let Some(act) = act(said, topic.as_ref(), hash.as_deref()) else { return Ok(()) };
    tracing::info!(%project, by = said.by, topic = ?topic, ?act, "a person spoke");
    let words = PersonInput { project, said, topic: topic.unwrap_or(Topic::Room), name, now };
    words.carry_out(engine, act)?;
    crash_point("reply-taken");
    Ok(())
}

/// A notice of ours is in the room. It may be that whoever sent it has not learnt so yet, or never will: an answer must
/// find its thread all the same.
pub(super) fn confirm(engine: &mut Engine, project: &ProjectName, place: &str, own: &Own) -> Result<()> {
    let store = engine.store();
    let Some(pending) = store.pending_delivery(project, NotifierKind::Matrix, &own.key)? else {
        return Ok(());
    };
    let known = store.thread(project, place, &pending.posting.topic)?;
    let thread = standing::thread(store, &pending.posting, known, place, &own.event);
    let delivered = Delivered::Sent { sent_as: Some(own.event.clone()), thread };
    let settled = Write::Delivered { id: pending.id, delivered, at: own.at };
    engine.write(&[Change::quiet(own.at, vec![settled])]).map(drop)
}

/// More was written than was read.
pub(super) fn missed(
    engine: &Engine,
    project: &ProjectName,
    upto: &str,
    now: Timestamp,
) -> Result<Option<Write>> {
    tracing::error!(%project, "messages in the room were not read: there were too many");
    let posting = Posting {
        key: format!("missed:{project}:{upto}"),
        project: project.clone(),
        topic: Topic::Room,
        link: None,
        question: None,
        notice: words::chat::missed(project),
    };
    super::planned(engine, &posting, now)
}

impl PersonInput<'_> {
    fn carry_out(&self, engine: &mut Engine, act: ChatAction) -> Result<()> {
        match act {
            ChatAction::Speak => self.speak(engine),
            ChatAction::Order(order) => self.order(engine, order),
            ChatAction::Approve { again } => self.approve(engine, again),
            ChatAction::Reject { reason } => {
                let given = Some(reason).filter(|reason| !reason.is_empty());
                let reason = given.unwrap_or_else(|| words::daemon::notifier::rejected_in_chat().to_owned());
                self.decide(engine, core_vault::Event::Rejected { by: self.said.by.clone(), reason })
            }
            ChatAction::Tell(report) => {
                let notice = self.report(engine, report)?;
                self.answer(engine, notice)
            }
            ChatAction::Keep(reply) => self.keep(engine, reply),
            ChatAction::Refuse(refusal) => self.answer(engine, words::chat::refused(&refusal)),
        }
    }

    /// An answer in the same thread.
    fn reply(&self, notice: Notice, question: Option<String>) -> NewNotice {
        let posting = Posting {
            key: format!("reply:{}", self.name),
            project: self.project.clone(),
            topic: self.topic.clone(),
            link: None,
            question,
            notice,
        };
        NewNotice { posting, lane: Lane::Prompt, to: vec![(NotifierKind::Matrix, self.now)] }
    }

    /// What is written of it in any case.
    fn change(&self, notice: Notice) -> Change {
        let (by, topic) = (self.said.by.clone(), self.topic.clone());
        let spoke = log::Entry::PersonSpoke { by, topic, text: clean_line(&self.said.text, 500) };
        let mut change = Change::logged(self.now, self.project, &spoke);
        change.issue = self.topic.issue();
        change.dedup = Some(self.name.clone());
        change.notices = vec![self.reply(notice, None)];
        change
    }

    fn answer(&self, engine: &mut Engine, notice: Notice) -> Result<()> {
        engine.write(&[self.change(notice)]).map(drop)
    }

    fn task(&self, engine: &mut Engine) -> Result<Option<Task>> {
        let Some(issue) = self.topic.issue() else { return Ok(None) };
        engine.store().task(&TaskKey { project: self.project.clone(), issue })
    }

    /// The task's agent hears it.
    fn speak(&self, engine: &mut Engine) -> Result<()> {
        if let Topic::Question(id) = &self.topic {
            return self.answer_question(engine, *id);
        }
        let Some(task) = self.task(engine)? else { return Ok(()) };
        let (by, text) = (&self.said.by, &self.said.text);
        let asked = task.escalation.as_ref().filter(|_| task.state == State::Escalated);
        // Where a question takes a yes or a no, plain words decide it. A plan knows its words itself.
        let decides = asked.filter(|asked| {
            let is_old = self.said.at.after(SAME_CLOCK) < asked.asked_at;
            self.said.plain && !is_old && asked.kind != Kind::Plan
        });
        if let Some(asked) = decides
            && let Some((act, reason)) = question::decision(asked.kind, text)
        {
            let asked = asked.clone();
            return self.decide_question(engine, &asked, act, reason);
        }
        // What was said before the question is no answer to it.
        if asked.is_some_and(|asked| self.said.at.after(SAME_CLOCK) >= asked.asked_at) {
            let event = Event::Answered { by: by.clone(), text: text.clone() };
            return self.step(engine, &task, event, words::chat::answered(&task));
        }
        let owner = Owner::Task(task.key.issue);
        let settled = questions::settled_by_person(engine.store(), self.project, &owner, self.now)?;
        if task.session.stage != Stage::Alive {
            return self.answer(engine, words::chat::nobody_there(&task, settled.as_deref()));
        }
        let (subject, details) = words::message::from_chat(by, text);
        let mut change = self.change(words::chat::passed_on(&task, settled.as_deref()));
        change.effects = vec![Effect::Deliver {
            generation: task.session.generation,
            headline: Headline::Answer,
            subject,
            details,
        }];
        change.session = task.session_id();
        change.task = Some(task);
        engine.write(&[change]).map(drop)
    }

    /// The answer to a question, in its own thread or by its number.
    fn answer_question(&self, engine: &mut Engine, id: QuestionId) -> Result<()> {
        let asked = engine.store().question(id)?.filter(|asked| asked.source.project == *self.project);
        let Some(asked) = asked else {
            return self.answer(engine, words::chat::not_taken(&words::question::unknown(id)));
        };
        if self.said.plain
            && let Some((act, reason)) = question::decision(asked.kind, &self.said.text)
        {
            return self.decide_question(engine, &asked, act, reason);
        }
        if asked.settled.is_none() && !asked.kind.takes(Act::Answer) {
            let why = words::question::takes_no(&asked, Act::Answer);
            return self.answer(engine, words::chat::not_taken(&why));
        }
        let with = |run: &Run| runs::WithAnswer {
            dedup: Some(self.name.clone()),
            notices: vec![self.reply(words::chat::run_answered(run), None)],
        };
        let (by, text) = (&self.said.by, &self.said.text);
        match runs::answered(engine, &asked, by, text, self.now, with)? {
            Ok(_) => Ok(()),
            Err(NotTaken::Missing) => {
                self.answer(engine, words::chat::not_taken(&words::question::nobody_waits(id)))
            }
            Err(NotTaken::Refused(why)) => self.answer(engine, words::chat::not_taken(&why)),
        }
    }

    /// A yes, a no or a dismissal in the thread of a question, as with `inbox`. Whoever said it before a crash and is read again is not
    /// told that somebody was first.
    fn decide_question(&self, engine: &mut Engine, asked: &Question, act: Act, reason: String) -> Result<()> {
        let Some(id) = asked.id else { return Ok(()) };
        let by = self.said.by.clone();
        let command = match act {
            Act::Approve => InboxCommand::Approve { by },
            Act::Reject => InboxCommand::Reject { reason, by },
            Act::Answer => InboxCommand::Answer { text: self.said.text.clone(), by },
            Act::Dismiss => InboxCommand::Dismiss { by },
        };
        // A review is posted on the forge, for the commit that the person has seen.
        if asked.kind == Kind::Review {
            return self.answer(engine, words::chat::not_taken(&words::question::settled_elsewhere(asked)));
        }
        let is_ours = |settled: &Settled| settled.by.as_deref() == Some(self.said.by.as_str());
        if asked.settled.as_ref().is_some_and(is_ours) {
            return self.answer(engine, words::chat::settled(id));
        }
        match questions::settle(engine, self.project, id, &command) {
            Answer::Done { .. } => self.answer(engine, words::chat::settled(id)),
            Answer::Failed { message, .. } => self.answer(engine, words::chat::not_taken(&message)),
        }
    }

    /// The open questions of the runs of an agent.
    fn asked_by_agent(&self, engine: &Engine, agent: &str) -> Result<Vec<QuestionId>> {
        let runs = engine.store().runs(self.project, RunScope::Open)?;
        let topic = Topic::Agent(agent.to_owned());
        let of_agent = runs.iter().filter(|run| Topic::of_formula(&run.formula.name) == topic);
        Ok(of_agent.filter_map(|run| run.question.as_ref()?.id).collect())
    }

    fn order(&self, engine: &mut Engine, order: Order) -> Result<()> {
        let Some(task) = self.task(engine)? else { return Ok(()) };
        if let Some(Answer::Failed { message, .. }) = no_budget(engine, self.project, task.key.issue, order) {
            return self.answer(engine, words::chat::not_taken(&message));
        }
        let done = words::daemon::notifier::carried_out(order);
        self.step(engine, &task, Event::Ordered { order }, words::chat::obeyed(&task, done))
    }

    /// The task learns it, together with the answer to whoever said it.
    fn step(&self, engine: &mut Engine, task: &Task, event: Event, notice: Notice) -> Result<()> {
        let mut input = Input::new(task.key.clone(), event);
        input.dedup = Some(self.name.clone());
        input.notices = vec![self.reply(notice, None)];
        match engine.take(&[input], self.now)?.pop() {
            Some(Err(Refused::NotNow(why) | Refused::Stale(why))) => {
                self.answer(engine, words::chat::not_taken(&why))
            }
            Some(Ok(())) | None => Ok(()),
        }
    }

    fn action(&self) -> Option<&ActionId> {
        match &self.topic {
            Topic::Vault(id) => Some(id),
            Topic::Task(_) | Topic::Agent(_) | Topic::Question(_) | Topic::Room => None,
        }
    }

    /// A yes counts for the question that its writer has seen, by somebody who is listed for the vault by name.
    fn approve(&self, engine: &mut Engine, again: bool) -> Result<()> {
        let (Some(id), Some(config)) = (self.action(), engine.config(self.project)) else { return Ok(()) };
        if !config.vault.people.contains(&self.said.by) {
            let why = words::daemon::notifier::not_listed_for_vault(&self.said.by);
            return self.answer(engine, words::chat::not_taken(&why));
        }
        let Some(entry) = engine.store().vault_entry(self.project, id)? else { return Ok(()) };
        if let Some(question) = entry.question() {
            let asked =
                engine.store().asked_at(self.project, &self.topic, &question, NotifierKind::Matrix)?;
            if asked.is_none_or(|at| self.said.at < at) {
                let mut change = self.change(words::chat::changed(&entry));
                change.notices = vec![self.reply(words::chat::changed(&entry), Some(question))];
                return engine.write(&[change]).map(drop);
            }
        }
        let limit = config.timing.vault_approval.duration();
        if self.said.at.after(limit) <= self.now {
            return self.answer(engine, words::chat::stale(&entry, limit));
        }
        let (by, hash) = (self.said.by.clone(), entry.hash);
        self.decide(engine, core_vault::Event::Approved { by, hash, again })
    }

    fn decide(&self, engine: &mut Engine, event: core_vault::Event) -> Result<()> {
        let Some(id) = self.action() else { return Ok(()) };
        let decided = words::chat::decided(id, matches!(event, core_vault::Event::Approved { .. }));
        let key = ActionKey { project: self.project.clone(), id: id.clone() };
        let (dedup, notices) = (Some(self.name.clone()), vec![self.reply(decided, None)]);
        let input = Input { dedup, notices, ..Input::of_action(key, event) };
        match vault::happened(engine, input, self.now)? {
            Ok(_) => Ok(()),
            Err(NotTaken::Missing) => {
                self.answer(engine, words::chat::not_taken(words::daemon::notifier::no_such_action()))
            }
            Err(NotTaken::Refused(why)) => {
                let owner = Owner::Vault(id.clone());
                let why = questions::with_first(engine, self.project, &owner, why, self.now);
                self.answer(engine, words::chat::not_taken(&why))
            }
        }
    }

    fn report(&self, engine: &mut Engine, report: Report) -> Result<Notice> {
        let tasks: Vec<Task> = engine
            .tasks()
            .values()
            .filter(|task| task.key.project == *self.project)
            .map(|task| (**task).clone())
            .collect();
        Ok(match report {
            Report::Stuck => {
                let actions = engine.store().vault_entries(self.project, VaultScope::Open)?;
                words::chat::stuck(self.project, tasks.iter(), &actions, self.now)
            }
            Report::Status => words::chat::status(self.project, tasks.iter()),
            Report::Help => words::chat::help(),
        })
    }

    /// Kept for the agent of the thread; what is said about the machine in the room is the supervisor's.
    fn keep(&self, engine: &mut Engine, reply: Reply) -> Result<()> {
        let agent = match (&self.topic, &reply) {
            (Topic::Agent(name), _) => name.as_str(),
            (
                Topic::Task(_) | Topic::Vault(_) | Topic::Question(_) | Topic::Room,
                Reply::Command { command: Command::Ignore { .. } },
            ) => SUPERVISOR,
            (
                Topic::Task(_) | Topic::Vault(_) | Topic::Question(_) | Topic::Room,
                Reply::Command { .. } | Reply::Text,
            ) => return Ok(()),
        };
        // Several runs of an agent share its thread: words there are an answer only if nobody else can be meant.
        if reply == Reply::Text {
            let open = self.asked_by_agent(engine, agent)?;
            match bind(&open, &self.said.text) {
                Binding::To(id) => return self.answer_question(engine, id),
                Binding::Ambiguous => return self.answer(engine, words::chat::which_question(&open)),
                Binding::None => {}
            }
        }
        let mut change = self.change(words::chat::kept(agent));
        change.reply = Some(NewReply {
            project: self.project.clone(),
            topic: Topic::Agent(agent.to_owned()),
            by: self.said.by.clone(),
            words: self.said.text.clone(),
            reply,
        });
        engine.write(&[change]).map(drop)
    }
}
