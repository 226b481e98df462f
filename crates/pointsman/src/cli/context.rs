//! The context of every command: where things lie, how to print, and which project is meant.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman_adapters::ci::woodpecker::Woodpecker;
use pointsman_adapters::forge::ServerForge;
use pointsman_adapters::login;
use pointsman_adapters::notify::matrix::Matrix;
use pointsman_adapters::notify::webhook::Webhook;
use pointsman_adapters::secret::known;
use pointsman_core::config::{Config, Trust};
use pointsman_core::ids::{Number, ProjectName, TaskKey};
use pointsman_core::task::Task;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::{self as store, ProjectRow, Store};
use pointsman_view::project::Named;
use pointsman_view::status::Daemon;
use serde::de::DeserializeOwned;

use super::daemon_client::{self, AnsweredBy, Route};
use super::failure::{Code, Failure};
use super::out::Out;
use crate::control::client;
use crate::control::protocol::{Reply, Request};
use crate::enclosure::Enclosure;
use crate::paths::Paths;
use crate::project::{self, Project};
use crate::remote;
use crate::trust;

/// The environment this command was started in.
#[allow(clippy::disallowed_methods, reason = "a command begins here: the environment is its input")]
pub(super) const ENVIRONMENT: remote::Environment = |name| std::env::var_os(name);

/// So much of a text is masked at once.
const PIECE_BYTES: usize = 1 << 20;

/// The result of a look for the daemon.
#[derive(Debug)]
pub(crate) enum Reached {
    Running(Daemon),
    /// It runs, and does not answer.
    Silent,
    NotRunning,
}

fn reached(answer: Result<Reply, client::Error>) -> Result<Reached, Failure> {
    match answer {
        Ok(reply) => daemon_client::view(reply).map(Reached::Running),
        Err(client::Error::NotRunning) => Ok(Reached::NotRunning),
        Err(client::Error::Silent) => Ok(Reached::Silent),
        Err(error @ client::Error::Broken(_)) => {
            Err(Failure::failed(format!("{:#}", anyhow::Error::new(error))))
        }
    }
}

/// The surroundings of a command: where it prints, its files, its project.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) out: Out,
    pub(crate) paths: Paths,
    pub(crate) wanted: Option<ProjectName>,
    /// How much more to say.
    pub(crate) verbose: u8,
    /// How the daemon is asked.
    pub(crate) route: Route,
}

impl Context {
    /// Asks the daemon; without one, acts in its place.
    pub(crate) fn ask<V: DeserializeOwned>(&self, request: &Request) -> Result<V, Failure> {
        match self.route.inside(request) {
            Some(reply) => daemon_client::view(reply),
            None => daemon_client::ask(&self.paths, request).map(|(view, _)| view),
        }
    }

    /// The same, and says so if what follows must wait for a daemon.
    pub(crate) fn ask_and_say<V: DeserializeOwned>(&self, request: &Request) -> Result<V, Failure> {
        let (view, by) = daemon_client::ask(&self.paths, request)?;
        if by == AnsweredBy::Alone {
            self.out.say(
                "The daemon is not running. This is recorded, and takes effect when the daemon starts \
                (`pointsman up`).",
            );
        }
        Ok(view)
    }

    /// Asks the daemon; without one there is nobody to ask.
    pub(crate) fn ask_daemon<V: DeserializeOwned>(&self, request: &Request) -> Result<V, Failure> {
        match self.route.inside(request) {
            Some(reply) => daemon_client::view(reply),
            None => daemon_client::ask_daemon(&self.paths, request),
        }
    }

    /// The daemon's database for reading; none if nothing was ever written.
    pub(crate) fn store(&self) -> Result<Option<Store>, Failure> {
        match Store::open_for_command(&self.paths.database()) {
            Ok(store) => Ok(Some(store)),
            Err(store::Error::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether an earlier version wrote the database, so that only a starting daemon can open it.
    pub(crate) fn is_outdated(&self) -> bool {
        matches!(Store::open_for_command(&self.paths.database()), Err(store::Error::TooOld { .. }))
    }

    /// The projects that are registered.
    pub(crate) fn registered(&self) -> Result<Vec<ProjectRow>, Failure> {
        Ok(match self.store()? {
            Some(store) => store.projects()?,
            None => Vec::new(),
        })
    }

    /// The project that is meant: `--project`, else the registered one of the nearest configuration, else the only one there is.
    /// Of a file that nobody registered nothing is used.
    pub(crate) fn project(&self) -> Result<Project, Failure> {
        if let Some(name) = &self.wanted {
            return self.named(name);
        }
        // An agent's tree may hold a configuration or none; its session knows whose it is.
        if let Some(name) = project_of_session()
            && let Some(row) = self.registered()?.into_iter().find(|row| row.name == name)
        {
            return self.load(&row);
        }
        if let Some(path) = self.nearest_config()? {
            return self.found(&path);
        }
        let registered = self.registered()?;
        match registered.as_slice() {
            [only] => self.load(only),
            [] => Err(Failure::not_found(
                "there is no pointsman.toml here or above, and no project is registered",
            )
            .hint("run `pointsman init` in a git repository")),
            several => {
                let names: Vec<&str> = several.iter().map(|row| row.name.as_str()).collect();
                Err(Failure::not_found(
                    "there is no pointsman.toml here or above, and several projects are registered",
                )
                .hint(format!("choose one with --project NAME: {}", names.join(", "))))
            }
        }
    }

    /// The name of the project that is meant. Inside a sandbox it is that of the session: nothing else can be looked up.
    pub(crate) fn project_name(&self) -> Result<ProjectName, Failure> {
        match own_project(&self.paths) {
            Some(name) => Ok(name),
            None => Ok(self.project()?.config.name),
        }
    }

    /// Like [`Self::project`], but nothing where none is meant.
    pub(crate) fn project_if_any(&self) -> Result<Option<Project>, Failure> {
        match self.project() {
            Ok(project) => Ok(Some(project)),
            Err(failure) if failure.code() == Code::NotFound && self.wanted.is_none() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The configuration that the environment names, or the nearest one upward.
    #[allow(clippy::disallowed_methods, reason = "a command begins here: the environment is its input")]
    pub(crate) fn nearest_config(&self) -> Result<Option<PathBuf>, Failure> {
        match std::env::var_os("POINTSMAN_CONFIG").filter(|path| !path.is_empty()) {
            Some(path) => Ok(Some(path.into())),
            None => Ok(project::find(&std::env::current_dir()?)),
        }
    }

    fn named(&self, name: &ProjectName) -> Result<Project, Failure> {
        match self.registered()?.into_iter().find(|row| row.name == *name) {
            Some(row) => self.load(&row),
            None => {
                Err(Failure::not_found(format!("no project is called {name}")).hint("pointsman project list"))
            }
        }
    }

    /// A registered project with the settings in force. Whoever works in its checkout is told if some of them wait.
    pub(crate) fn load(&self, row: &ProjectRow) -> Result<Project, Failure> {
        let project = Project::load(&row.config_path)?;
        let accepted = match self.store()? {
            Some(store) => trust::accepted(&store, &row.name)?,
            None => None,
        };
        let settings =
            trust::in_force(accepted.as_ref(), project.config, &row.checkout).map_err(|error| {
                Failure::new(Code::Configuration, words::trust::does_not_fit(&error.to_string()))
                    .hint(words::trust::register_hint("."))
            })?;
        if !settings.waiting.is_empty() {
            self.say_waiting(row, settings.waiting.len());
        }
        Ok(Project { config: settings.config, ..project })
    }

    /// Says once that settings wait, to a person in that checkout.
    fn say_waiting(&self, row: &ProjectRow, count: usize) {
        static SAID: AtomicBool = AtomicBool::new(false);
        let here = std::env::current_dir().is_ok_and(|dir| dir.starts_with(&row.checkout));
        if here && inside_session().is_none() && !SAID.swap(true, Ordering::Relaxed) {
            self.out.say(words::trust::waits(count));
        }
    }

    /// The row of a configuration file, if that very file is registered. The file is not read.
    pub(crate) fn row_of(&self, path: &Path) -> Result<Option<ProjectRow>, Failure> {
        let Ok(path) = path.canonicalize() else { return Ok(None) };
        Ok(self.registered()?.into_iter().find(|row| row.config_path == path))
    }

    /// A configuration was found. If its name belongs to another file that still exists, this one is a copy (an
    /// agent's working tree, a second clone): then the registered one is meant.
    fn found(&self, path: &Path) -> Result<Project, Failure> {
        if let Some(row) = self.row_of(path)? {
            return self.load(&row);
        }
        // Only its name is looked at.
        let copy = Project::load(path)?;
        let row = self.registered()?.into_iter().find(|row| row.name == copy.config.name);
        match row {
            Some(row) if row.config_path.is_file() => {
                if inside_session().is_none() {
                    self.out.say(format!(
                        "Project {} is registered with {}, so that file is used. To use this one, run `pointsman \
                            project add .`.",
                        row.name,
                        row.config_path.display()
                    ));
                }
                self.load(&row)
            }
            Some(_) | None => {
                let (file, dir) =
                    (copy.config_path.display().to_string(), copy.checkout().display().to_string());
                Err(Failure::not_found(words::trust::not_registered(&file))
                    .hint(words::trust::register_hint(&dir)))
            }
        }
    }

    /// Registers a project, whose settings the person was shown.
    pub(crate) fn register(&self, project: &Project, shown: Option<Trust>) -> Result<Named, Failure> {
        self.register_with(project, shown, &[])
    }

    /// The same, and lets CI and gates reach these hosts besides.
    pub(crate) fn register_with(
        &self,
        project: &Project,
        shown: Option<Trust>,
        hosts: &[String],
    ) -> Result<Named, Failure> {
        let path = project.config_path.to_str().ok_or_else(|| {
            Failure::failed(format!("{} is not UTF-8 text", project.config_path.display()))
                .hint("move the checkout to a path that is")
        })?;
        self.ask(&Request::AddProject { config_path: path.to_owned(), shown, hosts: hosts.to_vec() })
    }

    /// A task that the store knows, and the store.
    pub(crate) fn task(&self, project: &Project, issue: Number) -> Result<(Task, Store), Failure> {
        let key = TaskKey { project: project.config.name.clone(), issue };
        let missing = || {
            Failure::not_found(format!("there is no task for issue #{issue} of {}", key.project)).hint(
                "a task is created when the daemon sees the issue on the forge; check with `pointsman status` and \
                    `pointsman forge issue list`",
            )
        };
        let store = self.store()?.ok_or_else(missing)?;
        let task = store.task(&key)?.ok_or_else(missing)?;
        Ok((task, store))
    }

    /// The session that a report is about: the one we were started in, or the one a person names. It must not be over.
    pub(crate) fn reporting_session(&self, named: Option<String>) -> Result<String, Failure> {
        let session = match (inside_session(), named) {
            (Some(own), Some(other)) if own != other => {
                return Err(Failure::refused(format!("session {own} cannot report for {other}")));
            }
            (Some(session), _) | (None, Some(session)) => session,
            (None, None) => {
                return Err(Failure::new(Code::Usage, "POINTSMAN_SESSION is not set, so the session is unknown").hint(
                    "sessions have it set; elsewhere, pass --session dev-shop-3.1 (`pointsman agents` lists the \
                        names)",
                ));
            }
        };
        let missing =
            || Failure::not_found(format!("there is no session {session}")).hint("pointsman agents");
        // Inside a sandbox there is only the socket, and whoever speaks there is that session.
        if is_enclosed(&self.paths) {
            return Ok(session);
        }
        let row = self.store()?.ok_or_else(missing)?.session(&session)?.ok_or_else(missing)?;
        match row.ended_at {
            None => Ok(session),
            Some(_) => Err(Failure::refused(format!("session {session} is over"))),
        }
    }

    /// Agents do not steer: some commands are for people only. The daemon looks at who asks as well; this is the
    /// friendlier of the two answers.
    pub(crate) fn people_only(&self, what: &str) -> Result<(), Failure> {
        match inside_session() {
            None => Ok(()),
            Some(session) => {
                Err(Failure::refused(format!("{what} is not possible from inside session {session}"))
                    .hint("a person can run this in their own terminal"))
            }
        }
    }

    /// The person's editor.
    pub(crate) fn editor(&self) -> String {
        let named = |name: &str| ENVIRONMENT(name).and_then(|value| value.into_string().ok());
        let set = |text: &String| !text.trim().is_empty();
        named("VISUAL").filter(set).or_else(|| named("EDITOR").filter(set)).unwrap_or_else(|| "vi".to_owned())
    }

    /// The person's browser.
    pub(crate) fn browser(&self) -> String {
        let named = ENVIRONMENT("BROWSER").and_then(|value| value.into_string().ok());
        named.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "xdg-open".to_owned())
    }

    /// The project's CI, if it is a server of its own, with the token that this command can find.
    pub(crate) fn ci(&self, config: &Config) -> Result<Option<Woodpecker>, Failure> {
        self.find_ci(config).map_err(|error| Failure::new(Code::Configuration, format!("{error:#}")))
    }

    /// The same, for somebody who looks at the error.
    pub(crate) fn find_ci(&self, config: &Config) -> anyhow::Result<Option<Woodpecker>> {
        remote::ci(&self.paths, config, ENVIRONMENT)
    }

    /// The project's forge, if it is on a server.
    pub(crate) fn on_server(&self, config: &Config) -> Result<Option<Arc<dyn ServerForge>>, Failure> {
        self.find_server(config).map_err(|error| Failure::new(Code::Configuration, format!("{error:#}")))
    }

    /// The same, for somebody who looks at the error.
    pub(crate) fn find_server(&self, config: &Config) -> anyhow::Result<Option<Arc<dyn ServerForge>>> {
        remote::forge(&self.paths, config, ENVIRONMENT)
    }

    /// A text without secrets: those that the daemon knows, and those that can be found without it.
    pub(crate) fn masked(&self, config: &Config, text: &str) -> String {
        remote::remember_secrets(&self.paths, config, ENVIRONMENT);
        let text = known().mask(text);
        if self.route.is_inside() {
            // The daemon itself knows all that can be known.
            return text.into_owned();
        }
        let mut masked = String::with_capacity(text.len());
        // A session may not ask, and without a daemon nobody answers: then that is all that can be known.
        let look = |request: &Request| client::look(&self.paths.control_socket(), request);
        let ask = |piece: &str| {
            let reply = look(&Request::Mask { text: piece.to_owned() }).ok()?;
            daemon_client::view::<String>(reply).ok()
        };
        for piece in pieces(&text) {
            match ask(piece) {
                Some(piece) => masked.push_str(&piece),
                None => masked.push_str(piece),
            }
        }
        masked
    }

    /// The project's room on Matrix, likewise.
    pub(crate) fn matrix(&self, config: &Config) -> anyhow::Result<Matrix> {
        remote::matrix(&self.paths, config, ENVIRONMENT)
    }

    /// The project's webhook, likewise.
    pub(crate) fn webhook(&self, config: &Config) -> anyhow::Result<Webhook> {
        remote::webhook(&self.paths, config, ENVIRONMENT)
    }

    /// The daemon that runs, if one does. It is given time to answer, because somebody wants it to do something.
    pub(crate) fn running_daemon(&self) -> Result<Option<Daemon>, Failure> {
        match reached(client::ask(&self.paths.control_socket(), &Request::Status))? {
            Reached::Running(daemon) => Ok(Some(daemon)),
            Reached::Silent | Reached::NotRunning => Ok(None),
        }
    }

    /// Looks for the daemon, and does not wait for one that is frozen.
    pub(crate) fn reach_daemon(&self) -> Result<Reached, Failure> {
        match self.route.inside(&Request::Status) {
            Some(reply) => reached(Ok(reply)),
            None => reached(client::look(&self.paths.control_socket(), &Request::Status)),
        }
    }

    /// The directory of the person's own Claude Code.
    pub(crate) fn claude_home() -> Option<PathBuf> {
        let set = |name| ENVIRONMENT(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        set("CLAUDE_CONFIG_DIR").or_else(|| set("HOME").map(|home| home.join(".claude")))
    }

    /// The directory of the user's settings.
    pub(crate) fn config_home() -> Option<PathBuf> {
        let set = |name| ENVIRONMENT(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))
    }

    /// The sandbox around programs of a project that this command runs.
    pub(crate) fn enclosure() -> anyhow::Result<Enclosure> {
        Enclosure::new(ENVIRONMENT, &Paths::from_env(ENVIRONMENT)?)
    }

    /// The directories in which programs are found.
    pub(crate) fn search_path() -> Option<OsString> {
        ENVIRONMENT("PATH")
    }

    /// Under which name we write, for what is shown before anybody is asked. What is written down is the name that the
    /// daemon sees (`control/access.rs`).
    pub(crate) fn author(&self) -> String {
        inside_session().unwrap_or_else(|| login::name(rustix::process::getuid().as_raw()))
    }
}

/// The project of the session that we are in, if we are in one.
#[allow(clippy::disallowed_methods, reason = "a command begins here: the environment is its input")]
fn project_of_session() -> Option<ProjectName> {
    inside_session()?;
    ProjectName::new(&std::env::var("PROJECT_NAME").ok()?)
}

/// The project of the session that we are in, if its sandbox is around us.
pub(crate) fn own_project(paths: &Paths) -> Option<ProjectName> {
    let session = inside_session().filter(|_| is_enclosed(paths))?;
    Some(WorkflowId::parse_session(&session)?.0.project().clone())
}

/// Whether we are in a session and its sandbox shows nothing of the daemon but a socket.
pub(crate) fn is_enclosed(paths: &Paths) -> bool {
    inside_session().is_some() && !paths.database().exists()
}

/// The session we were started in, if an agent started us.
#[allow(clippy::disallowed_methods, reason = "a command begins here: the environment is its input")]
pub(crate) fn inside_session() -> Option<String> {
    std::env::var("POINTSMAN_SESSION").ok().filter(|session| !session.is_empty())
}

/// A text in pieces that fit into a request and end where a line ends.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut begin, mut end) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        if end - begin + line.len() > PIECE_BYTES && end > begin {
            pieces.push(&text[begin..end]);
            begin = end;
        }
        end += line.len();
    }
    if end > begin {
        pieces.push(&text[begin..end]);
    }
    pieces
}
