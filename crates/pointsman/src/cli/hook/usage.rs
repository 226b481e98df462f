//! The usage of a session in a terminal so far: every request of its transcripts, each once.
//!
//! Transcripts grow to many megabytes and hooks are called all the time, so a file among the session's own says how far each
//! was read. Helpers have transcripts of their own beside that of the conversation.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, read_dir};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pointsman_adapters::phase_file;
use pointsman_core::claude::usage::Requests;
use pointsman_core::hook::transcript::count_requests;
use pointsman_core::session::budget::Spent;
use serde::{Deserialize, Serialize};

/// Of one transcript at a time; the rest is read by the next hook.
const MOST_BYTES: u64 = 4 << 20;
/// Of the file that says how far was read.
const STATE_BYTES: u64 = 1 << 20;
/// Helpers of a conversation whose transcripts are looked at.
const MOST_HELPERS: usize = 500;

/// How far the transcripts of a task's sessions were read, and what was in them.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Counted {
    /// The session that was counted last.
    session: String,
    /// What the sessions before it had used: a conversation may be taken up by a successor.
    before: Spent,
    requests: Requests,
    read_up_to: BTreeMap<PathBuf, u64>,
}

/// Counts on in a conversation's transcripts. Nothing if there is nothing new, or somebody else counts right now.
pub(in crate::cli) fn count(sandbox: &Path, session: &str, transcript: &str) -> Option<Spent> {
    let (state, transcript) = (sandbox.join("usage.json"), Path::new(transcript));
    let _alone = lock(&sandbox.join("usage.lock"))?;
    let mut counted = read_state(&state);
    let before = counted.spent(session);
    for path in conversation(transcript) {
        let from = counted.read_up_to.get(&path).copied().unwrap_or(0);
        if let Some((text, up_to)) = lines_after(&path, from) {
            count_requests(&text, &mut counted.requests);
            counted.read_up_to.insert(path, up_to);
        }
    }
    let spent = counted.spent(session);
    phase_file::write_state_file(&state, &serde_json::to_vec(&counted).ok()?).ok()?;
    (spent.tokens > before.tokens).then_some(spent)
}

/// Passes over what is in a transcript already: a conversation that was taken up again has been counted, or is not ours.
pub(super) fn pass_over(sandbox: &Path, transcript: &str) {
    let state = sandbox.join("usage.json");
    let Some(_alone) = lock(&sandbox.join("usage.lock")) else { return };
    let mut counted = read_state(&state);
    for path in conversation(Path::new(transcript)) {
        if let (Ok(meta), false) = (path.metadata(), counted.read_up_to.contains_key(&path)) {
            counted.read_up_to.insert(path, meta.len());
        }
    }
    if let Ok(text) = serde_json::to_vec(&counted) {
        let _ = phase_file::write_state_file(&state, &text);
    }
}

impl Counted {
    /// What this session has used; the first look at a session begins at nothing.
    fn spent(&mut self, session: &str) -> Spent {
        let all = self.requests.spent();
        if self.session != session {
            (self.session, self.before) = (session.to_owned(), all);
        }
        all.reported_since(self.before)
    }
}

fn read_state(path: &Path) -> Counted {
    let bytes = phase_file::read_result_file(path, STATE_BYTES).ok().flatten();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn lock(path: &Path) -> Option<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
    let file = options.open(path).ok()?;
    file.try_lock().ok().map(|()| file)
}

/// The transcript of the conversation and those of its helpers.
fn conversation(transcript: &Path) -> Vec<PathBuf> {
    let helpers = read_dir(transcript.with_extension("").join("subagents")).into_iter().flatten().flatten();
    let helpers =
        helpers.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
    std::iter::once(transcript.to_owned()).chain(helpers.take(MOST_HELPERS)).collect()
}

/// The whole lines behind a place in a file, and the place behind them. A file that was cut off is read from its beginning.
fn lines_after(path: &Path, from: u64) -> Option<(String, u64)> {
    // Without it a FIFO would hold the agent until someone opens its other end.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let from = if meta.len() < from { 0 } else { from };
    if meta.len() == from {
        return None;
    }
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => end + 1,
        // No line is so long: what there is of it is passed over.
        None if bytes.len() as u64 == MOST_BYTES => bytes.len(),
        None => return None,
    };
    bytes.truncate(whole);
    Some((String::from_utf8_lossy(&bytes).into_owned(), from + whole as u64))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    use serde_json::json;

    use super::{count, pass_over};

    fn line(id: &str, input: u64, output: u64) -> String {
        let usage =
            json!({ "input_tokens": input, "cache_read_input_tokens": 1000, "output_tokens": output });
        let message = json!({ "id": id, "model": "claude-opus-4-8", "usage": usage });
        format!("{}\n", json!({ "type": "assistant", "message": message }))
    }

    fn append(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    #[test]
    fn requests_are_counted_as_they_come_each_once_with_those_of_helpers() {
        let dir = tempfile::tempdir().unwrap();
        let (main, helper) = (dir.path().join("c.jsonl"), dir.path().join("c/subagents/agent-a.jsonl"));
        let look = |session: &str| count(dir.path(), session, main.to_str().unwrap());
        assert_eq!(look("dev-shop-1.1"), None, "there is no transcript yet");
        append(&main, &line("a", 5000, 1));
        assert_eq!(look("dev-shop-1.1").unwrap().tokens, 6001);
        assert_eq!(look("dev-shop-1.1"), None, "nothing new");
        let torn = line("b", 60_000, 7);
        append(&main, &line("a", 5000, 9));
        append(&main, &torn[..torn.len() / 2]);
        append(&helper, &line("h", 30, 2));
        let spent = look("dev-shop-1.1").unwrap();
        assert_eq!((spent.tokens, spent.fresh_tokens()), (6009 + 1032, 5009 + 32));
        append(&main, &torn[torn.len() / 2..]);
        assert_eq!(look("dev-shop-1.1").unwrap().tokens, 6009 + 1032 + 61_007);
        // A successor takes the conversation up: only what is new is its own.
        pass_over(dir.path(), main.to_str().unwrap());
        append(&main, &line("c", 10, 1));
        assert_eq!(look("dev-shop-1.2").unwrap().tokens, 1011);
    }

    #[test]
    fn a_conversation_that_was_begun_elsewhere_is_not_charged_again() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("c.jsonl");
        append(&main, &line("a", 5000, 1));
        pass_over(dir.path(), main.to_str().unwrap());
        append(&main, &line("b", 20, 1));
        assert_eq!(count(dir.path(), "dev-shop-1.1", main.to_str().unwrap()).unwrap().tokens, 1021);
    }

    #[test]
    fn an_endless_line_a_cut_file_and_a_torn_state_stop_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("c.jsonl");
        let look = || count(dir.path(), "dev-shop-1.1", main.to_str().unwrap()).map(|spent| spent.tokens);
        append(&main, &"x".repeat(5 << 20));
        assert_eq!(look(), None);
        append(&main, &format!("\n{}", line("a", 1, 1)));
        assert_eq!(look(), Some(1002));
        fs::write(&main, line("b", 1, 1)).unwrap();
        assert_eq!(look(), Some(2004), "it is another file of the same name");
        fs::write(dir.path().join("usage.json"), "{\"session\":").unwrap();
        assert_eq!(look(), Some(1002), "what was known is lost; the store keeps the larger sum");
        assert_eq!(count(dir.path(), "s.1", "/dev/null"), None);
        assert_eq!(count(&dir.path().join("missing"), "s.1", ""), None);
    }
}
