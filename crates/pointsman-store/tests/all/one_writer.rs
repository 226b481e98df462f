//! One function writes, and every text of SQL has its parameters in order.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn sources(directory: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(directory);
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap()
}

#[test]
fn commit_is_the_only_function_of_the_store_that_writes() {
    for (path, text) in sources("store") {
        let file = name(&path);
        for function in text.split("pub fn ").skip(1) {
            let signature = function.split(')').next().unwrap();
            let allowed = file == "commit.rs" && signature.starts_with("commit(");
            assert!(allowed || !signature.contains("&mut self"), "{file}: pub fn {signature})");
        }
        let writes = [".execute(", ".execute_batch(", "transaction_with_behavior", ".transaction("];
        if !["commit.rs", "plans.rs"].contains(&file) {
            for write in writes {
                assert!(!text.contains(write), "{file} has `{write}`");
            }
        }
    }
}

/// `$2` before `$1` would be bound the wrong way round by SQLite, without an error.
#[test]
fn parameters_stand_in_the_order_of_their_first_use() {
    let mut seen = 0;
    for (path, text) in sources("store").into_iter().chain(sources("forge")) {
        for literal in text.split('"').skip(1).step_by(2).filter(|literal| literal.contains("$1")) {
            let mut known = BTreeSet::new();
            for rest in literal.split('$').skip(1) {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                let Ok(number) = digits.parse::<usize>() else { continue };
                assert!(number <= known.len() + 1, "{}: ${number} in {literal}", name(&path));
                known.insert(number);
            }
            seen += 1;
        }
    }
    assert!(seen > 80, "only {seen} texts of SQL were found");
}
