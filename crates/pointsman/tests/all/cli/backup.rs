//! `backup`: copies of all databases.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::environment::Environment;

#[test]
fn backup_copies_all_databases_into_one_file_and_overwrites_nothing() {
    let environment = Environment::with_project();
    environment.run(&["forge", "issue", "create", "--title", "Apples"]).ok();
    assert_eq!(environment.json(&["backup", "list"]), json!([]));
    let made = environment.json(&["backup", "../monday.backup"]);
    let names: Vec<&str> =
        made["databases"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["projects/shop/forge.db", "pointsman.db"]);
    let file = environment.path("monday.backup");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "nobody else reads it");
    let before = fs::read(&file).unwrap();
    environment.run(&["backup", "../monday.backup"]).code(3).says("exists").says("choose a new name");
    assert_eq!(fs::read(&file).unwrap(), before);
    environment.run(&["backup", "../none/monday.backup"]).code(1).says("none/monday.backup");

    environment.run(&["backup"]).ok();
    let listed = environment.json(&["backup", "list"]);
    assert_eq!((&listed[0]["daily"], &listed[0]["problem"]), (&json!(false), &json!(null)), "{listed}");
    let path = listed[0]["path"].as_str().unwrap();
    fs::write(path, "torn").unwrap();
    let torn = environment.json(&["backup", "list"]);
    assert!(torn[0]["problem"].is_string() && torn[0]["made_at"].is_null(), "{torn}");
    let table = environment.run(&["backup", "list"]);
    assert!(table.stdout.contains("unreadable"), "{table:?}");
}

#[test]
fn backup_without_a_database_says_so() {
    Environment::with_repository().run(&["backup"]).code(4).says("there is no database yet");
}

#[test]
fn restore_puts_databases_back_and_keeps_those_that_were_there() {
    let environment = Environment::with_project();
    environment.run(&["forge", "issue", "create", "--title", "Apples"]).ok();
    environment.run(&["backup", "../monday.backup"]).ok();
    environment.run(&["forge", "issue", "create", "--title", "Pears"]).ok();
    environment
        .run(&["restore", "../monday.backup", "--only", "other.db"])
        .code(4)
        .says("the backup has no other.db");
    environment.run(&["restore", "../none.backup"]).code(1);
    let mut inside = environment.command(&["restore", "../monday.backup"]);
    inside.env("POINTSMAN_SESSION", "dev-shop-1.1");
    super::environment::finish(inside, b"").code(3).says("from inside session");
    assert_eq!(
        environment.json(&["forge", "issue", "list"]).as_array().unwrap().len(),
        2,
        "nothing was changed"
    );

    environment.run(&["up", "--detach"]).ok();
    environment.run(&["restore", "../monday.backup"]).code(3).says("the daemon runs").says("pointsman down");
    environment.run(&["down"]).ok();

    let restored = environment.json(&["restore", "../monday.backup", "--only", "projects/shop/forge.db"]);
    let databases = restored["databases"].as_array().unwrap();
    assert_eq!((databases.len(), &databases[0]["name"]), (1, &json!("projects/shop/forge.db")), "{restored}");
    let kept = databases[0]["kept"].as_str().unwrap();
    assert!(fs::exists(kept).unwrap() && kept.contains("forge.db.before-restore-"), "{kept}");
    assert_eq!(environment.json(&["forge", "issue", "list"]).as_array().unwrap().len(), 1);
    let said = environment.run(&["restore", "../monday.backup"]);
    said.ok().says("compares everything with git and the forge");
    assert!(said.stdout.contains("Restored pointsman.db; the one before is "), "{said:?}");
}
