//! The documentation tells the truth, as far as a program can see.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use pointsman_core::config::{Config, DEFAULT_TOML};
use pointsman_core::task::{Phase, State};
use pointsman_testkit::source::{SourceFile, files, root};

use super::{nothing_found, pattern};

fn paper(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_readme_names_both_commands() {
    let readme = paper("README.md");
    for script in ["scripts/demo", "scripts/test"] {
        assert!(readme.contains(script), "README.md does not name {script}");
        assert!(root().join(script).is_file(), "{script} is not there");
    }
}

#[test]
fn every_link_leads_somewhere() {
    let link = pattern(r#"\]\(([^)\s]+)\)|(?:src|href)="([^"]+)""#);
    let files = files();
    let mut found = Vec::new();
    for file in files.iter().filter(|f| f.is_markdown()) {
        for target in link.captures_iter(&without_code(&file.text)) {
            let target = target.get(1).or(target.get(2)).map_or("", |m| m.as_str());
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if let Some(why) = broken(file, target, &files) {
                found.push(format!("{}: {target}: {why}", file.path));
            }
        }
    }
    nothing_found("every link leads somewhere", &found);
}

fn broken(file: &SourceFile, target: &str, files: &[SourceFile]) -> Option<&'static str> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = match path {
        "" => file.path.clone(),
        _ => plain(&Path::new(&file.path).parent()?.join(path)),
    };
    if !root().join(&path).exists() {
        return Some("there is no such file");
    }
    let page = files.iter().find(|f| f.path == path);
    match (anchor, page) {
        (Some(anchor), Some(page)) if !anchors(&page.text).contains(anchor) => {
            Some("there is no such heading")
        }
        (Some(_) | None, _) => None,
    }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> String {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => plain.push(part),
        }
    }
    plain.to_string_lossy().into_owned()
}

/// The names that forges give to a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let prose = without_code(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// Without blocks of code, in which nothing is a link or a heading.
fn without_code(text: &str) -> String {
    let mut inside = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// The rows of the tables in `docs/configuration.md`: key and default, without their back quotes. A row about
/// `roles.<role>` is about each role that has no row of its own.
fn documented() -> BTreeMap<String, String> {
    let row = pattern(r"(?m)^\| `([a-z_.<>]+)` \| (?:`([^`]*)`|([^|]*)) \|");
    let page = paper("docs/configuration.md");
    let default =
        |c: &regex::Captures<'_>| c.get(2).or(c.get(3)).map_or("", |m| m.as_str()).trim().to_owned();
    let mut rows: BTreeMap<String, String> =
        row.captures_iter(&page).map(|c| (c[1].to_owned(), default(&c))).collect();
    let shared: Vec<(String, String)> =
        rows.iter().filter(|(key, _)| key.contains('<')).map(|(k, v)| (k.clone(), v.clone())).collect();
    for (key, value) in shared {
        rows.remove(&key);
        for (role, _) in Config::default().roles.iter() {
            rows.entry(key.replace("<role>", role.as_str())).or_insert_with(|| value.clone());
        }
    }
    rows
}

/// Every key there is, also those without a default: asked of the parser, which names them when it is given an
/// unknown one.
fn known_keys() -> BTreeSet<String> {
    let table = pattern(r"(?m)^\[([a-z.]+)\]");
    let mut tables = vec![String::new()];
    tables.extend(table.captures_iter(DEFAULT_TOML).map(|c| c[1].to_owned()));
    let nested: Vec<String> = tables.iter().flat_map(|t| t.split('.')).map(str::to_owned).collect();
    let known_here = pattern(r"known here: (.+)");
    let mut keys = BTreeSet::new();
    for table in &tables {
        let text = match table.as_str() {
            "" => "name = \"p\"\nqqqqqqqqqq = 1\n".to_owned(),
            table => format!("name = \"p\"\n[{table}]\nqqqqqqqqqq = 1\n"),
        };
        let error = Config::parse(&text, "probe").expect_err("no such key").to_string();
        let known = known_here.captures(&error).unwrap_or_else(|| panic!("no list of keys in: {error}"));
        for key in known[1].split(", ") {
            let dotted = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
            if !(table.is_empty() && nested.iter().any(|t| t == key)) {
                keys.insert(dotted);
            }
        }
    }
    keys
}

#[test]
fn the_configuration_page_has_every_key_and_no_other() {
    let (documented, known) = (documented(), known_keys());
    assert!(known.contains("ci.command") && known.contains("timing.ci_timeout"), "{known:?}");
    let mut found: Vec<String> =
        known.iter().filter(|k| !documented.contains_key(*k)).map(|k| format!("missing: {k}")).collect();
    found.extend(documented.keys().filter(|k| !known.contains(*k)).map(|k| format!("there is no {k}")));
    nothing_found("docs/configuration.md has every key", &found);
}

#[test]
fn the_configuration_page_has_the_true_defaults() {
    let documented = documented();
    let found: Vec<String> = Config::default()
        .entries()
        .into_iter()
        .filter(|(key, _)| key != "name")
        .filter(|(key, value)| documented.get(key) != Some(value))
        .map(|(key, value)| format!("{key} is {value}, not {:?}", documented.get(&key)))
        .collect();
    nothing_found("docs/configuration.md has the true defaults", &found);
}

#[test]
fn every_state_and_phase_is_explained() {
    let (commands, protocol) = (paper("docs/commands.md"), paper("docs/protocol.md"));
    for state in State::ALL {
        assert!(commands.contains(&format!("| `{state}` |")), "docs/commands.md does not explain {state}");
    }
    for phase in Phase::ALL {
        assert!(protocol.contains(&format!("`PHASE:{phase}`")), "docs/protocol.md does not explain {phase}");
    }
}

#[test]
fn the_changelog_is_kept() {
    assert!(paper("CHANGELOG.md").contains("## [Unreleased]"));
}
