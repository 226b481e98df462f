//! Limits on the control socket: how many connections the daemon serves at a time, and how many requests.
//!
//! People always get through. A session gets a few connections, and everybody except people gets half of all. A
//! connection counts for nobody until its caller is identified. Connections that are being identified are never turned
//! away. They wait in the socket's queue: a look reads `/proc` for a limited number of ancestors, and asks nobody.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pointsman_core::words;

use crate::control::caller::CallerKind;

/// Connections of everybody together; each has a thread.
const ALL: usize = 128;
/// Of these, for everybody but people.
const FOREIGN: usize = 64;
/// Of these, for one session, and for everything that is nobody's together. An agent that uses tools side by side has
/// a hook for each, answered within milliseconds.
const EACH: usize = 16;
/// Requests of one session, and of everything that is nobody's together, within [`WINDOW`]. The busiest agent has some
/// tens of hooks per second.
const REQUESTS: u32 = 1000;
const WINDOW: Duration = Duration::from_secs(10);
/// Connections that are being looked at. The socket's own queue holds the next.
const LOOKED_AT: usize = 16;

/// Counts connections and requests, and refuses those that are too many.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLimits {
    taken: Mutex<Counts>,
    looked: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    looked_at: usize,
    all: usize,
    foreign: usize,
    each: BTreeMap<Group, GroupCount>,
}

#[derive(Debug)]
struct GroupCount {
    open: usize,
    since: Instant,
    requests: u32,
}

/// Callers that share a limit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    People,
    /// With its keeper.
    Session(String),
    Nobody,
}

impl Group {
    fn of(caller: &CallerKind) -> Self {
        match caller {
            CallerKind::Person { .. } => Self::People,
            CallerKind::Session(session) | CallerKind::Keeper(session) => Self::Session(session.clone()),
            CallerKind::Other(_) => Self::Nobody,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::People => words::access::EVERYBODY.to_owned(),
            Self::Session(session) => format!("session {session}"),
            Self::Nobody => words::access::WITHOUT_RIGHTS.to_owned(),
        }
    }
}

/// The right to look at one more connection, until the value is dropped.
#[derive(Debug)]
pub(crate) struct LookPermit(Arc<ConnectionLimits>);

/// A connection that counts. It no longer counts once the value is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    limits: Arc<ConnectionLimits>,
    group: Group,
}

impl ConnectionLimits {
    /// Waits for the right to look at one more connection.
    pub(crate) fn look(self: &Arc<Self>) -> LookPermit {
        let mut taken = self.lock();
        while taken.looked_at >= LOOKED_AT {
            taken = self.looked.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        taken.looked_at += 1;
        LookPermit(Arc::clone(self))
    }

    /// Counts a connection with one request; the sentence says why it is refused.
    pub(crate) fn take(self: &Arc<Self>, caller: &CallerKind, now: Instant) -> Result<Connection, String> {
        let group = Group::of(caller);
        let mut taken = self.lock();
        // Whoever has no connection and asked nothing lately is forgotten.
        taken.each.retain(|_, share| share.open > 0 || now.duration_since(share.since) < WINDOW);
        let (all, foreign) = (taken.all, taken.foreign);
        let full = |who: &str, limit| Err(words::access::too_many_connections(who, limit));
        if all >= ALL {
            return full(words::access::EVERYBODY, ALL);
        }
        if group != Group::People {
            if foreign >= FOREIGN {
                return full(words::access::ALL_BUT_PEOPLE, FOREIGN);
            }
            let share =
                taken.each.entry(group.clone()).or_insert(GroupCount { open: 0, since: now, requests: 0 });
            if share.open >= EACH {
                return full(&group.name(), EACH);
            }
            if now.duration_since(share.since) >= WINDOW {
                (share.since, share.requests) = (now, 0);
            }
            if share.requests >= REQUESTS {
                return Err(words::access::too_many_requests(&group.name(), REQUESTS, WINDOW.as_secs()));
            }
            share.open += 1;
            share.requests += 1;
            taken.foreign += 1;
        }
        taken.all += 1;
        Ok(Connection { limits: Arc::clone(self), group })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LookPermit {
    fn drop(&mut self) {
        self.0.lock().looked_at -= 1;
        self.0.looked.notify_one();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut taken = self.limits.lock();
        taken.all -= 1;
        if self.group != Group::People {
            taken.foreign -= 1;
        }
        if let Some(share) = taken.each.get_mut(&self.group) {
            share.open -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::{ALL, Connection, ConnectionLimits, EACH, FOREIGN, REQUESTS, WINDOW};
    use crate::control::caller::{CallerKind, Unknown};

    fn session(number: usize) -> CallerKind {
        CallerKind::Session(format!("dev-shop-{number}.1"))
    }

    const ANN: CallerKind = CallerKind::Person { uid: 1000 };
    const CI: CallerKind = CallerKind::Other(Unknown::OfTheDaemon);

    #[test]
    fn whoever_floods_the_socket_leaves_half_of_it_to_people() {
        let (limits, now) = (Arc::new(ConnectionLimits::default()), Instant::now());
        let mut held: Vec<Connection> = (0..EACH).map(|_| limits.take(&session(1), now).unwrap()).collect();
        let refused = limits.take(&session(1), now).unwrap_err();
        assert!(refused.contains("16 connections are open, the limit for session dev-shop-1.1"), "{refused}");
        held.extend((0..EACH).map(|_| limits.take(&CI, now).unwrap()));
        assert!(
            limits.take(&CallerKind::Other(Unknown::Marked), now).is_err(),
            "all that is nobody's shares"
        );
        held.extend(
            (2..)
                .flat_map(|n| std::iter::repeat_n(n, EACH))
                .take(FOREIGN - 2 * EACH)
                .map(|n| limits.take(&session(n), now).unwrap()),
        );
        let refused = limits.take(&session(99), now).unwrap_err();
        assert!(
            refused.contains("64 connections are open, the limit for all callers except people"),
            "{refused}"
        );
        let people: Vec<Connection> = (FOREIGN..ALL).map(|_| limits.take(&ANN, now).unwrap()).collect();
        assert!(limits.take(&ANN, now).is_err());
        drop((held, people));
        assert!(limits.take(&session(1), now).is_ok() && limits.take(&ANN, now).is_ok());
    }

    #[test]
    fn a_session_that_asks_too_often_waits_and_others_do_not() {
        let (limits, now) = (Arc::new(ConnectionLimits::default()), Instant::now());
        for _ in 0..REQUESTS {
            limits.take(&session(1), now).unwrap();
            limits.take(&ANN, now).unwrap();
        }
        let refused = limits.take(&session(1), now).unwrap_err();
        assert!(refused.contains("1000 requests came within 10 s"), "{refused}");
        assert!(limits.take(&session(2), now).is_ok() && limits.take(&ANN, now).is_ok());
        assert!(limits.take(&session(1), now + WINDOW).is_ok());
    }
}
