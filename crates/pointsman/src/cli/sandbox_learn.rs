//! `sandbox learn`: one run of CI with an open network, to see which hosts it needs.

use std::fs;

use pointsman_adapters::git::checkout::{checkout_exact, remove_checkout};
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::git::{BranchName, Git};
use pointsman_adapters::proxy::recognise;
use pointsman_core::config::Worktree;
use pointsman_core::ids::Sha;
use pointsman_core::sandbox::Place;
use pointsman_core::sandbox::network::registries::Registry;
use pointsman_core::words;
use pointsman_view::evidence::CheckStatus;
use pointsman_view::sandbox::Learned;

use super::context::Context;
use super::failure::{Code, Failure};
use super::merge_queue::end_on_signal;
use super::{prompt, time};
use crate::daemon;
use crate::enclosure::{Checkout, note_packages};
use crate::paths::ProjectPaths;
use crate::project::Project;
use crate::trust;

/// The run, what it asked for, and what a person says to that.
pub(super) fn learn(context: &Context, yes: bool) -> Result<(), Failure> {
    context.people_only("learning hosts")?;
    learn_about(context, &context.project()?, yes)
}

/// Offers the run to a person at a terminal; says whether there was one. A run that fails keeps nobody from going on.
pub(super) fn offer(context: &Context, project: &Project) -> Result<bool, Failure> {
    let config = &project.config;
    let runs_here = config.ci.command.is_some() && config.ci.kind.runs_here() || config.gate().is_some();
    let place = Context::enclosure()?.place(&config.sandbox, Worktree::Private);
    if context.out.is_json() || !runs_here || place != Place::Inside {
        return Ok(false);
    }
    let answer = prompt::asked(context, words::sandbox::OFFER_TO_LEARN)?;
    if !answer.is_some_and(|answer| prompt::is_yes(&answer)) {
        return Ok(false);
    }
    if let Err(failure) = learn_about(context, project, false) {
        context.out.say(format!("note: {}", failure.message()));
    }
    Ok(true)
}

fn learn_about(context: &Context, project: &Project, yes: bool) -> Result<(), Failure> {
    let asked = trust::asked_for(&Project::load(&project.config_path)?.config, project.checkout());
    let accepted = match context.store()? {
        Some(store) => trust::accepted(&store, &project.config.name)?,
        None => None,
    };
    if accepted.is_none_or(|accepted| !accepted.differences(&asked).is_empty()) {
        let why =
            "settings of this project wait for your approval; until then it is not clear which CI to run";
        return Err(Failure::refused(why).hint(words::trust::register_hint(".")));
    }
    let mut learned = run(context, project)?;
    if context.out.is_json() {
        learned.allowed = yes && !learned.hosts.is_empty();
    } else {
        learned.allowed = ask(context, &learned, yes)?;
    }
    if learned.allowed {
        context.register_with(project, Some(asked), &learned.hosts)?;
    }
    if context.out.is_json() {
        return context.out.value(&learned);
    }
    if learned.allowed {
        context.out.say("CI and gates may reach them from now on (pointsman sandbox show).");
    }
    Ok(())
}

/// Shows the hosts, and asks.
fn ask(context: &Context, learned: &Learned, yes: bool) -> Result<bool, Failure> {
    let out = context.out;
    match (&learned.ci, &learned.log_path) {
        (CheckStatus::Passed, _) => out.say("CI is green."),
        (_, Some(path)) => out.say(format!(
            "CI failed, so it may need more hosts than it asked for. Its log is {}.",
            path.display()
        )),
        (_, None) => out.say("CI failed, so it may need more hosts than it asked for."),
    }
    if learned.hosts.is_empty() {
        out.say("It used only hosts that are already allowed.");
        return Ok(false);
    }
    for host in &learned.hosts {
        match Registry::parse(host) {
            Some(registry) => out.line(words::sandbox::registry(&registry))?,
            None => out.line(host)?,
        }
    }
    if yes {
        return Ok(true);
    }
    match prompt::asked(context, "May CI and gates of this project reach these hosts? [Y/n]")? {
        Some(answer) => Ok(prompt::is_yes(&answer)),
        None => {
            out.say(
                "Nothing was allowed, because there is no terminal to ask on. To allow them, run `pointsman sandbox \
                    learn --yes`.",
            );
            Ok(false)
        }
    }
}

fn run(context: &Context, project: &Project) -> Result<Learned, Failure> {
    let config = &project.config;
    let ci = config.ci.command.as_deref().filter(|_| config.ci.kind.runs_here());
    let Some(command) = ci.or_else(|| config.gate()) else {
        return Err(Failure::refused(
            "CI does not run on this machine (ci.kind), so there is nothing to learn",
        ));
    };
    let enclosure = Context::enclosure()?;
    if enclosure.place(&config.sandbox, Worktree::Private) != Place::Inside {
        return Err(
            Failure::refused("without a sandbox, CI can reach every host").hint("pointsman sandbox show")
        );
    }
    let paths = context.paths.project(&config.name);
    let (mirror, sha) = main_branch(context, project)?;
    // Beside branches that are tried: what a killed command leaves there is removed after a day.
    fs::create_dir_all(paths.trials())?;
    let dir = paths.trials().join(format!("{}-{}-learn", time::now().0, std::process::id()));
    checkout_exact(&mirror, &sha, &dir).map_err(anyhow::Error::from)?;
    let log_path = dir.with_extension("log");
    context.out.say(format!("Running {} on {} with an open network …", command.join(" "), sha.short()));
    note_packages(&mirror, &sha, &paths)?;
    let checkout = Checkout { dir: &dir, command, answer: None, learning: true, layers: None };
    let name = ProjectPaths::proxy_name_in(&dir);
    let ended = (|| {
        let run = daemon::run_in_checkout(&enclosure, config, &paths, &sha, &checkout)?;
        let job = run.env("PROJECT_NAME", config.name.as_str()).start_job(&log_path)?;
        end_on_signal(job.killer()).map_err(|failure| anyhow::anyhow!(failure.message().to_owned()))?;
        anyhow::Ok(job.wait(config.timing.ci_timeout.into())?)
    })();
    let hosts = enclosure.unlisted(&name);
    enclosure.close_network(&name);
    // A registry is asked for reading only; a host could be told anything.
    let hosts = recognise(&hosts, &enclosure.policy(&config.sandbox.ci_hosts, &[], &paths));
    if let Err(error) = remove_checkout(&dir) {
        context.out.say(format!("{}: {error}", dir.display()));
    }
    let log = daemon::tail(&fs::read(&log_path).unwrap_or_default());
    let Some(verdict) = daemon::verdict_of(ended?.end, "ci", log) else {
        let _ = fs::remove_file(&log_path);
        return Err(Failure::silent(Code::Interrupted));
    };
    let ci = CheckStatus::from(&verdict);
    let green = ci == CheckStatus::Passed;
    if green {
        let _ = fs::remove_file(&log_path);
    }
    Ok(Learned { ci, hosts, allowed: false, log_path: (!green).then_some(log_path) })
}

/// The mirror, and where the main branch is as far as it knows.
fn main_branch(context: &Context, project: &Project) -> Result<(Mirror, Sha), Failure> {
    let config = &project.config;
    let paths = context.paths.project(&config.name);
    let read = || -> anyhow::Result<(Mirror, Option<Sha>)> {
        let git = Git::open(context.paths.state())?;
        let remote = paths.forge_repository();
        let remote = remote.to_str().ok_or_else(|| anyhow::anyhow!("{} is not UTF-8", remote.display()))?;
        let mirror = Mirror::open_or_create(&git, &paths.mirror(), remote)?;
        let primary = BranchName::new(&config.primary_branch)
            .ok_or_else(|| anyhow::anyhow!(words::daemon::git::not_a_branch_name(&config.primary_branch)))?;
        if config.forge.kind.is_embedded() {
            mirror.fetch_branches(&[&primary])?;
        }
        let head = mirror.remote_head(&primary)?;
        Ok((mirror, head))
    };
    match read()? {
        (mirror, Some(head)) => Ok((mirror, head)),
        (_, None) => Err(Failure::not_found(words::daemon::git::no_branch(&config.primary_branch))
            .hint("the daemon fetches it when it starts; run `pointsman up`")),
    }
}
