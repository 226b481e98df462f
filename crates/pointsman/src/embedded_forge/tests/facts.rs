//! Git decides where a head is and whether it has landed.

use pointsman_adapters::forge::{Error, Forge};
use pointsman_core::forge::{IssueState, StateFilter};
use pointsman_core::ids::Sha;

use super::{World, done, git_in, read};
use crate::control::protocol::ForgeCommand;

#[test]
fn the_head_follows_a_push() {
    let world = World::new();
    let forge = world.forge();
    let (number, first) = world.pull_request(&forge, "work");
    assert_eq!(read(&forge, number).head_sha, Some(first));
    let second = world.commit("more");
    world.push(&second, "work");
    assert_eq!(read(&forge, number).head_sha, Some(second));
    // Rewritten from scratch.
    world.git(&["checkout", "--quiet", "--detach", "main"]);
    let third = world.commit("again");
    world.push(&third, "work");
    let pr = read(&forge, number);
    assert_eq!((pr.head_sha, pr.merged), (Some(third), false));
}

#[test]
fn a_head_is_found_in_packed_references() {
    let world = World::new();
    let forge = world.forge();
    let (number, head) = world.pull_request(&forge, "work");
    git_in(&world.repository(), &["pack-refs", "--all"]);
    assert_eq!(read(&forge, number).head_sha, Some(head));
}

#[test]
fn a_merge_that_is_not_on_the_base_is_refused() {
    let world = World::new();
    let forge = world.forge();
    let (number, head) = world.pull_request(&forge, "work");
    let unknown = Sha::new(&"a".repeat(40)).unwrap();
    for sha in [&head, &unknown] {
        let refused = forge.record_merge(number, sha);
        assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    }
    let pr = read(&forge, number);
    assert_eq!((pr.state, pr.merged, pr.merge_sha), (IssueState::Open, false, None));
}

#[test]
fn after_landing_the_head_is_known_without_its_branch() {
    let world = World::new();
    let forge = world.forge();
    let (number, head) = world.pull_request(&forge, "work");
    world.git(&["checkout", "--quiet", "--detach", "main"]);
    let candidate = world.commit("squashed");
    world.push(&candidate, "main");
    world.delete_branch("work");
    forge.record_merge(number, &candidate).unwrap();
    assert_eq!(read(&forge, number).head_sha, Some(head.clone()));
    // A new branch of the same name is not its head.
    let (second, other) = world.pull_request(&forge, "work");
    assert_ne!(second, number);
    assert_eq!(read(&forge, number).head_sha, Some(head));
    assert_eq!(read(&forge, second).head_sha, Some(other));
}

#[test]
fn a_branch_that_was_deleted_without_landing_leaves_no_head() {
    let world = World::new();
    let forge = world.forge();
    let (number, head) = world.pull_request(&forge, "work");
    world.delete_branch("work");
    let pr = read(&forge, number);
    assert_eq!((pr.state, pr.merged, pr.head_sha), (IssueState::Open, false, None));
    world.push(&head, "work");
    assert_eq!(read(&forge, number).head_sha, Some(head));
}

#[test]
fn work_that_a_person_pushed_to_main_is_merged() {
    let world = World::new();
    let forge = world.forge();
    let (number, _) = world.pull_request(&forge, "work");
    // Also with a last commit that nobody here has looked at.
    let last = world.commit("last touch");
    world.push(&last, "work");
    world.push(&last, "main");
    let pr = read(&forge, number);
    assert_eq!((pr.state, pr.merged, pr.merge_sha.as_ref()), (IssueState::Closed, true, Some(&last)));
    world.delete_branch("work");
    assert_eq!(read(&forge, number), pr);
    assert_eq!(forge.forge_db().prs(StateFilter::Closed).unwrap().len(), 1);
}

#[test]
fn a_list_shows_what_a_person_landed_among_the_closed() {
    let world = World::new();
    let forge = world.forge();
    let (_, head) = world.pull_request(&forge, "work");
    world.push(&head, "main");
    let list = |state| done(&forge, &ForgeCommand::ListPulls { state });
    assert_eq!(list(StateFilter::Open), serde_json::json!([]));
    assert_eq!(list(StateFilter::Closed)[0]["merged"], true);
}

#[test]
fn a_branch_that_was_reset_to_main_has_not_landed() {
    let world = World::new();
    let forge = world.forge();
    let (number, _) = world.pull_request(&forge, "work");
    world.push(&world.stands("main"), "work");
    let pr = read(&forge, number);
    assert_eq!((pr.state, pr.merged), (IssueState::Open, false));
}

#[test]
fn new_work_on_top_of_landed_work_has_not_landed() {
    let world = World::new();
    let forge = world.forge();
    let (number, first) = world.pull_request(&forge, "work");
    let second = world.commit("more");
    world.push(&second, "work");
    world.push(&first, "main");
    let pr = read(&forge, number);
    assert_eq!((pr.state, pr.merged, pr.head_sha), (IssueState::Open, false, Some(second)));
}
