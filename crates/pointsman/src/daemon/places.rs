//! Places on the control socket: how many may speak to the daemon at a time, and how often.
//!
//! People always find one. A session gets a few, everything that is not a person gets half of all. A connection counts
//! for nobody until it is known whose it is; the few that are being looked at are never turned away, they wait in the
//! socket's queue, because a look takes milliseconds and depends on nobody's good will.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pointsman_core::words;

use crate::control::caller::Told;

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

#[derive(Debug, Default)]
pub(crate) struct Places {
    taken: Mutex<Taken>,
    looked: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    looked_at: usize,
    all: usize,
    foreign: usize,
    each: BTreeMap<Whose, Share>,
}

#[derive(Debug)]
struct Share {
    open: usize,
    since: Instant,
    requests: u32,
}

/// Who shares a few places.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    People,
    /// With its keeper.
    Session(String),
    Nobody,
}

impl Whose {
    fn of(told: &Told) -> Self {
        match told {
            Told::Person { .. } => Self::People,
            Told::Session(session) | Told::Keeper(session) => Self::Session(session.clone()),
            Told::Other(_) => Self::Nobody,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::People => "everybody together".to_owned(),
            Self::Session(session) => format!("session {session}"),
            Self::Nobody => "what belongs to no person and no session".to_owned(),
        }
    }
}

/// The right to look at one more connection. Given back when it goes.
#[derive(Debug)]
pub(crate) struct Look(Arc<Places>);

/// A place that is taken. Given back when it goes.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    whose: Whose,
}

impl Places {
    /// Waits for the right to look at one more connection.
    pub(crate) fn look(self: &Arc<Self>) -> Look {
        let mut taken = self.lock();
        while taken.looked_at >= LOOKED_AT {
            taken = self.looked.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        taken.looked_at += 1;
        Look(Arc::clone(self))
    }

    /// Takes a place for one request; the sentence says why there is none.
    pub(crate) fn take(self: &Arc<Self>, told: &Told, now: Instant) -> Result<Place, String> {
        let whose = Whose::of(told);
        let mut taken = self.lock();
        // Whoever has no connection and asked nothing lately is forgotten.
        taken.each.retain(|_, share| share.open > 0 || now.duration_since(share.since) < WINDOW);
        let (all, foreign) = (taken.all, taken.foreign);
        let full = |whose: &Whose, limit| Err(words::access::too_many_connections(&whose.name(), limit));
        if all >= ALL {
            return full(&Whose::People, ALL);
        }
        if whose != Whose::People {
            if foreign >= FOREIGN {
                return full(&Whose::Nobody, FOREIGN);
            }
            let share = taken.each.entry(whose.clone()).or_insert(Share { open: 0, since: now, requests: 0 });
            if share.open >= EACH {
                return full(&whose, EACH);
            }
            if now.duration_since(share.since) >= WINDOW {
                (share.since, share.requests) = (now, 0);
            }
            if share.requests >= REQUESTS {
                return Err(words::access::too_many_requests(&whose.name(), REQUESTS, WINDOW.as_secs()));
            }
            share.open += 1;
            share.requests += 1;
            taken.foreign += 1;
        }
        taken.all += 1;
        Ok(Place { places: Arc::clone(self), whose })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        self.0.lock().looked_at -= 1;
        self.0.looked.notify_one();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all -= 1;
        if self.whose != Whose::People {
            taken.foreign -= 1;
        }
        if let Some(share) = taken.each.get_mut(&self.whose) {
            share.open -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::{ALL, EACH, FOREIGN, Place, Places, REQUESTS, WINDOW};
    use crate::control::caller::{Told, Unknown};

    fn session(number: usize) -> Told {
        Told::Session(format!("dev-shop-{number}.1"))
    }

    const ANN: Told = Told::Person { uid: 1000 };
    const CI: Told = Told::Other(Unknown::OfTheDaemon);

    #[test]
    fn whoever_floods_the_socket_leaves_half_of_it_to_people() {
        let (places, now) = (Arc::new(Places::default()), Instant::now());
        let mut held: Vec<Place> = (0..EACH).map(|_| places.take(&session(1), now).unwrap()).collect();
        let refused = places.take(&session(1), now).unwrap_err();
        assert!(refused.starts_with("session dev-shop-1.1 has 16 connections"), "{refused}");
        held.extend((0..EACH).map(|_| places.take(&CI, now).unwrap()));
        assert!(places.take(&Told::Other(Unknown::Marked), now).is_err(), "all that is nobody's shares");
        held.extend(
            (2..)
                .flat_map(|n| std::iter::repeat_n(n, EACH))
                .take(FOREIGN - 2 * EACH)
                .map(|n| places.take(&session(n), now).unwrap()),
        );
        assert!(places.take(&session(99), now).is_err());
        let people: Vec<Place> = (FOREIGN..ALL).map(|_| places.take(&ANN, now).unwrap()).collect();
        assert!(places.take(&ANN, now).is_err());
        drop((held, people));
        assert!(places.take(&session(1), now).is_ok() && places.take(&ANN, now).is_ok());
    }

    #[test]
    fn a_session_that_asks_too_often_waits_and_others_do_not() {
        let (places, now) = (Arc::new(Places::default()), Instant::now());
        for _ in 0..REQUESTS {
            places.take(&session(1), now).unwrap();
            places.take(&ANN, now).unwrap();
        }
        let refused = places.take(&session(1), now).unwrap_err();
        assert!(refused.contains("1000 requests within 10 s"), "{refused}");
        assert!(places.take(&session(2), now).is_ok() && places.take(&ANN, now).is_ok());
        assert!(places.take(&session(1), now + WINDOW).is_ok());
    }
}
