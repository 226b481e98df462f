//! Snapshots that this program cannot read. What they belong to stands still; people are told once, and everybody else
//! goes on.

use pointsman_core::concern::{About, ConcernKey, Event};
use pointsman_core::ids::ProjectName;
use pointsman_core::log;
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::part::question::Kind as Question;
use pointsman_core::snapshot::{Kind, Unreadable};
use pointsman_core::time::Timestamp;
use pointsman_core::vault::ActionId;
use pointsman_core::words;
use pointsman_store::Change;

use super::effects::EffectPerformer;
use super::engine::{Engine, Input};
use super::notifier;

/// Tells people of everything that cannot be read, once; answers a line for each.
pub(super) fn tell(
    engine: &mut Engine,
    world: &EffectPerformer,
    now: Timestamp,
) -> Result<Vec<String>, pointsman_store::Error> {
    let found = engine.store().unreadable()?;
    for unreadable in &found {
        let Unreadable { what, project, name, version, .. } = unreadable;
        // Another program may read another version of it: that is news again.
        let key = format!("unreadable:{project}:{what}:{name}:{version}:{}", env!("CARGO_PKG_VERSION"));
        // The notifiers of a project that is not served are not known yet: people are told when it is.
        if engine.store().knows_input(&key)? || engine.config(project).is_none() {
            continue;
        }
        let posting = Posting {
            key: key.clone(),
            project: project.clone(),
            topic: topic(unreadable),
            link: None,
            question: None,
            notice: words::notice::unreadable(unreadable),
        };
        if let Err(error) = world.log_notice(&posting) {
            tracing::error!(%error, "a notice could not be logged");
        }
        let mut change = Change::logged(now, project, &log::Entry::Unreadable(unreadable.clone()));
        change.issue = unreadable.workflow().and_then(|id| id.issue());
        change.dedup = Some(key);
        change.writes.extend(notifier::planned(engine, &posting, now)?);
        engine.write(&[change])?;
    }
    ask(engine, &found, now)?;
    Ok(found.iter().map(words::reason::unreadable).collect())
}

/// Each is a question for as long as it cannot be read: the notice may be long forgotten.
fn ask(engine: &mut Engine, found: &[Unreadable], now: Timestamp) -> Result<(), pointsman_store::Error> {
    let key = |found: &Unreadable| ConcernKey {
        project: found.project.clone(),
        about: About::one_of(Question::Unreadable, &format!("{}-{}", found.what, found.name)),
    };
    let is_served = |project: &ProjectName| engine.config(project).is_some();
    let raised = found.iter().filter(|found| is_served(&found.project)).map(|found| {
        let event = Event::Raised {
            kind: Question::Unreadable,
            text: words::reason::unreadable(found),
            issue: found.workflow().and_then(|id| id.issue()),
            pr: None,
            told: true,
        };
        Input::of_concern(key(found), event)
    });
    let over = engine.concerns().values().filter(|concern| {
        concern.asked.as_ref().is_some_and(|asked| asked.kind == Question::Unreadable)
            && !found.iter().any(|found| key(found) == concern.key)
    });
    let over = over.map(|concern| {
        let why = words::question::READABLE_AGAIN.to_owned();
        Input::of_concern(concern.key.clone(), Event::Lifted { why })
    });
    let inputs: Vec<Input> = raised.chain(over).collect();
    engine.take(&inputs, now).map(drop)
}

fn topic(unreadable: &Unreadable) -> Topic {
    let Unreadable { what, name, .. } = unreadable;
    let found = match what {
        Kind::Task | Kind::Effect => unreadable.workflow().and_then(|id| id.issue()).map(Topic::Task),
        Kind::VaultAction => ActionId::try_from(name.clone()).ok().map(Topic::Vault),
        Kind::Run | Kind::Memory | Kind::WorkState | Kind::Question => None,
    };
    found.unwrap_or(Topic::Room)
}
