//! Webhooks at work: who listens where, and what a ring does. It wakes the poller; what has happened is asked for.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use pointsman_adapters::secret::Secret;
use pointsman_adapters::webhook::{NewsTopic, WebhookListener, WebhookNews, WebhookReceiver};
use pointsman_core::ids::ProjectName;
use pointsman_core::schedule::WebhookSupport;
use pointsman_core::time::Timestamp;

use super::clock;
use super::effects::EffectPerformer;
use super::poller::{Poller, Question};
use super::served::Served;

/// A server that rang within this time will ring again; after that it is asked as if it never had.
const BELIEVED_FOR: Duration = Duration::from_secs(24 * 3600);
/// An address that could not be had is tried again after this long.
const AGAIN: Duration = Duration::from_secs(30);

/// A project that listens.
pub(crate) struct ProjectWebhooks {
    pub(crate) listen: SocketAddr,
    /// What its servers sign with.
    pub(crate) secret: Secret,
    /// When a webhook about checks came last, and one about anything else that tasks wait for. A server that tells of
    /// one need not tell of the other: Gitea before 1.23 and its forks have no event for the status of a commit.
    checks_at: AtomicI64,
    talk_at: AtomicI64,
    rings: AtomicU64,
}

/// Kinds of facts that a server may tell by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Checks,
    /// Issues, pull requests, reviews, comments.
    Talk,
}

impl ProjectWebhooks {
    /// Nothing was heard yet.
    pub(crate) fn new(listen: SocketAddr, secret: Secret) -> Self {
        let never = || AtomicI64::new(i64::MIN);
        Self { listen, secret, checks_at: never(), talk_at: never(), rings: AtomicU64::new(0) }
    }

    /// The number of webhooks so far that may be news of CI.
    pub(crate) fn rings(&self) -> u64 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Whether it can be relied on to ring for this kind of fact.
    pub(crate) fn webhook_support(&self, topic: Topic, now: Timestamp) -> WebhookSupport {
        let heard = match topic {
            Topic::Checks => &self.checks_at,
            Topic::Talk => &self.talk_at,
        };
        let heard = heard.load(Ordering::SeqCst);
        match heard != i64::MIN && Timestamp(heard).after(BELIEVED_FOR) > now {
            true => WebhookSupport::Told,
            false => WebhookSupport::Asking,
        }
    }

    fn hear(&self, about: NewsTopic, now: Timestamp) {
        match about {
            NewsTopic::Checks | NewsTopic::Begun => self.checks_at.store(now.0, Ordering::SeqCst),
            NewsTopic::Talk => self.talk_at.store(now.0, Ordering::SeqCst),
            // One that does not say what it is about promises nothing.
            NewsTopic::Push | NewsTopic::Anything => {}
        }
        match about {
            NewsTopic::Checks | NewsTopic::Anything => {
                self.rings.fetch_add(1, Ordering::SeqCst);
            }
            NewsTopic::Push | NewsTopic::Talk | NewsTopic::Begun => {}
        }
    }
}

/// The listeners of all projects; those that name the same address share one.
pub(crate) struct Webhooks {
    router: Arc<WebhookRouter>,
    doors: BTreeMap<SocketAddr, Result<WebhookListener, Timestamp>>,
}

impl Webhooks {
    /// Nobody listens yet.
    pub(crate) fn new(world: &Arc<EffectPerformer>, poller: &Arc<Poller>) -> Self {
        let router = Arc::new(WebhookRouter { world: Arc::downgrade(world), poller: Arc::downgrade(poller) });
        Self { router, doors: BTreeMap::new() }
    }

    /// Listens where the projects want it, and nowhere else.
    pub(crate) fn follow(&mut self, projects: &BTreeMap<ProjectName, Arc<Served>>, now: Timestamp) {
        let wanted = projects.values().filter_map(|served| Some(served.listening.as_ref()?.listen));
        let wanted: std::collections::BTreeSet<SocketAddr> = wanted.collect();
        self.doors.retain(|address, webhook_listener| match webhook_listener {
            Ok(_) => wanted.contains(address),
            Err(tried) => wanted.contains(address) && tried.after(AGAIN) > now && *tried <= now,
        });
        for address in wanted {
            self.doors.entry(address).or_insert_with(|| {
                let opened = WebhookListener::open(address, Arc::clone(&self.router) as _);
                match &opened {
                    Ok(webhook_listener) => {
                        tracing::info!(address = %webhook_listener.address(), "listening for webhooks")
                    }
                    Err(error) => tracing::warn!(%address, %error, "cannot listen for webhooks"),
                }
                opened.map_err(|_| now)
            });
        }
    }
}

/// Knows the projects and their secrets.
struct WebhookRouter {
    world: Weak<EffectPerformer>,
    poller: Weak<Poller>,
}

impl WebhookRouter {
    fn project(&self, name: &str) -> Option<Arc<Served>> {
        self.world.upgrade()?.project(&ProjectName::new(name)?)
    }
}

impl WebhookReceiver for WebhookRouter {
    fn secret(&self, project: &str) -> Option<Secret> {
        Some(self.project(project)?.listening.as_ref()?.secret.clone())
    }

    fn ring(&self, project: &str, ring: WebhookNews) {
        let (Some(served), Some(poller)) = (self.project(project), self.poller.upgrade()) else { return };
        tracing::info!(project, about = ?ring.about, "a webhook was heard");
        if let Some(listening) = &served.listening {
            listening.hear(ring.about, clock::now());
        }
        let ours = ring.by.as_deref().filter(|by| *by == served.forge.me());
        let wanted = match (ring.about, ours) {
            // Whoever waits for CI has heard it; nothing else follows from it.
            (NewsTopic::Checks | NewsTopic::Begun, _) => None,
            // What we have pushed or written ourselves is no news.
            (NewsTopic::Push, Some(_)) => None,
            (NewsTopic::Talk, Some(me)) if served.forge.is_echo(me) => None,
            (NewsTopic::Push, None) | (NewsTopic::Anything, _) => Some(Question::WithMain),
            (NewsTopic::Talk, _) => Some(Question::Plain),
        };
        if let Some(question) = wanted {
            poller.ask_soon(&served.config.name, question);
        }
    }
}
