//! The page that lists the rules, the code that has them, and the tests that guard them name the same ones.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(dir: &Path, found: &mut String) {
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => read(&entry, found),
            false => found.push_str(&fs::read_to_string(&entry).unwrap()),
        }
    }
}

#[test]
fn every_rule_of_a_fake_is_listed_and_guarded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut code, mut tests) = (String::new(), String::new());
    read(&root.join("src"), &mut code);
    read(&root.join("tests/all/fakes"), &mut tests);
    let named = code.match_indices("broken(\"").map(|(at, start)| {
        let rest = &code[at + start.len()..];
        rest[..rest.find('"').unwrap()].to_owned()
    });
    let in_code: BTreeSet<String> = named.collect();
    let page = fs::read_to_string(root.join("../../docs/fakes.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: BTreeSet<String> = rows.map(|row| row.split('`').next().unwrap().to_owned()).collect();
    assert_eq!(in_code, listed, "docs/fakes.md lists the rules that `broken` can switch off");
    for rule in &listed {
        let test = format!("fn {}()", rule.replace('-', "_"));
        assert!(tests.contains(&test), "no test is called {test}");
    }
}
