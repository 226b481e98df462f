//! A project as the daemon serves it: its configuration, forge, mirror and directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use pointsman_adapters::artifacts::Place;
use pointsman_adapters::ci::woodpecker::Woodpecker;
use pointsman_adapters::forge::plain::PlainRepository;
use pointsman_adapters::forge::{self, Forge};
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::git::union::UnionGlobs;
use pointsman_adapters::git::{self, BranchName, Git};
use pointsman_adapters::http::Count;
use pointsman_core::agent::Agent;
use pointsman_core::artifact::Origin;
use pointsman_core::config::Config;
use pointsman_core::ids::{Number, Sha, TaskKey};
use pointsman_core::people::AccountKind;
use pointsman_core::review::{Required, protected};
use pointsman_core::role::Role;
use pointsman_core::sandbox::network::{Policy, host_of};
use pointsman_core::task::Task;
use pointsman_core::time::Timestamp;
use pointsman_core::vault;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;

use super::clock;
use super::factory::{ForgeIssues, ForgeKnowledge};
use super::risk;
use super::settings::{self, Stamp};
use super::webhooks::ProjectWebhooks;
use crate::embedded_forge::EmbeddedForge;
use crate::enclosure::Enclosure;
use crate::paths::{Paths, ProjectPaths};
use crate::remote::{self, Environment, Notifiers};

/// Stands for all paths of a branch that shares no history with main.
const EVERYTHING: &str = "*";

/// One project at work.
pub(crate) struct Served {
    /// What it says in `pointsman.toml`.
    pub config: Arc<Config>,
    pub paths: ProjectPaths,
    /// Its issues and pull requests.
    pub forge: Arc<dyn Forge>,
    /// The same forge, if it is the embedded one: people's commands go there.
    pub embedded: Option<Arc<EmbeddedForge>>,
    /// Its CI, if that is a Woodpecker.
    pub woodpecker: Option<Woodpecker>,
    /// Who listens for what its servers tell by themselves.
    pub listening: Option<ProjectWebhooks>,
    /// How its people are told.
    pub notifiers: Notifiers,
    /// Our own copy of its repository.
    pub mirror: Mirror,
    /// What was captured of working trees. It sees the mirror's objects too; sessions see only those.
    pub captures: Mirror,
    /// The branch that work lands on.
    pub primary: BranchName,
    /// Files of which a merge takes both sides.
    pub union: UnionGlobs,
    /// What is known of the forge; nobody needs to ask it again for that.
    known: Mutex<ForgeKnowledge>,
    /// The files with its tokens, as they were when it was opened.
    pub secrets: Vec<Option<Stamp>>,
    /// Around what its branches bring.
    pub enclosure: Enclosure,
    /// Held while main is audited, and while a person's order moves it.
    main: Mutex<()>,
}

impl Served {
    /// Opens everything a project needs, without waiting for a server. `git` is our access to the program,
    /// `environment` has the tokens.
    pub(crate) fn open(
        paths: &Paths,
        git: &Git,
        config: Arc<Config>,
        environment: Environment,
    ) -> anyhow::Result<Self> {
        // Before they are read: one that changes meanwhile is read again.
        let secrets = settings::secrets(paths, &config);
        remote::remember_secrets(paths, &config, environment);
        let unsupported = config.unsupported();
        anyhow::ensure!(unsupported.is_empty(), "{}", unsupported.join("; "));
        let project = paths.project(&config.name);
        let primary = BranchName::new(&config.primary_branch)
            .with_context(|| words::daemon::git::not_a_branch_name(&config.primary_branch))?;
        let enclosure = Enclosure::new(environment, paths)?;
        if let Some(why) = enclosure.people().lacks(&config) {
            anyhow::bail!(why);
        }
        let mut git = git.clone().with_reading(enclosure.reading());
        let server = remote::forge(paths, &config, environment)?;
        let (forge, embedded): (Arc<dyn Forge>, _) = match (server, config.forge.kind.is_embedded()) {
            (Some(server), _) => {
                git = git.with_account(server.account());
                (server, None)
            }
            (None, true) => {
                let forge =
                    Arc::new(EmbeddedForge::open(&project, &config.primary_branch, &git, clock::now)?);
                (Arc::clone(&forge) as _, Some(forge))
            }
            (None, false) => {
                let url = config.forge.url.as_deref().context(words::daemon::project::no_repository())?;
                let mirror = Mirror::open_or_create_like_remote(&git, &project.mirror(), url)?;
                (Arc::new(PlainRepository::new(mirror)), None)
            }
        };
        let woodpecker = remote::ci(paths, &config, environment)?;
        let listening = remote::listening(paths, &config, environment)?;
        let notifiers = remote::notifiers(paths, &config, environment);
        let union = UnionGlobs::new(&config.merge.union)?;
        for dir in [project.checkouts(), project.logs(), project.indexes(), project.vault_pending()] {
            std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        let mut mirror = Mirror::open_or_create(&git, &project.mirror(), &forge.remote())?;
        if embedded.is_some() {
            mirror = mirror.of_our_own_remote();
        }
        let captures = mirror.captures(&project.captures())?;
        // A server is not waited for here; whoever needs its branches fetches them.
        if !config.forge.kind.is_hosted() {
            mirror.fetch_remote()?;
        }
        Ok(Self {
            config,
            paths: project,
            forge,
            embedded,
            woodpecker,
            listening,
            notifiers,
            mirror,
            captures,
            primary,
            union,
            known: Mutex::default(),
            main: Mutex::default(),
            enclosure,
            secrets,
        })
    }

    /// The destinations that a session of this role with this environment may reach. The API of its agent is none of them if the
    /// relay asks it.
    pub(crate) fn session_policy(
        &self,
        role: Role,
        env: &BTreeMap<String, String>,
        is_relayed: bool,
    ) -> Policy {
        let known = self.config.agent_kind(role).api_hosts().iter().map(|host| (*host).to_owned());
        let named =
            env.iter().filter(|(name, _)| Agent::is_base_url(name)).filter_map(|(_, url)| host_of(url));
        let agent: Vec<String> = known.chain(named).filter(|_| !is_relayed).collect();
        self.enclosure.policy(&self.config.sandbox(role).hosts, &agent, &self.paths)
    }

    /// The cost of asking every server of this project, by operation: its forge, its CI, and those by which people are told.
    pub(crate) fn costs(&self) -> Vec<(&'static str, Count)> {
        let mut all = self.forge.costs();
        if let Some(ci) = &self.woodpecker {
            all.extend(ci.host().counts().all());
        }
        if let Ok(matrix) = self.notifiers.matrix() {
            all.extend(matrix.host().counts().all());
        }
        if let Ok(webhook) = self.notifiers.webhook() {
            all.extend(webhook.host().counts().all());
        }
        all
    }

    /// The open issues, as the forge last told them.
    pub(crate) fn seen(&self) -> Option<Arc<ForgeIssues>> {
        self.known().seen
    }

    /// The state of the forge as far as it is known.
    pub(crate) fn known(&self) -> ForgeKnowledge {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The forge has told its open issues.
    pub(crate) fn saw(&self, seen: ForgeIssues) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).seen = Some(Arc::new(seen));
    }

    /// The forge has answered everything that was asked.
    pub(crate) fn heard_all(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).silent_since = None;
    }

    /// The forge was asked and has not answered, or not everything.
    pub(crate) fn heard_nothing(&self, now: Timestamp) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.silent_since.get_or_insert(now);
    }

    /// Keeps others from auditing or moving main.
    pub(crate) fn hold_main(&self) -> MutexGuard<'_, ()> {
        self.main.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The paths that `head` changes since it left main and that need a person's approval.
    pub(crate) fn protected_paths(&self, main: &Sha, head: &Sha) -> Result<Vec<String>, git::Error> {
        // Without a common ancestor everything is new.
        let Some(base) = self.mirror.merge_base(main, head)? else { return Ok(vec![EVERYTHING.to_owned()]) };
        let mut changed = self.mirror.changed_paths(&base, head)?;
        changed.retain(|path| protected(&self.config, path));
        Ok(changed)
    }

    /// The person behind an account of the forge, if its word counts as far as `[people]` says. Names on the embedded forge are
    /// those of people already.
    pub(crate) fn person(&self, account: &str) -> Option<String> {
        let people = self.enclosure.people();
        match self.embedded.is_some() {
            true => people.knows(account).then(|| account.to_owned()),
            false if people.is_empty() => Some(account.to_owned()),
            false => people.person(AccountKind::Forge, account).map(str::to_owned),
        }
    }

    /// Whether an account of the forge may direct work: it belongs to somebody of `[people]`, or the forge lets it write.
    pub(crate) fn may_direct(&self, account: &str) -> Result<bool, forge::Error> {
        match self.enclosure.people().is_empty() {
            true => self.forge.may_direct(account),
            false => Ok(self.person(account).is_some()),
        }
    }

    /// The approval that a change of main up to `head` needs.
    pub(crate) fn required_approval(&self, main: &Sha, head: &Sha) -> Result<Required, git::Error> {
        let protected = self.protected_paths(main, head)?;
        let risk = risk::judge(self, main, head, &protected);
        Ok(Required::of(&self.config, !protected.is_empty(), risk.as_ref()))
    }

    /// The directories and files of one task.
    pub(crate) fn session_files(&self, key: &TaskKey) -> SessionFiles {
        self.files_of(&WorkflowId::Task(key.clone()))
    }

    /// The directories and files of one workflow's sessions.
    pub(crate) fn files_of(&self, id: &WorkflowId) -> SessionFiles {
        let root = self.paths.sandbox(id);
        let dir = &self.config.dev.phase_dir;
        let (role, number) = match id {
            WorkflowId::Task(key) => (Task::ROLE, key.issue.to_string()),
            WorkflowId::Run(key) => (key.role, key.id.to_string()),
            // These have no sessions, so nobody writes such files.
            WorkflowId::Vault(key) => (vault::ROLE, key.id.to_string()),
            WorkflowId::Concern(_) | WorkflowId::Role(_) | WorkflowId::Notifier(_) => {
                (Task::ROLE, id.lane().replace('/', "-"))
            }
        };
        let name = format!("{}-{number}", id.project());
        SessionFiles {
            tree: root.join("tree"),
            gateway: root.join("gateway.git"),
            root,
            phase_file: dir.join(format!("{role}-session-{name}.phase")),
            ci_result: dir.join(format!("ci-result-{name}.txt")),
            transcript: dir.join(format!("{role}-{name}.log")),
            renotify: dir.join(format!("{role}-renotify-{name}")),
            idle_marker: dir.join(format!("claude-idle-{role}-{name}.ts")),
        }
    }

    /// Keeps the artifacts of a task's session with its pull request. Nothing waits for them: what cannot be kept is logged.
    pub(crate) fn keep_artifacts(&self, task: &Task, generation: u32) {
        let from = self.session_files(&task.key).artifacts(generation);
        let key = artifacts_of(Some(task.key.issue), None);
        self.keep_artifacts_in(&from, key, Origin::Session, task.contribution.head());
    }

    /// The same for files that lie elsewhere.
    pub(crate) fn keep_artifacts_in(&self, from: &Path, key: String, origin: Origin, sha: Option<&Sha>) {
        let place = Place { root: self.paths.artifacts(), key };
        match place.keep(from, origin, sha, clock::now()) {
            Ok(0) => {}
            Ok(count) => tracing::debug!(key = place.key, count, "artifacts were kept"),
            Err(error) => tracing::warn!(key = place.key, %error, "artifacts could not be kept"),
        }
    }

    /// The task's branch.
    pub(crate) fn branch(&self, task: &Task) -> anyhow::Result<BranchName> {
        BranchName::new(&task.contribution.branch)
            .with_context(|| words::daemon::git::not_a_branch_name(&task.contribution.branch))
    }
}

/// The name by which the artifacts of a pull request are kept: that of the task's issue, if it is a task's.
pub(crate) fn artifacts_of(issue: Option<Number>, pr: Option<Number>) -> String {
    match (issue, pr) {
        (Some(issue), _) => format!("issue-{issue}"),
        (None, Some(pr)) => format!("pr-{pr}"),
        (None, None) => "unknown".to_owned(),
    }
}

/// The files of one workflow's sessions.
pub(crate) struct SessionFiles {
    /// All that its sessions may touch of ours.
    pub root: PathBuf,
    pub tree: PathBuf,
    /// What `origin` is for the agent.
    pub gateway: PathBuf,
    /// The phase file of the protocol.
    pub phase_file: PathBuf,
    /// The protocol's last CI result.
    pub ci_result: PathBuf,
    /// The protocol's transcript of the running session.
    pub transcript: PathBuf,
    /// The protocol's mark that people were asked again.
    pub renotify: PathBuf,
    /// The protocol's mark that the agent is back at its prompt.
    pub idle_marker: PathBuf,
}

/// The phase directory of an enclosed session, below the directory of its workflow.
pub(crate) fn phases_of(root: &Path, generation: u32) -> PathBuf {
    root.join(format!("phases-{generation}"))
}

impl SessionFiles {
    /// Messages to one session.
    pub(crate) fn inbox(&self, generation: u32) -> PathBuf {
        self.root.join(format!("inbox-{generation}"))
    }

    /// The phase directory of one session inside a sandbox. It is there only if the session runs in one, and shown to it
    /// as the phase directory of the protocol.
    pub(crate) fn phases(&self, generation: u32) -> PathBuf {
        phases_of(&self.root, generation)
    }

    /// Whether one session runs, or ran, inside a sandbox.
    pub(crate) fn is_enclosed(&self, generation: u32) -> bool {
        self.phases(generation).is_dir()
    }

    /// A file of the protocol as one session finds it.
    pub(crate) fn as_seen_by(&self, generation: u32, file: &Path) -> PathBuf {
        match (self.is_enclosed(generation), file.file_name()) {
            (true, Some(name)) => self.phases(generation).join(name),
            (true, None) | (false, _) => file.to_owned(),
        }
    }

    /// The description of what one session starts. It is not among the files that the session can write.
    pub(crate) fn launch_spec(&self, generation: u32) -> PathBuf {
        self.root.join(format!("launch-{generation}.json"))
    }

    /// The progress of the tree's set-up. No session sees it.
    pub(crate) fn setup_record(&self) -> PathBuf {
        self.root.join("setup.json")
    }

    /// The settings of the agent program, for one session inside a sandbox.
    pub(crate) fn agent_settings(&self, generation: u32) -> PathBuf {
        self.root.join(format!("agent-{generation}"))
    }

    /// Files one session is started with and answers in.
    pub(crate) fn run_dir(&self, generation: u32) -> PathBuf {
        self.root.join(format!("run-{generation}"))
    }

    /// Pull request summary, or a refusal.
    pub(crate) fn summary(&self, generation: u32) -> PathBuf {
        self.run_dir(generation).join("summary")
    }

    /// The plan that a session shows before it works.
    pub(crate) fn plan(&self, generation: u32) -> PathBuf {
        self.run_dir(generation).join("plan")
    }

    /// The directory into which one session puts files for those who review its work.
    pub(crate) fn artifacts(&self, generation: u32) -> PathBuf {
        self.run_dir(generation).join("artifacts")
    }

    /// The file into which a role writes its answer.
    pub(crate) fn result(&self, generation: u32) -> PathBuf {
        self.run_dir(generation).join("result.json")
    }
}
