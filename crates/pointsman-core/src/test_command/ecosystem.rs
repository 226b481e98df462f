//! The rules of each language and build tool: the file that shows it is used, and the command that tests it from a clean
//! checkout.

use serde_json::Value;

use super::{Project, TestCommand, name};

/// Between two commands of which the second runs only if the first passed.
const THEN: &str = " && ";
const UNITTEST: &str = "-m unittest discover";

/// The commands of every ecosystem that is found, one each.
pub(super) fn all(project: &Project<'_>) -> Vec<TestCommand> {
    let rules: [fn(&Project<'_>) -> Option<TestCommand>; 11] =
        [rust, javascript, python, go, gradle, maven, dotnet, elixir, ruby, php, bazel];
    rules.iter().filter_map(|rule| rule(project)).collect()
}

fn found(line: impl Into<String>, because: impl Into<String>) -> Option<TestCommand> {
    Some(TestCommand { line: line.into(), because: because.into() })
}

fn rust(project: &Project<'_>) -> Option<TestCommand> {
    project.has("Cargo.toml").then(|| found("cargo test", "Cargo.toml"))?
}

fn go(project: &Project<'_>) -> Option<TestCommand> {
    let file = project.first(&["go.work", "go.mod"])?;
    // A workspace alone has no package at its top.
    let line = if project.has("go.mod") { "go test ./..." } else { "go test work" };
    found(line, file)
}

/// The package manager whose lock file is committed, with its way to install exactly what that says.
fn javascript(project: &Project<'_>) -> Option<TestCommand> {
    let package: Value = serde_json::from_str(project.text("package.json")?).ok()?;
    let script = package["scripts"]["test"].as_str().map(str::trim);
    // `npm init` writes a script that only fails.
    let script = script.filter(|script| !script.is_empty() && !script.contains("no test specified"));
    let bun = project.has("bun.lock") || project.has("bun.lockb");
    if script.is_none() && !(bun && project.paths().any(is_javascript_test)) {
        return None;
    }
    let named = package["packageManager"].as_str().unwrap_or("");
    let manager = [("pnpm", "pnpm-lock.yaml"), ("yarn", "yarn.lock")]
        .into_iter()
        .find(|(manager, lock)| named.starts_with(&format!("{manager}@")) || project.has(lock))
        .map_or(if bun || named.starts_with("bun@") { "bun" } else { "npm" }, |(manager, _)| manager);
    let (install, test) = match manager {
        "pnpm" => ("pnpm install --frozen-lockfile", "pnpm test"),
        // Yarn 2 and later have a file of their own, and another word for the same thing.
        "yarn" if project.has(".yarnrc.yml") => ("yarn install --immutable", "yarn test"),
        "yarn" => ("yarn install --frozen-lockfile", "yarn test"),
        "bun" if script.is_none() => ("bun install --frozen-lockfile", "bun test"),
        "bun" => ("bun install --frozen-lockfile", "bun run test"),
        _ if project.has("package-lock.json") || project.has("npm-shrinkwrap.json") => ("npm ci", "npm test"),
        _ => ("npm install", "npm test"),
    };
    let needs = ["dependencies", "devDependencies", "workspaces", "optionalDependencies"];
    let empty = |value: &Value| value.as_object().is_some_and(|map| map.is_empty()) || *value == Value::Null;
    match needs.iter().all(|key| empty(&package[key])) {
        true => found(test, "package.json"),
        false => found(format!("{install} && {test}"), "package.json"),
    }
}

fn is_javascript_test(path: &str) -> bool {
    let name = name(path);
    [".test.", ".spec.", "_test.", "_spec."].iter().any(|mark| name.contains(mark))
        && [".js", ".ts", ".jsx", ".tsx", ".mjs"].iter().any(|end| name.ends_with(end))
}

/// Whether a path looks like a file of tests in Python, near enough to the top for a project's own.
pub(super) fn is_python_test(path: &str) -> bool {
    let name = name(path);
    path.matches('/').count() < 4
        && name.ends_with(".py")
        && (name.starts_with("test_") || name.ends_with("_test.py"))
}

fn python(project: &Project<'_>) -> Option<TestCommand> {
    let runner = if project.has("uv.lock") {
        "uv run ".to_owned()
    } else if project.has("poetry.lock") {
        ["poetry install", "poetry run "].join(THEN)
    } else {
        String::new()
    };
    if project.has("tox.ini") && project.text("tox.ini").is_some_and(|text| text.contains("[tox]"))
        || project.text("pyproject.toml").is_some_and(|text| text.contains("[tool.tox"))
        || project.has("tox.toml")
    {
        let file = project.first(&["tox.ini", "tox.toml", "pyproject.toml"])?;
        let line = if runner == "uv run " { "uv run tox" } else { "tox" };
        return found(line, file);
    }
    if project.has("noxfile.py") {
        let line = if runner == "uv run " { "uv run nox" } else { "nox" };
        return found(line, "noxfile.py");
    }
    let interpreter = if runner.is_empty() { "python3" } else { "python" };
    if let Some(file) = pytest_is_set_up(project) {
        return found(format!("{runner}{interpreter} -m pytest"), file);
    }
    let tests: Vec<&str> = project.paths().filter(|path| is_python_test(path)).collect();
    let first = tests.first()?;
    let text_of = |path: &&str| project.text(path);
    if tests.iter().filter_map(text_of).any(|text| text.contains("unittest")) {
        return found(format!("{runner}{interpreter} {UNITTEST}{}", from(project, &tests)), *first);
    }
    // Tests that are bare functions: only pytest finds those.
    let bare = tests.iter().filter_map(text_of).any(|text| text.contains("def test_"));
    bare.then(|| found(format!("{runner}{interpreter} -m pytest"), *first))?
}

/// The directory that unittest has to start from. It does not look into directories that are no packages.
fn from(project: &Project<'_>, tests: &[&str]) -> String {
    let dir = |path: &str| path.split_once('/').map(|(dir, _)| dir.to_owned());
    let Some(dir) = tests.first().and_then(|path| dir(path)) else { return String::new() };
    let all_below = tests.iter().all(|path| path.starts_with(&format!("{dir}/")));
    let plain = dir.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    match all_below && plain && !dir.starts_with('-') && !project.has(&format!("{dir}/__init__.py")) {
        true => format!(" -s {dir}"),
        false => String::new(),
    }
}

/// The file that says that pytest is used.
fn pytest_is_set_up(project: &Project<'_>) -> Option<&'static str> {
    if let Some(file) = project.first(&["pytest.ini", ".pytest.ini", "conftest.py"]) {
        return Some(file);
    }
    if project.has("tests/conftest.py") {
        return Some("tests/conftest.py");
    }
    let sections = [("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]"), ("setup.py", "pytest")];
    let requirements = [
        "pyproject.toml",
        "requirements.txt",
        "requirements-dev.txt",
        "requirements-test.txt",
        "dev-requirements.txt",
        "test-requirements.txt",
        "Pipfile",
    ];
    let all = sections.into_iter().chain(requirements.map(|file| (file, "pytest")));
    all.into_iter()
        .find(|(file, mark)| project.text(file).is_some_and(|text| text.contains(mark)))
        .map(|(file, _)| file)
}

/// The wrapper of the project's own, if it is one that can be run.
fn wrapper(project: &Project<'_>, script: &str, installed: &str) -> String {
    match project.file(script) {
        Some(file) if file.executable => format!("./{script}"),
        Some(_) => format!("sh ./{script}"),
        None => installed.to_owned(),
    }
}

fn gradle(project: &Project<'_>) -> Option<TestCommand> {
    let names = ["settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts"];
    let file = project.first(&names)?;
    found(format!("{} test", wrapper(project, "gradlew", "gradle")), file)
}

fn maven(project: &Project<'_>) -> Option<TestCommand> {
    let file = project.first(&["pom.xml"])?;
    found(format!("{} --batch-mode verify", wrapper(project, "mvnw", "mvn")), file)
}

fn dotnet(project: &Project<'_>) -> Option<TestCommand> {
    let ends = |path: &&str, ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    let here: Vec<&str> = project.paths().filter(|path| !path.contains('/')).collect();
    let solution = here.iter().copied().find(|path| ends(path, &[".sln", ".slnx"]));
    let file = solution
        .or_else(|| here.iter().copied().find(|path| ends(path, &[".csproj", ".fsproj", ".vbproj"])))?;
    found("dotnet test", file)
}

fn elixir(project: &Project<'_>) -> Option<TestCommand> {
    project.has("mix.exs").then(|| found(["mix deps.get", "mix test"].join(THEN), "mix.exs"))?
}

fn ruby(project: &Project<'_>) -> Option<TestCommand> {
    let bundled = project.has("Gemfile");
    let through = if bundled { ["bundle install", "bundle exec "].join(THEN) } else { String::new() };
    if project.has(".rspec") || project.has("spec/spec_helper.rb") {
        let file = project.first(&[".rspec", "spec/spec_helper.rb"])?;
        return found(format!("{through}rspec"), file);
    }
    let file = project.first(&["Rakefile", "rakefile", "Rakefile.rb"])?;
    let text = project.text(file).unwrap_or("");
    if ["task :default", "task default", "task \"default"].iter().any(|task| text.contains(task)) {
        return found(format!("{through}rake"), file);
    }
    let tests = ["TestTask", "task :test", "task test", "task \"test"];
    tests.iter().any(|task| text.contains(task)).then(|| found(format!("{through}rake test"), file))?
}

fn php(project: &Project<'_>) -> Option<TestCommand> {
    let composer: Value = serde_json::from_str(project.text("composer.json")?).ok()?;
    let install = "composer install --no-interaction";
    if !composer["scripts"]["test"].is_null() {
        return found(format!("{install} && composer test"), "composer.json");
    }
    let needs = composer["require-dev"].as_object();
    let tool = ["pestphp/pest", "phpunit/phpunit"]
        .into_iter()
        .find(|tool| needs.is_some_and(|needs| needs.contains_key(*tool)))?;
    let program = if tool == "pestphp/pest" { "pest" } else { "phpunit" };
    found(format!("{install} && vendor/bin/{program}"), "composer.json")
}

fn bazel(project: &Project<'_>) -> Option<TestCommand> {
    let file = project.first(&["MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel"])?;
    // A file called WORKSPACE may be about anything; packages of Bazel have files of another name.
    let packages = project.paths().any(|path| matches!(name(path), "BUILD" | "BUILD.bazel"));
    (packages || file != "WORKSPACE").then(|| found("bazel test //...", file))?
}
