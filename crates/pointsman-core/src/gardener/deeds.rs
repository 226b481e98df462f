//! The gardener's way from an answer to deeds on the forge.

use super::{Answer, ForgeChange, Memory, findings, plan, questions};
use crate::config::Config;
use crate::deed::{Act, Deeds, Tend};
use crate::forge::Issue;
use crate::ids::{Number, ProjectName, RoleKey};
use crate::labels::{BACKLOG, BLOCKED, UNDERSPECIFIED};
use crate::log;
use crate::role_memory::{Closing, Look, Obstacle, Planning};
use crate::run::RunId;
use crate::time::Timestamp;
use crate::value::Done;
use crate::words;

impl Planning for Memory {
    fn said_looked(lines: Vec<String>) -> log::Entry {
        log::Entry::GardenerLooked { lines }
    }

    fn said_settled(run: RunId, lines: Vec<String>) -> log::Entry {
        log::Entry::GardenerGroomed { run, lines }
    }

    fn asked(&self) -> Option<RunId> {
        self.asked.as_ref().map(|(run, _)| *run)
    }

    fn hindered(&mut self) -> &mut Option<Obstacle> {
        &mut self.hindered
    }

    fn look(&mut self, look: &Look, run: Option<RunId>, config: &Config, now: Timestamp) -> bool {
        let Look::Gardener { issues, ground, reconsider } = look else { return false };
        if *reconsider {
            self.reconsider();
        }
        self.ground.clone_from(ground);
        self.see(issues, now);
        self.asked = run.map(|run| (run, questions(&findings(issues, self, config, now), issues, self)));
        true
    }

    fn decide(
        &mut self,
        result: Option<&serde_json::Value>,
        issues: &[Issue],
        _: &[String],
        config: &Config,
        now: Timestamp,
    ) -> Result<(), String> {
        let answer = Answer::of_result(result).map_err(|why| why.to_string())?;
        let asked = self.asked.as_ref().map(|(_, asked)| asked.as_slice()).unwrap_or_default();
        self.plan = Some(plan(&answer, asked, issues, self, config, now));
        Ok(())
    }

    fn is_planned(&self) -> bool {
        self.plan.is_some()
    }

    fn act(&self, place: usize, run: RunId, project: &ProjectName) -> Option<Act> {
        let deed = self.plan.as_ref()?.deeds.get(place)?;
        let label = |label: &str| vec![label.to_owned()];
        let tend = |issue: Number| {
            let comment = words::gardener::comment(deed).map(|(_, text)| text);
            Tend { issue, marker: format!("gardener-{run}-{issue}"), comment, ..Tend::default() }
        };
        Some(match deed {
            ForgeChange::CloseDuplicate { issue, .. } => Act::Tend(Tend { close: true, ..tend(*issue) }),
            ForgeChange::SuggestCriteria { issue, .. } => Act::Tend(tend(*issue)),
            ForgeChange::MarkUnderspecified { issue, .. } => {
                Act::Tend(Tend { add: label(UNDERSPECIFIED), ..tend(*issue) })
            }
            ForgeChange::Unblock { issue, .. } => Act::Tend(Tend { remove: label(BLOCKED), ..tend(*issue) }),
            ForgeChange::Ask { issue, question } => {
                Act::Tell { issue: *issue, notice: words::gardener::question(project, *issue, question) }
            }
            ForgeChange::Bundle { dust } => {
                let (title, body) = words::gardener::bundle(dust);
                Act::File { marker: format!("bundle-{run}"), title, body, labels: label(BACKLOG) }
            }
        })
    }

    fn follow_ups(&self, place: usize, run: RunId, filed: Number) -> Vec<Act> {
        match self.plan.as_ref().and_then(|plan| plan.deeds.get(place)) {
            Some(ForgeChange::Bundle { dust }) => {
                let close = |issue| {
                    let comment = Some(words::gardener::bundled(filed));
                    let marker = format!("bundled-{run}");
                    Act::Tend(Tend { issue, marker, comment, close: true, ..Tend::default() })
                };
                dust.iter().map(|dust| close(dust.issue)).collect()
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn line(&self, place: usize, _: Option<Number>) -> String {
        let deed = self.plan.as_ref().and_then(|plan| plan.deeds.get(place));
        deed.map(words::gardener::done).unwrap_or_default()
    }

    fn deeds(&mut self) -> &mut Deeds {
        &mut self.deeds
    }

    fn done(&mut self) -> &mut Vec<Done> {
        &mut self.done
    }

    fn close(&mut self, run: RunId, key: &RoleKey) -> Closing {
        let of = || log::RoleIssue { role: key.role, run: Some(run) };
        let filed = self.done.iter().filter_map(|done| done.filed);
        let mut events: Vec<_> = filed.map(|issue| (issue, log::Entry::RoleFiled(of()))).collect();
        let closed = self.done.iter().flat_map(|done| &done.closed);
        events.extend(closed.map(|issue| (*issue, log::Entry::RoleClosed(of()))));
        let Some(plan) = self.settle() else { return Closing::default() };
        Closing {
            // To leave all as it is can be a good answer; to want only what is refused is none.
            useful: !plan.deeds.is_empty() || plan.refused.is_empty(),
            left: plan.refused.iter().map(|why| words::daemon::factory::refused(why)).collect(),
            events,
            notice: None,
        }
    }

    fn give_up(&mut self) {
        self.heard_nothing_useful();
    }

    fn put_back(&mut self) {
        self.asked = None;
    }
}
