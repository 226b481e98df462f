//! The screen of the inbox in a real tmux: keys are typed, the screen is read.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use pointsman_testkit::TestDaemon;
use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, REPO, Rules};

use super::{adds, forgejo, shop};

const REVIEWED: &str = "expect CI passed\nphase awaiting_review\nexpect Merged\nphase done";

/// A terminal with the inbox in it.
struct Terminal<'d> {
    daemon: &'d TestDaemon,
    socket: PathBuf,
}

impl<'d> Terminal<'d> {
    fn open(daemon: &'d TestDaemon, width: u32, env: &[(&str, &str)]) -> Self {
        let socket = daemon.path(&format!("t{width}"));
        let terminal = Self { daemon, socket };
        let inbox = daemon.command(&["inbox"]);
        let mut words: Vec<OsString> = ["env", "-i"].map(OsString::from).to_vec();
        for (name, value) in inbox.get_envs() {
            let mut word = name.to_owned();
            word.push("=");
            word.push(value.unwrap_or_default());
            words.push(word);
        }
        words.extend(env.iter().map(|(name, value)| OsString::from(format!("{name}={value}"))));
        words.push("TERM=xterm-256color".into());
        words.push(inbox.get_program().to_owned());
        words.push("inbox".into());
        let width = width.to_string();
        let mut command =
            terminal.command(&["new-session", "-d", "-s", "inbox", "-x", &width, "-y", "30", "-c"]);
        command.arg(daemon.checkout()).args(words);
        assert!(command.status().unwrap().success());
        terminal
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-f", "/dev/null", "-S"]).arg(&self.socket).args(arguments);
        command.env_remove("TMUX");
        command
    }

    fn keys(&self, keys: &[&str]) {
        let arguments = [&["send-keys", "-t", "inbox"], keys].concat();
        assert!(self.command(&arguments).status().unwrap().success());
    }

    fn shows(&self, text: &str) -> String {
        self.daemon.wait_for(&format!("the screen to show {text:?}"), || {
            let answer = self.command(&["capture-pane", "-p", "-t", "inbox"]).output().ok()?;
            let screen = String::from_utf8_lossy(&answer.stdout).into_owned();
            screen.contains(text).then_some(screen)
        })
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

#[test]
fn e2e_the_inbox_is_settled_on_its_screen_at_80_and_200_columns() {
    let ci = "#!/bin/sh\necho 97 > \"$POINTSMAN_ARTIFACTS/coverage.txt\"\n";
    let daemon = shop().reviewed().file("ci.sh", ci).start();
    let editor = daemon.path("editor");
    let edit = "#!/bin/sh\nset -e\nprintf 'Use the green ones\\n# not this\\n' > \"$1.new\"\n\
                sed '/^> +apples/a Greener, please' \"$1\" >> \"$1.new\"\nmv \"$1.new\" \"$1\"\n";
    std::fs::write(&editor, edit).unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    for width in [80, 200] {
        let fruit = format!("apples{width}");
        let script = format!(
            "{}\nexpect CI passed\nphase awaiting_review\nexpect Changes requested\nsay I heard\n\
             write src/{fruit}.txt green\ncommit Use green ones\npush\nphase awaiting_ci\n{REVIEWED}",
            adds(&fruit)
        );
        let issue = daemon.file_issue(&fruit, &script);
        daemon.wait_in_review(issue);
        // The inbox closes at once if it is empty.
        daemon.wait_for("the question", || {
            daemon.json(&["inbox"]).as_array().is_some_and(|open| !open.is_empty()).then_some(())
        });
        let terminal = Terminal::open(&daemon, width, &[("EDITOR", editor.to_str().unwrap())]);
        let screen = terminal.shows("Needs you (1)");
        assert!(screen.contains("> review shop"), "{screen}");
        assert!(screen.contains("a approve") && screen.contains("1 Question"), "{screen}");
        let widest = screen.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::try_from(width).unwrap(), "{screen}");
        if width == 200 {
            terminal.shows("artifact ci coverage.txt (3 B)");
        }
        terminal.keys(&["2"]);
        terminal.shows(&format!("+{fruit}"));
        terminal.keys(&["3"]);
        terminal.shows("CI run 1");
        terminal.keys(&["e"]);
        terminal.shows("cannot be settled this way");
        terminal.keys(&["h"]);
        terminal.shows("asks for no host");
        terminal.keys(&["o"]);
        terminal.shows("This forge has no web pages");
        // Changes are requested in the editor, and the same screen shows the next round by itself.
        terminal.keys(&["r"]);
        daemon.wait_shown(issue, "I heard");
        daemon.wait_for("the second review", || {
            (daemon.task(issue)["state"] == "awaiting_review").then_some(())
        });
        terminal.shows("Needs you (1)");
        terminal.keys(&["2"]);
        terminal.shows("+green");
        // Only what is new, and what became of the comment on a line.
        terminal.keys(&["n"]);
        terminal.shows("Since you looked at");
        terminal.keys(&["4"]);
        terminal.shows("changed");
        terminal.keys(&["a"]);
        terminal.shows("Approve question");
        terminal.keys(&["n"]);
        assert_eq!(daemon.task(issue)["state"], "awaiting_review", "one key decides nothing");
        terminal.keys(&["a"]);
        terminal.shows("Approve question");
        terminal.keys(&["y"]);
        daemon.wait_closed(issue);
        terminal.shows("Needs you (0)");
        terminal.keys(&["q"]);
        daemon.wait_for("the screen to close", || {
            let answer = terminal.command(&["has-session", "-t", "inbox"]).output().ok()?;
            (!answer.status.success()).then_some(())
        });
        let body =
            daemon.pull_request(daemon.task(issue)["pr"].as_u64().unwrap())["reviews"][0]["body"].clone();
        let wanted = format!("Use the green ones\n\n- `src/{fruit}.txt:1`: Greener, please");
        assert_eq!(body, *wanted, "lines that begin with # are left out");
    }
    let piped = daemon.run(&["inbox"]);
    assert!(piped.stderr.contains("Nothing needs you."), "{piped:?}");
}

#[test]
fn e2e_the_page_of_a_pull_request_is_opened_from_the_screen() {
    let fake = FakeForgejo::start(Rules::default());
    let daemon = forgejo::start(&fake, forgejo::on(&fake).reviewed());
    let script =
        format!("{}\nexpect CI passed\nphase awaiting_review\nexpect Merged\nphase done", adds("apples"));
    let issue = forgejo::file(&fake, "Add apples", &script);
    let pr = daemon.wait_in_review(issue)["pr"].as_u64().unwrap();
    daemon.wait_for("the question", || {
        daemon.json(&["inbox"]).as_array().is_some_and(|open| !open.is_empty()).then_some(())
    });
    let (browser, opened) = (daemon.path("browser"), daemon.path("opened"));
    std::fs::write(&browser, format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}'\n", opened.display())).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let with_argument = format!("{} --new", browser.display());
    let token = fake.token(DEV);
    let env = [("CODEBERG_TOKEN", token.as_str()), ("BROWSER", with_argument.as_str())];
    let terminal = Terminal::open(&daemon, 200, &env);
    terminal.shows("Needs you (1)");
    terminal.keys(&["o"]);
    let screen = terminal.shows("Opened http");
    let page = format!("{REPO}/pulls/{pr}");
    assert!(screen.contains(&page), "{screen}");
    let arguments = std::fs::read_to_string(&opened).unwrap();
    assert!(
        arguments.starts_with("--new\nhttp") && arguments.ends_with(&format!("/{page}\n")),
        "{arguments}"
    );
    assert_eq!(daemon.task(issue)["state"], "awaiting_review", "looking decides nothing");
    terminal.keys(&["q"]);
}
