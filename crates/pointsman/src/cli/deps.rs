use std::io::Read;

use clap::Args;
use pointsman_core::dependencies;

use super::failure::Failure;
use super::out::Out;

/// Read an issue's body from standard input and print the issues that it depends on
///
/// Prints one number per line, sorted: those in sections headed Dependencies, Depends on or Blocked by, and those in
/// phrases such as "depends on #3" anywhere else.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pointsman forge issue show 3 --json | jq -r .body | pointsman deps")]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self, out: Out) -> Result<(), Failure> {
        let found = dependencies::parse(&read_stdin()?);
        if out.is_json() {
            return out.value(&found);
        }
        found.iter().try_for_each(|number| out.line(number))
    }
}

/// All of standard input; bytes that are no text stand for themselves as marks.
pub(crate) fn read_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}
