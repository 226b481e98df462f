//! A persistent control-mode client: commands go in as lines, answers come back as guarded blocks.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use super::client::Client;

/// One connection. Dropping it ends the client process and nothing else.
#[derive(Debug)]
pub(super) struct Control {
    child: Child,
    stdin: ChildStdin,
    blocks: Receiver<Block>,
    asked: u64,
}

/// How an attempt to get an answer failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// tmux answered with an error; the connection is fine.
    Refused(String),
    /// The connection was gone before the command was given: nothing happened.
    NotGiven,
    /// The connection ended after the command was given: it may have happened.
    Lost,
    /// No answer in time: it may have happened, and the connection is out of step.
    Late,
}

impl Control {
    /// Attaches to a session and waits until the server has answered.
    pub(super) fn connect(client: &Client, session: &str, limit: Duration) -> Result<Control, Failure> {
        let mut child = client.spawn_control(session).map_err(|_| Failure::NotGiven)?;
        let stdin = child.stdin.take().expect("the control client's stdin is piped");
        let stdout = child.stdout.take().expect("the control client's stdout is piped");
        let (sender, blocks) = mpsc::channel();
        std::thread::spawn(move || read_blocks(stdout, &sender));
        let mut control = Control { child, stdin, blocks, asked: 0 };
        control.ask(OsStr::new("display-message -p hello"), limit)?;
        Ok(control)
    }

    /// Gives one line and collects what its commands print.
    ///
    /// A line may hold several commands, and `if-shell` adds more, each with a block of its own; so a marker is
    /// asked for behind it, and everything up to the marker is the answer.
    pub(super) fn ask(&mut self, line: &OsStr, limit: Duration) -> Result<Vec<String>, Failure> {
        loop {
            match self.blocks.try_recv() {
                Ok(_) => {}
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(Failure::NotGiven),
            }
        }
        self.asked += 1;
        let marker = format!("pointsman-end-{}", self.asked);
        let mut input = line.as_bytes().to_vec();
        input.extend_from_slice(format!("\ndisplay-message -p {marker}\n").as_bytes());
        // A line that was not written to its end was not run; but its marker may be what is missing, so only a
        // write of which nothing can have arrived counts as not given.
        self.stdin.write_all(&input).map_err(|_| Failure::Lost)?;

        let deadline = Instant::now() + limit;
        let mut answer = Vec::new();
        let mut refusal = None;
        loop {
            match self.blocks.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(block) if block.is_error => {
                    refusal.get_or_insert(block.lines.join(" "));
                }
                Ok(block) if block.lines.len() == 1 && block.lines[0] == marker => break,
                Ok(block) => answer.extend(block.lines),
                Err(RecvTimeoutError::Timeout) => return Err(Failure::Late),
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::Lost),
            }
        }
        refusal.map_or(Ok(answer), |message| Err(Failure::Refused(message)))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // The client would leave by itself at the end of its input, but a stuck server could hold it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What one command printed.
#[derive(Debug, PartialEq)]
struct Block {
    is_error: bool,
    lines: Vec<String>,
}

/// Sends every block on, until the client ends. Notifications between blocks are none of our business.
///
/// The guard line names time, number and flags, and only the same three close the block: a line that merely looks
/// like `%end` is content.
fn read_blocks(stdout: impl Read, sender: &Sender<Block>) {
    let mut open: Option<(String, Vec<String>)> = None;
    for line in BufReader::new(stdout).split(b'\n') {
        let Ok(line) = line else { return };
        let line = String::from_utf8_lossy(&line).into_owned();
        match &mut open {
            None => open = line.strip_prefix("%begin ").map(|guard| (guard.to_owned(), Vec::new())),
            Some((guard, lines)) => {
                let end = line.strip_prefix("%end ").is_some_and(|rest| rest == guard);
                let is_error = line.strip_prefix("%error ").is_some_and(|rest| rest == guard);
                if !end && !is_error {
                    lines.push(line);
                    continue;
                }
                let lines = std::mem::take(lines);
                open = None;
                if sender.send(Block { is_error, lines }).is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_closed_by_their_own_guard_only() {
        let (sender, blocks) = mpsc::channel();
        let text = "%begin 5 1 0\n%end 5 1 0\n%sessions-changed\n%begin 5 2 1\nx\n%end 5 9 1\n%end 5 2 1\n\
                    %begin 5 3 1\nno such\n%error 5 3 1\n%begin 5 4 1\nhalf";
        read_blocks(text.as_bytes(), &sender);
        drop(sender);
        let blocks: Vec<(bool, Vec<String>)> =
            blocks.iter().map(|block| (block.is_error, block.lines)).collect();
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            blocks,
            [(false, lines(&[])), (false, lines(&["x", "%end 5 9 1"])), (true, lines(&["no such"]))]
        );
    }
}
