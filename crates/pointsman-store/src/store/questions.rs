//! Questions to people, of all projects. One is written by [`Store::commit`], together with the event that asked or
//! settled it and the snapshot of the workflow that owns it.

use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::part::question::{Owner, Question, QuestionId};
use pointsman_core::snapshot::{Kind, Snapshot, Unreadable};
use pointsman_core::words;
use rusqlite::{OptionalExtension, params};

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;
use crate::column::{Json, Whole, Word, word};
use crate::error::{Error, failed_to};

impl Store {
    /// The number for the next question.
    pub fn next_question(&self) -> QuestionId {
        QuestionId(u64::try_from(self.numbers.question.peek()).unwrap_or_default())
    }

    /// Reads one question.
    pub fn question(&self, id: QuestionId) -> Result<Option<Question>> {
        const SQL: &str = "SELECT version, question, project FROM questions WHERE id = $1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, word(row, 2)?));
        let run = || self.connection.prepare_cached(SQL)?.query_row([Whole(id.0)], read).optional();
        let found: Option<(u32, String, ProjectName)> =
            run().map_err(failed_to(words::store::READ_QUESTIONS))?;
        let Some((version, text, project)) = found else { return Ok(None) };
        Question::read(version, &text).map(Some).map_err(|why| {
            let (what, name) = (Kind::Question, id.to_string());
            Error::Unreadable(Box::new(Unreadable { what, project, name, version, why }))
        })
    }

    /// The open questions of all projects that can be read, oldest first.
    pub fn open_questions(&self) -> Result<Vec<Question>> {
        self.readable(words::store::READ_QUESTIONS, OPEN, [])
    }

    /// The open questions about an issue, oldest first. A comment on the issue may answer one of them.
    pub fn questions_about(&self, project: &ProjectName, issue: Number) -> Result<Vec<Question>> {
        self.readable(words::store::READ_QUESTIONS, ABOUT, params![Word(project), Whole(issue)])
    }

    /// The newest question of a workflow, open or settled.
    pub fn last_question(&self, project: &ProjectName, owner: &Owner) -> Result<Option<Question>> {
        let name = || (Kind::Question, project.clone(), owner.to_string());
        let found =
            self.snapshots(words::store::READ_QUESTIONS, LAST, params![Word(project), Word(owner)], name)?;
        Ok(found.into_iter().next())
    }

    pub(super) fn unreadable_questions(&self) -> Result<Vec<Unreadable>> {
        const SQL: &str = "SELECT project, id, version, question FROM questions WHERE open";
        self.unreadable_rows(Kind::Question, SQL, |_, version, text| Question::read(version, text).map(drop))
    }
}

pub(super) const OPEN: &str = "SELECT version, question FROM questions WHERE open ORDER BY id";

pub(super) const ABOUT: &str =
    "SELECT version, question FROM questions WHERE project = $1 AND issue = $2 AND open ORDER BY id";

pub(super) const LAST: &str =
    "SELECT version, question FROM questions WHERE project = $1 AND owner = $2 ORDER BY id DESC LIMIT 1";

/// Writes a question as it is now. One that is settled stays what it is.
pub(super) fn put(draft: &mut Draft<'_>, question: &Question) -> Result<()> {
    const SQL: &str =
        "INSERT INTO questions (id, project, owner, kind, issue, open, asked_at, version, question)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (id) DO UPDATE SET
            open = excluded.open, version = excluded.version, question = excluded.question
            WHERE questions.open";
    let id = question.id.ok_or(Error::Invalid { what: words::store::QUESTION_WITHOUT_NUMBER })?;
    draft.numbers.question.used(i64::try_from(id.0).unwrap_or(i64::MAX - 1));
    let values = values![
        Whole(id.0),
        Word(&question.source.project),
        Word(&question.source.owner),
        Word(question.kind),
        question.source.issue.map(Whole),
        question.is_open(),
        question.asked_at,
        Question::VERSION,
        Json(question)
    ];
    let refusal = words::store::ASKED_ALREADY;
    draft.push(Statement::new(words::store::WRITE_QUESTION, SQL, values).or_refused(refusal));
    Ok(())
}
