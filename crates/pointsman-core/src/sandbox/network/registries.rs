//! The package registries that a project names in its lock files and in the settings of its tools.

use super::host_of;

/// The files to look at, at the root of the landed main branch, and the words after which an address is a registry's. Other
/// addresses in them, such as home pages, are none.
const FILES: [(&str, &[&str]); 15] = [
    ("Cargo.lock", &["source ="]),
    (".cargo/config.toml", &["registry =", "index =", "replace-with ="]),
    ("package-lock.json", &["\"resolved\":"]),
    ("npm-shrinkwrap.json", &["\"resolved\":"]),
    ("yarn.lock", &["resolved "]),
    ("pnpm-lock.yaml", &["tarball:"]),
    (".npmrc", &["registry="]),
    (".yarnrc.yml", &["npmRegistryServer:"]),
    ("uv.lock", &["registry =", "url ="]),
    ("poetry.lock", &["url ="]),
    ("pyproject.toml", &["url =", "index-url =", "default-index ="]),
    ("pip.conf", &["index-url", "extra-index-url"]),
    ("requirements.txt", &["--index-url", "--extra-index-url", "-i "]),
    ("Gemfile.lock", &["remote:"]),
    ("go.env", &["GOPROXY="]),
];

/// The files that [`registries`] reads.
pub const REGISTRY_FILES: [&str; 15] = {
    let mut names = [""; 15];
    let mut at = 0;
    while at < 15 {
        names[at] = FILES[at].0;
        at += 1;
    }
    names
};

/// The hosts of the registries that one of these files names.
pub fn registries(file: &str, text: &str) -> Vec<String> {
    let Some((_, keys)) = FILES.iter().find(|(name, _)| *name == file) else { return Vec::new() };
    let mut hosts = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let values = keys.iter().filter_map(|key| Some(&line[line.find(key)? + key.len()..]));
        for value in values {
            // `registry+https://…`, `"https://…"`, and lists with commas or bars.
            for word in value.split([' ', ',', '|', '"', '\'', '+']).filter(|word| word.contains("://")) {
                hosts.extend(host_of(word));
            }
        }
    }
    hosts.sort();
    hosts.dedup();
    hosts
}
