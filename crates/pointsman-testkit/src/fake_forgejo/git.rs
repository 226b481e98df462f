//! Git over HTTP, by git's own server program.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use pointsman_core::base64;

use super::{Pushed, REPO, Shared};
use crate::http::{Reply, Request};
use crate::repository::command;

/// Names the branch that this push must not move.
const PROTECTED: &str = "FAKE_PROTECTED";

pub(super) fn answer(shared: &Shared, request: &Request) -> Reply {
    if !request.path.starts_with(&format!("/{REPO}.git/")) {
        return Reply::empty(404);
    }
    let basic = request.header("authorization").and_then(|text| text.strip_prefix("Basic "));
    let basic = basic.map(|coded| String::from_utf8_lossy(&base64::decode(coded)).into_owned());
    let (login, writes, is_owner, rules) = {
        let state = shared.state();
        let account = basic.as_deref().and_then(|text| text.split_once(':'));
        // As the real one: the token says who it is, whatever the name.
        let known = account.and_then(|(_, token)| state.accounts.iter().find(|(_, a)| a.token == token));
        match known {
            Some((login, account)) => (login.clone(), account.write, account.admin, state.rules.clone()),
            None => return Reply::empty(401).with("WWW-Authenticate", "Basic realm=\"Gitea\""),
        }
    };
    if request.raw_query.contains("receive-pack") || request.path.ends_with("receive-pack") {
        if rules.read_only {
            return Reply::empty(503);
        }
        if !writes {
            return Reply::empty(403);
        }
    }
    let mut backend = command(&shared.root, &["http-backend"]);
    backend
        .env("GIT_PROJECT_ROOT", &shared.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "somebody")
        .env(PROTECTED, if rules.protected_main && !is_owner { "refs/heads/main" } else { "" })
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", &request.raw_query)
        .env("CONTENT_LENGTH", request.body.len().to_string());
    for (header, variable) in [
        ("content-type", "CONTENT_TYPE"),
        ("content-encoding", "HTTP_CONTENT_ENCODING"),
        ("git-protocol", "GIT_PROTOCOL"),
    ] {
        if let Some(value) = request.header(header) {
            backend.env(variable, value);
        }
    }
    let pushes = request.method == "POST" && request.path.ends_with("receive-pack");
    let before = if pushes { branches(shared) } else { BTreeMap::new() };
    let mut running = backend
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("git is installed");
    let mut input = running.stdin.take().expect("it was asked for");
    let body = request.body.clone();
    let feeding = std::thread::spawn(move || {
        let _ = input.write_all(&body);
    });
    let output = running.wait_with_output().expect("it was started").stdout;
    let _ = feeding.join();
    if pushes {
        let mut state = shared.state();
        for (branch, after) in branches(shared) {
            let before = before.get(&branch).cloned().unwrap_or_default();
            if before != after {
                state.pushes.push(Pushed { login: login.clone(), branch, before, after });
            }
        }
    }
    reply(&output)
}

/// Where every branch is.
fn branches(shared: &Shared) -> BTreeMap<String, String> {
    let listed = shared.git(&["for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads"]);
    let listed = listed.unwrap_or_default();
    let pairs = listed.lines().filter_map(|line| line.split_once(' '));
    pairs.map(|(name, sha)| (name.to_owned(), sha.to_owned())).collect()
}

/// Has git ask before a branch moves.
pub(super) fn protect(repository: &Path) {
    let hook = repository.join("hooks/update");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" != \"${PROTECTED}\" ] || {{ echo 'Not allowed to push to protected branch main' >&2; exit 1; }}\n"
    );
    std::fs::create_dir_all(repository.join("hooks")).expect("a test's own directory can be written");
    std::fs::write(&hook, script).expect("a test's own directory can be written");
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&hook, all).expect("a test's own file can be changed");
}

/// What a CGI program printed, as a reply.
fn reply(output: &[u8]) -> Reply {
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(output.len());
    let mut reply = Reply::empty(200);
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        match line.split_once(':') {
            Some(("Status", status)) => {
                reply.status = status.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(500);
            }
            Some((name, value)) => reply = reply.with(name, value.trim()),
            None => {}
        }
    }
    reply.body(output.get(end + 4..).unwrap_or_default())
}
