//! `init`: looks at everything first, writes nothing on failure.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, OUTSIDER, REPO, REVIEWER, Rules};

use super::environment::{Answer, Environment, finish, names};

/// Nothing was written: neither to the checkout nor to the state directory.
#[track_caller]
fn untouched(environment: &Environment) {
    assert!(!environment.shop().join("pointsman.toml").exists());
    assert!(!environment.path("state").exists(), "{:?}", names(&environment.path("state")));
}

#[test]
fn a_repository_becomes_a_project() {
    let environment = Environment::with_repository();
    let value = environment.json(&["init", "--yes"]);
    assert_eq!((&value["name"], &value["primary_branch"]), (&"shop".into(), &"main".into()));
    let url = environment.run(&["forge", "url"]).ok().stdout.trim().to_owned();
    assert_eq!(environment.git(&["remote", "get-url", "pointsman"]), url);
    assert_eq!(
        environment.git(&["ls-remote", "pointsman", "refs/heads/main"]).split('\t').next().unwrap(),
        environment.git(&["rev-parse", "HEAD"])
    );
    let exclude = fs::read_to_string(environment.shop().join(".git/info/exclude")).unwrap();
    assert!(exclude.lines().any(|line| line == ".claude/state/"), "{exclude}");
    let projects = environment.json(&["project", "list"]);
    assert_eq!(projects[0]["name"], "shop");
    assert!(projects[0]["problem"].is_null(), "{projects}");
    environment.run(&["init"]).code(3).says("exists already");
}

#[test]
fn without_a_repository_or_a_commit_nothing_is_written() {
    let environment = Environment::empty();
    environment.run(&["init", "--yes"]).code(4).says("not in a git repository").says("hint: git init");
    untouched(&environment);
    environment.git(&["init", "-q", "-b", "main", "."]);
    environment.run(&["init", "--yes"]).code(3).says("no commit").says("hint:");
    untouched(&environment);
}

#[test]
fn a_bare_repository_a_bad_name_and_a_missing_branch_are_refused() {
    let environment = Environment::with_repository();
    environment.git(&["clone", "-q", "--bare", ".", "../bare"]);
    environment.run(&["-C", "../bare", "init", "--yes"]).code(3).says("bare repository");
    environment.run(&["init", "--yes", "--name", "Not Good"]).code(2).says("not a project name");
    environment.run(&["init", "--yes", "--branch", "nowhere"]).code(4).says("nowhere");
    environment.run(&["init", "--yes", "--branch", "--upload-pack=x"]).code(2);
    untouched(&environment);
}

#[test]
fn a_dirty_tree_is_fine_and_is_said() {
    let environment = Environment::with_repository();
    environment.write("README", "changed\n");
    environment.write("new", "");
    environment.run(&["init", "--yes"]).ok().says("2 files are not committed");
    assert_eq!(fs::read_to_string(environment.shop().join("README")).unwrap(), "changed\n");
}

#[test]
fn a_remote_of_that_name_that_is_something_else_is_left_alone() {
    let environment = Environment::with_repository();
    environment.git(&["remote", "add", "pointsman", "https://example.org/x"]);
    environment.run(&["init", "--yes"]).code(3).says("https://example.org/x").says("git remote rename");
    untouched(&environment);
}

#[test]
fn a_name_that_another_checkout_has_is_refused() {
    let environment = Environment::with_project();
    environment.git(&["clone", "-q", ".", "../second"]);
    environment
        .run(&["-C", "../second", "init", "--yes", "--name", "shop"])
        .code(3)
        .says("--name other-name");
    assert!(!environment.path("second/pointsman.toml").exists());
    environment.run(&["-C", "../second", "init", "--yes"]).ok();
    environment.run(&["-C", "/", "task", "list"]).code(4).says("second, shop").says("--project");
    environment.run(&["-C", "/", "--project", "second", "task", "list"]).ok();
}

#[test]
fn the_name_comes_from_the_directory_and_the_test_from_what_is_committed() {
    let environment = Environment::with_repository();
    let plan = |prepare: &dyn Fn(), words: &[&str]| {
        prepare();
        environment.commit();
        environment.git(&["clone", "-q", ".", "../My Shop!"]);
        let value = environment.json(&["-C", "../My Shop!", "init", "--yes"]);
        assert_eq!(value["name"], "my-shop");
        assert_eq!(value["ci"], serde_json::json!(words));
        fs::remove_dir_all(environment.path("My Shop!")).unwrap();
        fs::remove_dir_all(environment.path("state")).unwrap();
    };
    plan(&|| environment.write("Makefile", "test:\n\ttrue\n"), &["make", "test"]);
    plan(&|| environment.write("Cargo.toml", ""), &["cargo", "test"]);
    plan(&|| environment.write("ci.sh", ""), &["sh", "./ci.sh"]);
    let executable = || {
        fs::set_permissions(environment.shop().join("ci.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    };
    plan(&executable, &["./ci.sh"]);
}

#[test]
fn the_ci_command_can_be_given() {
    let environment = Environment::with_repository();
    let value = environment.json(&["init", "--ci", "cargo", "test", "--yes"]);
    assert_eq!(value["ci"], serde_json::json!(["cargo", "test"]));
    fs::remove_file(environment.shop().join("pointsman.toml")).unwrap();
    let value = environment.json(&["init", "--yes", "--ci", "make test -j2"]);
    assert_eq!(value["ci"], serde_json::json!(["sh", "-c", "make test -j2"]));
}

/// `init` in a checkout whose `origin` is this server's repository.
fn on_server(environment: &Environment, fake: &FakeForgejo, arguments: &[&str]) -> Answer {
    let mut command = environment.command(arguments);
    command.env("CODEBERG_TOKEN", fake.token(DEV)).env("REVIEW_BOT_TOKEN", fake.token(REVIEWER));
    finish(command, b"")
}

#[test]
fn a_project_on_a_server_is_found_by_its_remote_checked_and_gets_its_labels() {
    let (environment, fake) = (Environment::with_repository(), FakeForgejo::start(Rules::default()));
    environment.git(&["remote", "add", "origin", &format!("{}/{REPO}.git", fake.url())]);
    on_server(&environment, &fake, &["init", "--yes", "--forge"]).code(3).says("--forge forgejo");
    untouched(&environment);
    let answer = on_server(&environment, &fake, &["init", "--yes", "--forge", "forgejo", "--labels"]);
    answer.ok().says("ok       issues can be read").says("the reviewer has an account of its own");
    let config = fs::read_to_string(environment.shop().join("pointsman.toml")).unwrap();
    assert!(config.contains("kind = \"forgejo\"") && config.contains(REPO), "{config}");
    assert!(!config.contains(&fake.token(DEV)));
    assert!(fake.labels().contains(&"prediction/unreviewed".to_owned()), "{:?}", fake.labels());
    assert_eq!(environment.git(&["remote"]), "origin");
}

#[test]
fn a_main_branch_that_nobody_may_push_to_is_named_and_nothing_is_written() {
    let rules = Rules { protected_main: true, ..Rules::default() };
    let (environment, fake) = (Environment::with_repository(), FakeForgejo::start(rules));
    environment.git(&["remote", "add", "origin", &format!("{}/{REPO}.git", fake.url())]);
    let answer = on_server(&environment, &fake, &["init", "--yes", "--forge", "forgejo"]);
    answer.code(3).says("`main` is protected and `dev-bot` may not push to it");
    untouched(&environment);
}

#[test]
fn what_a_token_lacks_is_named_and_nothing_is_written() {
    let (environment, fake) = (Environment::with_repository(), FakeForgejo::start(Rules::default()));
    environment.git(&["remote", "add", "origin", &format!("{}/{REPO}.git", fake.url())]);
    let arguments = ["init", "--yes", "--forge", "forgejo"];
    environment.run(&arguments).code(6).says("CODEBERG_TOKEN");
    let with = |token: &str| {
        let mut command = environment.command(&arguments);
        finish(
            {
                command.env("CODEBERG_TOKEN", token);
                command
            },
            b"",
        )
    };
    with("wrong").code(7).says("MISSING  the token is accepted");
    with(&fake.token(OUTSIDER)).code(3).says("MISSING  work can be done in it").says("may not push");
    untouched(&environment);
}

#[test]
fn a_known_server_is_mentioned_and_not_used_unasked() {
    let environment = Environment::with_repository();
    environment.git(&["remote", "add", "origin", "git@github.com:ann/shop.git"]);
    environment.run(&["init", "--yes"]).ok().says("pointsman init --forge github");
    assert!(environment.git(&["remote"]).contains("pointsman"));
    let nowhere = Environment::with_repository();
    nowhere.run(&["init", "--yes", "--forge"]).code(3).says("origin");
    nowhere.run(&["init", "--yes", "--labels"]).code(2);
    untouched(&nowhere);
}
