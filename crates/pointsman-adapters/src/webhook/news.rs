//! The subject of a webhook, and the account that caused it. Hints: nothing follows from them but which question is
//! asked.

use serde::Deserialize;

use super::request::Head;

/// Bodies that are longer are not looked into.
const READ: u64 = 1 << 20;

/// The news in a webhook. It only decides what is looked up: the content of a webhook is never trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookNews {
    pub about: NewsTopic,
    /// The account that changed it, if it is said.
    pub by: Option<String>,
}

/// The subject of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewsTopic {
    Push,
    /// What CI says about a commit.
    Checks,
    /// CI has begun with a commit, which is no news yet.
    Begun,
    /// Issues, pull requests, reviews, comments.
    Talk,
    Anything,
}

/// A body on its way, kept if it is not too long.
pub(super) struct Kept(Option<Vec<u8>>);

impl Kept {
    pub(super) fn new(length: u64) -> Self {
        Self((length <= READ).then(Vec::new))
    }

    pub(super) fn take(&mut self, part: &[u8]) {
        if let Some(body) = &mut self.0 {
            body.extend(part);
        }
    }

    /// What it says. Not before the signature was found right.
    pub(super) fn ring(self, head: &Head) -> WebhookNews {
        #[derive(Deserialize)]
        struct Said {
            sender: Option<Account>,
            state: Option<serde_json::Value>,
            // GitLab's words.
            user: Option<User>,
            user_username: Option<String>,
            object_attributes: Option<Attributes>,
            build_status: Option<String>,
        }
        #[derive(Deserialize)]
        struct Account {
            login: String,
        }
        #[derive(Deserialize)]
        struct User {
            username: Option<String>,
        }
        #[derive(Deserialize)]
        struct Attributes {
            status: Option<serde_json::Value>,
        }
        let said = self.0.and_then(|body| serde_json::from_slice::<Said>(&body).ok());
        let pending = said.as_ref().is_some_and(|said| said.state == Some("pending".into()));
        let runs = said.as_ref().is_some_and(|said| {
            let status = said.object_attributes.as_ref().and_then(|about| about.status.as_ref()?.as_str());
            let status = status.or(said.build_status.as_deref());
            matches!(status, Some("created" | "pending" | "preparing" | "running" | "waiting_for_resource"))
        });
        let names = ["x-github-event", "x-forgejo-event", "x-gitea-event", "x-gitlab-event"];
        let about = match names.iter().find_map(|name| head.header(name)) {
            Some("status") if pending => NewsTopic::Begun,
            Some("Pipeline Hook" | "Job Hook") if runs => NewsTopic::Begun,
            Some("Pipeline Hook" | "Job Hook") => NewsTopic::Checks,
            Some("push" | "create" | "delete" | "Push Hook" | "Tag Push Hook") => NewsTopic::Push,
            Some("status" | "check_run" | "check_suite" | "workflow_run" | "workflow_job") => {
                NewsTopic::Checks
            }
            Some(_) => NewsTopic::Talk,
            None => NewsTopic::Anything,
        };
        let by = said.and_then(|said| {
            let gitlab = || said.user.and_then(|user| user.username).or(said.user_username);
            said.sender.map(|sender| sender.login).or_else(gitlab)
        });
        let by = by.filter(|login| !login.is_empty());
        WebhookNews { about, by }
    }
}

#[cfg(test)]
mod tests {
    use super::{Head, Kept, NewsTopic, READ, WebhookNews};

    #[test]
    fn a_ring_says_what_it_is_about_and_whose_deed_it_was() {
        let ring = |event: &str, body: &str| {
            let head = Head::parse(&format!("POST / HTTP/1.1\r\n{event}")).unwrap();
            let mut kept = Kept::new(body.len() as u64);
            kept.take(&body.as_bytes()[..body.len() / 2]);
            kept.take(&body.as_bytes()[body.len() / 2..]);
            kept.ring(&head)
        };
        let by = |about: NewsTopic, by: Option<&str>| WebhookNews { about, by: by.map(str::to_owned) };
        let ann = "{\"sender\":{\"login\":\"ann\",\"id\":1},\"action\":\"opened\"}";
        assert_eq!(ring("X-GitHub-Event: issues", ann), by(NewsTopic::Talk, Some("ann")));
        assert_eq!(ring("X-Gitea-Event: push", ann), by(NewsTopic::Push, Some("ann")));
        assert_eq!(ring("X-Forgejo-Event: status", "{}"), by(NewsTopic::Checks, None));
        assert_eq!(ring("X-Gitea-Event: status", "{\"state\":\"pending\"}"), by(NewsTopic::Begun, None));
        assert_eq!(ring("X-GitHub-Event: status", "{\"state\":\"error\"}"), by(NewsTopic::Checks, None));
        assert_eq!(ring("X-GitHub-Event: issues", "{\"state\":[]}"), by(NewsTopic::Talk, None));
        let job = "{\"user\":{\"username\":\"ann\"},\"object_attributes\":{\"status\":\"running\"}}";
        assert_eq!(ring("X-Gitlab-Event: Pipeline Hook", job), by(NewsTopic::Begun, Some("ann")));
        let done = job.replace("running", "failed");
        assert_eq!(ring("X-Gitlab-Event: Pipeline Hook", &done), by(NewsTopic::Checks, Some("ann")));
        assert_eq!(ring("X-Gitlab-Event: Note Hook", job), by(NewsTopic::Talk, Some("ann")));
        let push = "{\"user_username\":\"ann\"}";
        assert_eq!(ring("X-Gitlab-Event: Push Hook", push), by(NewsTopic::Push, Some("ann")));
        for torn in ["", "{\"sender\":", "{\"sender\":{\"login\":\"\"}}", "{\"sender\":\"ann\"}", "[]"] {
            assert_eq!(ring("A: b", torn), by(NewsTopic::Anything, None), "{torn}");
        }
        let long = format!("{{\"sender\":{{\"login\":\"ann\"}},\"x\":\"{}\"}}", "y".repeat(READ as usize));
        assert_eq!(ring("X-Gitea-Event: issues", &long), by(NewsTopic::Talk, None));
    }
}
