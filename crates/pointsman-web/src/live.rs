//! Streams of events: open pages hear that something changed, programs read the log as it grows.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::backend::Visitor;
use crate::server::App;

/// A page that hears nothing for 10 seconds says that it is not live.
const BEAT: Duration = Duration::from_secs(4);
/// Changes that come faster are told together.
const PAUSE: Duration = Duration::from_millis(100);
/// A browser that lost its stream comes back after this, in milliseconds.
const RETRY: &str = "retry: 1000\n\n";
/// Entries of the log that are read at once.
const PAGE: u32 = 500;

/// Rings when something changed. The loop of the daemon rings it and waits for nobody.
#[derive(Clone, Debug)]
pub struct Bell(Arc<watch::Sender<u64>>);

impl Default for Bell {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Bell {
    /// Tells everybody who listens.
    pub fn ring(&self) {
        self.0.send_modify(|rung| *rung = rung.wrapping_add(1));
    }

    fn listen(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

struct Changes {
    bell: watch::Receiver<u64>,
    next: Instant,
    begun: bool,
}

/// `GET /live`: an event for each change, without content. A page then asks for what it shows.
pub(crate) fn changes(app: &App) -> Response {
    let begin = Changes { bell: app.bell.listen(), next: Instant::now(), begun: false };
    stream_of(stream::unfold(begin, |mut state| async move {
        if !state.begun {
            state.begun = true;
            // Whatever changed between the page and this stream.
            return Some((chunk(&format!("{RETRY}event: change\ndata: \n\n")), state));
        }
        sleep_until(state.next).await;
        let text = match timeout(BEAT, state.bell.changed()).await {
            Ok(Ok(())) => "event: change\ndata: \n\n",
            Ok(Err(_)) => return None,
            Err(_) => "event: beat\ndata: \n\n",
        };
        state.next = Instant::now() + PAUSE;
        Some((chunk(text), state))
    }))
}

struct Log {
    app: App,
    by: Visitor,
    bell: watch::Receiver<u64>,
    last: i64,
    begun: bool,
}

/// `GET /api/v1/events` as a stream: every entry of the log after this one, once, in order.
pub(crate) fn log(app: App, by: Visitor, after: i64) -> Response {
    let bell = app.bell.listen();
    let begin = Log { app, by, bell, last: after, begun: false };
    stream_of(stream::unfold(begin, |mut state| async move {
        if !state.begun {
            state.begun = true;
            return Some((chunk(RETRY), state));
        }
        loop {
            // Marked as seen before the log is read: what comes in meanwhile rings again.
            state.bell.mark_unchanged();
            let (by, after) = (state.by.clone(), state.last);
            let read = state.app.ask(move |backend| backend.events(&by, after, PAGE)).await;
            let Ok(events) = read else { return None };
            let mut text = String::new();
            for event in events {
                let Ok(data) = serde_json::to_string(&event) else { return None };
                state.last = event.seq;
                text.push_str(&format!("id: {}\nevent: {}\ndata: {data}\n\n", event.seq, event.kind));
            }
            if !text.is_empty() {
                return Some((chunk(&text), state));
            }
            match timeout(BEAT, state.bell.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                // A comment, so that a dead connection is noticed.
                Err(_) => return Some((chunk(":\n\n"), state)),
            }
        }
    }))
}

fn chunk(text: &str) -> Result<Bytes, Infallible> {
    Ok(Bytes::copy_from_slice(text.as_bytes()))
}

fn stream_of(
    stream: impl futures_util::Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response {
    let mut response = Response::new(Body::from_stream(stream));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}
