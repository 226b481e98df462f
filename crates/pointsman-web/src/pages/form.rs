//! Forms as they come back from a page.

use std::io;

use pointsman_core::part::question::QuestionId;
use pointsman_core::review::comments::{Feedback, LineComment};
use pointsman_core::task;
use pointsman_core::words;
use pointsman_view::inbox::Question;

use crate::backend::{Answer, Failure, FailureKind, Order};

/// Comments that are read from one form.
const COMMENTS: usize = 500;

/// The fields of a form in their order.
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads the body of a request.
    pub(super) fn parse(body: &[u8]) -> Self {
        Self(form_urlencoded::parse(body).into_owned().collect())
    }

    /// The first field of this name; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }

    /// Comments on lines: a line, a file and a text, in this order, any number of times.
    fn comments(&self) -> Vec<LineComment> {
        let (mut line, mut file) = (None, "");
        let mut found = Vec::new();
        for (name, value) in &self.0 {
            match name.as_str() {
                "line" => line = value.trim().parse::<u64>().ok(),
                "file" => file = value,
                "text" => {
                    let text = value.replace("\r\n", "\n").trim().to_owned();
                    if !text.is_empty() && !file.is_empty() && found.len() < COMMENTS {
                        let line = line.unwrap_or(1).max(1);
                        found.push(LineComment { file: file.to_owned(), line, text });
                    }
                    (line, file) = (None, "");
                }
                _ => {}
            }
        }
        found
    }
}

/// The order that a form gives.
pub(super) fn order(fields: &Fields, asked: &Question, question: QuestionId) -> Answer<Order> {
    let body = fields.get("body").replace("\r\n", "\n").trim().to_owned();
    let refused = |why: &str| Err(Failure { kind: FailureKind::Refused, message: why.to_owned() });
    match fields.get("do") {
        "approve" => Ok(Order::Approve { question }),
        "dismiss" => Ok(Order::Dismiss { question }),
        "reject" => {
            let feedback = Feedback { general: body, comments: fields.comments() };
            match feedback == Feedback::default() {
                true => refused(words::web::EMPTY_REASON),
                false => Ok(Order::Reject { question, feedback }),
            }
        }
        "answer" if body.is_empty() => refused(words::web::EMPTY_ANSWER),
        "answer" => Ok(Order::Answer { question, text: body }),
        "afresh" => match asked.issue {
            Some(issue) => {
                Ok(Order::Task { project: asked.project.clone(), issue, order: task::Order::RestartFresh })
            }
            None => refused(words::question::NOTHING_ASKED),
        },
        _ => refused(words::question::NOTHING_ASKED),
    }
}

/// A form that no page of this login has made.
pub(super) fn foreign() -> Failure {
    Failure { kind: FailureKind::Refused, message: words::web::OLD_FORM.to_owned() }
}

/// The logins could not be written.
pub(super) fn broken(error: &io::Error) -> Failure {
    Failure { kind: FailureKind::Failed, message: words::web::logins_not_kept(&error.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::Fields;

    #[test]
    fn comments_have_a_line_a_file_and_a_text() {
        let body = b"token=1&line=7&file=src%2Fa.rs&text=Name+it%21%0D%0APlease&line=&file=b&text=&line=x&file=c&text=All%20of%20it&text=lost";
        let fields = Fields::parse(body);
        let found: Vec<_> = fields.comments().into_iter().map(|c| (c.file, c.line, c.text)).collect();
        assert_eq!(
            found,
            [
                ("src/a.rs".to_owned(), 7, "Name it!\nPlease".to_owned()),
                ("c".to_owned(), 1, "All of it".to_owned())
            ]
        );
        assert_eq!((fields.get("token"), fields.get("none")), ("1", ""));
    }
}
