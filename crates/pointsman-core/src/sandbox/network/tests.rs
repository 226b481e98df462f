//! What a proxy lets through, as a table.

use core::net::IpAddr;

use super::registries::{
    Registry, Tool, cargo_file, operator_registries, registries, variable_registry, variables,
};
use super::{Destination, Policy, Refusal, expand, host_of, is_entry};

fn policy() -> Policy {
    let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Policy {
        hosts: list(&[
            "api.example.org",
            "*.cdn.example.org",
            "git.example.org:8443",
            "127.0.0.1:4000",
            "127.0.0.1:5000",
        ]),
        private_hosts: list(&["git.example.org:8443", "127.0.0.1:4000", "10.0.0.1:80"]),
        ..Policy::default()
    }
}

fn asked(text: &str) -> Result<(), Refusal> {
    policy().by_name(&Destination::parse(text, None)?).map(drop)
}

#[test]
fn names_and_ports() {
    for (text, answer) in [
        ("api.example.org:443", Ok(())),
        ("API.Example.ORG.:443", Ok(())),
        ("api.example.org:80", Ok(())),
        ("api.example.org:22", Err(Refusal::Port)),
        ("api.example.org", Err(Refusal::Malformed)),
        ("api.example.org:0", Err(Refusal::Malformed)),
        ("api.example.org:99999", Err(Refusal::Malformed)),
        ("evil-api.example.org:443", Err(Refusal::NotListed)),
        ("api.example.org.evil.net:443", Err(Refusal::NotListed)),
        ("example.org:443", Err(Refusal::NotListed)),
        ("a.cdn.example.org:443", Ok(())),
        ("a.b.cdn.example.org:443", Ok(())),
        ("cdn.example.org:443", Err(Refusal::NotListed)),
        ("evilcdn.example.org:443", Err(Refusal::NotListed)),
        ("git.example.org:8443", Ok(())),
        ("git.example.org:443", Err(Refusal::Port)),
        ("localhost:443", Err(Refusal::NotListed)),
        ("api.example.org@evil.net:443", Err(Refusal::Malformed)),
        ("api.example.org\r\nx:443", Err(Refusal::Malformed)),
        ("", Err(Refusal::Malformed)),
    ] {
        assert_eq!(asked(text), answer, "{text:?}");
    }
}

#[test]
fn a_run_that_learns_reaches_names_that_are_not_listed_and_nothing_else_more() {
    let learning = Policy { learning: true, ..policy() };
    let asked = |text: &str| learning.by_name(&Destination::parse(text, None)?).map(|permit| permit.learned);
    assert_eq!(asked("api.example.org:443"), Ok(false));
    assert_eq!(asked("registry.example.net:443"), Ok(true));
    assert_eq!(asked("registry.example.net:22"), Err(Refusal::NotListed));
    assert_eq!(asked("93.184.216.34:443"), Err(Refusal::AddressLiteral));
    // The address behind the name is looked at as ever.
    let permit = learning.by_name(&Destination::parse("registry.example.net:443", None).unwrap()).unwrap();
    assert_eq!(permit.allows("10.0.0.7".parse().unwrap()), Err(Refusal::PrivateAddress));
}

#[test]
fn addresses_are_refused_however_they_are_written_unless_an_operator_lists_them() {
    for text in [
        "93.184.216.34:443",
        "127.0.0.1:443",
        "127.1:443",
        "2130706433:443",
        "0x7f000001:443",
        "0x7f.0.0.1:443",
        "0177.0.0.1:443",
        "[::1]:443",
        "[2606:2800:220:1::1]:443",
        // Listed as a destination alone, or as private alone.
        "127.0.0.1:5000",
        "10.0.0.1:80",
    ] {
        assert_eq!(asked(text), Err(Refusal::AddressLiteral), "{text}");
    }
    assert_eq!(asked("127.0.0.1:4000"), Ok(()));
}

#[test]
fn names_that_lead_to_this_machine_or_to_a_private_network_are_refused() {
    let permit = |text: &str| policy().by_name(&Destination::parse(text, None).unwrap()).unwrap();
    let (public, private) = (permit("api.example.org:443"), permit("git.example.org:8443"));
    for (address, is_public, is_listed) in [
        ("93.184.216.34", true, true),
        ("2606:2800:220:1:248:1893:25c8:1946", true, true),
        ("127.0.0.1", false, true),
        ("127.8.8.8", false, true),
        ("10.1.2.3", false, true),
        ("172.16.0.1", false, true),
        ("192.168.1.1", false, true),
        ("100.64.0.1", false, true),
        ("0.0.0.0", false, true),
        ("224.0.0.1", false, true),
        ("255.255.255.255", false, true),
        ("198.18.0.1", false, true),
        ("::1", false, true),
        ("fd12::1", false, true),
        ("::ffff:127.0.0.1", false, true),
        ("::ffff:93.184.216.34", true, true),
        ("64:ff9b::7f00:1", false, true),
        ("2002:7f00:1::", false, true),
        ("::7f00:1", false, true),
        ("2001:db8::1", false, true),
        // A cloud tells its credentials there, so no list opens it.
        ("169.254.169.254", false, false),
        ("100.100.100.200", false, false),
        ("fe80::1", false, false),
        ("fd00:ec2::254", false, false),
        ("::ffff:169.254.169.254", false, false),
    ] {
        let at: IpAddr = address.parse().unwrap();
        assert_eq!(public.allows(at).is_ok(), is_public, "{address}");
        assert_eq!(private.allows(at).is_ok(), is_listed, "{address}, listed");
    }
}

#[test]
fn presets_stand_for_what_they_name() {
    let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let words = list(&["packages", "agent", "x.example.org", "agent", "pip+https://py.example.org/simple/"]);
    let packages = [Registry::parse("npm+https://npm.example.org/").unwrap()];
    let (hosts, registries) = expand(&words, &list(&["api.example.org"]), &packages);
    assert_eq!(hosts, ["api.example.org", "x.example.org"]);
    let named: Vec<String> = registries.iter().map(ToString::to_string).collect();
    assert_eq!(named, ["npm+https://npm.example.org/", "pip+https://py.example.org/simple/"]);
    // A registry is none of the hosts that can be told anything.
    let policy = Policy { hosts, registries, ..Policy::default() };
    let to = Destination { host: "npm.example.org".to_owned(), port: 443 };
    assert_eq!(policy.by_name(&to), Err(Refusal::NotListed));
}

#[test]
fn the_host_of_an_address() {
    for (url, host) in [
        ("https://mirror.example.org/simple/", Some("mirror.example.org")),
        ("http://user:word@mirror.example.org:8080?x", Some("mirror.example.org:8080")),
        ("https://Mirror.Example.ORG:443", Some("mirror.example.org")),
        ("http://127.0.0.1:8080/v1", Some("127.0.0.1:8080")),
        ("http://127.0.0.1/", Some("127.0.0.1:80")),
        ("ssh://git@example.org/x", None),
        ("mirror.example.org", None),
    ] {
        assert_eq!(host_of(url).as_deref(), host, "{url}");
    }
}

#[test]
fn registries_are_read_from_lock_files_and_settings() {
    for (file, text, found) in [
        // A repository with an index is asked with git, which no mirror speaks.
        (
            "Cargo.lock",
            "source = \"registry+https://index.example.org/git\"\nname = \"https://no.example.org\"",
            vec![],
        ),
        ("Cargo.lock", "source = \"git+https://git.example.org/fruit?rev=1#2\"", vec![]),
        (
            "Cargo.lock",
            "source = \"sparse+https://sparse.example.org/index/\"",
            vec!["cargo+https://sparse.example.org/index/"],
        ),
        (
            ".cargo/config.toml",
            "[source.crates-io]\nreplace-with = \"a\"\n[source.a]\nregistry = \"sparse+https://a.example.org/\"\n\
             [registries.b]\nindex = \"sparse+https://b.example.org/i/\"\n[source.v]\ndirectory = \"vendor\"",
            vec!["cargo+https://a.example.org/", "cargo+https://b.example.org/i/"],
        ),
        (
            "package-lock.json",
            "\"resolved\": \"https://npm.example.org/p/a/-/a-1.tgz\",\n\"url\": \"https://funding.example.org\"\n\
             \"resolved\": \"https://npm.example.org/p/@s/b/-/b-1.tgz\"\n\"resolved\": \"git+ssh://git@x.example.org/c.git\"",
            vec!["npm+https://npm.example.org/p/"],
        ),
        (
            "yarn.lock",
            "  resolved \"https://y.example.org/a/-/a-1.tgz#f00\"",
            vec!["npm+https://y.example.org/"],
        ),
        (
            "pnpm-lock.yaml",
            "    resolution: {integrity: x, tarball: https://p.example.org/a/-/a-1.tgz}",
            vec!["npm+https://p.example.org/"],
        ),
        (
            ".npmrc",
            "# registry=https://old.example.org\nregistry=https://npm.example.org:8081/\n@s:registry=https://scope.example.org",
            vec!["npm+https://npm.example.org:8081/"],
        ),
        (
            "pip.conf",
            "[global]\nindex-url = https://py.example.org/simple\nextra-index-url = https://no.example.org",
            vec!["pip+https://py.example.org/simple"],
        ),
        (
            "requirements.txt",
            "--index-url https://py.example.org/simple/\nfruit",
            vec!["pip+https://py.example.org/simple/"],
        ),
        (
            "pyproject.toml",
            "[project.urls]\nurl = \"https://home.example.org\"\n[[tool.poetry.source]]\nname = \"x\"\nurl = \"https://py.example.org/simple\"",
            vec!["pip+https://py.example.org/simple"],
        ),
        ("go.env", "GOPROXY=https://go.example.org,direct", vec!["go+https://go.example.org"]),
        (
            "Gemfile.lock",
            "GIT\n  remote: https://git.example.org/x\nGEM\n  remote: https://gems.example.org/\n  specs:\n    a (1)",
            vec!["bundler+https://gems.example.org/"],
        ),
        (".npmrc", "registry=https://user:word@npm.example.org/", vec![]),
        ("README.md", "registry = \"https://x.example.org\"", vec![]),
    ] {
        let named: Vec<String> = registries(file, text).iter().map(|(_, one)| one.to_string()).collect();
        assert_eq!(named, found, "{file}: {text}");
    }
}

#[test]
fn an_entry_of_a_list_may_be_a_registry() {
    for (entry, is_one) in [
        ("npm+https://npm.example.org/", true),
        ("cargo+http://127.0.0.1:8080/index/", true),
        ("gem+https://npm.example.org/", false),
        ("npm+ftp://npm.example.org/", false),
        ("npm+https://user@npm.example.org/", false),
        ("https://npm.example.org/", false),
    ] {
        assert_eq!(is_entry(entry), is_one, "{entry}");
    }
}

#[test]
fn the_settings_of_an_operator_name_what_a_sandbox_does_not_see() {
    let cargo = "[source.crates-io]\nreplace-with = \"a\"\n[source.a]\nreplace-with = \"b\"\n[source.b]\nregistry = \"sparse+https://b.example.org/\"";
    let found = operator_registries(".cargo/config.toml", cargo);
    assert_eq!(found[0].to_string(), "cargo+https://b.example.org/");
    assert_eq!(found[0].source.as_deref(), Some("crates-io"));
    let found = variable_registry(Tool::Go, "off,https://go.example.org,direct").unwrap();
    assert_eq!(found.to_string(), "go+https://go.example.org");
    assert_eq!(variable_registry(Tool::Pip, "https://user:word@py.example.org/simple"), None);
}

#[test]
fn tools_are_told_of_their_mirrors() {
    let registry = |entry: &str| Registry::parse(entry).unwrap();
    let mut list = vec![
        Registry { source: Some("company".to_owned()), ..registry("cargo+https://a.example.org/") },
        Registry { source: None, ..registry("cargo+https://b.example.org/i/") },
        registry("cargo+https://c.example.org/"),
        registry("cargo+https://d.example.org/"),
    ];
    list.extend(
        ["npm+https://n.example.org/", "npm+https://m.example.org/", "pip+https://p.example.org/simple"]
            .map(registry),
    );
    let told = variables(&list, "http://127.0.0.2:9");
    let value = |name: &str| told.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
    assert_eq!(value("npm_config_registry"), Some("http://127.0.0.2:9/packages/npm/4/"));
    assert_eq!(value("PIP_INDEX_URL"), Some("http://127.0.0.2:9/packages/pip/6/index/"));
    assert_eq!(value("GOPROXY"), None);
    let file: toml::Table = cargo_file(&list, "http://127.0.0.2:9").unwrap().parse().unwrap();
    let sources = &file["source"];
    assert_eq!(sources["company"]["replace-with"].as_str(), Some("pointsman-0"));
    assert!(sources["company"].get("registry").is_none(), "the project says that itself");
    assert_eq!(sources["pointsman-for-1"]["registry"].as_str(), Some("sparse+https://b.example.org/i/"));
    assert_eq!(sources["crates-io"]["replace-with"].as_str(), Some("pointsman-2"), "the first one counts");
    assert_eq!(
        sources["pointsman-1"]["registry"].as_str(),
        Some("sparse+http://127.0.0.2:9/packages/cargo/1/")
    );
    assert_eq!(cargo_file(&list[4..], "http://127.0.0.2:9"), None);
}
