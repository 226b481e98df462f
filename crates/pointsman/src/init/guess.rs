//! A guess at how a project is tested, by what lies at the top of its tree. Only what is committed counts: CI runs in
//! a clean checkout.

use pointsman_adapters::git::local_checkout::LocalCheckout;
use pointsman_adapters::git::{BranchName, Error};

/// The command, or nothing if none comes to mind.
pub(super) fn ci(checkout: &LocalCheckout, branch: &BranchName) -> Result<Option<Vec<String>>, Error> {
    let files = checkout.top_level(branch)?;
    let find = |name: &str| files.iter().find(|file| file.name == name);
    let command = |words: &[&str]| Ok(Some(words.iter().map(|word| (*word).to_owned()).collect()));
    if let Some(script) = find("ci.sh") {
        return if script.executable { command(&["./ci.sh"]) } else { command(&["sh", "./ci.sh"]) };
    }
    if find("Cargo.toml").is_some() {
        return command(&["cargo", "test"]);
    }
    if find("package.json").is_some() && has_npm_test(&checkout.file(branch, "package.json")?) {
        return command(&["npm", "test"]);
    }
    if find("go.mod").is_some() {
        return command(&["go", "test", "./..."]);
    }
    for makefile in ["Makefile", "makefile", "GNUmakefile"] {
        if find(makefile).is_some() && has_make_test(&checkout.file(branch, makefile)?) {
            return command(&["make", "test"]);
        }
    }
    Ok(None)
}

/// What `npm init` writes as a test is no test.
fn has_npm_test(package: &str) -> bool {
    let package: serde_json::Value = serde_json::from_str(package).unwrap_or_default();
    package["scripts"]["test"].as_str().is_some_and(|script| !script.contains("no test specified"))
}

fn has_make_test(makefile: &str) -> bool {
    makefile.lines().any(|line| {
        line.strip_prefix("test")
            .is_some_and(|rest| rest.trim_start().starts_with(':') && !rest.trim_start().starts_with(":="))
    })
}

#[cfg(test)]
mod tests {
    use super::{has_make_test, has_npm_test};

    #[test]
    fn a_test_is_only_what_tests() {
        assert!(has_npm_test(r#"{"scripts": {"test": "jest"}}"#));
        assert!(!has_npm_test(r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#));
        assert!(!has_npm_test("{}"));
        assert!(!has_npm_test("rubbish"));
        assert!(has_make_test("all:\n\ntest: all\n\t./t"));
        assert!(!has_make_test("tests:\n\t./t\ntest := 1\n"));
    }
}
