//! A change as git tells it: `git diff --raw -z` for the files, `git diff -U0` for their lines.

/// All that a branch changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub files: Vec<File>,
}

/// The kind of change to a file. A renamed one is deleted and added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Added,
    Deleted,
    /// Its content, its mode or its type is another.
    Changed,
}

/// One file of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path; odd bytes are replaced.
    pub path: String,
    pub kind: Kind,
    /// Its lines that changed; none for what is not text.
    pub hunks: Vec<Hunk>,
    pub mode: Mode,
    /// Whether its content changed in a way that has no lines.
    pub is_opaque: bool,
}

/// The modes of a file in git, before and after; 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    pub before: u32,
    pub after: u32,
}

impl Mode {
    const PLAIN: u32 = 0o100_644;
    const EXECUTABLE: u32 = 0o100_755;

    /// Whether the change gives it other rights, or makes it a link, a submodule or something that nobody knows.
    pub fn is_special(self, kind: Kind) -> bool {
        match kind {
            Kind::Added => self.after != Self::PLAIN,
            Kind::Deleted => false,
            Kind::Changed => {
                self.before != self.after || !matches!(self.after, Self::PLAIN | Self::EXECUTABLE)
            }
        }
    }
}

/// Lines that gave way to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Where the new lines begin, from 1.
    pub at: u32,
    pub removed: Vec<String>,
    pub added: Vec<String>,
}

impl Change {
    /// Lines that came and lines that went.
    pub fn size(&self) -> (usize, usize) {
        let hunks = || self.files.iter().flat_map(|file| &file.hunks);
        (hunks().map(|hunk| hunk.added.len()).sum(), hunks().map(|hunk| hunk.removed.len()).sum())
    }
}

/// Puts both answers of git together; none if they do not belong together.
pub fn parse(raw: &[u8], patch: &[u8]) -> Option<Change> {
    let mut sections = sections(patch);
    let mut files = Vec::new();
    let mut fields = raw.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    while let Some(meta) = fields.next() {
        let path = String::from_utf8_lossy(fields.next()?).into_owned();
        let status = meta.rsplit(|byte| *byte == b' ').next()?.first()?;
        let kind = match status {
            b'A' => Kind::Added,
            b'D' => Kind::Deleted,
            b'M' | b'T' => Kind::Changed,
            _ => return None,
        };
        let mut hunks = hunks(sections.next()?);
        // Another type of file: the old one goes, then the new one comes.
        if *status == b'T' {
            hunks.extend(self::hunks(sections.next()?));
        }
        // An empty file that came or went has no lines either.
        let is_opaque = hunks.is_empty() && !contents_are_alike(meta);
        files.push(File { path, kind, hunks, mode: modes(meta)?, is_opaque });
    }
    sections.next().is_none().then_some(Change { files })
}

/// The modes of an entry, `:100644 100755 …`.
fn modes(meta: &[u8]) -> Option<Mode> {
    let mut fields = meta.strip_prefix(b":")?.split(|byte| *byte == b' ');
    let mut mode = || u32::from_str_radix(std::str::from_utf8(fields.next()?).ok()?, 8).ok();
    Some(Mode { before: mode()?, after: mode()? })
}

/// Whether the content of an entry is the same before and after, where nothing and an empty file are the same.
fn contents_are_alike(meta: &[u8]) -> bool {
    const EMPTY: &[u8] = b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
    let mut fields = meta.split(|byte| *byte == b' ').skip(2);
    let mut content = || {
        let object = fields.next().unwrap_or_default();
        let is_nothing = object.iter().all(|byte| *byte == b'0') || EMPTY.starts_with(object);
        if is_nothing { &b""[..] } else { object }
    };
    content() == content()
}

/// The hunks of every section of a patch, by the path after `+++ b/` or `--- a/`: for a patch whose files are known.
pub fn parse_hunks(patch: &[u8]) -> Vec<(String, Hunk)> {
    let mut found = Vec::new();
    for section in sections(patch) {
        let text = String::from_utf8_lossy(section);
        let named = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
        let Some(path) = named("+++ b/").or_else(|| named("--- a/")) else { continue };
        // Git ends a name with a blank in it by a tab.
        let path = path.trim_end_matches('\t').to_owned();
        found.extend(hunks(section).into_iter().map(|hunk| (path.clone(), hunk)));
    }
    found
}

/// The parts of a diff, one for each file, with whatever stands before the first.
pub(super) fn diff_sections(diff: &str) -> impl Iterator<Item = &str> {
    let mut starts: Vec<usize> = diff
        .match_indices("diff --git ")
        .map(|(at, _)| at)
        .filter(|at| diff[..*at].ends_with('\n'))
        .collect();
    starts.insert(0, 0);
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([diff.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| &diff[start..end]).filter(|part| !part.is_empty())
}

/// The path of a part, after `+++ b/` or `--- a/`; none if it has no lines.
pub(super) fn path_of(part: &str) -> Option<&str> {
    let named = |start: &str| part.lines().take(HEADER_LINES).find_map(|line| line.strip_prefix(start));
    named("+++ b/").or_else(|| named("--- a/")).map(|path| path.trim_end_matches('\t'))
}

/// The most lines before the first hunk of a file.
const HEADER_LINES: usize = 10;

/// The parts of a patch, one for each file. Lines of content never begin like a header.
fn sections(patch: &[u8]) -> impl Iterator<Item = &[u8]> {
    const HEADER: &[u8] = b"diff --git ";
    let mut starts: Vec<usize> = Vec::new();
    let mut at = 0;
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(HEADER) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([patch.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| &patch[start..end])
}

fn hunks(section: &[u8]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for line in String::from_utf8_lossy(section).lines() {
        if let Some(header) = line.strip_prefix("@@ -") {
            let new = header.split_once(" +").map_or("", |(_, new)| new);
            let at = new.split([',', ' ']).next().and_then(|at| at.parse().ok()).unwrap_or(0);
            hunks.push(Hunk { at, ..Hunk::default() });
        } else if let Some(hunk) = hunks.last_mut() {
            // The names of the files come before the first hunk.
            if let Some(text) = line.strip_prefix('+') {
                hunk.added.push(text.to_owned());
            } else if let Some(text) = line.strip_prefix('-') {
                hunk.removed.push(text.to_owned());
            }
        }
    }
    hunks
}
