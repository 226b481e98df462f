//! What a seed decides before anything happens: the project's rules and its issues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pointsman_core::config::Config;
use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::labels::BACKLOG;
use pointsman_core::task::{Policy, ReviewMode};

use super::chance::Chance;
use super::reality::forge::Issue;

/// Who tells people, and when they sleep.
const NOTIFY: &str = "[notify]\nto = [\"log\", \"desktop\", \"webhook\"]\nquiet_hours = \"22:00-07:00\"\n\
    [webhook]\nurl = \"http://127.0.0.1:1\"\n";

/// The beginning of a run.
#[derive(Clone, Debug)]
pub(super) struct Story {
    pub(super) config: Arc<Config>,
    pub(super) policy: Policy,
    /// A kind of effect that is never possible here: a right is missing, a disk is read-only.
    pub(super) hopeless: Option<&'static str>,
    /// Trouble comes this many times as seldom: with too much of it nothing gets far enough to see
    /// what trouble does there.
    pub(super) smoothness: usize,
    dependencies: BTreeMap<Number, BTreeSet<Number>>,
}

impl Story {
    pub(super) fn tell(chance: &mut Chance) -> Self {
        let review = *chance.pick(&["human", "human", "human", "none"]);
        let ci = if chance.one_in(8) { "[ci]\nkind = \"none\"\n" } else { "[ci]\ncommand = [\"ci\"]\n" };
        // Agents of stories tell nothing of what they spend, and days pass.
        let budget = "[budget]\nunreported_time_per_issue = \"5000h\"\n";
        let looks = chance.one_in(2);
        let handled = |risk: &str| {
            format!("[vault.types.{risk}]\ncommand = [\"/bin/true\"]\nrisk = \"{risk}\"\nreversible = true\n")
        };
        let vault = ["low", "medium", "high"].map(handled).concat();
        let vault = format!("[roles.vault]\nenabled = {looks}\n{vault}");
        let [concurrency, fixes, rounds, restarts] = [3, 4, 3, 5].map(|most| 1 + chance.below(most));
        // Some want a plan first.
        let plan = fixes == rounds;
        let text = format!(
            "name = \"sim\"\n{ci}{budget}{NOTIFY}[review]\nmode = \"{review}\"\n[dev]\nconcurrency = {concurrency}\nplan = {plan}\n\
             [tree]\nports = 1\n[limits]\nci_fixes = {fixes}\nreview_rounds = {rounds}\nrestarts = {restarts}\n{vault}",
        );
        let config = Config::parse(&text, "story").expect("a valid configuration");
        let policy = Policy::new(&config);
        let kinds = ["comment", "notify", "set_labels", "record_ci_result", "clean_up"];
        let hopeless = chance.one_in(6).then(|| *chance.pick(&kinds));
        let smoothness = *chance.pick(&[1, 2, 4, 8]);
        Self { config: Arc::new(config), policy, hopeless, smoothness, dependencies: dependencies(chance) }
    }

    pub(super) fn project(&self) -> ProjectName {
        self.config.name.clone()
    }

    pub(super) fn concurrency(&self) -> usize {
        usize::try_from(self.config.dev.concurrency).expect("a small number")
    }

    pub(super) fn is_reviewed(&self) -> bool {
        self.policy.review != ReviewMode::None
    }

    pub(super) fn issues(&self) -> BTreeMap<Number, Issue> {
        let issue = |depends_on: &BTreeSet<Number>| Issue {
            open: true,
            labels: BTreeSet::from([BACKLOG.to_owned()]),
            assignee: None,
            depends_on: depends_on.clone(),
            answers: Vec::new(),
        };
        self.dependencies.iter().map(|(number, depends_on)| (*number, issue(depends_on))).collect()
    }
}

/// Two to five issues, some after others, now and then in a circle.
fn dependencies(chance: &mut Chance) -> BTreeMap<Number, BTreeSet<Number>> {
    let count = 2 + chance.next() % 4;
    let mut all: BTreeMap<Number, BTreeSet<Number>> = BTreeMap::new();
    for number in 1..=count {
        let earlier = (1..number).filter(|_| chance.one_in(4)).collect();
        all.insert(number, earlier);
    }
    if chance.one_in(10) {
        all.entry(1).or_default().insert(count);
        all.entry(count).or_default().insert(1);
    }
    all
}
