//! The receipt of a contribution: what was run on it, on which commit, and with what result.
//!
//! It is read off what the daemon itself recorded, never off what an agent says. Whatever nobody ran is unverified: a missing
//! line could be taken for a good one.

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::ids::Sha;
use crate::part::contribution::{Approvals, Ci, Contribution, Review, ReviewMode};
use crate::words;

/// The things that can be run on a contribution, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The set-up of the working tree.
    Setup,
    Ci,
    Review,
    /// The tests of the merge queue, on top of main.
    Gate,
}

impl Step {
    /// The name that people and scripts see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Ci => "ci",
            Self::Review => "review",
            Self::Gate => "gate",
        }
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verified {
    Passed,
    Failed,
    Running,
    /// Nobody ran it, or nobody knows its result.
    Unverified,
}

impl Verified {
    /// The word that people see. What is unverified cannot be overlooked.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::Unverified => "UNVERIFIED",
        }
    }
}

/// One line of a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptLine {
    pub step: Step,
    /// The commit that it ran on.
    pub sha: Option<Sha>,
    pub result: Verified,
    pub text: String,
}

/// The last test of the merge queue for the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateRun {
    /// The commit that was tested: the head on top of main.
    pub candidate: Option<Sha>,
    pub result: Verified,
}

/// The set-up of the trees that the work was done in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupRun {
    /// A session began after it.
    Passed,
    Failed,
    None,
}

/// The receipt of a contribution.
pub fn receipt(
    part: &Contribution,
    config: &Config,
    setup: SetupRun,
    gate: Option<&GateRun>,
) -> Vec<ReceiptLine> {
    let mut lines = Vec::new();
    if !config.tree.setup.is_empty() {
        lines.push(of_setup(setup));
    }
    lines.extend([of_ci(part, config), of_review(part, config), of_gate(config, gate)]);
    lines
}

fn of_setup(setup: SetupRun) -> ReceiptLine {
    let (result, text) = match setup {
        SetupRun::Passed => (Verified::Passed, words::receipt::SETUP_RAN),
        SetupRun::Failed => (Verified::Failed, words::receipt::SETUP_FAILED),
        SetupRun::None => (Verified::Unverified, words::receipt::NO_SETUP),
    };
    ReceiptLine { step: Step::Setup, sha: None, result, text: text.to_owned() }
}

fn of_ci(part: &Contribution, config: &Config) -> ReceiptLine {
    let (result, text) = match part.ci() {
        Ci::Passed => (Verified::Passed, words::receipt::CI_PASSED.to_owned()),
        Ci::Failed { infra: false, summary } => (Verified::Failed, words::receipt::quoted(summary)),
        Ci::Failed { infra: true, summary } => (Verified::Unverified, words::receipt::ci_infra(summary)),
        Ci::Pending { .. } => (Verified::Running, words::receipt::CI_RUNS.to_owned()),
        Ci::TimedOut => (Verified::Unverified, words::receipt::CI_TIMED_OUT.to_owned()),
        Ci::None if !config.ci.kind.tests_commits() => {
            (Verified::Unverified, words::receipt::NO_CI.to_owned())
        }
        Ci::None => (Verified::Unverified, words::receipt::CI_NOT_RUN.to_owned()),
    };
    // A commit is named only if something was run on it.
    let ran = !matches!(part.ci(), Ci::None);
    ReceiptLine { step: Step::Ci, sha: part.head().filter(|_| ran).cloned(), result, text }
}

fn of_review(part: &Contribution, config: &Config) -> ReceiptLine {
    let needed = part.approvals_needed(Approvals::new(config), ReviewMode::new(config));
    let nobody = part.judge(ReviewMode::new(config)) == ReviewMode::None && part.protected().is_empty();
    let (result, text) = match part.review() {
        Review::Approved { by } => (Verified::Passed, words::receipt::approved(by)),
        Review::ChangesRequested { by, .. } => (Verified::Failed, words::receipt::changes_requested(by)),
        Review::None if !part.approvals().is_empty() => {
            (Verified::Running, words::people::approved_so_far(part.approvals(), needed))
        }
        Review::None if nobody => (Verified::Unverified, words::receipt::NOBODY_REVIEWS.to_owned()),
        Review::None => (Verified::Unverified, words::receipt::NOT_REVIEWED.to_owned()),
    };
    let reviewed = result != Verified::Unverified;
    ReceiptLine { step: Step::Review, sha: part.head().filter(|_| reviewed).cloned(), result, text }
}

fn of_gate(config: &Config, gate: Option<&GateRun>) -> ReceiptLine {
    let has_gate = config.gate().is_some() || config.gate_is_checks();
    let line = |result, sha, text: &str| ReceiptLine { step: Step::Gate, sha, result, text: text.to_owned() };
    match gate {
        // Without a gate a branch lands untested: that it landed verifies nothing.
        _ if !has_gate => line(Verified::Unverified, None, words::receipt::NO_GATE),
        None => line(Verified::Unverified, None, words::receipt::GATE_NOT_RUN),
        Some(run) => {
            let text = match run.result {
                Verified::Passed => words::receipt::GATE_PASSED,
                Verified::Failed => words::receipt::GATE_FAILED,
                Verified::Running => words::receipt::GATE_RUNS,
                Verified::Unverified => words::receipt::GATE_NOT_RUN,
            };
            let ran = run.result != Verified::Unverified;
            line(run.result, run.candidate.clone().filter(|_| ran), text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::contribution::{CiVerdict, Fact, OwnerFacts, Policy, ReviewVerdict};
    use crate::time::Timestamp;

    fn sha(digit: char) -> Sha {
        Sha::new(&digit.to_string().repeat(40)).unwrap()
    }

    /// The receipt as `step:result@commit`, with the first digit of the commit.
    fn shown(part: &Contribution, keys: &str, setup: SetupRun, gate: Option<&GateRun>) -> String {
        let config = Config::parse(&format!("name = \"shop\"\n{keys}"), "pointsman.toml").unwrap();
        let show = |line: &ReceiptLine| {
            assert!(!line.text.is_empty());
            let at = line.sha.as_ref().map_or("-", |sha| &sha.as_str()[..1]);
            format!("{}:{}@{at}", line.step.as_str(), line.result.word())
        };
        receipt(part, &config, setup, gate).iter().map(show).collect::<Vec<_>>().join(" ")
    }

    const CI: &str = "[ci]\ncommand = [\"./ci.sh\"]\n";

    fn pushed(keys: &str, facts: &[Fact<'_>]) -> Contribution {
        let config = Config::parse(&format!("name = \"shop\"\n{keys}"), "pointsman.toml").unwrap();
        let policy = Policy::new(&config);
        let around = OwnerFacts { asked: None, policy: &policy, now: Timestamp(1) };
        let mut part = Contribution::new("pointsman/issue-3".to_owned());
        let head = sha('a');
        part.happened(&Fact::Pushed { head: Some(&head), protected: &[], secret: None, risk: None }, &around)
            .unwrap();
        for fact in facts {
            part.happened(fact, &around).unwrap();
        }
        part
    }

    #[test]
    fn what_nobody_ran_is_unverified() {
        let empty = Contribution::new("pointsman/issue-3".to_owned());
        let none = "ci:UNVERIFIED@- review:UNVERIFIED@- gate:UNVERIFIED@-";
        for keys in ["", CI, "[review]\nmode = \"none\""] {
            assert_eq!(shown(&empty, keys, SetupRun::None, None), none, "{keys}");
        }
        let setup = "[tree]\nsetup = [\"./setup.sh\"]\n";
        for (run, word) in
            [(SetupRun::None, "UNVERIFIED"), (SetupRun::Passed, "passed"), (SetupRun::Failed, "failed")]
        {
            assert_eq!(shown(&empty, setup, run, None), format!("setup:{word}@- {none}"));
        }
    }

    #[test]
    fn every_result_names_its_commit() {
        let head = sha('a');
        let ci = |verdict: &CiVerdict| {
            let keys = CI;
            let part = pushed(keys, &[Fact::ChecksFinished { sha: &head, run: 1, verdict }]);
            let shown = shown(&part, keys, SetupRun::None, None);
            shown.split(' ').next().unwrap_or_default().to_owned()
        };
        let log = String::new;
        assert_eq!(ci(&CiVerdict::Passed), "ci:passed@a");
        assert_eq!(ci(&CiVerdict::Failed { summary: "red".into(), log: log() }), "ci:failed@a");
        assert_eq!(ci(&CiVerdict::TimedOut { log: log() }), "ci:UNVERIFIED@a");
        let hosts = vec!["example.org:443".to_owned()];
        assert_eq!(ci(&CiVerdict::Unreached { hosts, programs: Vec::new(), log: log() }), "ci:UNVERIFIED@a");
        assert!(shown(&pushed(CI, &[]), CI, SetupRun::None, None).starts_with("ci:running@a"));

        let said = |verdict| {
            let review = Fact::Reviewed { sha: &head, verdict, by: "ann", by_agent: false, body: "" };
            shown(&pushed("", &[review]), "", SetupRun::None, None)
        };
        assert!(said(ReviewVerdict::Approve).contains("review:passed@a"));
        assert!(said(ReviewVerdict::RequestChanges).contains("review:failed@a"));
        assert!(said(ReviewVerdict::Discuss).contains("review:UNVERIFIED@-"));
        let two = "[review]\napprovals = 2\n";
        let verdict = ReviewVerdict::Approve;
        let review = Fact::Reviewed { sha: &head, verdict, by: "ann", by_agent: false, body: "" };
        assert!(shown(&pushed(two, &[review]), two, SetupRun::None, None).contains("review:running@a"));
    }

    #[test]
    fn the_gate_speaks_of_the_candidate_and_a_landing_without_one_verifies_nothing() {
        let part = pushed(CI, &[]);
        for (result, shown_as) in [
            (Verified::Passed, "gate:passed@c"),
            (Verified::Failed, "gate:failed@c"),
            (Verified::Running, "gate:running@c"),
            (Verified::Unverified, "gate:UNVERIFIED@-"),
        ] {
            let run = GateRun { candidate: Some(sha('c')), result };
            assert!(shown(&part, CI, SetupRun::None, Some(&run)).ends_with(shown_as), "{shown_as}");
            assert!(shown(&part, "", SetupRun::None, Some(&run)).ends_with("gate:UNVERIFIED@-"));
        }
    }
}
