//! The session by itself: each fact under each demand.

use std::time::Duration;

use super::{Demand, Fact, OwnerFacts, Policy, Reaction, Session, Stage};
use crate::session::budget::Level;
use crate::session::context::{Gauge, Marks, Source, Symptom};
use crate::session::trouble::{Kind, OutsideTrouble};
use crate::task::{Exit, Headline, Opening};
use crate::time::Timestamp;

const DEMANDS: [Demand; 6] =
    [Demand::Work, Demand::StandBy, Demand::Answer, Demand::Landing, Demand::Farewell, Demand::Nothing];

fn policy() -> Policy {
    Policy {
        restarts: 2,
        restart_backoff: Duration::from_secs(5),
        restart_backoff_max: Duration::from_secs(8),
        idle_looks: 2,
        handoffs: 1,
        handoff_timeout: Duration::from_secs(60),
        park: Duration::from_secs(900),
        marks: Marks { low: 750, medium: 850, high: 920 },
    }
}

/// A session with a clock and a demand, and the reactions to what happened last.
struct Play {
    session: Session,
    policy: Policy,
    demand: Demand,
    now: Timestamp,
    reactions: Vec<Reaction>,
}

impl Play {
    fn new() -> Self {
        Self {
            session: Session::default(),
            policy: policy(),
            demand: Demand::Work,
            now: Timestamp(1_000),
            reactions: Vec::new(),
        }
    }

    fn alive() -> Self {
        let mut play = Self::new();
        play.session.start(&mut play.reactions);
        play.fact(&Fact::Started)
    }

    fn wanting(mut self, demand: Demand) -> Self {
        self.demand = demand;
        self
    }

    fn try_fact(&mut self, fact: &Fact<'_>) -> bool {
        let around = OwnerFacts {
            demand: self.demand,
            has_phase: false,
            is_final: false,
            policy: &self.policy,
            now: self.now,
        };
        let taken = self.session.happened(self.session.generation, fact, &around);
        let is_taken = taken.is_ok();
        self.reactions = taken.unwrap_or_default();
        is_taken
    }

    fn fact(mut self, fact: &Fact<'_>) -> Self {
        assert!(self.try_fact(fact), "{fact:?} was refused: {:?}", self.session);
        self
    }

    fn later(mut self, seconds: u64) -> Self {
        self.now = self.now.after(Duration::from_secs(seconds));
        let around = OwnerFacts {
            demand: self.demand,
            has_phase: false,
            is_final: false,
            policy: &self.policy,
            now: self.now,
        };
        self.reactions = self.session.time_passed(&around);
        self
    }

    fn died(self) -> Self {
        self.fact(&Fact::Ended { tail: "last words" })
    }

    fn told(&self) -> Vec<Headline> {
        let headlines = self.reactions.iter().filter_map(|reaction| match reaction {
            Reaction::Tell { headline, .. } => Some(*headline),
            _ => None,
        });
        headlines.collect()
    }

    fn asks(&self) -> bool {
        self.reactions.iter().any(|reaction| matches!(reaction, Reaction::Ask { .. }))
    }

    fn fails(&self, with: Exit) -> bool {
        self.reactions.iter().any(|reaction| matches!(reaction, Reaction::Fail { exit, .. } if *exit == with))
    }
}

fn gauge(used_permille: u16) -> Fact<'static> {
    Fact::ContextMeasured(Gauge { used_permille, source: Source::StatusLine })
}

#[test]
fn the_first_session_is_fresh_a_successor_recovers_and_one_after_a_hand_over_continues() {
    let mut play = Play::new();
    play.session.start(&mut play.reactions);
    assert_eq!(play.reactions, [Reaction::Start { opening: Opening::Fresh }]);
    let play = play.fact(&Fact::Started).died();
    assert_eq!(play.reactions[1], Reaction::Start { opening: Opening::Recovery });
    let play = play.fact(&Fact::Started).fact(&gauge(930)).died();
    assert_eq!(play.reactions, [Reaction::Gone, Reaction::Start { opening: Opening::Continuation }]);
    assert_eq!((play.session.restarts, play.session.handoffs), (1, 1), "a hand-over is no crash");
}

#[test]
fn a_dead_session_is_replaced_only_where_an_agent_is_wanted() {
    for demand in DEMANDS {
        let play = Play::alive().wanting(demand).died();
        let replaced = play.reactions.contains(&Reaction::Replaced);
        assert_eq!(replaced, matches!(demand, Demand::Work | Demand::StandBy), "{demand:?}");
        assert_eq!(play.session.stage == Stage::None, !replaced, "{demand:?}");
    }
}

#[test]
fn restarts_are_held_back_longer_each_time_and_then_stop() {
    let play = Play::alive().died().fact(&Fact::Started).died();
    assert_eq!(play.session.restart_at, Some(play.now.after(Duration::from_secs(5))));
    assert_eq!(play.session.wake_at(), play.session.restart_at);
    let play = play.later(4);
    assert!(play.reactions.is_empty());
    let play = play.later(1).fact(&Fact::Started).died();
    assert!(matches!(play.reactions[..], [Reaction::Gone, Reaction::CrashLoop { .. }]));
}

#[test]
fn an_older_generation_has_no_say() {
    let mut play = Play::alive().died();
    let around = OwnerFacts {
        demand: Demand::Work,
        has_phase: false,
        is_final: false,
        policy: &play.policy,
        now: play.now,
    };
    assert!(play.session.happened(1, &Fact::TurnEnded, &around).is_err());
    assert!(play.session.happened(2, &Fact::TurnEnded, &around).is_ok());
}

#[test]
fn idleness_counts_only_while_work_is_expected() {
    for demand in DEMANDS {
        let mut play = Play::alive().wanting(demand);
        assert_eq!(
            play.try_fact(&Fact::IdleLooked { at_prompt: true }),
            demand == Demand::Work,
            "{demand:?}"
        );
    }
    let play = Play::alive().fact(&Fact::IdleLooked { at_prompt: true });
    let play = play.fact(&Fact::IdleLooked { at_prompt: false }).fact(&Fact::IdleLooked { at_prompt: true });
    assert!(!play.fails(Exit::IdlePrompt), "output in between starts the count anew");
    let play = play.fact(&Fact::IdleLooked { at_prompt: true });
    assert!(play.reactions.contains(&Reaction::Remind), "it is asked for a phase first");
    let play = play.fact(&Fact::IdleLooked { at_prompt: true }).fact(&Fact::IdleLooked { at_prompt: true });
    assert!(play.fails(Exit::IdlePrompt));
}

#[test]
fn a_session_that_was_asked_to_hand_over_and_sits_at_its_prompt_is_ended_by_us() {
    for demand in DEMANDS {
        let looks = |play: Play| {
            let mut play = play;
            let first = play.try_fact(&Fact::IdleLooked { at_prompt: true });
            (first, play)
        };
        let (taken, play) = looks(Play::alive().fact(&gauge(930)).wanting(demand));
        let wanted = matches!(demand, Demand::Work | Demand::StandBy);
        assert_eq!(taken, wanted, "{demand:?}");
        if !wanted {
            continue;
        }
        assert_eq!(play.reactions, [], "one look is no proof");
        let play =
            play.fact(&Fact::IdleLooked { at_prompt: false }).fact(&Fact::IdleLooked { at_prompt: true });
        assert_eq!(play.reactions, [], "output in between starts the count anew");
        let play = play.fact(&Fact::IdleLooked { at_prompt: true });
        assert_eq!(play.reactions, [Reaction::End { exit: Exit::Handoff }]);
        let play = play.died();
        assert_eq!(play.reactions, [Reaction::Gone, Reaction::Start { opening: Opening::Continuation }]);
        assert_eq!((play.session.restarts, play.session.handoffs), (0, 1), "that is no crash");
    }
}

#[test]
fn each_step_of_a_filling_context_is_acted_on_once() {
    let play = Play::alive().fact(&gauge(760));
    assert!(play.reactions.is_empty());
    let play = play.fact(&gauge(860));
    assert_eq!(play.told(), [Headline::CheckpointNow]);
    let play = play.fact(&gauge(870));
    assert!(play.reactions.is_empty());
    let play = play.fact(&gauge(930));
    assert_eq!(play.told(), [Headline::SaveAndExit]);
    let play = play.fact(&gauge(990));
    assert!(play.reactions.is_empty());
    let play = play.later(60);
    assert_eq!(play.reactions, [Reaction::End { exit: Exit::Stuck }]);
    assert!(play.session.handoff.is_some_and(|handoff| handoff.stuck));
}

#[test]
fn contexts_that_fill_up_again_and_again_are_a_question() {
    let play = Play::alive().fact(&gauge(930)).died().fact(&Fact::Started).fact(&gauge(930));
    assert!(play.asks());
    assert_eq!(play.told(), []);
}

#[test]
fn a_compaction_saves_the_work_and_starts_the_gauge_anew() {
    let play = Play::alive().fact(&gauge(860)).fact(&Fact::SymptomSeen(Symptom::Compacting));
    assert!(matches!(play.reactions[..], [Reaction::Checkpoint { .. }]));
    let play = play.fact(&Fact::ContextCompacted).fact(&gauge(860));
    assert_eq!(play.told(), [Headline::CheckpointNow]);
}

#[test]
fn outside_trouble_parks_or_asks() {
    let play = Play::alive();
    let limited = OutsideTrouble { kind: Kind::RateLimit, until: None };
    let parked = play.session.park(&limited, &play.policy, play.now);
    assert!(matches!(parked, Reaction::Park { until, .. } if until == play.now.after(play.policy.park)));
    let refused = OutsideTrouble { kind: Kind::AuthenticationFailed, until: None };
    assert!(matches!(play.session.park(&refused, &play.policy, play.now), Reaction::Ask { .. }));
    let mut play = play;
    play.session.parked_until = Some(play.now.after(Duration::from_secs(900)));
    assert_eq!(play.later(900).reactions, [Reaction::Unparked]);
}

#[test]
fn a_used_up_budget_ends_the_session_with_its_turn_or_at_once() {
    let mut play = Play::alive();
    let policy = policy();
    let around = OwnerFacts {
        demand: Demand::Work,
        has_phase: false,
        is_final: false,
        policy: &policy,
        now: play.now,
    };
    assert_eq!(play.session.budget_reached(Level::Hard, "5 USD", None, &around), Ok(vec![]));
    let ended = Play { session: play.session.clone(), ..Play::alive() }.fact(&Fact::TurnEnded);
    assert!(ended.fails(Exit::Exhausted));
    assert!(play.later(0).fails(Exit::Exhausted), "a turn that goes on would spend on");
}

#[test]
fn nobody_is_asked_twice_or_about_work_that_is_over() {
    for demand in DEMANDS {
        let mut play = Play::alive().wanting(demand);
        let asks = matches!(demand, Demand::Work | Demand::StandBy | Demand::Landing);
        assert_eq!(play.try_fact(&Fact::DialogSeen { what: "trust?" }), asks, "{demand:?}");
        assert_eq!(play.session.message_unacknowledged(7, "CI passed", demand).is_ok(), asks, "{demand:?}");
        let silent = Play::alive().wanting(demand).fact(&Fact::HooksSilent { required: true });
        assert_eq!(silent.asks(), asks, "{demand:?}");
    }
}

#[test]
fn words_to_a_session_that_is_gone_start_its_successor_first() {
    let mut play = Play::alive().wanting(Demand::Answer).died();
    let mut out = Vec::new();
    play.session.tell(Headline::Answer, (String::new(), String::new()), &mut out);
    assert!(matches!(out[..], [Reaction::Start { opening: Opening::Recovery }, Reaction::Tell { .. }]));
}
