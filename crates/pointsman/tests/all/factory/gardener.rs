//! The gardener: whom it asks, and when it stops asking.

use pointsman::daemon::factory::gardener::{look, memory};
use pointsman::daemon::factory::{ForgeIssues, ask, heard_by, value};
use pointsman_core::chat::Reply;
use pointsman_core::forge::{Issue, IssueState};
use pointsman_core::gardener::RepositoryFacts;
use pointsman_core::notifier::Topic;
use pointsman_core::role::Role;
use pointsman_core::role_memory::Heard;
use pointsman_core::run::{Run, RunId};
use pointsman_core::time::Timestamp;
use pointsman_core::value::Outcome;
use pointsman_store::{Change, NewReply};

use super::{Stage, at, shop};

const ON: &str = "[roles.gardener]\nenabled = true\n[roles.supervisor]\nenabled = true\n";

fn issue(number: u64, title: &str) -> Issue {
    Issue {
        number,
        title: title.to_owned(),
        body: "Nobody says when it is done.".to_owned(),
        state: IssueState::Open,
        labels: Vec::new(),
        comments: Vec::new(),
        assignee: None,
        author: "ann".to_owned(),
        created_at: Timestamp(at(0).0 - 86_400_000),
    }
}

impl Stage {
    /// One look of the gardener's.
    fn garden(&mut self, minute: i64, issues: &[Issue]) {
        let seen = ForgeIssues { issues: issues.to_vec(), at: at(minute) };
        let before = memory(self.engine.store(), &shop()).unwrap();
        if before.asked.is_none() {
            let ground = (RepositoryFacts::default(), false);
            let looked = look(&seen, ground, &before, &self.config(), at(minute));
            ask(&mut self.engine, &shop(), &looked, at(minute)).unwrap();
        }
    }

    /// All runs that are under way are over, and this came of them.
    fn answer(&mut self, minute: i64, outcome: impl Into<Option<Outcome>>) {
        let outcome = outcome.into();
        for run in self.end_runs(minute) {
            let heard = Heard::Nothing { why: "noise".to_owned(), unheard: outcome.is_none() };
            let heard = heard_by(Role::Gardener, &run, heard);
            let answers = self.engine.take(&[heard.clone(), heard], at(minute)).unwrap();
            assert!(answers[0].is_ok() && answers[1].is_err(), "once: {answers:?}");
        }
    }
}

#[test]
fn a_session_is_asked_once_and_reads_what_was_found() {
    let mut stage = Stage::new(ON);
    let issues = [issue(1, "Apples"), issue(2, "A rocket to Mars")];
    stage.garden(0, &issues);
    let mut stage = stage.restart();
    stage.garden(1, &issues);
    let [run] = stage.runs().try_into().unwrap();
    let briefing = run.briefing.unwrap();
    assert!(briefing.contains("- #1 has no acceptance criteria\n- #2 has no acceptance"), "{briefing}");
    assert!(briefing.contains("### #2 A rocket to Mars"), "{briefing}");
    assert_eq!(run.id, RunId(1));
}

#[test]
fn a_role_that_makes_only_noise_is_paused_and_said() {
    let mut stage = Stage::new(ON);
    let day = 24 * 60;
    for n in 0..20 {
        stage.garden(n * day, &[issue(1, &format!("Apples, take {n}"))]);
        stage.answer(n * day + 10, Outcome::Noise);
    }
    assert_eq!(stage.runs().len(), 15, "14 days and one");
    let worth = value(stage.engine.store(), &shop(), Role::Gardener).unwrap();
    assert_eq!((worth.noise, worth.paused_at), (15, Some(at(14 * day + 10))), "each result counts once");
    assert_eq!(stage.told_by(Role::Gardener), ["shop: the gardener no longer asks a model"]);
    let said = stage.events("gardener_looked").pop().unwrap();
    assert!(said.data["lines"][0].as_str().unwrap().contains("pointsman roles resume gardener"), "{said:?}");
}

#[test]
fn what_people_said_to_a_run_that_was_not_heard_is_read_by_the_next() {
    let mut stage = Stage::new(ON);
    let mut said = Change::new(at(0), "said");
    said.reply = Some(NewReply {
        project: shop(),
        topic: Topic::Agent("gardener".to_owned()),
        by: "@ann:example.org".to_owned(),
        words: "The red ones.".to_owned(),
        reply: Reply::Text,
    });
    stage.engine.write(&[said]).unwrap();
    for (minute, outcome) in [(1, None), (3, Some(Outcome::Noise)), (5, None)] {
        stage.garden(minute, &[issue(1, &format!("Apples, take {minute}"))]);
        stage.answer(minute + 1, outcome);
        stage = stage.restart();
    }
    let reads = |run: &Run| run.briefing.as_deref().is_some_and(|text| text.contains("The red ones."));
    let read: Vec<bool> = stage.runs().iter().map(reads).collect();
    assert_eq!(read, [true, true, false], "until one was heard");
}
