//! The command line has one file per verb. Doc comments are the help text.
//!
//! A verb reads the store or asks the daemon through [`daemon_client`], and prints with [`out`]. It decides nothing
//! about tasks. `run` of its arguments performs it. [`context`] finds the project, and [`failure`] has the exit codes.

mod ack;
mod agent;
mod agents;
mod backup;
mod board;
mod checkout;
mod checkpoint;
mod ci;
mod claim;
mod claim_file;
mod claude;
mod completions;
mod config;
mod context;
mod daemon_client;
mod demo;
mod deps;
mod doctor;
pub(crate) mod down;
mod events;
mod evidence;
mod explain;
mod failure;
mod forge;
mod forge_text;
mod formula;
mod gauge;
mod halt;
mod handover;
mod health;
mod hook;
mod hook_status;
mod inbox;
mod inbox_screen;
mod init;
mod journal;
mod launch;
mod man;
mod merge_queue;
mod network;
mod notify;
mod out;
pub(crate) mod pages;
mod phase;
mod pipeline;
mod project;
mod prompt;
mod report;
mod report_page;
mod rescue;
mod restore;
mod roles;
mod rounds;
mod run;
mod sandbox;
mod sandbox_learn;
mod schedule;
mod service;
mod session;
mod session_attach;
mod session_explain;
mod session_log;
mod signals;
mod status;
mod statusline;
mod style;
mod sync;
mod table;
mod task;
mod time;
mod up;
mod vault;
mod web;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, Parser, Subcommand};
use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::role::Role;

pub(crate) use context::Context;
pub(crate) use failure::Failure as WebFailure;
use failure::{Code, Failure};
use out::Out;

use crate::control::protocol::{Printed, Reading, Reply, Request};
use crate::paths::Paths;

/// Pointsman keeps AI coding sessions on the rails.
///
/// It takes issues from a forge and gives each one to an agent, in a working tree and a terminal of its own. It
/// watches the agent's signals, feeds CI results and reviews back to it, merges finished branches one after another,
/// and restarts any session that dies.
#[derive(Debug, Parser)]
#[command(name = "pointsman", version, propagate_version = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Begin:
  pointsman demo                                 watch it work: no account, no model
  pointsman init && pointsman up                 set up this repository and start
  pointsman forge issue create --title \"Add a login page\" --label backlog

Look:
  pointsman status                               what runs and what needs a person
  pointsman inbox                                what waits for a person, and how to settle it
  pointsman report                               what was done this week, and at which cost
  pointsman health                               how well the machine and the project are
  pointsman agents --watch                       who is alive, and at what
  pointsman task explain 3                       why issue 3 is where it is
  pointsman session attach 3                     watch the agent type

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused, 4 not found, 5 the daemon is needed and not running,
6 configuration error, 7 outside service unavailable, 130 interrupted.";

/// What holds for every command.
#[derive(Debug, Args)]
struct Global {
    /// Run as if started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true, help_heading = "Global options")]
    start_in: Option<PathBuf>,
    /// The project's name; by default the project of the nearest pointsman.toml
    #[arg(long, value_name = "NAME", global = true, value_parser = project_name, help_heading = "Global options")]
    project: Option<ProjectName>,
    /// Print data as JSON
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,
    /// Print no colours, like NO_COLOR or a pipe
    #[arg(long, global = true, help_heading = "Global options")]
    no_color: bool,
    /// Print more details; repeat for even more
    #[arg(short, long, action = clap::ArgAction::Count, global = true, help_heading = "Global options")]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Arguments),
    Sync(sync::Arguments),
    Doctor(doctor::Arguments),
    Up(up::Arguments),
    Down(down::Arguments),
    Halt(halt::Arguments),
    Resume(halt::Resume),
    #[command(subcommand)]
    Service(service::Command),
    Status(status::Arguments),
    Inbox(inbox::Arguments),
    Health(health::Arguments),
    Journal(journal::Arguments),
    Roles(roles::Arguments),
    Report(report::Arguments),
    #[command(subcommand, visible_alias = "tasks")]
    Task(task::Command),
    #[command(subcommand, visible_alias = "sessions")]
    Session(session::Command),
    #[command(subcommand)]
    Forge(forge::Command),
    Agents(agents::Arguments),
    #[command(subcommand)]
    Agent(agent::Command),
    Board(board::Arguments),
    Events(events::Arguments),
    Signals(signals::Arguments),
    #[command(subcommand)]
    Project(project::Command),
    #[command(subcommand)]
    Config(config::Command),
    #[command(subcommand)]
    Sandbox(sandbox::Command),
    #[command(subcommand, visible_alias = "mq")]
    MergeQueue(merge_queue::Command),
    #[command(subcommand)]
    Notify(notify::Command),
    #[command(subcommand)]
    Formula(formula::Command),
    #[command(subcommand)]
    Pipeline(pipeline::Command),
    Schedule(schedule::Arguments),
    #[command(subcommand, visible_alias = "runs")]
    Run(run::Command),
    #[command(subcommand)]
    Step(run::Step),
    #[command(subcommand)]
    Vault(vault::Command),
    #[command(subcommand)]
    Web(web::Command),
    #[command(subcommand)]
    Rescue(rescue::Command),
    Backup(backup::Arguments),
    Restore(restore::Arguments),
    Claim(claim::Claiming),
    Handoff(claim::HandOff),
    Release(claim::Release),
    #[command(subcommand)]
    Claude(claude::Command),
    Hook(hook::Arguments),
    Statusline(statusline::Arguments),
    Demo(demo::Arguments),
    Ack(ack::Arguments),
    Checkpoint(checkpoint::Arguments),
    Gauge(gauge::Arguments),
    #[command(subcommand)]
    Phase(phase::Command),
    Deps(deps::Arguments),
    #[command(subcommand)]
    Ci(ci::Command),
    Completions(completions::Arguments),
    Man(man::Arguments),
    #[command(hide = true)]
    Launch(launch::Arguments),
    #[command(hide = true)]
    Enter(launch::Enter),
    #[command(hide = true)]
    Confine(launch::Confine),
    #[command(hide = true)]
    Proxy(network::Proxy),
    #[command(hide = true)]
    Forward(network::Forward),
    #[command(hide = true)]
    Keep(launch::Keep),
    #[command(hide = true)]
    RehearsalAgent(launch::Rehearsal),
}

/// Runs the program: reads the command line, does it, tells what went wrong.
pub fn main() -> ExitCode {
    if let Some(code) = hook::shortcut() {
        return code;
    }
    if let Some(done) = launch::shortcut() {
        return finish(done, false);
    }
    let arguments: Vec<OsString> = claude::with_plain_project(std::env::args_os().collect());
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return wrong_usage(&error, &arguments),
    };
    let json = cli.global.json;
    finish(run(cli), json)
}

/// The exit code of a command, after its failure was told.
fn finish(done: Result<ExitCode, Failure>, json: bool) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(failure) => {
            failure.report(json);
            ExitCode::from(failure.code() as u8)
        }
    }
}

/// Reports a command line that cannot be understood, as JSON if that was asked for. Help and the version are no mistakes.
fn wrong_usage(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let after = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    if error.use_stderr() && arguments[..after].iter().any(|argument| argument == "--json") {
        let text = error.render().to_string();
        let (message, hint) = text.split_once("\n\n").unwrap_or((text.trim_end(), ""));
        let message = message.strip_prefix("error: ").unwrap_or(message).trim_end();
        let mut failure = Failure::new(Code::Usage, message);
        if !hint.trim().is_empty() {
            failure = failure.hint(hint.trim());
        }
        failure.report(true);
        return ExitCode::from(Code::Usage as u8);
    }
    // A closed pipe is all that can go wrong.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Code::Usage as u8))
}

#[allow(clippy::disallowed_methods, reason = "a command begins here: the environment is its input")]
fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let Cli { global, command } = cli;
    if global.no_color {
        anstream::ColorChoice::Never.write_global();
    }
    if let Some(directory) = &global.start_in {
        std::env::set_current_dir(directory)
            .map_err(|error| Failure::not_found(format!("cannot enter {}: {error}", directory.display())))?;
    }
    if !command.minds_interrupts() {
        exit_on_interrupt();
    }
    let out = Out::new(global.json);
    let verbose = global.verbose;
    let context = || -> Result<Context, Failure> {
        let paths = Paths::from_env(|name| std::env::var_os(name))?;
        let route = daemon_client::Route::default();
        Ok(Context { out, paths, wanted: global.project.clone(), verbose, route })
    };
    // Inside a sandbox there is no database to read: the daemon is asked for what the command would print.
    if let Some(what) = command.reading() {
        let context = context()?;
        if let Some(project) = context::own_project(&context.paths) {
            let request = Request::Read { project, what, json: out.is_json() };
            let Printed { code, out: printed, errors } = context.ask_daemon(&request)?;
            if !errors.is_empty() {
                out.say(errors.trim_end());
            }
            out.text(&printed)?;
            return Ok(ExitCode::from(code));
        }
    }
    match command {
        Command::Init(arguments) => arguments.run(&context()?)?,
        Command::Sync(arguments) => arguments.run(&context()?)?,
        Command::Doctor(arguments) => arguments.run(&context()?)?,
        Command::Up(arguments) => arguments.run(&context()?)?,
        Command::Down(arguments) => arguments.run(&context()?)?,
        Command::Halt(arguments) => arguments.run(&context()?)?,
        Command::Resume(arguments) => arguments.run(&context()?)?,
        Command::Service(command) => command.run(&context()?)?,
        Command::Status(arguments) => arguments.run(&context()?)?,
        Command::Inbox(arguments) => arguments.run(&context()?)?,
        Command::Health(arguments) => arguments.run(&context()?)?,
        Command::Journal(arguments) => arguments.run(&context()?)?,
        Command::Roles(arguments) => arguments.run(&context()?)?,
        Command::Report(arguments) => arguments.run(&context()?)?,
        Command::Task(command) => command.run(&context()?)?,
        Command::Session(command) => command.run(&context()?)?,
        Command::Forge(command) => command.run(&context()?)?,
        Command::Agents(arguments) => arguments.run(&context()?)?,
        Command::Agent(command) => command.run(&context()?)?,
        Command::Board(arguments) => arguments.run(&context()?)?,
        Command::Events(arguments) => arguments.run(&context()?)?,
        Command::Signals(arguments) => arguments.run(&context()?)?,
        Command::Project(command) => command.run(&context()?)?,
        Command::Config(command) => command.run(&context()?)?,
        Command::Sandbox(command) => command.run(&context()?)?,
        Command::MergeQueue(command) => command.run(&context()?)?,
        Command::Notify(command) => command.run(&context()?)?,
        Command::Vault(command) => command.run(&context()?)?,
        Command::Web(command) => command.run(&context()?)?,
        Command::Rescue(command) => command.run(&context()?)?,
        Command::Backup(arguments) => arguments.run(&context()?)?,
        Command::Restore(arguments) => arguments.run(&context()?)?,
        Command::Claim(arguments) => arguments.run(&context()?)?,
        Command::Handoff(arguments) => arguments.run(&context()?)?,
        Command::Release(arguments) => arguments.run(&context()?)?,
        Command::Claude(command) => command.run(&context()?)?,
        Command::Ack(arguments) => arguments.run(&context()?)?,
        Command::Checkpoint(arguments) => arguments.run(&context()?)?,
        Command::Gauge(arguments) => arguments.run(&context()?)?,
        Command::Schedule(arguments) => arguments.run(&context()?)?,
        Command::Run(command) => command.run(&context()?)?,
        Command::Step(command) => command.run(&context()?)?,
        Command::Formula(command) => command.run(context, out)?,
        // The rest needs no state directory and works wherever it is put into a pipe.
        Command::Phase(command) => command.run(out)?,
        Command::Pipeline(command) => command.run(out)?,
        Command::Deps(arguments) => arguments.run(out)?,
        Command::Ci(command) => command.run(out, context)?,
        Command::Completions(arguments) => arguments.run()?,
        Command::Man(arguments) => arguments.run()?,
        Command::Demo(arguments) => arguments.run(out)?,
        Command::Statusline(arguments) => arguments.run()?,
        Command::Hook(arguments) => return arguments.run(),
        Command::Launch(arguments) => return arguments.run(),
        Command::Enter(arguments) => return arguments.run(),
        Command::Confine(arguments) => return arguments.run(),
        Command::Proxy(arguments) => return arguments.run(),
        Command::Forward(arguments) => return arguments.run(),
        Command::Keep(arguments) => return arguments.run(),
        Command::RehearsalAgent(arguments) => return arguments.run(),
    }
    Ok(ExitCode::SUCCESS)
}

impl Command {
    /// What it reads, if it is a command that a session may need.
    fn reading(&self) -> Option<Reading> {
        match self {
            Self::Task(command) => command.reading(),
            Self::Ci(command) => command.reading(),
            _ => None,
        }
    }

    /// Whether it has something to put in order before it goes, or a program of its own that does.
    fn minds_interrupts(&self) -> bool {
        match self {
            Self::Up(_)
            | Self::Demo(_)
            | Self::Launch(_)
            | Self::Enter(_)
            | Self::Confine(_)
            | Self::Proxy(_)
            | Self::Forward(_)
            | Self::Keep(_)
            | Self::Agent(_)
            | Self::RehearsalAgent(_) => true,
            Self::Doctor(arguments) => arguments.minds_interrupts(),
            Self::MergeQueue(command) => command.minds_interrupts(),
            _ => false,
        }
    }
}

/// An interrupted command has its own exit code, also for callers that are no shell.
fn exit_on_interrupt() {
    let at_once = Arc::new(AtomicBool::new(true));
    // Without the handler the signal still ends us.
    let _ = signal_hook::flag::register_conditional_shutdown(signal_hook::consts::SIGINT, 130, at_once);
}

/// Reads the number of an issue or a pull request, as people write it: `5` or `#5`.
fn number(text: &str) -> Result<Number, String> {
    let digits = text.strip_prefix('#').unwrap_or(text);
    digits.parse().map_err(|_| format!("`{text}` is not a number such as 5 or #5"))
}

/// Reads a role's word; the words are part of the help and of an error.
fn role() -> impl clap::builder::TypedValueParser<Value = Role> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PossibleValuesParser::new(Role::ALL.map(Role::as_str)).try_map(|word| word.parse::<Role>())
}

fn project_name(text: &str) -> Result<ProjectName, String> {
    ProjectName::try_from(text.to_owned())
}

/// The surroundings of a view that the daemon shows to a visitor of the web. `ask` answers as the control socket would.
pub(crate) fn inside_daemon(paths: Paths, ask: Arc<dyn Fn(&Request) -> Reply + Send + Sync>) -> Context {
    let route = daemon_client::Route::Inside(ask);
    Context { out: Out::new(true), paths, wanted: None, verbose: 0, route }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }

    /// The words that a shell makes of a line, as far as examples go: quotes, and a command substitution as one word.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut word = String::new();
        let mut quote = None;
        for letter in line.chars() {
            match (quote, letter) {
                (Some(open), _) if letter == open => quote = None,
                (None, '"' | '\'') => quote = Some(letter),
                (None, ' ') => {
                    if !word.is_empty() {
                        words.push(std::mem::take(&mut word));
                    }
                }
                (Some(_) | None, _) => word.push(letter),
            }
        }
        words.push(word);
        words.retain(|word| !word.is_empty());
        words
    }

    /// The calls of this program in a text of examples, each with its arguments.
    fn calls(examples: &str) -> Vec<Vec<String>> {
        let separators = ["|", "&&", "<", ">", "#"];
        let mut calls = Vec::new();
        // Only indented lines are examples. Two blanks end one: an explanation may follow.
        for line in examples.lines().filter_map(|line| line.strip_prefix("  ")) {
            let line = line.split("  ").next().unwrap_or_default();
            let inner = line.split_once("$(").and_then(|(_, rest)| rest.split_once(')'));
            let outer = inner.map(|(inner, _)| line.replacen(&format!("$({inner})"), &"0".repeat(40), 1));
            for text in
                [Some(outer.as_deref().unwrap_or(line)), inner.map(|(inner, _)| inner)].into_iter().flatten()
            {
                for call in words(text).split(|word| separators.contains(&word.as_str())) {
                    let begin = call.iter().position(|word| word == "pointsman");
                    calls.extend(begin.filter(|begin| *begin <= 1).map(|begin| call[begin..].to_vec()));
                }
            }
        }
        calls
    }

    /// Every help page, hidden ones aside: the words that lead to the command, and what is printed after its options.
    fn pages(command: &clap::Command, path: &[&str], into: &mut Vec<(String, String)>) {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let path = [path, &[command.get_name()]].concat();
        into.push((path.join(" "), after));
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            pages(command, &path, into);
        }
    }

    #[test]
    fn every_help_has_an_example_that_is_accepted() {
        let mut all = Vec::new();
        pages(&super::Cli::command(), &[], &mut all);
        let mut wrong = Vec::new();
        for (path, after) in &all {
            let calls = calls(after);
            if !calls.iter().any(|call| call.join(" ").starts_with(path) || call[1..2] == ["mq"]) {
                wrong.push(format!("`{path} --help` has no example of itself"));
            }
            for call in &calls {
                if let Err(error) = super::Cli::try_parse_from(call) {
                    wrong.push(format!("`{path} --help` has an example that is refused: {error}"));
                }
            }
        }
        assert!(all.len() > 100, "the test sees {} pages only", all.len());
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Options and arguments whose number counts something: it does not name an issue, a pull request or the like.
    const QUANTITIES: &[&str] = &[
        "roles days",
        "session logs generation",
        "session explain generation",
        "events since",
        "signals since",
        "merge-queue add priority",
        "merge-queue serve batch_size",
        "merge-queue serve depth",
        "notify list number",
        "demo speed",
        "ack message",
        "gauge tokens",
        "gauge input_tokens",
        "gauge cache_writes",
        "gauge cache_reads",
        "gauge output_tokens",
        "gauge usd",
        "gauge turns",
        "ci classify exit",
        "ci logs run",
    ];

    /// Whether a command accepts this text for the value of an argument.
    fn accepts(argument: &clap::Arg, text: &str) -> bool {
        let alone = clap::Arg::new("value").value_parser(argument.get_value_parser().clone());
        clap::Command::new("test").arg(alone).try_get_matches_from(["test", text]).is_ok()
    }

    #[test]
    fn every_number_of_a_thing_may_have_its_hash() {
        fn look(command: &clap::Command, path: &str, seen: &mut usize, wrong: &mut Vec<String>) {
            for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
                let name = format!("{path} {}", argument.get_id());
                let is_number = accepts(argument, "5") && !accepts(argument, "five");
                if is_number && !QUANTITIES.contains(&name.as_str()) {
                    *seen += 1;
                    if !accepts(argument, "#5") {
                        wrong.push(name);
                    }
                }
            }
            for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
                look(command, format!("{path} {}", command.get_name()).trim(), seen, wrong);
            }
        }
        let (mut seen, mut wrong) = (0, Vec::new());
        look(&super::Cli::command(), "", &mut seen, &mut wrong);
        assert!(seen > 30, "the test sees {seen} numbers only");
        assert!(wrong.is_empty(), "these do not take `#5`: {wrong:#?}");
    }

    #[test]
    fn a_number_may_have_its_hash() {
        assert_eq!(super::number("5"), Ok(5));
        assert_eq!(super::number("#5"), Ok(5));
        for wrong in ["", "#", "##5", "-5", "five", "5 "] {
            assert!(super::number(wrong).is_err(), "{wrong}");
        }
    }
}
