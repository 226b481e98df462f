//! Trouble outside: rate limits, outages, logins. It parks the work and costs no attempt.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// The kinds of trouble that waiting or a person can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Too many requests, or a quota is used up.
    RateLimit,
    /// The service is in trouble itself.
    ServerError,
    /// It does not know us (any more).
    AuthenticationFailed,
    BillingError,
}

impl Kind {
    const ALL: [Self; 4] =
        [Self::RateLimit, Self::ServerError, Self::AuthenticationFailed, Self::BillingError];

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The name in a phase file's reason.
    pub fn name(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::ServerError => "server_error",
            Self::AuthenticationFailed => "authentication_failed",
            Self::BillingError => "billing_error",
        }
    }
}

/// Trouble that a session reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideTrouble {
    pub kind: Kind,
    /// When it is over, if that is known.
    pub until: Option<Timestamp>,
}

/// However long somebody asks us to wait, we look again after a day.
const LONGEST_SECONDS: i64 = 24 * 3600;

impl OutsideTrouble {
    /// Reads `api_error: rate_limit`, with `retry after 120s` or `until <unix seconds>` behind it.
    pub fn parse(reason: &str, now: Timestamp) -> Option<Self> {
        let rest = reason.trim().strip_prefix("api_error")?.trim_start_matches([':', ' ']);
        let kind = Kind::ALL.into_iter().find(|kind| rest.starts_with(kind.name()))?;
        let number_after = |words: &str| -> Option<i64> {
            let (_, tail) = rest.split_once(words)?;
            let digits: String = tail.trim_start().chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        };
        let seconds = match (number_after("retry after"), number_after("until")) {
            (Some(seconds), _) => Some(seconds),
            (None, Some(at)) => Some(at.saturating_sub(now.0 / 1000)),
            (None, None) => None,
        };
        let until = seconds.map(|s| Timestamp(now.0.saturating_add(s.clamp(1, LONGEST_SECONDS) * 1000)));
        Some(Self { kind, until })
    }

    /// Trouble whose end the service has told, or not.
    pub fn told(kind: Kind, until: Option<Timestamp>, now: Timestamp) -> Self {
        let wait = |at: Timestamp| at.0.saturating_sub(now.0).clamp(1000, LONGEST_SECONDS * 1000);
        Self { kind, until: until.map(|at| Timestamp(now.0.saturating_add(wait(at)))) }
    }

    /// Whether waiting alone will not help.
    pub fn needs_a_person(&self) -> bool {
        match self.kind {
            Kind::RateLimit | Kind::ServerError => false,
            Kind::AuthenticationFailed | Kind::BillingError => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, OutsideTrouble};
    use crate::time::Timestamp;

    #[test]
    fn trouble_is_read_from_a_reason() {
        let now = Timestamp(1_000_000);
        let parse = |text| OutsideTrouble::parse(text, now);
        assert_eq!(
            parse("api_error: rate_limit"),
            Some(OutsideTrouble { kind: Kind::RateLimit, until: None })
        );
        assert_eq!(parse("api_error: rate_limit retry after 90s").unwrap().until, Some(Timestamp(1_090_000)));
        assert_eq!(parse("api_error: server_error until 1060").unwrap().until, Some(Timestamp(1_060_000)));
        assert!(parse("api_error: billing_error").unwrap().needs_a_person());
        assert_eq!(parse("api_error: meteor"), None);
        assert_eq!(parse("it broke"), None);
        let long = parse("api_error: rate_limit retry after 99999999999").unwrap().until;
        assert_eq!(long, Some(Timestamp(1_000_000 + 86_400_000)), "a day at most");
        assert_eq!(
            parse("api_error: rate_limit until 5").unwrap().until,
            Some(Timestamp(1_001_000)),
            "in the past"
        );
    }
}
