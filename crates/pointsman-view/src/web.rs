//! The web: login links and tokens.

use serde::{Deserialize, Serialize};

use crate::Time;

/// `web open`: a link that logs a browser in, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub url: String,
    pub expires_at: Time,
}

/// `web token create`, `list` and `revoke`: a token of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub id: u64,
    pub label: String,
    /// The person for whom it speaks.
    pub by: String,
    /// `read`, `order`, `approve`
    pub scopes: Vec<String>,
    pub created_at: Time,
    /// The secret itself; only when it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}
