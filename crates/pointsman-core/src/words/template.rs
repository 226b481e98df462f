//! The file that `pointsman init` writes, for a person to complete.

use crate::config::ForgeKind;
use crate::ids::ProjectName;
use crate::origin::Origin;

/// The CI that the file sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateCi<'c> {
    Off,
    /// A command of ours.
    Command(&'c [String]),
    /// The forge tests every push by itself.
    Forge,
}

/// A commented `pointsman.toml` for a project.
pub fn template(
    name: &ProjectName,
    primary_branch: &str,
    forge: Option<(ForgeKind, &Origin)>,
    ci: TemplateCi<'_>,
    agent: Option<&[String]>,
) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let forge = match forge {
        Some((kind, origin)) => format!(
            "kind = {}\nurl = {}\nrepo = {}",
            quoted(kind.as_str()),
            quoted(&origin.url),
            quoted(&origin.repo)
        ),
        None => "kind = \"local\"                      # issues and pull requests on this machine".to_owned(),
    };
    let ci = match ci {
        TemplateCi::Command(command) => {
            let command = toml::Value::from(command.to_vec());
            format!(
                "kind = \"command\"                    # none | command | forge | woodpecker\n\
                 command = {command}    # run in a clean checkout of the exact commit"
            )
        }
        TemplateCi::Forge => "kind = \"forge\"                      # the forge tests every push; we wait for it".to_owned(),
        // No command stands here as a comment: beside "none" it would be a mistake.
        TemplateCi::Off => "kind = \"none\"                       # nothing is tested; write kind = \"command\" and a command".to_owned(),
    };
    let agent = match agent {
        Some(command) => format!("command = {}", toml::Value::from(command.to_vec())),
        None => "# command = [\"claude\", \"--dangerously-skip-permissions\"]    # any program that works in a terminal"
            .to_owned(),
    };
    format!(
        r#"# The settings of Pointsman for this repository. `pointsman config show --origin` lists every key with its default.
# A running daemon reads this file again when you change it. Never write a secret here: name the variable that holds it
# with token_env.

name = {name}
primary_branch = {primary_branch}

[forge]
{forge}

[ci]
{ci}

[agent]
{agent}
# pass_env = []                     # further variables to hand to it, by name

[review]
mode = "human"                      # human | agent | none

[dev]
# concurrency = 1                   # tasks at the same time
# branch = "pointsman/issue-{{issue}}"

[timing]                            # "250ms", "30s", "5m", "3h"
# ci_timeout = "30m"
# review_timeout = "3h"
# session_timeout = "2h"

[limits]
# ci_fixes = 3
# review_rounds = 5
"#,
        name = quoted(name.as_str()),
        primary_branch = quoted(primary_branch),
    )
}
