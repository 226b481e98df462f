//! A GitHub App in place of an account: its private key signs a short-lived proof of who it is, with which it gets a token
//! for one installation, good for an hour. That token is what everything else shows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pointsman_core::base64;
use pointsman_core::time::Timestamp;
use rustls::SignatureScheme;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::SigningKey;
use serde::Deserialize;
use serde_json::json;

use super::MANNER;
use crate::forge::Error;
use crate::forge::hosted::AppAccount;
use crate::forge::hosted::errors::told;
use crate::http::{Client, Host, Method, Request, Scheme, timestamp};
use crate::secret::{Renewed, Secret, Token, remember_for_now};

const OPERATION: &str = "be a GitHub App";
/// A proof is valid from a little before now, because clocks differ, and for less than the ten minutes that are allowed.
const PROOF_BEFORE: i64 = 60;
const PROOF_AFTER: i64 = 540;
/// A token is renewed so long before it ends.
const RENEWED_BEFORE: Duration = Duration::from_secs(300);
/// What a token must be allowed to do.
const NEEDED: [&str; 4] = ["contents", "issues", "pull_requests", "statuses"];

/// The identity of a GitHub App, from which tokens for one installation are made.
pub struct AppKey<'a> {
    /// Its number or client id.
    pub id: &'a str,
    /// Its private key, as GitHub gives it (PEM).
    pub key: &'a str,
    /// Its installation, if it is not to be looked for by the repository.
    pub installation: Option<u64>,
}

/// An App, installed at a repository.
pub(super) struct App {
    client: Client,
    repository: (String, String),
    known: Mutex<Cache>,
}

/// All of it can be lost.
#[derive(Default)]
struct Cache {
    installation: Option<u64>,
    name: Option<String>,
    token: Option<(Secret, Timestamp)>,
    rights: BTreeMap<String, String>,
}

/// Proves who the App is.
struct AppClaims {
    id: String,
    key: Arc<dyn SigningKey>,
    host: Arc<Host>,
}

impl App {
    /// An App that talks to the API of `host`. Nothing is asked yet.
    pub(super) fn new(
        app: &AppKey<'_>,
        host: Arc<Host>,
        repository: (&str, &str),
    ) -> Result<Arc<Self>, Error> {
        let refused = |reason: &str| Error::Refused { operation: OPERATION, reason: reason.to_owned() };
        let key = PrivateKeyDer::from_pem_slice(app.key.as_bytes())
            .map_err(|_| refused("its key file holds no private key (PEM)"))?;
        let key = rustls::crypto::ring::sign::any_supported_type(&key)
            .map_err(|_| refused("its private key is of an unknown kind"))?;
        if key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]).is_none() {
            return Err(refused("its private key is no RSA key"));
        }
        let proof = Arc::new(AppClaims { id: app.id.to_owned(), key, host: Arc::clone(&host) });
        Ok(Arc::new(Self {
            client: host.client_with(Some((Scheme::Bearer, Token::Renewed(proof)))),
            repository: (repository.0.to_owned(), repository.1.to_owned()),
            known: Mutex::new(Cache { installation: app.installation, ..Cache::default() }),
        }))
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn installation(&self, known: &mut Cache) -> Result<u64, Error> {
        #[derive(Deserialize)]
        struct Installation {
            id: u64,
        }
        if let Some(id) = known.installation {
            return Ok(id);
        }
        let path = ["repos", &self.repository.0, &self.repository.1, "installation"];
        let found: Option<Installation> = self.client.find(&request(Method::Get, &path)).map_err(told)?;
        let Some(Installation { id }) = found else {
            let reason = format!("it is not installed at {}/{}", self.repository.0, self.repository.1);
            return Err(Error::Refused { operation: OPERATION, reason });
        };
        known.installation = Some(id);
        Ok(id)
    }

    /// A token for the installation: the known one, or a new one. Whoever comes meanwhile waits for the same.
    fn fetch(&self) -> Result<Secret, Error> {
        #[derive(Deserialize)]
        struct InstallationToken {
            token: String,
            expires_at: String,
            #[serde(default)]
            permissions: BTreeMap<String, String>,
        }
        let host = self.client.host();
        let mut known = self.cache();
        if let Some((token, ends)) = &known.token
            && (host.clock)().after(RENEWED_BEFORE) < *ends
        {
            return Ok(token.clone());
        }
        let id = self.installation(&mut known)?.to_string();
        let path = ["app", "installations", &id, "access_tokens"];
        // Asked for twice, there are two: that does no harm.
        let order = request(Method::Post, &path).body(&json!({ "repositories": [self.repository.1] }));
        let given: InstallationToken = self.client.read(&order.repeatable()).map_err(told)?;
        let odd = || Error::Unavailable { reason: "GitHub gave no usable token".to_owned() };
        let token = Secret::new(&given.token).ok_or_else(odd)?;
        remember_for_now(&given.token);
        let ends = timestamp(&given.expires_at).ok_or_else(odd)?;
        known.token = Some((token.clone(), host.our_time(ends)));
        known.rights = given.permissions;
        Ok(token)
    }
}

impl Renewed for App {
    fn token(&self) -> Result<Secret, String> {
        self.fetch().map_err(|error| error.to_string())
    }

    fn last(&self) -> Option<Secret> {
        self.cache().token.as_ref().map(|(token, _)| token.clone())
    }

    fn forget(&self) {
        self.cache().token = None;
    }
}

impl AppAccount for App {
    fn name(&self) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct AppIdentity {
            slug: String,
        }
        if let Some(name) = &self.cache().name {
            return Ok(name.clone());
        }
        let AppIdentity { slug } = self.client.read(&request(Method::Get, &["app"])).map_err(told)?;
        let name = format!("{slug}[bot]");
        self.cache().name = Some(name.clone());
        Ok(name)
    }

    fn lacks(&self) -> Result<Vec<String>, Error> {
        self.fetch()?;
        let rights = &self.cache().rights;
        let missing = NEEDED.iter().filter(|right| rights.get(**right).is_none_or(|given| given != "write"));
        Ok(missing.map(|right| format!("the App needs the permission {right}: read and write")).collect())
    }
}

impl Renewed for AppClaims {
    fn token(&self) -> Result<Secret, String> {
        let theirs = (self.host.clock)().0.saturating_add(self.host.ahead_ms()) / 1000;
        let claims = json!({ "iat": theirs - PROOF_BEFORE, "exp": theirs + PROOF_AFTER, "iss": self.id });
        let said = format!(
            "{}.{}",
            coded(b"{\"alg\":\"RS256\",\"typ\":\"JWT\"}"),
            coded(claims.to_string().as_bytes())
        );
        let signature = signed(&*self.key, said.as_bytes()).ok_or("the private key cannot sign")?;
        Secret::new(&format!("{said}.{}", coded(&signature)))
            .ok_or_else(|| "the proof is too long".to_owned())
    }

    fn last(&self) -> Option<Secret> {
        None
    }

    fn forget(&self) {}
}

fn request(method: Method, path: &[&str]) -> Request {
    let plain = Request::new(OPERATION, method, path);
    MANNER.headers.iter().fold(plain, |request, (name, value)| request.header(name, *value))
}

fn signed(key: &dyn SigningKey, said: &[u8]) -> Option<Vec<u8>> {
    key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])?.sign(said).ok()
}

/// Base64 as addresses and proofs have it.
fn coded(bytes: &[u8]) -> String {
    base64::encode(bytes).trim_end_matches('=').replace('+', "-").replace('/', "_")
}

#[cfg(test)]
mod tests {
    use pointsman_testkit::fake_forgejo::APP_KEY;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject;

    use super::{coded, signed};

    /// As `openssl dgst -sha256 -sign` signs it with the same key.
    const SIGNED: &str = "YscexTIvB7x2qyVtqXs7UV7_ExGwWbXbNlMq3mzDAp1ajAYETNrb2iZ0K5g2EeVpDJuobSwWiPSJ9gNt6USFcn\
                          4uWz2eFCC4mzmT9pKyCptTlLJgz-R8IbcInasQzdOqyaAknHaNuiheNTvUS8V2i8uXg008llcWaPSRHugZdQcs\
                          Ssx4ymLfPTtNGH4Evp7Ea6Gd-fOjjKkw9jubnbFMjUZA0lP0ytHvm8CXZKjsSnOqq6VjIOdrbsMo0P4lyA6EuY\
                          1LztoZ1_Of4p7E_HWHqXRwv8NICDOSQP0EC_X7QSdTTcELBL6ad5N_psvvTOzPWiRRAMPgPYsTpb6wROgZ4g";

    #[test]
    fn a_proof_is_signed_as_everybody_signs_it() {
        let key = PrivateKeyDer::from_pem_slice(APP_KEY.as_bytes()).unwrap();
        let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
        assert_eq!(coded(b"{\"alg\":\"RS256\"}"), "eyJhbGciOiJSUzI1NiJ9");
        assert_eq!(coded(&signed(&*key, b"eyJhbGciOiJSUzI1NiJ9.e30").unwrap()), SIGNED);
    }
}
