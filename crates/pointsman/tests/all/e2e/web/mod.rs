//! The web: logins, pages, reviews in the browser, streams, and what strangers try. `scripts/test-web` has the real browser.

mod browser;

use std::net::TcpListener;

use pointsman_testkit::TestDaemon;

use self::browser::{Browser, Page, code, link};
use super::shop;

/// An agent that hands in a list and mends it once.
const TWO_ROUNDS: &str = "write src/list.txt apples\\npears\\nplums\ncommit Add fruit\npush\nphase awaiting_ci\n\
    expect CI passed\nphase awaiting_review\nexpect Changes requested\n\
    write src/list.txt apples\\ngreen pears\\nplums\ncommit Greener\npush\nphase awaiting_ci\n\
    expect CI passed\nphase awaiting_review\nexpect Merged\nphase done";

/// The open question about an issue.
fn question(daemon: &TestDaemon, issue: u64) -> u64 {
    daemon.wait_for("a question", || {
        let open = daemon.json(&["inbox"]);
        let asked = open.as_array()?.iter().find(|asked| asked["issue"] == issue)?;
        asked["id"].as_u64()
    })
}

fn assert_safe(page: &Page) {
    let policy = page.header("content-security-policy").unwrap_or_default();
    assert!(policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"), "{page:?}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"), "{page:?}");
    assert!(!page.body.contains(" style=\"") && !page.body.contains("<script>"), "{}", page.body);
}

#[test]
fn e2e_web_a_review_in_the_browser_reaches_the_agent_and_an_approval_lands() {
    let daemon = shop().reviewed().web().start();
    let issue = daemon.file_issue("Fruit <script>alert(1)</script>", TWO_ROUNDS);
    let first = daemon.wait_in_review(issue);
    let (id, browser) = (question(&daemon, issue), Browser::log_in(&daemon));
    let home = browser.get("/");
    assert_eq!(home.status, 200, "{home:?}");
    assert!(home.body.contains("Needs you") && home.body.contains(&format!("/inbox/{id}")), "{}", home.body);
    assert_safe(&home);

    let path = format!("/inbox/{id}");
    let desk = browser.get(&path);
    assert_eq!(desk.status, 200, "{desk:?}");
    assert_safe(&desk);
    for shown in ["data-file=\"src/list.txt\"", "pears", "CI", "Request changes", "Approve"] {
        assert!(desk.body.contains(shown), "{shown}: {}", desk.body);
    }
    assert!(!desk.body.contains("<script>alert"), "titles are text");
    let head = first["head_sha"].as_str().unwrap();
    assert!(desk.body.contains(&head[..7]), "the page says what is approved");

    let token = desk.token(&path);
    let empty = browser.post(&path, &[("token", &token), ("do", "reject")]);
    assert_eq!(empty.status, 409, "{empty:?}");
    let sent = browser.post(
        &path,
        &[
            ("token", &token),
            ("line", "2"),
            ("file", "src/list.txt"),
            ("text", "green ones"),
            ("body", "One thing."),
            ("do", "reject"),
        ],
    );
    assert_eq!(sent.status, 303, "{sent:?}");
    daemon.wait_until(issue, "the second round", |task| {
        task["state"] == "awaiting_review" && task["head_sha"] != first["head_sha"]
    });
    let messages: String = std::fs::read_dir(daemon.session_files(issue).join("inbox-1"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert!(messages.contains("`src/list.txt:2`: green ones"), "{messages}");

    let late = browser.post(&path, &[("token", &token), ("do", "approve")]);
    assert_eq!(late.status, 409, "the answer to the first round is no answer to the second: {late:?}");
    let second = question(&daemon, issue);
    assert_ne!(second, id);
    let path = format!("/inbox/{second}");
    let desk = browser.get(&path);
    assert!(desk.body.contains("<span>changed</span>"), "the comment, and what became of it: {}", desk.body);
    let approved = browser.post(&path, &[("token", &desk.token(&path)), ("do", "approve")]);
    assert_eq!(approved.status, 303, "{approved:?}");
    daemon.wait_closed(issue);
    let settled = daemon.json(&["inbox", "show", &second.to_string()]);
    assert_eq!(settled["settled"]["how"], "approved");
    let person = daemon.json(&["web", "token", "create", "a name", "--scope", "read"]);
    assert_eq!(settled["settled"]["by"], person["by"], "the order names the person");
}

#[test]
fn e2e_web_strangers_neither_see_nor_change_anything() {
    let daemon = shop().reviewed().web().start();
    let issue = daemon.file_issue("Fruit", TWO_ROUNDS);
    daemon.wait_in_review(issue);
    let id = question(&daemon, issue);
    let path = format!("/inbox/{id}");
    let browser = Browser::log_in(&daemon);
    let token = browser.get(&path).token(&path);
    let stranger = Browser::logged_out(&daemon);
    for page in ["/", "/inbox", &path, "/live", "/api/v1/status", "/api/v1/events"] {
        let seen = stranger.get(page);
        assert_eq!(seen.status, 401, "{page}: {seen:?}");
        assert!(!seen.body.contains("Fruit"), "{page}");
        assert_eq!(seen.header("x-frame-options"), Some("DENY"));
    }
    // A page of somebody else makes this browser send a form, with its cookie. SameSite would keep it, too.
    for origin in ["http://evil.example", "null", "https://pointsman.localhost", "http://127.0.0.1:1"] {
        let forged = browser.post_from(origin, &path, &[("token", &token), ("do", "approve")]);
        assert_eq!(forged.status, 403, "{origin}: {forged:?}");
    }
    // A name of somebody else that points here.
    for host in ["evil.example", "evil.example:7180", ""] {
        let head =
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\n", browser.cookie.as_ref().unwrap());
        let rebound = browser.send(&head, "");
        assert!(
            [400, 421].contains(&rebound.status) && !rebound.body.contains("Needs you"),
            "{host}: {rebound:?}"
        );
    }
    // A form without its token, with that of another form, and with that of another login.
    let other = Browser::log_in(&daemon).get(&path).token(&path);
    let logout = browser.get("/").token("/logout");
    for wrong in ["", "00", &logout, &other] {
        let refused = browser.post(&path, &[("token", wrong), ("do", "approve")]);
        assert_eq!(refused.status, 409, "{wrong}: {refused:?}");
    }
    let huge = browser.post(&path, &[("token", &token), ("do", "reject"), ("body", &"x".repeat(2 << 20))]);
    assert!([0, 413].contains(&huge.status), "it is cut off: {}", huge.status);
    for odd in ["/../../etc/passwd", "/assets/..%2f..%2fstyle.css", "/inbox/x", "/inbox/999999", "/%00"] {
        let page = browser.get(odd);
        assert!((400..500).contains(&page.status), "{odd}: {page:?}");
    }
    // Nothing of that has settled the question, and the same form from our own page does.
    assert!(daemon.json(&["inbox", "show", &id.to_string()])["settled"].is_null());
    assert_eq!(browser.post(&path, &[("token", &token), ("do", "approve")]).status, 303);
    daemon.wait_closed(issue);
}

#[test]
fn e2e_web_a_link_logs_in_once_and_a_logout_counts() {
    let daemon = shop().web().start();
    let code = code(&daemon);
    let browser = Browser::logged_out(&daemon);
    let shown = browser.get(&format!("/login?code={code}"));
    assert!(shown.status == 200 && shown.body.contains("Log in"), "{shown:?}");
    assert!(shown.header("set-cookie").is_none(), "a look does not use it up");
    assert_eq!(browser.post("/login", &[("code", &code)]).status, 303);
    let replayed = browser.post("/login", &[("code", &code)]);
    assert_eq!((replayed.status, replayed.header("set-cookie")), (403, None));
    assert_eq!(browser.post("/login", &[("code", "nonsense")]).status, 403);
    assert!(!daemon.log().contains(&code), "no log has the link");

    let browser = Browser::log_in(&daemon);
    daemon.kill_daemon();
    daemon.start();
    let home = browser.get("/");
    assert_eq!(home.status, 200, "a login outlives the daemon: {home:?}");
    let kept = std::fs::read_to_string(daemon.state().join("web-logins.json")).unwrap();
    let secret = browser.cookie.as_ref().unwrap().split_once('=').unwrap().1;
    assert!(!kept.contains(secret), "only hashes are kept");
    let left = browser.post("/logout", &[("token", &home.token("/logout"))]);
    assert_eq!(left.status, 401, "{left:?}");
    assert_eq!(browser.get("/").status, 401);
}

#[test]
fn e2e_web_an_open_page_hears_of_a_change() {
    let daemon = shop().web().start();
    let browser = Browser::log_in(&daemon);
    let mut lines = browser.stream("/live", "");
    let mut changes = lines.by_ref().filter(|line| line == "event: change");
    assert!(changes.next().is_some(), "one at the beginning");
    daemon.file_issue("Fruit", "phase done");
    assert!(changes.next().is_some(), "one for what happened");
}

#[test]
fn e2e_web_the_stream_of_events_has_no_gap_and_no_repeat_over_a_restart() {
    let daemon = shop().web().start();
    let made = daemon.json(&["web", "token", "create", "a program", "--scope", "read"]);
    let token = made["token"].as_str().unwrap();
    let header = format!("Authorization: Bearer {token}\r\n");
    let browser = Browser::logged_out(&daemon);
    let numbers = |position: &str, upto: i64| -> Vec<i64> {
        let lines = browser.stream("/api/v1/events", &format!("{header}{position}"));
        let mut seen = Vec::new();
        for line in lines {
            if let Some(number) = line.strip_prefix("id: ") {
                seen.push(number.parse().unwrap());
            }
            if seen.last().is_some_and(|last| *last >= upto) {
                break;
            }
        }
        seen
    };
    let newest = || -> i64 {
        let text = daemon.run(&["events", "--since", "0", "--json"]).stdout;
        text.lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()?["seq"].as_i64())
            .max()
            .unwrap()
    };
    let issue = daemon.file_issue("Fruit", "write src/list.txt apples\ncommit Add fruit\npush\nphase awaiting_ci\nexpect CI passed\nphase awaiting_review\nexpect Merged\nphase done");
    daemon.wait_for("the task", || (!daemon.events(issue).is_empty()).then_some(()));
    let before = numbers("Last-Event-ID: 0\r\n", newest());
    daemon.kill_daemon();
    daemon.start();
    daemon.wait_closed(issue);
    let last = before.last().unwrap();
    let after = numbers(&format!("Last-Event-ID: {last}\r\n"), newest());
    let all: Vec<i64> = before.iter().chain(&after).copied().collect();
    let text = daemon.run(&["events", "--since", "0", "--json"]).stdout;
    let logged: Vec<i64> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"].as_i64().unwrap())
        .take(all.len())
        .collect();
    assert_eq!(all, logged);

    let status =
        browser.send(&format!("GET /api/v1/status HTTP/1.1\r\nHost: {}\r\n{header}", browser.host), "");
    assert!(status.status == 200 && status.body.contains("\"questions\""), "{status:?}");
    let id = made["id"].to_string();
    assert_eq!(daemon.json(&["web", "token", "list"])[0]["label"], "a program");
    daemon.run(&["web", "token", "revoke", &id]);
    let over =
        browser.send(&format!("GET /api/v1/status HTTP/1.1\r\nHost: {}\r\n{header}", browser.host), "");
    assert_eq!(over.status, 401, "{over:?}");
    assert_eq!(daemon.run(&["web", "token", "revoke", &id]).code, Some(4));
}

#[test]
fn e2e_web_a_program_orders_once_within_its_scopes_and_reads_figures() {
    let daemon = shop().reviewed().web().start();
    let browser = Browser::logged_out(&daemon);
    let token = |scopes: &[&str]| -> String {
        let mut words = vec!["web", "token", "create", "a program"];
        words.extend(scopes.iter().flat_map(|scope| ["--scope", scope]));
        let made = daemon.json(&words);
        format!("Authorization: Bearer {}\r\n", made["token"].as_str().unwrap())
    };
    let (read, order, all) = (token(&["read"]), token(&["order"]), token(&["read", "order", "approve"]));
    let send = |method: &str, path: &str, headers: &str, body: &str| {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {length}\r\n",
            browser.host
        );
        browser.send(&head, body)
    };
    let issue = serde_json::json!({
        "title": "Fruit",
        "body": format!("```text\nrehearsal:begin\n{TWO_ROUNDS}\nrehearsal:end\n```\n"),
        "labels": ["backlog"],
    })
    .to_string();
    let issues = "/api/v1/projects/shop/issues";
    assert_eq!(send("POST", issues, &read, &issue).status, 409, "reading is not ordering");
    assert_eq!(send("GET", "/api/v1/inbox", &order, "").status, 409, "ordering is not reading");
    assert_eq!(send("POST", issues, &order, "{\"titel\": 1}").status, 400);
    let keyed = format!("{order}Idempotency-Key: fruit\r\n");
    let first = send("POST", issues, &keyed, &issue);
    assert!(first.status == 200 && first.body.contains("\"number\""), "{first:?}");
    assert_eq!(send("POST", issues, &keyed, &issue).body, first.body, "the same answer");
    assert_eq!(send("POST", issues, &keyed, "{\"title\": \"Other\"}").status, 409, "another order");
    let filed = daemon.json(&["forge", "issue", "list", "--state", "all"]);
    assert_eq!(filed.as_array().unwrap().len(), 1, "it was filed once");

    let number = filed[0]["number"].as_u64().unwrap();
    let review = daemon.wait_in_review(number);
    let id = question(&daemon, number);
    let approve = format!("/api/v1/inbox/{id}/approve");
    assert_eq!(send("POST", &approve, &order, "").status, 409, "ordering is not approving");
    assert_eq!(
        send("POST", &format!("/api/v1/inbox/{id}/reject"), &all, "").status,
        400,
        "a no has a reason"
    );
    let figures = send("GET", "/metrics", &read, "");
    for line in [
        "pointsman_tasks{project=\"shop\",state=\"awaiting_review\"} 1",
        "pointsman_questions{project=\"shop\",kind=\"review\"} 1",
    ] {
        assert!(figures.body.contains(line), "{line}: {}", figures.body);
    }
    assert_eq!(send("GET", "/metrics", "", "").status, 401);
    let said = "{\"body\": \"One thing.\", \"comments\": [{\"file\": \"src/list.txt\", \"line\": 2, \"text\": \"green ones\"}]}";
    assert_eq!(send("POST", &format!("/api/v1/inbox/{id}/reject"), &all, said).status, 200);
    daemon.wait_until(number, "the second round", |task| {
        task["state"] == "awaiting_review" && task["head_sha"] != review["head_sha"]
    });
    let second = question(&daemon, number);
    let yes = send("POST", &format!("/api/v1/inbox/{second}/approve"), &all, "");
    assert!(yes.status == 200 && yes.body.contains("\"settled\""), "{yes:?}");
    daemon.wait_closed(number);
    assert_eq!(send("POST", "/api/v1/projects/shop/tasks/999/pause", &all, "").status, 404);
    assert_eq!(send("POST", "/api/v1/projects/shop/tasks/999/dance", &all, "").status, 404);
}

#[test]
fn e2e_web_a_taken_port_stops_nothing_else() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    let daemon = shop().machine(&format!("[web]\nlisten = \"{listen}\"\n")).start();
    assert!(daemon.log().contains("the web does not listen on"), "{}", daemon.log());
    let refused = daemon.run(&["web", "open"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("web.listen"), "{refused:?}");
    let off = shop().start();
    assert!(off.run(&["web", "open"]).stderr.contains("switched off"));
    let on = shop().web().start();
    assert!(link(&on).starts_with("http://pointsman.localhost:"));
}
