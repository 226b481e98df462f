//! Finding and reading a project's `pointsman.toml`.
//!
//! Which project a command is about is decided in `cli/context.rs`; what is registered is the store's.

use std::io::Read;
use std::path::{Path, PathBuf};

use pointsman_core::config::{self, Config};
use pointsman_core::words;

/// What the configuration is called.
pub const FILE_NAME: &str = "pointsman.toml";

/// A configuration is a page of text; more than this is something else.
const LARGEST: u64 = 1 << 20;

/// A configuration and where it lies.
#[derive(Clone, Debug)]
pub struct Project {
    pub config: Config,
    /// The file, absolute.
    pub config_path: PathBuf,
}

impl Project {
    /// Reads the file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let (config_path, text) = read(path)?;
        let config = parse(&text, &config_path.display().to_string())?;
        Ok(Self { config, config_path })
    }

    /// Reads the file and tells where each value comes from.
    pub fn load_with_origin(path: &Path) -> Result<(Self, Vec<config::Entry>), Error> {
        let (config_path, text) = read(path)?;
        let (config, entries) = Config::parse_with_origin(&text, &config_path.display().to_string())?;
        Ok((Self { config, config_path }, entries))
    }

    /// The directory of the file: the user's checkout.
    pub fn checkout(&self) -> &Path {
        self.config_path.parent().unwrap_or(Path::new("/"))
    }
}

/// Reads a configuration, and checks what only this machine knows.
pub(crate) fn parse(text: &str, origin: &str) -> Result<Config, config::Error> {
    let config = Config::parse(text, origin)?;
    let zones = [
        ("schedule.timezone", Some(config.schedule.timezone.as_str())),
        ("notify.timezone", config.notify.timezone.as_deref()),
    ];
    for (key, zone) in zones {
        if let Some(zone) = zone.filter(|zone| *zone != "UTC" && jiff::tz::TimeZone::get(zone).is_err()) {
            let why = words::config::unknown_zone(zone);
            return Err(Config::mistake(text, origin, key, &why).hint(words::config::ZONES_HINT));
        }
    }
    Ok(config)
}

/// A configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Invalid(#[from] config::Error),
}

/// The nearest `pointsman.toml`, from `start` upward.
pub fn find(start: &Path) -> Option<PathBuf> {
    start.ancestors().map(|dir| dir.join(FILE_NAME)).find(|file| file.is_file())
}

fn read(path: &Path) -> Result<(PathBuf, String), Error> {
    let failed = |source| Error::Unreadable { path: path.to_owned(), source };
    // Registered paths are compared: one file has one name.
    let path = path.canonicalize().map_err(failed)?;
    let mut text = String::new();
    let file = std::fs::File::open(&path).map_err(failed)?;
    let size = file.take(LARGEST + 1).read_to_string(&mut text).map_err(failed)?;
    if size as u64 > LARGEST {
        return Err(failed(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            format!("larger than {LARGEST} bytes"),
        )));
    }
    Ok((path, text))
}
