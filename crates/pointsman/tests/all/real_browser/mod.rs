//! The web in a real browser. `scripts/test-web` installs one and names it in `POINTSMAN_CHROMIUM`; without that the tests are
//! reported as not run.

mod driver;

use std::path::PathBuf;

use pointsman_testkit::TestDaemon;

use self::driver::Chromium;
use crate::e2e::shop;

const WAITS: &str = "write src/list.txt apples\\npears\\nplums\ncommit Add fruit\npush\nphase awaiting_ci\n\
    expect CI passed\nphase awaiting_review\nexpect Changes requested\n\
    write src/list.txt apples\\ngreen pears\\nplums\ncommit Greener\npush\nphase awaiting_ci\n\
    expect CI passed\nphase awaiting_review\nexpect Merged\nphase done";

/// Logs the browser in, as a person does with a link from a terminal. The name is one that a browser knows without asking.
fn log_in(chromium: &Chromium, daemon: &TestDaemon) -> String {
    let link = daemon.json(&["web", "open"])["url"].as_str().unwrap().to_owned();
    chromium.open(&link);
    chromium.click("button[type=submit]");
    chromium.wait("Home", "document.querySelector('h1') && document.title.includes('Home')");
    link.split("/login").next().unwrap().to_owned()
}

/// Serious and critical findings of axe, if the script has installed it.
fn assert_accessible(chromium: &Chromium, page: &str) {
    let path = PathBuf::from(std::env::var_os("POINTSMAN_AXE").expect("scripts/test-web names axe"));
    chromium.eval(&std::fs::read_to_string(path).expect("axe can be read"));
    let found = chromium.eval_later(
        "const done = arguments[arguments.length - 1]; axe.run(document, { resultTypes: ['violations'] }).then(r => done(r.violations \
         .filter(v => ['serious', 'critical'].includes(v.impact)).map(v => v.id + ': ' + v.nodes.map(n => n.html).slice(0, 3).join(' | '))), e => done([String(e)]));",
    );
    assert_eq!(found, serde_json::json!([]), "{page}");
}

/// Nothing of the page is wider than it.
fn assert_fits(chromium: &Chromium, page: &str) {
    let wider =
        chromium.eval("return document.documentElement.scrollWidth - document.documentElement.clientWidth;");
    assert_eq!(wider, 0, "{page} scrolls sideways");
}

#[test]
fn real_browser_reviews_with_a_comment_on_a_line_and_approves_with_the_keyboard() {
    let Some(chromium) = Chromium::start() else { return };
    let daemon = shop().reviewed().web().start();
    let base = log_in(&chromium, &daemon);
    chromium.wait("a live page", "document.querySelector('[data-live] b').textContent === 'Live'");
    assert!(chromium.eval("return document.body.innerText;").as_str().unwrap().contains("Nothing needs you"));

    // What happens appears without a reload.
    chromium.eval("window.sameDocument = true;");
    let issue = daemon.file_issue("Fruit <img src=x onerror=\"window.pwned=1\">", WAITS);
    let first = daemon.wait_in_review(issue);
    chromium.wait("the review on Home", "document.querySelector('.needs .btn')");
    assert_eq!(chromium.eval("return [window.sameDocument, window.pwned];"), serde_json::json!([true, null]));
    chromium.wait("the count in the title", "document.title.startsWith('(1)')");
    assert_accessible(&chromium, "home");
    chromium.picture("home");

    // Only keys from here: to the inbox, to the question, to a line, a comment, and the order.
    chromium.press("gi");
    chromium.wait("the inbox", "location.pathname === '/inbox' && document.readyState === 'complete'");
    chromium.press("j");
    chromium.wait("the review", "document.querySelector('.diff tr[data-line]')");
    assert_accessible(&chromium, "review");
    chromium.picture("review");
    chromium.press("n");
    chromium.wait("a line", "document.querySelector('tr.sel')");
    chromium.press("\u{e015}c");
    chromium.wait("the comment's field", "document.activeElement.name === 'text'");
    chromium.press("green ones");
    chromium.press("\u{e00c}");
    chromium.press("r");
    chromium.wait("the order is given", "location.search.startsWith('?done=')");
    daemon.wait_until(issue, "the second round", |task| {
        task["state"] == "awaiting_review" && task["head_sha"] != first["head_sha"]
    });
    let messages: String = std::fs::read_dir(daemon.session_files(issue).join("inbox-1"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert!(messages.contains("`src/list.txt:2`: green ones"), "{messages}");

    chromium.wait("the second question", "document.querySelector('.ilist li a')");
    chromium.press("j");
    chromium.wait("the second review", "document.querySelector('.diff tr[data-line]')");
    chromium.press("a");
    chromium.wait("the approval is given", "location.search.startsWith('?done=')");
    daemon.wait_closed(issue);
    chromium.open(&format!("{base}/"));
    chromium.wait("the landing on Home", "document.querySelector('#landed table')");
}

#[test]
fn real_browser_on_a_phone_in_the_dark_without_scripts_and_over_a_killed_daemon() {
    let Some(chromium) = Chromium::start() else { return };
    let daemon = shop().reviewed().web().start();
    let issue = daemon.file_issue(&format!("Fruit with {} name", "a-very-long-".repeat(30)), WAITS);
    daemon.wait_in_review(issue);
    let base = log_in(&chromium, &daemon);
    chromium.wait("a question", "document.querySelector('.needs a.q')");
    let path = chromium.eval("return document.querySelector('.needs a.q').getAttribute('href');");
    let path = path.as_str().unwrap();
    chromium.theme("dark");
    for (width, name) in [(360, "phone"), (320, "narrow"), (1440, "wide")] {
        chromium.size(width, 740);
        for (page, address) in [("home", "/"), ("inbox", "/inbox"), ("review", path)] {
            chromium.open(&format!("{base}{address}"));
            chromium.wait("the page", "document.readyState === 'complete'");
            assert_fits(&chromium, &format!("{page} at {width}"));
            assert_accessible(&chromium, &format!("{page}, dark, at {width}"));
            chromium.picture(&format!("{page}-{name}-dark"));
        }
    }
    let background = chromium.eval("return getComputedStyle(document.body).backgroundColor;");
    let sum: u32 = background
        .as_str()
        .unwrap()
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|part| part.parse::<u32>().ok())
        .take(3)
        .sum();
    assert!(sum < 200, "dark is dark: {background}");

    // A killed daemon: the page says so, keeps what is written, and is live again with the next one.
    chromium.type_into("textarea[name=body]", "Please dry them");
    daemon.kill_daemon();
    chromium.wait("the page to say so", "document.querySelector('[data-live] b').textContent === 'Not live'");
    daemon.start();
    chromium.wait("the page to be live", "document.querySelector('[data-live] b').textContent === 'Live'");
    assert_eq!(
        chromium.eval("return document.querySelector('textarea[name=body]').value;"),
        "Please dry them"
    );

    // Without scripts: a comment on a line by its number, and the order as a plain form.
    chromium.scripts(false);
    chromium.open(&format!("{base}{path}"));
    chromium.type_into(".plain-comment input[name=line]", "3");
    chromium.type_into(".plain-comment textarea", "dried ones?");
    chromium.picture("review-without-scripts");
    chromium.click("button[value=reject]");
    chromium.scripts(true);
    chromium.wait("the order is given", "location.search.startsWith('?done=')");
    daemon.wait_for("the comment to reach the agent", || {
        let messages = std::fs::read_dir(daemon.session_files(issue).join("inbox-1")).ok()?;
        let texts = messages.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
        texts.into_iter().any(|text| text.contains("`src/list.txt:3`: dried ones?")).then_some(())
    });
}
