//! The web's side of the daemon: visitors ask and order as commands do, through the same access rule.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use pointsman_adapters::phase_file;
use pointsman_core::config::MachineWeb;
use pointsman_core::part::question::QuestionId;
use pointsman_core::review::comments;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_view::event::Event;
use pointsman_view::inbox::Question;
use pointsman_view::status::Status;
use pointsman_view::web::Link;
pub(crate) use pointsman_web::Bell;
use pointsman_web::{Answer, Backend, Desk, Failure, FailureKind, Handle, Order, Server, Visitor, Way};
use serde_json::Value;

use super::answer::{done, failed};
use super::clock;
use super::control::Control;
use crate::cli::{self, WebFailure, pages};
use crate::control::caller::{Caller, Channel, Scopes};
use crate::control::protocol::{FailureKind as Kind, ForgeCommand, InboxCommand, Reply, Request, WebCommand};
use crate::enclosure;
use crate::paths::Paths;
use crate::remote::Environment;

/// The file with the hashes of logins and tokens.
const KEYS: &str = "web-logins.json";
/// Far more than the logins and tokens that are allowed.
const KEYS_BYTES: u64 = 1 << 20;
/// The variable that takes precedence over `web.listen`: the demo, copies of a daemon and tests set it.
const LISTEN: &str = "POINTSMAN_WEB_LISTEN";

/// The web as the control socket knows it.
pub(crate) enum Web {
    Serves(Handle),
    /// Why nobody listens.
    Silent(String),
}

impl Web {
    /// A login link for this person; none if nobody listens.
    pub(crate) fn link(&self, name: &str) -> Option<Link> {
        match self {
            Self::Serves(handle) => handle.link(name).ok(),
            Self::Silent(_) => None,
        }
    }
}

/// Starts the web where the machine's file wants it. Without it everything else works all the same.
pub(crate) fn start(
    paths: &Paths,
    control: &Arc<Control>,
    bell: Bell,
    environment: Environment,
) -> Option<Server> {
    let (server, web) = match address(environment) {
        Ok(None) => (None, Web::Silent(words::web::OFF.to_owned())),
        Ok(Some(address)) => {
            let backend = DaemonBackend { paths: paths.clone(), control: Arc::downgrade(control) };
            match Server::start(address, Arc::new(backend), bell) {
                Ok(server) => {
                    tracing::info!(address = %server.address(), "the web listens");
                    let web = Web::Serves(server.handle());
                    (Some(server), web)
                }
                Err(error) => {
                    let why = words::web::does_not_listen(&address.to_string(), &error.to_string());
                    tracing::warn!("{why}");
                    (None, Web::Silent(why))
                }
            }
        }
        Err(why) => {
            tracing::warn!("{why}");
            (None, Web::Silent(why))
        }
    };
    let _ = control.web.set(web);
    server
}

fn address(environment: Environment) -> Result<Option<SocketAddr>, String> {
    let listen = match environment(LISTEN) {
        Some(listen) => listen.to_string_lossy().into_owned(),
        None => enclosure::web(environment).map_err(|error| format!("{error:#}"))?.listen,
    };
    MachineWeb::address(&listen)
}

/// Carries out an order about who may use the web. The access rule has put the caller's name into it.
pub(super) fn answer(web: Option<&Web>, command: WebCommand) -> Reply {
    let handle = match web {
        Some(Web::Serves(handle)) => handle,
        Some(Web::Silent(why)) => return failed(Kind::Refused, why.clone()),
        None => return failed(Kind::Unavailable, words::access::BUSY.to_owned()),
    };
    let broken = |error: io::Error| failed(Kind::Failed, words::web::logins_not_kept(&error.to_string()));
    match command {
        WebCommand::Link { by } => handle.link(&by).map_or_else(broken, done),
        WebCommand::CreateToken { label, read, order, approve, by } => {
            let scopes = pointsman_web::Scopes { read, order, approve };
            if scopes == pointsman_web::Scopes::default() {
                return failed(Kind::Refused, words::web::NO_SCOPE.to_owned());
            }
            match handle.create_token(&by, &label, scopes) {
                Ok(Some(token)) => done(token),
                Ok(None) => failed(Kind::Refused, words::web::TOO_MANY_TOKENS.to_owned()),
                Err(error) => broken(error),
            }
        }
        WebCommand::ListTokens => done(handle.tokens()),
        WebCommand::RevokeToken { id } => match handle.revoke_token(id) {
            Ok(Some(token)) => done(token),
            Ok(None) => failed(Kind::NotFound, words::web::no_token(id)),
            Err(error) => broken(error),
        },
    }
}

/// The daemon as visitors ask it.
struct DaemonBackend {
    paths: Paths,
    /// The control has the server, and the server has this.
    control: Weak<Control>,
}

impl DaemonBackend {
    /// Asks as this visitor. The access rule decides, as for everybody.
    fn ask(&self, by: &Visitor, request: &Request) -> Reply {
        match self.control.upgrade() {
            Some(control) => control.answer(&caller(by), request),
            None => failed(Kind::Unavailable, words::access::BUSY.to_owned()),
        }
    }

    /// What commands read, read for this visitor.
    fn read<T>(&self, by: &Visitor, read: impl FnOnce(&cli::Context) -> Result<T, WebFailure>) -> Answer<T> {
        let (control, caller) = (Weak::clone(&self.control), caller(by));
        let ask = move |request: &Request| match control.upgrade() {
            Some(control) => control.answer(&caller, request),
            None => failed(Kind::Unavailable, words::access::BUSY.to_owned()),
        };
        let context = cli::inside_daemon(self.paths.clone(), Arc::new(ask));
        read(&context).map_err(|failure| Failure {
            kind: kind_of(failure.kind()),
            message: failure.message().to_owned(),
        })
    }
}

impl Backend for DaemonBackend {
    fn now(&self) -> Timestamp {
        clock::now()
    }

    fn status(&self, by: &Visitor) -> Answer<Status> {
        self.read(by, pages::status)
    }

    fn inbox(&self, by: &Visitor) -> Answer<Vec<Question>> {
        self.read(by, pages::inbox)
    }

    fn question(&self, by: &Visitor, id: QuestionId) -> Answer<Question> {
        self.read(by, |context| pages::question(context, id))
    }

    fn desk(&self, by: &Visitor, id: QuestionId, since: bool) -> Answer<Desk> {
        self.read(by, |context| pages::desk(context, id, since))
    }

    fn carry_out(&self, by: &Visitor, order: &Order) -> Answer<Value> {
        // The access rule puts the visitor's name into the request.
        let who = String::new();
        let settle = |id: QuestionId, command: InboxCommand| {
            let project = self.question(by, id)?.project;
            Ok(Request::Inbox { project, question: id, command })
        };
        let request = match order {
            Order::Approve { question } => settle(*question, InboxCommand::Approve { by: who }),
            Order::Reject { question, feedback } => {
                settle(*question, InboxCommand::Reject { reason: comments::body(feedback), by: who })
            }
            Order::Answer { question, text } => {
                settle(*question, InboxCommand::Answer { text: text.clone(), by: who })
            }
            Order::Dismiss { question } => settle(*question, InboxCommand::Dismiss { by: who }),
            Order::Task { project, issue, order } => {
                Ok(Request::Order { project: project.clone(), issue: *issue, order: *order })
            }
            Order::FileIssue { project, title, body, labels } => {
                let (title, body, labels) = (title.clone(), body.clone(), labels.clone());
                let command = ForgeCommand::CreateIssue { title, body, labels, author: who };
                Ok(Request::Forge { project: project.clone(), command })
            }
        }?;
        // Before the order: the branch may move because of it.
        if let Order::Approve { question } | Order::Reject { question, .. } = order {
            let _ = self.read(by, |context| {
                pages::decided(context, &pages::question(context, *question)?);
                Ok(())
            });
        }
        match self.ask(by, &request) {
            Reply::Done { value } => Ok(value),
            Reply::Failed { kind, message } => Err(Failure { kind: kind_of(kind), message }),
        }
    }

    fn events(&self, by: &Visitor, after: i64, limit: u32) -> Answer<Vec<Event>> {
        self.read(by, |context| pages::events(context, after, limit))
    }

    fn last_event(&self) -> Answer<i64> {
        let broken = |why: String| Failure { kind: FailureKind::Failed, message: why };
        let control = self.control.upgrade().ok_or_else(|| broken(words::access::BUSY.to_owned()))?;
        control.world.read(|store| store.last_seq()).map_err(|error| broken(error.to_string()))
    }

    fn load_keys(&self) -> io::Result<Option<Vec<u8>>> {
        let path = self.paths.state().join(KEYS);
        phase_file::read_result_file(&path, KEYS_BYTES)
            .map_err(|refusal| io::Error::other(refusal.to_string()))
    }

    fn keep_keys(&self, text: &[u8]) -> io::Result<()> {
        phase_file::write_state_file(&self.paths.state().join(KEYS), text)
    }
}

/// A visitor, as the access rule knows callers.
fn caller(by: &Visitor) -> Caller {
    let pointsman_web::Scopes { read, order, approve } = by.scopes;
    let channel = match by.way {
        Way::Page => Channel::Web,
        Way::Api => Channel::Api,
    };
    Caller::Token { name: by.name.clone(), scopes: Scopes { read, order, approve }, channel }
}

fn kind_of(kind: Kind) -> FailureKind {
    match kind {
        Kind::Refused => FailureKind::Refused,
        Kind::NotFound => FailureKind::NotFound,
        Kind::Unavailable | Kind::NoDaemon => FailureKind::Unavailable,
        Kind::Failed | Kind::Configuration => FailureKind::Failed,
    }
}
