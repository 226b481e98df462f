//! Rounds of a review: what changed since a person last looked at a pull request, and what became of comments on lines.

use std::collections::BTreeMap;

use pointsman_adapters::projection;
use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::review::comments::{self, Handled};
use pointsman_core::time::Timestamp;
use pointsman_view::evidence::Diff;
use pointsman_view::forge::{LineComment, PullRequest};
use serde::{Deserialize, Serialize};

use super::context::{Context, inside_session};
use super::evidence::{DIFF_BYTES, Source};
use super::failure::Failure;
use super::time;

/// The file that remembers which commits a person looked at.
const FILE: &str = "pull-request-looks.json";
/// So many pull requests are remembered, the newest.
const LOOKS: usize = 1_000;
/// The lines around each change that are shown, and none where lines are only counted.
const CONTEXT: u32 = 3;

#[derive(Default, Serialize, Deserialize)]
struct Looks(BTreeMap<String, Look>);

#[derive(Serialize, Deserialize)]
struct Look {
    sha: Sha,
    at: Timestamp,
}

fn key(project: &ProjectName, number: Number) -> String {
    format!("{project}/{number}")
}

/// A file that cannot be read is no look.
fn read(context: &Context) -> Looks {
    let text = std::fs::read_to_string(context.paths.state().join(FILE)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The commit of a pull request that a person looked at last.
pub(super) fn last_look(context: &Context, project: &ProjectName, number: Number) -> Option<Sha> {
    read(context).0.remove(&key(project, number)).map(|look| look.sha)
}

/// Remembers that a person has seen this commit. Without it, the next look shows more than it must.
pub(super) fn remember(context: &Context, project: &ProjectName, number: Number, sha: &Sha) {
    if inside_session().is_some() {
        return;
    }
    let mut looks = read(context);
    looks.0.insert(key(project, number), Look { sha: sha.clone(), at: time::now() });
    while looks.0.len() > LOOKS {
        let oldest = looks.0.iter().min_by_key(|(_, look)| look.at).map(|(key, _)| key.clone());
        match oldest {
            Some(oldest) => drop(looks.0.remove(&oldest)),
            None => break,
        }
    }
    if let Ok(text) = serde_json::to_vec(&looks) {
        let _ = projection::write(context.paths.state(), &[], FILE, &text);
    }
}

/// The change of a pull request since a commit of it: a plain diff if the branch went on from there, and a comparison of the
/// two versions if it was rewritten. Everything if there is no such commit.
pub(super) fn read_since(context: &Context, number: Number, from: Option<&Sha>) -> Result<Diff, Failure> {
    let source = Source::of(context)?;
    let pull = source.pull(number)?;
    let repository = source.repository()?;
    let (base_sha, head_sha) = source.ends(&pull, &repository)?;
    let read = || -> anyhow::Result<(Option<Sha>, String)> {
        let Some(from) = from.filter(|from| repository.commit_exists(from).unwrap_or(false)) else {
            return Ok((None, repository.diff(&base_sha, &head_sha, DIFF_BYTES)?));
        };
        let text = match repository.is_ancestor(from, &head_sha)? {
            true => repository.diff_between(from, &head_sha, CONTEXT, DIFF_BYTES)?,
            false => {
                let old_base = repository.merge_base(&base_sha, from)?.unwrap_or_else(|| base_sha.clone());
                repository.range_diff((&old_base, from), (&base_sha, &head_sha), DIFF_BYTES)?
            }
        };
        Ok((Some(from.clone()), text))
    };
    let (since_sha, text) = read()?;
    Ok(Diff { number, base: pull.base, base_sha, head_sha, diff: Some(text), stat: None, since_sha })
}

/// Adds to each review its comments on lines, and what became of them.
pub(super) fn with_line_comments(context: &Context, mut pull: PullRequest) -> PullRequest {
    let repository = Source::of(context).and_then(|source| source.repository()).ok();
    for review in &mut pull.reviews {
        let found = comments::read_body(&review.body);
        if found.is_empty() {
            continue;
        }
        let moved = pull.head_sha.as_ref().filter(|head| **head != review.sha);
        let since =
            moved.and_then(|head| repository.as_ref()?.diff_between(&review.sha, head, 0, DIFF_BYTES).ok());
        let state = |comment: &comments::LineComment| match &since {
            Some(diff) => comments::handled(comment, diff),
            None => Handled::Open,
        };
        review.lines = found
            .iter()
            .map(|comment| LineComment {
                handled: state(comment),
                file: comment.file.clone(),
                line: comment.line,
                text: comment.text.clone(),
            })
            .collect();
    }
    pull
}
