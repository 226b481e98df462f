//! The file that `pointsman init` writes, for a person to complete.

use crate::config::ForgeKind;
use crate::ids::ProjectName;
use crate::origin::Origin;

/// A commented `pointsman.toml` for a project; without a CI command green means nothing to wait for.
pub fn template(
    name: &ProjectName,
    primary_branch: &str,
    forge: Option<(ForgeKind, &Origin)>,
    ci_command: Option<&[String]>,
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
    let ci = match ci_command {
        Some(command) => {
            let command = toml::Value::from(command.to_vec());
            format!(
                "kind = \"command\"                    # none | command\n\
                 command = {command}    # run in a clean checkout of the exact commit"
            )
        }
        None => "kind = \"none\"                       # none | command\n\
                 # command = [\"./ci.sh\"]             # run in a clean checkout of the exact commit"
            .to_owned(),
    };
    format!(
        r#"# How Pointsman works on this repository. Every key and its default: pointsman config show --origin
# Secrets never stand here; services name the variable that holds theirs (token_env).

name = {name}
primary_branch = {primary_branch}

[forge]
{forge}

[ci]
{ci}

[agent]
# command = ["claude", "--dangerously-skip-permissions"]    # any program that works in a terminal
# pass_env = []                     # further variables to hand to it, by name

[review]
mode = "human"                      # human | none, or mode = "agent" with a command that decides
# command = ["./review.sh"]

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
