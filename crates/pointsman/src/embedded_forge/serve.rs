//! The daemon's calls to the embedded forge. Every call may be repeated.

use pointsman_adapters::forge::{BoardChange, Error, Forge};
use pointsman_core::forge::{
    BoardItem, BoardStatus, Check, CheckState, Comment, Issue, IssueState, PullRequest, StateFilter,
};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::labels::{IN_PROGRESS, has};
use pointsman_core::task::ReviewVerdict;
use pointsman_core::words;
use pointsman_store as store;

use super::{ACCOUNT, EmbeddedForge, REVIEW_ACCOUNT, database_error, git_error, limits};

impl Forge for EmbeddedForge {
    fn me(&self) -> &str {
        ACCOUNT
    }

    fn reviewer(&self) -> Option<&str> {
        Some(REVIEW_ACCOUNT)
    }

    fn remote(&self) -> String {
        self.remote.clone()
    }

    fn open_issues(&self) -> Result<Vec<Issue>, Error> {
        let issues = self.forge_db().issues(StateFilter::Open).map_err(database_error("list issues"))?;
        Ok(issues.into_iter().map(|issue| Issue { comments: Vec::new(), ..issue }).collect())
    }

    fn issue(&self, number: Number) -> Result<Option<Issue>, Error> {
        self.forge_db().issue(number).map_err(database_error("read an issue"))
    }

    fn file_issue_once(
        &self,
        marker: &str,
        title: &str,
        body: &str,
        labels: &[&str],
    ) -> Result<Number, Error> {
        let failed = database_error("file an issue");
        let ending = format!("\n\n{}", words::comment::marker(marker));
        // Held from looking to writing.
        let mut forge_db = self.forge_db();
        let open = forge_db.issues(StateFilter::Open).map_err(&failed)?;
        let ours = |issue: &&Issue| issue.author == ACCOUNT && issue.body.ends_with(&ending);
        if let Some(known) = open.iter().find(ours) {
            return Ok(known.number);
        }
        let body = limits::cut_body(body, ending.len()) + &ending;
        let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
        let title = limits::cut_title(title);
        forge_db.create_issue(&title, &body, &labels, ACCOUNT, self.now()).map_err(failed)
    }

    fn set_labels(&self, number: Number, add: &[String], remove: &[String]) -> Result<Vec<String>, Error> {
        self.forge_db().set_labels(number, add, remove).map_err(database_error("set labels"))
    }

    fn assign_me(&self, number: Number) -> Result<(), Error> {
        self.forge_db().assign(number, Some(ACCOUNT)).map_err(database_error("assign an issue"))
    }

    fn assign(&self, number: Number, who: Option<&str>) -> Result<(), Error> {
        let who = who.map(limits::person);
        self.forge_db().assign(number, who.as_deref()).map_err(database_error("assign an issue"))
    }

    fn comment_once(&self, number: Number, marker: &str, body: &str) -> Result<(), Error> {
        let failed = database_error("comment");
        let ending = format!("\n\n{}", words::comment::marker(marker));
        // Held from looking to writing.
        let mut forge_db = self.forge_db();
        let comments = forge_db.comments_after(number, 0).map_err(&failed)?;
        // Only the end counts: before it our comments quote what agents wrote, which may look like a marker.
        if comments.iter().any(|comment| comment.author == ACCOUNT && comment.body.ends_with(&ending)) {
            return Ok(());
        }
        let body = limits::cut_body(body, ending.len()) + &ending;
        forge_db.comment(number, ACCOUNT, &body, self.now()).map(drop).map_err(failed)
    }

    fn comments_after(&self, number: Number, after: u64) -> Result<Vec<Comment>, Error> {
        self.forge_db().comments_after(number, after).map_err(database_error("read comments"))
    }

    fn close_issue(&self, number: Number) -> Result<(), Error> {
        self.forge_db().close_issue(number, self.now()).map_err(database_error("close an issue"))
    }

    fn close_pull_request(&self, number: Number) -> Result<(), Error> {
        self.forge_db().close_pr(number).map_err(database_error("close a pull request"))
    }

    fn ensure_pull_request(&self, head: &str, base: &str, title: &str, body: &str) -> Result<Number, Error> {
        self.open_pull(head, base, (title, body), ACCOUNT)
    }

    fn pull_request(&self, number: Number) -> Result<Option<PullRequest>, Error> {
        let pr = self.forge_db().pr(number).map_err(database_error("read a pull request"))?;
        pr.map(|pr| self.with_facts(pr)).transpose()
    }

    fn pull_request_from(&self, head: &str, base: &str) -> Result<Option<PullRequest>, Error> {
        let newest = self.forge_db().pr_for(head, base).map_err(database_error("look for a pull request"))?;
        newest.map(|pr| self.with_facts(pr)).transpose()
    }

    fn open_pull_requests(&self) -> Result<Vec<PullRequest>, Error> {
        let rows = self.forge_db().prs(StateFilter::Open).map_err(database_error("list pull requests"))?;
        let looked_at = rows.into_iter().map(|pr| self.with_facts(pr)).collect::<Result<Vec<_>, _>>()?;
        let open = looked_at.into_iter().filter(|pr| pr.state == IssueState::Open);
        Ok(open.map(|pr| PullRequest { reviews: Vec::new(), ..pr }).collect())
    }

    fn withdraw_change_requests(&self, pr: Number, keep: &Sha) -> Result<(), Error> {
        let failed = database_error("take a review back");
        let mut forge_db = self.forge_db();
        for review in forge_db.reviews(pr).map_err(&failed)? {
            let asks = review.verdict == ReviewVerdict::RequestChanges && !review.dismissed;
            if review.author == REVIEW_ACCOUNT && review.sha != *keep && asks {
                forge_db.dismiss_review(review.id).map_err(&failed)?;
            }
        }
        Ok(())
    }

    fn review_once(&self, pr: Number, sha: &Sha, verdict: ReviewVerdict, body: &str) -> Result<(), Error> {
        let failed = database_error("review a pull request");
        // Held from looking to writing.
        let mut forge_db = self.forge_db();
        let reviews = forge_db.reviews(pr).map_err(&failed)?;
        if reviews.iter().any(|review| review.author == REVIEW_ACCOUNT && review.sha == *sha) {
            return Ok(());
        }
        let body = limits::cut_body(body, 0);
        forge_db.review(pr, REVIEW_ACCOUNT, verdict, &body, sha, self.now()).map(drop).map_err(failed)
    }

    fn record_merge(&self, pr: Number, sha: &Sha) -> Result<(), Error> {
        const OPERATION: &str = "record a merge";
        let Some(known) = self.pull_request(pr)? else {
            return Err(Error::NotFound { what: format!("pull request #{pr}") });
        };
        let base = self.repository.branch(&known.base).map_err(git_error(OPERATION))?;
        let landed = match &base {
            Some(base) => self.repository.is_on(sha, base).map_err(git_error(OPERATION))?,
            None => false,
        };
        if !landed {
            let reason = format!("{} is not on `{}`", sha.short(), known.base);
            return Err(Error::Refused { operation: OPERATION, reason });
        }
        self.forge_db().mark_merged(pr, sha).map_err(database_error(OPERATION))?;
        self.repository.forget_question(pr);
        Ok(())
    }

    fn branch_head(&self, branch: &str) -> Result<Option<Sha>, Error> {
        self.repository.branch(branch).map_err(git_error("read a branch"))
    }

    fn pull_request_of(&self, sha: &Sha, parents: &[Sha]) -> Result<Option<Number>, Error> {
        const OPERATION: &str = "find a pull request";
        let known = self.forge_db().prs(StateFilter::All).map_err(database_error(OPERATION))?;
        for pr in known.into_iter().rev() {
            // Work that was brought to the base by hand is found merged here.
            let pr = self.with_facts(pr)?;
            let Some(head) = pr.head_sha.filter(|_| pr.merged) else { continue };
            // A merge has it as a further parent; the first one only says on top of what.
            let merges = parents.iter().skip(1).any(|parent| *parent == head);
            let named = head == *sha || pr.merge_sha.as_ref() == Some(sha) || merges;
            if named || self.repository.is_on(sha, &head).map_err(git_error(OPERATION))? {
                return Ok(Some(pr.number));
            }
        }
        Ok(None)
    }

    fn issue_link(&self, number: Number) -> String {
        format!("pointsman forge issue show {number}")
    }

    fn pull_request_link(&self, number: Number) -> String {
        format!("pointsman forge pr show {number}")
    }

    fn checks(&self, sha: &Sha) -> Result<Vec<Check>, Error> {
        self.forge_db().checks(sha).map_err(database_error("read checks"))
    }

    fn show_check(&self, sha: &Sha, name: &str, state: CheckState) -> Result<(), Error> {
        self.forge_db().set_check(sha, name, state, self.now()).map_err(database_error("write a check"))
    }

    fn board(&self) -> Result<Vec<BoardItem>, Error> {
        self.open_issues()?.into_iter().map(|issue| self.on_board(issue)).collect()
    }

    fn board_item(&self, number: Number) -> Result<BoardItem, Error> {
        match self.issue(number)? {
            Some(issue) => self.on_board(issue),
            None => Err(Error::NotFound { what: format!("issue #{number}") }),
        }
    }

    fn set_board(&self, number: Number, change: &BoardChange<'_>) -> Result<(), Error> {
        let before = self.board_item(number)?;
        let status = change.status.unwrap_or(before.status);
        let agent = change.agent.map(limits::agent);
        let agent = agent.as_deref().unwrap_or(&before.agent);
        self.forge_db().set_board_row(number, status, agent).map_err(database_error("change the board"))
    }
}

impl EmbeddedForge {
    /// The open pull request between two branches: found, or opened in this name.
    pub(super) fn open_pull(
        &self,
        head: &str,
        base: &str,
        (title, body): (&str, &str),
        author: &str,
    ) -> Result<Number, Error> {
        const OPERATION: &str = "open a pull request";
        let failed = database_error(OPERATION);
        let newest = self.forge_db().pr_for(head, base).map_err(&failed)?;
        if let Some(pr) = newest.filter(|pr| pr.state == IssueState::Open) {
            return Ok(pr.number);
        }
        let head_sha = self.work_of(head, base)?;
        let (title, body) = (limits::cut_title(title), limits::cut_body(body, 0));
        let created = self.forge_db().create_pr(head, base, &title, &body, author, self.now());
        match created {
            Ok(number) => {
                let remembered = self.repository.remember(number, &head_sha, None);
                remembered.map_err(git_error(OPERATION)).map(|()| number)
            }
            Err(store::Error::Exists(number)) => Ok(number),
            Err(error) => Err(failed(error)),
        }
    }

    /// An issue that nobody put on the board stands where its state and labels put it; a closed one is done.
    fn on_board(&self, issue: Issue) -> Result<BoardItem, Error> {
        let row = self.forge_db().board_row(issue.number).map_err(database_error("read the board"))?;
        let (told, agent) = match row {
            Some((status, agent)) => (Some(status), agent),
            None => (None, String::new()),
        };
        let status = match (issue.state, told) {
            (IssueState::Closed, _) => BoardStatus::Done,
            (IssueState::Open, Some(status)) => status,
            (IssueState::Open, None) if has(&issue.labels, IN_PROGRESS) => BoardStatus::InProgress,
            (IssueState::Open, None) => BoardStatus::Backlog,
        };
        Ok(BoardItem {
            item_id: format!("item-{}", issue.number),
            number: issue.number,
            title: issue.title,
            status,
            agent,
        })
    }

    /// Where `head` stands, if it has anything that `base` has not: else there is nothing to ask to be pulled.
    fn work_of(&self, head: &str, base: &str) -> Result<Sha, Error> {
        const OPERATION: &str = "open a pull request";
        let refused = |reason: String| Error::Refused { operation: OPERATION, reason };
        let stands = |name: &str| {
            let sha = self.repository.branch(name).map_err(git_error(OPERATION))?;
            sha.ok_or_else(|| refused(format!("there is no branch `{name}`")))
        };
        let (head_sha, base_sha) = (stands(head)?, stands(base)?);
        if self.repository.is_on(&head_sha, &base_sha).map_err(git_error(OPERATION))? {
            return Err(refused(format!("`{head}` has no commit that `{base}` has not")));
        }
        Ok(head_sha)
    }
}
