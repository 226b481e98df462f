//! GitHub's own ways of merging: the asynchronous merge call, its merge queue, auto-merge and stacks, and the rules that keep
//! somebody from pushing.
//!
//! The call answers with the number of an order, which is asked for until it is decided. An order that ends in the
//! merge queue is over for the call; whether the pull request is still in the queue is read from the events.

use std::collections::BTreeSet;

use pointsman_core::config::MergeStyle;
use pointsman_core::forge::PullRequest;
use pointsman_core::ids::{Number, Sha};
use pointsman_core::text::clean_line;
use serde_json::json;

use super::Github;
use crate::forge::hosted::errors::told;
use crate::forge::hosted::wire::{WirePull, wire};
use crate::forge::{Error, ForgeMerge, MergeTies};
use crate::http::Method;

const MERGE: &str = "merge a pull request";
const RULES: &str = "read the rules of a branch";
/// How much of the server's words is repeated.
const WORDS: usize = 400;
/// Rules that let nobody push who cannot get past them.
const FORBIDDING: [&str; 5] =
    ["update", "pull_request", "required_status_checks", "merge_queue", "required_deployments"];

wire! { Order { status: String, details: OrderDetails, } }
wire! { OrderDetails { message: String, uuid: String, sha: String, } }
wire! { Happened { event: String, } }
wire! { Rule { r#type: String, ruleset_id: u64, } }
wire! { Ruleset { name: String, current_user_can_bypass: String, } }

impl Github {
    /// Asks for the merge, or for what became of the order that was given for this head.
    pub(super) fn merge_by_order(
        &self,
        pr: Number,
        head: &Sha,
        style: MergeStyle,
    ) -> Result<ForgeMerge, Error> {
        let Some(wire) = self.hosted.read_pull(pr)? else {
            return Err(Error::NotFound { what: format!("pull request #{pr}") });
        };
        if wire.is_merged() {
            return merged(&wire);
        }
        if wire.state != "open" {
            return Ok(ForgeMerge::Refused { reason: "the pull request is closed".to_owned() });
        }
        let known = self.cache().merging.get(&pr).filter(|(of, _)| of == head).map(|(_, uuid)| uuid.clone());
        let number = pr.to_string();
        let order: Order = match known {
            Some(uuid) => {
                let path = ["pulls", &number, "merge-async", &uuid];
                self.hosted.dev.read(&self.hosted.get(MERGE, &path)).map_err(told)?
            }
            None => {
                let method = match style {
                    MergeStyle::Rebase => "rebase",
                    MergeStyle::Merge => "merge",
                    MergeStyle::Squash => "squash",
                };
                let body = json!({ "sha": head, "merge_method": method, "merge_action": "default" });
                let order =
                    self.hosted.request(MERGE, Method::Put, &["pulls", &number, "merge-async"]).body(&body);
                match self.hosted.dev.read(&order) {
                    // Somebody has asked for it already.
                    Err(error) if error.status() == Some(409) => {
                        return Ok(ForgeMerge::Waiting { words: "a merge is under way".to_owned() });
                    }
                    Err(error) if matches!(error.status(), Some(400 | 422)) => {
                        return Ok(ForgeMerge::Refused { reason: clean_line(error.words(), WORDS) });
                    }
                    answer => answer.map_err(told)?,
                }
            }
        };
        let words = clean_line(&order.details.message, WORDS);
        match order.status.as_str() {
            "merged" => match Sha::new(&order.details.sha) {
                Some(sha) => Ok(ForgeMerge::Merged { sha }),
                None => Ok(ForgeMerge::Waiting { words }),
            },
            "pending" => {
                if !order.details.uuid.is_empty() {
                    self.cache().merging.insert(pr, (head.clone(), order.details.uuid));
                }
                Ok(ForgeMerge::Waiting { words })
            }
            "enqueued" => self.in_the_queue(pr),
            // What we do not know is no merge.
            _ => {
                self.cache().merging.remove(&pr);
                Ok(ForgeMerge::Refused { reason: words })
            }
        }
    }

    /// Whether it is still in GitHub's own merge queue: the last thing that happened to it there tells.
    fn in_the_queue(&self, pr: Number) -> Result<ForgeMerge, Error> {
        let request = self.hosted.get(MERGE, &["issues", &pr.to_string(), "events"]);
        let happened: Vec<Happened> = self.hosted.list(&request)?;
        let of_queue = |one: &&Happened| {
            matches!(one.event.as_str(), "added_to_merge_queue" | "removed_from_merge_queue")
        };
        match happened.iter().rev().find(of_queue).map(|one| one.event.as_str()) {
            Some("removed_from_merge_queue") => {
                self.cache().merging.remove(&pr);
                let reason = "GitHub's merge queue removed it; the pull request says why".to_owned();
                Ok(ForgeMerge::Refused { reason })
            }
            Some(_) | None => {
                Ok(ForgeMerge::Waiting { words: "it waits in GitHub's merge queue".to_owned() })
            }
        }
    }

    pub(super) fn read_ties(&self, pr: Number) -> Result<MergeTies, Error> {
        let wire = self.hosted.read_pull(pr)?.unwrap_or_default();
        Ok(MergeTies { auto_merge: wire.auto_merge.is_some(), stack: wire.stack.is_some() })
    }

    /// Open pull requests of this very repository with the label, or with auto-merge switched on. A draft asks for nothing.
    pub(super) fn read_wishes(&self, label: &str) -> Result<Vec<PullRequest>, Error> {
        let question = self.hosted.get("list pull requests", &["pulls"]).query("state", "open");
        let listed: Vec<WirePull> = self.hosted.list(&question)?;
        let is_wished = |pr: &WirePull| {
            let labelled = pr.labels.iter().any(|known| known.name == label);
            self.hosted.is_ours(pr) && !pr.draft && (labelled || pr.auto_merge.is_some())
        };
        let mut wished: Vec<PullRequest> =
            listed.into_iter().filter(is_wished).map(WirePull::plain).collect();
        wished.sort_by_key(|pr| pr.number);
        wished.dedup_by_key(|pr| pr.number);
        Ok(wished)
    }

    /// The ruleset that keeps us from pushing to a branch. Classic branch protection is shown to administrators alone.
    pub(super) fn read_forbidding(&self, branch: &str, me: &str) -> Result<Option<String>, Error> {
        let found: Option<Vec<Rule>> =
            self.hosted.dev.find(&self.hosted.get(RULES, &["rules", "branches", branch])).map_err(told)?;
        let rules = found.unwrap_or_default();
        let sets: BTreeSet<u64> = rules
            .iter()
            .filter(|rule| FORBIDDING.contains(&rule.r#type.as_str()))
            .map(|rule| rule.ruleset_id)
            .collect();
        for id in sets {
            let request = self.hosted.get(RULES, &["rulesets", &id.to_string()]);
            let set: Ruleset = self.hosted.dev.find(&request).map_err(told)?.unwrap_or_default();
            if !matches!(set.current_user_can_bypass.as_str(), "always" | "exempt") {
                return Ok(Some(format!(
                    "the ruleset `{}` keeps `{me}` from pushing to `{branch}`: put the account on its bypass list, or set \
                     merge.engine = \"forge\"",
                    clean_line(&set.name, 100)
                )));
            }
        }
        Ok(None)
    }
}

fn merged(wire: &WirePull) -> Result<ForgeMerge, Error> {
    match Sha::new(&wire.merge_commit_sha) {
        Some(sha) => Ok(ForgeMerge::Merged { sha }),
        None => {
            Err(Error::Unavailable { reason: "GitHub does not say as what it was merged yet".to_owned() })
        }
    }
}
