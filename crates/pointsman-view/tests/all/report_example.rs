//! An example of the figures of a report.

use std::collections::BTreeMap;

use pointsman_core::config::RiskClass;
use pointsman_core::ids::ProjectName;
use pointsman_core::role::Role;
use pointsman_core::task::State;
use pointsman_view::report;

pub(super) fn figures() -> report::Report {
    let work = report::Work { sessions: 3, crashed: 1, landed: 1, usd: Some(1.5), tokens: Some(9) };
    let spread = report::Spread { p50: 60.0, p90: 90.0 };
    report::Report {
        issues_landed: 1,
        first_pass_rate: Some(1.0),
        attempts_per_landed: Some(1.0),
        lead_time: report::LeadTime {
            p50: Some(60.0),
            p90: Some(90.0),
            by_stage: BTreeMap::from([(State::Working, spread)]),
        },
        cost: report::Cost {
            total: Some(1.5),
            wasted: Some(0.0),
            per_issue: vec![report::IssueCost {
                project: ProjectName::new("shop").expect("a name"),
                issue: 3,
                landed: true,
                usd: Some(1.5),
                tokens: Some(9),
            }],
        },
        person_minutes: 7.0,
        acceptance_rate: None,
        reverts: 0,
        ci: report::Ci { runs: 1, red: 0, flaky: 0 },
        reviews: report::Reviews { asked: 1, found: 0, overruled: 0, reverted: 0 },
        by_agent: vec![report::AgentShare { agent: None, work }],
        by_role: vec![report::RoleShare { role: Role::Dev, work }],
        by_class: vec![report::ClassShare { class: RiskClass::Low, landed: 1, reverted: 0 }],
    }
}
