//! A request to a server.

use serde::Serialize;

/// The verb of a request. It decides whether a failed call may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    /// Makes something: twice makes two.
    Post,
    Put,
    /// Changes something to what it says.
    Patch,
    Delete,
}

impl Method {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// One request, being put together. Whatever becomes part of the address is escaped.
#[derive(Clone, Debug)]
pub struct Request {
    pub(super) operation: &'static str,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) body: Option<Vec<u8>>,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) repeatable: bool,
    pub(super) json: bool,
}

impl Request {
    /// A request for what lies below these path segments. `operation` names it for people: "list issues".
    pub fn new(operation: &'static str, method: Method, segments: &[&str]) -> Self {
        let path = segments.iter().fold(String::new(), |path, segment| path + "/" + &escaped(segment));
        Self {
            operation,
            method,
            path,
            query: String::new(),
            body: None,
            headers: Vec::new(),
            // Setting a thing twice is setting it once; making it twice is not.
            repeatable: method != Method::Post,
            json: true,
        }
    }

    /// A request that reads and may be repeated.
    pub fn get(operation: &'static str, segments: &[&str]) -> Self {
        Self::new(operation, Method::Get, segments)
    }

    /// A request that creates something. It is never repeated blindly, because twice makes two.
    pub fn post(operation: &'static str, segments: &[&str]) -> Self {
        Self::new(operation, Method::Post, segments)
    }

    /// Adds a parameter.
    pub fn query(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        if !self.query.is_empty() {
            self.query.push('&');
        }
        self.query.push_str(&format!("{}={}", escaped(name), escaped(&value.to_string())));
        self
    }

    /// Adds a body.
    pub fn body(mut self, value: &impl Serialize) -> Self {
        self.body = Some(serde_json::to_vec(value).expect("our own values are JSON"));
        self
    }

    /// Adds a header. Not for secrets: those belong to the account.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// A second time does no harm, although it is a POST: the server recognises it, or it only reads.
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// The answer is a text, not JSON.
    pub fn text(mut self) -> Self {
        self.json = false;
        self
    }

    pub(super) fn url(&self, base: &str) -> String {
        let mark = if self.query.is_empty() { "" } else { "?" };
        format!("{base}{}{mark}{}", self.path, self.query)
    }

    /// The same request for the page that a server calls the next one. Only the query is taken from it: the server
    /// may know itself under another address than we do, and ours is the one that may see our token.
    pub(super) fn page(&self, query: &str) -> Self {
        Self { query: query.to_owned(), ..self.clone() }
    }
}

/// A segment or value with everything escaped that could mean something in an address.
fn escaped(text: &str) -> String {
    // A segment of dots would be resolved as a path.
    let dots = matches!(text, "." | "..");
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'.' if dots => out.push_str("%2E"),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::Request;

    #[test]
    fn nothing_from_outside_changes_the_shape_of_an_address() {
        let request = Request::get("read", &["repos", "a/b", "..", "fix?x#y", "ü"]).query("q", "a&b=c d");
        assert_eq!(
            request.url("https://h/api"),
            "https://h/api/repos/a%2Fb/%2E%2E/fix%3Fx%23y/%C3%BC?q=a%26b%3Dc%20d"
        );
    }
}
