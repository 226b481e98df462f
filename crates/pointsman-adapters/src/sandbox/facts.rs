//! A look at the machine, for plans.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pointsman_core::config::MachineSandbox;
use pointsman_core::sandbox::{
    Credential, MachineFacts, ProgramDir, SystemEntry, holds_credentials, installation_of, shows_etc,
    system_paths, tool_roots,
};

/// The most entries of one directory of programs that are looked at.
const ENTRIES: usize = 10_000;

/// Looks at the system, the directories of `PATH` and the toolchains below the home. `variable` is the environment of
/// what will run inside.
pub fn look(variable: impl Fn(&str) -> Option<OsString>) -> MachineFacts {
    let named = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = named("HOME");
    let real_home =
        home.as_deref().and_then(|home| home.canonicalize().ok()).filter(|real| Some(real) != home.as_ref());
    let path = variable("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    dirs.dedup();
    let roots: Vec<PathBuf> =
        tool_roots(home.as_deref(), named).into_iter().filter(|root| root.is_dir()).collect();
    let dirs: Vec<PathBuf> = dirs.into_iter().filter(|dir| dir.is_dir()).collect();
    let credentials = dirs.iter().chain(&roots).flat_map(|dir| credentials_in(dir)).collect();
    let path = dirs.into_iter().map(program_dir).collect();
    let operator = MachineSandbox::default();
    MachineFacts { home, real_home, system: system(), path, roots, credentials, operator }
}

/// The places of a command's program and of the files that its words name.
pub fn places_of(program: Option<&Path>, words: &[String]) -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(program) = program {
        places.push(program.to_owned());
        // A link into a package needs the package.
        if let Ok(real) = program.canonicalize()
            && real != program
        {
            places.extend(installation_of(&real));
        }
    }
    let files = words.iter().map(Path::new).filter(|word| word.is_absolute() && word.is_file());
    places.extend(files.map(Path::to_owned));
    places
}

fn system() -> Vec<SystemEntry> {
    let mut entries = Vec::new();
    for path in system_paths().filter(|path| path.exists()) {
        entries.push(SystemEntry { path: path.to_owned(), link: fs::read_link(path).ok() });
    }
    let names: Vec<String> = names_in(Path::new("/etc"));
    let etc = shows_etc(names.iter().map(String::as_str));
    let etc = etc.iter().map(|name| Path::new("/etc").join(name)).filter(|path| path.exists());
    // Links of /etc lead anywhere; what they lead to is shown in their place.
    entries.extend(etc.map(|path| SystemEntry { path, link: None }));
    entries
}

fn program_dir(path: PathBuf) -> ProgramDir {
    // The system's own directories link to each other; only what an administrator put there may lead elsewhere.
    let of_system = ["/usr", "/bin", "/sbin"].iter().any(|dir| path.starts_with(dir));
    if of_system && !path.starts_with("/usr/local") {
        return ProgramDir { path, targets: Vec::new() };
    }
    let links = names_in(&path).into_iter().map(|name| path.join(name)).filter(|entry| entry.is_symlink());
    let mut targets: Vec<PathBuf> = links.filter_map(|link| link.canonicalize().ok()).collect();
    let real = path.canonicalize().unwrap_or_else(|_| path.clone());
    // The system is shown anyway.
    targets.retain(|target| !target.starts_with(&real) && !target.starts_with("/usr"));
    targets.sort();
    targets.dedup();
    ProgramDir { path, targets }
}

fn credentials_in(dir: &Path) -> Vec<Credential> {
    let names = names_in(dir).into_iter().filter(|name| holds_credentials(name));
    // A program may be called `credentials` as well.
    let is_data = |path: &Path| path.metadata().is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 == 0);
    names.map(|name| Credential { path: dir.join(name) }).filter(|found| is_data(&found.path)).collect()
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(ENTRIES);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::{look, places_of};

    #[test]
    fn programs_links_toolchains_and_credentials_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for path in [".local/bin", ".local/share/tool/bin", ".rustup"] {
            fs::create_dir_all(home.join(path)).unwrap();
        }
        fs::write(home.join(".local/share/tool/bin/tool"), "").unwrap();
        fs::write(home.join(".rustup/.netrc"), "secret").unwrap();
        symlink(home.join(".local/share/tool/bin/tool"), home.join(".local/bin/tool")).unwrap();
        let path: OsString = format!("{}:relative:/nowhere", home.join(".local/bin").display()).into();
        let variable = |name: &str| match name {
            "HOME" => Some(home.clone().into_os_string()),
            "PATH" => Some(path.clone()),
            _ => None,
        };
        let facts = look(variable);
        assert_eq!(facts.path.len(), 1);
        assert_eq!(facts.path[0].targets, [home.join(".local/share/tool/bin/tool")]);
        assert_eq!(facts.roots, [home.join(".rustup")]);
        assert_eq!(facts.credentials[0].path, home.join(".rustup/.netrc"));
        assert!(facts.system.iter().any(|entry| entry.path == Path::new("/usr")));
        assert!(!facts.system.iter().any(|entry| entry.path == Path::new("/etc/shadow")));
        let places = places_of(Some(&home.join(".local/bin/tool")), &["--flag".to_owned()]);
        assert_eq!(places, [home.join(".local/bin/tool"), home.join(".local/share/tool")]);
    }
}
