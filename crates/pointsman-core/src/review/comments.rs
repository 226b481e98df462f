//! Comments on lines of a change: written by a person into the quoted diff, told to the agent with file and line, and looked
//! up in later versions of the branch.

/// A comment on a line of a file, as the file is in the commit that was reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineComment {
    pub file: String,
    pub line: u64,
    pub text: String,
}

/// The answer of a reviewer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// The text that is about no line.
    pub general: String,
    pub comments: Vec<LineComment>,
}

/// The state of a comment in the present version of the branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handled {
    /// The branch is as it was when the comment was made.
    Open,
    /// The line was changed since.
    Changed,
    /// The branch was changed since, and the line was not.
    Untouched,
}

impl Handled {
    /// The name that scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Changed => "changed",
            Self::Untouched => "untouched",
        }
    }
}

/// The mark before every line of a quoted diff.
const QUOTE: &str = "> ";
/// The most comments that are read from one text.
const COMMENTS: usize = 500;

/// A diff as it stands in a person's editor.
pub fn quoted(diff: &str) -> String {
    diff.lines().map(|line| format!("{QUOTE}{line}\n")).collect()
}

/// A position in a unified diff.
#[derive(Default)]
struct Position {
    file: Option<String>,
    /// The number of the line in the new file that was read last.
    line: u64,
    in_hunk: bool,
}

impl Position {
    fn read(&mut self, line: &str) {
        if let Some(start) = line.strip_prefix("@@ ").and_then(|rest| range(rest, '+')) {
            (self.line, self.in_hunk) = (start.0.saturating_sub(1), true);
        } else if line.starts_with("diff --git ") {
            (self.file, self.in_hunk) = (None, false);
        } else if self.in_hunk {
            match line.chars().next() {
                Some('+' | ' ') | None => self.line = self.line.saturating_add(1),
                // A removed line is where the next one of the new file is.
                Some(_) => {}
            }
        } else if let Some(file) = line.strip_prefix("+++ ") {
            self.file = Some(file.strip_prefix("b/").unwrap_or(file).trim_end().to_owned());
        }
    }
}

/// `-12,3 +14,5 @@`: the first line of a side and the number of lines.
pub(super) fn range(header: &str, side: char) -> Option<(u64, u64)> {
    let part = header.split(' ').find_map(|word| word.strip_prefix(side))?;
    let (start, count) = part.split_once(',').unwrap_or((part, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}

/// Reads what a person wrote between the lines of a quoted diff. Lines that begin with `#` are ours.
pub fn read_edited(text: &str) -> Feedback {
    let mut position = Position::default();
    let mut feedback = Feedback::default();
    // The comment that is being written, if the line before was not of the diff.
    let mut open = false;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(of_diff) = line.strip_prefix(QUOTE).or_else(|| (line == QUOTE.trim()).then_some("")) {
            position.read(of_diff);
            open = false;
            continue;
        }
        match &position.file {
            None => {
                feedback.general.push_str(line);
                feedback.general.push('\n');
            }
            Some(_) if line.trim().is_empty() && !open => {}
            Some(_) if open => {
                if let Some(last) = feedback.comments.last_mut() {
                    last.text.push('\n');
                    last.text.push_str(line);
                }
            }
            Some(file) => {
                open = true;
                let (file, line_number) = (file.clone(), position.line.max(1));
                feedback.comments.push(LineComment { file, line: line_number, text: line.to_owned() });
            }
        }
    }
    feedback.general = feedback.general.trim().to_owned();
    for comment in &mut feedback.comments {
        comment.text = comment.text.trim().to_owned();
    }
    feedback.comments.retain(|comment| !comment.text.is_empty());
    feedback
}

/// The feedback as the body of a review, which agents and people read.
pub fn body(feedback: &Feedback) -> String {
    let mut parts = Vec::new();
    if !feedback.general.is_empty() {
        parts.push(feedback.general.clone());
    }
    let line = |comment: &LineComment| {
        let text = comment.text.replace('\n', "\n  ");
        format!("- `{}:{}`: {text}", comment.file, comment.line)
    };
    if !feedback.comments.is_empty() {
        parts.push(feedback.comments.iter().map(line).collect::<Vec<_>>().join("\n"));
    }
    parts.join("\n\n")
}

/// The comments on lines in the body of a review.
pub fn read_body(body: &str) -> Vec<LineComment> {
    let mut found: Vec<LineComment> = Vec::new();
    let mut open = false;
    for line in body.lines() {
        let anchored =
            line.strip_prefix("- `").and_then(|rest| rest.split_once("`: ")).and_then(|(at, text)| {
                let (file, number) = at.rsplit_once(':')?;
                Some(LineComment { file: file.to_owned(), line: number.parse().ok()?, text: text.to_owned() })
            });
        match (anchored, line.strip_prefix("  ")) {
            (Some(comment), _) if found.len() < COMMENTS => {
                found.push(comment);
                open = true;
            }
            (None, Some(more)) if open => {
                if let Some(last) = found.last_mut() {
                    last.text.push('\n');
                    last.text.push_str(more);
                }
            }
            _ => open = false,
        }
    }
    found
}

/// The state of a comment, from the diff without context between the commit that it is about and the present head.
pub fn handled(comment: &LineComment, diff: &str) -> Handled {
    let mut in_file = false;
    let mut in_hunks = false;
    for line in diff.lines() {
        if line.starts_with("diff --git ") {
            (in_file, in_hunks) = (false, false);
        } else if let Some(file) = line.strip_prefix("--- ").filter(|_| !in_hunks) {
            in_file = file.strip_prefix("a/").unwrap_or(file).trim_end() == comment.file;
        } else if let Some(header) = line.strip_prefix("@@ ") {
            in_hunks = true;
            let Some((start, count)) = range(header, '-').filter(|_| in_file) else { continue };
            // Without lines of the old file, something new stands after this line.
            let touched = match count {
                0 => (start..=start.saturating_add(1)).contains(&comment.line),
                _ => (start..start.saturating_add(count)).contains(&comment.line),
            };
            if touched {
                return Handled::Changed;
            }
        }
    }
    Handled::Untouched
}

#[cfg(test)]
mod tests {
    use super::{Feedback, Handled, LineComment, body, handled, quoted, read_body, read_edited};

    const DIFF: &str = "diff --git a/src/a.txt b/src/a.txt\nindex 1..2 100644\n--- a/src/a.txt\n+++ b/src/a.txt\n\
        @@ -1,3 +1,4 @@\n one\n+two\n three\n-four\n+five\n\
        diff --git a/b.txt b/b.txt\nnew file mode 100644\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1,2 @@\n+++ b/trap\n+end\n";

    fn comment(file: &str, line: u64, text: &str) -> LineComment {
        LineComment { file: file.to_owned(), line, text: text.to_owned() }
    }

    #[test]
    fn a_comment_belongs_to_the_line_above_it() {
        let mut text = String::from("Please look again.\n# ours\n");
        for line in quoted(DIFF).lines() {
            text.push_str(line);
            text.push('\n');
            match line {
                "> +two" => text.push_str("Why two?\nAnd why here?\n"),
                "> -four" => text.push_str("\nKeep it.\n\n"),
                "> +++ b/trap" => text.push_str("This is content, not a name.\n"),
                _ => {}
            }
        }
        let feedback = read_edited(&text);
        assert_eq!(feedback.general, "Please look again.");
        assert_eq!(
            feedback.comments,
            [
                comment("src/a.txt", 2, "Why two?\nAnd why here?"),
                comment("src/a.txt", 3, "Keep it."),
                comment("b.txt", 1, "This is content, not a name."),
            ]
        );
        assert_eq!(read_body(&body(&feedback)), feedback.comments);
    }

    #[test]
    fn nothing_written_is_nothing_said() {
        let text = format!("\n# ours\n\n{}", quoted(DIFF));
        assert_eq!(read_edited(&text), Feedback::default());
        assert_eq!(body(&Feedback::default()), "");
    }

    #[test]
    fn other_lists_are_no_comments() {
        assert_eq!(read_body("- `src/a.txt`: no line\n- src/a.txt:3: no quotes\n- `x:y`: no number"), []);
        assert_eq!(read_body("- `a b:c.txt:7`: odd name"), [comment("a b:c.txt", 7, "odd name")]);
    }

    #[test]
    fn a_comment_is_handled_when_its_line_changes() {
        let since = "diff --git a/src/a.txt b/src/a.txt\n--- a/src/a.txt\n+++ b/src/a.txt\n@@ -2 +2 @@\n-two\n+2\n\
                     @@ -4,0 +5 @@\n+six\ndiff --git a/b.txt b/b.txt\n--- a/b.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n";
        for (file, line, expected) in [
            ("src/a.txt", 1, Handled::Untouched),
            ("src/a.txt", 2, Handled::Changed),
            ("src/a.txt", 3, Handled::Untouched),
            ("src/a.txt", 4, Handled::Changed),
            ("src/a.txt", 5, Handled::Changed),
            ("src/a.txt", 6, Handled::Untouched),
            ("b.txt", 2, Handled::Changed),
            ("c.txt", 1, Handled::Untouched),
        ] {
            assert_eq!(handled(&comment(file, line, "t"), since), expected, "{file}:{line}");
        }
    }
}
