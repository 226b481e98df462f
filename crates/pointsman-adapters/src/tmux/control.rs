//! A persistent control-mode client: commands go in as lines, answers come back as guarded blocks.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::client::Client;

/// One connection, for any number of threads. The server takes one command after another, so a second one is given while the
/// first is not answered yet. Dropping it ends the client process and nothing else.
#[derive(Debug)]
pub(super) struct Control {
    child: Child,
    input: Mutex<Input>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug)]
struct Input {
    stdin: ChildStdin,
    asked: u64,
}

/// Those who wait for an answer, in the order in which they asked.
#[derive(Debug, Default)]
struct Waiting {
    queue: VecDeque<Pending>,
    /// The client has ended: nobody will be answered any more.
    ended: bool,
}

#[derive(Debug)]
struct Pending {
    /// Printed behind the answer.
    marker: String,
    answer: Vec<String>,
    refusal: Option<String>,
    asker: Sender<Result<Vec<String>, Failure>>,
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
    /// No answer in time: it may have happened.
    Late,
}

impl Control {
    /// Attaches to a session and waits until the server has answered.
    pub(super) fn connect(client: &Client, session: &str, limit: Duration) -> Result<Control, Failure> {
        let mut child = client.spawn_control(session).map_err(|_| Failure::NotGiven)?;
        let stdin = child.stdin.take().expect("the control client's stdin is piped");
        let stdout = child.stdout.take().expect("the control client's stdout is piped");
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let answering = Arc::clone(&waiting);
        std::thread::spawn(move || {
            read_blocks(stdout, |block| answer(&mut lock(&answering), block));
            let mut waiting = lock(&answering);
            waiting.ended = true;
            // Whoever waits hears that nobody is there.
            waiting.queue.clear();
        });
        let input = Mutex::new(Input { stdin, asked: 0 });
        let control = Control { child, input, waiting };
        control.ask(OsStr::new("display-message -p hello"), limit)?;
        Ok(control)
    }

    /// Gives one line and collects what its commands print.
    ///
    /// A line may hold several commands, and `if-shell` adds more, each with a block of its own; so a marker is
    /// asked for behind it, and everything up to the marker is the answer.
    pub(super) fn ask(&self, line: &OsStr, limit: Duration) -> Result<Vec<String>, Failure> {
        let (asker, answered) = mpsc::channel();
        {
            // Both in the same order for everybody: whose marker comes first has asked first.
            let mut input = lock(&self.input);
            input.asked += 1;
            let marker = format!("pointsman-end-{}", input.asked);
            let mut text = line.as_bytes().to_vec();
            text.extend_from_slice(format!("\ndisplay-message -p {marker}\n").as_bytes());
            {
                let mut waiting = lock(&self.waiting);
                if waiting.ended {
                    return Err(Failure::NotGiven);
                }
                waiting.queue.push_back(Pending { marker, answer: Vec::new(), refusal: None, asker });
            }
            // A line that was not written to its end was not run; but its marker may be what is missing, so nothing
            // is known of it.
            input.stdin.write_all(&text).map_err(|_| Failure::Lost)?;
        }
        match answered.recv_timeout(limit) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(Failure::Late),
            Err(RecvTimeoutError::Disconnected) => Err(Failure::Lost),
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // The client would leave by itself at the end of its input, but a stuck server could hold it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a block to the answer of whoever has asked first, and gives it to them when it is whole.
fn answer(waiting: &mut Waiting, block: Block) {
    // What comes before anybody asked is a greeting.
    let Some(first) = waiting.queue.front_mut() else { return };
    if block.is_error {
        first.refusal.get_or_insert(block.lines.join(" "));
    } else if block.lines.len() == 1 && block.lines[0] == first.marker {
        if let Some(Pending { answer, refusal, asker, .. }) = waiting.queue.pop_front() {
            // Nobody listens any more if it took too long.
            let _ = asker.send(refusal.map_or(Ok(answer), |message| Err(Failure::Refused(message))));
        }
    } else {
        first.answer.extend(block.lines);
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
fn read_blocks(stdout: impl Read, mut take: impl FnMut(Block)) {
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
                take(Block { is_error, lines });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_closed_by_their_own_guard_only() {
        let mut blocks = Vec::new();
        let text = "%begin 5 1 0\n%end 5 1 0\n%sessions-changed\n%begin 5 2 1\nx\n%end 5 9 1\n%end 5 2 1\n\
                    %begin 5 3 1\nno such\n%error 5 3 1\n%begin 5 4 1\nhalf";
        read_blocks(text.as_bytes(), |block| blocks.push((block.is_error, block.lines)));
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            blocks,
            [(false, lines(&[])), (false, lines(&["x", "%end 5 9 1"])), (true, lines(&["no such"]))]
        );
    }

    #[test]
    fn every_asker_gets_the_blocks_before_its_own_marker() {
        let mut waiting = Waiting::default();
        let mut askers = Vec::new();
        for marker in ["end-1", "end-2", "end-3"] {
            let (asker, answered) = mpsc::channel();
            let marker = marker.to_owned();
            waiting.queue.push_back(Pending { marker, answer: Vec::new(), refusal: None, asker });
            askers.push(answered);
        }
        let mut say = |is_error, line: &str| {
            answer(&mut waiting, Block { is_error, lines: vec![line.to_owned()] });
        };
        say(false, "one");
        say(false, "end-2");
        say(false, "end-1");
        say(true, "no such pane");
        say(true, "and more");
        say(false, "end-2");
        say(false, "end-3");
        say(false, "nobody asked");
        assert_eq!(
            askers[0].try_recv().unwrap().unwrap(),
            ["one", "end-2"],
            "a marker counts for its asker alone"
        );
        assert!(matches!(askers[1].try_recv().unwrap(), Err(Failure::Refused(why)) if why == "no such pane"));
        assert_eq!(askers[2].try_recv().unwrap().unwrap(), [""; 0]);
    }
}
