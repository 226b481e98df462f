//! Requests to mirrors and their answers, as tables.

use super::*;

fn registries() -> Vec<Registry> {
    let list = [
        "cargo+https://c.example.org/index/",
        "npm+https://n.example.org/npm/",
        "pip+https://p.example.org/simple/",
        "go+https://g.example.org",
    ];
    list.iter().map(|entry| Registry::parse(entry).unwrap()).collect()
}

#[test]
fn a_request_leads_below_its_registry_and_nowhere_else() {
    for (target, address) in [
        ("/packages/cargo/0/config.json", Ok("https://c.example.org/index/config.json")),
        ("/packages/cargo/0/fr/ui/fruit", Ok("https://c.example.org/index/fr/ui/fruit")),
        ("/packages/npm/1/fruit", Ok("https://n.example.org/npm/fruit")),
        ("/packages/npm/1/@s%2ffruit", Ok("https://n.example.org/npm/@s%2ffruit")),
        ("/packages/npm/1/npm/fruit/-/fruit-1.tgz", Ok("https://n.example.org/npm/fruit/-/fruit-1.tgz")),
        ("/packages/npm/1/npm/-/npm-1.tgz", Ok("https://n.example.org/npm/npm/-/npm-1.tgz")),
        ("/npm/fruit/-/fruit-1.tgz", Ok("https://n.example.org/npm/fruit/-/fruit-1.tgz")),
        ("/fruit/-/fruit-1.tgz", Ok("https://n.example.org/npm/fruit/-/fruit-1.tgz")),
        ("/packages/pip/2/index/fruit/", Ok("https://p.example.org/simple/fruit/")),
        ("/packages/go/3/x.org/!a/@v/list", Ok("https://g.example.org/x.org/!a/@v/list")),
        ("/packages/pip/2/other", Err(Refusal::NotPassed)),
        ("/packages/npm/0/fruit", Err(Refusal::NotPassed)),
        ("/packages/npm/9/fruit", Err(Refusal::NotPassed)),
        ("/packages/gem/1/fruit", Err(Refusal::NotPassed)),
        ("/packages/npm", Err(Refusal::NotPassed)),
        ("/fruit/-/fruit-1.json", Err(Refusal::NotPassed)),
        ("/packages/npm/1/../../x", Err(Refusal::Malformed)),
        ("/packages/npm/1/%2e%2E/x", Err(Refusal::Malformed)),
        ("/packages/npm/1/a\\b", Err(Refusal::Malformed)),
        ("/packages/cargo/0/-/dl/a%2fb/1/2", Err(Refusal::Malformed)),
    ] {
        let found = want("GET", target, &registries()).map(|want| match want {
            Want::Fetch { address, .. } => address.url(),
            other => format!("{other:?}"),
        });
        assert_eq!(found.as_deref(), address.as_deref(), "{target}");
    }
    for method in ["PUT", "POST", "DELETE", "PATCH", "get", "CONNECT", ""] {
        assert_eq!(want(method, "/packages/npm/1/fruit", &registries()), Err(Refusal::ReadOnly), "{method}");
    }
    let long = format!("/packages/npm/1/{}", "a".repeat(TARGET_BYTES));
    assert_eq!(want("GET", &long, &registries()), Err(Refusal::Malformed), "no place for a message");
}

#[test]
fn links_are_followed_as_browsers_do() {
    let page = Address::parse("https://p.example.org/simple/fruit/?x").unwrap();
    for (link, to) in [
        ("https://f.example.org/a.whl#sha256=1", Some("https://f.example.org/a.whl")),
        ("//f.example.org:8443/a", Some("https://f.example.org:8443/a")),
        ("/files/a.whl", Some("https://p.example.org/files/a.whl")),
        ("../../files/./a.whl?b=c", Some("https://p.example.org/files/a.whl?b=c")),
        ("../../../../a", Some("https://p.example.org/a")),
        ("other/", Some("https://p.example.org/simple/fruit/other/")),
        ("", Some("https://p.example.org/simple/fruit")),
        ("mailto:a@example.org", None),
        ("ftp://f.example.org/a", None),
        ("a b", None),
    ] {
        assert_eq!(page.join(link).map(|to| to.url()).as_deref(), to, "{link}");
    }
}

#[test]
fn packages_of_cargo_come_from_where_its_settings_say() {
    for (dl, url) in [
        ("https://d.example.org/crates", "https://d.example.org/crates/Fruit-b/1.0.0/download"),
        (
            "https://d.example.org/{prefix}/{crate}-{version}.crate",
            "https://d.example.org/Fr/ui/Fruit-b-1.0.0.crate",
        ),
        ("https://d.example.org/{lowerprefix}/{sha256-checksum}", "https://d.example.org/fr/ui/abc"),
    ] {
        let settings = CargoSettings { dl: dl.to_owned() };
        assert_eq!(settings.address("Fruit-b", "1.0.0", "abc").unwrap().url(), url);
    }
    let told: Value = serde_json::from_str(&CargoSettings::told("http://127.0.0.2:9", 0)).unwrap();
    let dl = "http://127.0.0.2:9/packages/cargo/0/-/dl/{crate}/{version}/{sha256-checksum}";
    assert_eq!(told, serde_json::json!({ "dl": dl }), "nothing can be published");
    let found = want("GET", "/packages/cargo/0/-/dl/fruit/1.0.0+b/abc", &registries()).unwrap();
    let [name, version, checksum] = ["fruit", "1.0.0+b", "abc"].map(str::to_owned);
    assert_eq!(found, Want::CargoDownload { at: 0, name, version, checksum });
}

#[test]
fn a_page_links_to_the_mirror_with_a_seal() {
    let registry = &registries()[2];
    let at = Address::parse("https://p.example.org/simple/fruit/").unwrap();
    let html = "<a href=\"../../f/fruit-1.whl#sha256=ab\">1</a> <a href='https://o.example.org/x?a=1&amp;b=2'>2</a> \
                <a href=\"mailto:a@b\">3</a><a href=unquoted>";
    let sealed = |text: &str| format!("seal{}", text.len());
    let told = page(html, &at, registry, 2, sealed);
    let first = "/packages/pip/2/file/seal69/https/p.example.org/f/fruit-1.whl#sha256=ab\"";
    assert!(told.contains(first), "{told}");
    assert!(told.contains("/https/o.example.org/x?a=1&amp;b=2\""), "{told}");
    assert!(told.contains("href=\"mailto:a@b\"") && told.ends_with("<a href=unquoted>"), "{told}");
    let target = "/packages/pip/2/file/seal69/https/p.example.org/f/fruit-1.whl.metadata";
    let Want::Linked { address, seal, .. } = want("GET", target, &registries()).unwrap() else { panic!() };
    assert_eq!(sealed(&sealed_text(registry, &address)), seal, "its description is as good");
    // pip escapes what it finds in a path.
    let at = Address::parse("http://localhost:8000/simple/fruit/").unwrap();
    let told = page("<a href=\"fruit-1+x.whl\">", &at, registry, 2, sealed);
    let path = told.split('"').nth(1).unwrap();
    assert!(path.ends_with("/http/localhost~8000/simple/fruit/fruit-1+x.whl"), "{path}");
    let Want::Linked { address, seal, .. } = want("GET", &path.replace('+', "%2B"), &registries()).unwrap()
    else {
        panic!()
    };
    assert_eq!(address.url(), "http://localhost:8000/simple/fruit/fruit-1%2Bx.whl");
    assert_eq!(sealed(&sealed_text(registry, &address)), seal);
}

#[test]
fn descriptions_of_npm_name_the_mirror_for_those_who_would_ask_elsewhere() {
    let registry = &registries()[1];
    let text = serde_json::json!({ "versions": {
        "1.0.0": { "dist": { "tarball": "https://n.example.org/npm/fruit/-/fruit-1.0.0.tgz" } },
        "2.0.0": { "dist": { "tarball": "https://o.example.org/fruit-2.0.0.tgz" } },
    }});
    let told = packument(text.to_string().as_bytes(), registry, "http://127.0.0.2:9", 1).unwrap();
    let told: Value = serde_json::from_slice(&told).unwrap();
    let tarball = |version: &str| told["versions"][version]["dist"]["tarball"].as_str().unwrap().to_owned();
    assert_eq!(tarball("1.0.0"), "http://127.0.0.2:9/packages/npm/1/fruit/-/fruit-1.0.0.tgz");
    assert_eq!(tarball("2.0.0"), "https://o.example.org/fruit-2.0.0.tgz");
    for (agent, takes) in [
        ("pnpm/9.1.0 npm/? node/v20", true),
        ("yarn/4.1.0 npm/? node/v20", true),
        ("yarn/1.22.0 npm/? node/v20", false),
        ("npm/10.0.0 node/v20", false),
        ("", false),
    ] {
        assert_eq!(takes_own_addresses(agent), takes, "{agent}");
    }
}

#[test]
fn a_server_shows_what_it_is() {
    let known = |tool, kind, body: &str| recognised(tool, "https://x.example.org/", kind, body.as_bytes());
    let files = |found: Option<(Registry, Vec<Destination>)>| {
        found.map(|(one, files)| (one.to_string(), files.iter().map(ToString::to_string).collect::<Vec<_>>()))
    };
    let dl = r#"{"dl": "https://d.example.org/crates", "api": "https://x.example.org"}"#;
    let expected = ("cargo+https://x.example.org/".to_owned(), vec!["d.example.org:443".to_owned()]);
    assert_eq!(files(known(Tool::Cargo, "application/json", dl)), Some(expected));
    let page = "<a href=\"https://f.example.org/pip-1.whl#sha256=1\">";
    let expected = ("pip+https://x.example.org/simple/".to_owned(), vec!["f.example.org:443".to_owned()]);
    assert_eq!(files(known(Tool::Pip, "text/html; charset=utf-8", page)), Some(expected));
    assert!(known(Tool::Npm, "application/json", "{}").is_some());
    assert!(known(Tool::Go, "text/plain", "v0.1.0\nv0.2.0\n").is_some());
    for (tool, body) in [
        (Tool::Cargo, "{}"),
        (Tool::Cargo, "<html>"),
        (Tool::Pip, "<a href=\"/about\">"),
        (Tool::Npm, "<html>"),
        (Tool::Npm, r#"{"error": "not found"}"#),
        (Tool::Go, "very well"),
        (Tool::Go, ""),
        (Tool::Bundler, "{}"),
    ] {
        assert_eq!(known(tool, "text/html", body), None, "{tool:?}: {body}");
    }
}
