//! The README, followed word for word: its commands from an empty directory to a merged branch.
//!
//! The blocks are taken from the file itself. Between two blocks a person waits until `pointsman status` says what the
//! text names; so does the test.

use super::new_user::NewUser;
use super::page;

/// The section that the test carries out.
pub(crate) const SECTION: &str = "Your first merged branch";

#[test]
fn e2e_the_readme_leads_from_an_empty_directory_to_a_merged_branch() {
    let user = NewUser::new("hello");
    let mut blocks = page::blocks(&page::read("README.md"));
    blocks.retain(|block| block.section == SECTION);
    assert!(blocks.len() >= 5, "the section has only {} blocks", blocks.len());
    let mut printed = String::new();
    for block in &blocks {
        printed = user.shell(&block.commands);
        user.wait_for_promises(block);
    }
    assert!(printed.contains("Hello from issue 1"), "{printed}");
    assert!(printed.contains("The daemon has stopped."), "{printed}");
    let last = &blocks.last().expect("there are blocks").after;
    assert!(last.contains("`Hello from issue 1`"), "the README says what is printed: {last}");
}
