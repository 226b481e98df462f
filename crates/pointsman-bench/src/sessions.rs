//! The benchmarks that need live sessions: one installation per number of sessions serves both.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::Context;
use pointsman::daemon::clock;
use pointsman_adapters::tmux::Server;
use pointsman_core::labels::BACKLOG;
use pointsman_core::task::{State, Task};
use pointsman_store::{ForgeDatabase, Store};

use crate::fleet::Fleet;
use crate::idle::{self, Watched};
use crate::polling::{self, Polling};
use crate::reaction::{self, Finding, Pace};
use crate::report::Report;
use crate::stage::{Stage, Workspace};
use crate::{hooks, proc, wait};

/// For all sessions to be up, however many: git makes a tree for each.
const UP_LIMIT: Duration = Duration::from_secs(180);
/// Our pace: enough claims for a 99th percentile, pauses that do not keep step with anything.
const OURS: Pace = Pace { claims: 300, pause: Duration::from_millis(20) };
/// The loop's pace: each answer takes about half its sleep, and pauses cover all of it.
const THEIRS: Pace = Pace { claims: 10, pause: Duration::from_secs(polling::SECONDS) };

/// For the daemon to have seen everything that is new.
const CALM: Duration = Duration::from_secs(5);
/// The loop does the same every second.
const LOOP_SPAN: Duration = Duration::from_secs(10);

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) reaction: bool,
    pub(crate) idle: bool,
    pub(crate) hooks: bool,
}

/// Measures with 1, 50 and `most` sessions.
pub(crate) fn measure(place: &Workspace, wanted: Wanted, most: u64) -> anyhow::Result<Vec<Report>> {
    let mut reports = Vec::new();
    let mut findings = Vec::new();
    let sizes: BTreeSet<u64> = [1, 50, most].into_iter().filter(|size| *size <= most).collect();
    for sessions in sizes {
        let is_most = sessions == most;
        if !(wanted.reaction || (wanted.idle || wanted.hooks) && is_most) {
            continue;
        }
        let mut open = Open::start(place, sessions)?;
        let measured = open.measure(wanted, is_most, &mut findings, &mut reports);
        measured.with_context(|| format!("the daemon's last words:\n{}", open.stage.log_tail()))?;
    }
    if wanted.reaction {
        reports.insert(0, reaction::report(&findings));
    }
    Ok(reports)
}

/// An installation with all its sessions up.
struct Open {
    stage: Stage,
    fleet: Fleet,
    /// Nothing pushed, no phase.
    working: Vec<u64>,
    /// Pushed, with an open pull request.
    reviewed: Vec<u64>,
}

impl Open {
    fn start(place: &Workspace, sessions: u64) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let mut stage = Stage::build(place, sessions)?;
        let mut forge_db = ForgeDatabase::open(&stage.paths().project(&stage.project()).forge_database())?;
        for number in 1..=sessions {
            let title = format!("Measure {number}");
            forge_db.create_issue(&title, "", &[BACKLOG.to_owned()], "bench", clock::now())?;
        }
        drop(forge_db);
        let fleet = Fleet::prepare(&stage.session_files(), sessions)?;
        stage.start_daemon()?;
        let (reviewed, working) = (1..=sessions).partition(|number| number % 2 == 0);
        let mut open = Self { stage, fleet, working, reviewed };
        open.bring_up(sessions)
            .with_context(|| format!("the daemon's last words:\n{}", open.stage.log_tail()))?;
        eprintln!("{sessions} sessions up after {:.1} s", begun.elapsed().as_secs_f64());
        Ok(open)
    }

    /// Waits until the daemon itself says that everybody is where they belong.
    fn bring_up(&mut self, sessions: u64) -> anyhow::Result<()> {
        self.fleet.hear(usize::try_from(sessions)?, UP_LIMIT)?;
        self.settled("all sessions to run", |task| task.session.stage == pointsman_core::task::Stage::Alive)?;
        for session in &self.reviewed {
            self.fleet.ring(*session, "push")?;
        }
        self.fleet.hear(self.reviewed.len(), UP_LIMIT)?;
        let reviewed: BTreeSet<u64> = self.reviewed.iter().copied().collect();
        self.settled("half of the sessions to await a review", |task| {
            (task.state == State::AwaitingReview) == reviewed.contains(&task.key.issue)
        })
    }

    fn settled(&self, what: &str, is_so: impl Fn(&Task) -> bool) -> anyhow::Result<()> {
        let store = Store::open_read_only(&self.stage.paths().database())?;
        wait::until(what, UP_LIMIT, || {
            wait::pause(Duration::from_millis(100))?;
            let tasks = store.open_tasks()?;
            let idle = store.next_effect_time(|_| false)?.is_none();
            Ok((idle && tasks.iter().all(&is_so)).then_some(()))
        })
    }

    fn measure(
        &mut self,
        wanted: Wanted,
        is_most: bool,
        findings: &mut Vec<Finding>,
        reports: &mut Vec<Report>,
    ) -> anyhow::Result<()> {
        let sessions = (self.working.len() + self.reviewed.len()) as u64;
        let mut costs = Vec::new();
        if wanted.idle && is_most {
            // A change on the forge makes the daemon look at everything there once; after that it is idle.
            self.stage.pointsman(&["forge", "issue", "comment", "1", "--body", "Begin"])?;
            wait::pause(CALM)?;
            costs = self.idle()?;
        }
        if wanted.reaction {
            self.react(is_most, findings)?;
        }
        if wanted.hooks && is_most {
            reports.push(hooks::tell(&self.stage, &self.stage.program(), sessions)?);
        }
        if !wanted.reaction && !wanted.idle {
            return Ok(());
        }
        // Not before, so that the loop takes nothing from what it is compared with.
        let mut polling = Polling::start(&self.stage, sessions)?;
        if wanted.idle && is_most {
            let watched = [Watched { name: "polling loop", pid: polling.pid(), promised: false }];
            costs.extend(idle::watch(&watched, LOOP_SPAN)?);
            reports.push(idle::report(sessions, &costs));
        }
        if wanted.reaction {
            let all = self.all();
            let mut found = |claim, sample| {
                findings.push(Finding { sessions, way: "polling", claim, sample, promised: false })
            };
            found("not verified", reaction::one_by_one(&mut polling.fleet, &all, THEIRS)?);
            if sessions > 1 {
                found("all at once", reaction::burst(&mut polling.fleet, &all)?);
            }
        }
        Ok(())
    }

    fn idle(&self) -> anyhow::Result<Vec<idle::Finding>> {
        let tmux = Server::new(self.stage.paths().tmux_socket(), self.stage.paths().tmux_config())?;
        let (_, pane) = tmux.list()?.into_iter().next().context("there is no session")?;
        let watched = [
            Watched { name: "daemon", pid: self.stage.daemon_pid()?, promised: true },
            Watched { name: "its tmux server", pid: proc::parent(pane.pid)?, promised: false },
        ];
        idle::watch(&watched, idle::SPAN)
    }

    fn react(&mut self, is_most: bool, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
        let all = self.all();
        let sessions = all.len() as u64;
        let mut found = |claim, sample, promised| {
            findings.push(Finding { sessions, way: "pointsman", claim, sample, promised });
        };
        let fleet = &mut self.fleet;
        found("nothing pushed", reaction::one_by_one(fleet, &self.working, OURS)?, is_most);
        if !self.reviewed.is_empty() {
            found("open pull request", reaction::one_by_one(fleet, &self.reviewed, OURS)?, is_most);
        }
        if sessions > 1 {
            found("all at once", reaction::burst(fleet, &all)?, false);
        }
        Ok(())
    }

    fn all(&self) -> Vec<u64> {
        self.working.iter().chain(&self.reviewed).copied().collect()
    }
}
