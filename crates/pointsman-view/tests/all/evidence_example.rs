//! Examples of a receipt and a risk, for the views that have one.

use pointsman_core::config::{RiskClass, RiskReviewer};
use pointsman_core::ids::Sha;
use pointsman_core::review::{Step, Verified};
use pointsman_view::evidence;

/// A line of a receipt.
pub(super) fn receipt() -> evidence::Receipt {
    evidence::Receipt {
        step: Step::Ci,
        sha: Sha::new(&"a".repeat(40)),
        result: Verified::Passed,
        text: "CI passed".to_owned(),
    }
}

/// The risk of a pull request.
pub(super) fn risk() -> evidence::Risk {
    evidence::Risk {
        class: RiskClass::High,
        needs: RiskReviewer::Person,
        reasons: vec!["it changes dependencies (Cargo.lock)".to_owned()],
        sampled: false,
    }
}
