//! The daemon's part in the relay's work: it counts the usage that the relay has noted, parks all sessions of a credential that has to
//! wait, and tells the relay the budgets that calls must fit into.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use pointsman_adapters::proxy::{KeptUsage, Limited};
use pointsman_core::part::session;
use pointsman_core::relay::CredentialName;
use pointsman_core::relay::pool::{Ceiling, Pool, Pools};
use pointsman_core::relay::usage::SessionUsage;
use pointsman_core::session::budget::{Limit, Spent};
use pointsman_core::session::trouble::Kind;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;

use super::budget;
use super::effects::EffectPerformer;
use super::engine::{Engine, Input};
use super::inbound::{Inbox, ThreadReport};
use crate::enclosure::Enclosure;

/// All budgets are worked out anew this often: people grant more, and others spend as well.
const THOROUGH: Duration = Duration::from_secs(15);
/// For the loop to write a report down.
const WRITE_LIMIT: Duration = Duration::from_secs(60);

/// A report to the loop.
pub(crate) struct RelayReport {
    /// The sums of sessions whose usage has changed, or whose budgets are due.
    usages: Vec<SessionUsage>,
    /// Sessions whose credential has to wait, and until when.
    waiting: Vec<(String, CredentialName, Timestamp)>,
}

/// The budgets of one session, as its last usage left them.
pub(crate) struct SessionBudgets {
    pub(crate) session: String,
    pub(crate) budgets: Vec<NamedBudget>,
}

/// One of them.
pub(crate) struct NamedBudget {
    /// Unique among all projects.
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) limit: Limit,
    pub(crate) spent: Spent,
}

/// Counts the usage of sessions, parks those that have to wait, and answers the budgets.
pub(super) fn take(
    engine: &mut Engine,
    told: &RelayReport,
    now: Timestamp,
) -> Result<Vec<SessionBudgets>, pointsman_store::Error> {
    let mut inputs = Vec::new();
    for (session, credential, until) in &told.waiting {
        let Some((id, generation)) = WorkflowId::parse_session(session) else { continue };
        budget::note_wait(engine, id.project(), *credential, *until, now)?;
        let failed = session::Event::TurnFailed {
            error: Kind::RateLimit.name().to_owned(),
            details: words::relay::CREDENTIAL_WAITS.to_owned(),
            until: Some(*until),
        };
        let mut input = Input::of_session(id, generation, failed);
        input.dedup = Some(format!("waits-{}-{}-{session}", credential.as_str(), until.0));
        inputs.push(input);
    }
    engine.take(&inputs, now)?;
    let mut all = Vec::new();
    for usage in &told.usages {
        let Some((id, generation)) = WorkflowId::parse_session(&usage.session) else { continue };
        // A session that is about to start has no row yet; it is told again.
        let Some(row) = engine.store().session(&usage.session)? else { continue };
        budget::relayed(engine, &id, generation, &row, usage.spent())?;
        let budgets = budget::of_relayed(engine, &id, now)?;
        all.push(SessionBudgets { session: usage.session.clone(), budgets });
    }
    Ok(all)
}

/// Follows the relay.
pub(crate) struct RelayWatch {
    inbox: Inbox,
    world: Arc<EffectPerformer>,
    /// The usage of each session that the loop has counted.
    counted: BTreeMap<String, SessionUsage>,
    /// The names of the budgets of each session.
    names: BTreeMap<String, Vec<String>>,
    pools: Pools,
    /// The waits that the loop knows of, by session.
    parked: BTreeSet<(String, Timestamp)>,
    thorough_at: Option<Instant>,
}

impl RelayWatch {
    /// Nothing is known yet: everything is told once more, and counts once.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>) -> Self {
        Self {
            inbox,
            world,
            counted: BTreeMap::new(),
            names: BTreeMap::new(),
            pools: Pools::default(),
            parked: BTreeSet::new(),
            thorough_at: None,
        }
    }

    /// Looks at what the relay has noted since the last look.
    pub(crate) fn look(&mut self) {
        let Some(enclosure) = self.world.any_enclosure() else { return };
        let kept = enclosure.proxy().usages();
        let open = enclosure.proxy().model_sessions();
        if kept.is_empty() && open.is_empty() {
            return;
        }
        let is_due = self.thorough_at.is_none_or(|at| at.elapsed() >= THOROUGH);
        if is_due {
            self.thorough_at = Some(Instant::now());
        }
        let mut usages: Vec<SessionUsage> = Vec::new();
        for usage in kept.iter().map(|kept| &kept.usage) {
            if self.counted.get(&usage.session) != Some(usage) || is_due {
                usages.push(usage.clone());
            }
        }
        // A session that has made no call yet has budgets as well.
        for (_, access) in &open {
            let is_known = self.names.contains_key(&access.session);
            let is_kept = kept.iter().any(|kept| kept.usage.session == access.session);
            if !is_kept && (!is_known || is_due) {
                usages.push(SessionUsage::new(&access.session, access.role));
            }
        }
        let Limited(limited) = enclosure.proxy().limited();
        let waits = open.iter().filter_map(|(_, access)| {
            let until = *limited.get(&access.credential)?;
            let is_new =
                !self.parked.contains(&(access.session.clone(), until)) && until > super::clock::now();
            is_new.then(|| (access.session.clone(), access.credential, until))
        });
        let waiting: Vec<(String, CredentialName, Timestamp)> = waits.collect();
        if usages.is_empty() && waiting.is_empty() {
            return;
        }
        let (written, answer) = sync_channel(1);
        let told = RelayReport { usages: usages.clone(), waiting: waiting.clone() };
        self.inbox.report(ThreadReport::Relayed { told: Box::new(told), written });
        let Ok(budgets) = answer.recv_timeout(WRITE_LIMIT) else { return };
        self.parked.extend(waiting.into_iter().map(|(session, _, until)| (session, until)));
        self.parked.retain(|(session, _)| open.iter().any(|(_, access)| access.session == *session));
        self.tell(&enclosure, &kept, usages, budgets);
    }

    /// Tells the relay the budgets, and lets it forget the sessions that are over and counted.
    fn tell(
        &mut self,
        enclosure: &Enclosure,
        kept: &[KeptUsage],
        usages: Vec<SessionUsage>,
        budgets: Vec<SessionBudgets>,
    ) {
        let counted: BTreeSet<String> = budgets.iter().map(|one| one.session.clone()).collect();
        self.counted.extend(
            usages
                .into_iter()
                .filter(|usage| counted.contains(&usage.session))
                .map(|usage| (usage.session.clone(), usage)),
        );
        let over: Vec<&KeptUsage> =
            kept.iter().filter(|one| !one.is_open && counted.contains(&one.usage.session)).collect();
        let mut changed = BTreeMap::new();
        for SessionBudgets { session, budgets } in budgets {
            let names: Vec<String> = budgets.iter().map(|budget| budget.name.clone()).collect();
            self.names.insert(session, names);
            changed.extend(budgets.into_iter().map(|budget| (budget.name.clone(), budget)));
        }
        for one in &over {
            self.names.remove(&one.usage.session);
        }
        let before = self.pools.clone();
        for (name, budget) in changed {
            let members: Vec<String> = self
                .names
                .iter()
                .filter(|(_, names)| names.contains(&name))
                .map(|(session, _)| session.clone())
                .collect();
            let used = members.iter().filter_map(|session| self.counted.get(session));
            let used = used.fold(Spent::default(), |sum, usage| sum.plus(usage.spent()));
            match Ceiling::of(budget.limit, budget.spent, used) {
                Some(ceiling) => {
                    let pool = Pool { what: budget.what, ceiling, sessions: members };
                    self.pools.0.insert(name, pool);
                }
                None => drop(self.pools.0.remove(&name)),
            }
        }
        let names = &self.names;
        self.pools.0.retain(|name, _| names.values().any(|of_session| of_session.contains(name)));
        let proxy = enclosure.proxy();
        if self.pools != before
            && let Err(error) = proxy.write_pools(&self.pools)
        {
            self.pools = before;
            self.thorough_at = None;
            return tracing::warn!(%error, "the relay was not told the budgets");
        }
        for (sandbox, mut access) in proxy.model_sessions() {
            let names = self.names.get(&access.session).cloned().unwrap_or_default();
            if access.pools != names {
                access.pools = names;
                if let Err(error) = proxy.assign_pools(&sandbox, &access) {
                    tracing::warn!(%error, session = access.session, "the relay was not told the budgets");
                }
            }
        }
        for one in over {
            self.counted.remove(&one.usage.session);
            proxy.forget_usage(&one.sandbox);
        }
    }
}
