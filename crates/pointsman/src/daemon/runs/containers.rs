//! The containers of an action: they go with the session that started them.

use std::path::Path;

use pointsman_adapters::containers::{PROGRAMS, end_labelled};
use pointsman_adapters::process::find_program;
use pointsman_core::run::{Run, Subject};

use crate::daemon::effects::EffectPerformer;
use crate::daemon::vault::trusted;

/// What a session's containers are to carry. Another daemon may have a session of the same name.
pub(in crate::daemon) fn label(world: &EffectPerformer, session: &str) -> String {
    format!("pointsman.session={}/{session}", world.paths.state().display())
}

/// Ends what the sessions of a run up to this one started. What cannot be ended is told in the log.
pub(in crate::daemon) fn end(world: &EffectPerformer, run: &Run, last: u32) {
    if !matches!(run.subject, Some(Subject::Action { .. })) {
        return;
    }
    let path = (world.environment)("PATH");
    for name in PROGRAMS {
        let found = find_program(name, path.as_deref(), Path::new("/"));
        let Some(program) = found.filter(|program| program.is_absolute()) else { continue };
        if let Err(why) = trusted(&program, world.paths.state()) {
            tracing::warn!(why, "containers are not looked for");
            continue;
        }
        for session in (1..=last).map(|generation| run.key().session(generation)) {
            match end_labelled(&program, &label(world, &session)) {
                Ok(0) => {}
                Ok(ended) => tracing::info!(session, ended, name, "ended the containers of a session"),
                Err(why) => tracing::warn!(session, name, why, "containers could not be looked for"),
            }
        }
    }
}
