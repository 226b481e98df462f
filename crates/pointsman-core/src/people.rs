//! People: one person has one name here, whatever account they act from.
//!
//! `[people]` of the machine's file joins a login on this machine, accounts on forges, names in chats and users of the web
//! interface. Approvals and answers are recorded under that one name, so one person with two accounts is still one person.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

use crate::config::{Config, ReviewMode, RiskReviewer};
use crate::words;

/// Longest name of a person or an account.
const NAME_CHARS: usize = 255;

/// The kinds of accounts that a person acts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccountKind {
    /// A user of this machine.
    Login,
    Forge,
    Chat,
    Web,
}

impl AccountKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Login, Self::Forge, Self::Chat, Self::Web];

    /// The word in the machine's file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Forge => "forge",
            Self::Chat => "chat",
            Self::Web => "web",
        }
    }

    /// Whether two spellings name the same account. Forges take no notice of case; the others do.
    fn is_same(self, one: &str, other: &str) -> bool {
        match self {
            Self::Forge => one.eq_ignore_ascii_case(other),
            Self::Login | Self::Chat | Self::Web => one == other,
        }
    }
}

impl fmt::Display for AccountKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One account or several: a person may use more than one forge.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Accounts {
    One(String),
    Several(Vec<String>),
}

impl Default for Accounts {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Accounts {
    fn all(&self) -> &[String] {
        match self {
            Self::One(account) => std::slice::from_ref(account),
            Self::Several(accounts) => accounts,
        }
    }
}

/// The accounts of one person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Person {
    login: Accounts,
    forge: Accounts,
    chat: Accounts,
    web: Accounts,
}

impl Person {
    fn accounts(&self, kind: AccountKind) -> &[String] {
        match kind {
            AccountKind::Login => self.login.all(),
            AccountKind::Forge => self.forge.all(),
            AccountKind::Chat => self.chat.all(),
            AccountKind::Web => self.web.all(),
        }
    }
}

/// `[people]`: everybody whose word counts, by name. Empty: whoever has the means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct People(BTreeMap<String, Person>);

impl People {
    /// Whether nobody is named, so that the rights on the machine and on the forge decide.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The person behind an account.
    pub fn person(&self, kind: AccountKind, account: &str) -> Option<&str> {
        let owns = |person: &Person| person.accounts(kind).iter().any(|own| kind.is_same(own, account));
        self.0.iter().find(|(_, person)| owns(person)).map(|(name, _)| name.as_str())
    }

    /// The name under which an account's words are recorded. An account that belongs to nobody keeps its own name, but never
    /// that of a person.
    pub fn recorded(&self, kind: AccountKind, account: &str) -> String {
        match self.person(kind, account) {
            Some(name) => name.to_owned(),
            None if self.0.keys().any(|name| name.eq_ignore_ascii_case(account)) => {
                format!("{kind}:{account}")
            }
            None => account.to_owned(),
        }
    }

    /// Whether an account may settle anything, as far as `[people]` says.
    pub fn allows(&self, kind: AccountKind, account: &str) -> bool {
        self.is_empty() || self.person(kind, account).is_some()
    }

    /// Whether this is the name of a person, or nobody is named at all.
    pub fn knows(&self, name: &str) -> bool {
        self.is_empty() || self.0.contains_key(name)
    }

    /// The mistake in the table itself, with its key.
    pub(crate) fn mistake(&self) -> Option<(String, String)> {
        let mut known: Vec<(AccountKind, &str, &str)> = Vec::new();
        for (name, person) in &self.0 {
            let key = format!("people.{name}");
            if !is_name(name) {
                return Some((key, words::people::NOT_A_NAME.to_owned()));
            }
            for kind in AccountKind::ALL {
                for account in person.accounts(kind) {
                    if !is_name(account) {
                        return Some((format!("{key}.{kind}"), words::people::NOT_AN_ACCOUNT.to_owned()));
                    }
                    let taken =
                        known.iter().find(|(of, _, other)| *of == kind && kind.is_same(other, account));
                    if let Some((_, other, _)) = taken {
                        return Some((
                            format!("{key}.{kind}"),
                            words::people::account_is_taken(account, other),
                        ));
                    }
                    known.push((kind, name, account));
                }
            }
        }
        None
    }

    /// The reason why a project's configuration cannot be served with these people.
    pub fn lacks(&self, config: &Config) -> Option<String> {
        let named = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let keys = [
            ("review.approvals", config.review.approvals),
            ("review.protected_approvals", config.review.protected_approvals),
            ("vault.high_risk_approvals", config.vault.high_risk_approvals),
        ];
        if let Some((key, wanted)) = keys.into_iter().find(|(_, wanted)| *wanted > 1 && *wanted > named) {
            return Some(words::people::too_few(key, &wanted.to_string(), wanted, named));
        }
        let two = config.risk.reviewers().into_iter().find(|(_, who)| *who == RiskReviewer::TwoPeople);
        if let Some((key, who)) = two.filter(|_| config.review.mode == ReviewMode::Risk && named < 2) {
            return Some(words::people::too_few(key, &format!("\"{who}\""), 2, named));
        }
        let names: BTreeSet<&str> = self.names().collect();
        let stranger = config.vault.people.iter().find(|person| !names.contains(person.as_str()));
        stranger.filter(|_| !self.is_empty()).map(|person| words::people::not_named(person))
    }
}

/// A name is one line that a person can read.
fn is_name(text: &str) -> bool {
    let trimmed = text.trim();
    !text.is_empty() && text.len() <= NAME_CHARS && trimmed == text && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::{AccountKind, People};
    use crate::config::{Config, MachineConfig};

    const TWO: &str = "[people.ann]\nlogin = \"ann\"\nforge = [\"Ann-C\", \"ann2\"]\nchat = \"@ann:example.org\"\n\
                       [people.bob]\nlogin = \"root\"\nweb = \"bob\"\n";

    fn people(text: &str) -> People {
        MachineConfig::parse(text, "config.toml").unwrap().people
    }

    #[test]
    fn every_account_of_a_person_is_that_person() {
        use AccountKind::{Chat, Forge, Login, Web};
        let people = people(TWO);
        // Account, the person behind it, the name that is written down.
        let rows = [
            (Login, "ann", Some("ann"), "ann"),
            (Forge, "ann-c", Some("ann"), "ann"),
            (Forge, "ann2", Some("ann"), "ann"),
            (Chat, "@ann:example.org", Some("ann"), "ann"),
            (Chat, "@Ann:example.org", None, "@Ann:example.org"),
            (Login, "root", Some("bob"), "bob"),
            (Web, "bob", Some("bob"), "bob"),
            // Another account that is called like a person is not that person.
            (Forge, "bob", None, "forge:bob"),
            (Web, "Ann", None, "web:Ann"),
            (Forge, "carl", None, "carl"),
        ];
        for (kind, account, person, recorded) in rows {
            assert_eq!(people.person(kind, account), person, "{kind} {account}");
            assert_eq!(people.recorded(kind, account), recorded, "{kind} {account}");
            assert_eq!(people.allows(kind, account), person.is_some(), "{kind} {account}");
        }
        let nobody = People::default();
        assert!(nobody.allows(Forge, "carl"));
        assert_eq!(nobody.recorded(Login, "ann"), "ann");
    }

    #[test]
    fn an_account_has_one_owner_and_a_key_is_spelt_right() {
        let wrong = |text: &str| MachineConfig::parse(text, "config.toml").unwrap_err();
        assert!(wrong("[people.ann]\nforge = \"x\"\n[people.bob]\nforge = \"X\"").contains("belongs to ann"));
        assert!(wrong("[people.ann]\nmail = \"x\"").contains("mail"));
        assert!(wrong("[people.ann]\nlogin = \"\"").contains("people.ann.login"));
        assert!(wrong("[people]\nann = 3").contains("config.toml"));
        assert_eq!(people("[people]\nann = {}").names().collect::<Vec<_>>(), ["ann"]);
    }

    #[test]
    fn two_approvals_need_two_people() {
        let lacks = |people: &People, keys: &str| {
            let config = Config::parse(&format!("name = \"shop\"\n{keys}"), "pointsman.toml").unwrap();
            people.lacks(&config)
        };
        let (none, one) = (People::default(), people("[people]\nann = {}"));
        let two = people(TWO);
        for key in [
            "[review]\napprovals = 2",
            "[review]\nprotected_approvals = 2",
            "[vault]\nhigh_risk_approvals = 2",
            "[review]\nmode = \"risk\"\n[risk]\ncritical = \"two_people\"",
        ] {
            for few in [&none, &one] {
                let why = lacks(few, key).unwrap_or_else(|| panic!("{key}"));
                assert!(
                    why.contains("approvals = 2") || why.contains("risk.critical = \"two_people\""),
                    "{why}"
                );
            }
            assert_eq!(lacks(&two, key), None, "{key}");
        }
        assert_eq!(lacks(&none, ""), None);
        assert_eq!(lacks(&none, "[vault]\npeople = [\"carl\"]"), None);
        assert_eq!(lacks(&two, "[vault]\npeople = [\"ann\"]"), None);
        assert!(lacks(&two, "[vault]\npeople = [\"carl\"]").is_some_and(|why| why.contains("carl")));
    }
}
