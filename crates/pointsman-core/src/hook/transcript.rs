//! Lines of the transcript that Claude Code keeps of a conversation. Whoever reads the file reads its end, so the first line
//! may be torn; lines that are no JSON pass.

use serde_json::Value;

use super::{MESSAGE_MARK, message_ids};
use crate::claude::usage::{self, Requests};

/// The messages of ours that lines of a transcript show as read: those that are in a prompt or were told by a hook, and
/// not only in a queue.
pub fn messages_read(transcript: &str) -> Vec<i64> {
    messages_shown(transcript).read
}

/// The messages of ours that a transcript shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessagesShown {
    pub read: Vec<i64>,
    /// They wait in Claude's own queue, or did.
    pub queued: Vec<i64>,
}

/// Finds the messages of ours in lines of a transcript.
pub fn messages_shown(transcript: &str) -> MessagesShown {
    let mut shown = MessagesShown::default();
    for line in transcript.lines().filter(|line| line.contains(MESSAGE_MARK)) {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        match entry["type"].as_str() {
            Some("queue-operation") if entry["operation"] == "enqueue" => {
                shown.queued.extend(message_ids(entry["content"].as_str().unwrap_or_default()));
            }
            Some("attachment") => {
                let attachment = &entry["attachment"];
                let context = (attachment["type"] == "hook_additional_context")
                    .then(|| attachment["content"].as_array())
                    .flatten();
                let told = context.into_iter().flatten().filter_map(Value::as_str);
                for text in attachment["prompt"].as_str().into_iter().chain(told) {
                    shown.read.extend(message_ids(text));
                }
            }
            Some("user") => {
                let content = &entry["message"]["content"];
                let block = || {
                    let blocks = content.as_array()?;
                    let mut texts = blocks.iter().filter(|block| block["type"] == "text");
                    texts.find_map(|block| block["text"].as_str())
                };
                let prompt = content.as_str().or_else(block);
                shown.read.extend(message_ids(prompt.unwrap_or_default()));
            }
            Some(_) | None => {}
        }
    }
    shown
}

/// The tokens in the context at the last answer of the main conversation: those read, from the cache or not, and
/// what was written. None if the lines do not tell: before the first answer, or since a compaction.
pub fn used_tokens(transcript: &str) -> Option<u64> {
    let telling = |line: &&str| line.contains("\"usage\"") || line.contains("compact_boundary");
    for line in transcript.lines().rev().filter(telling) {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        if entry["type"] == "system" && entry["subtype"] == "compact_boundary" {
            return None;
        }
        // A subagent has a context of its own; an error has none.
        let counts = entry["type"] == "assistant"
            && entry["isSidechain"] != true
            && entry["isApiErrorMessage"] != true;
        let usage = &entry["message"]["usage"];
        if counts && usage.is_object() {
            return Some(usage::classes(usage).sum());
        }
    }
    None
}

/// Counts the requests in lines of a transcript, those of helpers too. An error that Claude Code tells is none.
pub fn count_requests(transcript: &str, requests: &mut Requests) {
    for line in transcript.lines().filter(|line| line.contains("\"usage\"")) {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        if entry["type"] == "assistant" && entry["isApiErrorMessage"] != true {
            requests.take(&entry["message"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{count_requests, messages_read, messages_shown, used_tokens};
    use crate::claude::usage::Requests;

    fn lines(entries: &[Value]) -> String {
        entries.iter().map(|line| format!("{line}\n")).collect()
    }

    fn answer(input: u64, cached: u64) -> Value {
        let usage = json!({
            "input_tokens": input, "cache_creation_input_tokens": 7, "cache_read_input_tokens": cached,
            "output_tokens": 3, "service_tier": "standard",
        });
        json!({ "isSidechain": false, "type": "assistant", "message": { "model": "m", "usage": usage } })
    }

    #[test]
    fn the_last_answer_of_the_main_conversation_counts() {
        let with = |mut entry: Value, field: &str, value: Value| {
            entry[field] = value;
            entry
        };
        let boundary =
            json!({ "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted" });
        let quoted = json!({ "type": "user", "message": { "content": "\"usage\" and compact_boundary" } });
        for (what, entries, used) in [
            ("nothing", vec![], None),
            ("one", vec![answer(100, 20)], Some(130)),
            ("the last of two", vec![answer(100, 20), answer(200, 0), quoted.clone()], Some(210)),
            (
                "a subagent's",
                vec![answer(100, 20), with(answer(9_000, 0), "isSidechain", json!(true))],
                Some(130),
            ),
            (
                "an error's",
                vec![answer(100, 20), with(answer(0, 0), "isApiErrorMessage", json!(true))],
                Some(130),
            ),
            ("before a compaction", vec![answer(190_000, 0), boundary.clone()], None),
            ("after one", vec![answer(190_000, 0), boundary, answer(1_000, 0)], Some(1_010)),
            ("no figures", vec![with(answer(1, 1), "message", json!({ "usage": null }))], None),
            (
                "odd figures",
                vec![with(
                    answer(1, 1),
                    "message",
                    json!({ "usage": { "input_tokens": "9", "output_tokens": -1 } }),
                )],
                Some(0),
            ),
            (
                "far too many",
                vec![with(
                    answer(1, 1),
                    "message",
                    json!({ "usage": { "input_tokens": u64::MAX, "output_tokens": 9 } }),
                )],
                Some(u64::MAX),
            ),
        ] {
            assert_eq!(used_tokens(&lines(&entries)), used, "{what}");
        }
    }

    #[test]
    fn requests_of_a_transcript_are_counted_each_once_and_errors_never() {
        let told = |id: &str, input, sidechain: bool, error: bool| {
            let mut entry = answer(input, 1000);
            entry["message"]["id"] = json!(id);
            entry["isSidechain"] = json!(sidechain);
            entry["isApiErrorMessage"] = json!(error);
            entry
        };
        let boundary = json!({ "type": "system", "subtype": "compact_boundary" });
        let entries = [
            told("a", 5000, false, false),
            told("a", 5000, false, false),
            told("h", 700, true, false),
            told("e", 9, false, true),
            boundary,
            told("b", 60_000, false, false),
        ];
        let mut requests = Requests::default();
        let text = lines(&entries);
        let (first, rest) = text.split_at(text.find("\"h\"").unwrap());
        let first = &first[..=first.rfind('\n').unwrap()];
        count_requests(first, &mut requests);
        count_requests(&text[first.len()..], &mut requests);
        let classes = requests.spent().classes;
        assert_eq!((classes.input, classes.cache_reads, classes.output), (65_700, 3000, 9), "{rest}");
        assert_eq!(used_tokens(&text), Some(61_010), "the context is another matter");
    }

    #[test]
    fn a_torn_or_hostile_transcript_is_no_transcript() {
        let deep = format!("{{\"usage\":{}", "[".repeat(100_000));
        let torn = &answer(1, 1).to_string()[5..];
        for text in ["", "\n\n", "\u{0}", "{\"usage\"", torn, &deep] {
            assert_eq!(used_tokens(text), None);
            assert_eq!(messages_read(text), Vec::<i64>::new());
        }
        let text = format!("{torn}\n{}{deep}", lines(&[answer(100, 20)]));
        assert_eq!(used_tokens(&text), Some(130));
    }

    #[test]
    fn a_transcript_shows_what_was_read_while_the_agent_worked() {
        let transcript = [
            json!({ "type": "queue-operation", "operation": "enqueue", "content": "[pointsman m-1] waits" }),
            json!({ "type": "attachment", "attachment": { "type": "queued_command", "prompt": "[pointsman m-2] read" } }),
            json!({ "type": "user", "message": { "content": "[pointsman m-3] read" } }),
            json!({ "type": "user", "message": { "content": [{ "type": "text", "text": "[pointsman m-4] read" }] } }),
            json!({ "type": "user", "message": { "content": [{ "type": "tool_result", "content": "[pointsman m-5] x" }] } }),
            json!({ "type": "assistant", "message": { "content": "[pointsman m-6] echoed" } }),
            json!({ "type": "attachment", "attachment": { "type": "hook_additional_context", "content": ["[pointsman m-7] told"], "hookEvent": "Stop" } }),
            json!({ "type": "attachment", "attachment": { "type": "hook_success", "content": "[pointsman m-8] printed" } }),
        ];
        let text: String = transcript.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(messages_read(&format!("torn [pointsman m-9]\n{text}")), [2, 3, 4, 7]);
        assert_eq!(messages_shown(&text).queued, [1]);
    }
}
