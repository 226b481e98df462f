//! A page of the documentation: its blocks of commands, each with the place it has on the page.

use std::fs;
use std::path::{Path, PathBuf};

/// Marks a block of commands that a reader carries out.
const COMMANDS: &str = "```sh";
/// Marks what a block of commands prints, if it follows the block at once.
const OUTPUT: &str = "```text";

/// A block of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The nearest heading above it, without its marks.
    pub(crate) section: String,
    pub(crate) commands: String,
    /// What the page says that they print, if it does.
    pub(crate) output: Option<String>,
    /// The prose between this block and the next one.
    pub(crate) after: String,
}

impl Block {
    /// What the prose after it has its reader wait for, as a command and words that it prints: "`pointsman status` says
    /// `1 awaiting_review`".
    pub(crate) fn promises(&self) -> Vec<(String, String)> {
        let prose = self.after.split_whitespace().collect::<Vec<_>>().join(" ");
        let parts: Vec<&str> = prose.split("` says `").collect();
        let word = |part: Option<&str>| part.unwrap_or_default().to_owned();
        let pair = |pair: &[&str]| (word(pair[0].rsplit('`').next()), word(pair[1].split('`').next()));
        parts.windows(2).map(pair).filter(|(command, _)| command.starts_with("pointsman ")).collect()
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().unwrap()
}

/// The text of a page, named by its path in the repository.
pub(crate) fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The blocks of a page in their order.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut section = String::new();
    let mut lines = text.lines();
    let mut is_next = false;
    while let Some(line) = lines.next() {
        let mut inside =
            || lines.by_ref().take_while(|line| line.trim() != "```").collect::<Vec<_>>().join("\n");
        match line {
            COMMANDS => {
                let commands = inside();
                let section = section.clone();
                found.push(Block { section, commands, output: None, after: String::new() });
                is_next = true;
            }
            OUTPUT if is_next => {
                let output = inside();
                if let Some(last) = found.last_mut() {
                    last.output = Some(output);
                }
                is_next = false;
            }
            line if line.trim_start().starts_with("```") => drop(inside()),
            line => {
                is_next &= line.is_empty();
                if line.starts_with('#') {
                    line.trim_start_matches('#').trim().clone_into(&mut section);
                }
                if let Some(last) = found.last_mut() {
                    last.after.push_str(line);
                    last.after.push('\n');
                }
            }
        }
    }
    found
}

/// The same page with these outputs, one for each block that has one.
pub(crate) fn with_outputs(text: &str, outputs: &[Option<String>]) -> String {
    let mut outputs = outputs.iter();
    let mut page = String::new();
    let mut lines = text.lines();
    let mut printed: Option<&String> = None;
    let mut put = |line: &str| {
        page.push_str(line);
        page.push('\n');
    };
    while let Some(line) = lines.next() {
        put(line);
        if line == COMMANDS {
            lines.by_ref().take_while(|line| *line != "```").for_each(&mut put);
            put("```");
            printed = outputs.next().and_then(Option::as_ref);
        } else if let Some(text) = printed.filter(|_| line == OUTPUT) {
            text.lines().for_each(&mut put);
            put("```");
            lines.by_ref().take_while(|line| *line != "```").for_each(drop);
            printed = None;
        } else if !line.is_empty() {
            printed = None;
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::{blocks, with_outputs};

    const PAGE: &str = "# One\n\n```sh\na\nb\n```\n\n```text\nold\n```\n\nWhen `pointsman status` says `1 closed` and `pointsman inbox` says\n`nothing`, go on.\n\n## Two\n\n\
        ```sh\nc\n```\n\nWords.\n\n```text\nnot its output\n```\n";

    #[test]
    fn blocks_have_their_section_their_output_and_their_promise() {
        let found = blocks(PAGE);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].section.as_str(), found[0].commands.as_str()), ("One", "a\nb"));
        assert_eq!(found[0].output.as_deref(), Some("old"));
        let promises = [("pointsman status", "1 closed"), ("pointsman inbox", "nothing")];
        assert_eq!(
            found[0].promises(),
            promises.map(|(command, words)| (command.to_owned(), words.to_owned()))
        );
        assert_eq!((found[1].section.as_str(), found[1].output.as_deref()), ("Two", None));
    }

    #[test]
    fn a_page_with_its_own_outputs_is_the_same_page() {
        let own: Vec<_> = blocks(PAGE).into_iter().map(|block| block.output).collect();
        assert_eq!(with_outputs(PAGE, &own), PAGE);
        let new = with_outputs(PAGE, &[Some("new\nlines".to_owned()), Some("nobody asks".to_owned())]);
        assert_eq!(new, PAGE.replace("old", "new\nlines"));
    }
}
