//! Putting the daemon together, and acting in its place when there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};
use std::time::{Duration, Instant};

use anyhow::Context;
use pointsman_adapters::driver::Drivers;
use pointsman_adapters::git::{Git, clear_stale_locks};
use pointsman_adapters::headless::Headless;
use pointsman_adapters::phase_file;
use pointsman_adapters::process::{census, cgroup};
use pointsman_adapters::proxy::ProxyDir;
use pointsman_adapters::tmux::Server;
use pointsman_adapters::watch::exits::ExitWatch;
use pointsman_core::config::Config;
use pointsman_core::decision::Unconfirmed;
use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::queue::EntryId;
use pointsman_core::sandbox::Place;
use pointsman_core::task::Stage;
use pointsman_core::words;
use pointsman_store::lock::Error as LockError;
use pointsman_store::{self as store, Change, DaemonLock, SessionScope, Store};

use super::answer::{answer, failed};
use super::board::TaskBoard;
use super::clock;
use super::conditions::{self, FilingQuestions, ForgeContext};
use super::control::Control;
use super::decisions;
use super::dispatcher::Dispatcher;
use super::effects::{EffectPerformer, Ports, SessionActivities};
use super::engine::Engine;
use super::factory;
use super::halt;
use super::inbound::{Inbound, Inbox};
use super::jobs::{Jobs, Outcomes, adopt, clear_leftovers};
use super::notifier;
use super::own_identity::{self, LoopTurns, OwnIdentity};
use super::peers::Peers;
use super::poller::Poller;
use super::projections::Projections;
use super::projects;
use super::queue_orders;
use super::reader::Reader;
use super::relay::RelayWatch;
use super::reports::Reports;
use super::restored;
use super::runs;
use super::served::Served;
use super::session_sockets::SessionSockets;
use super::settings::SettingsWatch;
use super::sleep::SleepWatch;
use super::sources::exits::Exits;
use super::sources::hooks;
use super::sources::pending_actions::PendingActions;
use super::sources::phase::Phases;
use super::watch_thread::WatchThread;
use super::web;
use super::workers::Workers;
use crate::claim;
use crate::control::access::{Access, may};
use crate::control::caller::{Caller, Unknown};
use crate::control::client;
use crate::control::protocol::{FailureKind, Reply, Request};
use crate::embedded_forge::{self, EmbeddedForge};
use crate::enclosure::people;
use crate::paths::Paths;
use crate::remote::Environment;

/// The environment this process was started in.
#[allow(clippy::disallowed_methods, reason = "the daemon begins here: the environment is its input")]
const ENVIRONMENT: Environment = |name| std::env::var_os(name);

/// Choices of whoever starts the daemon.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Without terminals, and so without sessions: a merge queue needs none.
    pub no_sessions: bool,
    /// Works on this project's merge queue alone, and ends when nothing is left to do there.
    pub only_queue: Option<OnlyQueue>,
    /// Who is told what becomes of branches.
    pub outcomes: Option<Outcomes>,
}

/// The merge queue of one project, worked on by a command.
#[derive(Clone, Debug)]
pub struct OnlyQueue {
    pub project: ProjectName,
    /// This entry and no other; all of them if there is none.
    pub entry: Option<EntryId>,
}

/// Runs the daemon until it is told to stop; prints `ready` on stderr when commands are heard.
#[allow(clippy::disallowed_methods, reason = "the daemon begins here: the environment is its input")]
pub fn run(paths: &Paths, options: Options) -> anyhow::Result<()> {
    if ENVIRONMENT("POINTSMAN_CGROUPS").is_some_and(|value| value == "off") {
        cgroup::switch_off();
    }
    paths.create()?;
    may_start(paths)?;
    let _lock = take_over(paths)?;
    let newest_event = restored::newest_event(paths);
    let store = Store::open(&paths.database())?;
    let git = Git::open(paths.state())?;
    let tmux = Arc::new(Server::new(paths.tmux_socket(), paths.tmux_config())?);
    let peers = Peers::of_daemon(paths, Arc::clone(&tmux), people(ENVIRONMENT)?)?;
    survive_file_limits()?;
    let (inbox, inbound) = Inbox::new();
    let mut engine = Engine::open(store)?;
    engine.number_questions(clock::now())?;
    projects::accept_earlier(&mut engine)?;
    let board = TaskBoard::new(&engine);
    let bell = web::Bell::default();
    let jobs = Jobs::new(inbox.clone(), Store::open_read_only(&paths.database())?, paths.notices());
    if let Some(outcomes) = options.outcomes.clone() {
        jobs.tell_outcomes(outcomes);
    }

    // The watch needs to know whom to tell before that one can be made.
    let listener: Arc<Mutex<Weak<Exits>>> = Arc::default();
    let told = Arc::clone(&listener);
    let watch = ExitWatch::start(move |exited| {
        let exits = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner).upgrade();
        if let Some(exits) = exits {
            exits.exited(&exited);
        }
    })?;
    let world = Arc::new(EffectPerformer {
        paths: paths.clone(),
        git,
        drivers: Drivers { tmux, headless: Headless::new(paths.headless()) },
        exits: Arc::new(watch),
        jobs: Arc::clone(&jobs),
        announced: Arc::default(),
        stances: SessionActivities::open(paths.stances()),
        reader: Reader::new(Store::open_read_only(&paths.database())?),
        projects: RwLock::new(BTreeMap::new()),
        program: std::env::current_exe().context(words::daemon::process::own_program_unknown())?,
        environment: ENVIRONMENT,
        sockets: SessionSockets::new(paths.clone()),
        ports: Ports::default(),
    });
    let phases = Phases::start(inbox.clone(), board.clone(), Arc::clone(&world))?;
    let exits = Arc::new(Exits::new(inbox.clone(), Arc::clone(&world), Arc::clone(&phases)));
    *listener.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::downgrade(&exits);
    let poller = Arc::new(Poller::default());
    let [runs, notices, roles, settings] = std::array::from_fn(|_| Arc::new(WatchThread::default()));
    let turns = LoopTurns::new(clock::now());
    let sleep = SleepWatch::open(engine.store());
    let mut dispatcher = Dispatcher {
        engine,
        inbound,
        board: board.clone(),
        workers: Workers::start(&world, &inbox)?,
        world: Arc::clone(&world),
        phases: Arc::clone(&phases),
        exits,
        projections: Projections::start(
            Store::open_read_only(&paths.database())?,
            Arc::clone(&world.announced),
            // A command that works on one merge queue is no daemon.
            options.only_queue.is_none().then(|| OwnIdentity::new(paths.state(), turns.clone())),
            options.only_queue.is_none().then(|| paths.newest_event()),
        )?,
        turns: turns.clone(),
        poller: Arc::clone(&poller),
        runs: Arc::clone(&runs),
        notices: Arc::clone(&notices),
        factory: Arc::clone(&roles),
        started_at: clock::now(),
        problems: Vec::new(),
        only_queue: options.only_queue.is_some(),
        redelivering: BTreeMap::new(),
        halted_since: None,
        sleep: Some(sleep),
        between_turns: BTreeSet::new(),
        bell: bell.clone(),
        rung_at: 0,
    };
    clear_locks(paths, &world.git, dispatcher.engine.store())?;
    let mut files = SettingsWatch::new(inbox.clone(), Arc::clone(&world));
    dispatcher.reload();
    if !options.no_sessions && options.only_queue.is_none() && wants_terminals(&world) {
        world.drivers.tmux.ensure_running().context(words::daemon::process::no_tmux())?;
        world.drivers.tmux.end_orphaned_clients()?;
    }
    let projects = world.projects.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    sweep_drafts(paths, &projects);
    cgroup::sweep();
    if options.only_queue.is_none() {
        for project in restored::look(paths, &mut dispatcher.engine, newest_event, &projects)? {
            jobs.was_restored(&project);
        }
        if let Err(error) = restored::end_unrecorded(&world) {
            tracing::warn!(error = format!("{error:#}"), "agents without a record were not looked for");
        }
    }
    if halt::in_force(paths).is_some() {
        // Whoever halted while no daemon ran left everything stopped.
        halt::freeze(paths);
        let ended = world.end_halted(&projects);
        halt::end_jobs(&projects);
        tracing::warn!(sessions = ended.join(", "), "{}", words::daemon::process::halted(""));
    }
    for served in projects.values() {
        if let Place::Outside(why) =
            served.enclosure.place(&served.config.sandbox, served.config.dev.worktree)
        {
            tracing::warn!(project = %served.config.name, "{}", words::sandbox::warning(&why));
        }
        if let Some(warning) = served.enclosure.login_warning(&served.config) {
            tracing::warn!(project = %served.config.name, "{warning}");
        }
        clear_leftovers(served);
        let adopted = adopt(dispatcher.engine.store(), served).and_then(|writes| {
            let change = Change::quiet(clock::now(), writes);
            Ok(dispatcher.engine.write(&[change]).map(drop)?)
        });
        if let Err(error) = adopted {
            let error = format!("{error:#}");
            tracing::warn!(project = %served.config.name, error, "checkpoints were not compared");
        }
        match decisions::look_through(&mut dispatcher.engine, served, clock::now()) {
            Ok(waiting) => show_unconfirmed(&served.config.name, &waiting),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(project = %served.config.name, error, "unconfirmed decisions were not looked through");
            }
        }
        // Whatever an earlier daemon was about to save when it ended.
        for task in dispatcher.engine.tasks().values() {
            if task.key.project == served.config.name && task.session.stage == Stage::Alive {
                jobs.checkpoint(served, task, "a new daemon");
            }
        }
    }
    // Before anybody can tell something newer.
    hooks::read_spools(&world, &mut dispatcher.engine);
    if let Some(OnlyQueue { project, entry }) = options.only_queue {
        if let Some(entry) = entry {
            jobs.work_on_only(entry);
        }
        let served = world.project(&project).with_context(|| dispatcher.problems.join("; "))?;
        stop_on_signals(&inbox)?;
        jobs.land(&served);
        let waiting = Arc::clone(&jobs);
        std::thread::Builder::new().name("line".to_owned()).spawn(move || {
            waiting.wait_until_landed(&project);
            inbox.send(Inbound::Stop);
        })?;
        dispatcher.run();
        jobs.stop();
        return Ok(());
    }
    let reports = Arc::new(Reports::new(inbox.clone(), board.clone(), Arc::clone(&world)));
    let polling =
        poller.start(inbox.clone(), board.clone(), Arc::clone(&world), phases, Arc::clone(&reports))?;
    let mut pending = PendingActions::new(inbox.clone(), Arc::clone(&world));
    let mut all_runs = runs::Watch::new(inbox.clone(), Arc::clone(&world));
    let mut telling = notifier::Watch::new(inbox.clone(), Arc::clone(&world));
    let mut all_roles = factory::Watch::new(inbox.clone(), Arc::clone(&world));
    let looked_at = Arc::clone(&world);
    let mut relayed = RelayWatch::new(inbox.clone(), Arc::clone(&world));
    let looking = [
        runs.start("runs", move || all_runs.look())?,
        notices.start("notices", move || telling.look())?,
        roles.start("roles", move || all_roles.look(clock::now()))?,
        settings.start("files", move || {
            if let Some(enclosure) = looked_at.any_enclosure() {
                enclosure.keep_network();
            }
            relayed.look();
            files.look();
            pending.look();
        })?,
    ];
    let control = Control {
        inbox: inbox.clone(),
        board,
        world: Arc::clone(&world),
        peers,
        connections: Arc::default(),
        reports,
        filing: Mutex::default(),
        web: OnceLock::new(),
    };
    let control = Arc::new(control);
    let live = world.read(|store| store.sessions(None, SessionScope::Live))?;
    world.sockets.reopen(live.iter().map(|row| row.session.as_str()));
    world.sockets.start(&control)?;
    let _web = web::start(paths, &control, bell, ENVIRONMENT);
    Arc::clone(&control).listen(&paths.control_socket())?;
    stop_on_signals(&inbox)?;
    eprintln!("ready");
    // Only where a person reads it: a log is read by others, too.
    if std::io::stderr().is_terminal() {
        let name = control.peers.owner();
        if let Some(link) = control.web.get().and_then(|web| web.link(&name)) {
            eprintln!("{}", words::web::link(&link.url));
        }
    }
    dispatcher.run();
    own_identity::ended(paths.state(), &turns);
    poller.stop();
    runs.stop();
    notices.stop();
    roles.stop();
    settings.stop();
    jobs.stop();
    let _ = std::fs::remove_file(paths.control_socket());
    for thread in looking.into_iter().chain([polling]) {
        let _ = thread.join();
    }
    end_idle_servers(&world);
    Ok(())
}

/// Ends the tmux server and the proxy if no session needs them. A terminal in which something runs keeps the server, also if no
/// record of it is left.
fn end_idle_servers(world: &EffectPerformer) {
    let live = world.read(|store| store.sessions(None, SessionScope::Live));
    if !live.is_ok_and(|live| live.is_empty()) {
        return;
    }
    let tmux = &world.drivers.tmux;
    let is_idle =
        || tmux.list().is_ok_and(|panes| panes.iter().all(|(_, pane)| pane.dead || pane.epoch.is_empty()));
    if tmux.process().is_some()
        && is_idle()
        && let Err(error) = tmux.shut_down()
    {
        tracing::warn!(%error, "the tmux server was not ended");
    }
    ProxyDir::at(world.paths.proxy()).end_if_idle();
}

/// Refuses to become a daemon inside a session: whoever starts one is a person to it. Where everybody is marked nothing
/// more can be told, and a service that restarts itself is no person either.
fn may_start(paths: &Paths) -> anyhow::Result<()> {
    let why = match Peers::of_command(paths, people(ENVIRONMENT)?)?.ourselves() {
        Caller::Person { .. } | Caller::Other(Unknown::NotTold) => return Ok(()),
        // An earlier release said nothing about itself.
        Caller::Other(Unknown::Marked) if !paths.origin().exists() => return Ok(()),
        Caller::Other(Unknown::Marked) => words::access::daemon_marked(&paths.origin().to_string_lossy()),
        Caller::Other(unknown) => words::access::nobody(unknown.why(), "up"),
        caller @ (Caller::Session(_)
        | Caller::Keeper { .. }
        | Caller::Launcher { .. }
        | Caller::Runner { .. }
        | Caller::Token { .. }) => words::access::daemon_of(&caller.to_string()),
    };
    anyhow::bail!(NotAPerson(why))
}

/// Whoever started this may not.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotAPerson(String);

/// Whether any role runs in terminals. Nobody knows what will be served where nothing is yet.
fn wants_terminals(world: &EffectPerformer) -> bool {
    let projects = world.projects.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    projects.is_empty() || projects.values().any(|served| served.config.wants_terminals())
}

/// Takes the daemon's place. A command that acts alone has it only for a moment; another daemon keeps it.
fn take_over(paths: &Paths) -> Result<DaemonLock, LockError> {
    const WAIT: Duration = Duration::from_secs(5);
    const LOOK: Duration = Duration::from_millis(20);
    let deadline = Instant::now() + WAIT;
    loop {
        match DaemonLock::acquire(&paths.lock()) {
            Err(LockError::Held { .. })
                if Instant::now() < deadline && !client::answers(&paths.control_socket()) =>
            {
                std::thread::park_timeout(LOOK);
            }
            taken => return taken,
        }
    }
}

/// Clears lock files that a killed git left in repositories of ours, once it is certain that no git
/// works there: neither one that an earlier daemon started nor a push of a person.
fn clear_locks(paths: &Paths, git: &Git, store: &Store) -> anyhow::Result<()> {
    const WAIT: Duration = Duration::from_secs(30);
    const LOOK: Duration = Duration::from_millis(50);
    let deadline = Instant::now() + WAIT;
    while !git.alive().is_empty() {
        if Instant::now() >= deadline {
            tracing::warn!(processes = ?git.alive(), "git of an earlier daemon still runs; locks stay");
            return Ok(());
        }
        std::thread::park_timeout(LOOK);
    }
    for project in store.projects()? {
        let project = paths.project(&project.name);
        for repository in [project.mirror(), project.captures(), project.forge_repository()] {
            if census::inside(&repository).is_empty() {
                clear_stale_locks(&repository)?;
            }
        }
    }
    Ok(())
}

/// Whoever starts a daemon in the foreground reads its log, so this is where they see what waits for them.
fn show_unconfirmed(project: &ProjectName, waiting: &[Unconfirmed]) {
    for unconfirmed in waiting {
        tracing::warn!("{}", words::decision::to_confirm(project, unconfirmed));
    }
}

/// Removes what a killed daemon was just writing beside the phase files.
fn sweep_drafts(paths: &Paths, projects: &BTreeMap<ProjectName, Arc<Served>>) {
    let phases = projects.values().map(|served| served.config.dev.phase_dir.as_path());
    let directories: BTreeSet<_> = phases.chain([paths.runtime()]).collect();
    for directory in directories {
        match phase_file::sweep_drafts(directory) {
            Ok(0) => {}
            Ok(swept) => {
                tracing::info!(directory = %directory.display(), swept, "drafts of an earlier daemon")
            }
            Err(error) => tracing::warn!(directory = %directory.display(), %error, "drafts were not swept"),
        }
    }
}

/// A file that may not grow is an error of one write, like a full disk, and not the end of the daemon.
fn survive_file_limits() -> std::io::Result<()> {
    let noticed = Arc::default();
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, noticed).map(drop)
}

/// SIGTERM, SIGINT and SIGHUP end the daemon; its sessions go on.
fn stop_on_signals(inbox: &Inbox) -> anyhow::Result<()> {
    let inbox = inbox.clone();
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGHUP,
    ])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            tracing::info!(signal, "stopping; sessions go on");
            inbox.send(Inbound::Stop);
        }
    })?;
    Ok(())
}

/// Answers a command that reads from the embedded forge while the daemon does not answer. It takes no lock: nothing is written.
pub(crate) fn read_alone(paths: &Paths, request: &Request) -> anyhow::Result<Reply> {
    let caller = Peers::of_command(paths, people(ENVIRONMENT)?)?.ourselves();
    let request = match may(&caller, request) {
        Access::Allowed(request) => request,
        // Only the daemon can look at the condition.
        Access::AllowedIf(..) => {
            return Ok(failed(FailureKind::Failed, words::daemon::process::silent().to_owned()));
        }
        Access::Refused(why) => return Ok(failed(FailureKind::Refused, why)),
    };
    let Request::Forge { project, command } = &*request else {
        return Ok(failed(FailureKind::Failed, words::daemon::process::silent().to_owned()));
    };
    let store = Store::open_for_command(&paths.database())?;
    let Some(row) = store.project(project)? else {
        return Ok(failed(FailureKind::NotFound, words::daemon::request::no_project(project)));
    };
    let config = super::accepted_config(&store, &row)?;
    if !config.forge.kind.is_embedded() || !command.only_reads() {
        return Ok(failed(FailureKind::Failed, words::daemon::process::silent().to_owned()));
    }
    let git = Git::open(paths.state())?;
    let forge = EmbeddedForge::open(&paths.project(project), &config.primary_branch, &git, clock::now)?;
    Ok(embedded_forge::run_command(&forge, command))
}

/// Carries out a command while no daemon runs: takes its place for a moment.
pub fn answer_alone(paths: &Paths, request: &Request) -> anyhow::Result<Reply> {
    // There is no daemon to look at us, so we look at ourselves, by the same rules. Whoever is refused leaves no trace.
    let peers = Peers::of_command(paths, people(ENVIRONMENT)?)?;
    let caller = peers.ourselves();
    if let Some(why) = peers.refuses(&caller, request) {
        return Ok(failed(FailureKind::Refused, why));
    }
    let (request, condition) = match may(&caller, request) {
        Access::Allowed(request) => (request, None),
        Access::AllowedIf(request, condition) => (request, Some(condition)),
        Access::Refused(why) => return Ok(failed(FailureKind::Refused, why)),
    };
    // Only a daemon converts what an earlier version wrote: there is no way back.
    if let Err(error @ store::Error::TooOld { .. }) = Store::open_for_command(&paths.database()) {
        return Err(error.into());
    }
    paths.create()?;
    let _lock = DaemonLock::acquire(&paths.lock())?;
    let mut store = Store::open(&paths.database())?;
    let check = |store: &Store, forge: Option<ForgeContext<'_>>| match (condition, &caller) {
        (Some(condition), Caller::Session(own)) => {
            conditions::holds(condition, own, |id| store.message(id), forge, &FilingQuestions::NONE)
        }
        _ => Ok(()),
    };
    let request = &*request;
    if let Request::Forge { project, .. } | Request::Claim { project, .. } = request {
        let Some(row) = store.project(project)? else {
            return Ok(failed(FailureKind::NotFound, words::daemon::request::no_project(project)));
        };
        let config = super::accepted_config(&store, &row)?;
        let git = Git::open(paths.state())?;
        if let (Request::Claim { order, .. }, true) = (request, !config.forge.kind.is_embedded()) {
            let served = Served::open(paths, &git, Arc::new(config), ENVIRONMENT)?;
            let is_worked_on = |issue| {
                let key = TaskKey { project: project.clone(), issue };
                store.task(&key).is_ok_and(|task| claim::is_worked_on(task.as_ref()))
            };
            let place = claim::ClaimContext {
                forge: &*served.forge,
                git: &git,
                config: &served.config,
                is_worked_on: &is_worked_on,
            };
            return Ok(claim::carry_out(&place, order));
        }
        if !config.forge.kind.is_embedded() {
            return Ok(failed(FailureKind::Refused, words::access::not_embedded(project.as_str())));
        }
        let config = Arc::new(config);
        let forge = EmbeddedForge::open(&paths.project(project), &config.primary_branch, &git, clock::now)?;
        if let Err(reply) = check(&store, Some(ForgeContext { forge: &forge, config: &config })) {
            return Ok(reply);
        }
        if let Some(reply) = decisions::keep(&mut store, &config, Some(&forge), request, clock::now())? {
            return Ok(reply);
        }
        if let Request::Forge { command, .. } = request {
            return Ok(embedded_forge::run_command(&forge, command));
        }
        if let Request::Claim { order, .. } = request {
            let place =
                claim::ClaimContext { forge: &forge, git: &git, config: &config, is_worked_on: &|_| false };
            return Ok(claim::carry_out(&place, order));
        }
    }
    if let Err(reply) = check(&store, None) {
        return Ok(reply);
    }
    let mut request = request.clone();
    if let Request::Queue { project, command } = request {
        let Some(row) = store.project(&project)? else {
            return Ok(failed(FailureKind::NotFound, words::daemon::request::no_project(&project)));
        };
        let config = Arc::new(super::accepted_config(&store, &row)?);
        let served = Served::open(paths, &Git::open(paths.state())?, config, ENVIRONMENT)?;
        match queue_orders::prepare(&served, command) {
            Ok(command) => request = Request::Queue { project, command },
            Err(reply) => return Ok(reply),
        }
    }
    let configs: Vec<Arc<Config>> = store
        .projects()?
        .into_iter()
        .filter_map(|row| super::accepted_config(&store, &row).ok().map(Arc::new))
        .collect();
    let of_project = decisions::project_of(&request);
    if let Some(config) = configs.iter().find(|config| Some(&config.name) == of_project)
        && let Some(reply) = decisions::keep(&mut store, config, None, &request, clock::now())?
    {
        return Ok(reply);
    }
    let mut engine = Engine::open(store)?;
    engine.serve(configs);
    let (reply, _) = answer(paths, &mut engine, &request);
    Ok(reply)
}
