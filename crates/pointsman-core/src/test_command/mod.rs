//! Detection of the command that tests a repository, from the files that are committed.
//!
//! CI runs in a clean checkout, so a command has to install what it needs first (`npm ci && npm test`), and only committed
//! files count. [`wanted`] names the files whose text matters; [`detect`] decides. `ecosystem` has the rules of each
//! language.
//!
//! A script or target that the project itself calls its tests (`ci.sh`, `make test`, `just test`) is the whole answer: the
//! authors know best. Without one, every ecosystem that is found is tested, one after the other.

mod ecosystem;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// The most test files whose text is read to tell pytest from unittest.
const TEST_FILES: usize = 20;

/// Scripts that a project is tested with by their names alone, the best first.
const SCRIPTS: [&str; 6] = ["ci.sh", ".ci/run", "scripts/ci", "script/ci", "bin/ci", "ci/run.sh"];

/// Targets of make and recipes of just that test everything, the best first.
const TARGETS: [&str; 3] = ["ci", "test", "check"];

/// Files at the top of a project whose text decides.
const TEXTS: [&str; 22] = [
    "package.json",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Justfile",
    ".justfile",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "setup.py",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-test.txt",
    "dev-requirements.txt",
    "test-requirements.txt",
    "Pipfile",
    "composer.json",
    "Rakefile",
    "rakefile",
    "Gemfile",
    ".rspec",
];

/// A file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedFile {
    /// Its path from the top, with `/`.
    pub path: String,
    pub executable: bool,
}

/// The files of a commit, and the text of those that [`wanted`] named.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub files: Vec<CommittedFile>,
    pub texts: BTreeMap<String, String>,
}

/// A command that tests a project or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCommand {
    /// The words of the command, for a shell.
    pub line: String,
    /// The file that gave it away.
    pub because: String,
}

/// The result of the detection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detected {
    /// Run one after the other, each only if the one before passed.
    pub used: Vec<TestCommand>,
    /// Found as well, and covered by a script or a target of the project's own.
    pub covered: Vec<TestCommand>,
    /// A file by which the forge tests every push by itself.
    pub forge_ci: Option<String>,
}

impl Detected {
    /// The command as a list of words; a shell joins several.
    pub fn argv(&self) -> Option<Vec<String>> {
        let [only] = self.used.as_slice() else {
            let lines: Vec<&str> = self.used.iter().map(|command| command.line.as_str()).collect();
            return (!lines.is_empty()).then(|| shell(&lines.join(" && ")));
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || " ./_:=-".contains(c);
        match only.line.chars().all(plain) {
            true => Some(only.line.split(' ').map(str::to_owned).collect()),
            false => Some(shell(&only.line)),
        }
    }
}

fn shell(line: &str) -> Vec<String> {
    vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()]
}

/// The files whose text decides: those of the top, of its directories, and a few tests in Python.
pub fn wanted(files: &[CommittedFile]) -> Vec<String> {
    let depth = |path: &str| path.matches('/').count();
    let named = files.iter().filter(|file| depth(&file.path) < 2 && TEXTS.contains(&name(&file.path)));
    let tests = files.iter().filter(|file| ecosystem::is_python_test(&file.path)).take(TEST_FILES);
    named.chain(tests).map(|file| file.path.clone()).collect()
}

/// Finds the commands that test a project.
pub fn detect(tree: &Tree) -> Detected {
    let top = Project { tree, dir: "" };
    let forge_ci = forge_ci(tree);
    let languages = match ecosystem::all(&top) {
        found if found.is_empty() => below(tree),
        found => found,
    };
    match entry_point(&top) {
        Some(command) => Detected { used: vec![command], covered: languages, forge_ci },
        None => Detected { used: languages, covered: Vec::new(), forge_ci },
    }
}

/// Looks one directory down, for a repository of several projects without anything at its top.
fn below(tree: &Tree) -> Vec<TestCommand> {
    let directory = |file: &CommittedFile| file.path.split_once('/').map(|(dir, _)| dir.to_owned());
    let dirs: std::collections::BTreeSet<String> = tree.files.iter().filter_map(directory).collect();
    // A name that a shell would read as more than a name is left to a person.
    let plain = |dir: &&String| {
        !dir.starts_with(['.', '-']) && dir.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let in_dir = |dir: &String| {
        let project = Project { tree, dir };
        let own = entry_point(&project).map_or_else(|| ecosystem::all(&project), |command| vec![command]);
        let command = |found: TestCommand| TestCommand {
            line: format!("(cd {dir} && {})", found.line),
            because: format!("{dir}/{}", found.because),
        };
        own.into_iter().map(command).collect::<Vec<_>>()
    };
    dirs.iter().filter(plain).flat_map(in_dir).collect()
}

/// The project's own script or target.
fn entry_point(project: &Project<'_>) -> Option<TestCommand> {
    for script in SCRIPTS {
        if let Some(file) = project.file(script) {
            let line = if file.executable { format!("./{script}") } else { format!("sh ./{script}") };
            return Some(TestCommand { line, because: script.to_owned() });
        }
    }
    let tools: [(&str, &[&str], Lists); 2] = [
        ("just", &["justfile", "Justfile", ".justfile"], has_recipe),
        ("make", &["GNUmakefile", "makefile", "Makefile"], has_target),
    ];
    for (tool, names, lists) in tools {
        let Some((name, text)) = names.iter().find_map(|name| Some((*name, project.text(name)?))) else {
            continue;
        };
        if let Some(target) = TARGETS.iter().find(|target| lists(text, target)) {
            return Some(TestCommand { line: format!("{tool} {target}"), because: name.to_owned() });
        }
    }
    None
}

/// Whether the text of a file has a target or recipe of a name.
type Lists = fn(&str, &str) -> bool;

fn has_target(makefile: &str, target: &str) -> bool {
    let names = |line: &str| {
        let (names, rest) = line.split_once(':')?;
        // `test := 1` sets a variable.
        (!rest.starts_with('=') && !rest.starts_with(":=") && !names.starts_with(['\t', '.', '#']))
            .then(|| names.split_whitespace().any(|name| name == target))
    };
    makefile.lines().any(|line| names(line) == Some(true))
}

fn has_recipe(justfile: &str, recipe: &str) -> bool {
    let head = |line: &str| {
        let (head, rest) = line.split_once(':')?;
        let name = head.trim_start_matches('@').split_whitespace().next()?;
        // A recipe with parameters that have no default cannot be run without them.
        let runs = head.split_whitespace().skip(1).all(|p| p.contains('=') || p.starts_with('*'));
        (!rest.starts_with('=') && !line.starts_with([' ', '\t', '#'])).then_some(name == recipe && runs)
    };
    justfile.lines().any(|line| head(line) == Some(true))
}

/// The file by which GitHub, Forgejo or Woodpecker tests every push.
fn forge_ci(tree: &Tree) -> Option<String> {
    let is_workflow = |path: &str| {
        let yaml = path.ends_with(".yml") || path.ends_with(".yaml");
        let dirs = [".github/workflows/", ".forgejo/workflows/", ".gitea/workflows/", ".woodpecker/"];
        yaml && (path == ".woodpecker.yml"
            || path == ".woodpecker.yaml"
            || dirs.iter().any(|dir| path.strip_prefix(dir).is_some_and(|rest| !rest.contains('/'))))
    };
    tree.files.iter().map(|file| &file.path).find(|path| is_workflow(path)).cloned()
}

/// The files of a directory that may be a project.
struct Project<'t> {
    tree: &'t Tree,
    /// The directory from the top of the tree; empty for the top itself.
    dir: &'t str,
}

impl<'t> Project<'t> {
    fn path(&self, name: &str) -> String {
        if self.dir.is_empty() { name.to_owned() } else { format!("{}/{name}", self.dir) }
    }

    fn file(&self, name: &str) -> Option<&'t CommittedFile> {
        let path = self.path(name);
        self.tree.files.iter().find(|file| file.path == path)
    }

    fn has(&self, name: &str) -> bool {
        self.file(name).is_some()
    }

    fn text(&self, name: &str) -> Option<&'t str> {
        self.tree.texts.get(&self.path(name)).map(String::as_str)
    }

    /// The first of these names that is there.
    fn first(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// All paths below the directory, from there.
    fn paths(&self) -> impl Iterator<Item = &'t str> {
        let prefix = if self.dir.is_empty() { String::new() } else { format!("{}/", self.dir) };
        self.tree.files.iter().filter_map(move |file| file.path.strip_prefix(&prefix))
    }
}

fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
