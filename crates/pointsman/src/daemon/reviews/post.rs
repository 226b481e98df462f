//! Posts what came of a review. The formal review comes last: until it is there, everything before it is done again,
//! and each part finds out that it was.

use pointsman_core::ids::{Number, Sha};
use pointsman_core::labels::TECH_DEBT;
use pointsman_core::review::{Answer, follow_ups, outcome};
use pointsman_core::task::ReviewVerdict;
use pointsman_core::words;

use super::change::Examined;
use crate::daemon::crash::crash_point;
use crate::daemon::served::Served;

/// Files what is older than the change, takes back what was asked before if it is approved, and reviews.
pub(in crate::daemon) fn post(
    served: &Served,
    pr: Number,
    head: &Sha,
    answer: &Answer,
    examined: &Examined,
) -> anyhow::Result<()> {
    let mut filed = Vec::new();
    if !answer.followups.is_empty() {
        let marker = |place: usize| format!("follow-up:{pr}:{head}:{place}");
        let open = served.forge.open_issues()?;
        // Those of an earlier try are not in their own way.
        let of_others: Vec<_> = open
            .into_iter()
            .filter(|issue| !issue.body.contains(&format!("<!-- pointsman:follow-up:{pr}:{head}:")))
            .collect();
        let limit = served.config.limits.review_followups as usize;
        for (place, followup) in follow_ups(answer, &of_others, limit).into_iter().enumerate() {
            let title = words::review::follow_up_title(followup);
            let body = words::review::follow_up(followup, pr);
            filed.push(served.forge.file_issue_once(&marker(place), &title, &body, &[TECH_DEBT])?);
        }
        crash_point("review-follow-ups-filed");
    }
    let outcome = outcome(answer, &examined.facts, &served.config);
    if outcome.verdict == ReviewVerdict::Approve {
        served.forge.withdraw_change_requests(pr, head)?;
    }
    crash_point("review-before-verdict");
    let body = words::review::posted(answer, &outcome, &examined.facts, &filed, head);
    served.forge.review_once(pr, head, outcome.verdict, &body)?;
    crash_point("review-posted");
    Ok(())
}
