//! Conditions of a session's request beyond what the request itself shows. Looked up once it is known that the
//! session may ask at all (`control/access.rs`), in the daemon and in a command that acts in its place.

use pointsman_adapters::forge::{self, Forge};
use pointsman_core::config::Config;
use pointsman_core::filing::{Filing, FilingFacts, judge};
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

/// The questions to people about issues that sessions want to file: how one is asked, and whether it was settled by a yes. A
/// command that acts in the daemon's place asks nobody.
pub(crate) struct FilingQuestions<'a> {
    pub approved: &'a dyn Fn(&str) -> bool,
    pub ask: &'a dyn Fn(&OwnSession, String),
}

impl FilingQuestions<'_> {
    /// Nobody was asked, and nobody is.
    pub(crate) const NONE: FilingQuestions<'static> =
        FilingQuestions { approved: &|_| false, ask: &|_, _| {} };

    fn approved(&self, session: &str) -> bool {
        (self.approved)(session)
    }

    fn ask(&self, own: &OwnSession, why: String) {
        (self.ask)(own, why);
    }
}

/// Whether it holds; the reply says why not. What is not there is left to whoever looks for it.
pub(crate) fn holds(
    condition: Condition,
    own: &OwnSession,
    message: impl FnOnce(EffectId) -> Result<Option<MessageRow>, store::Error>,
    place: Option<ForgeContext<'_>>,
    filing: &FilingQuestions<'_>,
) -> Result<(), Reply> {
    let refused = |why: String| Err(failed(FailureKind::Refused, why));
    match condition {
        Condition::MessageIsOwn(id) => match message(EffectId(id)) {
            Ok(Some(message)) if message.workflow.session(message.generation) != own.session => {
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
            let broken = |error: forge::Error| failed(FailureKind::of_forge(&error), chain(&error));
            // The issues themselves are the count: it is right after any crash, and nobody else writes under this name.
            let facts = FilingFacts {
                by_session: place.forge.filed_by(&own.session).map_err(broken)?,
                today: place.forge.filed_by_sessions_today().map_err(broken)?,
                depth: place.forge.depth_of_filing(&own.session),
                approved: filing.approved(&own.session),
            };
            match judge(&own.session, facts, &place.config.limits) {
                Filing::Allowed => Ok(()),
                Filing::Refused(why) => refused(why),
                Filing::Asks(why) => {
                    filing.ask(own, why);
                    refused(words::access::asked_about_chain(&own.session))
                }
            }
        }
    }
}
