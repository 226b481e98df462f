//! Names of the people of this machine, by their user ids.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::process::Run;

/// For the name service, which may have to ask a server.
const LOOKUP_LIMIT: Duration = Duration::from_secs(5);

/// The login of a user id: from `/etc/passwd`, else from the name service (`getent`), else `uid-1000`, which is nobody's
/// login and still tells people apart.
pub fn name(uid: u32) -> String {
    look_up(uid).unwrap_or_else(|| unnamed(uid))
}

/// The logins that were found so far. A look-up that failed is not remembered: a name service that is down for a moment
/// must not cost a person their name for as long as we run.
#[derive(Debug)]
pub struct Logins {
    found: Mutex<BTreeMap<u32, String>>,
    look_up: fn(u32) -> Option<String>,
}

impl Default for Logins {
    fn default() -> Self {
        Self { found: Mutex::default(), look_up }
    }
}

impl Logins {
    /// The same as [`name`]. While one name is looked up, nobody else waits.
    pub fn name(&self, uid: u32) -> String {
        let found = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let known = found().get(&uid).cloned();
        if let Some(name) = known {
            return name;
        }
        let Some(name) = (self.look_up)(uid) else { return unnamed(uid) };
        found().insert(uid, name.clone());
        name
    }
}

const PASSWD: &str = "/etc/passwd";

fn look_up(uid: u32) -> Option<String> {
    let file = fs::read(PASSWD).unwrap_or_default();
    find(&String::from_utf8_lossy(&file), uid).or_else(|| asked(uid))
}

fn unnamed(uid: u32) -> String {
    format!("uid-{uid}")
}

fn asked(uid: u32) -> Option<String> {
    let run =
        Run::new("getent").args(["passwd", &uid.to_string()]).inherit(&["PATH"]).time_limit(LOOKUP_LIMIT);
    let told = run.finish().ok().filter(|told| told.end.success())?;
    find(&String::from_utf8_lossy(&told.stdout), uid)
}

/// Lines of `name:password:uid:…`; the first one of a uid counts, as for every other program.
fn find(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (!name.is_empty() && id.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Logins, find, name};

    #[test]
    fn a_name_is_remembered_and_a_failure_is_not() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let look_up = |_| (ASKED.fetch_add(1, Ordering::SeqCst) > 0).then(|| "ann".to_owned());
        let logins = Logins { look_up, ..Logins::default() };
        assert_eq!(logins.name(1000), "uid-1000", "the name service is down");
        assert_eq!((logins.name(1000), logins.name(1000)), ("ann".to_owned(), "ann".to_owned()));
        assert_eq!(ASKED.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_user_id_has_the_first_name_that_is_listed() {
        let passwd =
            "root:x:0:0:root:/:/bin/sh\n# a comment\nann:x:1000:1000:::\nanna:x:1000:1000:::\n:x:7::::\n";
        assert_eq!(find(passwd, 1000).as_deref(), Some("ann"));
        assert_eq!(find(passwd, 0).as_deref(), Some("root"));
        assert_eq!((find(passwd, 7), find(passwd, 8)), (None, None));
        assert_eq!(name(0), "root");
        assert_eq!(name(4_000_000_123), "uid-4000000123");
    }
}
