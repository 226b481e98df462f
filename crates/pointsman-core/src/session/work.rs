//! The work state of a session: the crash-proof record, and how phases are told from what the agent does.

use serde::{Deserialize, Serialize};

use crate::text;
use crate::time::Timestamp;
use crate::words;

/// The phases of work, in their order: five that an agent goes through, and the one that comes with the landing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkPhase {
    Investigation,
    Planning,
    Implementation,
    Testing,
    Completion,
    /// It is on the main branch. No agent says so; git does.
    Merged,
}

impl WorkPhase {
    /// Those that an agent can be in.
    pub const ALL: [Self; 5] =
        [Self::Investigation, Self::Planning, Self::Implementation, Self::Testing, Self::Completion];

    /// The name scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Investigation => "investigation",
            Self::Planning => "planning",
            Self::Implementation => "implementation",
            Self::Testing => "testing",
            Self::Completion => "completion",
            Self::Merged => "merged",
        }
    }

    /// Reads the name of a phase that an agent can be in.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }
}

impl std::fmt::Display for WorkPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The last known result of the tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestsStatus {
    #[default]
    Unknown,
    Running,
    Passing,
    Failing,
}

/// The work state of a session. Everything in words comes from an agent and is outside text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkState {
    /// Whose (`dev-shop-3`).
    pub identity_name: String,
    /// An item of another tracker, if the issue names one.
    pub current_bead: Option<String>,
    /// A node of another plan, if the issue names one.
    pub current_node: Option<String>,
    pub work_phase: WorkPhase,
    pub work_summary: String,
    /// When this was last true.
    pub last_checkpoint_at: Timestamp,
    /// Files that differ from the main branch.
    pub files_modified: Vec<String>,
    /// What is known of the tests.
    pub tests_status: TestsStatus,
    /// What the next session should do first.
    pub resumption_instructions: String,
}

/// How much of a summary is kept.
pub const SUMMARY_CHARS: usize = 500;
/// How many files are listed.
pub const FILES_LISTED: usize = 200;

impl WorkState {
    /// The record of a session that has just been given its task.
    pub fn begin(identity_name: String, title: &str, now: Timestamp) -> Self {
        let work_summary = text::clean_line(title, SUMMARY_CHARS);
        let mut state = Self {
            identity_name,
            current_bead: None,
            current_node: None,
            work_phase: WorkPhase::Investigation,
            work_summary,
            last_checkpoint_at: now,
            files_modified: Vec::new(),
            tests_status: TestsStatus::Unknown,
            resumption_instructions: String::new(),
        };
        state.resumption_instructions = words::session::resume(state.work_phase);
        state
    }

    /// Takes an observation in; says whether anything changed.
    pub fn observe(&mut self, observation: &Observation, now: Timestamp) -> bool {
        let before = self.clone();
        match observation {
            Observation::Said { phase, summary } => {
                if let Some(phase) = phase {
                    self.work_phase = *phase;
                }
                if let Some(summary) = summary {
                    self.work_summary = text::clean_line(summary, SUMMARY_CHARS);
                }
            }
            Observation::Did(action) => {
                // An agent that says goodbye after the landing is no step back; one that works on it again is.
                let says_goodbye = self.work_phase == WorkPhase::Merged && *action == Action::Finished;
                if let Some(phase) = action.phase().filter(|_| !says_goodbye) {
                    self.work_phase = phase;
                }
                if let Some(status) = action.tests() {
                    self.tests_status = status;
                }
            }
            Observation::Files(files) => {
                let mut files: Vec<String> = files.iter().map(|f| text::clean_line(f, 300)).collect();
                files.truncate(FILES_LISTED);
                let first_change = self.files_modified.is_empty() && !files.is_empty();
                if first_change && self.work_phase < WorkPhase::Implementation {
                    self.work_phase = WorkPhase::Implementation;
                }
                self.files_modified = files;
            }
            Observation::Landed => self.work_phase = WorkPhase::Merged,
        }
        self.resumption_instructions = words::session::resume(self.work_phase);
        let changed = *self != before;
        if changed {
            self.last_checkpoint_at = now;
        }
        changed
    }
}

/// Something that was seen of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The agent said so itself.
    Said {
        phase: Option<WorkPhase>,
        summary: Option<String>,
    },
    Did(Action),
    /// These files differ from the main branch.
    Files(Vec<String>),
    /// The work is on the main branch.
    Landed,
}

/// Something an agent does, as a hook or its terminal shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Read,
    /// Wrote down a plan or a list of things to do.
    Planned,
    Edited,
    /// Ran tests; with their result if it is known.
    Tested(Option<bool>),
    /// Committed, pushed or signalled a phase.
    Finished,
    Other,
}

impl Action {
    /// The action behind a tool of an agent.
    pub fn of_tool(name: &str, command: Option<&str>, succeeded: Option<bool>) -> Self {
        match name {
            "Read" | "Grep" | "Glob" | "LS" | "WebFetch" | "WebSearch" => Self::Read,
            "TodoWrite" | "ExitPlanMode" | "EnterPlanMode" | "TaskCreate" | "TaskUpdate" => Self::Planned,
            "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => Self::Edited,
            "Bash" => command.map_or(Self::Other, |c| Self::of_command(c, succeeded)),
            _ => Self::Other,
        }
    }

    /// The action behind a shell command.
    pub fn of_command(command: &str, succeeded: Option<bool>) -> Self {
        let command = command.trim_start();
        let starts = |words: &[&str]| words.iter().any(|w| has_command(command, w));
        // A question or a failure is written there as well, whether anything is done or not.
        let hands_in =
            command.contains("PHASE_FILE") && !command.contains("escalate") && !command.contains("failed");
        if starts(&["git commit", "git push", "gh pr create"]) || hands_in {
            Self::Finished
        } else if starts(TEST_COMMANDS) {
            Self::Tested(succeeded)
        } else if starts(&["sed -i", "tee", "patch", "git apply", "mv", "cp", "mkdir"]) {
            Self::Edited
        } else if starts(&[
            "cat",
            "ls",
            "grep",
            "rg",
            "find",
            "head",
            "tail",
            "git log",
            "git diff",
            "git show",
            "git status",
        ]) {
            Self::Read
        } else {
            Self::Other
        }
    }

    /// The action behind a line on a bare program's terminal.
    pub fn of_line(line: &str) -> Option<Self> {
        let line = line.trim();
        if let Some(command) = line.strip_prefix("$ ").or_else(|| line.strip_prefix("+ ")) {
            return match Self::of_command(command, None) {
                Self::Other => None,
                action => Some(action),
            };
        }
        let lower = line.to_lowercase();
        let any = |words: &[&str]| words.iter().any(|w| lower.contains(w));
        if any(&["test result: ok", "tests passed", "all tests pass"]) || is_pass_count(&lower) {
            Some(Self::Tested(Some(true)))
        } else if any(&["test result: failed", "tests failed", "failures:"]) {
            Some(Self::Tested(Some(false)))
        } else if any(&["running tests", "running 1 test", "cargo test", "npm test", "pytest"]) {
            Some(Self::Tested(None))
        } else if any(&["git push", "git commit", "to origin"]) {
            Some(Self::Finished)
        } else if any(&["editing ", "writing ", "wrote ", "updated ", "creating "]) {
            Some(Self::Edited)
        } else if any(&["plan:", "planning", "todo:"]) {
            Some(Self::Planned)
        } else if any(&["reading ", "searching ", "looking at ", "investigating"]) {
            Some(Self::Read)
        } else {
            None
        }
    }

    fn phase(&self) -> Option<WorkPhase> {
        match self {
            Self::Read => None,
            Self::Planned => Some(WorkPhase::Planning),
            Self::Edited => Some(WorkPhase::Implementation),
            Self::Tested(_) => Some(WorkPhase::Testing),
            Self::Finished => Some(WorkPhase::Completion),
            Self::Other => None,
        }
    }

    fn tests(&self) -> Option<TestsStatus> {
        match self {
            Self::Tested(None) => Some(TestsStatus::Running),
            Self::Tested(Some(true)) => Some(TestsStatus::Passing),
            Self::Tested(Some(false)) => Some(TestsStatus::Failing),
            Self::Read | Self::Planned | Self::Edited | Self::Finished | Self::Other => None,
        }
    }
}

const TEST_COMMANDS: &[&str] = &[
    "cargo test",
    "cargo nextest",
    "npm test",
    "npm run test",
    "pnpm test",
    "yarn test",
    "pytest",
    "python -m pytest",
    "go test",
    "make test",
    "make check",
    "scripts/test",
    "./ci.sh",
    "jest",
    "vitest",
    "mvn test",
    "gradle test",
    "ctest",
    "bundle exec rspec",
    "phpunit",
];

/// Whether one of the commands of a line (`a && b; c | d`) begins with these words.
fn has_command(line: &str, words: &str) -> bool {
    line.split(['&', ';', '|', '\n', '(']).any(|part| {
        part.trim_start().strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

/// `12 passed`, `12 passed; 0 failed`, `5 passed in 0.1s`.
fn is_pass_count(lower: &str) -> bool {
    let words: Vec<&str> = lower.split_whitespace().collect();
    let passed = words.windows(2).any(|w| w[0].parse::<u32>().is_ok() && w[1].starts_with("passed"));
    let failed =
        words.windows(2).any(|w| w[0].parse::<u32>().is_ok_and(|n| n > 0) && w[1].starts_with("failed"));
    passed && !failed
}

#[cfg(test)]
mod tests {
    use super::{Action, Observation, TestsStatus, WorkPhase, WorkState};
    use crate::time::Timestamp;

    fn state() -> WorkState {
        WorkState::begin("dev-shop-3".into(), "Add a door", Timestamp(1))
    }

    #[test]
    fn r2_3_phases_follow_what_the_agent_does() {
        let mut state = state();
        let steps = [
            (Action::of_tool("Read", None, None), WorkPhase::Investigation),
            (Action::of_tool("TodoWrite", None, None), WorkPhase::Planning),
            (Action::of_tool("Edit", None, None), WorkPhase::Implementation),
            (Action::of_tool("Read", None, None), WorkPhase::Implementation),
            (Action::of_tool("Bash", Some("cd x && cargo test -q"), Some(false)), WorkPhase::Testing),
            (Action::of_tool("Edit", None, None), WorkPhase::Implementation),
            (Action::of_tool("Bash", Some("cargo test"), Some(true)), WorkPhase::Testing),
            (
                Action::of_tool("Bash", Some("git commit -qm x && git push origin HEAD"), None),
                WorkPhase::Completion,
            ),
        ];
        for (n, (action, phase)) in steps.into_iter().enumerate() {
            state.observe(&Observation::Did(action), Timestamp(n as i64));
            assert_eq!(state.work_phase, phase, "step {n}");
        }
        assert_eq!(state.tests_status, TestsStatus::Passing);
    }

    #[test]
    fn a_bare_program_is_read_from_its_terminal() {
        for (line, action) in [
            ("$ cargo test", Some(Action::Tested(None))),
            ("test result: ok. 12 passed; 0 failed", Some(Action::Tested(Some(true)))),
            ("3 passed, 1 failed", None),
            ("test result: FAILED. 1 passed; 2 failed", Some(Action::Tested(Some(false)))),
            ("writing src/a.txt", Some(Action::Edited)),
            ("+ git push origin HEAD", Some(Action::Finished)),
            ("hello", None),
        ] {
            assert_eq!(Action::of_line(line), action, "{line}");
        }
    }

    #[test]
    fn a_question_is_no_completion_and_a_landing_is_the_end() {
        for asked in ["echo PHASE:escalate > $PHASE_FILE", "printf 'PHASE:failed' > \"$PHASE_FILE\""] {
            assert_eq!(Action::of_command(asked, None), Action::Other, "{asked}");
        }
        let handed_in = "echo PHASE:awaiting_ci > $PHASE_FILE";
        assert_eq!(Action::of_command(handed_in, None), Action::Finished);
        let mut state = state();
        assert!(state.observe(&Observation::Landed, Timestamp(2)));
        assert_eq!(state.work_phase, WorkPhase::Merged);
        for later in [Observation::Files(vec!["a".into()]), Observation::Did(Action::Finished)] {
            state.observe(&later, Timestamp(3));
            assert_eq!(state.work_phase, WorkPhase::Merged, "{later:?}");
        }
        state.observe(&Observation::Did(Action::Edited), Timestamp(4));
        assert_eq!(state.work_phase, WorkPhase::Implementation, "it is worked on again");
        assert_eq!(WorkPhase::from_name("merged"), None, "no agent says so");
    }

    #[test]
    fn the_first_changed_file_means_implementation() {
        let mut state = state();
        assert!(state.observe(&Observation::Files(vec!["a".into()]), Timestamp(2)));
        assert_eq!(state.work_phase, WorkPhase::Implementation);
        assert!(!state.observe(&Observation::Files(vec!["a".into()]), Timestamp(3)), "nothing new");
        assert_eq!(state.last_checkpoint_at, Timestamp(2));
    }

    #[test]
    fn an_agent_says_so_itself_and_its_words_are_cleaned_and_cut() {
        let mut state = state();
        let summary = format!("\u{1b}[31mred\n{}", "x".repeat(2_000));
        state.observe(
            &Observation::Said { phase: Some(WorkPhase::Testing), summary: Some(summary) },
            Timestamp(2),
        );
        assert_eq!(state.work_phase, WorkPhase::Testing);
        assert!(state.work_summary.chars().count() <= super::SUMMARY_CHARS);
        assert!(!state.work_summary.chars().any(char::is_control));
        assert!(state.resumption_instructions.contains("Resume from phase: testing"));
        assert!(state.resumption_instructions.contains("do not repeat"), "AC-2.4");
    }
}
