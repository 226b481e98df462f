//! Finding a project's formulas: its own, in `formulas/` beside its configuration, over those that are shipped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use pointsman_core::formula::{self, Formula, SHIPPED, Variables};

/// Where a project keeps its own.
pub const DIRECTORY: &str = "formulas";
/// A formula is a page or two; more than this is something else.
const LARGEST: u64 = 256 * 1024;

/// A formula's text and where it comes from.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The project's file; none if it is shipped.
    pub file: Option<PathBuf>,
}

/// A formula cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none of this name.
    #[error("there is no formula {0}")]
    Missing(String),
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It says something wrong.
    #[error(transparent)]
    Invalid(#[from] formula::Error),
}

impl Found {
    /// The formula with a project's variables filled in. Its own files must be there; a shipped formula takes what there is.
    pub fn render(&self, checkout: &Path, variables: &Variables) -> Result<Formula, Error> {
        let origin = self.origin();
        let mut formula = Formula::render(&self.text, &origin, variables)?;
        let is_there = |file: &str| checkout.join(file).is_file();
        match self.file {
            Some(_) => formula::check_files(&self.text, &origin, is_there)?,
            None => formula.files.retain(|file| is_there(file)),
        }
        Ok(formula)
    }

    /// What it is called in messages.
    pub fn origin(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => format!("{}.toml (shipped)", self.name),
        }
    }
}

/// All formulas that a project can use, by name. A file is called after its formula.
pub fn all(checkout: &Path) -> Result<Vec<Found>, Error> {
    let shipped = SHIPPED.iter().map(|(name, text)| (*name, *text));
    let mut found: BTreeMap<String, Found> = shipped
        .map(|(name, text)| {
            (name.to_owned(), Found { name: name.to_owned(), text: text.to_owned(), file: None })
        })
        .collect();
    for entry in fs::read_dir(checkout.join(DIRECTORY)).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "toml")
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
        {
            found.insert(
                name.to_owned(),
                Found { name: name.to_owned(), text: read(&path)?, file: Some(path) },
            );
        }
    }
    Ok(found.into_values().collect())
}

/// One formula by its name.
pub fn find(checkout: &Path, name: &str) -> Result<Found, Error> {
    all(checkout)?.into_iter().find(|found| found.name == name).ok_or_else(|| Error::Missing(name.to_owned()))
}

/// Reads a formula's file.
pub fn read(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::Unreadable { path: path.to_owned(), source };
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text)).map_err(failed)?;
    Ok(text)
}
