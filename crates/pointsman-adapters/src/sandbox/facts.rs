//! A look at the machine, for plans.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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
    let homes: Vec<&Path> = home.iter().chain(&real_home).map(PathBuf::as_path).collect();
    let dirs = dirs.into_iter().filter(|dir| dir.is_dir());
    let path: Vec<ProgramDir> = dirs.map(|dir| program_dir(dir, &homes)).collect();
    let mut facts =
        MachineFacts { home, real_home, system: system(), path, roots, ..MachineFacts::default() };
    facts.credentials = facts.program_places().iter().flat_map(|dir| credentials_in(dir)).collect();
    facts
}

/// The places of a command's program and of the files that its words name. A program in `dir`, where it will run, needs none: a
/// branch or an agent put it there, and a link in place of it leads wherever they like.
pub fn places_of(facts: &MachineFacts, program: Option<&Path>, words: &[String], dir: &Path) -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(program) = program.filter(|program| !program.starts_with(dir)) {
        places.push(program.to_owned());
        // A link into a package needs the package.
        if let Ok(real) = program.canonicalize()
            && real != program
        {
            let homes: Vec<&Path> = facts.home.iter().chain(&facts.real_home).map(PathBuf::as_path).collect();
            places.extend(installation_of(&real, &homes).into_iter().filter(|place| place.exists()));
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

fn program_dir(path: PathBuf, homes: &[&Path]) -> ProgramDir {
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
    let mut targets: Vec<PathBuf> = targets.iter().flat_map(|file| installation_of(file, homes)).collect();
    targets.sort();
    targets.dedup();
    targets.retain(|place| place.exists());
    ProgramDir { path, targets }
}

fn credentials_in(dir: &Path) -> Vec<Credential> {
    let names = names_in(dir).into_iter().filter(|name| holds_credentials(name));
    // A program may be called `credentials` as well. A link is a file here: what it leads to is not shown through it.
    let found = |path: PathBuf| {
        let meta = path.metadata().ok()?;
        let is_data = meta.is_dir() || meta.mode() & 0o111 == 0;
        is_data.then_some(Credential { is_dir: meta.is_dir(), path })
    };
    names.filter_map(|name| found(dir.join(name))).collect()
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
        fs::create_dir_all(home.join(".local/share/tool/.aws")).unwrap();
        fs::create_dir_all(home.join(".cargo/bin")).unwrap();
        fs::write(home.join(".cargo/bin/cargo"), "").unwrap();
        fs::write(home.join(".cargo/credentials.toml"), "secret").unwrap();
        symlink(home.join(".cargo/bin/cargo"), home.join(".local/bin/cargo")).unwrap();
        symlink(home.join(".local/share/tool/bin/tool"), home.join(".local/bin/tool")).unwrap();
        let path: OsString = format!("{}:relative:/nowhere", home.join(".local/bin").display()).into();
        let variable = |name: &str| match name {
            "HOME" => Some(home.clone().into_os_string()),
            "PATH" => Some(path.clone()),
            _ => None,
        };
        let facts = look(variable);
        assert_eq!(facts.path.len(), 1);
        assert_eq!(facts.path[0].targets, [home.join(".cargo/bin"), home.join(".local/share/tool")]);
        assert_eq!(facts.roots, [home.join(".rustup"), home.join(".cargo/bin")]);
        let hidden: Vec<_> =
            facts.credentials.iter().map(|found| (found.path.clone(), found.is_dir)).collect();
        assert_eq!(
            hidden,
            [(home.join(".local/share/tool/.aws"), true), (home.join(".rustup/.netrc"), false)]
        );
        assert!(facts.system.iter().any(|entry| entry.path == Path::new("/usr")));
        assert!(!facts.system.iter().any(|entry| entry.path == Path::new("/etc/shadow")));
        let tool = home.join(".local/bin/tool");
        let places = places_of(&facts, Some(&tool), &["--flag".to_owned()], Path::new("/checkout"));
        assert_eq!(places, [tool.clone(), home.join(".local/share/tool")]);
        assert!(places_of(&facts, Some(&tool), &[], &home).is_empty(), "a branch chose where it leads");
    }
}
