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
    plan(&|| environment.write("Cargo.toml", ""), &["cargo", "test"]);
    plan(&|| environment.write("Makefile", "test:\n\ttrue\n"), &["make", "test"]);
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
    with("wrong").code(7).says("MISSING  the token is accepted").says("so nothing was written");
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

#[test]
fn the_detected_command_is_shown_with_its_reason() {
    let environment = Environment::with_repository();
    environment.write("Cargo.toml", "[package]\nname = \"shop\"\n");
    environment.write("package.json", r#"{"scripts": {"test": "node test.js"}}"#);
    environment.commit();
    let answer = environment.run(&["init", "--yes"]);
    answer.ok().says("Tests: cargo test  (found Cargo.toml)").says("npm test  (found package.json)");
    let config = fs::read_to_string(environment.shop().join("pointsman.toml")).unwrap();
    assert!(config.contains(r#"command = ["sh", "-c", "cargo test && npm test"]"#), "{config}");
}

#[test]
fn a_program_that_is_not_installed_is_told() {
    let environment = Environment::with_repository();
    environment.write("MODULE.bazel", "");
    environment.commit();
    environment.run(&["init", "--yes"]).ok().says("`bazel` is not installed on this machine, so CI");
}

#[test]
fn ci_that_is_off_is_said_by_init_status_every_review_and_explain() {
    const OFF: &str = "CI is off: nothing tests a change before it lands.";
    let environment = Environment::with_repository();
    environment.run(&["init", "--yes"]).ok().says(OFF);
    let config = fs::read_to_string(environment.shop().join("pointsman.toml")).unwrap();
    assert!(!config.contains("# command = [\"./ci.sh\"]"), "{config}");
    let status = environment.run(&["status"]);
    assert!(status.ok().stdout.contains(OFF), "{status:?}");
    assert!(environment.json(&["status"])["projects"][0]["warnings"][0].as_str().unwrap().starts_with(OFF));

    environment.git(&["switch", "-q", "-c", "topic"]);
    environment.write("new", "");
    environment.commit();
    environment.git(&["push", "-q", "pointsman", "topic"]);
    environment.run(&["forge", "pr", "create", "--head", "topic", "--title", "T", "--body", ""]).ok();
    let review = ["forge", "pr", "review", "1", "--request-changes", "--body", "Where are the tests?"];
    environment.run(&review).ok().says(OFF);
}

#[test]
fn a_ci_command_beside_none_is_an_error_with_its_line() {
    let environment = Environment::with_project();
    let file = environment.shop().join("pointsman.toml");
    let config = fs::read_to_string(&file).unwrap();
    let line = config.lines().position(|line| line.starts_with("kind = \"none\"")).unwrap() + 2;
    fs::write(&file, config.replace("kind = \"none\"", "kind = \"none\" #\ncommand = [\"./ci.sh\"] #"))
        .unwrap();
    let answer = environment.run(&["task", "list"]);
    answer
        .code(6)
        .says(&format!("pointsman.toml:{line}"))
        .says("`ci.command`")
        .says("set kind = \"command\"");
}

#[test]
fn the_name_is_the_repositorys_on_its_server_and_the_ci_is_the_forges() {
    let (environment, fake) = (Environment::with_repository(), FakeForgejo::start(Rules::default()));
    fs::create_dir_all(environment.shop().join(".forgejo/workflows")).unwrap();
    environment.write(".forgejo/workflows/ci.yml", "");
    environment.write("Cargo.toml", "");
    environment.commit();
    environment.git(&["remote", "add", "origin", &format!("{}/{REPO}.git", fake.url())]);
    environment.git(&["clone", "-q", ".", "../elsewhere"]);
    environment.git(&[
        "-C",
        "../elsewhere",
        "remote",
        "set-url",
        "origin",
        &format!("{}/{REPO}.git", fake.url()),
    ]);
    let arguments = ["-C", "../elsewhere", "init", "--yes", "--forge", "forgejo", "--json"];
    let answer = on_server(&environment, &fake, &arguments);
    let value: serde_json::Value = serde_json::from_str(&answer.ok().stdout).unwrap();
    assert_eq!(value["name"], REPO.rsplit_once('/').unwrap().1);
    let config = fs::read_to_string(environment.path("elsewhere/pointsman.toml")).unwrap();
    assert!(config.contains("kind = \"forge\""), "{config}");
    answer.says(".forgejo/workflows/ci.yml");
}

#[test]
fn the_advice_to_use_the_server_works_as_it_is_printed() {
    let (environment, fake) = (Environment::with_repository(), FakeForgejo::start(Rules::default()));
    environment.git(&["remote", "add", "origin", &format!("{}/{REPO}.git", fake.url())]);
    environment.run(&["init", "--yes"]).ok();
    fs::remove_file(environment.shop().join("pointsman.toml")).unwrap();
    on_server(&environment, &fake, &["init", "--yes", "--forge", "forgejo"]).ok();
    let local = Environment::with_repository();
    local.git(&["remote", "add", "origin", "git@github.com:ann/shop.git"]);
    local.run(&["init", "--yes"]).ok().says("rm pointsman.toml && pointsman init --forge github");
    fs::remove_file(local.shop().join("pointsman.toml")).unwrap();
    let answer = local.run(&["init", "--yes", "--forge", "local"]);
    assert!(!answer.ok().stderr.contains("github"), "{answer:?}");
}

#[test]
fn shallow_clones_worktrees_and_submodules_become_projects() {
    let environment = Environment::with_repository();
    environment.write("second", "");
    environment.commit();
    let url = format!("file://{}", environment.shop().display());
    environment.git(&["clone", "-q", "--depth", "1", &url, "../shallow"]);
    environment.git(&["worktree", "add", "-q", "-b", "side", "../worktree"]);
    environment.git(&["init", "-q", "-b", "main", "../outer"]);
    environment.git(&[
        "-C",
        "../outer",
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        &url,
        "inner",
    ]);
    for dir in ["../shallow", "../worktree", "../outer/inner"] {
        let value = environment.json(&["-C", dir, "init", "--yes"]);
        let forge = value["url"].as_str().unwrap();
        let there = environment.git(&["ls-remote", forge, "refs/heads/main"]);
        assert_eq!(there.split('\t').next().unwrap(), environment.git(&["rev-parse", "main"]), "{dir}");
        // The remote is shared by all worktrees of a repository, also with the checkout it was made in.
        environment.git(&["-C", dir, "remote", "remove", "pointsman"]);
    }
    environment.git(&["-C", "../outer", "commit", "-q", "-m", "Add inner"]);
    environment.run(&["-C", "../outer", "init", "--yes"]).ok().says("git submodule update --init");
}

#[test]
fn a_registration_that_fails_leaves_nothing_behind() {
    let environment = Environment::with_repository();
    // A state directory that cannot hold a database.
    fs::create_dir_all(environment.path("state/pointsman.db")).unwrap();
    let answer = environment.run(&["init", "--yes"]);
    assert_ne!(answer.code, Some(0), "{answer:?}");
    assert!(!environment.shop().join("pointsman.toml").exists());
    assert_eq!(environment.git(&["remote"]), "");
    assert!(!environment.path("state/projects/shop").exists());
}

#[test]
fn sync_brings_main_to_the_forge_and_nowhere_else() {
    let environment = Environment::with_project();
    environment.git(&["init", "-q", "--bare", "../elsewhere.git"]);
    environment.git(&["remote", "add", "origin", "../elsewhere.git"]);
    environment.write("more", "");
    environment.commit();
    let ahead = "main in this checkout is 1 commit ahead of the forge";
    let status = environment.run(&["status"]);
    assert!(status.ok().stdout.contains(ahead) && status.stdout.contains("`pointsman sync`"), "{status:?}");
    let value = environment.json(&["sync"]);
    assert_eq!(
        (&value["commits"], &value["head"]),
        (&1.into(), &environment.git(&["rev-parse", "HEAD"]).into())
    );
    let there = environment.git(&["ls-remote", "pointsman", "refs/heads/main"]);
    assert!(there.starts_with(&environment.git(&["rev-parse", "HEAD"])));
    assert_eq!(environment.git(&["ls-remote", "origin"]), "");
    assert!(!environment.run(&["status"]).ok().stdout.contains("ahead of the forge"));
    environment.run(&["sync"]).ok().says("The forge is up to date");

    environment.git(&["commit", "-q", "--amend", "--allow-empty", "-m", "Another"]);
    environment.run(&["sync"]).code(3).says("git pull --rebase pointsman main");
}

#[test]
fn init_again_brings_main_to_a_forge_that_is_behind() {
    let environment = Environment::with_project();
    fs::remove_file(environment.shop().join("pointsman.toml")).unwrap();
    environment.write("more", "");
    environment.commit();
    environment.run(&["init", "--yes"]).ok();
    let there = environment.git(&["ls-remote", "pointsman", "refs/heads/main"]);
    assert!(there.starts_with(&environment.git(&["rev-parse", "HEAD"])));
}
