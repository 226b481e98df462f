//! Rehearsal scripts: one step per line, blank lines and `#` comments aside.
//!
//! | step | what the agent does |
//! |---|---|
//! | `say TEXT` | prints it |
//! | `write PATH TEXT`, `append PATH TEXT` | a file of the tree; `\n` in the text breaks the line |
//! | `commit MESSAGE`, `push` | git |
//! | `merge-main` | takes the main branch in; where it conflicts, the files are left for the next `write` and `commit` |
//! | `summary TEXT` | into the summary file |
//! | `plan TEXT` | into the plan file, and hands it in |
//! | `phase NAME [REASON]`, `raw-phase TEXT` | into the phase file, the second whatever it is |
//! | `expect HEADLINE` | waits for a message that begins so, reads and acknowledges it |
//! | `refuse STATUS [#ISSUE …] REASON` | turns the task down, and names the issues that must be closed first |
//! | `context PERCENT`, `spend TOKENS CENTS` | reports how full its context is, or a further expense |
//! | `checkpoint PHASE SUMMARY` | says where it is in its work |
//! | `crash`, `exit CODE` | ends by SIGKILL or by itself; a successor goes on after it |
//! | `rate-limit SECONDS` | its service refuses for so long; goes on when it is told to |
//! | `exit-clean [PERCENT]` | waits until it is asked to save its work and exit, and does; reports so full a context first |
//! | `submit JSON` | submits an action to the vault |
//! | `answer JSON` | does all steps of its formula, writes the result and is done |
//! | `hang`, `idle` | busy for ever; waits at its prompt for ever |

use std::path::{Component, Path, PathBuf};

use pointsman_core::role::{Role, UnknownRole};
use pointsman_core::session::work::WorkPhase;
use pointsman_core::task::{Phase, RefusalStatus};

const BEGIN: &str = "rehearsal:begin";
const END: &str = "rehearsal:end";
/// What a role answers that was given no script.
const NO_SCRIPT: &str =
    r#"{"verdict": "APPROVE", "verdict_reason": "The rehearsal agent has no script and finds nothing."}"#;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Say(String),
    /// Put this text into a file of the tree.
    Write {
        /// The file, inside the tree.
        path: PathBuf,
        /// All that it will hold.
        text: String,
    },
    /// Put this text at the end of a file of the tree.
    Append {
        /// The file, inside the tree.
        path: PathBuf,
        /// What comes to its end.
        text: String,
    },
    /// Commit everything in the tree.
    Commit(String),
    Push,
    /// Take the main branch in; conflicts stay in the tree.
    MergeMain,
    /// Write the pull request's summary.
    Summary(String),
    /// Write a plan and hand it in.
    Plan(String),
    Phase {
        name: String,
        reason: Option<String>,
    },
    /// Write anything into the phase file.
    RawPhase(String),
    /// Wait for a message whose line begins like this.
    Expect(String),
    Refuse {
        status: RefusalStatus,
        /// The issues that must be closed first.
        blocked_by: Vec<u64>,
        reason: String,
    },
    /// Report how full the context is, in percent.
    Context(u16),
    Spend {
        tokens: u64,
        cents: u64,
    },
    /// Say where the work stands.
    Checkpoint {
        phase: WorkPhase,
        summary: String,
    },
    /// A dangerous action, to the vault.
    Submit(String),
    /// All steps of a formula, and its result.
    Answer(String),
    Crash,
    /// The service refuses for so many seconds.
    RateLimit(u32),
    Exit(i32),
    /// Exit as soon as one is asked to.
    ExitClean {
        /// How full the context is, in percent; reported again by a successor that finds this undone.
        report: Option<u16>,
    },
    /// Do nothing for ever, looking busy.
    Hang,
    /// Wait at the prompt for ever.
    Idle,
}

/// A script that cannot be played.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Role(UnknownRole),
    /// There is no complete block.
    #[error("there is no script between `{BEGIN}` and `{END}` in the issue")]
    NoScript,
    #[error("line {line}: `{word}` is not a step")]
    UnknownStep {
        /// Which line of the script.
        line: usize,
        word: String,
    },
    /// Something is missing or not as it should be.
    #[error("line {line}: `{step}` needs {needs}")]
    Needs {
        /// Which line of the script.
        line: usize,
        step: &'static str,
        needs: &'static str,
    },
}

/// The script of a role that runs a formula, between `rehearsal-ROLE:begin` and `rehearsal-ROLE:end`: the first one, or the
/// last one if it is asked again. Without any, it has nothing to find.
pub fn parse_role(text: &str, role: Role, again: bool) -> Result<Vec<Step>, Error> {
    let (begin, end) = (format!("rehearsal-{role}:begin"), format!("rehearsal-{role}:end"));
    let lines: Vec<&str> = text.lines().map(unquoted).collect();
    let mut begins = lines.iter().enumerate().filter(|(_, line)| **line == begin).map(|(at, _)| at);
    let found = if again { begins.next_back() } else { begins.next() };
    let Some(found) = found else { return Ok(vec![Step::Answer(NO_SCRIPT.to_owned())]) };
    steps(&lines[found + 1..], &end)
}

/// Finds and reads the script in a text that quotes the issue, indented or not. The last one
/// counts: an issue comes after everything else that may quote one.
pub fn parse(prompt: &str) -> Result<Vec<Step>, Error> {
    let lines: Vec<&str> = prompt.lines().map(unquoted).collect();
    let begin = lines.iter().rposition(|l| *l == BEGIN).ok_or(Error::NoScript)?;
    steps(&lines[begin + 1..], END)
}

fn steps(script: &[&str], end: &str) -> Result<Vec<Step>, Error> {
    let end = script.iter().position(|l| *l == end).ok_or(Error::NoScript)?;
    let steps = script[..end].iter().enumerate().filter(|(_, l)| !l.is_empty() && !l.starts_with('#'));
    steps.map(|(index, line)| step(index + 1, line)).collect()
}

fn unquoted(line: &str) -> &str {
    line.trim_start_matches(|c: char| c == '>' || c.is_whitespace()).trim_end()
}

fn step(line: usize, text: &str) -> Result<Step, Error> {
    let (word, rest) = split_word(text);
    let needs = |step, needs| Error::Needs { line, step, needs };
    let text_of = |step| match rest {
        "" => Err(needs(step, "a text")),
        text => Ok(text.to_owned()),
    };
    let file_of = |step| {
        let (path, text) = split_word(rest);
        let path = inside(path).ok_or(needs(step, "a path inside the tree"))?;
        Ok((path, format!("{}\n", text.replace("\\n", "\n"))))
    };
    Ok(match word {
        "say" => Step::Say(text_of("say")?),
        "write" => file_of("write").map(|(path, text)| Step::Write { path, text })?,
        "append" => file_of("append").map(|(path, text)| Step::Append { path, text })?,
        "commit" => Step::Commit(text_of("commit")?),
        "push" => Step::Push,
        "merge-main" => Step::MergeMain,
        "summary" => Step::Summary(text_of("summary")?),
        "plan" => Step::Plan(text_of("plan")?),
        "phase" => {
            let (name, reason) = split_word(rest);
            Phase::from_name(name).ok_or(needs("phase", "the name of a phase"))?;
            let reason = (!reason.is_empty()).then(|| reason.to_owned());
            Step::Phase { name: name.to_owned(), reason }
        }
        "raw-phase" => Step::RawPhase(rest.to_owned()),
        "expect" => Step::Expect(text_of("expect")?),
        "refuse" => {
            let (status, mut reason) = split_word(rest);
            let status = refusal(status).ok_or(needs("refuse", "a status of the protocol"))?;
            let mut blocked_by = Vec::new();
            while let Some((number, after)) = issue_number(reason) {
                blocked_by.push(number);
                reason = after;
            }
            Step::Refuse { status, blocked_by, reason: reason.to_owned() }
        }
        "context" => Step::Context(percentage(rest).ok_or(needs("context", "a percentage"))?),
        "spend" => {
            let (tokens, cents) = split_word(rest);
            match (tokens.parse(), cents.parse()) {
                (Ok(tokens), Ok(cents)) => Step::Spend { tokens, cents },
                _ => return Err(needs("spend", "tokens and cents")),
            }
        }
        "checkpoint" => {
            let (phase, summary) = split_word(rest);
            let phase = WorkPhase::from_name(phase).ok_or(needs("checkpoint", "a phase of work"))?;
            Step::Checkpoint { phase, summary: summary.to_owned() }
        }
        "submit" => Step::Submit(text_of("submit")?),
        "answer" => Step::Answer(text_of("answer")?),
        "crash" => Step::Crash,
        "rate-limit" => Step::RateLimit(rest.parse().map_err(|_| needs("rate-limit", "seconds"))?),
        "exit" => Step::Exit(rest.parse().map_err(|_| needs("exit", "a code"))?),
        "exit-clean" if rest.is_empty() => Step::ExitClean { report: None },
        "exit-clean" => {
            let report = percentage(rest).ok_or(needs("exit-clean", "a percentage or nothing"))?;
            Step::ExitClean { report: Some(report) }
        }
        "hang" => Step::Hang,
        "idle" => Step::Idle,
        word => return Err(Error::UnknownStep { line, word: word.to_owned() }),
    })
}

fn percentage(text: &str) -> Option<u16> {
    text.parse().ok().filter(|percent| *percent <= 100)
}

fn split_word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

/// The issue that a text begins with (`#3 …`), and the rest of it.
fn issue_number(text: &str) -> Option<(u64, &str)> {
    let (word, rest) = split_word(text);
    Some((word.strip_prefix('#')?.parse().ok()?, rest))
}

/// A path that stays in the tree and out of git's own files.
fn inside(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let mut parts = path.components().peekable();
    let first = parts.peek()?.as_os_str();
    (first != ".git" && parts.all(|part| matches!(part, Component::Normal(_)))).then(|| path.to_owned())
}

fn refusal(status: &str) -> Option<RefusalStatus> {
    match status {
        "unmet_dependency" => Some(RefusalStatus::UnmetDependency),
        "too_large" => Some(RefusalStatus::TooLarge),
        "already_done" => Some(RefusalStatus::AlreadyDone),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_lines(lines: &str) -> Result<Vec<Step>, Error> {
        parse(&format!("{BEGIN}\n{lines}\n{END}\n"))
    }

    fn one(line: &str) -> Step {
        parse_lines(line).unwrap().remove(0)
    }

    #[test]
    fn a_role_has_scripts_of_its_own() {
        let text = "rehearsal:begin\npush\nrehearsal:end\n> rehearsal-review:begin\n> answer {\"a\": 1}\n> rehearsal-review:end\n\
                    rehearsal-review:begin\nhang\nrehearsal-review:end\n";
        assert_eq!(parse_role(text, Role::Review, false), Ok(vec![Step::Answer("{\"a\": 1}".to_owned())]));
        assert_eq!(parse_role(text, Role::Review, true), Ok(vec![Step::Hang]));
        assert_eq!(parse(text), Ok(vec![Step::Push]));
        assert_eq!(parse_role("", Role::Review, false), Ok(vec![Step::Answer(NO_SCRIPT.to_owned())]));
        assert_eq!(parse_role("rehearsal-action:begin\n", Role::Action, false), Err(Error::NoScript));
    }

    #[test]
    fn every_step_reads_as_it_is_written() {
        assert_eq!(one("say hello  there"), Step::Say("hello  there".to_owned()));
        assert_eq!(
            one("write src/a.txt one\\ntwo"),
            Step::Write { path: "src/a.txt".into(), text: "one\ntwo\n".to_owned() }
        );
        assert_eq!(one("append a.txt"), Step::Append { path: "a.txt".into(), text: "\n".to_owned() });
        assert_eq!(one("commit Fix: it"), Step::Commit("Fix: it".to_owned()));
        assert_eq!(one("push"), Step::Push);
        assert_eq!(one("merge-main"), Step::MergeMain);
        assert_eq!(one("summary Prices"), Step::Summary("Prices".to_owned()));
        assert_eq!(one("plan In cents"), Step::Plan("In cents".to_owned()));
        assert_eq!(one("phase done"), Step::Phase { name: "done".to_owned(), reason: None });
        assert_eq!(
            one("phase needs_human which colour?"),
            Step::Phase { name: "needs_human".to_owned(), reason: Some("which colour?".to_owned()) }
        );
        assert_eq!(one("raw-phase PHASE:perhaps"), Step::RawPhase("PHASE:perhaps".to_owned()));
        assert_eq!(one("raw-phase"), Step::RawPhase(String::new()));
        assert_eq!(one("expect CI failed"), Step::Expect("CI failed".to_owned()));
        assert_eq!(
            one("refuse too_large split it"),
            Step::Refuse {
                status: RefusalStatus::TooLarge,
                blocked_by: vec![],
                reason: "split it".to_owned()
            }
        );
        assert_eq!(
            one("refuse unmet_dependency #3 #12 not yet"),
            Step::Refuse {
                status: RefusalStatus::UnmetDependency,
                blocked_by: vec![3, 12],
                reason: "not yet".to_owned()
            }
        );
        assert_eq!(one("context 93"), Step::Context(93));
        assert_eq!(one("rate-limit 90"), Step::RateLimit(90));
        assert_eq!(one("spend 1200 35"), Step::Spend { tokens: 1200, cents: 35 });
        assert_eq!(
            one("checkpoint testing the till"),
            Step::Checkpoint { phase: WorkPhase::Testing, summary: "the till".to_owned() }
        );
        assert_eq!(
            parse_lines("crash\nexit 3\nexit-clean\nexit-clean 93\nhang\nidle").unwrap(),
            [
                Step::Crash,
                Step::Exit(3),
                Step::ExitClean { report: None },
                Step::ExitClean { report: Some(93) },
                Step::Hang,
                Step::Idle
            ]
        );
    }

    #[test]
    fn what_cannot_be_played_is_refused_with_its_line() {
        let cases = [
            ("dance", "line 1: `dance` is not a step"),
            ("push\n\n# why\nsay", "line 4: `say` needs a text"),
            ("phase perhaps", "line 1: `phase` needs the name of a phase"),
            ("exit soon", "line 1: `exit` needs a code"),
            ("rate-limit -1", "line 1: `rate-limit` needs seconds"),
            ("context 101", "line 1: `context` needs a percentage"),
            ("spend 5", "line 1: `spend` needs tokens and cents"),
            ("checkpoint lunch", "line 1: `checkpoint` needs a phase of work"),
            ("refuse bored", "line 1: `refuse` needs a status of the protocol"),
            ("write /etc/passwd x", "line 1: `write` needs a path inside the tree"),
            ("write ../x x", "line 1: `write` needs a path inside the tree"),
            ("write a/../../x x", "line 1: `write` needs a path inside the tree"),
            ("append .git/config x", "line 1: `append` needs a path inside the tree"),
            ("write", "line 1: `write` needs a path inside the tree"),
        ];
        for (script, message) in cases {
            assert_eq!(parse_lines(script).unwrap_err().to_string(), message, "{script}");
        }
    }

    #[test]
    fn the_script_is_found_however_the_prompt_quotes_it() {
        let quoted = "# Issue #3\n\n> Please.\n> ```text\n>   rehearsal:begin\n>   say hello\n\n>   push\r\n\
                      > rehearsal:end\n> ```\n\nWrite exactly one line…\n";
        assert_eq!(parse(quoted).unwrap(), [Step::Say("hello".to_owned()), Step::Push]);
    }

    #[test]
    fn the_last_script_counts_and_an_unfinished_one_is_none() {
        let review = "rehearsal:begin\nhang\nrehearsal:end\n";
        assert_eq!(
            parse(&format!("{review}\nrehearsal:begin\npush\nrehearsal:end\n")).unwrap(),
            [Step::Push]
        );
        assert_eq!(parse("rehearsal:begin\npush\n"), Err(Error::NoScript));
        assert_eq!(parse("nothing of the kind"), Err(Error::NoScript));
    }
}
