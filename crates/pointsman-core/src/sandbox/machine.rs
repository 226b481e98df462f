//! The facts about a machine that a plan needs, and the rules about places that may be shown.

use std::path::{Path, PathBuf};

use crate::config::MachineSandbox;

/// Directories of the system. Each is shown as it is: a directory, or a link into another one.
const SYSTEM: [&str; 10] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu"];

/// Further places of the system that programs read.
const SYSTEM_DETAILS: [&str; 3] = ["/sys/devices/system/cpu", "/sys/fs/cgroup", "/var/lib/ca-certificates"];

/// Files and directories of `/etc` without secrets. A root's sandbox could read the others.
const ETC: [&str; 44] = [
    "alternatives",
    "bash.bashrc",
    "bash_completion",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "environment.d",
    "fonts",
    "gai.conf",
    "group",
    "host.conf",
    "hosts",
    "inputrc",
    "issue",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "magic.mime",
    "manpath.config",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "pki/ca-trust",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "profile",
    "protocols",
    "redhat-release",
    "resolv.conf",
    "services",
    "shells",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
];

/// Directories of languages in `/etc`, by how their names begin.
const ETC_PREFIXES: [&str; 5] = ["java", "python", "ghostscript", "texmf", "lisp"];

/// Variables that name where a toolchain is installed, for those inside. `CARGO_HOME` is none of them: only its programs
/// are shown, and cargo writes to the rest.
pub const TOOL_VARIABLES: [&str; 6] =
    ["RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT", "ASDF_DATA_DIR", "MISE_DATA_DIR", "GOROOT"];

/// Names of files and directories that hold credentials.
const CREDENTIALS: [&str; 20] = [
    ".aws",
    ".azure",
    ".cargo-credentials",
    ".config",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".gitconfig",
    ".kube",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".vault-token",
    ".yarnrc.yml",
    "credentials",
    "credentials.toml",
    "pip.conf",
];

/// Names of files that hold credentials or what somebody typed, as far as they lie among programs. A directory of such a name may
/// be something else, such as an environment of Python.
const CREDENTIAL_FILES: [&str; 19] = [
    ".bash_history",
    ".boto",
    ".credentials.json",
    ".curlrc",
    ".env",
    ".envrc",
    ".my.cnf",
    ".python_history",
    ".s3cfg",
    ".terraformrc",
    ".wgetrc",
    ".yarnrc",
    ".zsh_history",
    "_netrc",
    "auth.json",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "npmrc",
];

/// Repositories of installations, whose address may have a token in it.
const REPOSITORY: &str = ".git";

/// Directories of an installation that hold what its programs load, and no settings.
const LIBRARIES: [&str; 9] =
    ["node_modules", "lib", "lib32", "lib64", "share", "include", "src", "doc", "test"];

/// Places of the system in which administrators keep settings of tools. They are shown with the rest.
const SYSTEM_SETTINGS: [&str; 3] = ["/usr/etc", "/usr/local/etc", "/opt"];

/// Parts of an installation that hold programs and what they load.
const INSTALLED: [&str; 4] = ["bin", "lib", "lib64", "libexec"];

/// Directories below a home, deeper than one level, that many programs share.
const SHARED: [&str; 4] = [".local/share", ".local/lib", ".local/state", ".local/opt"];

/// The facts about a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFacts {
    pub home: Option<PathBuf>,
    /// Where the home really is, if its path has a link in it.
    pub real_home: Option<PathBuf>,
    /// What exists of [`system_paths`] and of `/etc`.
    pub system: Vec<SystemEntry>,
    /// The directories of `PATH` that exist.
    pub path: Vec<ProgramDir>,
    /// Links that are shown as links, because the directory around them is not shown.
    pub links: Vec<ProgramLink>,
    /// Roots of toolchains that exist.
    pub roots: Vec<PathBuf>,
    /// Files and directories with credentials directly inside of places that hold programs.
    pub credentials: Vec<Credential>,
    /// What the operator of the machine adds.
    pub operator: MachineSandbox,
    /// Directories of ours, such as the state directory. Nothing of them is shown, wherever they lie, except for the paths of
    /// the session or checkout itself.
    pub ours: Vec<PathBuf>,
}

/// A directory or file of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemEntry {
    pub path: PathBuf,
    /// The target, if it is a symbolic link.
    pub link: Option<PathBuf>,
}

/// A directory in which programs are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramDir {
    pub path: PathBuf,
    /// The places that the programs behind its links need, elsewhere ([`installation_of`]). They exist.
    pub targets: Vec<PathBuf>,
}

/// A link among programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramLink {
    pub path: PathBuf,
    pub target: PathBuf,
}

/// A file or directory that must not be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    pub path: PathBuf,
    pub is_dir: bool,
}

impl MachineFacts {
    /// The places that hold programs outside of the system's directories.
    pub fn program_places(&self) -> Vec<PathBuf> {
        let dirs = self.path.iter().map(|dir| dir.path.clone());
        let targets = self.path.iter().flat_map(|dir| dir.targets.iter().cloned());
        dirs.chain(targets).chain(self.roots.iter().cloned()).filter(|path| self.may_show(path)).collect()
    }

    /// Whether a place may be shown: it is not a whole home or part of the way to it, and no place of credentials.
    pub fn may_show(&self, path: &Path) -> bool {
        let mut homes = self.home.iter().chain(&self.real_home);
        // `.cargo/bin` may be shown; `.cargo` is too much, `.ssh/bin` as well.
        let is_private = |home: &PathBuf| {
            let first = path.strip_prefix(home).ok().and_then(|rest| rest.components().next());
            let guarded = first.is_some_and(|first| holds_credentials(&first.as_os_str().to_string_lossy()));
            home.starts_with(path) || guarded
        };
        path.is_absolute() && path.parent().is_some() && !homes.any(is_private)
    }
}

/// The directories of the system that are shown if they exist.
pub fn system_paths() -> impl Iterator<Item = &'static Path> {
    SYSTEM.into_iter().chain(SYSTEM_DETAILS).map(Path::new)
}

/// The entries of `/etc` to look for; `names` are those at its top.
pub fn shows_etc<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let prefixed = names.filter(|name| ETC_PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
    ETC.into_iter().chain(prefixed).map(str::to_owned).collect()
}

/// The places below a home where toolchains are installed; `variable` tells those that were moved.
pub fn tool_roots(home: Option<&Path>, variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let moved = |name: &str, usual: &str| variable(name).or_else(|| home.map(|home| home.join(usual)));
    let usual = |path: &str| home.map(|home| home.join(path));
    let roots = [
        moved("RUSTUP_HOME", ".rustup"),
        // Its other directories hold a credential, and what one session would leave for the next.
        moved("CARGO_HOME", ".cargo").map(|cargo| cargo.join("bin")),
        moved("NVM_DIR", ".nvm"),
        moved("PYENV_ROOT", ".pyenv"),
        moved("ASDF_DATA_DIR", ".asdf"),
        moved("MISE_DATA_DIR", ".local/share/mise"),
        variable("GOROOT"),
        usual(".local/share/uv"),
        usual(".local/go"),
        usual("go/bin"),
    ];
    roots.into_iter().flatten().filter(|path| path.is_absolute()).collect()
}

/// The places that have to be shown for a program to work, given the file that its link leads to: the directory of its package.
/// They need not exist.
///
/// A directory that many programs share, such as `~/.local` or `~/.cargo`, also holds what is not for those inside. Of such a
/// directory only the parts that hold programs and libraries are named.
pub fn installation_of(file: &Path, homes: &[&Path]) -> Vec<PathBuf> {
    let parts: Vec<_> = file.components().collect();
    let package = parts.iter().rposition(|part| part.as_os_str() == "node_modules");
    if let Some(at) = package {
        return vec![parts[..=at].iter().collect()];
    }
    let Some(dir) = file.parent() else { return Vec::new() };
    // `~/.local/share/pipx/venvs/tool/bin/tool` needs the libraries beside its `bin`.
    let root = if dir.ends_with("bin") { dir.parent().unwrap_or(dir) } else { dir };
    if !is_shared(root, homes) {
        return vec![root.to_owned()];
    }
    match dir == root {
        true => vec![file.to_owned()],
        false => INSTALLED.iter().map(|part| root.join(part)).collect(),
    }
}

/// Whether a directory is a home, directly below one, or one of those in which desktops and tools keep the data of all programs.
fn is_shared(dir: &Path, homes: &[&Path]) -> bool {
    homes.iter().any(|home| {
        let Ok(below) = dir.strip_prefix(home) else { return home.starts_with(dir) };
        below.components().count() < 2 || SHARED.iter().any(|shared| below == Path::new(shared))
    })
}

/// The directory below a home in which pnpm keeps its programs and, beside them, what it writes to ([`PNPM_WRITES`]).
pub const PNPM_HOME: &str = ".local/share/pnpm";

/// The directory in [`PNPM_HOME`] that pnpm makes and fills.
pub const PNPM_WRITES: &str = "store";

/// The directory below a home in which releases of Go are installed side by side, and whether a name there is one of them. People
/// keep other things there too.
pub const GO_RELEASES: &str = "sdk";

/// Whether a directory in [`GO_RELEASES`] is a release.
pub fn is_go_release(name: &str) -> bool {
    name == "gotip"
        || name.strip_prefix("go").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Places of the system that may hold credentials too.
pub fn system_settings() -> impl Iterator<Item = &'static Path> {
    SYSTEM_SETTINGS.into_iter().map(Path::new)
}

/// Whether a file or directory of this name is known to hold credentials.
pub fn holds_credentials(name: &str) -> bool {
    CREDENTIALS.contains(&name)
}

/// Whether a file or directory of this name, in a place that holds programs, is not for those inside.
pub fn is_hidden_among_programs(name: &str, is_dir: bool) -> bool {
    let listed = if is_dir { name == REPOSITORY } else { CREDENTIAL_FILES.contains(&name) };
    listed || holds_credentials(name)
}

/// Whether a directory of this name, in a place that holds programs, may have settings in it or further down.
pub fn may_have_settings(name: &str) -> bool {
    !LIBRARIES.contains(&name)
}
