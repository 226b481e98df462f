//! Webhooks: a listener that believes nothing but a signature.
//!
//! A webhook only rings: what is true is asked for afterwards. Of what it says only what it is about and whose deed it
//! was are looked at, once the signature is right, to know which question is worth asking; so a webhook that is lost, late
//! or rung again by a stranger costs time or a question at the most. `request` reads a request within limits,
//! `signature` checks it, `news` is what is read out of it, here is who listens and what is answered.

mod news;
mod request;
mod signature;

use std::collections::{HashSet, VecDeque};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use news::{NewsTopic, WebhookNews};
use request::Head;

use crate::secret::Secret;

/// The path before the name of a project.
const PATH: &str = "/webhook/";
/// A request takes no longer than this, whatever it does in the meantime.
const LIMIT: Duration = Duration::from_secs(10);
/// Requests at the same time; who comes in addition is sent away.
const CALLERS: usize = 16;
/// As much as GitHub sends at the most.
const BODY: u64 = 25 << 20;
/// Deliveries that are remembered, so that none counts twice.
const REMEMBERED: usize = 4096;
/// How long, and how much of, what nobody reads any more is taken before hanging up.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;
/// After an error of the listener itself.
const PAUSE: Duration = Duration::from_millis(100);

/// The receiver of verified webhooks.
pub trait WebhookReceiver: Send + Sync + 'static {
    /// The secret of a project; none if nobody of that name listens here.
    fn secret(&self, project: &str) -> Option<Secret>;

    /// Something has happened there, as far as its server says.
    fn ring(&self, project: &str, ring: WebhookNews);
}

/// A listener. It ends when this goes.
pub struct WebhookListener {
    address: SocketAddr,
    shut: Arc<AtomicBool>,
}

impl WebhookListener {
    /// Listens at an address.
    pub fn open(address: SocketAddr, receiver: Arc<dyn WebhookReceiver>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let shut = Arc::new(AtomicBool::new(false));
        let state =
            Arc::new(ListenerState { receiver, callers: AtomicUsize::new(0), delivered: Mutex::default() });
        let told = Arc::clone(&shut);
        std::thread::Builder::new()
            .name("webhooks".to_owned())
            .spawn(move || state.receive(&listener, &told))?;
        Ok(Self { address, shut })
    }

    /// The address of the listener. Its port is a real one even if any was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for WebhookListener {
    fn drop(&mut self) {
        self.shut.store(true, Ordering::SeqCst);
        // Wakes the listener. If nobody answers, it has ended already.
        let _ = TcpStream::connect_timeout(&self.address, PAUSE);
    }
}

/// What all callers share.
struct ListenerState {
    receiver: Arc<dyn WebhookReceiver>,
    callers: AtomicUsize,
    delivered: Mutex<Delivered>,
}

/// The names of the last deliveries.
#[derive(Default)]
struct Delivered {
    names: HashSet<String>,
    order: VecDeque<String>,
}

/// What a caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    Taken,
    Malformed,
    NotSigned,
    Unknown,
    OnlyPost,
    TooSlow,
    Again,
    NoLength,
    TooLarge,
    Busy,
}

impl ListenerState {
    fn receive(self: Arc<Self>, listener: &TcpListener, shut: &AtomicBool) {
        loop {
            let accepted = listener.accept();
            if shut.load(Ordering::SeqCst) {
                return;
            }
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "webhooks");
                    std::thread::park_timeout(PAUSE);
                    continue;
                }
            };
            if self.callers.fetch_add(1, Ordering::SeqCst) >= CALLERS {
                self.callers.fetch_sub(1, Ordering::SeqCst);
                say(&stream, Reply::Busy);
                continue;
            }
            let state = Arc::clone(&self);
            let spawned = std::thread::Builder::new().name("webhook".to_owned()).spawn(move || {
                let reply = state.hear(&stream);
                if reply != Reply::Taken {
                    tracing::info!(?reply, "a webhook was not taken");
                }
                say(&stream, reply);
                let_read(&stream);
                state.callers.fetch_sub(1, Ordering::SeqCst);
            });
            if let Err(error) = spawned {
                tracing::warn!(%error, "webhooks");
                self.callers.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// One request, to the end.
    fn hear(&self, stream: &TcpStream) -> Reply {
        let mut caller = request::Caller::new(stream, Instant::now() + LIMIT);
        let head = match caller.head() {
            Ok(head) => head,
            Err(reply) => return reply,
        };
        if head.method != "POST" {
            return Reply::OnlyPost;
        }
        let Some(project) = head.path.strip_prefix(PATH) else { return Reply::Unknown };
        let Some(secret) = self.receiver.secret(project) else { return Reply::Unknown };
        let length = match head.header("content-length").map(str::parse::<u64>) {
            Some(Ok(length)) if length <= BODY => length,
            Some(Ok(_)) => return Reply::TooLarge,
            Some(Err(_)) => return Reply::Malformed,
            None => return Reply::NoLength,
        };
        let mut check = signature::Check::new(&head, &secret);
        let mut kept = news::Kept::new(length);
        let heard = caller.body(length, |part| {
            check.take(part);
            kept.take(part);
        });
        if let Err(reply) = heard {
            return reply;
        }
        if !check.succeeds() {
            return Reply::NotSigned;
        }
        if delivery(&head).is_some_and(|name| !self.is_new(project, name)) {
            return Reply::Again;
        }
        self.receiver.ring(project, kept.ring(&head));
        Reply::Taken
    }

    fn is_new(&self, project: &str, delivery: &str) -> bool {
        let name = format!("{project} {delivery}");
        let mut delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        if !delivered.names.insert(name.clone()) {
            return false;
        }
        delivered.order.push_back(name);
        if delivered.order.len() > REMEMBERED
            && let Some(oldest) = delivered.order.pop_front()
        {
            delivered.names.remove(&oldest);
        }
        true
    }
}

/// The server's name for a delivery.
fn delivery(head: &Head) -> Option<&str> {
    ["x-github-delivery", "x-forgejo-delivery", "x-gitea-delivery", "x-gitlab-event-uuid"]
        .iter()
        .find_map(|name| head.header(name))
}

fn say(mut stream: &TcpStream, reply: Reply) {
    let (status, words) = match reply {
        Reply::Taken => ("202 Accepted", "heard"),
        Reply::Malformed => ("400 Bad Request", "not a request"),
        Reply::NotSigned => ("401 Unauthorized", "the signature is missing or wrong: is it the same secret?"),
        Reply::Unknown => {
            ("404 Not Found", "no project of that name listens here; the path is /webhook/NAME")
        }
        Reply::OnlyPost => ("405 Method Not Allowed", "webhooks are posted"),
        Reply::TooSlow => ("408 Request Timeout", "too slow"),
        Reply::Again => ("409 Conflict", "this delivery was heard before"),
        Reply::NoLength => ("411 Length Required", "say how long it is"),
        Reply::TooLarge => ("413 Content Too Large", "too large"),
        Reply::Busy => ("503 Service Unavailable", "too many at once"),
    };
    let length = words.len() + 1;
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{words}\n"
    );
    // Who has gone does not want to know.
    let _ = stream.set_write_timeout(Some(LIMIT)).and_then(|()| stream.write_all(text.as_bytes()));
}

/// Who still sends would lose our answer if we just hung up: it is taken for a moment, up to a limit.
fn let_read(mut stream: &TcpStream) {
    let deadline = Instant::now() + LINGER;
    let mut part = [0; 4096];
    let mut taken = 0;
    let _ = stream.shutdown(Shutdown::Write);
    while taken < LINGER_BYTES {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match stream.set_read_timeout(Some(left)).and_then(|()| stream.read(&mut part)) {
            Ok(got) if got > 0 && Instant::now() < deadline => taken += got,
            Ok(_) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests;
