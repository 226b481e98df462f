//! What a proxy lets through, as a table.

use core::net::IpAddr;

use super::{Destination, Policy, Refusal, expand, host_of, registries};

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
        learning: false,
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
    let words = list(&["packages", "agent", "x.example.org", "agent"]);
    let hosts = expand(&words, &list(&["api.example.org"]), &list(&["mirror.example.org"]));
    assert_eq!(hosts, ["api.example.org", "mirror.example.org", "x.example.org"]);
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
    for (file, text, hosts) in [
        (
            "Cargo.lock",
            "source = \"registry+https://index.example.org/git\"\nname = \"https://no.example.org\"",
            vec!["index.example.org"],
        ),
        ("Cargo.lock", "source = \"sparse+https://sparse.example.org/index/\"", vec!["sparse.example.org"]),
        (
            "package-lock.json",
            "\"resolved\": \"https://npm.example.org/a/-/a-1.tgz\",\n\"url\": \"https://funding.example.org\"",
            vec!["npm.example.org"],
        ),
        (
            ".npmrc",
            "# registry=https://old.example.org\nregistry=https://npm.example.org:8081/",
            vec!["npm.example.org:8081"],
        ),
        (
            "uv.lock",
            "source = { registry = \"https://py.example.org/simple\" }\n{ url = \"https://files.example.org/a.whl\" }",
            vec!["files.example.org", "py.example.org"],
        ),
        ("go.env", "GOPROXY=https://go.example.org,direct", vec!["go.example.org"]),
        ("README.md", "registry = \"https://x.example.org\"", vec![]),
    ] {
        assert_eq!(registries(file, text), hosts, "{file}: {text}");
    }
}
