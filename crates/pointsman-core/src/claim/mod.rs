//! `.agent-claim.json` records which issue a person's own Claude Code session has claimed, and its progress.
//!
//! The file is a claim: it says what an agent believes. Pointsman checks it against the forge before it opens or
//! closes anything. [`on_hook`] has the decisions of the hooks that read the file, and `words/claim.rs` has their
//! sentences. The command line reads and writes the file.

pub mod on_hook;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::ids::Number;

/// What the file is called, in the root of the project.
pub const FILE_NAME: &str = ".agent-claim.json";
/// The version that is written, and the only one that is understood.
pub const SCHEMA_VERSION: u64 = 1;
/// A claim is a dozen short fields; more than this is something else.
pub const LARGEST: u64 = 64 * 1024;

/// The file, field by field. Fields that we do not know are kept as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u64,
    /// The item of the forge's board.
    #[serde(default)]
    pub item_id: String,
    /// The issue that is worked on.
    pub issue_number: Number,
    /// The branch that holds the work.
    #[serde(default)]
    pub branch: String,
    /// Who works on it: the Agent field of the board.
    #[serde(default)]
    pub agent_id: String,
    #[serde(default)]
    pub phase: Phase,
    /// The title of the pull request.
    #[serde(default)]
    pub summary: String,
    /// The Status that the board should show.
    #[serde(default)]
    pub status: String,
    /// The pull request, once there is one.
    #[serde(default)]
    pub pr_number: Option<Number>,
    /// When the checks were last looked at. Kept as it was written: an unreadable time means "look again".
    #[serde(default, deserialize_with = "any_text")]
    pub last_check_poll: Option<String>,
    /// The Status that the board was last given.
    #[serde(default)]
    pub last_synced_status: Option<String>,
    /// What others put into the file.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// The progress of a claim. In a phase that we do not know, only the board is kept up to date.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Phase {
    /// The work is being done.
    #[default]
    Coding,
    /// The work is handed in; the hook opens the pull request.
    ReadyForPr,
    /// The pull request is open.
    PrCreated,
    /// Its checks were looked at.
    ChecksRunning,
    /// A person has confirmed that the issue can be closed.
    Done,
    Other(String),
}

impl Phase {
    /// The word in the file.
    pub fn name(&self) -> &str {
        match self {
            Self::Coding => "coding",
            Self::ReadyForPr => "ready_for_pr",
            Self::PrCreated => "pr_created",
            Self::ChecksRunning => "checks_running",
            Self::Done => "done",
            Self::Other(name) => name,
        }
    }
}

impl From<String> for Phase {
    fn from(name: String) -> Self {
        match name.as_str() {
            "coding" => Self::Coding,
            "ready_for_pr" => Self::ReadyForPr,
            "pr_created" => Self::PrCreated,
            "checks_running" => Self::ChecksRunning,
            "done" => Self::Done,
            _ => Self::Other(name),
        }
    }
}

impl From<Phase> for String {
    fn from(phase: Phase) -> Self {
        phase.name().to_owned()
    }
}

/// The reasons why a file is not a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It was written by another version.
    #[error(
        "schema_version {found} is not understood, only {SCHEMA_VERSION} is: finish it with the program that wrote it, or \
         remove {FILE_NAME} and claim again"
    )]
    Version { found: String },
    /// It is not JSON, or a field has a wrong type.
    #[error("it cannot be read: {0}")]
    Malformed(String),
}

impl Claim {
    /// A fresh claim.
    pub fn new(issue: Number, item_id: String, branch: String, agent_id: String, status: &str) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            item_id,
            issue_number: issue,
            branch,
            agent_id,
            phase: Phase::Coding,
            summary: String::new(),
            status: status.to_owned(),
            pr_number: None,
            last_check_poll: None,
            last_synced_status: Some(status.to_owned()),
            further: Map::new(),
        }
    }

    /// Reads a file's content. Another version is refused before anything else is looked at.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Version {
            schema_version: Option<Value>,
        }
        let malformed = |error: serde_json::Error| Error::Malformed(error.to_string());
        let version: Version = serde_json::from_slice(bytes).map_err(malformed)?;
        match version.schema_version {
            Some(Value::Number(number)) if number.as_u64() == Some(SCHEMA_VERSION) => {
                serde_json::from_slice(bytes).map_err(malformed)
            }
            Some(other) => Err(Error::Version { found: other.to_string() }),
            None => Err(Error::Version { found: "(missing)".to_owned() }),
        }
    }

    /// The file's content.
    pub fn render(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("strings, numbers and what was JSON before become JSON");
        text.push('\n');
        text
    }
}

/// A text, or whatever else stands there as it is written.
fn any_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(other) => Some(other.to_string()),
    })
}

/// The branch that a claim proposes: `claude/fix-thing-42`.
pub fn branch_name(issue: Number, title: &str) -> String {
    const SLUG_CHARS: usize = 40;
    let mut slug = String::new();
    for c in title.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => slug.push(c.to_ascii_lowercase()),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
        if slug.len() >= SLUG_CHARS {
            break;
        }
    }
    match slug.trim_end_matches('-') {
        "" => format!("claude/issue-{issue}"),
        slug => format!("claude/{slug}-{issue}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Error, Phase, branch_name};

    const SEED: &str = r#"{
      "schema_version": 1, "item_id": "PVTI_lADOBx...", "issue_number": 42, "branch": "claude/fix-thing-42",
      "agent_id": "edouard-1738000000", "phase": "coding", "summary": "", "status": "In Progress",
      "pr_number": null, "last_check_poll": null, "last_synced_status": "In Progress"
    }"#;

    #[test]
    fn the_file_of_the_protocol_is_read_and_written() {
        let claim = Claim::parse(SEED.as_bytes()).unwrap();
        let fresh = Claim::new(
            42,
            "PVTI_lADOBx...".into(),
            "claude/fix-thing-42".into(),
            "edouard-1738000000".into(),
            "In Progress",
        );
        assert_eq!(claim, fresh);
        assert_eq!(Claim::parse(claim.render().as_bytes()).unwrap(), claim);
        for field in [
            "schema_version",
            "item_id",
            "issue_number",
            "branch",
            "agent_id",
            "phase",
            "summary",
            "status",
            "pr_number",
            "last_check_poll",
            "last_synced_status",
        ] {
            assert!(claim.render().contains(&format!("\"{field}\":")), "{field}");
        }
    }

    #[test]
    fn unknown_fields_and_phases_are_kept() {
        let text = SEED.replace("\"summary\": \"\",", "\"summary\": \"\", \"notes\": [1, {\"a\": null}],");
        let claim = Claim::parse(text.replace("\"coding\"", "\"merged_detected\"").as_bytes()).unwrap();
        assert_eq!(claim.phase, Phase::Other("merged_detected".into()));
        let again: serde_json::Value = serde_json::from_str(&claim.render()).unwrap();
        assert_eq!(again["notes"], serde_json::json!([1, {"a": null}]));
        assert_eq!(again["phase"], "merged_detected");
    }

    #[test]
    fn another_version_is_refused_whatever_else_it_says() {
        for version in ["2", "0", "\"1\"", "null", "1.5"] {
            let text = SEED.replace("\"schema_version\": 1", &format!("\"schema_version\": {version}"));
            assert!(matches!(Claim::parse(text.as_bytes()), Err(Error::Version { .. })), "{version}");
        }
        let other = Claim::parse(br#"{"schema_version": 2, "issue": "nothing we know"}"#).unwrap_err();
        assert!(other.to_string().contains("schema_version 2"), "{other}");
        assert!(matches!(Claim::parse(b"{}"), Err(Error::Version { .. })));
        for text in ["", "{", "[]", r#"{"schema_version": 1, "issue_number": "x"}"#] {
            assert!(matches!(Claim::parse(text.as_bytes()), Err(Error::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn an_odd_time_is_kept_for_whoever_wrote_it() {
        for (written, read) in
            [("\"yesterday\"", Some("yesterday")), ("17", Some("17")), ("null", None), ("[]", Some("[]"))]
        {
            let text = SEED.replace("\"last_check_poll\": null", &format!("\"last_check_poll\": {written}"));
            assert_eq!(Claim::parse(text.as_bytes()).unwrap().last_check_poll.as_deref(), read);
        }
    }

    #[test]
    fn a_branch_is_named_after_the_issue_whatever_its_title_holds() {
        for (title, branch) in [
            ("Fix thing", "claude/fix-thing-42"),
            ("  --force $(rm -rf /)  ", "claude/force-rm-rf-42"),
            ("日本", "claude/issue-42"),
            ("", "claude/issue-42"),
        ] {
            assert_eq!(branch_name(42, title), branch);
        }
        assert!(branch_name(42, &"long ".repeat(50)).len() < 60);
    }
}
