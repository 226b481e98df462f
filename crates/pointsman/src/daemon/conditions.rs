//! Conditions of a session's request beyond what the request itself shows. Looked up once it is known that the
//! session may ask at all (`control/access.rs`), in the daemon and in a command that acts in its place.

use pointsman_adapters::forge::Forge;
use pointsman_core::config::Config;
use pointsman_core::forge::IssueState;
use pointsman_core::words;
use pointsman_store::{self as store, EffectId, MessageRow};

use super::answer::failed;
use super::effects::chain;
use crate::control::access::Condition;
use crate::control::caller::OwnSession;
use crate::control::protocol::{FailureKind, Reply};
use crate::embedded_forge::EmbeddedForge;

/// The embedded forge of the session's project, and its configuration.
#[derive(Clone, Copy)]
pub(crate) struct ForgeContext<'f> {
    pub forge: &'f EmbeddedForge,
    pub config: &'f Config,
}

/// Whether it holds; the reply says why not. What is not there is left to whoever looks for it.
pub(crate) fn holds(
    condition: Condition,
    own: &OwnSession,
    message: impl FnOnce(EffectId) -> Result<Option<MessageRow>, store::Error>,
    place: Option<ForgeContext<'_>>,
) -> Result<(), Reply> {
    let refused = |why: String| Err(failed(FailureKind::Refused, why));
    match condition {
        Condition::MessageIsOwn(id) => match message(EffectId(id)) {
            Ok(Some(message)) if message.task.session(message.generation) != own.session => {
                refused(words::access::not_its_message(&own.session, id))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(failed(FailureKind::Failed, chain(&error))),
        },
        Condition::IssueIsOpen(number) => {
            let Some(place) = place else { return Ok(()) };
            match place.forge.issue(number) {
                Ok(Some(issue)) if issue.state != IssueState::Open => {
                    refused(words::access::closed_issue(&own.session, number))
                }
                Ok(_) => Ok(()),
                Err(error) => Err(failed(FailureKind::of_forge(&error), chain(&error))),
            }
        }
        Condition::MayFile => {
            let Some(place) = place else { return Ok(()) };
            let limit = place.config.limits.session_issues;
            // The issues themselves are the count: it is right after any crash, and nobody else writes under this name.
            match place.forge.filed_by(&own.session) {
                Ok(filed) if u32::try_from(filed).is_ok_and(|filed| filed < limit) => Ok(()),
                Ok(_) => refused(words::access::filed_enough(&own.session, limit)),
                Err(error) => Err(failed(FailureKind::of_forge(&error), chain(&error))),
            }
        }
    }
}
