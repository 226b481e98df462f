//! Formulas: shipped, overridden, checked.

use std::fs;

use super::environment::Environment;

const TIDY: &str = "name = \"tidy\"\ndescription = \"Tidies {{project}}\"\nversion = 1\n\n[[steps]]\nid = \"look\"\n\
    title = \"Look\"\ndescription = \"Look at {{primary_branch}}.\"\n";

#[test]
fn formula_check_says_what_is_wrong_with_its_line() {
    let environment = Environment::empty();
    let file = environment.path("tidy.toml");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        environment.run(&["formula", "check", file.to_str().unwrap()])
    };
    check(TIDY).ok();
    check(&TIDY.replace("title", "titel")).code(1).says("tidy.toml:7:1: unknown key `titel`");
    check(&format!("{TIDY}needs = [\"nap\"]\n")).code(1).says("tidy.toml:9:10: `look` needs the step `nap`");
    check(&format!("{TIDY}needs = [\"look\"]\n")).code(1).says("in a circle: look → look");
    check(&TIDY.replace("{{project}}", "{{project")).code(1).says("tidy.toml:2");
    environment.run(&["formula", "check", "missing.toml"]).code(4);
}

#[test]
fn a_project_has_the_shipped_formulas_and_its_own() {
    let environment = Environment::with_project();
    let names = |list: &serde_json::Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap().to_owned()).collect()
    };
    let shipped = environment.json(&["formula", "list"]);
    assert_eq!(names(&shipped).len(), 8, "one for each agent");
    let planner = environment.json(&["formula", "show", "run-planner"]);
    assert_eq!(
        (&planner["model"], &planner["role"], &planner["origin"]),
        (&"opus".into(), &"planner".into(), &"shipped".into())
    );
    assert_eq!(planner["files"], serde_json::json!([]), "files that are not there are left out");

    fs::create_dir(environment.shop().join("formulas")).unwrap();
    environment.write("formulas/tidy.toml", TIDY);
    environment.write("formulas/run-planner.toml", &TIDY.replace("\"tidy\"", "\"run-planner\""));
    assert_eq!(names(&environment.json(&["formula", "list"])).len(), 9);
    let own = environment.json(&["formula", "show", "run-planner"]);
    assert_eq!(
        (&own["steps"][0]["description"], &own["description"]),
        (&"Look at main.".into(), &"Tidies shop".into())
    );
    assert!(own["origin"].as_str().unwrap().ends_with("formulas/run-planner.toml"));

    environment.write("formulas/tidy.toml", &TIDY.replace("{{project}}", "{{nothing}}"));
    environment
        .run(&["formula", "show", "tidy"])
        .code(6)
        .says("tidy.toml:2:23: there is no variable `nothing`");
    environment.run(&["formula", "check", "formulas/tidy.toml"]).code(1).says("no variable `nothing`");
    let missing = TIDY.replace("[[steps]]", "[context]\nfiles = [\"gone.md\"]\n\n[[steps]]");
    environment.write("formulas/tidy.toml", &missing);
    environment
        .run(&["formula", "check", "formulas/tidy.toml"])
        .code(1)
        .says("tidy.toml:6:10: there is no file gone.md");
    environment.run(&["formula", "show", "nothing"]).code(4);
}

#[test]
fn a_formula_that_is_wrong_stands_in_nobodys_way() {
    let environment = Environment::with_project();
    fs::create_dir_all(environment.path("shop/formulas")).unwrap();
    fs::write(environment.path("shop/formulas/tidy.toml"), TIDY).unwrap();
    fs::write(environment.path("shop/formulas/broken.toml"), "name = ").unwrap();
    fs::write(environment.path("shop/formulas/noise.toml"), [0xff, 0xfe]).unwrap();
    let listed = environment.json(&["formula", "list"]);
    let of = |name: &str| listed.as_array().unwrap().iter().find(|f| f["name"] == name).cloned().unwrap();
    assert!(of("tidy")["origin"].as_str().unwrap().ends_with("formulas/tidy.toml"), "{listed}");
    assert!(of("broken")["error"].as_str().unwrap().contains("broken.toml:1"), "{listed}");
    assert!(of("noise")["error"].as_str().unwrap().contains("noise.toml"), "{listed}");
    environment.run(&["formula", "list"]).ok();
    environment.run(&["formula", "show", "tidy"]).ok();
    environment.run(&["formula", "show", "broken"]).code(6);
}
