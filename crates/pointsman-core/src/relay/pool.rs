//! Budgets as the relay keeps them: how much several sessions may use together until the daemon tells more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::usage::SessionUsage;
use crate::claude::usage::nano_usd;
use crate::session::budget::{Level, Limit, Spent, level};

/// The budgets that calls must fit into, by name, as the daemon told them last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pools(pub BTreeMap<String, Pool>);

/// One budget. Its ceiling is a sum over the usage of its sessions from their beginning: what the relay has counted and the daemon
/// not yet is in it by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// The budget in words.
    pub what: String,
    pub ceiling: Ceiling,
    /// The sessions whose usage the daemon had counted when it worked the ceiling out, also those that are over.
    pub sessions: Vec<String>,
}

/// The most that the sessions of a pool may have used together; nothing means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ceiling {
    pub tokens: Option<u64>,
    pub fresh_tokens: Option<u64>,
    pub micro_usd: Option<u64>,
}

impl Ceiling {
    /// The rest of a limit after `spent`, on top of what its sessions have used so far. None if the limit is about other
    /// things than calls of the model.
    pub fn of(limit: Limit, spent: Spent, used: Spent) -> Option<Self> {
        let left = |limit: Option<u64>, spent: u64, used: u64| {
            limit.map(|limit| limit.saturating_sub(spent).saturating_add(used))
        };
        let ceiling = Self {
            tokens: left(limit.tokens, spent.tokens, used.tokens),
            fresh_tokens: left(limit.fresh_tokens, spent.fresh_tokens(), used.fresh_tokens()),
            micro_usd: left(limit.micro_usd, spent.micro_usd, used.micro_usd),
        };
        (ceiling != Self::default()).then_some(ceiling)
    }

    fn limit(self) -> Limit {
        let Self { tokens, fresh_tokens, micro_usd } = self;
        Limit { tokens, fresh_tokens, micro_usd, ..Limit::default() }
    }
}

impl Pools {
    /// Whether a call of a session fits into all of these pools. `usage` answers what a session has used so far, with what its
    /// calls under way have reserved; `others` are the sessions of a pool that the daemon does not know of yet. Answers the
    /// budget that is used up.
    pub fn admit<'p>(
        &'p self,
        names: &[String],
        usage: impl Fn(&str) -> Spent,
        others: impl Fn(&str) -> Vec<String>,
    ) -> Result<(), &'p str> {
        for (name, pool) in names.iter().filter_map(|name| Some((name, self.0.get(name)?))) {
            let mut sessions = pool.sessions.clone();
            sessions.extend(others(name));
            sessions.sort();
            sessions.dedup();
            let used = sessions.iter().fold(Spent::default(), |sum, session| sum.plus(usage(session)));
            if level(used, pool.ceiling.limit()) == Level::Hard {
                return Err(&pool.what);
            }
        }
        Ok(())
    }

    /// Whether any pool still counts on the usage of a session.
    pub fn names(&self, session: &str) -> bool {
        self.0.values().any(|pool| pool.sessions.iter().any(|one| one == session))
    }
}

/// The reservation for a call that begins: as much as the last one of its session used. The first one counts for as much as its
/// request is long, at the price of its model.
pub fn reservation(usage: &SessionUsage, request_bytes: u64, model: &str) -> Spent {
    const TOKEN_BYTES: u64 = 4;
    let calls: u64 = usage.models.values().map(|model| model.calls).sum();
    if calls == 0 {
        let tokens = request_bytes / TOKEN_BYTES;
        let nano_usd = nano_usd(model, &json!({ "input_tokens": tokens }));
        return Spent { tokens, micro_usd: nano_usd.div_ceil(1000), ..Spent::default() };
    }
    let spent = usage.spent();
    Spent { micro_usd: spent.micro_usd / calls, ..Spent::of_classes(usage.last) }
}
