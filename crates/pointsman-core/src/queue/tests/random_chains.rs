//! Whatever is known, the plan keeps the rules.

use proptest::prelude::*;

use crate::queue::{
    CandidateRuns, EntryId, Fault, GateVerdict, Plan, Policy, QueueFacts, Runs, Strategy as Way, Subject,
    plan,
};

fn runs() -> impl Strategy<Value = Runs> {
    let (once, twice) = (
        prop_oneof![4 => Just(0), 1 => Just(1u32)],
        prop_oneof![3 => Just(0), 1 => Just(1), 1 => Just(2u32)],
    );
    (once, twice, 0..=3u32).prop_map(|(green, red, infra)| Runs {
        green,
        red,
        infra: infra.min(Runs::LIMIT - green - red),
    })
}

fn chains() -> impl Strategy<Value = QueueFacts> {
    let members = |from: i64| {
        prop::collection::vec(runs(), 0..6).prop_map(move |list| {
            list.into_iter()
                .zip(from..)
                .map(|(runs, id)| CandidateRuns { entry: EntryId(id), runs })
                .collect()
        })
    };
    (runs(), members(0), members(100)).prop_map(|(main, members, aside)| QueueFacts { main, members, aside })
}

/// Any policy.
pub(super) fn policies() -> impl Strategy<Value = Policy> {
    let ways = prop_oneof![
        Just(Way::Sequential),
        (1..9_usize).prop_map(|size| Way::Batch { size }),
        (1..9_usize).prop_map(|depth| Way::Speculative { depth }),
    ];
    (ways, 1..9_usize).prop_map(|(strategy, runners)| Policy { strategy, runners })
}

fn standing(chain: &QueueFacts, subject: Subject) -> GateVerdict {
    match subject {
        Subject::Main => chain.main,
        Subject::Member(place) => chain.members[place].runs,
        Subject::Aside(entry) => chain.aside.iter().find(|member| member.entry == entry).unwrap().runs,
    }
    .standing()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_plan_keeps_the_rules(policy in policies(), chain in chains()) {
        let decided = plan(&policy, &chain);
        let Plan { land, eject, set_aside, bring_back, test, main_is_red } = &decided;
        let main = chain.main.standing();

        let asked = [land.is_some(), !eject.is_empty(), !set_aside.is_empty(), !bring_back.is_empty(), !test.is_empty()];
        prop_assert!(asked.iter().filter(|asked| **asked).count() <= 1, "one thing at a time");
        prop_assert_eq!(*main_is_red, main == GateVerdict::Red);

        prop_assert_eq!(*land, (0..chain.members.len()).rfind(|k| standing(&chain, Subject::Member(*k)) == GateVerdict::Green));
        for (entry, fault) in eject {
            let of = chain.members.iter().take(1).chain(&chain.aside).find(|member| member.entry == *entry);
            let standing = of.expect("only the first member, or one beside the chain").runs.standing();
            match fault {
                Fault::Red => prop_assert_eq!((standing, main), (GateVerdict::Red, GateVerdict::Green)),
                Fault::Infra => prop_assert!(
                    standing == GateVerdict::Undecided || (standing, main) == (GateVerdict::Red, GateVerdict::Undecided)
                ),
            }
        }
        prop_assert!(set_aside.iter().all(|entry| chain.members[0].entry == *entry));
        for entry in bring_back {
            prop_assert_eq!(standing(&chain, Subject::Aside(*entry)), GateVerdict::Green);
        }
        prop_assert!(test.len() <= policy.runners);
        for subject in test {
            prop_assert!(matches!(standing(&chain, *subject), GateVerdict::Unknown | GateVerdict::Suspect), "{subject:?} is decided");
            prop_assert_eq!(test.iter().filter(|other| *other == subject).count(), 1);
        }
        if asked == [false; 5] {
            prop_assert!(chain.members.is_empty());
            let held = |member: &CandidateRuns| member.runs.standing() == GateVerdict::Red && *main_is_red;
            prop_assert!(chain.aside.iter().all(held), "somebody was forgotten");
        }
    }
}
