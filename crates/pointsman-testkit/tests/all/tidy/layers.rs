//! Who may know whom: `pointsman → {adapters, store, view} → core`.

use pointsman_testkit::source::{files, root};

use super::{mentions_std, nothing_found, pattern};

/// What would make the core depend on when and where it runs.
const NOT_IN_CORE: [&str; 6] = ["fs", "process", "net", "thread", "env", "io"];

/// Crates that only compute.
const PURE: [&str; 2] = ["crates/pointsman-core/src/", "crates/pointsman-view/src/"];

#[test]
fn core_and_views_touch_nothing() {
    let clock = pattern(r"\b(SystemTime|Instant)\b");
    let mut found = Vec::new();
    for file in files().iter().filter(|f| f.is_rust() && PURE.iter().any(|src| f.path.starts_with(src))) {
        let code = file.shipped_code();
        found.extend(
            NOT_IN_CORE
                .into_iter()
                .filter(|module| mentions_std(&code, module))
                .map(|module| format!("{}: std::{module}", file.path)),
        );
        if clock.is_match(&code) {
            found.push(format!("{}: a clock", file.path));
        }
    }
    nothing_found("core and views have no files, processes, network, threads, environment and clock", &found);
}

#[test]
fn dependencies_go_one_way() {
    // The testkit is for the tests of adapters; it knows only the core itself, so that there is no circle.
    let allowed: [(&str, &[&str]); 6] = [
        ("pointsman-core", &[]),
        ("pointsman-store", &["pointsman-core"]),
        ("pointsman-view", &["pointsman-core"]),
        ("pointsman-adapters", &["pointsman-core", "pointsman-testkit"]),
        ("pointsman-testkit", &["pointsman-core"]),
        ("pointsman-web", &["pointsman-core", "pointsman-view"]),
    ];
    let ours = pattern(r"(?m)^(pointsman[a-z-]*)\b");
    let mut found = Vec::new();
    for (name, known) in allowed {
        let path = root().join("crates").join(name).join("Cargo.toml");
        let manifest = std::fs::read_to_string(&path).expect("every crate has a manifest");
        let others = ours.captures_iter(&manifest).map(|c| c[1].to_owned());
        found.extend(others.filter(|o| !known.contains(&o.as_str())).map(|o| format!("{name} knows {o}")));
    }
    nothing_found("pointsman → {adapters, store, view} → core, and nobody else", &found);
}

#[test]
fn nothing_that_ships_knows_the_testkit() {
    let mut found = Vec::new();
    for name in [
        "pointsman-core",
        "pointsman-store",
        "pointsman-view",
        "pointsman-adapters",
        "pointsman-web",
        "pointsman",
    ] {
        let path = root().join("crates").join(name).join("Cargo.toml");
        let manifest = std::fs::read_to_string(&path).expect("every crate has a manifest");
        let shipped = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        found.extend(shipped.contains("pointsman-testkit").then(|| name.to_owned()));
    }
    nothing_found("the testkit is for tests", &found);
}

#[test]
fn core_and_views_have_few_dependencies() {
    let known: [(&str, &[&str]); 2] = [
        (
            "pointsman-core",
            &["aho-corasick", "regex", "serde", "serde_json", "sha2", "thiserror", "toml", "unicode-width"],
        ),
        ("pointsman-view", &["pointsman-core", "serde", "serde_json"]),
    ];
    let mut found = Vec::new();
    for (name, known) in known {
        let path = root().join("crates").join(name).join("Cargo.toml");
        let manifest = std::fs::read_to_string(path).expect("every crate has a manifest");
        let (_, rest) = manifest.split_once("[dependencies]\n").expect("both have dependencies");
        let list = rest.split("\n[").next().unwrap_or_default();
        let names =
            list.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).filter(|n| !n.is_empty());
        found.extend(names.filter(|n| !known.contains(n)).map(|n| format!("{name} depends on {n}")));
    }
    nothing_found("core and views depend on nothing that touches the world or takes long to build", &found);
}

#[test]
fn only_the_store_knows_sql() {
    let sql = pattern(r"\brusqlite\b");
    let found: Vec<String> = files()
        .iter()
        .filter(|f| f.path.starts_with("crates/") && !f.path.starts_with("crates/pointsman-store/"))
        .filter(|f| !f.path.contains("/tests/"))
        .filter(|f| f.text.split("[dev-dependencies]").next().is_some_and(|shipped| sql.is_match(shipped)))
        .map(|f| f.path.clone())
        .collect();
    nothing_found("only pointsman-store knows SQL", &found);
}

#[test]
fn only_three_places_are_asynchronous() {
    // The web crate, and the two threads that hide an asynchronous library behind a synchronous interface.
    let allowed = [
        "crates/pointsman-web/",
        "crates/pointsman-store/src/store/postgres",
        "crates/pointsman-adapters/src/acp/",
    ];
    let runtime = pattern(r"\basync (fn|move|\{)|\.await\b|\btokio\b");
    let found: Vec<String> = files()
        .iter()
        .filter(|f| f.is_rust() && !allowed.iter().any(|place| f.path.starts_with(place)))
        .filter(|f| runtime.is_match(&f.shipped_code()))
        .map(|f| f.path.clone())
        .collect();
    nothing_found("the daemon's loop and everything around it is synchronous", &found);
}

#[test]
fn only_the_web_knows_the_runtime() {
    let runtime = pattern(r"(?m)^(tokio|axum|hyper|hyper-util|tower|askama)\b");
    let found: Vec<String> = files()
        .iter()
        .filter(|f| f.path.starts_with("crates/") && f.path.ends_with("/Cargo.toml"))
        .filter(|f| f.path != "crates/pointsman-web/Cargo.toml" && runtime.is_match(&f.text))
        .map(|f| f.path.clone())
        .collect();
    nothing_found("only pointsman-web depends on the asynchronous runtime", &found);
}

/// Rooms of the daemon with the names that must not appear there, and the reason.
const ROOMS: [(&str, &str, &str); 3] = [
    (
        "crates/pointsman/src/daemon/dispatcher/",
        r"pointsman_adapters::(process|git|tmux|headless|forge|ci|http|notify|claude)\b|\.join\(\)",
        "the loop waits only for its channel and the disk: whatever takes time is a worker's or a job's",
    ),
    (
        "crates/pointsman/src/daemon/engine/",
        r"pointsman_adapters::|\.recv\(|\.join\(\)|\bMutex\b|\bRwLock\b",
        "the engine waits only for the disk, so that the simulation can drive it",
    ),
    (
        "crates/pointsman/src/daemon/sources/",
        r"\bworkflow::step\b|\btask::step\b|\brun::step\b|\bEffect::[A-Z]|\.commit\(",
        "sources report facts: they neither decide nor write",
    ),
];

#[test]
fn rooms_of_the_daemon_keep_to_their_work() {
    let mut found = Vec::new();
    for (room, unwanted, why) in ROOMS {
        let unwanted = pattern(unwanted);
        let files = files();
        let in_room: Vec<_> = files.iter().filter(|f| f.is_rust() && f.path.starts_with(room)).collect();
        assert!(!in_room.is_empty(), "{room} has moved");
        for file in in_room {
            let code = file.shipped_code();
            found.extend(unwanted.find_iter(&code).map(|m| format!("{}: {}: {why}", file.path, m.as_str())));
        }
    }
    nothing_found("each room of the daemon keeps to its work", &found);
}
