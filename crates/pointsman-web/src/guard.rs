//! The guard: every request is looked at here before anything else sees it.
//!
//! A name that is not ours is turned away, because a foreign page can make its own name point here. A form from elsewhere is
//! turned away. Whoever is not logged in sees the login. Every answer says what a browser may do with it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use pointsman_core::words;

use crate::backend::{Failure, FailureKind, Visitor};
use crate::server::App;
use crate::{api, pages};

/// An answer takes no longer than this to begin.
const LIMIT: Duration = Duration::from_secs(60);
/// Orders of one visitor within [`WINDOW`].
const ORDERS: u32 = 120;
/// Attempts to log in, of everybody, within [`WINDOW`].
const LOGINS: u32 = 60;
const WINDOW: Duration = Duration::from_secs(60);
/// The name in login links. Cookies take no notice of ports, so a name of its own keeps ours from other servers on this machine.
const NAME: &str = "pointsman.localhost";

/// No script, style or image from elsewhere, none inside of the page, and nobody shows us in a frame.
const POLICY: &str =
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // A form of ours says where it comes from, and nobody else learns our addresses.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// The login of a browser: its cookie. Tokens of forms are made from it.
#[derive(Clone)]
pub(crate) struct Cookie(pub(crate) String);

/// Counts orders and attempts to log in.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<BTreeMap<String, (Option<Instant>, u32)>>);

impl Rates {
    /// Counts one more; says whether it is within the limit.
    fn take(&self, who: &str, limit: u32, now: Instant) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (since, _)| since.is_some_and(|since| now.duration_since(since) < WINDOW));
        let (since, count) = all.entry(who.to_owned()).or_insert((Some(now), 0));
        since.get_or_insert(now);
        *count += 1;
        *count <= limit
    }
}

/// The host in a login link.
pub(crate) fn link_host(address: SocketAddr) -> String {
    match address.ip().is_loopback() {
        true => format!("{NAME}:{}", address.port()),
        false => address.to_string(),
    }
}

/// Whether a request names us, and not a name that somebody else made point here.
fn is_our_name(host: &str, address: SocketAddr) -> bool {
    let port = address.port();
    let ours = [NAME, "localhost", "127.0.0.1", "[::1]"];
    host.eq_ignore_ascii_case(&address.to_string())
        || ours.iter().any(|name| host.eq_ignore_ascii_case(&format!("{name}:{port}")))
}

/// The only value of a header; none if it is missing or there twice.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() { None } else { first.to_str().ok() }
}

/// The name of the cookie. Two daemons on one machine differ in their ports.
pub(crate) fn cookie_name(address: SocketAddr) -> String {
    format!("pointsman-{}", address.port())
}

fn cookie(headers: &HeaderMap, address: SocketAddr) -> Option<String> {
    let wanted = cookie_name(address);
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned())
}

/// Looks at a request, and passes it on if nothing is wrong with it.
pub(crate) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let mut response = match admit(&app, &mut request) {
        Ok(()) => match tokio::time::timeout(LIMIT, next.run(request)).await {
            Ok(response) => response,
            Err(_) => (StatusCode::GATEWAY_TIMEOUT, "the daemon does not answer\n").into_response(),
        },
        Err(response) => *response,
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Lets a request in with its visitor, or answers in its place.
fn admit(app: &App, request: &mut Request) -> Result<(), Box<Response>> {
    let refuse =
        |status: StatusCode, why: &'static str| Err(Box::new((status, format!("{why}\n")).into_response()));
    let headers = request.headers();
    let Some(host) = only(headers, &header::HOST).filter(|host| is_our_name(host, app.address)) else {
        return refuse(StatusCode::MISDIRECTED_REQUEST, "this server does not answer under that name");
    };
    let path = request.uri().path();
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let is_open = path == "/login" || path.starts_with("/assets/");
    let bearer = only(headers, &header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    // A program with a token has no cookie that a foreign page could use.
    let is_for_programs = path.starts_with("/api/") || path == "/metrics";
    let is_program = bearer.is_some() && is_for_programs;
    if changes && !is_program {
        let origin = only(headers, &header::ORIGIN);
        if origin != Some(&format!("http://{host}")) {
            return refuse(StatusCode::FORBIDDEN, "a form must come from a page of this server");
        }
    }
    if path == "/login" && changes && !app.rates.take("login", LOGINS, Instant::now()) {
        return refuse(StatusCode::TOO_MANY_REQUESTS, "too many attempts to log in; wait a minute");
    }
    if is_open {
        return Ok(());
    }
    let cookie = cookie(headers, app.address).filter(|_| !is_program);
    let visitor: Option<Visitor> = match (bearer.filter(|_| is_program), &cookie) {
        (Some(token), _) => app.logins.of_token(token),
        (None, Some(cookie)) => app.logins.of_cookie(cookie),
        (None, None) => None,
    };
    let Some(visitor) = visitor else {
        return Err(Box::new(match is_for_programs {
            true => api::not_logged_in(),
            false => pages::not_logged_in(),
        }));
    };
    if changes && !app.rates.take(&format!("order {}", visitor.name), ORDERS, Instant::now()) {
        return refuse(StatusCode::TOO_MANY_REQUESTS, "too many orders; wait a minute");
    }
    if !changes && !visitor.scopes.read {
        let message = words::web::NO_READ.to_owned();
        return Err(Box::new(api::refused(&Failure { kind: FailureKind::Refused, message })));
    }
    request.extensions_mut().insert(visitor);
    if let Some(cookie) = cookie {
        request.extensions_mut().insert(Cookie(cookie));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Instant;

    use super::{ORDERS, Rates, WINDOW, is_our_name, link_host};

    #[test]
    fn only_our_own_names_are_answered() {
        let address: SocketAddr = "127.0.0.1:7180".parse().unwrap();
        assert_eq!(link_host(address), "pointsman.localhost:7180");
        for ours in
            ["127.0.0.1:7180", "localhost:7180", "LOCALHOST:7180", "[::1]:7180", "pointsman.localhost:7180"]
        {
            assert!(is_our_name(ours, address), "{ours}");
        }
        for foreign in [
            "",
            "evil.example",
            "evil.example:7180",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost.evil.example:7180",
        ] {
            assert!(!is_our_name(foreign, address), "{foreign}");
        }
    }

    #[test]
    fn whoever_orders_too_often_waits() {
        let (rates, now) = (Rates::default(), Instant::now());
        assert!((0..ORDERS).all(|_| rates.take("order ann", ORDERS, now)));
        assert!(!rates.take("order ann", ORDERS, now));
        assert!(rates.take("order ben", ORDERS, now));
        assert!(rates.take("order ann", ORDERS, now + WINDOW));
    }
}
