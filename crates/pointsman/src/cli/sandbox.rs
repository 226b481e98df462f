use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Subcommand;
use pointsman_adapters::sandbox::landlock_version;
use pointsman_core::role::Role;
use pointsman_core::sandbox::{Limits, Place, SessionPaths};
use pointsman_core::words;
use pointsman_view::sandbox as view;

use super::context::Context;
use super::failure::Failure;
use super::sandbox_learn::learn;
use super::table::Table;
use super::{role, style};
use crate::daemon::phases_of;
use crate::model_login;

/// Show what sessions can reach, and find out which hosts CI needs
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  pointsman sandbox show\n  pointsman sandbox show action --json")]
pub(crate) enum Command {
    /// List everything that a role's session can see, what it may do there and why, and its limits
    #[command(after_help = "Examples:\n  pointsman sandbox show\n  pointsman sandbox show action --json")]
    Show {
        /// The role
        #[arg(value_parser = role(), default_value = "dev")]
        role: Role,
    },
    /// Run CI once with an open network, and list the hosts that it uses
    ///
    /// CI runs on the main branch, inside the sandbox. This once, it can reach hosts that are not allowed yet, except
    /// those with private addresses. You then decide whether CI and gates may reach these hosts from now on.
    #[command(after_help = "Examples:\n  pointsman sandbox learn\n  pointsman sandbox learn --yes")]
    Learn {
        /// Allow the hosts without asking
        #[arg(long, short)]
        yes: bool,
    },
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let role = match self {
            Self::Show { role } => role,
            Self::Learn { yes } => return learn(context, yes),
        };
        let config = context.project()?.config;
        let enclosure = Context::enclosure()?;
        let settings = config.sandbox(role);
        let place = enclosure.place(&settings, config.dev.worktree);
        let (placed, reason) = match &place {
            Place::Inside => (view::Place::Inside, None),
            Place::Outside(why) => (view::Place::Outside, Some(why)),
            Place::Nowhere(why) => (view::Place::Refused, Some(why)),
        };
        // As a session of issue N finds it.
        let paths = context.paths.project(&config.name);
        let identity = format!("{role}-{}-N", config.name);
        let root = paths.root().join("sessions").join(&identity);
        let session = SessionPaths {
            tree: root.join("tree"),
            gateway: Some(root.join("gateway.git")),
            messages: root.join("inbox-1"),
            run: root.join("run-1"),
            phase_dir: config.dev.phase_dir.clone(),
            phases: phases_of(&root, 1),
            socket: (context.paths.session_socket_dir(&identity), PathBuf::from("/run/pointsman")),
            objects: paths.mirror().join("objects"),
            spec: root.join("launch-1.json"),
            program: std::env::current_exe()?,
            settings: Some(root.join("agent-1")),
            network: Some((context.paths.proxy().join(&identity), PathBuf::from("/run/pointsman-proxy"))),
        };
        let agent = config.agent_kind(role);
        let is_relayed = model_login::is_relayed(agent, &settings, &config.agent.pass_env);
        let hosts = agent.api_hosts().iter().filter(|_| !is_relayed);
        let agent: Vec<String> = hosts.map(|host| (*host).to_owned()).collect();
        let policy = enclosure.policy(&settings.hosts, &agent, &paths);
        let command = config.command(role);
        let shown = match &place {
            Place::Inside => enclosure.around_session(
                &settings,
                config.dev.worktree,
                session,
                command,
                &policy,
                BTreeMap::new(),
            ),
            Place::Outside(_) | Place::Nowhere(_) => Ok(None),
        };
        let mounts = shown.map_err(Failure::failed)?.map(|shown| shown.plan.mounts).unwrap_or_default();
        let ci = enclosure.policy(&config.sandbox.ci_hosts, &[], &paths);
        let view = view::Sandbox {
            role,
            place: placed,
            why: reason.map(words::sandbox::outside),
            fix: reason.map(|why| words::sandbox::fix(why).to_owned()),
            mounts: mounts.iter().map(view::Mount::from).collect(),
            network: match &place {
                Place::Inside => words::sandbox::network(&policy.hosts, &policy.registries, is_relayed),
                Place::Outside(_) | Place::Nowhere(_) => words::sandbox::NETWORK_SHARED.to_owned(),
            },
            hosts: policy.hosts,
            registries: policy.registries.iter().map(ToString::to_string).collect(),
            ci_hosts: ci.hosts,
            ci_registries: ci.registries.iter().map(ToString::to_string).collect(),
            private_hosts: policy.private_hosts,
            syscall_filter: place == Place::Inside && enclosure.filters(),
            landlock: (place == Place::Inside).then(landlock_version).flatten(),
            limits: view::limits(&Limits::of(&settings), rustix::process::geteuid().is_root()),
        };
        if context.out.is_json() {
            return context.out.value(&view);
        }
        print(context, &view)
    }
}

fn print(context: &Context, view: &view::Sandbox) -> Result<(), Failure> {
    let (out, bad, good) = (context.out, style::BAD, style::GOOD);
    match (view.place, &view.why, &view.fix) {
        (view::Place::Inside, _, _) | (_, None, _) | (_, _, None) => {
            out.line(format!("Sessions of the role {} run {good}inside{good:#} a sandbox.", view.role))?;
        }
        (view::Place::Outside | view::Place::Refused, Some(why), Some(fix)) => {
            let word = if view.place == view::Place::Outside { "run outside" } else { "do not start" };
            out.line(format!("Sessions of the role {} {bad}{word}{bad:#}: {why}.\n  fix: {fix}", view.role))?;
        }
    }
    let mut table = Table::new(["PATH", "ACCESS", "WHY"]);
    for mount in &view.mounts {
        let path = mount.path.display().to_string();
        table.row([path.into(), mount.access.as_str().into(), mount.why.as_str().into()]);
    }
    out.table(&table, "Everything that this user can reach is visible.")?;
    out.line(format!("network: {}", view.network))?;
    if view.place == view::Place::Inside {
        let all: Vec<String> = view.ci_registries.iter().chain(&view.ci_hosts).cloned().collect();
        let ci = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        out.line(format!("CI, gates and review programs reach: {ci}"))?;
        out.line(format!("system calls: {}", words::sandbox::syscalls(view.syscall_filter)))?;
        out.line(format!("Landlock: {}", words::sandbox::landlock(view.landlock)))?;
    }
    for limit in &view.limits {
        let value = limit.value.map_or_else(|| "no limit".to_owned(), |value| value.to_string());
        out.line(format!("{}: {value}; enforced by {}", limit.name, limit.enforced_by))?;
    }
    Ok(())
}
