//! The kinds of forges and CIs, and everything in which they differ for the rest of the program.
//!
//! Call sites ask for a capability, never for a kind, so that a new forge is a variant and a row here, beside its adapter. The
//! files that open adapters match the kinds, exhaustively.

use serde::{Deserialize, Serialize};

use super::sections::choice;

choice! {
    /// Where issues and pull requests live.
    ForgeKind {
        Local = "local",
        /// A Forgejo or Gitea server.
        Forgejo = "forgejo",
        Github = "github",
        Gitlab = "gitlab",
        /// A plain git repository: no issues, no pull requests, only the merge queue.
        Git = "git",
    }
}

/// The place of a forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgeHome {
    /// It is ours: the daemon keeps it in its own directory, and asking it costs nothing.
    Embedded,
    /// A repository that `forge.url` names, with nothing around it.
    Repository,
    /// A server: it is asked over the network with a token, as rarely as will do.
    Server,
}

/// The abilities of a kind of forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForgeCapabilities {
    pub home: ForgeHome,
    /// Whether there are issues, pull requests and reviews.
    pub issues: bool,
    /// Whether it has a board that can follow the tasks (`forge.board`).
    pub board: bool,
    /// Whether an App can work in place of an account (`forge.app_id`).
    pub apps: bool,
    /// Whether `forge.url` must be given. There is one GitHub that everybody means, and one GitLab.
    pub needs_url: bool,
    /// Whether repositories may lie in groups within groups: `forge.repo` then has more than two parts.
    pub groups: bool,
    /// Whether it can merge by itself, or has a merge queue of its own (`merge.engine`, `merge.label`).
    pub merges: bool,
    /// The variable that usually holds its token.
    pub token_env: Option<&'static str>,
}

impl ForgeKind {
    pub const ALL: [Self; 5] = [Self::Local, Self::Forgejo, Self::Github, Self::Gitlab, Self::Git];

    /// The abilities of this kind.
    pub const fn capabilities(self) -> ForgeCapabilities {
        match self {
            Self::Local => ForgeCapabilities {
                home: ForgeHome::Embedded,
                issues: true,
                board: false,
                apps: false,
                needs_url: false,
                groups: false,
                merges: false,
                token_env: None,
            },
            Self::Forgejo => ForgeCapabilities {
                home: ForgeHome::Server,
                issues: true,
                board: false,
                apps: false,
                needs_url: true,
                groups: false,
                merges: false,
                token_env: Some("CODEBERG_TOKEN"),
            },
            Self::Github => ForgeCapabilities {
                home: ForgeHome::Server,
                issues: true,
                board: true,
                apps: true,
                needs_url: false,
                groups: false,
                merges: true,
                token_env: Some("GITHUB_TOKEN"),
            },
            Self::Gitlab => ForgeCapabilities {
                home: ForgeHome::Server,
                issues: true,
                board: false,
                apps: false,
                needs_url: false,
                groups: true,
                merges: false,
                token_env: Some("GITLAB_TOKEN"),
            },
            Self::Git => ForgeCapabilities {
                home: ForgeHome::Repository,
                issues: false,
                board: false,
                apps: false,
                needs_url: true,
                groups: false,
                merges: false,
                token_env: None,
            },
        }
    }

    /// Whether it is the forge that the daemon keeps itself.
    pub fn is_embedded(self) -> bool {
        self.capabilities().home == ForgeHome::Embedded
    }

    /// Whether it is on a server.
    pub fn is_hosted(self) -> bool {
        self.capabilities().home == ForgeHome::Server
    }

    /// The kinds that are on servers.
    pub fn hosted() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kind| kind.is_hosted())
    }

    /// The kind of a server, as far as its name tells.
    pub fn of_host(name: &str) -> Option<Self> {
        match name {
            "github.com" | "ssh.github.com" => Some(Self::Github),
            "codeberg.org" | "gitea.com" => Some(Self::Forgejo),
            "gitlab.com" | "altssh.gitlab.com" => Some(Self::Gitlab),
            name if name.split('.').any(|part| matches!(part, "forgejo" | "gitea")) => Some(Self::Forgejo),
            name if name.starts_with("github.") => Some(Self::Github),
            name if name.split('.').any(|part| part == "gitlab") => Some(Self::Gitlab),
            _ => None,
        }
    }
}

choice! {
    CiKind {
        None = "none",
        /// A command on this machine.
        Command = "command",
        Forge = "forge",
        Woodpecker = "woodpecker",
    }
}

/// The one who runs the checks of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CiRunner {
    /// There is no CI: every commit counts as green.
    Nobody,
    /// We run `ci.command` in a clean checkout, and keep its log.
    Ourselves,
    /// Somebody else begins by themselves; we ask until they are done.
    Outside,
}

/// The abilities of a kind of CI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CiCapabilities {
    pub runner: CiRunner,
    /// Whether it is a server of its own, with pipelines and logs that can be listed and a run that can be started again.
    /// Otherwise the forge tells what the checks say.
    pub pipelines: bool,
}

impl CiKind {
    /// The kind that a bare `ci.command` stands for.
    pub const OF_COMMAND: Self = Self::Command;

    /// The abilities of this kind.
    pub const fn capabilities(self) -> CiCapabilities {
        match self {
            Self::None => CiCapabilities { runner: CiRunner::Nobody, pipelines: false },
            Self::Command => CiCapabilities { runner: CiRunner::Ourselves, pipelines: false },
            Self::Forge => CiCapabilities { runner: CiRunner::Outside, pipelines: false },
            Self::Woodpecker => CiCapabilities { runner: CiRunner::Outside, pipelines: true },
        }
    }

    /// Whether a commit is tested at all.
    pub fn tests_commits(self) -> bool {
        self.capabilities().runner != CiRunner::Nobody
    }

    /// Whether the tests run on this machine, by us.
    pub fn runs_here(self) -> bool {
        self.capabilities().runner == CiRunner::Ourselves
    }

    /// Whether somebody else runs the tests.
    pub fn runs_outside(self) -> bool {
        self.capabilities().runner == CiRunner::Outside
    }
}

#[cfg(test)]
mod tests {
    use super::{ForgeHome, ForgeKind};

    #[test]
    fn what_needs_a_token_is_on_a_server_and_what_has_a_board_has_issues() {
        for kind in ForgeKind::ALL {
            let can = kind.capabilities();
            assert_eq!(can.token_env.is_some(), can.home == ForgeHome::Server, "{kind}");
            assert!(can.issues || !can.board, "{kind}");
            assert!(kind.is_hosted() || !can.apps, "{kind}");
        }
        assert_eq!(
            ForgeKind::hosted().map(ForgeKind::as_str).collect::<Vec<_>>(),
            ["forgejo", "github", "gitlab"]
        );
    }
}
