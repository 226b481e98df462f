//! The tutorial, played with the real Claude Code against a scripted API. What the page says that a command prints is what
//! it printed; `scripts/tutorial` writes it there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use pointsman_testkit::claude_api::ClaudeApi;
use pointsman_testkit::not_run;

use super::new_user::NewUser;
use super::page;
use super::shown::Shown;
use crate::e2e::sandbox_works;
use crate::real_claude::{bash, text};

/// The page.
pub(crate) const PAGE: &str = "docs/tutorial.md";
/// Asks to write the outputs into the page instead of comparing them.
const WRITE: &str = "POINTSMAN_TUTORIAL_WRITE";
/// Made up; nothing outside the loopback interface ever sees it.
const TOKEN: &str = "sk-ant-oat01-0000000000000000000000000000";

/// What the model does: it writes the function, and answers the review with a second commit.
fn play(api: &ClaudeApi) {
    let first = "cat >> prices.py <<'EOF'\n\n\ndef discount(price, percent):\n    return price - price * percent / 100\nEOF\n\
        cat > test_discount.py <<'EOF'\nimport unittest\n\nfrom prices import discount\n\n\nclass DiscountTest(unittest.TestCase):\n    \
        def test_discount(self):\n        self.assertEqual(discount(200, 25), 150)\nEOF\npython3 -m unittest";
    let hand_in = |message: &str| {
        bash(&format!(
            "git add --all && git commit --quiet --message '{message}' && git push --quiet origin HEAD && \
             echo 'Adds `discount`, with a test.' > \"$POINTSMAN_SUMMARY_FILE\" && echo PHASE:awaiting_ci > \"$PHASE_FILE\""
        ))
    };
    let second = "sed -i 's|^    return price - |    if not 0 <= percent <= 100:\\n        raise ValueError(f\"{percent} is not a percentage\")\\n&|' \
        prices.py && cat >> test_discount.py <<'EOF'\n\n    def test_more_than_everything(self):\n        \
        with self.assertRaises(ValueError):\n            discount(200, 101)\nEOF\npython3 -m unittest";
    api.when(
        "] Task #",
        &[
            bash("cat \"$POINTSMAN_INBOX/0000-task.md\""),
            bash(first),
            hand_in("Add discount (#1)"),
            text("Handed in."),
        ],
    );
    api.when(
        "] CI passed",
        &[bash("echo PHASE:awaiting_review > \"$PHASE_FILE\""), text("It waits for a review.")],
    );
    api.when(
        "] Changes requested",
        &[bash(second), hand_in("Refuse impossible discounts (#1)"), text("Handed in again.")],
    );
    api.when("] Merged", &[bash("echo PHASE:done > \"$PHASE_FILE\""), text("Done.")]);
}

/// A reader who has Claude Code, and the API that it asks.
fn reader() -> Option<(NewUser, ClaudeApi)> {
    let Some(program) = std::env::var("POINTSMAN_CLAUDE").ok().filter(|path| !path.is_empty()) else {
        not_run("claude", "POINTSMAN_CLAUDE names no program; scripts/test-claude installs one");
        return None;
    };
    if !sandbox_works() {
        return None;
    }
    let api = ClaudeApi::start();
    let mut user = NewUser::new("bakery");
    symlink(Path::new(&program), user.path("bin/claude")).unwrap();
    user.set("ANTHROPIC_BASE_URL", &api.url());
    let machine = user.path("home/.config/pointsman");
    fs::create_dir_all(&machine).unwrap();
    let hosts = format!("[sandbox]\nprivate_hosts = [\"{}\"]\n", api.url().trim_start_matches("http://"));
    fs::write(machine.join("config.toml"), hosts).unwrap();
    Some((user, api))
}

#[test]
fn real_claude_plays_the_tutorial() {
    let Some((user, api)) = reader() else { return };
    play(&api);
    let page = page::read(PAGE);
    let blocks = page::blocks(&page);
    let mut shown = Shown::new(user.root());
    let mut outputs = Vec::new();
    for block in &blocks {
        let input = if block.commands.contains("claude login") { TOKEN } else { "" };
        let printed = user.shell_with_input(&block.commands, input);
        let printed = shown.text(&printed);
        assert!(!printed.contains(TOKEN), "the token is shown: {printed}");
        outputs.push(block.output.as_ref().map(|_| printed));
        user.wait_for_promises(block);
    }
    let played = page::with_outputs(&page, &outputs);
    if std::env::var_os(WRITE).is_some() {
        fs::write(page::root().join(PAGE), played).unwrap();
        return;
    }
    for (block, printed) in blocks.iter().zip(&outputs) {
        assert_eq!(block.output.as_deref(), printed.as_deref(), "{}; run scripts/tutorial", block.commands);
    }
    assert!(outputs.iter().flatten().count() >= 5, "the page shows hardly any output");
}

#[test]
fn real_claude_passes_its_check() {
    let Some((user, api)) = reader() else { return };
    let work = "echo ok > pointsman-check && git add --all && git commit --quiet --message Check && git push --quiet origin HEAD && \
        echo PHASE:awaiting_ci > \"$PHASE_FILE\"";
    api.when("] Task #", &[bash(work), text("Handed in.")]);
    api.when("] CI passed", &[bash("echo PHASE:awaiting_review > \"$PHASE_FILE\""), text("Good.")]);
    user.shell(
        "git init --quiet -b main && echo A shop. > README && git add . && git commit --quiet -m 'A shop'",
    );
    user.shell_with_input("pointsman claude login", TOKEN);
    user.shell("pointsman init --yes --ci true");
    let printed = user.shell("pointsman agent check");
    for step in ["start", "prompt", "hook", "message", "stop", "resume", "tokens"] {
        let is_well = |line: &str| line.starts_with("ok") && line.split_whitespace().any(|word| word == step);
        assert!(printed.lines().any(is_well), "{step}: {printed}");
    }
    assert!(api.keys().iter().all(|key| key.contains(TOKEN)), "{:?}", api.keys());
}
