//! The failed steps of a CI as one verdict.

use super::{Class, classify};
use crate::task::CiVerdict;
use crate::text::clean_line;

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedStep {
    pub name: String,
    pub exit: Option<i32>,
    pub ended: bool,
    pub log: String,
}

impl FailedStep {
    /// The class of this failure.
    pub fn class(&self) -> Class {
        match self.ended {
            true => Class::Infra { reason: "it was cancelled".to_owned() },
            false => classify(&self.name, self.exit, None, &self.log),
        }
    }
}

/// The verdict that failed steps amount to: green if there is none, the machinery's fault if all of them are.
pub fn of_steps(failed: &[FailedStep]) -> CiVerdict {
    if failed.is_empty() {
        return CiVerdict::Passed;
    }
    let told = |steps: &[&FailedStep]| {
        let one = |step: &&FailedStep| {
            let exit = step.exit.map_or(String::new(), |code| format!(", exit {code}"));
            format!("== {}{exit}\n{}\n", clean_line(&step.name, 100), step.log.trim_end())
        };
        steps.iter().map(one).collect::<Vec<_>>().join("\n")
    };
    let code: Vec<&FailedStep> = failed.iter().filter(|step| step.class() == Class::Code).collect();
    if code.is_empty() {
        let reason = match failed[0].class() {
            Class::Infra { reason } => format!("{}: {reason}", clean_line(&failed[0].name, 100)),
            Class::Code => String::new(),
        };
        return CiVerdict::Infra { reason, log: told(&failed.iter().collect::<Vec<_>>()) };
    }
    let names: Vec<String> = code.iter().map(|step| clean_line(&step.name, 100)).collect();
    CiVerdict::Failed { summary: format!("failed: {}", names.join(", ")), log: told(&code) }
}

#[cfg(test)]
mod tests {
    use super::{FailedStep, of_steps};
    use crate::task::CiVerdict;

    fn step(name: &str, exit: i32, log: &str) -> FailedStep {
        FailedStep { name: name.to_owned(), exit: Some(exit), ended: false, log: log.to_owned() }
    }

    #[test]
    fn only_the_codes_own_failures_are_given_to_the_agent() {
        assert_eq!(of_steps(&[]), CiVerdict::Passed);
        let (clone, test) = (step("ci/clone", 128, "no route"), step("ci/test", 1, "assertion failed"));
        let cancelled = FailedStep { ended: true, ..test.clone() };
        assert!(matches!(of_steps(&[clone.clone(), cancelled]), CiVerdict::Infra { .. }));
        match of_steps(&[clone, test]) {
            CiVerdict::Failed { summary, log } => {
                assert_eq!(summary, "failed: ci/test");
                assert_eq!(log, "== ci/test, exit 1\nassertion failed\n");
            }
            other => panic!("{other:?}"),
        }
    }
}
