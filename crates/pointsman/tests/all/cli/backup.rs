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
