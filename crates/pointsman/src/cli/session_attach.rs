//! Taking a session without a terminal to this one: between two turns its conversation is resumed here, and its keeper
//! waits until the person is through.

use std::fs::File;
use std::path::Path;
use std::process::Command as Program;

use pointsman_adapters::headless::Headless;
use pointsman_adapters::headless::session_dir::SessionDir;
use pointsman_adapters::phase_file;
use pointsman_core::claude::launch::{Conversation, taken_up};
use pointsman_core::ids::Number;
use pointsman_core::sandbox::Purpose;
use pointsman_core::words::screen::not_opened;
use pointsman_store::SessionRow;

use super::context::Context;
use super::failure::Failure;
use crate::daemon::Launch;

/// Flags of a turn that make no sense on a terminal, and how many words each has.
const OF_A_TURN: [(&str, usize); 5] =
    [("-p", 1), ("--print", 1), ("--output-format", 2), ("--output-format=stream-json", 1), ("--verbose", 1)];

pub(crate) fn run(context: &Context, row: &SessionRow, issue: Number) -> Result<(), Failure> {
    let failed = |error: pointsman_adapters::headless::Error| {
        Failure::failed(format!("{:#}", anyhow::Error::new(error)))
    };
    let place = Headless::new(context.paths.headless()).session_dir(&row.identity).map_err(failed)?;
    let opened = place.opened().map_err(failed)?;
    let (Some(opened), true) = (opened, place.is_alive().map_err(failed)?) else {
        return Err(Failure::refused(format!("session {} is not running", row.session))
            .hint(format!("pointsman session logs {issue}")));
    };
    let launch: Launch = serde_json::from_slice(&std::fs::read(&opened.spec)?)
        .map_err(|error| Failure::failed(format!("{}: {error}", opened.spec.display())))?;
    let conversation = launch.keep.as_ref().and_then(|keep| keep.conversation.clone());
    // Only an agent that takes conversations up has one.
    let Some(Conversation::New(id) | Conversation::Resumed(id)) = conversation else {
        return Err(Failure::refused(format!("the agent of session {} has no terminal", row.session)).hint(
            format!("pointsman session logs {issue} --follow, or pointsman session send {issue} TEXT"),
        ));
    };
    let mut argv = on_a_terminal(&launch.argv);
    argv.extend(taken_up(&argv, &Conversation::Resumed(id)));
    let held = hold(context, &place)?;
    let status = match launch.sandbox {
        Some(_) => talk_inside(launch, &argv, &opened.spec.with_extension("attach.json"))?,
        None => talk(&launch, &argv)?,
    };
    drop(held);
    if status.success() { Ok(()) } else { Err(Failure::failed(format!("{} ended with {status}", argv[0]))) }
}

/// The same command without what makes it print a stream.
fn on_a_terminal(argv: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = argv.iter();
    while let Some(word) = rest.next() {
        match OF_A_TURN.iter().find(|(flag, _)| flag == word) {
            Some((_, count)) => drop(rest.by_ref().take(count - 1).count()),
            None => words.push(word.clone()),
        }
    }
    words
}

/// Waits for the end of the turn, and keeps the next one from beginning for as long as the file is open.
fn hold(context: &Context, place: &SessionDir) -> Result<File, Failure> {
    let failed = |error: String| Failure::failed(format!("cannot take over the conversation: {error}"));
    let lock = place.conversation().map_err(|error| failed(format!("{:#}", anyhow::Error::new(error))))?;
    if lock.try_lock().is_err() {
        context.out.say(
            "A turn is running, or somebody else is in the conversation. Waiting for it to end; press Ctrl-C to \
                give up.",
        );
        lock.lock().map_err(|error| failed(error.to_string()))?;
    }
    Ok(lock)
}

/// The same inside the sandbox of the session: its launcher builds it from a description beside the session's own.
fn talk_inside(
    mut launch: Launch,
    argv: &[String],
    spec: &Path,
) -> Result<std::process::ExitStatus, Failure> {
    launch.argv = argv.to_vec();
    (launch.keep, launch.parent, launch.commit_first) = (None, None, None);
    if let Some(sandbox) = &mut launch.sandbox {
        for mount in sandbox.plan.mounts.iter_mut().filter(|mount| mount.why == Purpose::Start) {
            mount.path = spec.to_owned();
        }
    }
    let text = serde_json::to_vec_pretty(&launch).map_err(anyhow::Error::from)?;
    phase_file::write_state_file(spec, &text)?;
    let program = std::env::current_exe()?.to_string_lossy().into_owned();
    let words = [program, "launch".to_owned(), spec.to_string_lossy().into_owned()];
    talk(&launch, &words)
}

/// The agent has the terminal; what is typed there, Ctrl-C too, is for it.
#[allow(clippy::disallowed_methods, reason = "a person talks to it; it has no limit but theirs")]
fn talk(launch: &Launch, argv: &[String]) -> Result<std::process::ExitStatus, Failure> {
    let _ours = signal_hook::flag::register(signal_hook::consts::SIGINT, Default::default())?;
    let mut program = Program::new(&argv[0]);
    program.args(&argv[1..]).current_dir(&launch.cwd).env_clear().envs(&launch.env);
    if let Some(term) = std::env::var_os("TERM") {
        program.env("TERM", term);
    }
    Ok(program.status()?)
}

/// Runs a command of ours about an issue on this terminal, and waits for its end.
#[allow(clippy::disallowed_methods, reason = "a person talks to it; it has no limit but theirs")]
pub(super) fn run_ourselves(words: &[String], issue: Number) -> Result<(), Failure> {
    let _ours = signal_hook::flag::register(signal_hook::consts::SIGINT, Default::default())?;
    let program = std::env::current_exe()?;
    let status = Program::new(program).args(words).arg(issue.to_string()).status()?;
    if status.success() { Ok(()) } else { Err(Failure::failed(format!("it ended with {status}"))) }
}

/// Opens a file in a person's editor, and waits for its end. `editor` may have arguments.
#[allow(clippy::disallowed_methods, reason = "a person writes in it; it has no limit but theirs")]
pub(super) fn edit(editor: &str, file: &Path) -> Result<(), Failure> {
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let status = Program::new(program).args(words).arg(file).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::failed(format!("the editor {program} ended with {status}"))),
        Err(error) => Err(Failure::failed(format!("the editor {program} cannot be started: {error}"))
            .hint("set VISUAL or EDITOR")),
    }
}

/// Opens a page in a person's browser. `browser` may have arguments.
#[allow(clippy::disallowed_methods, reason = "a person reads in it; it has no limit but theirs")]
pub(super) fn browse(browser: &str, link: &str) -> Result<(), Failure> {
    let mut words = browser.split_whitespace();
    let program = words.next().unwrap_or("xdg-open");
    let status = Program::new(program).args(words).arg(link).status();
    let failed = |error: String| Failure::failed(not_opened(link, program, &error));
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(status.to_string())),
        Err(error) => Err(failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::on_a_terminal;

    #[test]
    fn a_turns_command_loses_what_makes_it_a_turn() {
        let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let turn = words("claude --model opus --settings /s -p --output-format stream-json --verbose");
        assert_eq!(on_a_terminal(&turn), words("claude --model opus --settings /s"));
        assert_eq!(on_a_terminal(&words("claude --print --output-format=stream-json")), words("claude"));
    }
}
