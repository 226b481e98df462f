//! The first text for the session of a run, and the outcomes of runs.

use std::time::Duration;

use super::span;
use crate::part::question::Question;
use crate::run::{Run, Status};
use crate::task::Notice;
use crate::text::{clean_block, clean_line, quote_block};

/// How much of what a person said is passed on, in bytes.
const SAID: usize = 4000;

// Events that come to nothing, said to whoever sent them.
pub const REPLACED: &str = "that session was replaced";
pub const HANDED_IN_ALREADY: &str = "what it hands in is already known";
pub const NOTHING_ON_ITS_WAY: &str = "nothing that it handed in is in progress";
pub const STILL_OURS: &str = "the commit on its branch is ours";
pub const NOT_OURS: &str = "its branch belongs to somebody else";
pub const NOTHING_TO_AWAIT: &str = "a run has no CI and no review to wait for";
pub const NOBODY_ASKED: &str = "its session does not wait for an answer";
pub const ASKS_SOMETHING_ELSE: &str = "the agent asks something else";

/// Why a run begins another session.
pub const SESSION_DIED: &str = "its session died";
pub const RESULT_NOT_AN_OBJECT: &str = "its result is not a JSON object";

/// A result that is too large to be kept.
pub fn result_too_large(most: usize) -> String {
    format!("its result has more than {most} bytes")
}

/// A result that cannot be read.
pub fn result_not_json(error: &serde_json::Error) -> String {
    format!("its result is not JSON: {error}")
}

/// An event of a run that is over.
pub fn over(status: Status) -> String {
    format!("it is already {}", status.as_str())
}

/// The run waits for nobody.
pub fn now(status: Status) -> String {
    format!("the run is now {}", status.as_str())
}

/// A step that the formula does not have.
pub fn no_such_step(formula: &str, step: &str) -> String {
    format!("{formula} has no step {}", clean_line(step, 80))
}

/// A step before its time.
pub fn step_too_early(step: &str, missing: &str) -> String {
    format!("{step} needs {missing}, which is not done")
}

/// A session that said `done` too early.
pub fn step_left_out(step: &str) -> String {
    format!("the session said that it was done, but the step {step} is not")
}

/// A person did not answer in time.
pub fn nobody_answered(limit: Duration, question: &str) -> String {
    format!("nobody answered within {}: {}", span(limit), clean_line(question, 300))
}

/// A run that took too long.
pub fn out_of_time(limit: Duration) -> String {
    format!("it was not finished after {}", span(limit))
}

/// A person ended it.
pub fn stopped(by: &str) -> String {
    format!("ended by {}", clean_line(by, 100))
}

/// A run whose sessions do not live.
pub fn died_often(times: u32) -> String {
    format!("its sessions died {times} times")
}

/// The files that a session reads and writes.
#[derive(Clone, Debug)]
pub struct RunFiles {
    /// Where it writes its phase.
    pub phase_file: String,
    pub result_file: String,
}

/// The prompt as a file; `briefing` says what this very run is about.
pub fn prompt(run: &Run, places: &RunFiles, briefing: &str) -> String {
    let formula = &run.formula;
    let mut out = format!(
        "# Run {} of {} for {}\n\n{}\n\n",
        run.id,
        formula.name,
        run.project,
        formula.description.trim()
    );
    if run.session.generation > 1 {
        out.push_str(
            "An earlier session of this run ended before it had finished. Continue where it stopped.\n\n",
        );
    }
    if !formula.files.is_empty() {
        out.push_str(&format!("Read first: {}\n\n", formula.files.join(", ")));
    }
    out.push_str(briefing);
    if let Some(found) = &run.briefing {
        out.push_str(found);
    }
    out.push_str(
        "Do the steps below in order. After each one, run `pointsman step done ID`. When all are done, write \
            `PHASE:done` into the phase file; if you cannot continue, `PHASE:failed` with a second line `Reason: \
            …`.\n\n",
    );
    out.push_str(&format!("Phase file: {}\n", places.phase_file));
    out.push_str(&format!(
        "Result file (one JSON object, if the steps ask for a result): {}\n\n",
        places.result_file
    ));
    let next = run.next_step().map(|step| step.id.as_str());
    for (place, step) in formula.steps.iter().enumerate() {
        let mark = match (run.is_done(&step.id), next == Some(step.id.as_str())) {
            (true, _) => " (done)",
            (false, true) if run.session.generation > 1 => " (continue here)",
            (false, _) => "",
        };
        out.push_str(&format!("## {}. {}: {}{mark}\n\n", place + 1, step.id, step.title));
        if !run.is_done(&step.id) {
            out.push_str(step.description.trim());
            out.push_str("\n\n");
        }
    }
    out
}

/// The one line that is given to the program; the rest is in the file it names.
pub fn first_line(run: &Run, prompt_file: &str) -> String {
    format!("[pointsman m-0] Run {} of {}. Details: {prompt_file}", run.id, run.formula.name)
}

/// The words of people in the role's thread since it last ran, who and what; nothing if nobody said anything.
pub fn said<'w>(words: impl Iterator<Item = (&'w str, &'w str)>) -> String {
    let said: String = words
        .map(|(by, words)| {
            format!("{}:\n\n{}\n\n", clean_line(by, 100), quote_block(&clean_block(words, SAID)))
        })
        .collect();
    if said.is_empty() {
        return said;
    }
    format!(
        "## What people said to you\n\nWritten since you last ran, by people who may decide. Follow it.\n\n{said}"
    )
}

/// A session asks for a person.
pub fn question(run: &Run, asked: &Question) -> Notice {
    let repeat = asked.notices.saturating_sub(1);
    let again = if repeat > 0 { format!(" (asked {} times)", asked.notices) } else { String::new() };
    Notice {
        title: format!("{}: run {} of {} needs a person{again}", run.project, run.id, run.formula.name),
        body: format!(
            "Why: {}\nTo answer: {}{}\nTo see more, run `pointsman run show {}`.",
            clean_line(asked.text(), 500),
            super::question::settle(asked).join(", or: "),
            run.source().issue.map(|issue| format!(", or comment on issue #{issue}")).unwrap_or_default(),
            run.id
        ),
        urgent: true,
        repeat,
    }
}

/// Something about a run that people should know, and that nobody has to act on.
pub fn notice(run: &Run, what: &str) -> Notice {
    Notice {
        title: format!("{}: run {} of {}", run.project, run.id, run.formula.name),
        body: format!("{}\nTo see more, run `pointsman run show {}`.", clean_line(what, 500), run.id),
        urgent: false,
        repeat: 0,
    }
}

/// The words of a run's agent at the end of a turn, for people who read along.
pub fn response(run: &Run, text: &str) -> Notice {
    let body = quote_block(&clean_block(text, SAID));
    Notice { body, ..notice(run, "") }
}
