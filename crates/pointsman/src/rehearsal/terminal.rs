//! Lines from the terminal, read only when the agent is at its prompt or looks up from its work.
//!
//! There is no thread that listens: an agent that works must not look like one that waits.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// A longer line is not for us; its beginning is thrown away.
const LINE_LIMIT: usize = 64 << 10;

/// What is typed to us.
pub(super) struct Terminal<F> {
    input: F,
    pending: Vec<u8>,
    ended: bool,
}

impl<F: AsFd> Terminal<F> {
    pub(super) fn new(input: F) -> Self {
        Self { input, pending: Vec::new(), ended: false }
    }

    /// The lines that are there already.
    pub(super) fn arrived(&mut self) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            while let Some(line) = self.take_line() {
                lines.push(line);
            }
            if self.ended || !self.readable()? {
                return Ok(lines);
            }
            self.read()?;
        }
    }

    /// The next line, whenever it comes; nothing if the terminal is gone.
    pub(super) fn next_line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            self.read()?;
        }
    }

    fn readable(&self) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.input, PollFlags::IN)];
        match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0u8; 4096];
        match rustix::io::read(&self.input, &mut buffer) {
            // A terminal that hung up answers with an error.
            Ok(0) | Err(Errno::IO) => self.ended = true,
            Ok(n) => self.pending.extend_from_slice(&buffer[..n]),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if self.pending.len() > LINE_LIMIT && !self.pending.contains(&b'\n') {
            self.pending.clear();
        }
        Ok(())
    }

    fn take_line(&mut self) -> Option<String> {
        let end = self.pending.iter().position(|b| matches!(b, b'\n' | b'\r'))?;
        let line: Vec<u8> = self.pending.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::Terminal;

    #[test]
    fn lines_are_told_apart_and_a_torn_one_waits_for_its_end() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut terminal = Terminal::new(reader);
        writer.write_all(b"one\ntwo\rthr").unwrap();
        assert_eq!(terminal.arrived().unwrap(), ["one", "two"]);
        assert_eq!(terminal.arrived().unwrap(), [""; 0]);
        writer.write_all(b"ee\n").unwrap();
        drop(writer);
        assert_eq!(terminal.next_line().unwrap().as_deref(), Some("three"));
        assert_eq!(terminal.next_line().unwrap(), None);
    }
}
