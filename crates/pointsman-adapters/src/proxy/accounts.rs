//! Accounts of the relay: the operator's credentials, the usage of every session, the calls under way and the
//! waits that the service asked for. Usage and waits lie in files, so that they survive the relay and the daemon; credentials are
//! in memory only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use pointsman_core::relay::pool::{Pools, reservation};
use pointsman_core::relay::usage::{CallUsage, SessionUsage};
use pointsman_core::relay::{CredentialName, ModelAccess, Unpassed};
use pointsman_core::session::budget::Spent;
use pointsman_core::time::Timestamp;

use super::{LIMITED, Limited, POOLS, usage_file};
use crate::phase_file;
use crate::secret::Secret;

/// The accounts of all sessions.
pub(super) struct Accounts {
    dir: PathBuf,
    now: fn() -> Timestamp,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    credentials: BTreeMap<CredentialName, Secret>,
    limited: Limited,
    sessions: BTreeMap<String, Account>,
    next_call: u64,
}

/// The account of one session.
struct Account {
    /// The name of its sandbox.
    sandbox: String,
    usage: SessionUsage,
    pools: Vec<String>,
    under_way: BTreeMap<u64, Spent>,
    is_open: bool,
}

/// A call that was admitted. Its reservation is given back when it is booked or dropped.
pub(super) struct Admitted<'a> {
    accounts: &'a Accounts,
    session: String,
    call: u64,
}

impl Accounts {
    pub(super) fn new(dir: &Path, now: fn() -> Timestamp) -> Self {
        let limited = fs::read(dir.join(LIMITED)).unwrap_or_default();
        let limited = serde_json::from_slice(&limited).unwrap_or_default();
        Self { dir: dir.to_owned(), now, state: Mutex::new(State { limited, ..State::default() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a credential in; one without a value is forgotten. Another value has to wait for nothing.
    pub(super) fn learn(&self, name: CredentialName, secret: Option<Secret>) {
        let mut state = self.state();
        let known = state.credentials.get(&name);
        if known.is_some() && known != secret.as_ref() && state.limited.0.remove(&name).is_some() {
            self.write_limited(&state.limited);
        }
        match secret {
            Some(secret) => state.credentials.insert(name, secret),
            None => state.credentials.remove(&name),
        };
    }

    pub(super) fn credential(&self, name: CredentialName) -> Option<Secret> {
        self.state().credentials.get(&name).cloned()
    }

    /// The service wants nothing more of a credential for so many seconds.
    pub(super) fn limit(&self, name: CredentialName, seconds: u64) {
        let mut state = self.state();
        let wait = std::time::Duration::from_secs(seconds);
        state.limited.0.insert(name, (self.now)().after(wait));
        self.write_limited(&state.limited);
    }

    fn write_limited(&self, limited: &Limited) {
        let text = serde_json::to_vec(limited).unwrap_or_default();
        if let Err(error) = phase_file::write_state_file(&self.dir.join(LIMITED), &text) {
            eprintln!("pointsman proxy: {LIMITED}: {error}");
        }
    }

    /// Whether the credential has to wait: then nothing is asked of the service.
    pub(super) fn must_wait(&self, name: CredentialName) -> Result<(), Unpassed> {
        let until = self.state().limited.0.get(&name).copied();
        match until.map(|until| until.since((self.now)()).as_secs()) {
            Some(seconds) if seconds > 0 => Err(Unpassed::RateLimit(seconds)),
            _ => Ok(()),
        }
    }

    /// Begins a call, if it fits into all budgets.
    pub(super) fn admit(
        &self,
        sandbox: &str,
        access: &ModelAccess,
        request_bytes: u64,
    ) -> Result<Admitted<'_>, Unpassed> {
        let pools = self.pools();
        let mut state = self.state();
        state.sessions.retain(|name, account| account.is_open || pools.names(name));
        let path = self.dir.join(usage_file(sandbox));
        let account = state.sessions.entry(access.session.clone()).or_insert_with(|| {
            let kept = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
            let kept = kept.filter(|kept: &SessionUsage| kept.session == access.session);
            Account {
                sandbox: sandbox.to_owned(),
                usage: kept.unwrap_or_else(|| SessionUsage::new(&access.session, access.role)),
                pools: Vec::new(),
                under_way: BTreeMap::new(),
                is_open: true,
            }
        });
        account.is_open = true;
        account.pools.clone_from(&access.pools);
        let state = &mut *state;
        self.fits(state, &pools, access)?;
        let call = state.next_call;
        state.next_call += 1;
        if let Some(account) = state.sessions.get_mut(&access.session) {
            account.under_way.insert(call, reservation(&account.usage, request_bytes, ""));
        }
        Ok(Admitted { accounts: self, session: access.session.clone(), call })
    }

    fn pools(&self) -> Pools {
        let text = fs::read(self.dir.join(POOLS)).ok();
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// Whether one more call of a session fits into all budgets, beside those that are under way.
    fn fits(&self, state: &mut State, pools: &Pools, access: &ModelAccess) -> Result<(), Unpassed> {
        let used = |session: &str| match state.sessions.get(session) {
            Some(account) => account.used(),
            // Its sandbox has not made a call since this process began.
            None => self.kept(session),
        };
        let others = |pool: &str| {
            let of_pool = state.sessions.iter().filter(|(_, one)| one.pools.iter().any(|name| name == pool));
            of_pool.map(|(session, _)| session.clone()).collect()
        };
        let Err(what) = pools.admit(&access.pools, used, others) else { return Ok(()) };
        let what = what.to_owned();
        if let Some(account) = state.sessions.get_mut(&access.session) {
            account.usage.refused += 1;
            self.write(account);
        }
        Err(Unpassed::Budget(what))
    }

    /// The usage of a session in its file.
    fn kept(&self, session: &str) -> Spent {
        let files = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let usages = files.filter(|entry| entry.file_name().to_string_lossy().ends_with(super::USAGE));
        let mut read = usages
            .filter_map(|entry| serde_json::from_slice::<SessionUsage>(&fs::read(entry.path()).ok()?).ok());
        read.find(|usage| usage.session == session).map(|usage| usage.spent()).unwrap_or_default()
    }

    /// A sandbox is over. Its usage stays as long as a budget counts on it.
    pub(super) fn close(&self, sandbox: &str) {
        for account in self.state().sessions.values_mut().filter(|account| account.sandbox == sandbox) {
            account.is_open = false;
        }
    }

    fn write(&self, account: &Account) {
        let write = || -> io::Result<()> {
            let text = serde_json::to_vec(&account.usage)?;
            phase_file::write_state_file(&self.dir.join(usage_file(&account.sandbox)), &text)
        };
        if let Err(error) = write() {
            eprintln!("pointsman proxy: the usage of {}: {error}", account.usage.session);
        }
    }
}

impl Account {
    /// What it has used, with the reservations of its calls under way.
    fn used(&self) -> Spent {
        self.under_way.values().fold(self.usage.spent(), |sum, one| sum.plus(*one))
    }
}

impl Admitted<'_> {
    /// Reserves what the call may use, now that its request is known. Of calls that came at the same time, those that do not fit
    /// any more are refused: each counts what the others have reserved.
    pub(super) fn weigh(
        &self,
        access: &ModelAccess,
        request_bytes: u64,
        model: &str,
    ) -> Result<(), Unpassed> {
        let pools = self.accounts.pools();
        let mut state = self.accounts.state();
        // Its own reservation, made from a length that it told itself, is none of the others.
        if let Some(account) = state.sessions.get_mut(&self.session) {
            account.under_way.remove(&self.call);
        }
        self.accounts.fits(&mut state, &pools, access)?;
        if let Some(account) = state.sessions.get_mut(&self.session) {
            let reserved = reservation(&account.usage, request_bytes, model);
            account.under_way.insert(self.call, reserved);
        }
        Ok(())
    }

    /// Books the usage in place of the reservation. It is in a file before anybody learns of the answer's end.
    pub(super) fn book(&self, usage: &CallUsage) {
        let mut state = self.accounts.state();
        if let Some(account) = state.sessions.get_mut(&self.session) {
            account.under_way.remove(&self.call);
            account.usage.add(usage);
            self.accounts.write(account);
        }
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if let Some(account) = self.accounts.state().sessions.get_mut(&self.session) {
            account.under_way.remove(&self.call);
        }
    }
}
