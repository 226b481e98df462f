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
    pub name: String,
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
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
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

    /// The name of the formula's source in messages: its file, or that it was shipped.
    pub fn origin(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => format!("{}.toml (shipped)", self.name),
        }
    }
}

/// All formulas that a project can use, by name. One that cannot be read is told, and stands in nobody's way.
pub fn all(checkout: &Path) -> Vec<(String, Result<Found, Error>)> {
    let found = |(name, file): (String, Option<PathBuf>)| (name.clone(), load(name, file));
    names(checkout).into_iter().map(found).collect()
}

/// One formula by its name; the others are not looked at.
pub fn find(checkout: &Path, name: &str) -> Result<Found, Error> {
    let file = names(checkout).remove(name).ok_or_else(|| Error::Missing(name.to_owned()))?;
    load(name.to_owned(), file)
}

/// The texts of the project's own formulas, by name. One that cannot be read is left out.
pub fn own(checkout: &Path) -> BTreeMap<String, String> {
    let text = |(name, file): (String, Option<PathBuf>)| Some((name, read(&file?).ok()?));
    names(checkout).into_iter().filter_map(text).collect()
}

/// One formula by its name: one of these texts of the project's own, else the one that is shipped.
pub fn find_accepted(own: &BTreeMap<String, String>, checkout: &Path, name: &str) -> Result<Found, Error> {
    match own.get(name) {
        Some(text) => {
            let file = Some(checkout.join(DIRECTORY).join(format!("{name}.toml")));
            Ok(Found { name: name.to_owned(), text: text.clone(), file })
        }
        None => load(name.to_owned(), None),
    }
}

/// All formulas of [`find_accepted`].
pub fn all_accepted(own: &BTreeMap<String, String>, checkout: &Path) -> Vec<(String, Result<Found, Error>)> {
    let shipped = SHIPPED.iter().map(|(name, _)| (*name).to_owned());
    let names: std::collections::BTreeSet<String> = own.keys().cloned().chain(shipped).collect();
    names.into_iter().map(|name| (name.clone(), find_accepted(own, checkout, &name))).collect()
}

/// What there is, with the project's file for each; none for one that is shipped. A file is called after its formula.
fn names(checkout: &Path) -> BTreeMap<String, Option<PathBuf>> {
    let mut names: BTreeMap<String, Option<PathBuf>> =
        SHIPPED.iter().map(|(name, _)| ((*name).to_owned(), None)).collect();
    for entry in fs::read_dir(checkout.join(DIRECTORY)).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "toml")
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
        {
            names.insert(name.to_owned(), Some(path));
        }
    }
    names
}

fn load(name: String, file: Option<PathBuf>) -> Result<Found, Error> {
    let text = match &file {
        Some(path) => read(path)?,
        None => formula::shipped(&name).ok_or_else(|| Error::Missing(name.clone()))?.to_owned(),
    };
    Ok(Found { name, text, file })
}

/// Reads a formula's file.
pub fn read(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::Unreadable { path: path.to_owned(), source };
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text)).map_err(failed)?;
    Ok(text)
}
