//! Answers that are kept, to be asked for with "only if it changed".

use std::collections::HashMap;

/// The most bytes of answers that are kept.
const BYTES: usize = 16 << 20;

/// An answer and the server's name for its version.
#[derive(Clone)]
pub(super) struct CachedAnswer {
    pub(super) etag: String,
    pub(super) body: Vec<u8>,
    pub(super) next: Option<String>,
}

/// By account and address: what one account sees is not for another.
#[derive(Default)]
pub(super) struct Etags {
    kept: HashMap<(u64, String), (u64, CachedAnswer)>,
    bytes: usize,
    used: u64,
}

impl Etags {
    pub(super) fn get(&mut self, account: u64, url: &str) -> Option<CachedAnswer> {
        self.used += 1;
        let used = self.used;
        let (last, kept) = self.kept.get_mut(&(account, url.to_owned()))?;
        *last = used;
        Some(kept.clone())
    }

    /// Keeps an answer; the ones that were not asked for the longest make room.
    pub(super) fn put(&mut self, account: u64, url: &str, answer: CachedAnswer) {
        let key = (account, url.to_owned());
        self.forget(&key);
        if answer.body.len() > BYTES / 4 {
            return;
        }
        self.bytes += answer.body.len();
        self.used += 1;
        self.kept.insert(key, (self.used, answer));
        while self.bytes > BYTES {
            let oldest = self.kept.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { return };
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, key: &(u64, String)) {
        if let Some((_, gone)) = self.kept.remove(key) {
            self.bytes -= gone.body.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, CachedAnswer, Etags};

    #[test]
    fn what_was_not_used_for_long_makes_room() {
        let kept = || CachedAnswer { etag: "e".to_owned(), body: vec![0; BYTES / 4], next: None };
        let mut etags = Etags::default();
        for url in ["a", "b", "c", "d"] {
            etags.put(1, url, kept());
        }
        assert!(etags.get(1, "a").is_some(), "used again");
        etags.put(1, "e", kept());
        assert!(etags.get(1, "b").is_none() && etags.get(1, "a").is_some());
        assert!(etags.get(2, "a").is_none(), "another account");
        assert!(etags.bytes <= BYTES);
    }
}
