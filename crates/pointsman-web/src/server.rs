//! The listener: connections within limits, and the addresses that are served.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use futures_util::future::{Either, select};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pointsman_view::web as view;
use tokio::sync::{Semaphore, watch};

use crate::backend::{Answer, Backend, Failure, FailureKind, Scopes};
use crate::guard::{self, Rates};
use crate::live::Bell;
use crate::login::Logins;
use crate::{api, assets, metrics, pages};

/// Connections at the same time. An open page holds one for its events.
const CONNECTIONS: usize = 2_000;
/// A connection that sends no whole head for so long is closed.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// The longest head.
const HEAD_BYTES: usize = 64 << 10;
/// The largest form: a review with comments on many lines.
const BODY_BYTES: usize = 1 << 20;
/// Questions to the daemon at the same time. Each may wait for a disk or for git.
const ASKING: usize = 8;
/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The things that all requests share. A clone costs nothing.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

/// The inside of [`App`].
pub(crate) struct Shared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) logins: Logins,
    pub(crate) rates: Rates,
    pub(crate) answers: api::Answers,
    pub(crate) bell: Bell,
    pub(crate) address: SocketAddr,
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    /// Asks the daemon on a thread that may wait.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Backend) -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        let backend = Arc::clone(&self.backend);
        let asked = tokio::task::spawn_blocking(move || question(&*backend)).await;
        asked.unwrap_or_else(|error| {
            tracing::error!(%error, "a page could not be made");
            Err(Failure {
                kind: FailureKind::Failed,
                message: "the daemon broke over this question".to_owned(),
            })
        })
    }
}

/// A server that listens. It ends when this value goes.
pub struct Server {
    handle: Handle,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// The part of a server that the daemon asks.
#[derive(Clone)]
pub struct Handle(App);

impl Handle {
    /// A link that logs a browser in as this person, once.
    pub fn link(&self, name: &str) -> io::Result<view::Link> {
        let (code, expires_at) = self.0.logins.link(name)?;
        let host = guard::link_host(self.0.address);
        Ok(view::Link { url: format!("http://{host}/login?code={code}"), expires_at: expires_at.into() })
    }

    /// A new token for this person; none if there are too many.
    pub fn create_token(&self, name: &str, label: &str, scopes: Scopes) -> io::Result<Option<view::Token>> {
        self.0.logins.create_token(name, label, scopes)
    }

    /// All tokens, without their secrets.
    pub fn tokens(&self) -> Vec<view::Token> {
        self.0.logins.tokens()
    }

    /// Makes a token worthless; none if there is no such token.
    pub fn revoke_token(&self, id: u64) -> io::Result<Option<view::Token>> {
        self.0.logins.revoke_token(id)
    }
}

impl Server {
    /// Listens at an address, and answers when requests are heard.
    pub fn start(listen: SocketAddr, backend: Arc<dyn Backend>, bell: Bell) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let logins = Logins::open(Arc::clone(&backend));
        let app = App(Arc::new(Shared {
            backend,
            logins,
            rates: Rates::default(),
            answers: api::Answers::default(),
            bell,
            address,
        }));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(ASKING)
            .thread_name("web-ask")
            .build()?;
        let (stop, stopped) = watch::channel(false);
        let serving = app.clone();
        let thread = std::thread::Builder::new().name("web".to_owned()).spawn(move || {
            runtime.block_on(serve(listener, serving, stopped));
            // A question that waits for a disk does not hold the daemon up.
            runtime.shutdown_background();
        })?;
        Ok(Self { handle: Handle(app), stop, thread: Some(thread) })
    }

    /// The address. Its port is a real one even if any was asked for.
    pub fn address(&self) -> SocketAddr {
        self.handle.0.address
    }

    /// The part that the daemon asks.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, app: App, mut stopped: watch::Receiver<bool>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "the web does not listen");
            return;
        }
    };
    let router = router(app);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let accepted = match select(pin!(listener.accept()), pin!(stopped.changed())).await {
            Either::Left((accepted, _)) => accepted,
            Either::Right(_) => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the web cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(HEAD_BYTES);
            // A caller that hangs up, or sends what is no request, is nobody's concern.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}

fn router(app: App) -> Router {
    Router::new()
        .route("/", get(pages::home))
        .route("/inbox", get(pages::inbox))
        .route("/inbox/{id}", get(pages::desk).post(pages::decide))
        .route("/login", get(pages::login).post(pages::log_in))
        .route("/logout", post(pages::log_out))
        .route("/live", get(pages::live))
        .route("/assets/{name}", get(assets::serve))
        .route("/metrics", get(metrics::serve))
        .nest("/api/v1", api::router())
        .fallback(pages::nothing_here)
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}
