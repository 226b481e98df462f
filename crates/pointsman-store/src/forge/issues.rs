//! Issues, their labels, and comments on issues and pull requests.

use pointsman_core::forge::{Comment, Issue, StateFilter};
use pointsman_core::ids::Number;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{ForgeDatabase, next_number, require};
use crate::Result;
use crate::column::{Whole, time, whole, word};
use crate::error::failed_to;

const ISSUE: &str = "SELECT number, title, body, state, assignee, author, created_at FROM issues";

impl ForgeDatabase {
    /// Writes a new issue; answers its number.
    pub fn create_issue(
        &mut self,
        title: &str,
        body: &str,
        labels: &[String],
        author: &str,
        at: Timestamp,
    ) -> Result<Number> {
        const SQL: &str = "INSERT INTO issues (number, title, body, state, author, created_at)
            VALUES ($1, $2, $3, 'open', $4, $5)";
        let failed = failed_to(words::store::CREATE_ISSUE);
        let transaction = self.begin(words::store::CREATE_ISSUE)?;
        let number = next_number(&transaction, "issue")?;
        transaction.execute(SQL, params![Whole(number), title, body, author, at.0]).map_err(&failed)?;
        add_labels(&transaction, number, labels).map_err(&failed)?;
        transaction.commit().map_err(failed)?;
        Ok(number)
    }

    /// One issue with its labels and comments.
    pub fn issue(&self, number: Number) -> Result<Option<Issue>> {
        let run = || {
            // One transaction, so that labels and comments belong to the same moment.
            let moment = self.connection.unchecked_transaction()?;
            moment
                .prepare_cached(&format!("{ISSUE} WHERE number = $1"))?
                .query_row([Whole(number)], read)
                .optional()?
                .map(|issue| complete(&moment, issue))
                .transpose()
        };
        run().map_err(failed_to(words::store::READ_ISSUE))
    }

    /// Issues with their labels and comments, by number.
    pub fn issues(&self, filter: StateFilter) -> Result<Vec<Issue>> {
        let run = || {
            let moment = self.connection.unchecked_transaction()?;
            let found: Vec<Issue> = match filter.only() {
                Some(state) => moment
                    .prepare_cached(&format!("{ISSUE} WHERE state = $1 ORDER BY number"))?
                    .query_map([state.name()], read)?
                    .collect::<rusqlite::Result<_>>()?,
                None => moment
                    .prepare_cached(&format!("{ISSUE} ORDER BY number"))?
                    .query_map([], read)?
                    .collect::<rusqlite::Result<_>>()?,
            };
            found.into_iter().map(|issue| complete(&moment, issue)).collect::<rusqlite::Result<_>>()
        };
        run().map_err(failed_to(words::store::READ_ISSUES))
    }

    /// The authors of the issues that were filed since then.
    pub fn authors_since(&self, since: Timestamp) -> Result<Vec<String>> {
        let list = || {
            let mut statement =
                self.connection.prepare_cached("SELECT author FROM issues WHERE created_at >= $1")?;
            let authors = statement.query_map([since.0], |row| row.get(0))?;
            authors.collect::<rusqlite::Result<_>>()
        };
        list().map_err(failed_to("count issues"))
    }

    /// The author of an issue; none if there is no such issue.
    pub fn author_of(&self, issue: Number) -> Result<Option<String>> {
        self.connection
            .prepare_cached("SELECT author FROM issues WHERE number = $1")
            .and_then(|mut statement| statement.query_row([Whole(issue)], |row| row.get(0)).optional())
            .map_err(failed_to(words::store::READ_ISSUE))
    }

    /// The number of issues that have this author.
    pub fn issues_by(&self, author: &str) -> Result<u64> {
        self.connection
            .prepare_cached("SELECT count(*) FROM issues WHERE author = $1")
            .and_then(|mut statement| statement.query_row([author], |row| row.get::<_, Whole>(0)))
            .map(|Whole(count)| count)
            .map_err(failed_to("count issues"))
    }

    /// Makes these labels present and those absent; a label in both is present. Answers what the
    /// issue carries now.
    pub fn set_labels(&mut self, number: Number, add: &[String], remove: &[String]) -> Result<Vec<String>> {
        let failed = failed_to(words::store::SET_LABELS);
        let transaction = self.begin(words::store::SET_LABELS)?;
        require(&transaction, "issues", "issue", number)?;
        for label in remove {
            transaction
                .prepare_cached("DELETE FROM labels WHERE issue = $1 AND label = $2")
                .and_then(|mut statement| statement.execute(params![Whole(number), label]))
                .map_err(&failed)?;
        }
        add_labels(&transaction, number, add).map_err(&failed)?;
        let labels = read_labels(&transaction, number).map_err(&failed)?;
        transaction.commit().map_err(failed)?;
        Ok(labels)
    }

    /// Gives the issue to somebody, or to nobody.
    pub fn assign(&mut self, number: Number, assignee: Option<&str>) -> Result<()> {
        self.update_issue("UPDATE issues SET assignee = $1 WHERE number = $2", number, assignee)
    }

    /// Closes it; one that is closed stays closed since then.
    pub fn close_issue(&mut self, number: Number, at: Timestamp) -> Result<()> {
        const SQL: &str =
            "UPDATE issues SET state = 'closed', closed_at = coalesce(closed_at, $1) WHERE number = $2";
        self.update_issue(SQL, number, at.0)
    }

    /// Opens it again.
    pub fn reopen_issue(&mut self, number: Number) -> Result<()> {
        const SQL: &str = "UPDATE issues SET state = 'open', closed_at = $1 WHERE number = $2";
        self.update_issue(SQL, number, None::<i64>)
    }

    /// Comments on an issue or a pull request; answers the comment's id.
    pub fn comment(&mut self, number: Number, author: &str, body: &str, at: Timestamp) -> Result<u64> {
        const SQL: &str =
            "INSERT INTO comments (number, author, body, at) VALUES ($1, $2, $3, $4) RETURNING id";
        let failed = failed_to(words::store::WRITE_COMMENT);
        let transaction = self.begin(words::store::WRITE_COMMENT)?;
        require(&transaction, "numbers", words::store::NUMBERED, number)?;
        let id = transaction
            .query_row(SQL, params![Whole(number), author, body, at.0], |row| whole(row, 0))
            .map_err(&failed)?;
        transaction.commit().map_err(failed)?;
        Ok(id)
    }

    /// The comments with a greater id than this, oldest first; 0 for all.
    pub fn comments_after(&self, number: Number, id: u64) -> Result<Vec<Comment>> {
        require(&self.connection, "numbers", words::store::NUMBERED, number)?;
        read_comments(&self.connection, number, id).map_err(failed_to(words::store::READ_COMMENTS))
    }

    fn update_issue(&mut self, sql: &str, number: Number, value: impl rusqlite::ToSql) -> Result<()> {
        let failed = failed_to(words::store::CHANGE_ISSUE);
        let transaction = self.begin(words::store::CHANGE_ISSUE)?;
        require(&transaction, "issues", "issue", number)?;
        transaction.execute(sql, params![value, Whole(number)]).map_err(&failed)?;
        transaction.commit().map_err(failed)
    }
}

fn add_labels(connection: &Connection, number: Number, labels: &[String]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO labels (issue, label) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    let mut statement = connection.prepare_cached(sql)?;
    for label in labels {
        statement.execute(params![Whole(number), label])?;
    }
    Ok(())
}

fn complete(connection: &Connection, mut issue: Issue) -> rusqlite::Result<Issue> {
    issue.labels = read_labels(connection, issue.number)?;
    issue.comments = read_comments(connection, issue.number, 0)?;
    Ok(issue)
}

fn read_labels(connection: &Connection, number: Number) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT label FROM labels WHERE issue = $1 ORDER BY label";
    connection.prepare_cached(sql)?.query_map([Whole(number)], |row| row.get(0))?.collect()
}

fn read_comments(connection: &Connection, number: Number, after: u64) -> rusqlite::Result<Vec<Comment>> {
    let sql = "SELECT id, author, body, at FROM comments WHERE number = $1 AND id > $2 ORDER BY id";
    connection
        .prepare_cached(sql)?
        .query_map([Whole(number), Whole(after)], |row| {
            Ok(Comment {
                id: whole(row, "id")?,
                author: row.get("author")?,
                body: row.get("body")?,
                at: time(row, "at")?,
            })
        })?
        .collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Issue> {
    Ok(Issue {
        number: whole(row, "number")?,
        title: row.get("title")?,
        body: row.get("body")?,
        state: word(row, "state")?,
        labels: Vec::new(),
        comments: Vec::new(),
        assignee: row.get("assignee")?,
        author: row.get("author")?,
        created_at: time(row, "created_at")?,
    })
}
