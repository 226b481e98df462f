//! A token that stays, or one that is fetched anew before it ends.

use std::sync::Arc;

use super::Secret;

/// Somebody who has a token for us, for a while.
pub trait Renewed: Send + Sync {
    /// One that can be used now; else why there is none.
    fn token(&self) -> Result<Secret, String>;

    /// The last one, to keep it out of texts.
    fn last(&self) -> Option<Secret>;

    /// The server does not take it: a new one is fetched next time.
    fn forget(&self);
}

/// The credential of an account at a server.
#[derive(Clone)]
pub enum Token {
    Fixed(Secret),
    /// Another one from time to time.
    Renewed(Arc<dyn Renewed>),
}

impl Token {
    /// One that can be used now; else why there is none.
    pub fn now(&self) -> Result<Secret, String> {
        match self {
            Self::Fixed(secret) => Ok(secret.clone()),
            Self::Renewed(renewed) => renewed.token(),
        }
    }

    /// A text without it.
    pub fn redact(&self, text: &str) -> String {
        let last = match self {
            Self::Fixed(secret) => Some(secret.clone()),
            Self::Renewed(renewed) => renewed.last(),
        };
        last.map_or_else(|| text.to_owned(), |secret| secret.redact(text))
    }

    /// The server does not take it.
    pub(crate) fn refused(&self) {
        match self {
            Self::Fixed(_) => {}
            Self::Renewed(renewed) => renewed.forget(),
        }
    }
}

impl From<Secret> for Token {
    fn from(secret: Secret) -> Self {
        Self::Fixed(secret)
    }
}
