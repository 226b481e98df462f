//! Output that may be endless, kept within a cap: its first and its last part.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::time::Instant;

/// Takes what a program prints.
pub trait Sink {
    /// The next bytes. Must not fail: a program is not ended because its output cannot be kept.
    fn take(&mut self, bytes: &[u8]);

    /// When the program has to be gone because of what it printed, if that is sooner than its time limit.
    fn ends_by(&self) -> Option<Instant> {
        None
    }
}

/// Keeps the first and the last `cap / 2` bytes.
#[derive(Debug)]
pub(super) struct Capped {
    head: Vec<u8>,
    tail: Tail,
    head_cap: usize,
}

impl Capped {
    pub(super) fn new(cap: usize) -> Self {
        let head_cap = cap.div_ceil(2);
        Self { head: Vec::new(), tail: Tail::new(cap - head_cap), head_cap }
    }

    pub(super) fn truncated(&self) -> bool {
        self.tail.dropped > 0
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        bytes.extend(self.tail.marker().into_bytes());
        bytes.extend(self.tail.kept);
        bytes
    }
}

impl Sink for Capped {
    fn take(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_cap - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.push(rest);
    }
}

/// A log file that stays within `cap` bytes: the first half is written as it comes, so that it can be followed; of
/// the rest the last half is written when the program has ended.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    head_left: usize,
    tail: Tail,
    failed: Option<io::Error>,
}

impl Log {
    pub(super) fn new(file: File, cap: usize) -> Self {
        let head_left = cap.div_ceil(2);
        Self { file, head_left, tail: Tail::new(cap - head_left), failed: None }
    }

    /// Writes what was held back. Answers whether anything was left out, or the first error of any write.
    pub(super) fn close(mut self) -> Result<bool, io::Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.file.write_all(self.tail.marker().as_bytes())?;
        let (a, b) = self.tail.kept.as_slices();
        self.file.write_all(a)?;
        self.file.write_all(b)?;
        self.file.flush()?;
        Ok(self.tail.dropped > 0)
    }
}

impl Sink for Log {
    fn take(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_left));
        self.head_left -= head.len();
        self.tail.push(rest);
        if self.failed.is_none() {
            self.failed = self.file.write_all(head).err();
        }
    }
}

/// The last `cap` bytes of what was pushed.
#[derive(Debug)]
struct Tail {
    kept: VecDeque<u8>,
    cap: usize,
    dropped: u64,
}

impl Tail {
    fn new(cap: usize) -> Self {
        Self { kept: VecDeque::new(), cap, dropped: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        let skip = bytes.len().saturating_sub(self.cap);
        let fresh = &bytes[skip..];
        let out = (self.kept.len() + fresh.len()).saturating_sub(self.cap);
        self.kept.drain(..out);
        self.kept.extend(fresh);
        self.dropped += (skip + out) as u64;
    }

    fn marker(&self) -> String {
        match self.dropped {
            0 => String::new(),
            n => format!("\n[... {n} bytes left out ...]\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Capped, Sink};

    #[test]
    fn short_output_is_kept_whole_and_long_output_by_both_ends() {
        let mut short = Capped::new(10);
        for byte in b"0123456789" {
            short.take(&[*byte]);
        }
        assert!(!short.truncated());
        assert_eq!(short.into_bytes(), b"0123456789");

        let mut long = Capped::new(10);
        long.take(b"012");
        long.take(b"3456789abcdefghij");
        assert!(long.truncated());
        assert_eq!(long.into_bytes(), b"01234\n[... 10 bytes left out ...]\nfghij");
    }
}
