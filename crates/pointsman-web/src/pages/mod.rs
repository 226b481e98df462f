//! Pages: what a person sees, drawn from views.
//!
//! `home` and `inbox` turn views into rows of their templates, `desk` shows one question with its evidence, `form` reads what a
//! person sends back. HTML is in `templates/`, where everything that is inserted is escaped.

mod desk;
mod form;
mod home;
mod inbox;
mod rows;

use askama::Template;
use axum::extract::{Extension, Path, Query, RawForm, State};
use axum::http::header::{CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use pointsman_core::part::question::QuestionId;
use pointsman_view::Time;
use pointsman_view::inbox::Question;
use serde::Deserialize;

use crate::backend::{Failure, FailureKind, Visitor};
use crate::guard::{self, Cookie};
use crate::server::App;
use crate::{live as streams, secret};

/// What every page shows around its content.
struct Shell {
    title: String,
    here: &'static str,
    /// How many questions wait.
    count: usize,
    projects: Vec<Link>,
    visitor: String,
    logout_token: String,
    version: &'static str,
    now: String,
    clock: String,
}

/// A link with its name.
struct Link {
    href: String,
    name: String,
    is_current: bool,
}

/// A page of a few lines: the login, and failures.
#[derive(Template)]
#[template(path = "plain.html")]
struct Plain {
    title: String,
    lines: Vec<String>,
    code: Option<String>,
    link: Option<Link>,
    version: &'static str,
}

/// The questions and answers in the address of a page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    project: String,
    /// The number of a question that was just settled.
    done: Option<u64>,
    #[serde(default)]
    since: String,
    #[serde(default)]
    code: String,
}

impl Shell {
    fn new(app: &App, by: &Visitor, cookie: &Cookie, title: &str, here: &'static str, count: usize) -> Self {
        let now = Time(app.backend.now()).to_string();
        Self {
            title: title.to_owned(),
            here,
            count,
            projects: Vec::new(),
            visitor: by.name.clone(),
            logout_token: secret::form_token(&cookie.0, "/logout"),
            version: env!("CARGO_PKG_VERSION"),
            clock: now.get(11..16).unwrap_or_default().to_owned(),
            now,
        }
    }
}

/// `GET /`
pub(crate) async fn home(
    State(app): State<App>,
    Extension(by): Extension<Visitor>,
    Extension(cookie): Extension<Cookie>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let (now, asking) = (app.backend.now(), by.clone());
    match app.ask(move |backend| backend.status(&asking)).await {
        Ok(status) => {
            let shell = Shell::new(&app, &by, &cookie, "Home", "home", status.questions.len());
            page(&home::Home::new(shell, &status, &wanted.project, now))
        }
        Err(failure) => failed(&failure, "/"),
    }
}

/// `GET /inbox`
pub(crate) async fn inbox(
    State(app): State<App>,
    Extension(by): Extension<Visitor>,
    Extension(cookie): Extension<Cookie>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let (now, asking) = (app.backend.now(), by.clone());
    match app.ask(move |backend| backend.inbox(&asking)).await {
        Ok(questions) => {
            let shell = Shell::new(&app, &by, &cookie, "Inbox", "inbox", questions.len());
            page(&inbox::Inbox::new(shell, &questions, wanted.done, None, now))
        }
        Err(failure) => failed(&failure, "/"),
    }
}

/// `GET /inbox/N`
pub(crate) async fn desk(
    State(app): State<App>,
    Extension(by): Extension<Visitor>,
    Extension(cookie): Extension<Cookie>,
    Path(id): Path<u64>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let (now, asking) = (app.backend.now(), by.clone());
    let since = wanted.since == "last";
    let asked = app
        .ask(move |backend| {
            let desk = backend.desk(&asking, QuestionId(id), since)?;
            Ok((desk, backend.inbox(&asking)?))
        })
        .await;
    match asked {
        Ok((desk, questions)) => {
            let title = desk.question.subject.clone();
            let shell = Shell::new(&app, &by, &cookie, &title, "inbox", questions.len());
            let token = secret::form_token(&cookie.0, &format!("/inbox/{id}"));
            let around = Neighbours::of(&questions, id);
            let desk = desk::DeskView::new(&desk, token, since, around, now);
            page(&inbox::Inbox::new(shell, &questions, None, Some(desk), now))
        }
        Err(failure) => failed(&failure, "/inbox"),
    }
}

/// The questions before and after one in the inbox.
struct Neighbours {
    previous: Option<String>,
    next: Option<String>,
}

impl Neighbours {
    fn of(questions: &[Question], id: u64) -> Self {
        let ids: Vec<u64> = questions.iter().filter_map(|asked| Some(asked.id?.0)).collect();
        let href = |id: &u64| format!("/inbox/{id}");
        let at = ids.iter().position(|one| *one == id);
        let next = at.map_or_else(|| ids.first(), |at| ids.get(at + 1));
        let previous = at.and_then(|at| ids.get(at.checked_sub(1)?));
        Self { previous: previous.map(href), next: next.map(href) }
    }
}

/// `POST /inbox/N`
pub(crate) async fn decide(
    State(app): State<App>,
    Extension(by): Extension<Visitor>,
    Extension(cookie): Extension<Cookie>,
    Path(id): Path<u64>,
    RawForm(body): RawForm,
) -> Response {
    let here = format!("/inbox/{id}");
    let fields = form::Fields::parse(&body);
    if !secret::is_form_token(&cookie.0, &here, fields.get("token")) {
        return failed(&form::foreign(), &here);
    }
    let (asking, question) = (by.clone(), QuestionId(id));
    let done = app
        .ask(move |backend| {
            let asked = backend.question(&asking, question)?;
            let order = form::order(&fields, &asked, question)?;
            backend.carry_out(&asking, &order)
        })
        .await;
    match done {
        Ok(_) => go_to(&format!("/inbox?done={id}")),
        Err(failure) => failed(&failure, &here),
    }
}

/// `GET /live`
pub(crate) async fn live(State(app): State<App>) -> Response {
    streams::changes(&app)
}

/// `GET /login`: a link was opened. Looking at it does not use it up, since programs look at links, too.
pub(crate) async fn login(Query(wanted): Query<Wanted>) -> Response {
    let is_code = wanted.code.len() == 64 && wanted.code.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_code {
        true => plain(
            StatusCode::OK,
            "Log in to Pointsman",
            &["This link logs this browser in, once."],
            Some(wanted.code),
            None,
        ),
        false => not_logged_in(),
    }
}

/// `POST /login`
pub(crate) async fn log_in(State(app): State<App>, RawForm(body): RawForm) -> Response {
    let code = form::Fields::parse(&body).get("code").to_owned();
    let asking = app.clone();
    let redeemed = app.ask(move |_| asking.logins.redeem(&code).map_err(|error| form::broken(&error))).await;
    match redeemed {
        Ok(Some(cookie)) => {
            let mut response = go_to("/");
            set_cookie(&mut response, &app, &cookie, "; Max-Age=2592000");
            response
        }
        Ok(None) => plain(
            StatusCode::FORBIDDEN,
            "This link does not count any more",
            &[
                "A login link counts once, and for 10 minutes.",
                "Make a new one on the machine of the daemon: pointsman web open",
            ],
            None,
            None,
        ),
        Err(failure) => failed(&failure, "/"),
    }
}

/// `POST /logout`
pub(crate) async fn log_out(
    State(app): State<App>,
    Extension(cookie): Extension<Cookie>,
    RawForm(body): RawForm,
) -> Response {
    if !secret::is_form_token(&cookie.0, "/logout", form::Fields::parse(&body).get("token")) {
        return failed(&form::foreign(), "/");
    }
    let asking = app.clone();
    let done = app.ask(move |_| asking.logins.log_out(&cookie.0).map_err(|error| form::broken(&error))).await;
    match done {
        Ok(()) => {
            let mut response = not_logged_in();
            set_cookie(&mut response, &app, "", "; Max-Age=0");
            response
        }
        Err(failure) => failed(&failure, "/"),
    }
}

/// There is nothing at this address.
pub(crate) async fn nothing_here(uri: Uri) -> Response {
    match uri.path().starts_with("/api/") {
        true => (StatusCode::NOT_FOUND, "{\"error\":\"there is nothing at this address\",\"hint\":null}\n")
            .into_response(),
        false => {
            plain(StatusCode::NOT_FOUND, "There is nothing at this address", &[], None, Some(("/", "Home")))
        }
    }
}

/// The page for whoever is not logged in.
pub(crate) fn not_logged_in() -> Response {
    plain(
        StatusCode::UNAUTHORIZED,
        "You are not logged in",
        &[
            "On the machine of the daemon, run: pointsman web open",
            "It prints a link that logs this browser in.",
            "If you came from another page and are logged in, go on:",
        ],
        None,
        Some(("/", "Home")),
    )
}

fn set_cookie(response: &mut Response, app: &App, value: &str, life: &str) {
    let name = guard::cookie_name(app.address);
    let line = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{life}");
    if let Ok(line) = HeaderValue::from_str(&line) {
        response.headers_mut().insert(SET_COOKIE, line);
    }
}

fn go_to(href: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(href) = HeaderValue::from_str(href) {
        response.headers_mut().insert(LOCATION, href);
    }
    response
}

/// A failure, with the way back.
fn failed(failure: &Failure, back: &str) -> Response {
    let (status, title) = match failure.kind {
        FailureKind::Malformed => (StatusCode::BAD_REQUEST, "This makes no sense"),
        FailureKind::Refused => (StatusCode::CONFLICT, "Nothing was changed"),
        FailureKind::NotFound => (StatusCode::NOT_FOUND, "There is no such thing"),
        FailureKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "A service does not answer"),
        FailureKind::Failed => (StatusCode::INTERNAL_SERVER_ERROR, "This could not be done"),
    };
    let message = pointsman_core::text::clean_block(&failure.message, 4096);
    plain(status, title, &[&message], None, Some((back, "Back")))
}

fn plain(
    status: StatusCode,
    title: &str,
    lines: &[&str],
    code: Option<String>,
    link: Option<(&str, &str)>,
) -> Response {
    let link =
        link.map(|(href, name)| Link { href: href.to_owned(), name: name.to_owned(), is_current: false });
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    let version = env!("CARGO_PKG_VERSION");
    let mut response = page(&Plain { title: title.to_owned(), lines, code, link, version });
    *response.status_mut() = status;
    response
}

fn page(template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => {
            ([(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))], html).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be drawn");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
