//! The content of a message: plain text and the same as HTML, in a thread, or in the place of an earlier message.

use serde_json::{Value, json};

/// The most bytes of a text. A server takes 64 KiB for a whole event, which has the text twice or four times.
const TEXT_BYTES: usize = 6 << 10;

/// A message of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    pub title: &'a str,
    pub body: &'a str,
    /// An address to look at; anything else than one of the web is shown as text.
    pub link: Option<&'a str>,
    /// The thread it belongs to, by its first message.
    pub thread: Option<&'a str>,
    /// The message whose place it takes.
    pub replaces: Option<&'a str>,
    /// Who is called by it.
    pub calls: &'a [String],
    /// The notice that it tells, by its project and key: we may hear that it was told before we are told so.
    pub notice: Option<(&'a str, &'a str)>,
}

/// Where the notice's key stands in an event.
pub(super) const NOTICE: &str = "org.pointsman.notice";

impl Message<'_> {
    /// As the API wants it.
    pub(super) fn content(&self) -> Value {
        let (plain, html) = (self.plain(), self.html());
        let mut content = json!({
            "msgtype": "m.text",
            "body": plain,
            "format": "org.matrix.custom.html",
            "formatted_body": html,
            // Without it a name in the text could call somebody.
            "m.mentions": if self.calls.is_empty() { json!({}) } else { json!({ "user_ids": self.calls }) },
        });
        if let Some((project, key)) = self.notice {
            content[NOTICE] = json!({ "project": project, "key": key });
        }
        if let Some(event) = self.replaces {
            let new = content.clone();
            content["body"] = format!("* {plain}").into();
            content["formatted_body"] = format!("* {html}").into();
            content["m.new_content"] = new;
            content["m.relates_to"] = json!({ "rel_type": "m.replace", "event_id": event });
        } else if let Some(root) = self.thread {
            content["m.relates_to"] = json!({
                "rel_type": "m.thread",
                "event_id": root,
                // For clients that know no threads.
                "is_falling_back": true,
                "m.in_reply_to": { "event_id": root },
            });
        }
        content
    }

    fn plain(&self) -> String {
        let parts = [Some(self.title), Some(self.body).filter(|body| !body.is_empty()), self.link];
        cut(&parts.into_iter().flatten().collect::<Vec<_>>().join("\n")).to_owned()
    }

    fn html(&self) -> String {
        let mut html = format!("<strong>{}</strong>", escaped(cut(self.title)));
        for line in cut(self.body).lines() {
            html.push_str("<br>");
            html.push_str(&escaped(line));
        }
        if let Some(link) = self.link {
            let shown = escaped(cut(link));
            html.push_str("<br>");
            html.push_str(&match link.starts_with("https://") || link.starts_with("http://") {
                true => format!("<a href=\"{shown}\">{shown}</a>"),
                false => format!("<code>{shown}</code>"),
            });
        }
        html
    }
}

fn cut(text: &str) -> &str {
    let end = (0..=TEXT_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn outside_text_stays_text() {
        let message = Message {
            title: "shop#3 needs a person",
            body: "Why: <a href=\"//evil\">x</a> & 'y'\nLook: there",
            link: Some("pointsman forge issue show 3"),
            ..Message::default()
        };
        let content = message.content();
        assert_eq!(
            content["formatted_body"],
            "<strong>shop#3 needs a person</strong><br>Why: &lt;a href=&quot;//evil&quot;&gt;x&lt;/a&gt; &amp; \
             &#39;y&#39;<br>Look: there<br><code>pointsman forge issue show 3</code>"
        );
        assert_eq!(
            content["body"],
            "shop#3 needs a person\nWhy: <a href=\"//evil\">x</a> & 'y'\nLook: there\npointsman forge issue show 3"
        );
        assert_eq!((&content["msgtype"], &content["m.mentions"]), (&"m.text".into(), &serde_json::json!({})));
        let link = Message { link: Some("https://x/\"><script>"), ..Message::default() };
        assert!(
            link.content()["formatted_body"]
                .as_str()
                .unwrap()
                .contains("<a href=\"https://x/&quot;&gt;&lt;script")
        );
    }

    #[test]
    fn a_thread_and_an_edit_are_relations() {
        let inside = Message { title: "t", thread: Some("$root"), ..Message::default() };
        let related = &inside.content()["m.relates_to"];
        assert_eq!((&related["rel_type"], &related["event_id"]), (&"m.thread".into(), &"$root".into()));
        let people = ["@ann:example.org".to_owned()];
        let edit = Message {
            title: "t",
            replaces: Some("$e"),
            thread: Some("$root"),
            calls: &people,
            ..Message::default()
        };
        let content = edit.content();
        assert_eq!(content["m.relates_to"], serde_json::json!({ "rel_type": "m.replace", "event_id": "$e" }));
        assert_eq!((&content["body"], &content["m.new_content"]["body"]), (&"* t".into(), &"t".into()));
        assert_eq!(content["m.new_content"]["m.mentions"]["user_ids"][0], "@ann:example.org");
    }

    #[test]
    fn a_long_text_fits_an_event() {
        let body = "<\"ä".repeat(50_000);
        let message = Message {
            title: &body,
            body: &body,
            link: Some(&body),
            replaces: Some("$e"),
            ..Message::default()
        };
        assert!(serde_json::to_vec(&message.content()).unwrap().len() < 64 << 12);
        let plain = message.content()["m.new_content"]["body"].as_str().unwrap().len();
        assert!(plain <= super::TEXT_BYTES);
    }
}
