//! Pull requests and their reviews.

use pointsman_core::forge::{PullRequest, Review, StateFilter};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{ForgeDatabase, next_number, require};
use crate::Result;
use crate::column::{Whole, Word, maybe_word, time, whole, word};
use crate::error::{Error, failed_to};

const PULL_REQUEST: &str =
    "SELECT number, title, body, head, base, state, merged, merge_sha, author FROM pull_requests";

impl ForgeDatabase {
    /// Opens a pull request; answers its number. While one is open for the same two branches,
    /// [`Error::Exists`] names it.
    pub fn create_pr(
        &mut self,
        head: &str,
        base: &str,
        title: &str,
        body: &str,
        author: &str,
        at: Timestamp,
    ) -> Result<Number> {
        const OPEN: &str =
            "SELECT number FROM pull_requests WHERE head = $1 AND base = $2 AND state = 'open'";
        const SQL: &str = "INSERT INTO pull_requests
            (number, head, base, title, body, author, state, merged, created_at)
            VALUES ($1, $2, $3, $4, $5, $6, 'open', FALSE, $7)";
        let failed = failed_to(words::store::OPEN_PULL_REQUEST);
        let transaction = self.begin(words::store::OPEN_PULL_REQUEST)?;
        let open = transaction.query_row(OPEN, [head, base], |row| whole(row, 0)).optional();
        if let Some(number) = open.map_err(&failed)? {
            return Err(Error::Exists(number));
        }
        let number = next_number(&transaction, "pull_request")?;
        transaction
            .execute(SQL, params![Whole(number), head, base, title, body, author, at.0])
            .map_err(&failed)?;
        transaction.commit().map_err(failed)?;
        Ok(number)
    }

    /// One pull request with its reviews. The database knows no git: `head_sha` is empty.
    pub fn pr(&self, number: Number) -> Result<Option<PullRequest>> {
        self.read_prs("WHERE number = $1", [Whole(number)]).map(|found| found.into_iter().next())
    }

    /// Pull requests with their reviews, by number.
    pub fn prs(&self, filter: StateFilter) -> Result<Vec<PullRequest>> {
        match filter.only() {
            Some(state) => self.read_prs("WHERE state = $1 ORDER BY number", [state.name()]),
            None => self.read_prs("ORDER BY number", []),
        }
    }

    /// The newest pull request for these branches, open or not.
    pub fn pr_for(&self, head: &str, base: &str) -> Result<Option<PullRequest>> {
        self.read_prs("WHERE head = $1 AND base = $2 ORDER BY number DESC LIMIT 1", [head, base])
            .map(|found| found.into_iter().next())
    }

    /// Reviews one commit; answers the review's id.
    pub fn review(
        &mut self,
        pr: Number,
        author: &str,
        verdict: ReviewVerdict,
        body: &str,
        sha: &Sha,
        at: Timestamp,
    ) -> Result<u64> {
        const SQL: &str = "INSERT INTO reviews (pr, author, verdict, body, sha, at, dismissed)
            VALUES ($1, $2, $3, $4, $5, $6, FALSE) RETURNING id";
        let failed = failed_to(words::store::REVIEW_PULL_REQUEST);
        let transaction = self.begin(words::store::REVIEW_PULL_REQUEST)?;
        require(&transaction, "pull_requests", "pull request", pr)?;
        let id = transaction
            .query_row(SQL, params![Whole(pr), author, Word(verdict), body, Word(sha), at.0], |row| {
                whole(row, 0)
            })
            .map_err(&failed)?;
        transaction.commit().map_err(failed)?;
        Ok(id)
    }

    /// A pull request's reviews, oldest first.
    pub fn reviews(&self, pr: Number) -> Result<Vec<Review>> {
        require(&self.connection, "pull_requests", "pull request", pr)?;
        read_reviews(&self.connection, pr).map_err(failed_to(words::store::READ_REVIEWS))
    }

    /// Takes a review back; it stays to be read.
    pub fn dismiss_review(&mut self, id: u64) -> Result<()> {
        let sql = "UPDATE reviews SET dismissed = TRUE WHERE id = $1";
        match self.connection.execute(sql, [Whole(id)]).map_err(failed_to(words::store::DISMISS_REVIEW))? {
            0 => Err(Error::NotFound { what: format!("review {id}") }),
            _ => Ok(()),
        }
    }

    /// Closes it without a merge; one that is closed or merged stays as it is.
    pub fn close_pr(&mut self, number: Number) -> Result<()> {
        let failed = failed_to(words::store::CLOSE_PULL_REQUEST);
        let transaction = self.begin(words::store::CLOSE_PULL_REQUEST)?;
        require(&transaction, "pull_requests", "pull request", number)?;
        let sql = "UPDATE pull_requests SET state = 'closed' WHERE number = $1";
        transaction.execute(sql, [Whole(number)]).map_err(&failed)?;
        transaction.commit().map_err(failed)
    }

    /// Its work is on the base branch as this commit. It merges once: the first commit stays.
    pub fn mark_merged(&mut self, number: Number, sha: &Sha) -> Result<()> {
        const SQL: &str = "UPDATE pull_requests SET state = 'closed', merged = TRUE,
            merge_sha = coalesce(merge_sha, $1) WHERE number = $2";
        let failed = failed_to(words::store::MARK_AS_MERGED);
        let transaction = self.begin(words::store::MARK_AS_MERGED)?;
        require(&transaction, "pull_requests", "pull request", number)?;
        transaction.execute(SQL, params![Word(sha), Whole(number)]).map_err(&failed)?;
        transaction.commit().map_err(failed)
    }

    fn read_prs(&self, condition: &str, params: impl rusqlite::Params) -> Result<Vec<PullRequest>> {
        let run = || {
            // One transaction, so that the reviews belong to the same moment.
            let moment = self.connection.unchecked_transaction()?;
            let found: Vec<PullRequest> = moment
                .prepare_cached(&format!("{PULL_REQUEST} {condition}"))?
                .query_map(params, read)?
                .collect::<rusqlite::Result<_>>()?;
            found
                .into_iter()
                .map(|pr| Ok(PullRequest { reviews: read_reviews(&moment, pr.number)?, ..pr }))
                .collect::<rusqlite::Result<_>>()
        };
        run().map_err(failed_to(words::store::READ_PULL_REQUESTS))
    }
}

fn read_reviews(connection: &Connection, pr: Number) -> rusqlite::Result<Vec<Review>> {
    let sql = "SELECT id, author, verdict, body, sha, at, dismissed FROM reviews WHERE pr = $1 ORDER BY id";
    connection
        .prepare_cached(sql)?
        .query_map([Whole(pr)], |row| {
            Ok(Review {
                id: whole(row, "id")?,
                author: row.get("author")?,
                verdict: word(row, "verdict")?,
                body: row.get("body")?,
                sha: word(row, "sha")?,
                at: time(row, "at")?,
                dismissed: row.get("dismissed")?,
            })
        })?
        .collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<PullRequest> {
    Ok(PullRequest {
        number: whole(row, "number")?,
        title: row.get("title")?,
        body: row.get("body")?,
        head: row.get("head")?,
        base: row.get("base")?,
        head_sha: None,
        state: word(row, "state")?,
        merged: row.get("merged")?,
        merge_sha: maybe_word(row, "merge_sha")?,
        reviews: Vec::new(),
        author: row.get("author")?,
    })
}
