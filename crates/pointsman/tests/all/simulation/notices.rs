//! Notices on their way to people: notifiers that are down, tell something and lose the answer, or refuse for good.

use std::time::Duration;

use pointsman::daemon::outcome::{Note, Outcome, Performed};
use pointsman_core::config::NotifierKind;
use pointsman_core::notifier::{self, Lane, Notifier, Posting, Topic};
use pointsman_core::task::{Effect, Notice};
use pointsman_core::workflow::{self, WorkflowId};
use pointsman_store::{Change, Delivered, DeliveryId, Outgoing, Write};

use super::daemon::Daemon;
use super::reality::Reality;

/// The notifiers of a story, beside the log.
pub(super) const NOTIFIERS: [NotifierKind; 2] = [NotifierKind::Desktop, NotifierKind::Webhook];

impl Reality {
    /// What people are told because of an effect.
    pub(super) fn posting(&mut self, outgoing: &Outgoing) -> Posting {
        self.record.notices.insert(outgoing.key.clone());
        let said =
            |title: String| Notice { title, body: String::new(), urgent: outgoing.id.0 % 3 == 0, repeat: 0 };
        let notice = match &outgoing.effect {
            Effect::Notify(notice) => notice.clone(),
            other => said(format!("{} of {}", other.kind(), outgoing.workflow)),
        };
        Posting {
            key: outgoing.key.clone(),
            project: self.story.project(),
            topic: outgoing.workflow.issue().map_or(Topic::Room, Topic::Task),
            link: None,
            question: None,
            notice,
        }
    }
}

impl Daemon {
    /// As in reality, trouble comes before a notice is told or after it, and cannot be told apart.
    pub(super) fn tell(&mut self, outgoing: &Outgoing, to: &Notifier) -> Option<Outcome> {
        let Effect::Tell { delivery } = &outgoing.effect else {
            panic!("no notifier has {:?}", outgoing.effect)
        };
        let delivery = self.engine().store().delivery(DeliveryId(*delivery)).expect("deliveries can be read");
        let delivery = delivery.expect("an effect of a notice has its delivery");
        assert_eq!(delivery.notifier, to.key.kind, "a notice is in the lane of another notifier");
        if delivery.status != "pending" {
            return Some(Outcome::done());
        }
        if self.reality().fault(40) {
            return Some(Outcome::Never { error: "it is too long".to_owned() });
        }
        if self.reality().fault(20) {
            return Some(Outcome::Later { error: "the room is not read yet".to_owned() });
        }
        let down = |asked: u64| Outcome::Down {
            error: "not reached".to_owned(),
            asked: (asked > 0).then(|| Duration::from_secs(asked)),
        };
        if self.reality().fault(6) {
            let asked = *self.reality().chance.pick(&[0, 0, 1, 900]);
            return Some(down(asked));
        }
        let (kind, key) = (delivery.notifier, delivery.posting.key.clone());
        let by = *self.reality().record.told.entry((kind.as_str(), key.clone())).or_insert(outgoing.id);
        assert_eq!(by, outgoing.id, "{key} was told by {kind} through two effects");
        if self.may_crash("after a notice was told", 20) {
            return None;
        }
        if self.reality().fault(12) {
            return Some(down(0));
        }
        let at = self.reality().now;
        let note = Note::Told {
            id: delivery.id,
            delivered: Box::new(Delivered::Sent { sent_as: None, thread: None }),
            at,
        };
        let events = vec![workflow::Event::Notifier(notifier::Event::Told)];
        Some(Outcome::Done(Performed { events, note: Some(note), ..Performed::default() }))
    }

    /// Nobody wants to hear the oldest notice that waits any more.
    pub(super) fn drop_a_notice(&mut self) {
        let project = self.reality().story.project();
        let now = self.reality().now;
        let kind = *self.reality().chance.pick(&NOTIFIERS);
        let waiting =
            self.engine().store().waiting_deliveries(&project, kind).expect("deliveries can be read");
        let Some((id, ..)) = waiting.first().copied() else { return };
        let delivered = Delivered::Dropped { why: "too many waited".to_owned() };
        let dropped = Change::quiet(now, vec![Write::Delivered { id, delivered, at: now }]);
        self.write("a dropped notice", |engine| engine.write(std::slice::from_ref(&dropped)));
        self.look_after();
    }

    /// At the end every notice is told or dropped by everybody, and none that is urgent had to wait for the morning.
    pub(super) fn check_notices(&mut self) {
        let project = self.reality().story.project();
        for lane in Lane::ALL {
            for kind in NOTIFIERS {
                let key = notifier::NotifierKey { project: project.clone(), kind, lane };
                let left = self.engine().store().pending_effects(&WorkflowId::from(key.clone()));
                assert_eq!(left.expect("the outbox can be read"), [], "{key} has notices left");
            }
        }
        for row in self.engine().store().notices(Some(&project), 100_000).expect("notices can be read") {
            let told = self.engine().store().deliveries_of(row.id).expect("deliveries can be read");
            assert_eq!(told.len(), NOTIFIERS.len(), "{row:?}");
            for delivery in told {
                let seen = (delivery.notifier.as_str(), row.posting.key.clone());
                let seen = self.reality().record.told.contains_key(&seen);
                assert!(delivery.status != "pending", "{delivery:?} is never told");
                assert!(seen || delivery.status == "dropped", "{delivery:?} was never told");
            }
        }
    }
}
