//! The gate: one run of the project's tests on one candidate, on a thread of its own.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_core::ids::Sha;
use pointsman_core::queue::Record;
use pointsman_core::task::CiVerdict;

use super::super::checks::{self, Verdict};
use super::super::program::Program;
use super::{Line, Signal};

/// A gate at work.
pub(super) struct Running {
    /// The name of its program, by which it can be ended.
    name: String,
    /// Nobody wants to know any more.
    unwanted: bool,
}

/// What a gate said.
pub(in crate::daemon::jobs) struct Finished {
    tree: Sha,
    verdict: Option<CiVerdict>,
    took: Duration,
    log_path: Option<PathBuf>,
}

impl Line<'_> {
    /// Has this commit tested, unless it is being tested already.
    pub(super) fn test(&mut self, commit: Sha, tree: Sha) -> anyhow::Result<()> {
        let Some(gate) = self.gate.clone() else { return Ok(()) };
        // One that is being ended says so, and is started anew then.
        if self.running.contains_key(&tree) {
            return Ok(());
        }
        self.checked_out.remove(&commit);
        let run = self.records.get(&tree).map_or(0, |r| r.runs.green + r.runs.red + r.runs.infra) + 1;
        let name = format!("{}-gate-{}-{run}", self.served.config.name, tree.short());
        let (jobs, served) = (Arc::clone(self.jobs), Arc::clone(self.served));
        let (sender, of_tree, program_name) = (self.sender.clone(), tree.clone(), name.clone());
        std::thread::Builder::new().name("gate".to_owned()).spawn(move || {
            let begun = Instant::now();
            let program = Program {
                name: program_name,
                command: &gate,
                sha: &commit,
                env: vec![("PROJECT_NAME", served.config.name.to_string())],
                limit: served.config.timing.ci_timeout.into(),
            };
            let ran = program.run(&jobs, &served);
            let (verdict, log_path) = match &ran {
                Ok(ran) => (ran.verdict("gate"), Some(ran.log_path.clone())),
                Err(error) => {
                    let reason = format!("the gate could not be run: {error:#}");
                    (Some(CiVerdict::Infra { reason, log: String::new() }), None)
                }
            };
            let finished = Finished { tree: of_tree, verdict, took: begun.elapsed(), log_path };
            // Without a listener the daemon stops, and the answer is owed again.
            let _ = sender.send(Signal::Finished(Box::new(finished)));
            // Only now its checkout is removed.
            drop(ran);
        })?;
        self.running.insert(tree, Running { name, unwanted: false });
        Ok(())
    }

    /// Ends the gates that nobody needs any more, with everything they started.
    pub(super) fn end_tests(&mut self, wanted: &BTreeSet<Sha>) {
        for (tree, running) in &mut self.running {
            if !wanted.contains(tree) && !running.unwanted {
                running.unwanted = true;
                if let Some(killer) = self.jobs.lock().killers.get(&running.name) {
                    killer.kill();
                }
            }
        }
    }

    /// A gate's verdict is written down before anything follows from it.
    pub(super) fn finished(&mut self, finished: Finished) {
        let Finished { tree, verdict, took, log_path } = finished;
        self.running.remove(&tree);
        let (Some(verdict), Some(gate)) = (verdict, &self.gate) else { return };
        let record = Record::add(self.records.get(&tree), verdict);
        checks::remember(
            self.jobs,
            self.served,
            Verdict { tree: &tree, gate: checks::gate_name(gate), record: &record, log_path, took },
        );
        self.records.insert(tree, record);
    }
}
