//! Getting captured work back. What is captured is made by hand here; that the daemon captures is shown elsewhere.

use std::fs;

use serde_json::json;

use super::environment::{Environment, names};

/// A project whose mirror has a checkpoint and a rescue, as the daemon makes them.
fn with_captures() -> Environment {
    let environment = Environment::with_project();
    // Without it there is nothing to look into.
    assert_eq!(environment.json(&["rescue", "list"]), json!([]));
    environment.run(&["rescue", "show", "checkpoints/7/1"]).code(4).says("hint: pointsman rescue list");
    let mirror = environment.path("state/projects/shop/mirror.git");
    environment.git(&["init", "-q", "--bare", mirror.to_str().unwrap()]);
    environment.commit();
    environment.git(&["checkout", "-q", "--detach"]);
    for (name, message, refname) in [
        ("first", "checkpoint\n\nPointsman-Session: dev-shop-7.2\n", "refs/pointsman/checkpoints/7/2"),
        ("second", "rescue", "refs/pointsman/rescue/dev-shop-8.1/1"),
        ("third", "not ours", "refs/heads/third"),
    ] {
        environment.write(name, "red \u{1b}[31mtext\n");
        environment.git(&["add", "-A"]);
        environment.git(&["commit", "-q", "-m", message]);
        environment.git(&["push", "-q", mirror.to_str().unwrap(), &format!("HEAD:{refname}")]);
    }
    environment.git(&["checkout", "-q", "main"]);
    environment
}

#[test]
fn captures_are_listed_for_scripts_and_people() {
    let environment = with_captures();
    let listed = environment.json(&["rescue", "list"]);
    let entries = listed.as_array().unwrap();
    assert_eq!(entries.len(), 2);
    for field in ["ref", "task", "session", "at", "files", "kind", "commit"] {
        assert!(entries.iter().all(|entry| !entry[field].is_null()), "{field} is missing in {listed}");
    }
    assert_eq!(
        (&entries[0]["ref"], &entries[0]["kind"]),
        (&json!("refs/pointsman/checkpoints/7/2"), &json!("checkpoint"))
    );
    assert_eq!((&entries[0]["task"], &entries[0]["session"]), (&json!(7), &json!("dev-shop-7.2")));
    assert_eq!((&entries[1]["task"], &entries[1]["files"]), (&json!(8), &json!(["second"])));
    assert_eq!(environment.json(&["rescue", "list", "--task", "8"]), json!([entries[1]]));
    assert_eq!(environment.json(&["rescue", "list", "--kind", "checkpoint"]), json!([entries[0]]));
    let table = environment.run(&["rescue", "list"]);
    assert!(table.ok().stdout.contains("#7    dev-shop-7.2"), "{table:?}");
    assert!(table.stdout.contains("rescue/dev-shop-8.1/1"), "{table:?}");
}

#[test]
fn one_is_shown_without_steering_the_terminal() {
    let environment = with_captures();
    let shown = environment.run(&["rescue", "show", "checkpoints/7/2"]);
    assert!(shown.ok().stdout.contains("1 file changed, 1 insertion(+)"), "{shown:?}");
    assert!(!shown.stdout.contains("+red"), "{shown:?}");
    let patch = environment.run(&["rescue", "show", "refs/pointsman/checkpoints/7/2", "--patch"]);
    assert!(patch.ok().stdout.contains("+red "), "{patch:?}");
    assert!(!patch.stdout.contains('\u{1b}'), "{patch:?}");
    let value = environment.json(&["rescue", "show", "checkpoints/7/2", "--patch"]);
    assert!(value["patch"].as_str().unwrap().contains("+red \u{1b}[31mtext"), "{value}");
    assert_eq!(value["files"], json!(["first"]));
    for other in ["refs/heads/third", "third", "checkpoints/7/1", "--output=x", "HEAD", ""] {
        environment.run(&["rescue", "show", "--", other]).code(4).says("there is no capture called");
    }
}

#[test]
fn files_come_back_into_a_new_directory_and_nowhere_else() {
    let environment = with_captures();
    let restore = |to: &str| environment.run(&["rescue", "restore", "rescue/dev-shop-8.1/1", "--to", to]);
    restore("../found/deep").ok().says("are in");
    assert_eq!(names(&environment.path("found/deep")), ["README", "first", "pointsman.toml", "second"]);
    restore("../found/deep").code(3).says("not an empty directory");
    restore(".").code(3);
    restore("README").code(3);
    let live = environment.path("state/projects/shop/sessions/dev-shop-8/tree");
    fs::create_dir_all(&live).unwrap();
    restore(live.to_str().unwrap()).code(3).says("where sessions work");
    restore(live.join("new").to_str().unwrap()).code(3);
    assert_eq!(names(&live).len(), 0);
    environment.run(&["rescue", "restore", "rescue/dev-shop-8.1/1"]).code(2);
    environment.run(&["rescue", "restore", "rescue/dev-shop-8.1/9", "--to", "../none"]).code(4);
    assert!(!environment.path("none").exists());
}

#[test]
fn a_branch_is_the_persons_own_to_make() {
    let environment = with_captures();
    let restore = |name: &str| environment.run(&["rescue", "restore", "checkpoints/7/2", "--branch", name]);
    let captures = environment.path("state/projects/shop/captures.git");
    let captures = captures.to_str().unwrap();
    restore("found/work")
        .ok()
        .prints(&format!("git fetch {captures} refs/pointsman/checkpoints/7/2:refs/heads/found/work\n"));
    restore("$(id)")
        .ok()
        .prints(&format!("git fetch {captures} 'refs/pointsman/checkpoints/7/2:refs/heads/$(id)'\n"));
    for bad in ["a b", "-x", "a..b"] {
        restore(bad).code(2);
    }
    assert_eq!(environment.git(&["branch", "--list", "found/*"]), "", "nothing was made");
    let value = environment.json(&["rescue", "restore", "checkpoints/7/2", "--branch", "found/work"]);
    let command: Vec<&str> =
        value["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    environment.git(&command[1..]);
    assert_eq!(environment.git(&["show", "--format=", "--name-only", "found/work"]), "first");
}
