//! The web, to people: where it listens, and why it does not.

/// An address that others could reach.
pub fn beyond_loopback(listen: &str) -> String {
    format!(
        "{listen} can be reached from other machines, and the web answers on this machine only: use 127.0.0.1:PORT, and a tunnel (ssh -L) from elsewhere"
    )
}

/// A text that is no address.
pub fn no_address(listen: &str) -> String {
    format!("{listen:?} is not an address: write IP:PORT, or \"\" for no web")
}

/// The web is switched off, and somebody wants in.
pub const OFF: &str = "the web is switched off: web.listen in the machine's file is empty. Set it, and run pointsman up --replace";

/// The daemon could not listen.
pub fn does_not_listen(address: &str, error: &str) -> String {
    format!(
        "the web does not listen on {address}: {error}. Everything else works; web.listen in the machine's file chooses another address"
    )
}

/// A login link, on a terminal.
pub fn link(url: &str) -> String {
    format!(
        "Dashboard: {url}\nThe link logs one browser in, once, within 10 minutes. Another one: pointsman web open"
    )
}

/// There are too many tokens.
pub const TOO_MANY_TOKENS: &str = "there are too many tokens: revoke one first (pointsman web token list)";

/// A token was made, and its secret is above.
pub fn token_made(id: u64) -> String {
    format!(
        "This is token {id}. It is not shown again. To make it worthless: pointsman web token revoke {id}"
    )
}

/// There is no such token.
pub fn no_token(id: u64) -> String {
    format!("there is no token {id}")
}

/// A token without any right.
pub const NO_SCOPE: &str = "a token needs at least one scope: read, order or approve";

/// An answer without words.
pub const EMPTY_ANSWER: &str = "the answer is empty";

/// A no without a reason.
pub const EMPTY_REASON: &str = "say what should change, or comment on a line";

/// A form that was not made by a page of this login.
pub const OLD_FORM: &str =
    "this form is too old, or it is not from your page: go back, reload the page and try again";

/// A login or a token could not be written down.
pub fn logins_not_kept(error: &str) -> String {
    format!("the login could not be written down: {error}")
}

/// The consequences of a decision about a commit.
pub fn promise_of_review(sha: &str) -> String {
    format!(
        "Approve: {sha} may land. Request changes: the agent gets your words and comments as one message."
    )
}

/// A session that had no sandbox.
pub fn worked_outside(session: &str) -> String {
    format!("{session} worked without a sandbox")
}

/// Lines of a diff that a page does not show.
pub fn lines_left_out(count: u64) -> String {
    format!("{count} more lines are not shown here: pointsman forge pr diff shows them")
}

/// A program without a right to read.
pub const NO_READ: &str = "this needs a token with the scope read";

/// A program without a token that counts.
pub const NO_TOKEN: &str = "this needs a token in the header Authorization: Bearer TOKEN";

/// A path of the API that does not exist.
pub const NOTHING_HERE: &str = "there is nothing at this address";

/// A request to file an issue without one.
pub const NO_ISSUE: &str = "an issue needs a title: send {\"title\": …}";

/// A key of an order that is empty, too long or not plain.
pub const BAD_KEY: &str = "Idempotency-Key has 1 to 200 plain characters";

/// The key of an order was used for something else.
pub const KEY_OF_ANOTHER_ORDER: &str = "this Idempotency-Key belongs to another order";

/// The same order came twice at the same time.
pub const ORDER_UNDER_WAY: &str = "the order with this Idempotency-Key is still being carried out";
