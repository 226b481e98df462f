//! GitHub's own ways of merging: the asynchronous merge call with its orders, a merge queue, auto-merge, and rulesets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::issues::text;
use super::pulls::mark_merged;
use super::{FakeForgejo, Shared, State};
use crate::http::Reply;
use crate::mutation::broken;

/// The number of the one ruleset.
const RULESET: u64 = 42;

/// What only GitHub keeps about merges.
#[derive(Default)]
pub(super) struct Merges {
    /// Orders by pull request: their number, the head they are for, and whether they ended in the merge queue.
    orders: BTreeMap<u64, Order>,
    /// What happened to pull requests, as issues' events.
    events: BTreeMap<u64, Vec<&'static str>>,
    auto_merge: BTreeSet<u64>,
    stacked: BTreeSet<u64>,
}

struct Order {
    uuid: String,
    head: String,
}

impl FakeForgejo {
    /// Switches auto-merge on, as a person does.
    pub fn auto_merge(&self, number: u64) {
        let mut state = self.state();
        state.merges.auto_merge.insert(number);
        state.touch(number);
    }

    /// Makes a pull request one of a stack.
    pub fn stack(&self, number: u64) {
        self.state().merges.stacked.insert(number);
    }

    /// Puts a label on an issue or a pull request, as a person does.
    pub fn label(&self, number: u64, name: &str) {
        let mut state = self.state();
        let id = state.label_id(name);
        state.issues.get_mut(&number).expect("there is one").labels.push(id);
        state.touch(number);
    }

    /// The server's merge queue is done with a pull request: it merges it, or takes it out.
    pub fn end_merge_queue(&self, number: u64, green: bool) {
        let mut state = self.state();
        match green {
            true => drop(merge(&self.shared, &mut state, number)),
            false => state.merges.events.entry(number).or_default().push("removed_from_merge_queue"),
        }
    }

    /// Whether a pull request was put into the server's own merge queue.
    pub fn in_merge_queue(&self, number: u64) -> bool {
        self.state().merges.events.get(&number).is_some_and(|all| all.last() == Some(&"added_to_merge_queue"))
    }
}

/// Puts one commit with the files of the head on top of the base, as a rebase of one commit does.
fn merge(shared: &Shared, state: &mut State, number: u64) -> String {
    let pull = &state.pulls[&number];
    let (head, base) = (pull.head_sha.clone(), pull.base.clone());
    let before = shared.branch(&base).expect("the base is there");
    let subject = shared.git(&["log", "-1", "--format=%s", &head]).unwrap_or_default();
    let tree = format!("{head}^{{tree}}");
    let made = shared.git(&["commit-tree", "-p", &before, "-m", &subject, &tree]).expect("git makes commits");
    shared.git(&["update-ref", &format!("refs/heads/{base}"), &made]).expect("git moves branches");
    mark_merged(state, number, made.clone());
    made
}

/// What a pull request shows of it.
pub(super) fn show(state: &State, number: u64, shown: &mut Value) {
    let by = json!({ "enabled_by": { "login": super::OWNER, "id": 1 }, "merge_method": "merge" });
    shown["auto_merge"] = if state.merges.auto_merge.contains(&number) { by } else { Value::Null };
    let stack = json!({ "base": { "ref": "main", "sha": "" }, "size": 2, "position": 2, "number": 1 });
    shown["stack"] = if state.merges.stacked.contains(&number) { stack } else { Value::Null };
    shown["draft"] = false.into();
}

fn result(status: u16, word: &str, details: Value) -> Reply {
    Reply::json(status, &json!({ "status": word, "details": details }))
}

/// The merge call: an order, which is asked for until it is decided.
pub(super) fn order(state: &mut State, number: u64, body: &Value) -> Reply {
    if let Some(sha) = &state.pulls[&number].merged_as {
        return result(200, "merged", json!({ "message": "Already merged", "sha": sha }));
    }
    if !state.issues[&number].open {
        return result(400, "failed", json!({ "message": "Pull request is closed" }));
    }
    let head = state.pulls[&number].head_sha.clone();
    let wanted = text(body, "sha");
    if !wanted.is_empty() && wanted != head && !broken("github-merge-sha") {
        return result(400, "failed", json!({ "message": "Head branch was modified" }));
    }
    let pending = |order: &Order| {
        json!({
            "message": "Merge is in progress", "uuid": order.uuid, "merge_method": "rebase", "merge_action": "default",
            "expected_head_sha": order.head,
        })
    };
    if let Some(known) = state.merges.orders.get(&number).filter(|known| known.head == head)
        && !broken("github-merge-once")
    {
        return result(409, "pending", pending(known));
    }
    let order = Order { uuid: format!("order-{}", state.number()), head };
    let details = pending(&order);
    state.merges.orders.insert(number, order);
    result(202, "pending", details)
}

/// What became of an order: into the merge queue where one is required, else on the base.
pub(super) fn ordered(shared: &Shared, state: &mut State, number: u64, uuid: &str) -> Reply {
    if state.merges.orders.get(&number).is_none_or(|order| order.uuid != uuid) {
        return Reply::json(404, &json!({ "message": "Not Found" }));
    }
    if let Some(sha) = &state.pulls[&number].merged_as {
        return result(200, "merged", json!({ "message": "Merged", "sha": sha }));
    }
    if state.rules.merge_queue {
        let events = state.merges.events.entry(number).or_default();
        if events.is_empty() {
            events.push("added_to_merge_queue");
        }
        return result(200, "enqueued", json!({ "message": "Added to the merge queue" }));
    }
    let sha = merge(shared, state, number);
    result(200, "merged", json!({ "message": "Merged", "sha": sha }))
}

/// Events of an issue.
pub(super) fn events(state: &State, number: u64) -> Vec<Value> {
    let happened = state.merges.events.get(&number).cloned().unwrap_or_default();
    happened.into_iter().enumerate().map(|(id, event)| json!({ "id": id, "event": event })).collect()
}

/// The rules of a branch.
pub(super) fn rules(state: &State, branch: &str) -> Reply {
    let active = branch == "main" && (state.rules.protected_main || state.rules.merge_queue);
    let word = if state.rules.merge_queue { "merge_queue" } else { "pull_request" };
    let rule = json!({ "type": word, "ruleset_source_type": "Repository", "ruleset_source": "ann/shop", "ruleset_id": RULESET });
    Reply::json(200, &if active { json!([rule]) } else { json!([]) })
}

/// One ruleset, as this account sees it.
pub(super) fn ruleset(state: &State, who: &str, id: &str) -> Reply {
    let is_admin = state.accounts.get(who).is_some_and(|account| account.admin);
    match id == RULESET.to_string() {
        true => Reply::json(
            200,
            &json!({
                "id": RULESET, "name": "protect main", "enforcement": "active",
                "current_user_can_bypass": if is_admin { "always" } else { "never" },
            }),
        ),
        false => Reply::json(404, &json!({ "message": "Not Found" })),
    }
}
