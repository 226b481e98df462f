//! The planner's way from an answer to deeds on the forge.

use super::{Answer, ForgeChange, Memory, NewIssue, plan, question};
use crate::config::Config;
use crate::deed::{Act, Deeds, Tend};
use crate::forge::Issue;
use crate::ids::{Number, ProjectName, RoleKey};
use crate::labels::{ACTIONED, UNREVIEWED, WATCHED};
use crate::log;
use crate::role_memory::{Closing, Look, Obstacle, Planning};
use crate::run::RunId;
use crate::time::Timestamp;
use crate::value::Done;
use crate::words;

impl Planning for Memory {
    fn said_looked(lines: Vec<String>) -> log::Entry {
        log::Entry::PlannerLooked { lines }
    }

    fn said_settled(run: RunId, lines: Vec<String>) -> log::Entry {
        log::Entry::PlannerPlanned { run, lines }
    }

    fn asked(&self) -> Option<RunId> {
        self.asked.as_ref().map(|(run, _)| *run)
    }

    fn hindered(&mut self) -> &mut Option<Obstacle> {
        &mut self.hindered
    }

    fn look(&mut self, look: &Look, run: Option<RunId>, _: &Config, now: Timestamp) -> bool {
        let Look::Planner(facts) = look else { return false };
        self.see(&facts.issues, now);
        self.asked = run.and_then(|run| Some((run, question(facts, self, now)?)));
        true
    }

    fn decide(
        &mut self,
        result: Option<&serde_json::Value>,
        issues: &[Issue],
        formulas: &[String],
        config: &Config,
        _: Timestamp,
    ) -> Result<(), String> {
        let answer = Answer::of_result(result).map_err(|why| why.to_string())?;
        let asked = self.asked.as_ref().map(|(_, question)| question);
        let asked = asked.ok_or_else(|| words::daemon::factory::nobody_was_asked().to_owned())?;
        self.plan = Some(plan(&answer, asked, issues, formulas, config));
        Ok(())
    }

    fn is_planned(&self) -> bool {
        self.plan.is_some()
    }

    fn act(&self, place: usize, run: RunId, _: &ProjectName) -> Option<Act> {
        Some(match self.plan.as_ref()?.deeds.get(place)? {
            ForgeChange::Promote { prediction, issue, .. } => {
                file(format!("prediction-issue-{prediction}"), issue, Some(*prediction))
            }
            ForgeChange::File { issue } => file(format!("plan-{}", issue.key()), issue, None),
            ForgeChange::Watch { prediction, why } => {
                let comment = words::planner::watched(why);
                Act::Tend(triage(run, *prediction, comment, WATCHED, &[UNREVIEWED]))
            }
            ForgeChange::Dismiss { prediction, why } => {
                decided(run, *prediction, words::planner::dismissed(why))
            }
        })
    }

    fn follow_ups(&self, place: usize, run: RunId, filed: Number) -> Vec<Act> {
        match self.plan.as_ref().and_then(|plan| plan.deeds.get(place)) {
            Some(ForgeChange::Promote { prediction, why, .. }) => {
                vec![decided(run, *prediction, words::planner::promoted(filed, why))]
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn line(&self, place: usize, filed: Option<Number>) -> String {
        let deed = self.plan.as_ref().and_then(|plan| plan.deeds.get(place));
        deed.map(|deed| words::planner::done(deed, filed)).unwrap_or_default()
    }

    fn deeds(&mut self) -> &mut Deeds {
        &mut self.deeds
    }

    fn done(&mut self) -> &mut Vec<Done> {
        &mut self.done
    }

    fn close(&mut self, run: RunId, key: &RoleKey) -> Closing {
        let done = self.done.clone();
        let filed_by = || log::Entry::RoleFiled(log::RoleIssue { role: key.role, run: Some(run) });
        let events: Vec<_> = done.iter().filter_map(|done| Some((done.filed?, filed_by()))).collect();
        let filed = done.iter().filter(|done| done.filed.is_some());
        let filed: Vec<String> = filed.map(|done| done.line.clone()).collect();
        let Some(plan) = self.settle() else { return Closing::default() };
        let carried_out = plan.deeds.iter().zip(&done).filter(|(_, done)| !done.failed);
        let triaged = carried_out.filter_map(|(deed, _)| {
            let (issue, verdict) = (deed.prediction()?, deed.verdict()?.to_owned());
            Some((issue, log::Entry::PredictionTriaged { issue, verdict, run }))
        });
        let refused = plan.refused.iter().map(|why| words::daemon::factory::refused(why));
        let left: Vec<String> =
            refused.chain(plan.left.iter().map(|left| words::planner::left(*left))).collect();
        Closing {
            events: triaged.chain(events).collect(),
            // To file nothing can be a good answer; to judge nothing of what was asked is none.
            useful: !plan.deeds.is_empty() || left.is_empty(),
            left,
            notice: (!filed.is_empty()).then(|| words::planner::summary(&key.project, filed.len(), &filed)),
        }
    }

    fn give_up(&mut self) {
        self.heard_nothing_useful();
    }

    fn put_back(&mut self) {
        self.asked = None;
    }
}

fn file(marker: String, issue: &NewIssue, prediction: Option<Number>) -> Act {
    let (title, body) = words::planner::issue(issue, prediction);
    Act::File { marker, title, body, labels: vec![issue.label.clone()] }
}

/// Closes a prediction.
fn decided(run: RunId, prediction: Number, comment: String) -> Act {
    let triage = triage(run, prediction, comment, ACTIONED, &[UNREVIEWED, WATCHED]);
    Act::Tend(Tend { close: true, ..triage })
}

/// Comments on a prediction and labels it anew.
fn triage(run: RunId, prediction: Number, comment: String, label: &str, instead: &[&str]) -> Tend {
    Tend {
        issue: prediction,
        marker: format!("triage-{run}"),
        comment: Some(comment),
        add: vec![label.to_owned()],
        remove: instead.iter().map(|&label| label.to_owned()).collect(),
        close: false,
    }
}
