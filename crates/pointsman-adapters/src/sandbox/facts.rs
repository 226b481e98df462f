//! A look at the machine, for plans.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pointsman_core::sandbox::{
    Credential, GO_RELEASES, MachineFacts, PNPM_HOME, PNPM_WRITES, ProgramDir, ProgramLink, SystemEntry,
    installation_of, is_go_release, is_hidden_among_programs, may_have_settings, shows_etc, system_paths,
    system_settings, tool_roots,
};

/// The most entries of one directory of programs that are looked at.
const ENTRIES: usize = 10_000;
/// Credentials are looked for so many directories below a place that holds programs: `~/.nvm/versions/node/v20/etc/npmrc`.
const DEPTH: usize = 4;
/// The most directories that are looked into for one place.
const DIRS: usize = 1000;

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
    let roots = tool_roots(home.as_deref(), named).into_iter();
    let roots: Vec<PathBuf> =
        roots.chain(go_releases(home.as_deref())).filter(|root| root.is_dir()).collect();
    let homes: Vec<&Path> = home.iter().chain(&real_home).map(PathBuf::as_path).collect();
    let dirs = dirs.into_iter().filter(|dir| dir.is_dir());
    let mut path: Vec<ProgramDir> = dirs.map(|dir| program_dir(dir, &homes)).collect();
    let links = home.as_deref().map(|home| spread(&home.join(PNPM_HOME), &mut path)).unwrap_or_default();
    let mut facts =
        MachineFacts { home, real_home, system: system(), path, links, roots, ..MachineFacts::default() };
    let places = facts.program_places();
    let system = system_settings().map(Path::to_owned);
    facts.credentials = places.into_iter().chain(system).flat_map(|dir| credentials_below(&dir)).collect();
    facts
}

/// Shows what is in a directory instead of the directory itself, in which a tool makes others: it could not in one that is only
/// shown for reading. Answers its links.
fn spread(dir: &Path, path: &mut Vec<ProgramDir>) -> Vec<ProgramLink> {
    let mut shown = false;
    for programs in path.iter_mut() {
        let places = programs.targets.len();
        programs.targets.retain(|target| target != dir);
        shown |= programs.path == dir || programs.targets.len() < places;
    }
    let mut links = Vec::new();
    if shown {
        let others = path.iter().filter(|programs| programs.path == dir);
        let others: Vec<PathBuf> = others.flat_map(|programs| programs.targets.clone()).collect();
        path.retain(|programs| programs.path != dir);
        let names = names_in(dir).into_iter().filter(|name| name != PNPM_WRITES);
        for entry in names.map(|name| dir.join(name)) {
            match fs::read_link(&entry) {
                Ok(target) => links.push(ProgramLink { path: entry, target }),
                Err(_) => path.push(ProgramDir { path: entry, targets: Vec::new() }),
            }
        }
        path.extend(others.into_iter().map(|place| ProgramDir { path: place, targets: Vec::new() }));
    }
    links
}

/// The releases of Go that are installed side by side below a home.
fn go_releases(home: Option<&Path>) -> Vec<PathBuf> {
    let Some(dir) = home.map(|home| home.join(GO_RELEASES)) else { return Vec::new() };
    names_in(&dir).into_iter().filter(|name| is_go_release(name)).map(|name| dir.join(name)).collect()
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

/// Files and directories below a place that holds programs, or that is shown with it, that are not for those inside.
pub fn credentials_below(place: &Path) -> Vec<Credential> {
    let mut found = Vec::new();
    let mut dirs = VecDeque::from([(place.to_owned(), DEPTH)]);
    for _ in 0..DIRS {
        let Some((dir, depth)) = dirs.pop_front() else { break };
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten().take(ENTRIES) {
            // The directory itself tells the kind of an entry. Only the few with a telling name are looked at.
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            let path = entry.path();
            if kind.is_symlink() {
                if !is_hidden_among_programs(&name, true) && !is_hidden_among_programs(&name, false) {
                    continue;
                }
                // Nothing can be put in place of a link. What it leads to is hidden if it is shown at all.
                let Some(target) = path.canonicalize().ok() else { continue };
                let is_dir = target.is_dir();
                if is_hidden_among_programs(&name, is_dir) {
                    found.push(Credential { is_dir, path: target });
                }
                continue;
            }
            let is_dir = kind.is_dir();
            // A program may be called `credentials` as well.
            let is_data = || is_dir || entry.metadata().is_ok_and(|meta| meta.mode() & 0o111 == 0);
            if is_hidden_among_programs(&name, is_dir) && is_data() {
                found.push(Credential { is_dir, path });
            } else if is_dir && depth > 0 && may_have_settings(&name) {
                dirs.push_back((path, depth - 1));
            }
        }
    }
    found
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

    use pointsman_core::sandbox::ProgramLink;

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
        // Settings of a tool deep in its installation, and a link to what is not shown anyway.
        for file in [
            ".nvm/versions/node/v20/etc/npmrc",
            ".nvm/versions/node/v20/lib/x/npmrc",
            "sdk/keys/id_rsa",
            "npm-token",
        ] {
            fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
            fs::write(home.join(file), "secret").unwrap();
        }
        fs::create_dir_all(home.join(".nvm/.git")).unwrap();
        fs::create_dir_all(home.join("sdk/go1.22")).unwrap();
        symlink(home.join("npm-token"), home.join(".nvm/.npmrc")).unwrap();
        // A tool that makes directories beside its programs.
        let pnpm = home.join(".local/share/pnpm");
        for dir in ["store", "global"] {
            fs::create_dir_all(pnpm.join(dir)).unwrap();
        }
        fs::write(pnpm.join("node"), "").unwrap();
        symlink("global/pnpm", pnpm.join("pnpm")).unwrap();
        fs::create_dir_all(home.join(".local/share/tool/.aws")).unwrap();
        fs::create_dir_all(home.join(".cargo/bin")).unwrap();
        fs::write(home.join(".cargo/bin/cargo"), "").unwrap();
        fs::write(home.join(".cargo/credentials.toml"), "secret").unwrap();
        symlink(home.join(".cargo/bin/cargo"), home.join(".local/bin/cargo")).unwrap();
        symlink(home.join(".local/share/tool/bin/tool"), home.join(".local/bin/tool")).unwrap();
        let path: OsString =
            format!("{}:relative:/nowhere:{}", home.join(".local/bin").display(), pnpm.display()).into();
        let variable = |name: &str| match name {
            "HOME" => Some(home.clone().into_os_string()),
            "PATH" => Some(path.clone()),
            _ => None,
        };
        let facts = look(variable);
        let mut dirs: Vec<_> = facts.path.iter().map(|dir| dir.path.clone()).collect();
        dirs.sort();
        assert_eq!(dirs, [home.join(".local/bin"), pnpm.join("global"), pnpm.join("node")]);
        let link = ProgramLink { path: pnpm.join("pnpm"), target: "global/pnpm".into() };
        assert_eq!(facts.links, [link]);
        assert_eq!(facts.path[0].targets, [home.join(".cargo/bin"), home.join(".local/share/tool")]);
        let below = |names: &[&str]| names.iter().map(|name| home.join(name)).collect::<Vec<_>>();
        assert_eq!(facts.roots, below(&[".rustup", ".cargo/bin", ".nvm", "sdk/go1.22"]));
        let of_home = facts.credentials.iter().filter(|found| found.path.starts_with(&home));
        let mut hidden: Vec<_> = of_home.map(|found| (found.path.clone(), found.is_dir)).collect();
        hidden.sort();
        assert_eq!(
            hidden,
            [
                (home.join(".local/share/tool/.aws"), true),
                (home.join(".nvm/.git"), true),
                (home.join(".nvm/versions/node/v20/etc/npmrc"), false),
                (home.join(".rustup/.netrc"), false),
                (home.join("npm-token"), false),
            ]
        );
        assert!(facts.system.iter().any(|entry| entry.path == Path::new("/usr")));
        assert!(!facts.system.iter().any(|entry| entry.path == Path::new("/etc/shadow")));
        let tool = home.join(".local/bin/tool");
        let places = places_of(&facts, Some(&tool), &["--flag".to_owned()], Path::new("/checkout"));
        assert_eq!(places, [tool.clone(), home.join(".local/share/tool")]);
        assert!(places_of(&facts, Some(&tool), &[], &home).is_empty(), "a branch chose where it leads");
    }
}
