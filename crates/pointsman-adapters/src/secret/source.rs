//! Finding a token.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Dotenv, LONGEST, Secret};
use crate::process::{End, Run};

/// How long a program may take to print a token: somebody may have to unlock something.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// The most that is read of a file.
const FILE_CAP: u64 = 64 << 10;
/// What programs that keep secrets need of our environment.
const INHERITED: [&str; 8] = [
    "PATH",
    "HOME",
    "LANG",
    "USER",
    "GNUPGHOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
];

/// The sources of a token that the configuration names, the strongest first.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Whose token, for people: "the forge", "the reviewer".
    pub whose: &'static str,
    /// A program that prints it.
    pub command: Option<&'a [String]>,
    /// A file that holds it.
    pub file: Option<&'a Path>,
    /// A variable that holds it, in the environment or in the `.env`.
    pub variable: Option<&'a str>,
}

/// A reason why there is no token. No variant repeats anything that may be part of one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no token for {whose}: {hint}")]
    Missing { whose: &'static str, hint: String },
    /// The program failed. What it printed is not repeated.
    #[error("the program {program} gave no token for {whose} ({how})")]
    Command { whose: &'static str, program: String, how: String },
    /// The file could not be read.
    #[error("cannot read {}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// Everybody on this machine can read the file.
    #[error("{} can be read by others: chmod 600 it", path.display())]
    Open { path: PathBuf },
    /// What was found is not a token.
    #[error("what {place} holds for {whose} is no token: it is empty, or has spaces or odd characters")]
    Unfit { whose: &'static str, place: String },
}

/// A private key or its like: the whole text of a file that only we may read.
pub fn private_text(path: &Path) -> Result<String, Error> {
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let text = read_private(path)?.ok_or_else(|| Error::File { path: path.to_owned(), source: missing() })?;
    super::remember(&text);
    Ok(text)
}

impl Source<'_> {
    /// The token: from the program, else the file, else the variable, else the `.env`. `environment` looks up a
    /// variable of this process.
    pub fn find(
        &self,
        environment: impl Fn(&str) -> Option<String>,
        dotenv: &Dotenv,
    ) -> Result<Secret, Error> {
        let whose = self.whose;
        let fit = |text: &str, place: String| {
            let secret = Secret::new(text).ok_or(Error::Unfit { whose, place })?;
            super::remember(secret.expose());
            Ok(secret)
        };
        if let Some(command) = self.command {
            return fit(&self.run(command)?, format!("the output of {}", command[0]));
        }
        if let Some(path) = self.file {
            let missing = || io::Error::from(io::ErrorKind::NotFound);
            let text = read_private(path)?
                .ok_or_else(|| Error::File { path: path.to_owned(), source: missing() })?;
            return fit(&text, path.display().to_string());
        }
        if let Some(name) = self.variable {
            let set = environment(name).filter(|value| !value.trim().is_empty());
            if let Some(value) = set.or_else(|| dotenv.get(name).map(str::to_owned)) {
                return fit(&value, format!("the variable {name}"));
            }
        }
        let hint = match self.variable {
            Some(name) => format!(
                "set {name}, or put it into the .env beside the state, or give token_file or token_command"
            ),
            None => "give token_env, token_file or token_command".to_owned(),
        };
        Err(Error::Missing { whose, hint })
    }

    fn run(&self, command: &[String]) -> Result<String, Error> {
        let failed = |how: String| Error::Command { whose: self.whose, program: command[0].clone(), how };
        let run = Run::new(&command[0]).args(&command[1..]).inherit(&INHERITED);
        let done =
            run.time_limit(COMMAND_LIMIT).output_cap(LONGEST).finish().map_err(|e| failed(e.to_string()))?;
        match done.end {
            End::Exited(0) => {
                let text = String::from_utf8_lossy(&done.stdout);
                Ok(text.lines().next().unwrap_or_default().to_owned())
            }
            end => Err(failed(end.to_string())),
        }
    }
}

/// Reads a file that only we may read; none if it is not there. Links are followed: secret stores use them.
pub(super) fn read_private(path: &Path) -> Result<Option<String>, Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(io::Error::from(io::ErrorKind::InvalidInput)));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(Error::Open { path: path.to_owned() });
    }
    let mut text = String::new();
    file.take(FILE_CAP).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::{Error, Source};
    use crate::secret::Dotenv;

    const NOTHING: Source<'static> = Source { whose: "the forge", command: None, file: None, variable: None };

    fn write(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_program_comes_before_a_file_before_a_variable_before_the_dotenv() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        write(&file, "from-file\n", 0o600);
        let command = ["printf".to_owned(), "from-command\nignored".to_owned()];
        let dotenv = Dotenv::parse("T=from-dotenv");
        let set = |name: &str| (name == "T").then(|| "from-environment".to_owned());
        let unset = |_: &str| None;
        let all = Source { command: Some(&command), file: Some(&file), variable: Some("T"), ..NOTHING };
        let told = |source: Source<'_>| source.find(set, &dotenv).unwrap().expose().to_owned();
        assert_eq!(told(all), "from-command");
        assert_eq!(told(Source { command: None, ..all }), "from-file");
        assert_eq!(told(Source { command: None, file: None, ..all }), "from-environment");
        let last = Source { command: None, file: None, ..all }.find(unset, &dotenv).unwrap();
        assert_eq!(last.expose(), "from-dotenv");
    }

    #[test]
    fn what_is_missing_or_open_to_others_is_said_without_the_token() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        write(&file, "hush", 0o644);
        let nothing = Dotenv::default();
        let find = |source: Source<'_>| source.find(|_| None, &nothing).unwrap_err();
        assert!(matches!(find(Source { file: Some(&file), ..NOTHING }), Error::Open { .. }));
        let missing = find(Source { variable: Some("CODEBERG_TOKEN"), ..NOTHING });
        assert!(missing.to_string().contains("set CODEBERG_TOKEN"), "{missing}");
        write(&file, "hush hush", 0o600);
        let unfit = find(Source { file: Some(&file), ..NOTHING });
        assert!(matches!(unfit, Error::Unfit { .. }) && !unfit.to_string().contains("hush hush"), "{unfit}");
        let loud = ["sh".to_owned(), "-c".to_owned(), "echo hush >&2; exit 3".to_owned()];
        let failed = find(Source { command: Some(&loud), ..NOTHING });
        assert!(matches!(failed, Error::Command { .. }) && !failed.to_string().contains("hush"), "{failed}");
    }
}
