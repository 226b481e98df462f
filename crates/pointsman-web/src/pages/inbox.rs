//! The inbox: the list of questions, and perhaps one of them beside it.

use askama::Template;
use pointsman_core::time::Timestamp;
use pointsman_view::inbox::Question;

use super::Shell;
use super::desk::DeskView;
use super::rows::QuestionRow;

#[derive(Template)]
#[template(path = "inbox.html")]
pub(super) struct Inbox {
    shell: Shell,
    rows: Vec<QuestionRow>,
    notice: Option<String>,
    desk: Option<DeskView>,
}

impl Inbox {
    pub(super) fn new(
        shell: Shell,
        questions: &[Question],
        done: Option<u64>,
        desk: Option<DeskView>,
        now: Timestamp,
    ) -> Self {
        let chosen = desk.as_ref().map(|desk| desk.id);
        let row = |asked: &Question| {
            let is_current = chosen.is_some() && asked.id.map(|id| id.0) == chosen;
            QuestionRow { is_current, ..QuestionRow::new(asked, now) }
        };
        let notice = done
            .map(|id| pointsman_core::words::question::done(pointsman_core::part::question::QuestionId(id)));
        Self { shell, rows: questions.iter().map(row).collect(), notice, desk }
    }
}
