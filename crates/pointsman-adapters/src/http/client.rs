//! The HTTP client performs requests.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_core::text::clean_line;
use serde::de::DeserializeOwned;
use ureq::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};

use super::answer::{Answer, next_page};
use super::breaker::CallPermission;
use super::counts::Count;
use super::error::{Error, ErrorKind};
use super::etags::CachedAnswer;
use super::host::{Host, RateLimit};
use super::request::{Method, Request};
use super::{backoff, date};
use crate::retry::Retry;
use crate::secret::{Secret, Token};

/// How much of a server's words is repeated.
const WORDS: usize = 300;
/// A limit that is used up, without a word about when it ends.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(60);

/// The form of the `Authorization` header that a server expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `Authorization: Bearer …`
    Bearer,
    /// `Authorization: token …`, which every version of Forgejo and Gitea takes.
    Token,
}

/// A server with one account. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    host: Arc<Host>,
    account: u64,
    shown: Option<(Scheme, Token)>,
    hidden: Option<Secret>,
}

/// A try that failed, with the pause the server asks for.
struct Failed {
    error: Error,
    asked: Option<Duration>,
}

impl Client {
    pub(super) fn new(host: Arc<Host>, account: u64, shown: Option<(Scheme, Token)>) -> Self {
        Self { host, account, shown, hidden: None }
    }

    /// What the account shows to the server.
    fn authorization(&self, request: &Request) -> Result<Option<HeaderValue>, Error> {
        let Some((scheme, token)) = &self.shown else { return Ok(None) };
        let secret = token.now().map_err(|reason| {
            // Nothing of the request was sent.
            self.error(request, ErrorKind::Unreachable { reason: self.words(&reason) }, Retry::Later)
        })?;
        let word = match scheme {
            Scheme::Bearer => "Bearer",
            Scheme::Token => "token",
        };
        let mut value =
            HeaderValue::from_str(&format!("{word} {}", secret.expose())).expect("a token is visible ASCII");
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// The same, which also keeps this out of its words: an address can be a secret.
    pub(crate) fn hiding(self, secret: Secret) -> Self {
        Self { hidden: Some(secret), ..self }
    }

    /// The same account at another address of the same server, with counts and a breaker of its own.
    pub fn at(&self, base: &str) -> Self {
        let (limits, patience) = (self.host.limits, self.host.patience.clone());
        Self { host: Host::new(base, self.host.clock, limits, patience), ..self.clone() }
    }

    /// The server that all calls of this client go to.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Performs a request, again if it may be. A POST is repeated only if nothing of it can have happened.
    pub fn send(&self, request: &Request) -> Result<Answer, Error> {
        let mut failed = 0;
        loop {
            if let CallPermission::Rest(for_) = self.host.leave() {
                return Err(self.error(request, ErrorKind::Resting { for_ }, Retry::Later));
            }
            let Failed { error, asked } = match self.try_once(request) {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            failed += 1;
            tracing::debug!(%error, failed, "a call failed");
            if error.retry() != Retry::Later || failed >= self.host.limits.tries {
                return Err(error);
            }
            match backoff::pause(&self.host.limits, failed, asked) {
                Some(pause) if self.host.patience.wait(pause) => {}
                Some(_) | None => return Err(error),
            }
        }
    }

    /// Performs a request for a value.
    pub fn read<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Error> {
        self.send(request)?.json()
    }

    /// Like [`Self::read`]; nothing if the server knows no such thing.
    pub fn find<T: DeserializeOwned>(&self, request: &Request) -> Result<Option<T>, Error> {
        match self.read(request) {
            Ok(found) => Ok(Some(found)),
            Err(error) if matches!(error.status(), Some(404 | 410)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All of a list, page by page: by the server's links, else by its count, else until a page is empty.
    pub fn list<T: DeserializeOwned>(&self, request: &Request, per_page: usize) -> Result<Vec<T>, Error> {
        // One of the two names is the server's; the other is none of its business.
        let numbered = |page: u32| {
            request.clone().query("page", page).query("limit", per_page).query("per_page", per_page)
        };
        let mut all: Vec<T> = Vec::new();
        let mut asked = numbered(1);
        for page in 2..=self.host.limits.pages {
            let answer = self.send(&asked)?;
            // An empty list is `null` to some servers.
            let items: Vec<T> = answer.json::<Option<Vec<T>>>()?.unwrap_or_default();
            let got = items.len();
            all.extend(items);
            let more = match (&answer.next, answer.linked, answer.total) {
                (Some(_), ..) => true,
                (None, true, _) => false,
                (None, false, Some(total)) => all.len() < total,
                (None, false, None) => got >= per_page,
            };
            if got == 0 || !more {
                return Ok(all);
            }
            asked = match answer.next {
                Some(query) => request.page(&query),
                None => numbered(page),
            };
        }
        Err(self.error(request, ErrorKind::Endless { pages: self.host.limits.pages }, Retry::Never))
    }

    fn try_once(&self, request: &Request) -> Result<Answer, Failed> {
        let url = request.url(&self.host.base);
        let kept = match request.method {
            Method::Get => self.host.etags().get(self.account, &url),
            Method::Post | Method::Put | Method::Patch | Method::Delete => None,
        };
        if request.method != Method::Get {
            self.host.writes();
        }
        let begun = Instant::now();
        let heard = self.exchange(request, &url, kept.as_ref());
        let mut cost = Count { calls: 1, waited: begun.elapsed(), ..Count::default() };
        cost.sent = request.body.as_ref().map_or(0, |body| body.len() as u64);
        let judged = match heard {
            Ok((status, headers, body)) => {
                cost.received = body.len() as u64;
                cost.unchanged = u64::from(status == 304);
                self.judge(request, &url, kept, (status, headers, body))
            }
            Err(error) => {
                self.host.was_ill();
                Err(Failed { error, asked: None })
            }
        };
        cost.failed = u64::from(judged.is_err());
        self.host.counts().add(request.operation, cost);
        judged
    }

    /// One request and its whole answer, whatever it says.
    fn exchange(
        &self,
        request: &Request,
        url: &str,
        kept: Option<&CachedAnswer>,
    ) -> Result<(u16, HeaderMap, Vec<u8>), Error> {
        let accept = if request.json { "application/json" } else { "*/*" };
        let mut builder = ureq::http::Request::builder().method(request.method.name()).uri(url);
        if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept")) {
            builder = builder.header(ACCEPT, accept);
        }
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        if let Some(authorization) = self.authorization(request)? {
            builder = builder.header(AUTHORIZATION, authorization);
        }
        if let Some(kept) = kept {
            builder = builder.header("if-none-match", &kept.etag);
        }
        let odd = |error: ureq::http::Error| {
            let what = self.words(&error.to_string());
            self.error(request, ErrorKind::Unexpected { what }, Retry::Never)
        };
        let sent = match &request.body {
            Some(body) => {
                let ready = builder.header(CONTENT_TYPE, "application/json").body(&body[..]).map_err(odd)?;
                self.host.agent.run(ready)
            }
            None => self.host.agent.run(builder.body(()).map_err(odd)?),
        };
        let mut response = sent.map_err(|error| self.not_answered(request, error))?;
        let limit = self.host.limits.answer_bytes;
        let body = response.body_mut().with_config().limit(limit).read_to_vec();
        let body = body.map_err(|error| self.not_answered(request, error))?;
        Ok((response.status().as_u16(), response.headers().clone(), body))
    }

    fn judge(
        &self,
        request: &Request,
        url: &str,
        kept: Option<CachedAnswer>,
        (status, headers, body): (u16, HeaderMap, Vec<u8>),
    ) -> Result<Answer, Failed> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let server_now = header("date").and_then(date::http_date);
        if let Some(now) = server_now {
            self.host.heard_time(now);
        }
        let used_up = self.rate_limit(&headers, server_now);
        let mut answer = Answer {
            operation: request.operation,
            host: self.host.name().to_owned(),
            repeatable: request.repeatable,
            status,
            body,
            total: header("x-total-count").and_then(|text| text.parse().ok()),
            next: header("link").and_then(next_page),
            linked: header("link").is_some(),
        };
        match status {
            304 if kept.is_some() => {
                self.host.was_well();
                let kept = kept.expect("just looked");
                (answer.status, answer.body) = (200, kept.body);
                answer.linked |= kept.next.is_some();
                answer.next = answer.next.or(kept.next);
                Ok(answer)
            }
            200..=299 => {
                if request.json
                    && let Some(trouble) = self.not_data(&headers, &answer.body)
                {
                    self.host.was_ill();
                    return Err(self.failed(request, trouble, after(request)));
                }
                self.host.was_well();
                if let (Method::Get, Some(etag)) = (request.method, header("etag")) {
                    let (etag, body, next) = (etag.to_owned(), answer.body.clone(), answer.next.clone());
                    self.host.etags().put(self.account, url, CachedAnswer { etag, body, next });
                }
                Ok(answer)
            }
            300..=399 => {
                let to =
                    self.words(header("location").unwrap_or("nowhere").split('?').next().unwrap_or_default());
                Err(self.failed(request, ErrorKind::Moved { status, to }, Retry::Never))
            }
            403 | 429
                if used_up.is_some()
                    || status == 429
                    || header("retry-after").is_some()
                    // GitHub's secondary limit may come with nothing but words.
                    || self.reason(&headers, &answer.body).contains("secondary rate limit") =>
            {
                let asked = header("retry-after").and_then(|text| date::retry_after(text, server_now));
                let asked = retry_after_ms(&answer.body).or(asked);
                let for_ = asked.or(used_up).unwrap_or(UNKNOWN_PAUSE);
                self.host.was_well();
                if for_ > self.host.limits.longest_pause {
                    self.host.hold(for_);
                }
                let mut failed = self.failed(request, ErrorKind::Limited { for_ }, Retry::Later);
                failed.asked = Some(for_);
                Err(failed)
            }
            408 | 425 | 500..=599 => {
                self.host.was_ill();
                let reason = self.reason(&headers, &answer.body);
                let mut failed = self.failed(request, ErrorKind::Status { status, reason }, after(request));
                failed.asked = header("retry-after").and_then(|text| date::retry_after(text, server_now));
                Err(failed)
            }
            _ => {
                self.host.was_well();
                if let (401, Some((_, token))) = (status, &self.shown) {
                    token.refused();
                }
                let reason = self.reason(&headers, &answer.body);
                Err(self.failed(request, ErrorKind::Status { status, reason }, Retry::Never))
            }
        }
    }

    /// Notes how many requests are left, and answers how long to wait if none is.
    fn rate_limit(
        &self,
        headers: &HeaderMap,
        server_now: Option<pointsman_core::time::Timestamp>,
    ) -> Option<Duration> {
        let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
        let (limit, remaining) = (number("x-ratelimit-limit")?, number("x-ratelimit-remaining")?);
        let reset = number("x-ratelimit-reset").and_then(|seconds| i64::try_from(seconds).ok());
        let now = server_now.unwrap_or_else(self.host.clock);
        let reset = reset.map(|seconds| pointsman_core::time::Timestamp(seconds.saturating_mul(1000)));
        let resets_in = reset.map_or(UNKNOWN_PAUSE, |at| at.since(now));
        self.host.set_rate_limit(RateLimit { limit, remaining, resets_in });
        (remaining == 0).then_some(resets_in)
    }

    /// Why a body is not the data it should be.
    fn not_data(&self, headers: &HeaderMap, body: &[u8]) -> Option<ErrorKind> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
        if kind.starts_with("text/html") || first == Some(&b'<') {
            return Some(ErrorKind::WebPage { title: self.words(&title(body)) });
        }
        let whole = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
        (!whole).then_some(ErrorKind::Cut)
    }

    /// A server's reason for saying no: its message, the title of its page, or its first line.
    fn reason(&self, headers: &HeaderMap, body: &[u8]) -> String {
        #[derive(serde::Deserialize)]
        struct Said {
            #[serde(alias = "error")]
            message: Option<String>,
        }
        if let Ok(Said { message: Some(message) }) = serde_json::from_slice(body) {
            return self.words(&message);
        }
        match self.not_data(headers, body) {
            Some(ErrorKind::WebPage { title }) => title,
            _ => self.words(String::from_utf8_lossy(body).lines().next().unwrap_or_default()),
        }
    }

    /// Text of a server for an error: one line, not long, without our token.
    fn words(&self, text: &str) -> String {
        let line = clean_line(text, WORDS);
        let line = self.shown.as_ref().map_or_else(|| line.clone(), |(_, token)| token.redact(&line));
        self.hidden.iter().fold(line, |line, secret| secret.redact(&line))
    }

    fn not_answered(&self, request: &Request, error: ureq::Error) -> Error {
        use ureq::Timeout::{Connect, Resolve};
        let reason = self.words(&match &error {
            ureq::Error::Timeout(_) => format!("it took longer than {} s", self.host.limits.call.as_secs()),
            ureq::Error::Io(error) => error.to_string(),
            other => other.to_string(),
        });
        let unsent = match &error {
            ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::Tls(_)
            | ureq::Error::Rustls(_)
            | ureq::Error::Timeout(Connect | Resolve) => true,
            ureq::Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
            _ => false,
        };
        match error {
            ureq::Error::BodyExceedsLimit(limit) => {
                let retry = if request.repeatable { Retry::Never } else { Retry::LookFirst };
                self.error(request, ErrorKind::TooLarge { limit }, retry)
            }
            _ if unsent => self.error(request, ErrorKind::Unreachable { reason }, Retry::Later),
            _ => self.error(request, ErrorKind::Broken { reason }, after(request)),
        }
    }

    fn failed(&self, request: &Request, trouble: ErrorKind, retry: Retry) -> Failed {
        Failed { error: self.error(request, trouble, retry), asked: None }
    }

    fn error(&self, request: &Request, trouble: ErrorKind, retry: Retry) -> Error {
        Error { operation: request.operation, host: self.host.name().to_owned(), trouble, retry }
    }
}

/// What follows when a request was sent and nobody knows what became of it.
fn after(request: &Request) -> Retry {
    if request.repeatable { Retry::Later } else { Retry::LookFirst }
}

/// How long a server asks to be left alone in its words, as Matrix does.
fn retry_after_ms(body: &[u8]) -> Option<Duration> {
    #[derive(serde::Deserialize)]
    struct Said {
        retry_after_ms: u64,
    }
    serde_json::from_slice::<Said>(body).ok().map(|said| Duration::from_millis(said.retry_after_ms))
}

/// The title of a web page.
fn title(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(64 << 10)]);
    let lower = text.to_ascii_lowercase();
    let begin = lower.find("<title>").map(|at| at + "<title>".len());
    let inside = begin.and_then(|begin| Some(&text[begin..begin + lower[begin..].find('<')?]));
    inside.unwrap_or_default().trim().to_owned()
}
