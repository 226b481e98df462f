use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use pointsman_adapters::phase_file;
use pointsman_core::claude::settings;
use pointsman_core::words;
use pointsman_view::project::{ClaudeLogin, Installed};

use super::context::Context;
use super::failure::Failure;
use super::prompt;
use crate::model_login;

/// The slash commands, by their file names.
const COMMANDS: [(&str, &str); 4] = [
    ("claim.md", include_str!("../../../../plugin/commands/claim.md")),
    ("handoff.md", include_str!("../../../../plugin/commands/handoff.md")),
    ("status.md", include_str!("../../../../plugin/commands/status.md")),
    ("queue.md", include_str!("../../../../plugin/commands/queue.md")),
];
/// The name by which it is found on the `PATH`.
const PROGRAM: &str = "pointsman";
/// Nobody writes settings as large as this.
const SETTINGS_BYTES: u64 = 4 << 20;

/// Add Pointsman's hooks and slash commands to Claude Code's settings, or remove them
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    pointsman claude install                       for this project\n  \
    pointsman claude install --user                for all of yours\n  \
    pointsman claude uninstall\n  \
    pointsman claude login                         for the sessions of the daemon")]
pub(crate) enum Command {
    /// Add hooks, status line and slash commands; nothing else in the settings changes
    #[command(after_help = "Examples:\n  pointsman claude install\n  pointsman claude install --user")]
    Install(Installation),
    /// Remove exactly what install added
    #[command(after_help = "Example:\n  pointsman claude uninstall")]
    Uninstall(InstallTarget),
    /// Store a long-lived token, so that the daemon's sessions can use your subscription
    ///
    /// Run `claude setup-token` first: it logs you in and prints the token. Type the token at the prompt, where it is
    /// not shown, or pass it on standard input. Only the daemon has it; no session sees it.
    #[command(after_help = "Examples:\n  pointsman claude login\n  pointsman claude login < token-file")]
    Login,
    /// Delete the token that login stored
    #[command(after_help = "Example:\n  pointsman claude logout")]
    Logout,
}

/// The parts of an installation.
#[derive(Debug, Args)]
pub(crate) struct Installation {
    #[command(flatten)]
    target: InstallTarget,
    /// Also allow the session to run `claim`, `handoff` and our commands that only read, without asking each time
    #[arg(long)]
    permissions: bool,
}

/// Whose settings.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct InstallTarget {
    /// Your own settings, in ~/.claude
    #[arg(long)]
    user: bool,
    /// The project's settings, in .claude at the root of the checkout (the default). A bare --project means the same
    #[arg(long = "in-project")]
    project_only: bool,
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("changing the settings of Claude Code")?;
        match self {
            Self::Install(wanted) => {
                let program = wanted.target.program()?;
                install(context, &wanted.target.dir(context)?, &program, wanted.permissions)
            }
            Self::Uninstall(place) => uninstall(context, &place.dir(context)?),
            Self::Login => login(context),
            Self::Logout => logout(context),
        }
    }
}

impl InstallTarget {
    /// How hooks call this program. A project's settings are committed and read on other machines, where it lies elsewhere.
    fn program(&self) -> Result<String, Failure> {
        if !self.user {
            return Ok(PROGRAM.to_owned());
        }
        let program = std::env::current_exe()?;
        let program = program.to_str().ok_or_else(|| Failure::failed("this program's path is not UTF-8"))?;
        Ok(program.to_owned())
    }

    #[allow(clippy::disallowed_methods, reason = "a command begins here: the environment is its input")]
    fn dir(&self, context: &Context) -> Result<PathBuf, Failure> {
        if !self.user {
            return Ok(super::claim::here(context)?.root().join(".claude"));
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        set("CLAUDE_CONFIG_DIR")
            .or_else(|| set("HOME").map(|home| home.join(".claude")))
            .ok_or_else(|| Failure::failed("neither CLAUDE_CONFIG_DIR nor HOME is set"))
    }
}

/// `claude install --project` without a name means the project's settings; everywhere else `--project` takes a name.
pub(super) fn with_plain_project(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is = |at: usize, word: &str| arguments.get(at).is_some_and(|argument| argument == word);
    let changes = is(1, "claude") && (is(2, "install") || is(2, "uninstall"));
    let bare = |at: usize| {
        let value = arguments.get(at + 1).is_some_and(|next| !next.as_encoded_bytes().starts_with(b"-"));
        is(at, "--project") && !value
    };
    if let Some(at) = (3..arguments.len()).find(|at| changes && bare(*at)) {
        arguments[at] = "--in-project".into();
    }
    arguments
}

fn login(context: &Context) -> Result<(), Failure> {
    let text = prompt::secret(context, words::relay::ASK_FOR_TOKEN)?;
    context.paths.create()?;
    model_login::keep(&context.paths, &text)
        .map_err(|error| Failure::refused(format!("{error:#}")).hint(words::relay::HOW_TO_GET_A_TOKEN))?;
    told(context, true, words::relay::LOGGED_IN)
}

fn logout(context: &Context) -> Result<(), Failure> {
    let was_there = model_login::forget(&context.paths)?;
    let said = if was_there { words::relay::LOGGED_OUT } else { words::relay::NOT_LOGGED_IN };
    told(context, false, said)
}

/// What the daemon's sessions use from now on. A variable of the environment comes before the token that is kept.
fn told(context: &Context, kept: bool, said: &str) -> Result<(), Failure> {
    let found = Context::enclosure()?.login()?;
    let variable = found.and_then(|login| login.name.variable());
    if context.out.is_json() {
        let variable = variable.map(str::to_owned);
        return context.out.value(&ClaudeLogin { kept, variable });
    }
    context.out.say(said);
    if let Some(variable) = variable {
        context.out.say(words::relay::variable_first(variable));
    }
    Ok(())
}

fn install(context: &Context, dir: &Path, program: &str, permissions: bool) -> Result<(), Failure> {
    let path = settings_file(dir)?;
    // Everything is looked at before anything is written.
    let mut text = settings::install(&read(&path)?, program).map_err(|error| unusable(&path, &error))?;
    if permissions {
        text = settings::permit(&text).map_err(|error| unusable(&path, &error))?;
    }
    let mut notes = Vec::new();
    if program == PROGRAM && !is_on_path() {
        notes.push(words::claim::NOT_ON_PATH.to_owned());
    }
    if !permissions {
        notes.push(words::claim::OFFER_PERMISSIONS.to_owned());
    }
    let mut commands = Vec::new();
    for (name, content) in COMMANDS {
        let file = dir.join("commands").join(name);
        match read(&file)?.as_str() {
            "" => commands.push((file, content)),
            same if same == content => {}
            _ => notes.push(format!("{} belongs to somebody else and stays", file.display())),
        }
    }
    std::fs::create_dir_all(dir.join("commands"))?;
    write(&path, &text)?;
    for (file, content) in &commands {
        phase_file::write_state_file(file, content.as_bytes())?;
    }
    report(context, "is installed in", dir, &notes)
}

fn uninstall(context: &Context, dir: &Path) -> Result<(), Failure> {
    let path = settings_file(dir)?;
    let before = read(&path)?;
    if !before.is_empty() {
        let text = settings::uninstall(&before).map_err(|error| unusable(&path, &error))?;
        let is_link = path != dir.join("settings.json");
        if text.trim() == "{}" && !is_link {
            phase_file::remove_own_file(&path).map_err(Failure::failed)?;
        } else {
            write(&path, &text)?;
        }
    }
    let mut notes = Vec::new();
    for (name, content) in COMMANDS {
        let file = dir.join("commands").join(name);
        match read(&file)?.as_str() {
            "" => {}
            same if same == content => phase_file::remove_own_file(&file).map_err(Failure::failed)?,
            _ => notes.push(format!("{} was changed and stays", file.display())),
        }
    }
    // Directories that are empty now were made by us, or are nobody's loss.
    for dir in [dir.join("commands"), dir.to_owned()] {
        match std::fs::remove_dir(&dir) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {}
            Err(error) => notes.push(format!("{} stays: {error}", dir.display())),
        }
    }
    report(context, "is gone from", dir, &notes)
}

/// The file with the settings: the end of the link, where people keep it elsewhere (a repository of dotfiles).
fn settings_file(dir: &Path) -> Result<PathBuf, Failure> {
    let path = dir.join("settings.json");
    match std::fs::symlink_metadata(&path) {
        Ok(meta) if meta.is_symlink() => path.canonicalize().map_err(|error| {
            Failure::refused(format!("{} is a link that leads nowhere: {error}", path.display()))
        }),
        Ok(_) | Err(_) => Ok(path),
    }
}

/// Replaces a file whole, with the permissions it had.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let mode = std::fs::metadata(path).map(|meta| meta.permissions());
    phase_file::write_state_file(path, text.as_bytes())?;
    if let Ok(mode) = mode {
        std::fs::set_permissions(path, mode)?;
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a command begins here: the environment is its input")]
fn is_on_path() -> bool {
    let path = std::env::var_os("PATH");
    pointsman_adapters::process::find_program(PROGRAM, path.as_deref(), Path::new("/")).is_some()
}

/// A file's text; empty if it is not there.
fn read(path: &Path) -> Result<String, Failure> {
    let refused = |why: phase_file::Refusal| Failure::refused(format!("{}: {why}", path.display()));
    let bytes = phase_file::read_result_file(path, SETTINGS_BYTES).map_err(refused)?.unwrap_or_default();
    String::from_utf8(bytes).map_err(|_| Failure::refused(format!("{} is not UTF-8 text", path.display())))
}

fn unusable(path: &Path, error: &settings::Error) -> Failure {
    Failure::refused(format!("{}: {error}", path.display()))
        .hint("nothing was changed; correct the file and try again")
}

fn report(context: &Context, how: &str, dir: &Path, notes: &[String]) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(&Installed { dir: dir.to_owned(), notes: notes.to_vec() });
    }
    context.out.say(format!("Pointsman {how} {}.", dir.display()));
    notes.iter().for_each(|note| context.out.say(note));
    Ok(())
}
