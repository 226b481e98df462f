//! Secrets in what is about to leave: a branch at its push, files that a role hands in, and a branch that is about to land.
//!
//! A value that the daemon knows stops the push. A text that only looks like a secret is told to the agent, and stops in the merge
//! queue. Both ask a person. A yes lets exactly this value leave; after a no, what only looked like a secret is treated as one
//! that is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pointsman_adapters::git;
use pointsman_adapters::git::new_objects::{
    NewObject, OBJECT_BYTES, ObjectKind, for_each_content, new_objects,
};
use pointsman_adapters::secret::known;
use pointsman_core::concern::{self, About, ConcernKey};
use pointsman_core::config::Config;
use pointsman_core::ids::{Number, ProjectName, Sha, TaskKey};
use pointsman_core::known_secrets::{
    FoundSecrets, KnownSecrets, SecretDecisions, fingerprint, named_fingerprint,
};
use pointsman_core::log;
use pointsman_core::part::question::{Kind, Owner, Question};
use pointsman_core::part::session::Stage;
use pointsman_core::review::{Secret, may_hold_secrets, secrets_in};
use pointsman_core::task::{Effect, Headline, State, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{Change, Memory, Store};

use super::engine::{Engine, Input};
use super::inbound::Inbox;
use super::served::Served;

/// More of one branch is not read.
const BRANCH_BYTES: u64 = 512 << 20;
/// The most texts in one branch that look like a secret. Whoever brings more is asked about some of them.
const LOOKS: usize = 1000;
/// The most questions about one branch at the same time.
const ASKED: usize = 5;
/// The most branches whose findings are kept.
const KEPT: usize = 1000;

/// Something that must not leave without a person's yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// A secret that the daemon knows, with the file it is in.
    Known {
        fingerprint: String,
        path: String,
    },
    LooksLike(Secret),
    /// It is too large to be looked through, or cannot be read.
    NotLookedAt {
        fingerprint: String,
        path: String,
    },
}

impl Finding {
    fn fingerprint(&self) -> &str {
        match self {
            Self::Known { fingerprint, .. } | Self::NotLookedAt { fingerprint, .. } => fingerprint,
            Self::LooksLike(secret) => &secret.fingerprint,
        }
    }

    /// The finding in words. The secret itself is never repeated.
    fn describe(&self) -> String {
        match self {
            Self::Known { path, .. } => words::review::known_secret(path),
            Self::LooksLike(secret) => words::review::looks_like_secret(secret),
            Self::NotLookedAt { path, .. } => words::review::too_large_to_look(path),
        }
    }
}

/// All findings in words.
pub(crate) fn described(found: &[Finding]) -> String {
    words::review::all_findings(found.iter().map(Finding::describe))
}

/// Findings as the owner of a branch hears of them.
pub(crate) fn told(found: &[Finding]) -> Option<FoundSecrets> {
    let fingerprints = found.iter().map(|finding| finding.fingerprint().to_owned()).collect();
    (!found.is_empty()).then(|| FoundSecrets { what: described(found), fingerprints })
}

/// The decisions about findings that hold for a project: of people, and of its configuration.
pub(crate) struct Decisions<'c> {
    config: &'c Config,
    people: SecretDecisions,
}

impl<'c> Decisions<'c> {
    /// Reads the decisions that hold now.
    pub(crate) fn read(store: &Store, config: &'c Config) -> Result<Self, pointsman_store::Error> {
        Ok(Self { config, people: remembered(store, &config.name)? })
    }

    /// The findings that nobody has accepted.
    pub(crate) fn open(&self, found: &[Finding]) -> Vec<Finding> {
        let named = |fingerprint: &str| {
            let allowed = &self.config.review.secrets_allowed;
            allowed.iter().filter_map(|entry| named_fingerprint(entry)).any(|named| named == fingerprint)
        };
        let is_open = |finding: &&Finding| {
            let fingerprint = finding.fingerprint();
            !named(fingerprint) && !self.people.accepted.contains(fingerprint)
        };
        found.iter().filter(is_open).cloned().collect()
    }

    /// Those of them that must not even be pushed.
    pub(crate) fn stopping(&self, open: &[Finding]) -> Vec<Finding> {
        let stops = |finding: &&Finding| match finding {
            Finding::Known { .. } | Finding::NotLookedAt { .. } => true,
            Finding::LooksLike(_) => self.is_rejected(finding),
        };
        open.iter().filter(stops).cloned().collect()
    }

    /// Whether a person said that this is a secret.
    pub(crate) fn is_rejected(&self, finding: &Finding) -> bool {
        self.people.rejected.contains(finding.fingerprint())
    }
}

fn remembered(store: &Store, project: &ProjectName) -> Result<SecretDecisions, pointsman_store::Error> {
    let memory: Option<SecretDecisions> = store.memory(project, SecretDecisions::MEMORY)?;
    Ok(memory.unwrap_or_default())
}

/// Everything in the commits of a branch that is a secret, or looks like one where the project does not allow that. What the
/// file had before the branch began is left out. Each value is told once.
pub(crate) fn look(served: &Served, main: &Sha, head: &Sha) -> Result<Vec<Finding>, git::Error> {
    let mirror = &served.mirror;
    let objects = new_objects(mirror, main, head)?;
    let mut found: BTreeMap<String, Finding> = BTreeMap::new();
    let mut total = 0;
    let (small, large): (Vec<&NewObject>, Vec<&NewObject>) = objects.iter().partition(|object| {
        let fits = object.size <= OBJECT_BYTES && total + object.size <= BRANCH_BYTES;
        total += if fits { object.size } else { 0 };
        fits
    });
    for object in large {
        let fingerprint = fingerprint(object.id.as_str().as_bytes());
        let finding = Finding::NotLookedAt { fingerprint: fingerprint.clone(), path: object.path.clone() };
        found.insert(fingerprint, finding);
    }
    let base = mirror.merge_base(main, head)?;
    let known = known();
    let mut before = Before { served, base: base.as_ref(), known: &known, files: BTreeMap::new() };
    for_each_content(mirror, &small, |object, content| {
        for finding in in_object(&known, object, content) {
            let fingerprint = finding.fingerprint();
            let counts = match &finding {
                Finding::Known { path, .. } => !before.had(path, fingerprint),
                Finding::LooksLike(secret) => {
                    found.len() < LOOKS
                        && !may_hold_secrets(&served.config, &secret.path)
                        && !before.had(&secret.path, fingerprint)
                }
                Finding::NotLookedAt { .. } => true,
            };
            if counts && !found.contains_key(fingerprint) {
                found.insert(fingerprint.to_owned(), finding);
            }
        }
    })?;
    // What is known comes first.
    let mut found: Vec<Finding> = found.into_values().collect();
    found.sort_by_key(|finding| match finding {
        Finding::Known { .. } => 0,
        Finding::NotLookedAt { .. } => 1,
        Finding::LooksLike(_) => 2,
    });
    Ok(found)
}

/// The findings in something that was handed in as one file.
pub(crate) fn look_at_file(path: &str, content: &[u8]) -> Vec<Finding> {
    in_file(&known(), path, content)
}

/// The finding about a branch that git cannot read.
pub(crate) fn unreadable(head: &Sha) -> Finding {
    let fingerprint = fingerprint(head.as_str().as_bytes());
    Finding::NotLookedAt { fingerprint, path: words::review::BRANCH.to_owned() }
}

fn in_object(known: &KnownSecrets, object: &NewObject, content: &[u8]) -> Vec<Finding> {
    match object.kind {
        ObjectKind::File => in_file(known, &object.path, content),
        ObjectKind::Commit => leaks(known, words::review::COMMIT, content).collect(),
        ObjectKind::Tree => leaks(known, words::review::FILE_NAME, content).collect(),
    }
}

fn in_file(known: &KnownSecrets, path: &str, content: &[u8]) -> Vec<Finding> {
    leaks(known, path, content).chain(secrets_in(path, content).into_iter().map(Finding::LooksLike)).collect()
}

fn leaks(known: &KnownSecrets, path: &str, content: &[u8]) -> impl Iterator<Item = Finding> {
    let path = path.to_owned();
    let found = known.find(content).into_iter();
    found.map(move |leak| Finding::Known { fingerprint: leak.fingerprint, path: path.clone() })
}

/// What files had where the branch began: it has left before.
struct Before<'s> {
    served: &'s Served,
    base: Option<&'s Sha>,
    known: &'s KnownSecrets,
    /// The fingerprints in each file, once it was read.
    files: BTreeMap<String, BTreeSet<String>>,
}

impl Before<'_> {
    fn had(&mut self, path: &str, fingerprint: &str) -> bool {
        if let Some(there) = self.files.get(path) {
            return there.contains(fingerprint);
        }
        let cap = usize::try_from(OBJECT_BYTES).unwrap_or(usize::MAX);
        // One that cannot be read excuses nothing.
        let content =
            self.base.and_then(|base| self.served.mirror.read_file_at(base, path, cap).ok().flatten());
        let there = content.map(|content| in_file(self.known, path, &content)).unwrap_or_default();
        let there: BTreeSet<String> = there.iter().map(|one| one.fingerprint().to_owned()).collect();
        let had = there.contains(fingerprint);
        self.files.insert(path.to_owned(), there);
        had
    }
}

/// Findings by the head that they were found in, so that a branch that waits is looked through once.
#[derive(Default)]
pub(crate) struct LookedAt {
    /// The values that were known then.
    known: Option<Arc<KnownSecrets>>,
    found: BTreeMap<Sha, Vec<Finding>>,
}

impl LookedAt {
    /// The findings in a branch. One that git cannot read is a finding itself.
    pub(crate) fn findings(&mut self, served: &Served, main: &Sha, head: &Sha) -> &[Finding] {
        let known = known();
        if !self.known.as_ref().is_some_and(|then| Arc::ptr_eq(then, &known)) || self.found.len() >= KEPT {
            self.found.clear();
            self.known = Some(known);
        }
        self.found.entry(head.clone()).or_insert_with(|| {
            look(served, main, head).unwrap_or_else(|error| {
                tracing::warn!(%head, %error, "a branch cannot be looked through for secrets");
                vec![unreadable(head)]
            })
        })
    }
}

/// The place of a finding, for the person who is asked.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) project: &'a ProjectName,
    /// The branch, or whose files they are.
    pub(crate) name: &'a str,
    pub(crate) issue: Option<Number>,
    pub(crate) pr: Option<Number>,
}

/// Asks a person about findings, once for each value.
pub(crate) fn ask(inbox: &Inbox, place: Place<'_>, found: &[Finding]) {
    for finding in found.iter().take(ASKED) {
        let fingerprint = finding.fingerprint();
        let about = About::one_of(Kind::Secret, fingerprint);
        let key = ConcernKey { project: place.project.clone(), about };
        let what = finding.describe();
        let text = match finding {
            Finding::Known { .. } => words::question::known_secret(place.name, &what),
            Finding::LooksLike(_) => words::question::looks_like_secret(place.name, &what, fingerprint),
            Finding::NotLookedAt { .. } => words::question::not_looked_at(place.name, &what),
        };
        let (issue, pr) = (place.issue, place.pr);
        let event = concern::Event::Raised { kind: Kind::Secret, text, issue, pr, told: false };
        inbox.tell(Input::of_concern(key, event));
    }
}

/// Withdraws the questions about findings that the branch of a task does not have any more.
pub(crate) fn withdraw(inbox: &Inbox, open: &[Question], task: &TaskKey, found: &[Finding]) {
    for asked in open.iter().filter(|asked| asked.kind == Kind::Secret) {
        let source = &asked.source;
        let Owner::Concern(about) = &source.owner else { continue };
        let still = found.iter().any(|finding| *about == About::one_of(Kind::Secret, finding.fingerprint()));
        if source.project == task.project && source.issue == Some(task.issue) && !still {
            let key = ConcernKey { project: source.project.clone(), about: about.clone() };
            let why = words::question::SECRET_GONE.to_owned();
            inbox.tell(Input::of_concern(key, concern::Event::Lifted { why }));
        }
    }
}

/// The changes that take down a person's decision. An agent whose branch was not pushed hears of a yes.
pub(super) fn decided(
    engine: &Engine,
    asked: &Question,
    accepted: bool,
    now: Timestamp,
) -> Result<Vec<Change>, pointsman_store::Error> {
    let project = &asked.source.project;
    let Owner::Concern(about) = &asked.source.owner else { return Ok(Vec::new()) };
    let Some((_, fingerprint)) = about.as_str().split_once('/') else { return Ok(Vec::new()) };
    let mut decisions = remembered(engine.store(), project)?;
    decisions.decide(fingerprint, accepted);
    let entry = log::Entry::SecretDecided { fingerprint: fingerprint.to_owned(), accepted };
    let mut change = Change::logged(now, project, &entry);
    change.issue = asked.source.issue;
    change.memories.push(Memory::new(SecretDecisions::MEMORY, &decisions)?);
    let told = asked.source.issue.filter(|_| accepted).and_then(|issue| {
        let key = TaskKey { project: project.clone(), issue };
        let task = engine.tasks().get(&key)?;
        let waits = task.state == State::Working && task.session.stage == Stage::Alive;
        waits.then(|| Task::clone(task))
    });
    if let Some(task) = told {
        let (subject, details) = words::message::secret_accepted(&asked.subject);
        let generation = task.session.generation;
        change.effects = vec![Effect::Deliver { generation, headline: Headline::Answer, subject, details }];
        change.session = task.session_id();
        change.task = Some(task);
    }
    Ok(vec![change])
}
