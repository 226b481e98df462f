//! Plays a script in a working tree.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use pointsman_adapters::process::{Finished, Run};
use pointsman_core::role::Role;
use pointsman_core::task::{Refusal, RefusalStatus};

use super::message::{self, Message};
use super::progress::{self, Progress};
use super::report::Reporter;
use super::script::{self, Step};
use super::terminal::Terminal;

/// For one call of git; a push waits for the daemon's gateway at most.
const GIT_LIMIT: Duration = Duration::from_secs(60);
/// For one acknowledgement; the play does not depend on it.
const ACK_LIMIT: Duration = Duration::from_secs(5);
/// What an agent is told before it hands over.
const SAVE_AND_EXIT: &str = "Save your work and exit cleanly";
/// The prompt's file in the inbox.
const PROMPT: &str = "0000-task.md";

/// What it is about, for who runs a formula.
const REQUEST: &str = "request.md";
/// What it answered before.
const EARLIER: &str = "earlier-review.md";

/// What an agent program finds.
pub(super) struct Surroundings {
    pub(super) tree: PathBuf,
    /// Where it writes its phase.
    pub(super) phase_file: PathBuf,
    /// Where it writes a summary, a refusal or a result.
    pub(super) summary_file: PathBuf,
    /// Where it writes its plan, if somebody wants to see one.
    pub(super) plan_file: Option<PathBuf>,
    /// Whether it runs a formula instead of implementing an issue.
    pub(super) runs_formula: bool,
    /// Where prompt and details are.
    pub(super) inbox: PathBuf,
    /// The program that acknowledges messages.
    pub(super) pointsman: PathBuf,
    /// Where it reports what nobody sees from outside.
    pub(super) reporter: Reporter,
    pub(super) session: String,
    /// Which turn this is, if it has no terminal to wait at.
    pub(super) turn: Option<u32>,
    /// The pause before each step.
    pub(super) pause: Duration,
}

/// How a play ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Exit(i32),
    Crash,
    /// Never, and busy.
    Hang,
    /// There is nothing to do before the next message comes, with the next turn.
    TurnOver,
    /// The service refuses for so long.
    Limited {
        /// In seconds.
        seconds: u32,
    },
}

/// A message and whether only the prompt told it.
struct Received {
    message: Message,
    inherited: bool,
}

/// An agent at work.
pub(super) struct Player<F, W> {
    place: Surroundings,
    terminal: Terminal<F>,
    log: W,
    received: Vec<Received>,
    /// Messages that were acknowledged: one that is sent again is no second message.
    acknowledged: BTreeSet<i64>,
}

impl<F: AsFd, W: Write> Player<F, W> {
    pub(super) fn new(place: Surroundings, terminal: Terminal<F>, log: W) -> Self {
        Self { place, terminal, log, received: Vec::new(), acknowledged: BTreeSet::new() }
    }

    /// Reads the prompt, then plays from where a predecessor was to the end.
    pub(super) fn play(&mut self) -> anyhow::Result<Ending> {
        self.note("rehearsal agent, waiting for a prompt");
        self.await_prompt()?;
        let prompt = fs::read_to_string(self.place.inbox.join(PROMPT)).context("cannot read the prompt")?;
        let script = match self.script(&prompt) {
            Ok(script) => script,
            Err(error) => return self.fail(&error.to_string()),
        };
        let head = self.git(&["rev-parse", "HEAD"])?;
        let path = self.git(&["rev-parse", "--git-path", progress::FILE])?;
        let progress = Progress::at(self.place.tree.join(path));
        if self.place.turn.is_none_or(|turn| turn == 1) {
            let inherited = message::inherited(&prompt, &head).into_iter();
            self.received.extend(inherited.map(|message| Received { message, inherited: true }));
        } else {
            for line in progress.heard() {
                self.hear(&line);
            }
        }
        let ending = self.play_on(&script, &progress)?;
        if ending == Ending::TurnOver {
            progress.remember_heard(self.received.iter().map(|r| r.message.line()))?;
        }
        Ok(ending)
    }

    fn script(&self, prompt: &str) -> Result<Vec<Step>, script::Error> {
        if !self.place.runs_formula {
            return script::parse(prompt);
        }
        let read = |name: &str| fs::read_to_string(self.place.inbox.join(name)).ok();
        let role = Role::of_session(&self.place.session).map_err(script::Error::Role)?;
        // Who is asked about many things finds its script where they are quoted.
        let request = read(REQUEST).unwrap_or_else(|| prompt.to_owned());
        script::parse_role(&request, role, read(EARLIER).is_some())
    }

    fn play_on(&mut self, script: &[Step], progress: &Progress) -> anyhow::Result<Ending> {
        let first = progress.next(script);
        if first > 0 {
            self.note(&format!("an earlier session did {first} of {} steps", script.len()));
        }
        for (index, step) in script.iter().enumerate().skip(first) {
            for line in self.terminal.arrived()? {
                self.hear(&line);
            }
            super::take_time(self.place.pause);
            // A step that ends us is over before it begins: a successor must not repeat it.
            if matches!(step, Step::Crash | Step::Exit(_) | Step::RateLimit(_)) {
                progress.remember(index + 1)?;
            }
            match self.perform(step) {
                Ok(Some(Ending::Exit(0))) if matches!(step, Step::ExitClean { .. }) => {
                    progress.remember(index + 1)?;
                    self.acknowledge();
                    return Ok(self.at_end_of_input(0));
                }
                Ok(None) => progress.remember(index + 1)?,
                Ok(Some(ending)) => return Ok(ending),
                Err(error) => return self.fail(&format!("step {}: {error:#}", index + 1)),
            }
            if let Step::Expect(_) = step {
                self.acknowledge();
            }
        }
        self.note("the script is over");
        self.listen()
    }

    fn perform(&mut self, step: &Step) -> anyhow::Result<Option<Ending>> {
        match step {
            Step::Say(text) => self.note(text),
            Step::Write { path, text } => {
                self.note(&format!("write {}", path.display()));
                fs::write(self.file(path)?, text)?;
            }
            Step::Append { path, text } => self.append(path, text)?,
            Step::Commit(message) => self.commit(message)?,
            Step::Push => {
                self.note("push");
                self.git(&["push", "--quiet", "origin", "HEAD"])?;
                // Whatever a predecessor was told, it was about an older head.
                self.received.retain(|r| !r.inherited);
            }
            Step::MergeMain => self.merge_main()?,
            Step::Summary(text) => {
                self.note("write the summary");
                fs::write(&self.place.summary_file, format!("{text}\n"))?;
            }
            Step::Plan(text) => {
                self.note("write the plan");
                let file = self.place.plan_file.as_ref().context("nobody wants to see a plan")?;
                fs::write(file, format!("{text}\n"))?;
                self.phase("escalate", Some("plan"))?;
            }
            Step::Phase { name, reason } => self.phase(name, reason.as_deref())?,
            Step::RawPhase(text) => {
                self.note(&format!("write `{text}` into the phase file"));
                fs::write(&self.place.phase_file, format!("{text}\n"))?;
            }
            Step::Expect(headline) => return self.expect(headline),
            Step::Refuse { status, blocked_by, reason } => self.refuse(*status, blocked_by, reason)?,
            Step::Context(percent) => self.report_context(*percent),
            Step::Spend { tokens, cents } => {
                self.note(&format!("report {tokens} tokens, {cents} cents"));
                let told = self.place.reporter.spend(*tokens, *cents);
                self.note_trouble(told);
            }
            Step::Checkpoint { phase, summary } => {
                self.note(&format!("report {phase}: {summary}"));
                let told = self.place.reporter.checkpoint(*phase, summary);
                self.note_trouble(told);
            }
            Step::Submit(action) => {
                self.note("submit an action to the vault");
                let submit =
                    Run::new(&self.place.pointsman).args(["vault", "submit"]).stdin(action.as_bytes());
                let done = environment(submit).cwd(&self.place.tree).time_limit(GIT_LIMIT).finish()?;
                if !done.end.success() {
                    bail!("vault submit: {}", last_line(&done));
                }
            }
            Step::Answer(result) => self.answer(result)?,
            Step::Crash => {
                self.note("crash");
                return Ok(Some(Ending::Crash));
            }
            Step::RateLimit(seconds) => {
                self.note(&format!("limited for {seconds} s"));
                if self.place.turn.is_some() {
                    return Ok(Some(Ending::Limited { seconds: *seconds }));
                }
                self.phase("failed", Some(&format!("api_error: rate_limit retry after {seconds}s")))?;
                return self.expect("Answer");
            }
            Step::Exit(code) => {
                self.note(&format!("exit {code}"));
                return Ok(Some(Ending::Exit(*code)));
            }
            Step::ExitClean { report } => {
                if let Some(percent) = report {
                    self.report_context(*percent);
                }
                let gone = self.expect(SAVE_AND_EXIT)?;
                return Ok(gone.or(Some(Ending::Exit(0))));
            }
            Step::Hang => {
                self.note("hang");
                return Ok(Some(Ending::Hang));
            }
            Step::Idle => return self.sit_at_prompt().map(Some),
        }
        Ok(None)
    }

    /// All steps that the prompt does not call done, then the result.
    fn answer(&mut self, result: &str) -> anyhow::Result<()> {
        let prompt = fs::read_to_string(self.place.inbox.join(PROMPT)).context("cannot read the prompt")?;
        let open = prompt.lines().filter(|line| line.starts_with("## ") && !line.ends_with("(done)"));
        for (id, _) in open.filter_map(|line| line.split_once(". ")?.1.split_once(':')) {
            self.note(&format!("step {id}"));
            let done = Run::new(&self.place.pointsman).args(["step", "done", id]);
            let done = environment(done).cwd(&self.place.tree).time_limit(GIT_LIMIT).finish()?;
            if !done.end.success() {
                bail!("step {id}: {}", last_line(&done));
            }
        }
        self.note("write the result");
        fs::write(&self.place.summary_file, result)?;
        self.phase("done", None)
    }

    fn report_context(&mut self, percent: u16) {
        self.note(&format!("report {percent} % of the window used"));
        let told = self.place.reporter.context(percent);
        self.note_trouble(told);
    }

    fn append(&mut self, path: &Path, text: &str) -> anyhow::Result<()> {
        let file = self.file(path)?;
        if fs::read_to_string(&file).is_ok_and(|held| held.ends_with(text)) {
            self.note(&format!("append to {}: done before", path.display()));
            return Ok(());
        }
        self.note(&format!("append to {}", path.display()));
        OpenOptions::new().create(true).append(true).open(file)?.write_all(text.as_bytes())?;
        Ok(())
    }

    fn commit(&mut self, message: &str) -> anyhow::Result<()> {
        self.git(&["add", "--all"])?;
        if self.git(&["status", "--porcelain"])?.is_empty() {
            self.note(&format!("commit {message}: nothing left to commit"));
            return Ok(());
        }
        self.note(&format!("commit {message}"));
        self.git(&["commit", "--quiet", &format!("--message={message}")])?;
        Ok(())
    }

    /// What does not fit stays in the tree, as git leaves it.
    fn merge_main(&mut self) -> anyhow::Result<()> {
        self.note("take the main branch in");
        self.git(&["fetch", "--quiet", "origin"])?;
        if let Err(conflict) = self.git(&["merge", "--quiet", "--no-edit", "origin/main"]) {
            let files = self.git(&["diff", "--name-only", "--diff-filter=U"])?;
            if files.is_empty() {
                return Err(conflict);
            }
            self.note(&format!("in conflict: {}", files.replace('\n', ", ")));
        }
        Ok(())
    }

    fn phase(&mut self, name: &str, reason: Option<&str>) -> anyhow::Result<()> {
        self.note(&format!("PHASE:{name}"));
        let reason = reason.map(|r| format!("Reason: {r}\n")).unwrap_or_default();
        fs::write(&self.place.phase_file, format!("PHASE:{name}\n{reason}"))?;
        Ok(())
    }

    fn refuse(&mut self, status: RefusalStatus, blocked_by: &[u64], reason: &str) -> anyhow::Result<()> {
        self.note("refuse the task");
        let refusal = Refusal { status, reason: reason.to_owned(), blocked_by: blocked_by.to_vec() };
        fs::write(&self.place.summary_file, serde_json::to_vec(&refusal)?)?;
        self.phase("failed", Some("refused"))
    }

    /// What a real agent does when it cannot go on: it says so.
    fn fail(&mut self, reason: &str) -> anyhow::Result<Ending> {
        self.note(&format!("cannot go on: {reason}"));
        self.phase("failed", Some(reason))?;
        self.listen()
    }

    fn await_prompt(&mut self) -> anyhow::Result<()> {
        while let Some(line) = self.terminal.next_line()? {
            if line.contains(PROMPT) {
                self.hear(&line);
                // The prompt itself is not a message to react to.
                self.acknowledge();
                return Ok(());
            }
            self.hear(&line);
        }
        // Nobody can type to us; the prompt is in the inbox all the same.
        Ok(())
    }

    /// Waits until a message that begins with `headline` is there; it becomes the newest one.
    fn expect(&mut self, headline: &str) -> anyhow::Result<Option<Ending>> {
        self.note(&format!("wait for: {headline}"));
        loop {
            if let Some(index) = self.received.iter().position(|r| r.message.is(headline)) {
                let found = self.received.remove(index);
                // The prompt may have told the same thing twice, as a message and as the last result.
                self.received.retain(|r| !(r.inherited && r.message.is(headline)));
                self.read_details(&found.message);
                self.received.push(found);
                return Ok(None);
            }
            match self.terminal.next_line()? {
                Some(line) => self.hear(&line),
                None => return Ok(Some(self.at_end_of_input(1))),
            }
        }
    }

    fn hear(&mut self, line: &str) {
        match Message::parse(line) {
            Some(Message { id: Some(id), .. }) if self.acknowledged.contains(&id) => self.say_read(id),
            Some(message) if self.received.iter().any(|r| r.message.id == message.id) => {}
            Some(message) => self.received.push(Received { message, inherited: false }),
            None if line.trim().is_empty() => {}
            None => self.note(&format!("heard: {}", line.trim())),
        }
    }

    fn read_details(&mut self, message: &Message) {
        self.note(&format!("got: {}", message.text));
        let Some(path) = message.details.as_ref().filter(|p| p.starts_with(&self.place.inbox)) else {
            return;
        };
        match fs::read_to_string(path) {
            Ok(text) => self.note(&format!("read {}: {} lines", path.display(), text.lines().count())),
            Err(error) => self.note(&format!("cannot read {}: {error}", path.display())),
        }
    }

    /// Takes the newest message off the pile and says that it was read, after the progress that it
    /// brought is on disk: a successor then finds either the one or the other.
    fn acknowledge(&mut self) {
        if let Some(id) = self.received.pop().and_then(|r| r.message.id) {
            self.acknowledged.insert(id);
            self.say_read(id);
        }
    }

    fn say_read(&mut self, id: i64) {
        let ack = Run::new(&self.place.pointsman).arg("ack").arg(format!("m-{id}"));
        match environment(ack).cwd(&self.place.tree).time_limit(ACK_LIMIT).finish() {
            Ok(done) if done.end.success() => {}
            Ok(done) => self.note(&format!("m-{id} could not be acknowledged: {}", last_line(&done))),
            Err(error) => self.note(&format!("m-{id} could not be acknowledged: {error}")),
        }
    }

    /// Has nothing left to do, but still reads what it is told.
    fn listen(&mut self) -> anyhow::Result<Ending> {
        loop {
            while !self.received.is_empty() {
                self.acknowledge();
            }
            match self.terminal.next_line()? {
                Some(line) => self.hear(&line),
                None => return Ok(self.at_end_of_input(0)),
            }
        }
    }

    fn sit_at_prompt(&mut self) -> anyhow::Result<Ending> {
        self.note("at the prompt");
        while let Some(line) = self.terminal.next_line()? {
            self.note(&format!("heard: {}", line.trim()));
        }
        Ok(self.at_end_of_input(0))
    }

    /// A terminal that is gone ends us; without one the next message comes with the next turn.
    fn at_end_of_input(&self, code: i32) -> Ending {
        if self.place.turn.is_some() { Ending::TurnOver } else { Ending::Exit(code) }
    }

    fn file(&self, path: &Path) -> io::Result<PathBuf> {
        let file = self.place.tree.join(path);
        if let Some(dir) = file.parent() {
            fs::create_dir_all(dir)?;
        }
        Ok(file)
    }

    fn git(&self, args: &[&str]) -> anyhow::Result<String> {
        let run = environment(Run::new("git")).args(args).cwd(&self.place.tree).time_limit(GIT_LIMIT);
        let done = run.finish()?;
        if !done.end.success() {
            bail!("git {}: {} ({})", args.first().unwrap_or(&""), last_line(&done), done.end);
        }
        Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned())
    }

    /// A report that nobody takes is no reason to stop either.
    fn note_trouble(&mut self, told: Result<(), String>) {
        if let Err(why) = told {
            self.note(&format!("not reported: {why}"));
        }
    }

    /// A line for whoever watches. A terminal that is gone is no reason to stop.
    fn note(&mut self, text: &str) {
        let _ = writeln!(self.log, "• {text}").and_then(|()| self.log.flush());
    }
}

/// An agent's programs see what the agent sees.
#[allow(clippy::disallowed_methods, reason = "what an agent starts has the agent's environment")]
fn environment(run: Run) -> Run {
    std::env::vars_os().fold(run, |run, (name, value)| run.env(name, value))
}

fn last_line(done: &Finished) -> String {
    let text = String::from_utf8_lossy(&done.stderr);
    text.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("no message").trim().to_owned()
}

#[cfg(test)]
mod tests;
