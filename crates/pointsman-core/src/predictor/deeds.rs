//! The predictor's way from figures to issues on the forge.

use std::collections::BTreeSet;

use super::{Figures, Memory, Prediction, Sample, predict};
use crate::deed::{Act, Ending};
use crate::labels::UNREVIEWED;
use crate::log;
use crate::role_memory::Orders;
use crate::words;
use crate::workflow::Refused;

/// The beginning of the names under which predictions are filed.
const PREFIX: &str = "prediction";

/// The name under which an issue of a prediction is found again.
pub fn issue_name(prediction: &Prediction) -> String {
    format!("{PREFIX}-{}", prediction.key())
}

impl Memory {
    /// Takes a day's figures in, and orders an issue for each prediction that nobody was told yet.
    pub(crate) fn foresee(
        &mut self,
        sample: &Sample,
        figures: &Figures,
        open: &BTreeSet<String>,
        files: bool,
        orders: &mut Orders<'_>,
    ) {
        let now = orders.now;
        self.measure(sample.clone(), now);
        if !files {
            return;
        }
        let predictions = predict(self, figures, orders.config);
        for prediction in self.news(predictions, open, orders.config, now) {
            let key = prediction.key();
            // It is said from now on: an issue that the forge does not take is not wanted again every day.
            self.said.insert(key.clone(), now);
            let (title, body) = words::predictor::issue(&prediction);
            self.filing.insert(key.clone(), title.clone());
            let (marker, labels) = (issue_name(&prediction), vec![UNREVIEWED.to_owned()]);
            orders.deed(key, Act::File { marker, title, body, labels });
        }
    }

    /// An issue is filed, or never will be.
    pub(crate) fn deed_ended(
        &mut self,
        name: &str,
        ending: &Ending,
        orders: &mut Orders<'_>,
    ) -> Result<(), Refused> {
        let stale = || Refused::Stale(words::reason::deed_is_over(name));
        let title = self.filing.remove(name).ok_or_else(stale)?;
        match ending {
            Ending::Done { filed: Some(issue) } => {
                orders.log(log::Entry::PredictorFiled { lines: vec![format!("#{issue} {title}")] });
                let of = log::RoleIssue { role: orders.key.role, run: None };
                orders.log_about(*issue, log::Entry::RoleFiled(of));
            }
            Ending::Done { filed: None } | Ending::Gone => {}
            Ending::Refused { error } => {
                let lines = vec![words::daemon::factory::deed_refused(&title, error)];
                orders.log(log::Entry::PredictorFiled { lines });
                orders.tell_refused(&title, error);
            }
        }
        Ok(())
    }
}
