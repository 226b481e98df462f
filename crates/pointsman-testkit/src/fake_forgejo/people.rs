//! What tests do as people, past the API.

use super::{FakeForgejo, Pull, Review, Status, issues, pulls};

/// A pull request as a test sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenPull {
    pub number: u64,
    pub head_sha: String,
    pub open: bool,
    /// As what it was merged.
    pub merged_as: Option<String>,
    /// Its reviews: author, event, commit.
    pub reviews: Vec<(String, String, String)>,
}

impl FakeForgejo {
    /// Opens an issue.
    pub fn create_issue(&self, author: &str, title: &str, body: &str, labels: &[&str]) -> u64 {
        let mut state = self.state();
        let number = issues::create(&mut state, author, title, body);
        let ids = labels.iter().map(|label| state.label_id(label)).collect();
        state.issues.get_mut(&number).expect("just made").labels = ids;
        state.tell("issues", author);
        number
    }

    /// Opens a pull request to `main` as a person; answers its number.
    pub fn open_pull(&self, author: &str, head: &str, title: &str) -> u64 {
        let sha = self.shared.branch(head).expect("the branch is there");
        let mut state = self.state();
        let number = issues::create(&mut state, author, title, "");
        state.pulls.insert(number, Pull::new(head.to_owned(), "main".to_owned(), sha));
        state.tell("pull_request", author);
        number
    }

    /// Writes a comment; answers its number.
    pub fn comment(&self, number: u64, author: &str, body: &str) -> u64 {
        let mut state = self.state();
        state.tell("issue_comment", author);
        issues::comment(&mut state, number, author, body)
    }

    /// Somebody deletes an issue.
    pub fn delete(&self, number: u64) {
        self.state().issues.remove(&number);
    }

    /// Closes an issue or a pull request.
    pub fn close(&self, number: u64) {
        let mut state = self.state();
        state.issues.get_mut(&number).expect("there is one").open = false;
        state.touch(number);
    }

    /// Makes an issue wait for another.
    pub fn depend(&self, number: u64, on: u64) {
        let mut state = self.state();
        state.issues.get_mut(&number).expect("there is one").dependencies.push(on);
        state.touch(number);
    }

    /// Reviews the present head: `APPROVED`, `REQUEST_CHANGES` or `COMMENT`, with remarks on lines.
    pub fn review(&self, number: u64, author: &str, event: &str, body: &str, remarks: &[(&str, u64, &str)]) {
        let head = self.pull(number).head_sha;
        let mut state = self.state();
        let (id, at) = (state.number(), state.now());
        let remarks =
            remarks.iter().map(|(path, line, text)| ((*path).to_owned(), *line, (*text).to_owned()));
        let review = Review {
            id,
            author: author.to_owned(),
            event: event.to_owned(),
            body: body.to_owned(),
            sha: head,
            at,
            dismissed: false,
            early: false,
            remarks: remarks.collect(),
        };
        state.pulls.get_mut(&number).expect("there is one").reviews.push(review);
        state.touch(number);
        state.tell("pull_request_review", author);
    }

    /// Takes somebody's reviews back.
    pub fn dismiss(&self, number: u64, author: &str) {
        let mut state = self.state();
        let pull = state.pulls.get_mut(&number).expect("there is one");
        pull.reviews.iter_mut().filter(|r| r.author == author).for_each(|review| review.dismissed = true);
        state.touch(number);
    }

    /// Writes a commit status, as a CI does.
    pub fn set_status(&self, sha: &str, context: &str, word: &str) {
        let mut state = self.state();
        let id = state.number();
        let (sha, context, word) = (sha.to_owned(), context.to_owned(), word.to_owned());
        let shown = serde_json::Value::from(word.as_str());
        state.statuses.push(Status { id, sha, context, state: word, creator: "ci".to_owned() });
        state.tell_with("status", "ci", &shown);
    }

    /// What was said about a commit: context and state, oldest first.
    pub fn statuses(&self, sha: &str) -> Vec<(String, String)> {
        let state = self.state();
        let of = state.statuses.iter().filter(|status| status.sha == sha);
        of.map(|status| (status.context.clone(), status.state.clone())).collect()
    }

    /// Merges by fast-forward, as a person presses the button.
    pub fn merge_by_person(&self, number: u64) {
        let pull = self.pull(number);
        let base = self.state().pulls[&number].base.clone();
        let moved = self.shared.git(&["update-ref", &format!("refs/heads/{base}"), &pull.head_sha]);
        assert!(moved.is_some(), "main takes the head");
        pulls::mark_merged(&mut self.state(), number, pull.head_sha);
    }

    /// Where a branch stands.
    pub fn branch(&self, name: &str) -> Option<String> {
        self.shared.branch(name)
    }

    /// Where all branches stand.
    pub fn heads(&self) -> Vec<String> {
        let listed = self.shared.git(&["for-each-ref", "--format=%(objectname)", "refs/heads"]);
        listed.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Makes a label; answers its number.
    pub fn make_label(&self, name: &str) -> u64 {
        self.state().label_id(name)
    }

    /// Moves a branch, as somebody who pushes.
    pub fn set_branch(&self, name: &str, sha: &str) {
        let moved = self.shared.git(&["update-ref", &format!("refs/heads/{name}"), sha]);
        assert!(moved.is_some(), "{sha} is a commit of the repository");
    }

    /// Makes an empty commit on top of another; answers its id.
    pub fn make_commit(&self, parent: &str, message: &str) -> String {
        let tree = format!("{parent}^{{tree}}");
        self.shared.git(&["commit-tree", "-p", parent, "-m", message, &tree]).expect("git makes commits")
    }

    /// A pull request.
    pub fn pull(&self, number: u64) -> SeenPull {
        let head = self.state().pulls[&number].head.clone();
        let standing = self.shared.branch(&head);
        let mut state = self.state();
        let open = state.issues[&number].open;
        let pull = state.pulls.get_mut(&number).expect("there is one");
        if let Some(sha) = standing.filter(|_| open) {
            pull.head_sha = sha;
        }
        let reviews =
            pull.reviews.iter().map(|r| (r.author.clone(), r.event.clone(), r.sha.clone())).collect();
        SeenPull { number, head_sha: pull.head_sha.clone(), open, merged_as: pull.merged_as.clone(), reviews }
    }

    /// All pull requests' numbers.
    pub fn pulls(&self) -> Vec<u64> {
        self.state().pulls.keys().copied().collect()
    }

    /// An issue's state for a test: open, labels, assignees, comments as (author, body).
    pub fn issue(&self, number: u64) -> SeenIssue {
        let state = self.state();
        let issue = &state.issues[&number];
        let name = |id: &u64| state.labels.iter().find(|l| l.id == *id).map(|l| l.name.clone());
        SeenIssue {
            open: issue.open,
            labels: issue.labels.iter().filter_map(name).collect(),
            assignees: issue.assignees.clone(),
            comments: issue.comments.iter().map(|c| (c.author.clone(), c.body.clone())).collect(),
        }
    }

    /// Label names in the repository, each as often as it is there.
    pub fn labels(&self) -> Vec<String> {
        self.state().labels.iter().map(|label| label.name.clone()).collect()
    }

    /// Everything anybody has written: titles, bodies, comments, reviews, statuses. For a search.
    pub fn all_text(&self) -> String {
        let state = self.state();
        let mut text = String::new();
        for issue in state.issues.values() {
            text.push_str(&format!("{}\n{}\n", issue.title, issue.body));
            issue.comments.iter().for_each(|comment| text.push_str(&format!("{}\n", comment.body)));
        }
        for review in state.pulls.values().flat_map(|pull| &pull.reviews) {
            text.push_str(&format!("{}\n", review.body));
        }
        state.statuses.iter().for_each(|status| text.push_str(&format!("{}\n", status.context)));
        text
    }
}

/// An issue as a test sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenIssue {
    pub open: bool,
    /// Its labels, oldest label first.
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    /// Author and text of its comments.
    pub comments: Vec<(String, String)>,
}
