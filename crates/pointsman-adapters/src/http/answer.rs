//! A server's answer.

use serde::de::DeserializeOwned;

use super::error::{Error, ErrorKind};
use crate::retry::Retry;

/// A successful answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) operation: &'static str,
    pub(super) host: String,
    pub(super) repeatable: bool,
    /// The status: 200 to 299.
    pub status: u16,
    pub body: Vec<u8>,
    /// How many there are in all, if the server says so of a list.
    pub(super) total: Option<usize>,
    /// The query of the next page.
    pub(super) next: Option<String>,
    /// Whether the server said where the next page is, or that there is none.
    pub(super) linked: bool,
}

impl Answer {
    /// The body as a value.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error {
            operation: self.operation,
            host: self.host.clone(),
            // What it said is whole, but not what we know: it will say the same again.
            retry: if self.repeatable { Retry::Never } else { Retry::LookFirst },
            trouble: ErrorKind::Unexpected { what: format!("{error}") },
        })
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The query of `rel="next"` in a `Link` header.
pub(super) fn next_page(link: &str) -> Option<String> {
    let next = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    let url = next.trim().strip_prefix('<')?.split('>').next()?;
    let (_, query) = url.split_once('?')?;
    let plain = query.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
    plain.then(|| query.to_owned())
}

#[cfg(test)]
mod tests {
    use super::next_page;

    #[test]
    fn the_next_page_is_a_query_and_nothing_else() {
        let link =
            "<http://other:3000/api/v1/x?limit=1&page=2>; rel=\"next\",<http://other/x?page=9>; rel=\"last\"";
        assert_eq!(next_page(link).as_deref(), Some("limit=1&page=2"));
        assert_eq!(next_page("<http://h/x?page=1>; rel=\"prev\""), None);
        assert_eq!(next_page("<http://h/x?a b>; rel=\"next\""), None);
    }
}
