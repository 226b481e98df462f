//! A unified diff as a page shows it: files, hunks, and lines with their numbers on both sides.

use super::comments::range;
use crate::text::clean_line;

/// The most lines of one file that are shown.
const FILE_LINES: usize = 3_000;
/// The most lines of a whole diff that are shown.
const LINES: usize = 20_000;
/// The most characters of one line that are shown.
const LINE_CHARS: usize = 2_000;
/// The longest name of a file that is shown.
const PATH_CHARS: usize = 1_000;

/// One file of a diff.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDiff {
    pub path: String,
    /// Its former path, if it was renamed.
    pub renamed_from: Option<String>,
    pub kind: FileKind,
    pub added: u64,
    pub removed: u64,
    pub hunks: Vec<HunkLines>,
    /// Lines that are there and not shown.
    pub left_out: u64,
}

/// The kind of a file's change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    #[default]
    Changed,
    New,
    Deleted,
    /// Its content is no text.
    Binary,
}

/// Lines that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HunkLines {
    /// The line that begins with `@@`.
    pub header: String,
    pub lines: Vec<DiffLine>,
}

/// One line, with its number on each side where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    pub old: Option<u64>,
    pub new: Option<u64>,
    pub text: String,
}

#[derive(Default)]
struct Reader {
    files: Vec<FileDiff>,
    shown: usize,
    shown_of_file: usize,
    old: u64,
    new: u64,
    in_hunk: bool,
}

/// Reads what `git diff` prints. Text that is none of it is passed over.
pub fn parse(diff: &str) -> Vec<FileDiff> {
    let mut reader = Reader::default();
    for line in diff.lines() {
        reader.read(line);
    }
    reader.files
}

impl Reader {
    fn read(&mut self, line: &str) {
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.in_hunk = false;
            self.shown_of_file = 0;
            // For a file without hunks there is nothing better; both names are the same then.
            let path = names.get(names.len() / 2 + 1..).unwrap_or(names);
            self.files.push(FileDiff { path: name(path), ..FileDiff::default() });
            return;
        }
        let Some(file) = self.files.last_mut() else { return };
        if let Some(rest) = line.strip_prefix("@@ ") {
            let (Some((old, _)), Some((new, _))) = (range(rest, '-'), range(rest, '+')) else { return };
            (self.old, self.new, self.in_hunk) = (old, new, true);
            if self.shown < LINES && self.shown_of_file < FILE_LINES {
                let header = clean_line(line, LINE_CHARS);
                file.hunks.push(HunkLines { header, lines: Vec::new() });
            }
            return;
        }
        if !self.in_hunk {
            if let Some(path) = line.strip_prefix("+++ ").filter(|path| *path != "/dev/null") {
                file.path = name(path);
            } else if let Some(path) = line.strip_prefix("--- ").filter(|path| *path != "/dev/null") {
                file.path = name(path);
            } else if let Some(path) = line.strip_prefix("rename from ") {
                file.renamed_from = Some(name(path));
            } else if line.starts_with("new file mode ") {
                file.kind = FileKind::New;
            } else if line.starts_with("deleted file mode ") {
                file.kind = FileKind::Deleted;
            } else if line.starts_with("Binary files ") || line == "GIT binary patch" {
                file.kind = FileKind::Binary;
            }
            return;
        }
        let (old, new, text) = match line.chars().next() {
            Some('+') => (None, Some(self.new), &line[1..]),
            Some('-') => (Some(self.old), None, &line[1..]),
            Some(' ') => (Some(self.old), Some(self.new), &line[1..]),
            None => (Some(self.old), Some(self.new), ""),
            // A file that ends without the end of a line.
            Some(_) => return,
        };
        self.old += u64::from(old.is_some());
        self.new += u64::from(new.is_some());
        file.added += u64::from(old.is_none());
        file.removed += u64::from(new.is_none());
        if self.shown >= LINES || self.shown_of_file >= FILE_LINES {
            file.left_out += 1;
            return;
        }
        self.shown += 1;
        self.shown_of_file += 1;
        if let Some(hunk) = file.hunks.last_mut() {
            hunk.lines.push(DiffLine { old, new, text: shown(text) });
        }
    }
}

/// A line without characters that a person does not see, cut where nobody reads on. Its blanks are those of the code.
fn shown(text: &str) -> String {
    let clean: String =
        text.replace('\t', "    ").chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let visible = crate::text::visible(&clean);
    match visible.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", &visible[..end]),
        None => visible,
    }
}

/// A path without the letter before it and without the tab that git puts behind names with blanks.
fn name(path: &str) -> String {
    let path = path.trim_end_matches('\t');
    let path = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
    clean_line(path, PATH_CHARS)
}

#[cfg(test)]
mod tests {
    use super::{FILE_LINES, FileKind, LINE_CHARS, parse};

    const DIFF: &str = "\
diff --git a/src/cart.rs b/src/cart.rs
index 111..222 100644
--- a/src/cart.rs
+++ b/src/cart.rs
@@ -1,3 +1,4 @@ impl Cart {
 one
-two
+TWO
+and a half
 three
@@ -10 +11 @@
-ten
+--- ten
\\ No newline at end of file
diff --git a/new file.txt b/new file.txt
new file mode 100644
--- /dev/null
+++ b/new file.txt\t
@@ -0,0 +1 @@
+hello
diff --git a/logo.png b/logo.png
deleted file mode 100644
Binary files a/logo.png and /dev/null differ
";

    #[test]
    fn lines_have_their_numbers_on_both_sides() {
        let files = parse(DIFF);
        let names: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.kind)).collect();
        assert_eq!(
            names,
            [
                ("src/cart.rs", FileKind::Changed),
                ("new file.txt", FileKind::New),
                ("logo.png", FileKind::Binary)
            ]
        );
        let cart = &files[0];
        assert_eq!((cart.added, cart.removed, cart.hunks.len()), (3, 2, 2));
        let first: Vec<_> = cart.hunks[0].lines.iter().map(|l| (l.old, l.new, l.text.as_str())).collect();
        assert_eq!(
            first,
            [
                (Some(1), Some(1), "one"),
                (Some(2), None, "two"),
                (None, Some(2), "TWO"),
                (None, Some(3), "and a half"),
                (Some(3), Some(4), "three"),
            ]
        );
        // A removed line that looks like a header is one all the same.
        assert_eq!(cart.hunks[1].lines[1].text, "--- ten");
        assert_eq!(cart.hunks[1].lines[1].new, Some(11));
    }

    #[test]
    fn endless_lines_and_files_are_cut_and_counted() {
        let many: String = (0..FILE_LINES + 7).map(|_| "+x\n").collect();
        let long = "y".repeat(1 << 20);
        let diff =
            format!("diff --git a/a b/a\n@@ -0,0 +1 @@\n+{long}\ndiff --git a/b b/b\n@@ -0,0 +1 @@\n{many}");
        let files = parse(&diff);
        assert_eq!(files[0].hunks[0].lines[0].text.chars().count(), LINE_CHARS + 1);
        assert_eq!((files[1].added, files[1].left_out), (FILE_LINES as u64 + 7, 7));
    }

    #[test]
    fn what_is_no_diff_is_passed_over() {
        assert!(parse("").is_empty());
        assert!(parse("1:  abc = 1:  def A commit\n").is_empty());
        let odd = parse("diff --git a/a b/a\n@@ nonsense\n+x\n@@ -1 +1 @@\n+\u{1b}[31mred\u{202e}\n");
        let text = &odd[0].hunks[0].lines[0].text;
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    }
}
