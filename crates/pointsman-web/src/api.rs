//! The API: the same views and orders, for programs.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, Path, Query, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use pointsman_core::ids::ProjectName;
use pointsman_core::part::question::QuestionId;
use pointsman_core::review::comments::{Feedback, LineComment};
use pointsman_core::task;
use pointsman_core::words;
use pointsman_view::failure as view;
use serde::{Deserialize, Serialize};

use crate::backend::{Answer, Failure, FailureKind, Order, Visitor};
use crate::live;
use crate::server::App;

/// Entries of the log in one answer.
const PAGE: u32 = 1_000;
/// Orders whose answers are remembered by their keys.
const REMEMBERED: usize = 1_000;
/// The longest key of an order.
const KEY_BYTES: usize = 200;
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Everything below `/api/v1`.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/status", get(status))
        .route("/inbox", get(inbox))
        .route("/inbox/{id}", get(question))
        .route("/inbox/{id}/{act}", post(settle))
        .route("/projects/{project}/tasks/{issue}/{order}", post(order))
        .route("/projects/{project}/issues", post(file_issue))
        .route("/events", get(events))
}

async fn status(State(app): State<App>, Extension(by): Extension<Visitor>) -> Response {
    answered(app.ask(move |backend| backend.status(&by)).await)
}

async fn inbox(State(app): State<App>, Extension(by): Extension<Visitor>) -> Response {
    answered(app.ask(move |backend| backend.inbox(&by)).await)
}

async fn question(
    State(app): State<App>,
    Extension(by): Extension<Visitor>,
    Path(id): Path<u64>,
) -> Response {
    answered(app.ask(move |backend| backend.question(&by, QuestionId(id))).await)
}

/// The words of an order: an answer, or the reason for a no with comments on lines.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Words {
    body: String,
    comments: Vec<Comment>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Comment {
    file: String,
    line: u64,
    text: String,
}

/// `POST /api/v1/inbox/N/approve`, `reject`, `answer`, `dismiss`
async fn settle(
    State(app): State<App>,
    Extension(by): Extension<Visitor>,
    Path((id, act)): Path<(u64, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let question = QuestionId(id);
    let said: Words = match read(&body) {
        Ok(said) => said,
        Err(failure) => return refused(&failure),
    };
    let comments = said.comments.into_iter();
    let comments = comments.map(|c| LineComment { file: c.file, line: c.line, text: c.text }).collect();
    let feedback = Feedback { general: said.body.trim().to_owned(), comments };
    let order = match act.as_str() {
        "approve" => Order::Approve { question },
        "dismiss" => Order::Dismiss { question },
        "reject" if feedback == Feedback::default() => return refused(&malformed(words::web::EMPTY_REASON)),
        "reject" => Order::Reject { question, feedback },
        "answer" if feedback.general.is_empty() => return refused(&malformed(words::web::EMPTY_ANSWER)),
        "answer" => Order::Answer { question, text: feedback.general },
        _ => return nothing_here(),
    };
    carry_out(app, by, &headers, order).await
}

/// `POST /api/v1/projects/P/tasks/N/start` and so on
async fn order(
    State(app): State<App>,
    Extension(by): Extension<Visitor>,
    Path((project, issue, order)): Path<(String, u64, String)>,
    headers: HeaderMap,
) -> Response {
    let order = match order.as_str() {
        "start" => task::Order::Start,
        "pause" => task::Order::Pause,
        "resume" => task::Order::Resume,
        "stop" => task::Order::Stop,
        "restart" => task::Order::Restart,
        "restart_fresh" => task::Order::RestartFresh,
        _ => return nothing_here(),
    };
    let Some(project) = ProjectName::new(&project) else { return nothing_here() };
    carry_out(app, by, &headers, Order::Task { project, issue, order }).await
}

/// An issue as a program files it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewIssue {
    title: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    labels: Vec<String>,
}

/// `POST /api/v1/projects/P/issues`
async fn file_issue(
    State(app): State<App>,
    Extension(by): Extension<Visitor>,
    Path(project): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(project) = ProjectName::new(&project) else { return nothing_here() };
    match read::<Option<NewIssue>>(&body) {
        Ok(Some(NewIssue { title, body, labels })) => {
            carry_out(app, by, &headers, Order::FileIssue { project, title, body, labels }).await
        }
        Ok(None) => refused(&malformed(words::web::NO_ISSUE)),
        Err(failure) => refused(&failure),
    }
}

/// A body of JSON; nothing at all is the default.
fn read<T: serde::de::DeserializeOwned + Default>(body: &[u8]) -> Answer<T> {
    match body.trim_ascii() {
        [] => Ok(T::default()),
        text => serde_json::from_slice(text).map_err(|error| malformed(&error.to_string())),
    }
}

fn malformed(why: &str) -> Failure {
    Failure { kind: FailureKind::Malformed, message: why.to_owned() }
}

fn nothing_here() -> Response {
    let message = words::web::NOTHING_HERE.to_owned();
    refused(&Failure { kind: FailureKind::NotFound, message })
}

/// The answers to the last orders that had keys.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<VecDeque<Remembered>>);

#[derive(Clone, Debug)]
struct Remembered {
    /// Whose order it was, and under which key.
    key: (String, String),
    order: Order,
    /// None while it is carried out.
    answer: Option<(StatusCode, String)>,
}

impl Answers {
    /// Begins an order: the one of that key if there is one.
    fn begin(&self, key: &(String, String), order: &Order) -> Option<Remembered> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().find(|remembered| remembered.key == *key).cloned();
        if known.is_none() {
            all.push_back(Remembered { key: key.clone(), order: order.clone(), answer: None });
            if all.len() > REMEMBERED {
                all.pop_front();
            }
        }
        known
    }

    /// Keeps the answer. A daemon that broke over an order may be asked again.
    fn end(&self, key: &(String, String), status: StatusCode, text: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if status.is_server_error() {
            all.retain(|remembered| remembered.key != *key);
        } else if let Some(remembered) = all.iter_mut().find(|remembered| remembered.key == *key) {
            remembered.answer = Some((status, text.to_owned()));
        }
    }
}

/// Carries an order out. The same order under the same `Idempotency-Key` is carried out once, and answered every time.
async fn carry_out(app: App, by: Visitor, headers: &HeaderMap, order: Order) -> Response {
    let key = headers.get(IDEMPOTENCY_KEY).map(|key| key.to_str().unwrap_or_default());
    if key.is_some_and(|key| key.is_empty() || key.len() > KEY_BYTES) {
        return refused(&malformed(words::web::BAD_KEY));
    }
    let key = key.map(|key| (by.name.clone(), key.to_owned()));
    if let Some(known) = key.as_ref().and_then(|key| app.answers.begin(key, &order)) {
        let refuse = |why: &str| refused(&Failure { kind: FailureKind::Refused, message: why.to_owned() });
        return match known.answer {
            _ if known.order != order => refuse(words::web::KEY_OF_ANOTHER_ORDER),
            Some((status, text)) => with_status(status, text),
            None => refuse(words::web::ORDER_UNDER_WAY),
        };
    }
    let done = app.ask(move |backend| backend.carry_out(&by, &order)).await;
    let (status, text) = match &done {
        Ok(value) => (StatusCode::OK, text_of(value)),
        Err(failure) => (status_of(failure), text_of(&told(failure))),
    };
    if let Some(key) = key {
        app.answers.end(&key, status, &text);
    }
    with_status(status, text)
}

/// Where the log is read on.
#[derive(Debug, Deserialize)]
struct Position {
    after: Option<i64>,
}

/// The log: a list, or a stream for whoever accepts one. A stream goes on after `Last-Event-ID`; without a position it begins
/// now.
async fn events(
    State(app): State<App>,
    Extension(by): Extension<Visitor>,
    Query(position): Query<Position>,
    headers: HeaderMap,
) -> Response {
    let header = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let after = header(LAST_EVENT).and_then(|id| id.parse().ok()).or(position.after);
    if !header(ACCEPT).is_some_and(|kinds| kinds.contains("text/event-stream")) {
        return answered(app.ask(move |backend| backend.events(&by, after.unwrap_or(0), PAGE)).await);
    }
    let after = match after {
        Some(after) => Ok(after),
        None => app.ask(|backend| backend.last_event()).await,
    };
    match after {
        Ok(after) => live::log(app, by, after),
        Err(failure) => refused(&failure),
    }
}

fn answered<T: Serialize>(answer: Answer<T>) -> Response {
    match answer {
        Ok(value) => with_status(StatusCode::OK, text_of(&value)),
        Err(failure) => refused(&failure),
    }
}

/// A failure as a program reads it.
pub(crate) fn refused(failure: &Failure) -> Response {
    with_status(status_of(failure), text_of(&told(failure)))
}

fn told(failure: &Failure) -> view::Failure {
    view::Failure { error: failure.message.clone(), hint: None }
}

fn status_of(failure: &Failure) -> StatusCode {
    match failure.kind {
        FailureKind::Malformed => StatusCode::BAD_REQUEST,
        FailureKind::Refused => StatusCode::CONFLICT,
        FailureKind::NotFound => StatusCode::NOT_FOUND,
        FailureKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        FailureKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The answer to a program without a token, or with a wrong one.
pub(crate) fn not_logged_in() -> Response {
    let told = view::Failure {
        error: words::web::NO_TOKEN.to_owned(),
        hint: Some("pointsman web token create".to_owned()),
    };
    with_status(StatusCode::UNAUTHORIZED, text_of(&told))
}

fn text_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        tracing::error!(%error, "an answer could not be written as JSON");
        "null".to_owned()
    })
}

fn with_status(status: StatusCode, mut text: String) -> Response {
    text.push('\n');
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use pointsman_core::part::question::QuestionId;

    use super::{Answers, REMEMBERED};
    use crate::backend::Order;

    #[test]
    fn an_order_under_a_key_is_begun_once() {
        let (answers, order) = (Answers::default(), Order::Approve { question: QuestionId(7) });
        let key = |name: &str| ("ann".to_owned(), name.to_owned());
        assert!(answers.begin(&key("1"), &order).is_none());
        assert!(answers.begin(&key("1"), &order).is_some_and(|known| known.answer.is_none()), "under way");
        answers.end(&key("1"), StatusCode::OK, "done");
        let known = answers.begin(&key("1"), &order).unwrap();
        assert_eq!(known.answer, Some((StatusCode::OK, "done".to_owned())));
        assert!(
            answers.begin(&("ben".to_owned(), "1".to_owned()), &order).is_none(),
            "keys belong to people"
        );
        answers.end(&("ben".to_owned(), "1".to_owned()), StatusCode::INTERNAL_SERVER_ERROR, "broke");
        assert!(
            answers.begin(&("ben".to_owned(), "1".to_owned()), &order).is_none(),
            "it may be asked again"
        );
        for number in 0..REMEMBERED {
            answers.begin(&key(&format!("more {number}")), &order);
        }
        assert!(answers.begin(&key("1"), &order).is_none(), "the oldest is forgotten");
    }
}
