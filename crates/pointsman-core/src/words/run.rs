//! What the session of a run reads first.

use crate::run::Run;
use crate::task::Notice;
use crate::text::{clean_block, clean_line, quote_block};

/// How much of what a person said is passed on, in bytes.
const SAID: usize = 4000;

/// Where a session finds and leaves things.
#[derive(Clone, Debug)]
pub struct Places {
    /// Where it writes its phase.
    pub phase_file: String,
    pub result_file: String,
}

/// The prompt as a file; `briefing` says what this very run is about.
pub fn prompt(run: &Run, places: &Places, briefing: &str) -> String {
    let formula = &run.formula;
    let mut out = format!(
        "# Run {} of {} for {}\n\n{}\n\n",
        run.id,
        formula.name,
        run.project,
        formula.description.trim()
    );
    if run.generation > 1 {
        out.push_str("An earlier session of this run ended before it was through. Go on where it was.\n\n");
    }
    if !formula.files.is_empty() {
        out.push_str(&format!("Read first: {}\n\n", formula.files.join(", ")));
    }
    out.push_str(briefing);
    if let Some(found) = &run.briefing {
        out.push_str(found);
    }
    out.push_str(
        "Do the steps below in their order. After each one: `pointsman step done ID`. When all are done, write \
         `PHASE:done` into the phase file; if you cannot go on, `PHASE:failed` with a second line `Reason: …`.\n\n",
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
            (false, true) if run.generation > 1 => " (go on here)",
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

/// A person's answer, as the terminal line that the session sees.
pub fn answer(id: i64, subject: &str, path: &str) -> String {
    format!("[pointsman reply-{id}] Answer{subject} Details: {path}")
}

/// What people said in the role's thread since it last ran, who and what; nothing if nobody did.
pub fn said<'w>(words: impl Iterator<Item = (&'w str, &'w str)>) -> String {
    let said: String = words
        .map(|(by, words)| {
            format!("{}:\n\n{}\n\n", clean_line(by, 100), quote_block(&clean_block(words, SAID)))
        })
        .collect();
    if said.is_empty() {
        return said;
    }
    format!("## What people said to you\n\nYour people, since you last ran. Their word counts.\n\n{said}")
}

/// A session asks for a person.
pub fn question(run: &Run, why: &str) -> Notice {
    Notice {
        title: format!("{}: run {} of {} needs a person", run.project, run.id, run.formula.name),
        body: format!("Why: {}\nLook: pointsman run show {}", clean_line(why, 500), run.id),
        urgent: true,
        repeat: 0,
    }
}
