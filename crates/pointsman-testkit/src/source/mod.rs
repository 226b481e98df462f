//! The workspace's own files, as rules look at them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::repository::command;

pub mod tokens;

/// A file of the workspace.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// From the workspace's root, with `/`.
    pub path: String,
    /// Its text; a file that is not text has none.
    pub text: String,
}

impl SourceFile {
    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it is Markdown.
    pub fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// Whether it is only ever compiled for tests: it lies in `tests/`, is called `tests.rs`, or is the testkit.
    pub fn is_for_tests(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let folders = self.path.strip_suffix(name).unwrap_or_default();
        name == "tests.rs"
            || folders.contains("/tests/")
            || self.path.starts_with("crates/pointsman-testkit/")
    }

    /// The part of a Rust file that ships: everything before the test module at its end.
    pub fn shipped_text(&self) -> &str {
        if self.is_for_tests() {
            return "";
        }
        self.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
    }

    /// The same without comments.
    pub fn shipped_code(&self) -> String {
        let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
        self.shipped_text().lines().map(code).collect::<Vec<_>>().join("\n")
    }
}

/// The Rust files of which something ships. A module behind `#[cfg(test)]` does not, wherever its file lies.
pub fn shipped_files() -> Vec<SourceFile> {
    let files = files();
    let mut tests = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        let inside = match name {
            "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
            _ => format!("{folder}/{}", name.trim_end_matches(".rs")),
        };
        for after in file.text.split("#[cfg(test)]\n").skip(1) {
            let line = after.lines().next().unwrap_or_default();
            let module = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
            let module = module.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
            tests.extend(module.map(|module| format!("{inside}/{module}")));
        }
    }
    let is_test = |path: &str| {
        tests.iter().any(|test| path == format!("{test}.rs") || path.starts_with(&format!("{test}/")))
    };
    files.into_iter().filter(|f| f.is_rust() && !f.shipped_text().is_empty() && !is_test(&f.path)).collect()
}

/// The workspace's root.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("this crate lies two folders below the workspace's root")
}

/// Every file of the workspace that git tracks or would track, in order of its path.
///
/// # Panics
///
/// If the workspace is not a git checkout: then nobody can tell its files from others'.
pub fn files() -> Vec<SourceFile> {
    let root = root();
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = command(&root, &arguments)
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("our own files have plain names");
    let mut files: Vec<SourceFile> = names
        .split('\0')
        .filter(|path| root.join(path).is_file())
        .map(|path| {
            let bytes = fs::read(root.join(path)).unwrap_or_default();
            SourceFile { path: path.to_owned(), text: String::from_utf8(bytes).unwrap_or_default() }
        })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    files
}

#[cfg(test)]
mod tests {
    use super::SourceFile;

    #[test]
    fn what_ships_is_neither_comment_nor_test() {
        let file = |path: &str| SourceFile {
            path: path.to_owned(),
            text: "//! std::fs\nfn a() {} // std::fs\n#[cfg(test)]\nmod tests {\n use std::fs;\n}\n"
                .to_owned(),
        };
        let code = file("crates/pointsman/src/a.rs").shipped_code();
        assert!(code.contains("fn a() {}") && !code.contains("std::fs"), "{code}");
        for path in ["crates/a/src/b/tests.rs", "crates/a/src/b/tests/c.rs", "crates/a/tests/all/main.rs"] {
            assert_eq!(file(path).shipped_code(), "", "{path}");
        }
    }
}
