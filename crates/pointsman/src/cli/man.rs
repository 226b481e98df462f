use std::io::Write;
use std::path::PathBuf;

use clap::{Args, CommandFactory};

use super::failure::Failure;

/// Print the manual page, or write a page for each command into a directory
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pointsman man | man -l -\n  pointsman man ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// Write all pages into this directory
    directory: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let command = super::Cli::command();
        match self.directory {
            Some(directory) => {
                std::fs::create_dir_all(&directory)?;
                Ok(clap_mangen::generate_to(command, directory)?)
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(command).render(&mut page)?;
                Ok(std::io::stdout().lock().write_all(&page)?)
            }
        }
    }
}
