//! The files of the demo's project: a small shop with a real CI.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::{fs, io};

use anyhow::Context;
use pointsman_core::ids::Number;

use super::pace::Pace;
use super::stories::CI_FIXES;

/// The project's name.
pub(super) const NAME: &str = "shop";

/// The name of the project whose changes the review agent looks at, with a bell that only a person may ring.
pub(super) const MARKET: &str = "market";

/// Both.
pub(super) const NAMES: [&str; 2] = [NAME, MARKET];

/// Where its configuration is.
pub(super) const CONFIGURATION: &str = "pointsman.toml";

/// What git needs to know of a person.
pub(super) const GIT_CONFIG: &str = "[user]\n\tname = Anna\n\temail = anna@shop.example\n";

const README: &str = "# Shop\n\nPrices and weights of fruit, a list per file in `src/`.\n";
const FIRST_LIST: &str = "lemons 1 crown\n";
const CI: &str = r#"#!/bin/sh
# Every list ends with a newline, and no list holds the word BUG.
set -u
red=0
for list in src/*.txt; do
    if [ -n "$(tail -c 1 "$list")" ]; then
        echo "$list: there is no newline at the end"
        red=1
    fi
    if grep -n BUG "$list"; then
        echo "$list: a BUG is left"
        red=1
    fi
done
[ "$red" = 0 ] && echo "all lists are good"
exit "$red"
"#;

/// Writes the first version of the project.
pub(super) fn write_files(checkout: &Path) -> io::Result<()> {
    fs::create_dir(checkout.join("src"))?;
    fs::write(checkout.join("README.md"), README)?;
    fs::write(checkout.join("src/lemons.txt"), FIRST_LIST)?;
    fs::write(checkout.join("ci.sh"), CI)?;
    fs::set_permissions(checkout.join("ci.sh"), fs::Permissions::from_mode(0o755))
}

/// The project's `pointsman.toml`: everything at once, and in the time of a demo.
pub(super) fn configuration(program: &Path, phase_dir: &Path, pace: Pace) -> anyhow::Result<String> {
    let word = |path: &Path| {
        let text = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
        anyhow::Ok(toml::Value::String(text.to_owned()).to_string())
    };
    let (program, phase_dir) = (word(program)?, word(phase_dir)?);
    let pause = pace.step().as_millis();
    Ok(format!(
        r#"name = "{NAME}"
primary_branch = "main"

[forge]
kind = "local"

[ci]
kind = "command"
command = ["./ci.sh"]

[agent]
command = [{program}, "rehearsal-agent", "--pause-ms", "{pause}"]

[review]
mode = "human"

[dev]
concurrency = 14
phase_dir = {phase_dir}

[timing]
ci_timeout = "60s"
review_timeout = "90s"
escalation_renotify = "60s"
escalation_timeout = "90s"
session_timeout = "90s"
idle_look = "5s"
forge_poll = "200ms"
phase_rescan = "500ms"
done_grace = "20s"
restart_backoff = "200ms"
stop_grace = "2s"
handoff_timeout = "60s"

[limits]
ci_fixes = {CI_FIXES}
"#
    ))
}

/// The market's `pointsman.toml`: the same, but the review agent decides, and the vault has a bell.
pub(super) fn market_configuration(
    program: &Path,
    phase_dir: &Path,
    receiver: &Path,
    pace: Pace,
) -> anyhow::Result<String> {
    let text = configuration(program, phase_dir, pace)?;
    let receiver = receiver.to_str().with_context(|| format!("{} is not UTF-8", receiver.display()))?;
    let receiver = toml::Value::String(receiver.to_owned());
    let text = text.replace(&format!("name = \"{NAME}\""), &format!("name = \"{MARKET}\""));
    let text = text.replace("mode = \"human\"", "mode = \"agent\"");
    let text = text.replace("[limits]", "[limits]\nmin_free_memory_mb = 0");
    Ok(format!("{text}\n[vault.types.ring]\ncommand = [{receiver}]\nrisk = \"high\"\n"))
}

/// The program behind the bell: what it was told is in a file beside it.
pub(super) const BELL: &str = "#!/bin/sh\n{ cat; echo; } >> \"$(dirname \"$0\")/rung\"\n";

/// Whether a file of the phase directory belongs to this issue.
pub(super) fn is_state_file(name: &str, project: &str, issue: Number) -> bool {
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    // Reviews are numbered for themselves.
    !stem.starts_with("review-") && stem.ends_with(&format!("-{project}-{issue}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pointsman_adapters::process::{End, Run};
    use pointsman_core::config::Config;

    use super::{Pace, configuration, is_state_file, market_configuration, write_files};

    #[test]
    fn the_configuration_is_one_wherever_the_program_lies() {
        let text =
            configuration(Path::new("/opt/it's \"here\"/pointsman"), Path::new("/p"), Pace::AtOnce).unwrap();
        let config = Config::parse(&text, "pointsman.toml").unwrap();
        assert!(config.unsupported().is_empty());
        assert_eq!(config.dev.concurrency, 14);
        assert_eq!(config.limits.ci_fixes, 2);
        let program = Path::new("/opt/pointsman");
        let text =
            market_configuration(program, Path::new("/p"), Path::new("/home/a/bell"), Pace::AtOnce).unwrap();
        let market = Config::parse(&text, "pointsman.toml").unwrap();
        assert!(market.review_agent() && market.unsupported().is_empty());
        assert_eq!(
            (market.name.as_str(), market.vault.types["ring"].command.as_deref().unwrap_or_default()),
            ("market", &["/home/a/bell".to_owned()][..])
        );
    }

    #[test]
    fn state_files_are_told_apart_by_their_issue() {
        for name in ["dev-session-shop-1.phase", "ci-result-shop-1.txt", "dev-renotify-shop-1"] {
            assert!(is_state_file(name, "shop", 1) && !is_state_file(name, "shop", 11), "{name}");
            assert!(!is_state_file(name, "market", 1));
        }
    }

    #[test]
    fn the_shop_has_a_ci_that_is_green_at_first_and_can_be_red() {
        let dir = tempfile::tempdir().unwrap();
        write_files(dir.path()).unwrap();
        let ci = || {
            let run = Run::new("./ci.sh").inherit(&["PATH"]).cwd(dir.path());
            run.finish().unwrap().end
        };
        assert_eq!(ci(), End::Exited(0));
        for bad in ["a BUG\n", "no newline"] {
            std::fs::write(dir.path().join("src/bad.txt"), bad).unwrap();
            assert_eq!(ci(), End::Exited(1), "{bad}");
        }
    }
}
