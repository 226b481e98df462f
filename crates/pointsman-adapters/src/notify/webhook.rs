//! An address that is called with JSON: Slack, Mattermost, or a program of the operator's.

use pointsman_core::notifier::Posting;
use pointsman_core::time::Timestamp;
use serde_json::{Value, json};

use super::Error;
use crate::http::{self, Answer, Client, Host, Limits, Request, RetryWait, Scheme};
use crate::secret::Secret;

/// The address, which may be a secret as a whole.
pub struct Webhook {
    client: Client,
    segments: Vec<String>,
}

impl Webhook {
    /// An address, and the token to be shown there. Nothing is called yet.
    pub fn new(
        address: &Secret,
        token: Option<Secret>,
        clock: fn() -> Timestamp,
        limits: Limits,
        patience: RetryWait,
    ) -> Result<Self, Error> {
        let text = address.expose();
        let rest =
            text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).ok_or(Error::Address)?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        // A query or a name in the address has no place in what follows.
        if host.is_empty() || host.contains('@') || rest.contains(['?', '#']) {
            return Err(Error::Address);
        }
        let base = &text[..text.len() - rest.len() + host.len()];
        let host = Host::new(base, clock, limits, patience);
        let mut client = host.client(token.map(|token| (Scheme::Bearer, token)));
        if let Some(hidden) = Secret::new(path) {
            client = client.hiding(hidden);
        }
        let segments = path.split('/').map(unescaped).collect();
        Ok(Self { client, segments })
    }

    /// The server, for its counts.
    pub fn host(&self) -> &Host {
        self.client.host()
    }

    /// Tells it. A second time under the same key is the same notice; who minds drops it by that.
    pub fn tell(&self, posting: &Posting, at: &str) -> Result<(), Error> {
        let segments: Vec<&str> = self.segments.iter().map(String::as_str).collect();
        let request = Request::post("call the webhook", &segments)
            .header("idempotency-key", posting.key.clone())
            .body(&payload(posting, at))
            // A notice that is lost is worse than one that comes twice under one key.
            .repeatable()
            .text();
        self.client.send(&request)?;
        Ok(())
    }

    /// Calls it with this body, once: what may have arrived is not sent again.
    pub fn call(&self, body: &Value, headers: &[(&'static str, &str)]) -> Result<Answer, http::Error> {
        let segments: Vec<&str> = self.segments.iter().map(String::as_str).collect();
        let request = Request::post("call the webhook", &segments).body(body).text();
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
        self.client.send(&request)
    }
}

/// A segment of the address as it is before it is escaped, which the request does again.
fn unescaped(segment: &str) -> String {
    let bytes = segment.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        match hex.filter(|_| *byte == b'%').and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(escaped) => {
                out.push(escaped);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// What is sent: `text` for Slack and its like, the rest for programs.
fn payload(posting: &Posting, at: &str) -> Value {
    let notice = &posting.notice;
    let link = posting.link.as_deref().map(|link| format!("\n{link}")).unwrap_or_default();
    json!({
        "text": harmless(&format!("{}\n{}{link}", notice.title, notice.body)),
        "key": posting.key,
        "at": at,
        "project": posting.project,
        "topic": posting.topic,
        "issue": posting.topic.issue(),
        "title": notice.title,
        "body": notice.body,
        "link": posting.link,
        "urgent": notice.urgent,
        "repeat": notice.repeat,
    })
}

/// Text that calls nobody: neither Slack's `<!channel>` nor `@all` of others.
fn harmless(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('@', "@\u{200b}")
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::ProjectName;
    use pointsman_core::notifier::{Posting, Topic};
    use pointsman_core::task::Notice;

    use super::{Webhook, payload};
    use crate::http::{Limits, RetryWait};
    use crate::secret::Secret;

    #[test]
    fn what_is_sent_calls_nobody_and_is_whole_for_programs() {
        let notice = Notice {
            title: "shop#3 needs a person".into(),
            body: "Why: <!channel> @all & co".into(),
            urgent: true,
            repeat: 1,
        };
        let posting = Posting {
            key: "7.0".into(),
            project: ProjectName::new("shop").unwrap(),
            topic: Topic::Task(3),
            link: Some("https://forge/3".into()),
            question: None,
            notice,
        };
        let sent = payload(&posting, "2026-11-16T00:00:00.000Z");
        assert_eq!(
            sent["text"],
            "shop#3 needs a person\nWhy: &lt;!channel&gt; @\u{200b}all &amp; co\nhttps://forge/3"
        );
        assert_eq!(
            (&sent["issue"], &sent["key"], &sent["topic"]),
            (&3.into(), &"7.0".into(), &"task/3".into())
        );
        assert_eq!(sent["body"], "Why: <!channel> @all & co");
    }

    #[test]
    fn an_address_is_taken_apart_and_what_is_none_is_refused() {
        let open = |text: &str| {
            let address = Secret::new(text).unwrap();
            Webhook::new(
                &address,
                None,
                || pointsman_core::time::Timestamp(0),
                Limits::default(),
                RetryWait::default(),
            )
        };
        let hook = open("https://hooks.example.org/services/T0/B0/x%2Fy").unwrap();
        assert_eq!(
            (hook.host().name(), hook.segments.join("|").as_str()),
            ("hooks.example.org", "services|T0|B0|x/y")
        );
        assert_eq!(open("https://h/hook/").unwrap().segments, ["hook", ""]);
        for bad in [
            "ftp://x/y",
            "https://",
            "https:///x",
            "https://user@host/x",
            "hooks.example.org/x",
            "https://h/x?y=1",
        ] {
            assert!(open(bad).is_err(), "{bad}");
        }
    }
}
