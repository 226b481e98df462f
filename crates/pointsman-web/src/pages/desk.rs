//! One question with the evidence for a decision.

use pointsman_core::part::question::{Act, Kind};
use pointsman_core::review::Verified;
use pointsman_core::review::unified::{self, DiffLine, FileDiff, FileKind};
use pointsman_core::task::{ReviewVerdict, State};
use pointsman_core::text::{clean_block, clean_line, tail_lines};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_view::evidence::{CiLog, Diff, Risk};
use pointsman_view::forge::{LineComment, PullRequest};
use pointsman_view::inbox::{Settled, SettlementKind};

use super::rows::{QuestionRow, about, label};
use super::{Link, Neighbours};
use crate::backend::Desk;
use crate::highlight::{self, Piece};

/// The most of a question or an issue that is shown.
const BODY_BYTES: usize = 32 << 10;
/// The most of a log that is shown: its end.
const LOG_LINES: usize = 200;
const LOG_BYTES: usize = 64 << 10;
/// The most of a comparison of two versions that is shown.
const PLAIN_BYTES: usize = 256 << 10;
/// Files beyond this many lines are closed at first.
const OPEN_LINES: u64 = 400;
/// The most refused hosts, artifacts and sessions that are listed.
const LISTED: usize = 20;

/// A question as the template draws it.
pub(super) struct DeskView {
    pub(super) id: u64,
    pub(super) row: QuestionRow,
    pub(super) heading: &'static str,
    pub(super) pr: Option<u64>,
    pub(super) sha: Option<String>,
    pub(super) ended: Option<String>,
    pub(super) evidence: Vec<Fact>,
    pub(super) asked_by: String,
    pub(super) body: String,
    pub(super) issue: Option<IssueView>,
    pub(super) lines: Vec<String>,
    pub(super) changes: Option<Changes>,
    pub(super) ci: Option<Named>,
    pub(super) reviews: Vec<ReviewView>,
    pub(super) last_words: Option<String>,
    pub(super) takes_text: bool,
    pub(super) text_label: &'static str,
    pub(super) promise: String,
    pub(super) acts: Vec<Button>,
    pub(super) token: String,
    pub(super) previous: Option<String>,
    pub(super) next: Option<String>,
}

pub(super) struct Fact {
    pub(super) label: &'static str,
    pub(super) tone: &'static str,
    pub(super) text: String,
}

pub(super) struct IssueView {
    pub(super) author: String,
    pub(super) comments: usize,
    pub(super) body: String,
}

pub(super) struct Named {
    pub(super) name: String,
    pub(super) text: String,
}

pub(super) struct ReviewView {
    pub(super) by: String,
    pub(super) state: String,
    pub(super) text: String,
}

pub(super) struct Button {
    pub(super) value: &'static str,
    pub(super) label: &'static str,
    pub(super) key: &'static str,
}

pub(super) struct Changes {
    pub(super) summary: String,
    pub(super) other: Option<Link>,
    /// Shown as it is: a comparison of two versions, or the reason why there is nothing.
    pub(super) plain: Option<String>,
    pub(super) files: Vec<FileView>,
    pub(super) can_comment: bool,
}

pub(super) struct FileView {
    pub(super) anchor: String,
    pub(super) path: String,
    pub(super) note: String,
    pub(super) added: u64,
    pub(super) removed: u64,
    pub(super) is_open: bool,
    pub(super) is_binary: bool,
    pub(super) hunks: Vec<HunkView>,
}

pub(super) struct HunkView {
    pub(super) header: String,
    pub(super) lines: Vec<LineView>,
}

pub(super) struct LineView {
    pub(super) class: &'static str,
    /// Said to people who do not see the colour.
    pub(super) word: &'static str,
    pub(super) old: Option<u64>,
    pub(super) new: Option<u64>,
    pub(super) pieces: Vec<Piece>,
    pub(super) comments: Vec<CommentView>,
}

pub(super) struct CommentView {
    pub(super) by: String,
    pub(super) state: &'static str,
    pub(super) text: String,
}

impl DeskView {
    pub(super) fn new(desk: &Desk, token: String, since: bool, around: Neighbours, now: Timestamp) -> Self {
        let asked = &desk.question;
        let id = asked.id.map_or(0, |id| id.0);
        let takes = |act| asked.kind.takes(act);
        let head = desk.pull.as_ref().and_then(|pull| pull.head_sha.as_ref());
        let changes = desk.diff.as_ref().map(|diff| match diff {
            Ok(diff) => {
                Changes::new(diff, desk.pull.as_ref(), since, desk.looked_before, takes(Act::Reject), id)
            }
            Err(why) => Changes::missing(why),
        });
        let is_review = asked.kind == Kind::Review;
        Self {
            id,
            row: QuestionRow::new(asked, now),
            heading: words::question::heading(asked.kind),
            pr: asked.pr,
            sha: head.map(|sha| sha.short().to_owned()),
            ended: asked.settled.as_ref().map(ending),
            evidence: evidence(desk),
            asked_by: match &asked.session {
                Some(session) => format!("Asked by {session}"),
                None => "The question".to_owned(),
            },
            // A review's question only says which commands show what is on this page.
            body: if is_review { String::new() } else { clean_block(&asked.body, BODY_BYTES) },
            issue: desk.issue.as_ref().map(|issue| IssueView {
                author: clean_line(&issue.author, 100),
                comments: issue.comments.len(),
                body: clean_block(&issue.body, BODY_BYTES),
            }),
            lines: known_lines(desk),
            changes,
            ci: desk.ci.as_ref().map(|ci| match ci {
                Ok(log) => Named { name: headline(log), text: end_of(&log.log) },
                Err(why) => Named { name: String::new(), text: clean_block(why, BODY_BYTES) },
            }),
            reviews: desk.pull.as_ref().map(reviews).unwrap_or_default(),
            last_words: desk.last_words.as_ref().map(|text| match text {
                Ok(text) => end_of(text),
                Err(why) => clean_block(why, BODY_BYTES),
            }),
            takes_text: takes(Act::Answer) || takes(Act::Reject),
            text_label: if is_review { "What should change" } else { "Your answer, or the reason for a no" },
            promise: match (is_review, head) {
                (true, Some(sha)) => words::web::promise_of_review(sha.short()),
                (true, None) | (false, _) => String::new(),
            },
            acts: buttons(desk),
            token,
            previous: around.previous,
            next: around.next,
        }
    }
}

fn buttons(desk: &Desk) -> Vec<Button> {
    let kind = desk.question.kind;
    let is_review = kind == Kind::Review;
    let mut buttons = Vec::new();
    let mut add = |value, label, key| buttons.push(Button { value, label, key });
    if kind.takes(Act::Approve) {
        add("approve", "Approve", "a");
    }
    if kind.takes(Act::Answer) {
        add("answer", "Send the answer", "q");
    }
    if kind.takes(Act::Reject) {
        add("reject", if is_review { "Request changes" } else { "Reject" }, "r");
    }
    let can_begin = desk.task.as_ref().is_some_and(|task| match task.state {
        State::Blocked | State::Escalated | State::Refused => true,
        State::Backlog
        | State::WaitingDependencies
        | State::Working
        | State::AwaitingCi
        | State::AwaitingReview
        | State::MergeQueue
        | State::Paused
        | State::Merged
        | State::Closed => false,
    });
    if can_begin {
        add("afresh", "Start afresh", "f");
    }
    if kind.takes(Act::Dismiss) {
        add("dismiss", "Dismiss", "x");
    }
    buttons
}

fn evidence(desk: &Desk) -> Vec<Fact> {
    let mut facts = Vec::new();
    for line in &desk.question.receipt {
        let tone = match line.result {
            Verified::Passed => "ok",
            Verified::Failed => "bad",
            Verified::Running => "run",
            Verified::Unverified => "off",
        };
        let name = match line.step.as_str() {
            "setup" => "Set-up",
            "ci" => "CI",
            "review" => "Review",
            _ => "Gate",
        };
        facts.push(Fact { label: name, tone, text: label(line.result.word()) });
    }
    if let Some(lines) = desk.question.lines {
        facts.push(Fact { label: "Size", tone: "", text: words::page::lines(lines) });
    }
    if let Some(cost) = &desk.cost {
        facts.push(Fact { label: "Cost", tone: "", text: cost.clone() });
    }
    if !desk.question.refused.is_empty() {
        let text = format!("{} refusals", desk.question.refused.len());
        facts.push(Fact { label: "Sandbox", tone: "you", text });
    }
    facts
}

/// Lines about sessions, the network, receipts and artifacts.
fn known_lines(desk: &Desk) -> Vec<String> {
    let asked = &desk.question;
    let mut lines = Vec::new();
    if let Some(task) = &desk.task {
        let reason =
            task.reason.as_deref().map(|why| format!(": {}", clean_line(why, 400))).unwrap_or_default();
        lines.push(format!("{} is {}{reason}", about(asked), label(&task.state.to_string()).to_lowercase()));
    }
    lines.extend(asked.outside.iter().take(LISTED).map(|session| words::web::worked_outside(session)));
    lines.extend(asked.refused.iter().take(LISTED).map(|line| clean_line(line, 400)));
    lines.extend(asked.risk.iter().flat_map(Risk::lines).map(|line| clean_line(&line, 400)));
    lines.extend(
        asked.receipt.iter().map(|line| format!("{}: {}", line.step.as_str(), clean_line(&line.text, 400))),
    );
    lines.extend(asked.artifacts.lines().iter().take(LISTED).map(|line| clean_line(line, 400)));
    lines
}

fn ending(settled: &Settled) -> String {
    let how = match settled.how {
        SettlementKind::Approved => "approved",
        SettlementKind::Rejected => "rejected",
        SettlementKind::Answered => "answered",
        SettlementKind::Dismissed => "dismissed",
        SettlementKind::Expired => "expired",
        SettlementKind::Withdrawn => "withdrawn",
    };
    let by = settled.by.as_ref().map(|by| format!(" by {}", clean_line(by, 100))).unwrap_or_default();
    format!("{how}{by}")
}

fn reviews(pull: &PullRequest) -> Vec<ReviewView> {
    let view = |review: &pointsman_view::forge::Review| ReviewView {
        by: clean_line(&review.author, 100),
        state: format!("{} {}", verdict(review.verdict), review.sha.short()),
        text: clean_block(&review.body, BODY_BYTES),
    };
    pull.reviews.iter().rev().map(view).collect()
}

fn verdict(verdict: ReviewVerdict) -> &'static str {
    match verdict {
        ReviewVerdict::Approve => "approved",
        ReviewVerdict::RequestChanges => "requested changes of",
        ReviewVerdict::Discuss => "commented on",
    }
}

fn headline(log: &CiLog) -> String {
    let run = log.run.map(|run| format!("run {run}")).unwrap_or_default();
    let sha = log.sha.as_ref().map(|sha| format!(" of {}", sha.short())).unwrap_or_default();
    let status =
        log.status.map(|status| format!(", {}", label(status.name()).to_lowercase())).unwrap_or_default();
    let took = log.seconds.map(|seconds| format!(", {seconds:.1} s")).unwrap_or_default();
    format!("{run}{sha}{status}{took}")
}

fn end_of(text: &str) -> String {
    let tail = tail_lines(text, LOG_LINES);
    let begin = tail.len().saturating_sub(LOG_BYTES);
    let begin = (begin..tail.len()).find(|at| tail.is_char_boundary(*at)).unwrap_or(tail.len());
    clean_block(&tail[begin..], LOG_BYTES)
}

impl Changes {
    fn new(
        diff: &Diff,
        pull: Option<&PullRequest>,
        since: bool,
        looked_before: bool,
        can_comment: bool,
        id: u64,
    ) -> Self {
        let text = diff.diff.as_deref().unwrap_or_default();
        let files = unified::parse(text);
        // Two versions that were compared are no diff.
        let is_plain = files.is_empty() && !text.trim().is_empty();
        let plain = is_plain.then(|| clean_block(text, PLAIN_BYTES));
        let (added, removed) = files.iter().fold((0, 0), |(a, r), file| (a + file.added, r + file.removed));
        let link = |href: String, name: &str| Link { href, name: name.to_owned(), is_current: false };
        let comments: Vec<CommentOnLine> = pull.map(comments).unwrap_or_default();
        let summary = match (since, &diff.since_sha) {
            (true, Some(sha)) if *sha == diff.head_sha => words::screen::nothing_since(sha),
            (true, sha) => words::screen::since(sha.as_ref()),
            (false, _) => match files.len() {
                1 => format!("1 file, +{added} −{removed}"),
                count => format!("{count} files, +{added} −{removed}"),
            },
        };
        Self {
            summary,
            other: match (since, looked_before) {
                (true, _) => Some(link(format!("/inbox/{id}"), "Show all changes")),
                (false, true) => {
                    Some(link(format!("/inbox/{id}?since=last"), "Show what changed since the last look"))
                }
                (false, false) => None,
            },
            plain,
            files: files.iter().enumerate().map(|(at, file)| FileView::new(file, at, &comments)).collect(),
            can_comment: can_comment && !since,
        }
    }

    fn missing(why: &str) -> Self {
        let summary = String::new();
        let plain = Some(clean_block(why, BODY_BYTES));
        Self { summary, other: None, plain, files: Vec::new(), can_comment: false }
    }
}

/// A comment on a line with its author.
struct CommentOnLine<'p> {
    pub(super) by: &'p str,
    pub(super) comment: &'p LineComment,
}

fn comments(pull: &PullRequest) -> Vec<CommentOnLine<'_>> {
    pull.reviews
        .iter()
        .flat_map(|review| review.lines.iter().map(|comment| CommentOnLine { by: &review.author, comment }))
        .collect()
}

impl FileView {
    fn new(file: &FileDiff, at: usize, comments: &[CommentOnLine<'_>]) -> Self {
        let mut notes = Vec::new();
        match file.kind {
            FileKind::Changed => {}
            FileKind::New => notes.push("new".to_owned()),
            FileKind::Deleted => notes.push("deleted".to_owned()),
            FileKind::Binary => notes.push("not text".to_owned()),
        }
        notes.extend(file.renamed_from.as_ref().map(|from| format!("was {from}")));
        if file.left_out > 0 {
            notes.push(words::web::lines_left_out(file.left_out));
        }
        let of_file: Vec<_> = comments.iter().filter(|comment| comment.comment.file == file.path).collect();
        let line = |line: &DiffLine| {
            let (class, word) = match (line.old, line.new) {
                (None, _) => ("a", "added:"),
                (_, None) => ("x", "removed:"),
                (Some(_), Some(_)) => ("", ""),
            };
            let here = of_file.iter().filter(|comment| Some(comment.comment.line) == line.new);
            LineView {
                class,
                word,
                old: line.old,
                new: line.new,
                pieces: highlight::line(&file.path, &line.text),
                comments: here
                    .map(|comment| CommentView {
                        by: clean_line(comment.by, 100),
                        state: comment.comment.handled.name(),
                        text: clean_block(&comment.comment.text, BODY_BYTES),
                    })
                    .collect(),
            }
        };
        Self {
            anchor: format!("f-{at}"),
            path: file.path.clone(),
            note: notes.join(", "),
            added: file.added,
            removed: file.removed,
            is_open: file.added + file.removed <= OPEN_LINES,
            is_binary: file.kind == FileKind::Binary,
            hunks: file
                .hunks
                .iter()
                .map(|hunk| HunkView {
                    header: hunk.header.clone(),
                    lines: hunk.lines.iter().map(line).collect(),
                })
                .collect(),
        }
    }
}
