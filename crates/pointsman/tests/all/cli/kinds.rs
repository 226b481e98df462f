//! `init` in repositories of every kind: real ones, made here, with the command that it writes for each.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::environment::Environment;

/// A kind of repository: its name, its files with their texts (an executable one ends in `*`), and the words of its CI.
type Kind = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const SCRIPTS: &str =
    r#"{"name": "shop", "scripts": {"test": "vitest run"}, "devDependencies": {"vitest": "1"}}"#;
const NO_SCRIPT: &str =
    r#"{"name": "shop", "scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
const BARE_PYTEST: &str = "from shop import total\n\n\ndef test_total():\n    assert total([]) == 0\n";
const UNITTEST: &str = "import unittest\n\n\nclass Total(unittest.TestCase):\n    pass\n";
const PYPROJECT: &str = "[project]\nname = \"shop\"\n\n[dependency-groups]\ndev = [\"pytest\"]\n";
const MAKEFILE: &str = ".PHONY: test\nall:\n\tcc shop.c\n\ntest: all\n\t./run-tests\n";

const KINDS: [Kind; 36] = [
    ("cargo", &[("Cargo.toml", "[package]\nname = \"shop\"\n"), ("src/lib.rs", "")], &["cargo", "test"]),
    (
        "cargo-workspace",
        &[("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n"), ("a/Cargo.toml", "")],
        &["cargo", "test"],
    ),
    ("npm", &[("package.json", SCRIPTS), ("package-lock.json", "{}")], &["sh", "-c", "npm ci && npm test"]),
    ("npm-unlocked", &[("package.json", SCRIPTS)], &["sh", "-c", "npm install && npm test"]),
    ("npm-without-tests", &[("package.json", NO_SCRIPT)], &[]),
    (
        "pnpm",
        &[("package.json", SCRIPTS), ("pnpm-lock.yaml", "")],
        &["sh", "-c", "pnpm install --frozen-lockfile && pnpm test"],
    ),
    (
        "yarn",
        &[("package.json", SCRIPTS), ("yarn.lock", "")],
        &["sh", "-c", "yarn install --frozen-lockfile && yarn test"],
    ),
    (
        "yarn-berry",
        &[("package.json", SCRIPTS), ("yarn.lock", ""), (".yarnrc.yml", "")],
        &["sh", "-c", "yarn install --immutable && yarn test"],
    ),
    ("bun", &[("package.json", "{}"), ("bun.lock", ""), ("cart.test.ts", "")], &["bun", "test"]),
    (
        "pytest",
        &[("pyproject.toml", PYPROJECT), ("tests/test_total.py", BARE_PYTEST)],
        &["python3", "-m", "pytest"],
    ),
    ("pytest-bare", &[("shop.py", ""), ("test_shop.py", BARE_PYTEST)], &["python3", "-m", "pytest"]),
    (
        "unittest",
        &[("tests/__init__.py", ""), ("tests/test_total.py", UNITTEST)],
        &["python3", "-m", "unittest", "discover"],
    ),
    (
        "unittest-directory",
        &[("tests/test_total.py", UNITTEST)],
        &["python3", "-m", "unittest", "discover", "-s", "tests"],
    ),
    ("python-without-tests", &[("setup.py", "from setuptools import setup\n"), ("shop/cart.py", "")], &[]),
    ("tox", &[("tox.ini", "[tox]\nenvlist = py3\n"), ("setup.cfg", "")], &["tox"]),
    ("nox", &[("noxfile.py", "import nox\n")], &["nox"]),
    ("uv", &[("pyproject.toml", PYPROJECT), ("uv.lock", "")], &["uv", "run", "python", "-m", "pytest"]),
    (
        "poetry",
        &[("pyproject.toml", "[tool.poetry.group.dev.dependencies]\npytest = \"8\"\n"), ("poetry.lock", "")],
        &["sh", "-c", "poetry install && poetry run python -m pytest"],
    ),
    ("go", &[("go.mod", "module shop\n"), ("main.go", "package main\n")], &["go", "test", "./..."]),
    ("make", &[("Makefile", MAKEFILE), ("shop.c", "")], &["make", "test"]),
    ("make-check", &[("GNUmakefile", "check:\n\t./t\n")], &["make", "check"]),
    ("just", &[("justfile", "test *args:\n    cargo test {{args}}\n")], &["just", "test"]),
    ("gradle", &[("build.gradle.kts", ""), ("gradlew*", "#!/bin/sh\n")], &["./gradlew", "test"]),
    ("maven", &[("pom.xml", "<project/>\n")], &["mvn", "--batch-mode", "verify"]),
    ("dotnet", &[("Shop.sln", ""), ("src/Shop.csproj", "")], &["dotnet", "test"]),
    ("mix", &[("mix.exs", ""), ("test/shop_test.exs", "")], &["sh", "-c", "mix deps.get && mix test"]),
    ("rake", &[("Rakefile", "require \"rake/testtask\"\nRake::TestTask.new\n")], &["rake", "test"]),
    ("rspec", &[(".rspec", ""), ("Gemfile", "")], &["sh", "-c", "bundle install && bundle exec rspec"]),
    (
        "composer",
        &[("composer.json", r#"{"scripts": {"test": "phpunit"}}"#)],
        &["sh", "-c", "composer install --no-interaction && composer test"],
    ),
    ("bazel", &[("MODULE.bazel", "module(name = \"shop\")\n")], &["bazel", "test", "//..."]),
    ("own-script", &[("ci.sh*", "#!/bin/sh\ntrue\n")], &["./ci.sh"]),
    ("script-not-executable", &[("ci.sh", "true\n")], &["sh", "./ci.sh"]),
    (
        "two-languages",
        &[("Cargo.toml", "[package]\n"), ("package.json", SCRIPTS), ("package-lock.json", "{}")],
        &["sh", "-c", "cargo test && npm ci && npm test"],
    ),
    ("make-over-cargo", &[("Cargo.toml", "[package]\n"), ("Makefile", MAKEFILE)], &["make", "test"]),
    (
        "one-directory-down",
        &[("api/go.mod", "module api\n"), ("web/Cargo.toml", "[package]\n"), ("docs/x.md", "")],
        &["sh", "-c", "(cd api && go test ./...) && (cd web && cargo test)"],
    ),
    ("prose", &[("README.md", "# Notes\n"), ("notes/monday.md", "")], &[]),
];

/// Makes the repository, with one commit.
fn make(environment: &Environment, (name, files, _): &Kind) {
    let dir = environment.path(name);
    fs::create_dir(&dir).unwrap();
    for (path, text) in *files {
        let (path, mode) = match path.strip_suffix('*') {
            Some(path) => (path, 0o755),
            None => (*path, 0o644),
        };
        let file = dir.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    }
    let there = format!("../{name}");
    environment.git(&["init", "-q", "-b", "main", &there]);
    environment.git(&["-C", &there, "add", "-A"]);
    environment.git(&["-C", &there, "commit", "-q", "-m", "A shop"]);
}

#[test]
fn init_finds_how_each_of_36_kinds_of_repositories_is_tested() {
    const OFF: &str = "CI is off: nothing tests a change before it lands.";
    let environment = Environment::empty();
    for kind in &KINDS {
        let (name, _, words) = kind;
        make(&environment, kind);
        let there = format!("../{name}");
        let answer = environment.run(&["-C", &there, "init", "--yes", "--json"]);
        let value: Value = serde_json::from_str(&answer.ok().stdout).unwrap();
        assert_eq!(value["name"], *name);
        let expected = if words.is_empty() { Value::Null } else { json!(words) };
        assert_eq!(value["ci"], expected, "{name}: {answer:#?}");
        // What was found is shown with the file that says so, or that nothing was found cannot be missed.
        answer.says(if words.is_empty() { OFF } else { "Tests: " });
        let config = fs::read_to_string(environment.path(name).join("pointsman.toml")).unwrap();
        let of_ci = config.split("[ci]").nth(1).unwrap();
        let kind = if words.is_empty() { "kind = \"none\"" } else { "kind = \"command\"" };
        assert!(of_ci.lines().any(|line| line.starts_with(kind)), "{name}: {config}");
        let main = environment.git(&["ls-remote", value["url"].as_str().unwrap(), "refs/heads/main"]);
        assert_eq!(
            main.split('\t').next().unwrap(),
            environment.git(&["-C", &there, "rev-parse", "HEAD"]),
            "{name}"
        );
    }
    assert_eq!(
        environment.json(&["-C", "../cargo", "project", "list"]).as_array().unwrap().len(),
        KINDS.len()
    );
}
