//! Woodpecker 3.x, by its REST API alone.
//!
//! `wire` has what the server says, `verdict` what its pipelines amount to for one commit. No access to the server's
//! database or agents is needed for anything.

mod verdict;
mod wire;

use std::sync::OnceLock;

use pointsman_core::ids::Sha;
use pointsman_core::time::Timestamp;

use crate::http::{self, Client, ErrorKind, Host, Limits, Method, Request, RetryWait, Scheme};
use crate::retry::Retry;
use crate::secret::Secret;

pub use verdict::CommitVerdict;
pub use wire::{Pipeline, Status, Step, Workflow};

/// Pipelines of one page.
const PAGE: usize = 50;
/// Pages that are looked through for a commit: its pipelines are among the newest.
const PAGES: u32 = 4;
/// The most of a step's log that is kept, in bytes: its end.
const LOG_BYTES: usize = 256 << 10;

/// One repository on a Woodpecker server.
pub struct Woodpecker {
    client: Client,
    wanted: Wanted,
    id: OnceLock<u64>,
}

/// How the repository is named.
enum Wanted {
    Id(u64),
    Name(String, String),
}

/// A failed operation on the CI server. Each variant tells people what to change, because most of them are mistakes
/// of set-up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call did not succeed.
    #[error(transparent)]
    Call(#[from] http::Error),
    /// The repository is named in no way.
    #[error("the CI server needs woodpecker.repo_id, or forge.repo as owner/name")]
    Unnamed,
    /// The server does not speak the API we know.
    #[error("{host} is Woodpecker {version}; 3.0 or newer is needed")]
    TooOld { host: String, version: String },
    /// Something else answers at the address.
    #[error(
        "{host} answers with the web page “{title}” instead of its version: a proxy or a login page is in between, or it \
         is a Woodpecker older than 1.0, or another program; Woodpecker 3.0 or newer is needed"
    )]
    WebPage { host: String, title: String },
    /// There is no such step.
    #[error("pipeline {pipeline} has no step {step}")]
    NoStep { pipeline: u64, step: String },
}

impl Error {
    /// Whether trying again makes sense.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Call(error) => error.retry(),
            Self::Unnamed | Self::TooOld { .. } | Self::WebPage { .. } | Self::NoStep { .. } => Retry::Never,
        }
    }
}

impl Woodpecker {
    /// The repository by its number, or by its name on the forge. Nothing is asked of the server yet.
    pub fn new(
        url: &str,
        repo_id: Option<u64>,
        repo: Option<&str>,
        token: Secret,
        clock: fn() -> Timestamp,
        limits: Limits,
    ) -> Result<Self, Error> {
        let name = repo.and_then(|repo| repo.split_once('/'));
        let wanted = match (repo_id, name) {
            (Some(id), _) => Wanted::Id(id),
            (None, Some((owner, name))) => Wanted::Name(owner.to_owned(), name.to_owned()),
            (None, None) => return Err(Error::Unnamed),
        };
        let host = Host::new(url, clock, limits, RetryWait::default());
        Ok(Self { client: host.client(Some((Scheme::Bearer, token))), wanted, id: OnceLock::new() })
    }

    /// The server, for its counts.
    pub fn host(&self) -> &Host {
        self.client.host()
    }

    /// The repository's number, looked up once.
    fn id(&self) -> Result<u64, Error> {
        if let Some(id) = self.id.get() {
            return Ok(*id);
        }
        self.check_version()?;
        let id = match &self.wanted {
            Wanted::Id(id) => *id,
            Wanted::Name(owner, name) => {
                let request = Request::get("find the repository", &["api", "repos", "lookup", owner, name]);
                self.client.read::<wire::Repo>(&request)?.id
            }
        };
        Ok(*self.id.get_or_init(|| id))
    }

    fn check_version(&self) -> Result<(), Error> {
        let told: wire::Version = match self.client.read(&Request::get("read the version", &["version"])) {
            // Before 1.0 there was no such address, and a server answers unknown ones with its start page.
            Err(http::Error { trouble: ErrorKind::WebPage { title }, .. }) => {
                return Err(Error::WebPage { host: self.host().name().to_owned(), title });
            }
            told => told?,
        };
        let major =
            told.version.trim_start_matches('v').split('.').next().and_then(|text| text.parse::<u32>().ok());
        match major {
            Some(0..=2) => Err(self.too_old(&told.version)),
            // A build of the main branch calls itself by other names.
            Some(_) | None => Ok(()),
        }
    }

    fn too_old(&self, version: &str) -> Error {
        Error::TooOld { host: self.host().name().to_owned(), version: version.to_owned() }
    }

    fn request(&self, operation: &'static str, method: Method, rest: &[&str]) -> Result<Request, Error> {
        let id = self.id()?.to_string();
        let mut segments = vec!["api", "repos", &id];
        segments.extend(rest);
        Ok(Request::new(operation, method, &segments))
    }

    /// The newest pipelines, newest first, without their steps.
    pub fn pipelines(&self) -> Result<Vec<Pipeline>, Error> {
        self.page(1)
    }

    fn page(&self, page: u32) -> Result<Vec<Pipeline>, Error> {
        let request = self.request("list pipelines", Method::Get, &["pipelines"])?;
        let listed: Option<Vec<Pipeline>> =
            self.client.read(&request.query("page", page).query("perPage", PAGE))?;
        Ok(listed.unwrap_or_default())
    }

    /// One pipeline with its workflows and steps; none if there is none.
    pub fn pipeline(&self, number: u64) -> Result<Option<Pipeline>, Error> {
        let request = self.request("read a pipeline", Method::Get, &["pipelines", &number.to_string()])?;
        Ok(self.client.find(&request)?)
    }

    /// The pipelines of exactly this commit, newest first, without their steps.
    pub fn pipelines_of(&self, sha: &Sha) -> Result<Vec<Pipeline>, Error> {
        let mut found = Vec::new();
        for page in 1..=PAGES {
            let listed = self.page(page)?;
            let (got, before) = (listed.len(), found.len());
            found.extend(listed.into_iter().filter(|pipeline| pipeline.commit == sha.as_str()));
            // Pipelines of a commit stand together.
            if got < PAGE || (before > 0 && found.len() == before) {
                break;
            }
        }
        Ok(found)
    }

    /// The output of a step. Of a long one only the end is returned, where failures are explained.
    pub fn log(&self, pipeline: u64, step: u64) -> Result<String, Error> {
        let path = ["logs", &pipeline.to_string(), &step.to_string()];
        let request = self.request("read a log", Method::Get, &path)?;
        let lines: Option<Vec<wire::LogLine>> = self.client.read(&request)?;
        let mut lines = lines.unwrap_or_default();
        lines.sort_by_key(|line| line.line);
        let text = lines.iter().map(|line| line.text()).collect::<Vec<_>>().join("\n");
        let from = (text.len().saturating_sub(LOG_BYTES)..=text.len()).find(|at| text.is_char_boundary(*at));
        Ok(text[from.unwrap_or(0)..].to_owned())
    }

    /// Runs a pipeline once more; answers the number of the new run. Twice makes two.
    pub fn restart(&self, number: u64) -> Result<u64, Error> {
        let request =
            self.request("restart a pipeline", Method::Post, &["pipelines", &number.to_string()])?;
        Ok(self.client.read::<Pipeline>(&request)?.number)
    }
}
