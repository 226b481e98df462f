//! A table of repositories: their files, and the command that tests them.

use super::{CommittedFile, Detected, Tree, detect, wanted};

/// A commit with these files. A path that ends in `*` is an executable file.
fn tree(files: &[(&str, &str)]) -> Tree {
    let listed = files.iter().map(|(path, _)| CommittedFile {
        path: path.trim_end_matches('*').to_owned(),
        executable: path.ends_with('*'),
    });
    let listed: Vec<CommittedFile> = listed.collect();
    let read = wanted(&listed);
    let texts = files.iter().map(|(path, text)| (path.trim_end_matches('*').to_owned(), (*text).to_owned()));
    Tree { files: listed, texts: texts.filter(|(path, _)| read.contains(path)).collect() }
}

/// Files with their texts.
type Files<'a> = &'a [(&'a str, &'a str)];

fn of(files: &[(&str, &str)]) -> Detected {
    detect(&tree(files))
}

fn line(files: &[(&str, &str)]) -> String {
    of(files).argv().map_or_else(|| "nothing".to_owned(), |words| words.join(" "))
}

#[test]
fn every_kind_of_repository_is_tested_by_its_own_tool() {
    let test_script = r#"{"scripts": {"test": "vitest"}, "devDependencies": {"vitest": "1"}}"#;
    let cases: &[(&str, Files<'_>, &str)] = &[
        ("nothing", &[("README.md", "")], "nothing"),
        ("cargo", &[("Cargo.toml", "[package]")], "cargo test"),
        (
            "npm with a lock file",
            &[("package.json", test_script), ("package-lock.json", "{}")],
            "sh -c npm ci && npm test",
        ),
        ("npm without one", &[("package.json", test_script)], "sh -c npm install && npm test"),
        ("npm without needs", &[("package.json", r#"{"scripts": {"test": "node t.js"}}"#)], "npm test"),
        (
            "npm init",
            &[("package.json", r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#)],
            "nothing",
        ),
        ("npm with rubbish", &[("package.json", "{")], "nothing"),
        (
            "pnpm",
            &[("package.json", test_script), ("pnpm-lock.yaml", "")],
            "sh -c pnpm install --frozen-lockfile && pnpm test",
        ),
        (
            "pnpm by name",
            &[("package.json", r#"{"packageManager": "pnpm@9.1.0", "scripts": {"test": "x"}}"#)],
            "pnpm test",
        ),
        (
            "yarn 1",
            &[("package.json", test_script), ("yarn.lock", "")],
            "sh -c yarn install --frozen-lockfile && yarn test",
        ),
        (
            "yarn 4",
            &[("package.json", test_script), ("yarn.lock", ""), (".yarnrc.yml", "")],
            "sh -c yarn install --immutable && yarn test",
        ),
        (
            "bun",
            &[("package.json", test_script), ("bun.lock", "")],
            "sh -c bun install --frozen-lockfile && bun run test",
        ),
        ("bun's own tests", &[("package.json", "{}"), ("bun.lockb", ""), ("src/a.test.ts", "")], "bun test"),
        ("pytest.ini", &[("pytest.ini", ""), ("tests/test_a.py", "")], "python3 -m pytest"),
        ("pyproject", &[("pyproject.toml", "[tool.pytest.ini_options]\n")], "python3 -m pytest"),
        ("requirements", &[("requirements-dev.txt", "pytest==8\n")], "python3 -m pytest"),
        (
            "bare functions",
            &[("tests/test_cart.py", "from shop import cart\n\ndef test_empty():\n    assert not cart\n")],
            "python3 -m pytest",
        ),
        (
            "unittest in a package",
            &[("tests/__init__.py", ""), ("tests/test_a.py", "import unittest\n")],
            "python3 -m unittest discover",
        ),
        (
            "unittest in a directory",
            &[("tests/test_a.py", "import unittest\n")],
            "python3 -m unittest discover -s tests",
        ),
        (
            "unittest at the top",
            &[("test_a.py", "from unittest import TestCase")],
            "python3 -m unittest discover",
        ),
        ("Python without tests", &[("setup.py", ""), ("shop/cart.py", "")], "nothing"),
        ("tox", &[("tox.ini", "[tox]\nenvlist = py312\n"), ("tests/test_a.py", "import pytest")], "tox"),
        ("tox.ini of pytest alone", &[("tox.ini", "[pytest]\n")], "python3 -m pytest"),
        ("nox", &[("noxfile.py", ""), ("pyproject.toml", "pytest")], "nox"),
        ("uv", &[("uv.lock", ""), ("pyproject.toml", "dev = [\"pytest\"]")], "uv run python -m pytest"),
        (
            "poetry",
            &[("poetry.lock", ""), ("pyproject.toml", "pytest = \"8\"")],
            "sh -c poetry install && poetry run python -m pytest",
        ),
        ("go", &[("go.mod", "module shop")], "go test ./..."),
        ("go workspace", &[("go.work", "use ./a"), ("a/go.mod", "")], "go test work"),
        ("make", &[("Makefile", "all:\n\ntest: all\n\t./t\n")], "make test"),
        ("make check", &[("Makefile", ".PHONY: check\ncheck lint:\n\t./t\n")], "make check"),
        ("make without a test", &[("Makefile", "tests:\n\t./t\ntest := 1\n#test:\n")], "nothing"),
        ("just", &[("justfile", "build:\n  x\n\n@test *args: build\n  y\n")], "just test"),
        ("just ci", &[("justfile", "test:\n  x\nci: test\n")], "just ci"),
        ("just that needs a word", &[("justfile", "test name:\n  x\nset shell := [\"sh\"]\n")], "nothing"),
        ("gradle", &[("build.gradle", "")], "gradle test"),
        ("gradle wrapper", &[("build.gradle.kts", ""), ("gradlew*", "")], "./gradlew test"),
        ("gradle wrapper without its bit", &[("build.gradle", ""), ("gradlew", "")], "sh ./gradlew test"),
        ("maven", &[("pom.xml", "")], "mvn --batch-mode verify"),
        ("maven wrapper", &[("pom.xml", ""), ("mvnw*", "")], "./mvnw --batch-mode verify"),
        ("dotnet solution", &[("Shop.sln", ""), ("src/Shop.csproj", "")], "dotnet test"),
        ("dotnet project", &[("Shop.fsproj", "")], "dotnet test"),
        ("mix", &[("mix.exs", "")], "sh -c mix deps.get && mix test"),
        ("rake", &[("Rakefile", "Rake::TestTask.new\n")], "rake test"),
        (
            "rake with bundler",
            &[("Rakefile", "task :default => :spec\n"), ("Gemfile", "")],
            "sh -c bundle install && bundle exec rake",
        ),
        (
            "rspec",
            &[(".rspec", ""), ("Gemfile", ""), ("Rakefile", "")],
            "sh -c bundle install && bundle exec rspec",
        ),
        ("rake without tests", &[("Rakefile", "task :deploy\n")], "nothing"),
        (
            "composer",
            &[("composer.json", r#"{"scripts": {"test": "phpunit"}}"#)],
            "sh -c composer install --no-interaction && composer test",
        ),
        (
            "phpunit",
            &[("composer.json", r#"{"require-dev": {"phpunit/phpunit": "^11"}}"#)],
            "sh -c composer install --no-interaction && vendor/bin/phpunit",
        ),
        ("bazel", &[("MODULE.bazel", ""), ("BUILD", "")], "bazel test //..."),
        ("a WORKSPACE that is none of Bazel's", &[("WORKSPACE", "a map of our office")], "nothing"),
        ("script", &[("ci.sh", "")], "sh ./ci.sh"),
        ("executable script", &[("ci.sh*", "")], "./ci.sh"),
        ("script in a directory", &[(".ci/run*", "")], "./.ci/run"),
    ];
    for (what, files, expected) in cases {
        assert_eq!(line(files), *expected, "{what}");
    }
}

#[test]
fn several_at_once_are_tested_one_after_the_other() {
    let package = r#"{"scripts": {"test": "node t.js"}}"#;
    let detected = of(&[("Cargo.toml", ""), ("package.json", package), ("go.mod", "")]);
    assert_eq!(detected.argv().unwrap(), ["sh", "-c", "cargo test && npm test && go test ./..."]);
    let because: Vec<&str> = detected.used.iter().map(|command| command.because.as_str()).collect();
    assert_eq!(because, ["Cargo.toml", "package.json", "go.mod"]);
}

#[test]
fn the_projects_own_target_covers_what_else_is_found() {
    let detected = of(&[("Cargo.toml", ""), ("Makefile", "test:\n\tcargo test\n")]);
    assert_eq!(detected.argv().unwrap(), ["make", "test"]);
    assert_eq!(detected.covered.iter().map(|command| &command.line).collect::<Vec<_>>(), ["cargo test"]);
}

#[test]
fn projects_one_directory_down_are_found_if_the_top_has_none() {
    let package = r#"{"scripts": {"test": "node t.js"}}"#;
    let files =
        [("api/go.mod", ""), ("web/package.json", package), ("docs/x.md", ""), ("$(id)/Cargo.toml", "")];
    let detected = of(&files);
    let expected = "(cd api && go test ./...) && (cd web && npm test)";
    assert_eq!(detected.argv().unwrap(), ["sh", "-c", expected]);
    assert_eq!(detected.used[1].because, "web/package.json");
    assert_eq!(line(&[("Cargo.toml", ""), ("web/package.json", package)]), "cargo test");
    assert_eq!(line(&[("api/Makefile", "test:\n\tx\n"), ("api/go.mod", "")]), "sh -c (cd api && make test)");
}

#[test]
fn a_forge_that_tests_by_itself_is_noticed() {
    let ci = |path: &str| of(&[(path, ""), ("Cargo.toml", "")]).forge_ci;
    for path in
        [".github/workflows/ci.yml", ".forgejo/workflows/a.yaml", ".woodpecker.yml", ".woodpecker/x.yml"]
    {
        assert_eq!(ci(path).as_deref(), Some(path));
    }
    for path in [".github/dependabot.yml", ".github/workflows/README.md", "docs/.github/workflows/x.yml"] {
        assert_eq!(ci(path), None, "{path}");
    }
}

#[test]
fn only_files_that_decide_are_read() {
    let files: Vec<CommittedFile> = (0..50)
        .map(|n| format!("tests/test_{n}.py"))
        .chain(["a/b/package.json", "src/main.rs", "web/package.json", "Cargo.toml"].map(str::to_owned))
        .map(|path| CommittedFile { path, executable: false })
        .collect();
    let read = wanted(&files);
    assert_eq!(read.len(), 21);
    assert!(read.contains(&"web/package.json".to_owned()) && !read.contains(&"a/b/package.json".to_owned()));
}
