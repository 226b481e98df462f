//! One suite of behaviours for every forge: what the daemon relies on, whatever is behind the trait.
//!
//! `behaviours` has them, `stage` the world they play in. They are run against the embedded forge in process
//! (`embedded`), and against the Forgejo adapter (`forgejo`): with a fake server as it should be, with one whose pages
//! are small, with one that cannot record merges, with one whose every tenth answer goes wrong, and with the real one
//! that `POINTSMAN_TEST_FORGEJO_URL` names. The GitHub adapter likewise (`github`, `github_alone`), and
//! its boards and Apps (`github_board`, `github_app`), and the GitLab adapter (`gitlab`). Both
//! sides of GitHub's are compared with GitHub's own descriptions (`github_shapes`, `graphql`).

mod behaviours;
mod embedded;
mod forgejo;
mod forgejo_alone;
mod github;
mod github_alone;
mod github_app;
mod github_board;
mod github_shapes;
mod gitlab;
mod graphql;
mod stage;
