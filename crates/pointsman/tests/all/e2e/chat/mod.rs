//! People are told in a room of Matrix and answer there. The stories are played against a fake homeserver, and by
//! `scripts/test-services` against a real Synapse.

pub(super) mod lab;
mod others;
mod stories;
mod trouble;

use lab::Lab;
use pointsman_testkit::Setup;

use super::{LAND, adds, shop};

/// A project whose people are in this room; ann is listened to.
pub(super) fn in_room(lab: &Lab) -> Setup {
    shop()
        .set("notify.to", "[\"log\", \"matrix\"]")
        .set("matrix.homeserver", &format!("{:?}", lab.url))
        .set("matrix.room", &format!("{:?}", lab.room))
        .set("matrix.people", &format!("[{:?}]", lab.ann.id))
        .daemon_env("MATRIX_TOKEN", &lab.bot_token)
}

/// An agent that asks, and goes on with the answer.
fn asks() -> String {
    format!("phase escalate Which apples?\nexpect Answer\n{}\n{LAND}", adds("apples"))
}
