//! `pointsman demo` plays several stories at once in two throw-away projects.
//!
//! [`stories`] has the stories as data. [`stage`] sets up the projects, [`people`] plays the persons, [`blow`] kills
//! the daemon, [`watch`] follows the tasks, [`verdict`] checks the results, and [`screen`], [`news`] and [`board`] show them.
//! [`pace`] says how fast, [`leftovers`] removes what a killed demo left, [`recording`] makes a picture of it.
//! The demo uses the product as a user does: it runs its commands and reads its store, and calls no code of the
//! daemon.

mod blow;
mod board;
mod facts;
mod ink;
mod interrupt;
mod leftovers;
mod news;
mod pace;
mod people;
mod project;
mod recording;
mod screen;
mod stage;
mod stories;
mod verdict;
mod watch;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use blow::Blow;
use board::{Board, Played};
use facts::Remote;
use ink::Ink;
pub(crate) use interrupt::{Interrupt, Interrupted};
pub(crate) use leftovers::{Owner, PREFIX, end_sessions, sweep};
use news::News;
pub use pace::Pace;
use people::{Filed, Part, People};
use recording::Recording;
use screen::{Row, Screen};
use stage::Stage;
pub(crate) use stage::{cache_dir, remove};
use verdict::Facts;
use watch::{Seen, Watcher};

/// A play that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(120);
/// Between two looks at the store.
const LOOK: Duration = Duration::from_millis(50);
/// Lines of the board are broken by the terminal, not by us.
const BOARD_WIDTH: usize = 1000;

/// The options of the demo.
#[derive(Clone, Debug)]
pub struct Options {
    /// The result as JSON on standard output; progress on standard error.
    pub json: bool,
    /// Everything is left to look around in.
    pub keep: bool,
    pub color: bool,
    pub pace: Pace,
    /// Where a picture of the play goes.
    pub svg: Option<PathBuf>,
}

/// Plays all stories; answers whether everything went as they say.
///
/// An interrupt cleans up and exits the process with 130.
#[allow(clippy::disallowed_methods, reason = "all is cleared away; only this tells the caller")]
pub fn run(options: Options) -> anyhow::Result<bool> {
    let interrupt = Interrupt::listen()?;
    let result = if options.json {
        perform(&options, &interrupt, io::stderr())
    } else {
        perform(&options, &interrupt, io::stdout())
    };
    match result {
        Err(error) if error.is::<Interrupted>() => {
            // A terminal that was closed takes no words.
            let _ = writeln!(io::stderr(), "Interrupted. The daemon has stopped, and everything is removed.");
            std::process::exit(interrupt::EXIT_CODE)
        }
        result => result,
    }
}

#[allow(clippy::disallowed_methods, reason = "a command begins here: the environment is its input")]
fn perform<W>(options: &Options, interrupt: &Interrupt, mut out: W) -> anyhow::Result<bool>
where
    W: Write + IsTerminal + AsFd,
{
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let ink = if options.color && !no_color && out.is_terminal() { Ink::Coloured } else { Ink::Black };
    let began = Instant::now();
    writeln!(
        out,
        "Thirteen stories in two throw-away projects: real git, real tmux, real processes, no model."
    )?;
    let mut recording = options.svg.as_ref().map(|_| Recording::default());
    let mut stage = Stage::build(options.pace)?;
    let staged = Staging { pace: options.pace, began, ink };
    let board = match play(&mut stage, interrupt, &mut out, &staged, recording.as_mut()) {
        Ok(board) => board,
        Err(error) => {
            if !error.is::<Interrupted>() {
                let _ = writeln!(io::stderr(), "{}", stage.log_tail());
            }
            return Err(error);
        }
    };
    for line in board.lines() {
        writeln!(out, "{}", line.render(ink, BOARD_WIDTH))?;
    }
    if let (Some(file), Some(recording)) = (&options.svg, &recording) {
        fs::write(file, recording.svg()).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let ok = board.ok();
    if !ok {
        writeln!(out, "\nThe end of the daemon's log:\n{}", stage.log_tail())?;
    }
    if options.keep {
        writeln!(out, "\nEverything is kept and nothing runs any more. Look around:")?;
        for line in stage.keep() {
            writeln!(out, "  {line}")?;
        }
    } else {
        drop(stage);
        writeln!(out, "Everything is removed again; `pointsman demo --keep` leaves it to look around in.")?;
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&board.view())?);
    }
    Ok(ok)
}

/// How a play is shown.
struct Staging {
    pace: Pace,
    began: Instant,
    ink: Ink,
}

/// From the first issue to the last fact.
#[allow(clippy::disallowed_methods, reason = "the play is watched from outside, as a person does")]
fn play<W>(
    stage: &mut Stage,
    interrupt: &Interrupt,
    out: &mut W,
    staged: &Staging,
    recording: Option<&mut Recording>,
) -> anyhow::Result<Board>
where
    W: Write + IsTerminal + AsFd,
{
    stage.start_daemon(interrupt)?;
    let mut watcher = Watcher::open(&stage.database())?;
    let filed = people::file_issues(stage)?;
    let Staging { pace, began, ink } = *staged;
    let limit = pace.extend(LIMIT);
    let mut people = People::default();
    let mut news = News::default();
    let mut blow = Blow::default();
    let mut clock = Clock::default();
    let mut screen = Screen::new(out, ink, filed.len(), recording);
    let mut troubles = Vec::new();
    let seen = loop {
        interrupt.check()?;
        let mut seen = watcher.look()?.clone();
        for f in filed.iter().filter(|f| f.act.ends.fires.is_some()) {
            if let (Some(seen), Some(id)) = (seen.get_mut(&f.part), f.act.ends.fires) {
                seen.action = watcher.action(f.part.project, id)?;
            }
        }
        let seen = &seen;
        clock.tick(&filed, seen);
        let over = filed.iter().all(|f| seen.get(&f.part).is_some_and(|seen| f.act.is_over(seen)));
        if stage.daemon_is_gone() && !blow.is_down() {
            troubles.push("the daemon has ended by itself".to_owned());
        } else if began.elapsed() > limit {
            troubles.push(format!("not over after {} s", limit.as_secs()));
        }
        for f in &filed {
            for text in seen.get(&f.part).map(|seen| news.of(f, seen)).unwrap_or_default() {
                screen.tell(text, began.elapsed())?;
            }
        }
        let last = over || !troubles.is_empty();
        screen.show(&clock.rows(&filed, seen), began.elapsed(), last)?;
        if last {
            break seen.clone();
        }
        let all = seen;
        for f in &filed {
            if let Some(seen) = all.get(&f.part) {
                if submitted(&filed, all) && blow.strike(stage, f, seen)? {
                    screen.tell(
                        "kill -9: the daemon is gone. The sessions go on".to_owned(),
                        began.elapsed(),
                    )?;
                }
                if !blow.holds_up(f) && !people::review_has_to_wait(f, &filed, all) {
                    people.act(stage, f, seen, pace.reaction())?;
                }
            }
        }
        if blow.recover(stage, interrupt, pace.reaction())? {
            screen.tell("the daemon is back and found every session".to_owned(), began.elapsed())?;
        }
        thread::sleep(LOOK);
    };
    troubles.extend(filed.iter().filter_map(|f| blow.trouble(f, seen.get(&f.part)?)));
    let played = judge(stage, &filed, &seen)?;
    Ok(Board { played, troubles, took: began.elapsed() })
}

/// Whether every action of a story is in the vault. A daemon that dies while it takes one leaves its agent with an error, as
/// with any command that is interrupted, and the story is about something else.
fn submitted(filed: &[Filed], seen: &BTreeMap<Part, Seen>) -> bool {
    let mut actors = filed.iter().filter(|f| f.act.ends.fires.is_some());
    actors.all(|f| seen.get(&f.part).is_some_and(|seen| seen.action.is_some()))
}

fn judge(stage: &Stage, filed: &[Filed], seen: &BTreeMap<Part, Seen>) -> anyhow::Result<Vec<Played>> {
    let mut remotes = BTreeMap::new();
    for project in project::NAMES {
        remotes.insert(project, Remote::find(stage, project)?);
    }
    let nothing = Seen::default();
    let mut known: BTreeMap<Part, Facts> = BTreeMap::new();
    let mut played = Vec::new();
    for f in filed {
        let facts = facts::gather(stage, &remotes[f.part.project], f, seen.get(&f.part).unwrap_or(&nothing))?;
        let before = f.after.and_then(|part| known.get(&part));
        let differences = verdict::differences(f.act, &facts, before);
        known.insert(f.part, facts.clone());
        played.push(Played { filed: *f, facts, differences });
    }
    Ok(played)
}

/// How long each task takes, from its filing to its end.
#[derive(Default)]
struct Clock {
    began: BTreeMap<Part, Instant>,
    took: BTreeMap<Part, Duration>,
}

impl Clock {
    fn tick(&mut self, filed: &[Filed], seen: &BTreeMap<Part, Seen>) {
        for f in filed {
            let began = *self.began.entry(f.part).or_insert_with(Instant::now);
            if seen.get(&f.part).is_some_and(Seen::is_over) {
                self.took.entry(f.part).or_insert_with(|| began.elapsed());
            }
        }
    }

    fn rows(&self, filed: &[Filed], seen: &BTreeMap<Part, Seen>) -> Vec<Row> {
        let row = |f: &Filed| {
            let seen = seen.get(&f.part);
            let running = || self.began.get(&f.part).map(Instant::elapsed).unwrap_or_default();
            Row {
                part: f.part,
                story: f.story,
                title: f.act.title,
                state: seen.and_then(Seen::state),
                phase: seen.and_then(|s| s.task.as_ref()?.phase),
                elapsed: self.took.get(&f.part).copied().unwrap_or_else(running),
            }
        };
        filed.iter().map(row).collect()
    }
}
