//! The limits of every call, by name.

use std::time::Duration;

/// The limits of a call in time and size. Every call has all of them, because a server may hang or send without end.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a connection, with its name looked up and its TLS done.
    pub connect: Duration,
    /// For the whole of one try.
    pub call: Duration,
    /// Bytes of one answer.
    pub answer_bytes: u64,
    /// Tries of what may be repeated.
    pub tries: u32,
    /// The first pause between tries; doubles, with jitter.
    pub first_pause: Duration,
    /// The longest pause that is waited for within a call. A server that asks for more is asked later.
    pub longest_pause: Duration,
    /// Pages of one list: more than this is not a list, it is a mistake.
    pub pages: u32,
    /// Failures in a row before a host is left alone.
    pub failures: u32,
    /// How long it is left alone at first; doubles up to `longest_rest`.
    pub rest: Duration,
    pub longest_rest: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            call: Duration::from_secs(30),
            answer_bytes: 32 << 20,
            tries: 3,
            first_pause: Duration::from_millis(300),
            longest_pause: Duration::from_secs(5),
            pages: 400,
            failures: 5,
            rest: Duration::from_secs(10),
            longest_rest: Duration::from_secs(300),
        }
    }
}
