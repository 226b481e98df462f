//! Files of which a merge takes both sides: the globs that a project declares for union merge.

use std::fmt::Write as _;

/// Git gives up on lines of 2048 bytes.
const LONGEST_GLOB: usize = 1000;

/// Globs for union merge, in the form of `.gitattributes`: without a slash they are about a name in any directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnionGlobs(Vec<String>);

/// A glob that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be a glob for union merge: {reason}", glob.escape_debug())]
pub struct BadGlob {
    pub glob: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl UnionGlobs {
    /// Takes globs that say exactly what they mean in a file of attributes, and nothing more.
    pub fn new<G: AsRef<str>>(globs: &[G]) -> Result<Self, BadGlob> {
        let mut taken = Vec::with_capacity(globs.len());
        for glob in globs.iter().map(AsRef::as_ref) {
            if let Some(reason) = unusable(glob) {
                return Err(BadGlob { glob: glob.to_owned(), reason });
            }
            taken.push(glob.to_owned());
        }
        Ok(Self(taken))
    }

    /// No file is merged by taking both sides.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As a file of attributes. Every glob is quoted, so that none can begin a comment or a second attribute.
    pub(super) fn attributes(&self) -> String {
        self.0.iter().fold(String::new(), |mut lines, glob| {
            let quoted = glob.replace('\\', "\\\\").replace('"', "\\\"");
            writeln!(lines, "\"{quoted}\" merge=union").expect("a string takes everything");
            lines
        })
    }
}

/// Why git would not take it for a pattern.
fn unusable(glob: &str) -> Option<&'static str> {
    let bytes = glob.as_bytes();
    match bytes {
        [] => Some("it is empty"),
        [b'!', ..] => Some("it cannot be negated"),
        [.., b'/'] => Some("a directory is not merged, the files in it are"),
        // Looked at by git after the quotes are gone.
        _ if glob.starts_with("[attr]") => Some("it would define a macro"),
        _ if glob.contains(char::is_control) => Some("it holds a control character"),
        _ if bytes.len() > LONGEST_GLOB => Some("it is too long"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::UnionGlobs;

    #[test]
    fn a_glob_is_one_pattern_or_refused() {
        let long = "x".repeat(1001);
        for bad in ["", "!a", "docs/", "[attr]x", "a\n* merge=union", "a\0", "a\tb", "\u{7f}", &long] {
            let told = UnionGlobs::new(&[bad]).unwrap_err().to_string();
            assert!(!told.contains(char::is_control), "{told}");
        }
        let globs = UnionGlobs::new(&["# a", "\" merge=x", "b\\*", "docs/*.log"]).unwrap();
        let expected = "\"# a\" merge=union\n\"\\\" merge=x\" merge=union\n\"b\\\\*\" merge=union\n\
            \"docs/*.log\" merge=union\n";
        assert_eq!(globs.attributes(), expected);
        assert!(UnionGlobs::none().is_empty());
    }
}
