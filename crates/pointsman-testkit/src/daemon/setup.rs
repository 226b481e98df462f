//! What a test's world is like before the daemon starts.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::TestDaemon;

/// Red as long as a list in `src/` holds the word BUG.
const CI: &str =
    "#!/bin/sh\nif grep -rn BUG src; then echo 'a BUG is left'; exit 1; fi\necho 'all is good'\n";

/// Everything quick; nothing that a loaded machine could miss.
const DEFAULTS: &[(&str, &str)] = &[
    ("forge.kind", "\"local\""),
    ("ci.kind", "\"command\""),
    ("ci.command", "[\"./ci.sh\"]"),
    ("review.mode", "\"none\""),
    // Neither a small nor a busy machine is what a test is about.
    ("limits.min_free_memory_mb", "0"),
    ("health.max_load_percent", "1000000"),
    ("timing.forge_poll", "\"50ms\""),
    ("timing.phase_rescan", "\"200ms\""),
    ("timing.idle_look", "\"5s\""),
    ("timing.restart_backoff", "\"50ms\""),
    ("timing.stop_grace", "\"500ms\""),
    ("timing.done_grace", "\"30s\""),
];

/// A project and its configuration.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(super) program: PathBuf,
    pub(super) name: String,
    pub(super) daemon_env: Vec<(String, String)>,
    pub(super) staged: bool,
    /// Whether the project is registered as soon as the world is made.
    pub(super) registered: bool,
    machine: Option<String>,
    values: BTreeMap<String, String>,
    agent: Option<String>,
    files: Vec<(String, String)>,
}

impl Setup {
    /// A project called `shop` for this program, with a CI, without reviews, and with the rehearsal agent.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            name: "shop".to_owned(),
            daemon_env: Vec::new(),
            staged: false,
            registered: true,
            machine: None,
            values: DEFAULTS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            agent: None,
            files: vec![
                ("ci.sh".to_owned(), CI.to_owned()),
                ("src/lemons.txt".to_owned(), "lemons 1 crown\n".to_owned()),
            ],
        }
    }

    /// Sets a key of the configuration, as `section.key` and TOML.
    pub fn set(mut self, key: &str, toml: &str) -> Self {
        self.values.insert(key.to_owned(), toml.to_owned());
        self
    }

    /// Runs sessions and CI without a sandbox, because they look out of it: `why` is for the reader of the test.
    pub fn outside(self, why: &str) -> Self {
        assert!(!why.is_empty(), "a test says why it looks out of its session");
        self.set("sandbox.mode", "\"off\"")
    }

    /// Leaves a key of the configuration to its default.
    pub fn unset(mut self, key: &str) -> Self {
        self.values.remove(key);
        self
    }

    /// People review.
    pub fn reviewed(self) -> Self {
        self.set("review.mode", "\"human\"")
    }

    /// The agent is this bash script instead of the rehearsal agent.
    pub fn agent(mut self, script: &str) -> Self {
        self.agent = Some(script.to_owned());
        self
    }

    /// A file of the repository; what begins with `#!` can be run.
    pub fn file(mut self, path: &str, text: &str) -> Self {
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }

    /// A variable of the daemon's environment.
    pub fn daemon_env(mut self, name: &str, value: &str) -> Self {
        self.daemon_env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The machine's file has this text.
    pub fn machine(mut self, toml: &str) -> Self {
        self.machine = Some(toml.to_owned());
        self
    }

    /// The web listens, on a port that is free now: a daemon that is started again has the same.
    pub fn web(self) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let free = free.expect("this machine has a free port");
        self.machine(&format!("[web]\nlisten = \"{free}\"\n"))
    }

    /// Whether the machine's file says where the web listens.
    pub(super) fn names_the_web(&self) -> bool {
        self.machine.as_ref().is_some_and(|text| text.contains("[web]"))
    }

    /// Leaves it to the first command of the test to register the project.
    pub fn unregistered(mut self) -> Self {
        self.registered = false;
        self
    }

    /// The time and the machine are what [`TestDaemon::stage`] says.
    pub fn staged(mut self) -> Self {
        self.staged = true;
        self
    }

    /// Makes the world; the daemon is not started.
    pub fn build(self) -> TestDaemon {
        TestDaemon::build(self)
    }

    /// Makes the world and starts the daemon.
    pub fn start(self) -> TestDaemon {
        let daemon = self.build();
        daemon.start();
        daemon
    }

    /// Another project in the same world.
    pub(super) fn write(&self, daemon: &TestDaemon) {
        fs::write(
            daemon.path("home/.gitconfig"),
            "[user]\n\tname = Ann\n\temail = ann@example.invalid\n[init]\n\tdefaultBranch = main\n",
        )
        .expect("a test's own directory can be written");
        if let Some(text) = &self.machine {
            write_file(&daemon.path("home/.config/pointsman/config.toml"), text);
        }
        self.write_checkout(daemon, &daemon.path(&self.name));
    }

    /// Writes the repository and its configuration.
    pub(super) fn write_checkout(&self, daemon: &TestDaemon, checkout: &Path) {
        for (path, text) in &self.files {
            write_file(&checkout.join(path), text);
        }
        daemon.git_in(checkout, &["init", "--quiet", "--initial-branch=main"]);
        daemon.git_in(checkout, &["add", "--all"]);
        daemon.git_in(checkout, &["commit", "--quiet", "--message=Open the shop"]);
        write_file(&checkout.join("pointsman.toml"), &self.configuration(daemon));
    }

    fn configuration(&self, daemon: &TestDaemon) -> String {
        let agent = match &self.agent {
            Some(script) => {
                let file = daemon.path(&format!("agent-{}.sh", self.name));
                write_file(&file, &format!("#!/bin/bash\n{script}"));
                format!("[{:?}]", file.to_string_lossy())
            }
            None => format!("[{:?}, \"rehearsal-agent\"]", self.program.to_string_lossy()),
        };
        let mut values = self.values.clone();
        values.insert("agent.command".to_owned(), agent);
        // A script that leaves notes in the home for its test, or waits there for a sign, looks out of its session. The
        // sandbox has tests of its own.
        if self.looks_outside() {
            values.entry("sandbox.mode".to_owned()).or_insert_with(|| "\"off\"".to_owned());
        }
        let phases = format!("{:?}", daemon.phases().to_string_lossy());
        values.entry("dev.phase_dir".to_owned()).or_insert(phases);
        // The machine that runs the tests may have little room; the rule has tests of its own.
        values.entry("tree.free_disk".to_owned()).or_insert_with(|| "\"100MB\"".to_owned());
        // An older program does not know every key: an empty value leaves one out.
        values.retain(|_, value| !value.is_empty());
        let mut text = format!("name = {:?}\nprimary_branch = \"main\"\n", self.name);
        let mut section = "";
        for (key, value) in &values {
            let (table, name) = key.rsplit_once('.').expect("a key is written section.key");
            if table != section {
                text.push_str(&format!("\n[{table}]\n"));
                section = table;
            }
            text.push_str(&format!("{name} = {value}\n"));
        }
        text
    }

    fn looks_outside(&self) -> bool {
        let files = self.files.iter().map(|(_, text)| text);
        files.chain(self.values.values()).chain(&self.agent).any(|text| text.contains("$HOME"))
    }

    /// The same under another name, for a second project.
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }
}

fn write_file(path: &Path, text: &str) {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).expect("a test's own directory can be written");
    }
    fs::write(path, text).expect("a test's own directory can be written");
    if text.starts_with("#!") {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path, mode).expect("a test's own file can be changed");
    }
}
