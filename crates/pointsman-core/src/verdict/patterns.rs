//! The phrases by which a log shows that the network, not the code, took too long.

use std::sync::LazyLock;

use regex::Regex;

/// Phrases of network libraries and tools, in lower case. Each names the network or comes from one
/// library's fixed wording: a bare "timed out" is what test frameworks print.
const NETWORK_PHRASES: &[&str] = &[
    "connection timed out",
    "connection timeout",
    "connect timed out",
    "connect timeout",
    "connection attempt timed out",
    "operation timed out",
    "read timed out",
    "write timed out",
    "request timed out",
    "timeout was reached",
    "i/o timeout",
    "tls handshake timeout",
    "ssl connection timeout",
    "handshake timed out",
    "context deadline exceeded",
    "client.timeout exceeded",
    "gateway timeout",
    "gateway time-out",
    "etimedout",
    "esockettimedout",
    "err_socket_timeout",
    "readtimeouterror",
    "connecttimeouterror",
    "sockettimeoutexception",
    "dns lookup timed out",
    "timed out while waiting for a response from the server",
];

/// Lines that report on a test, whatever words its name or its assertion contains.
static ABOUT_A_TEST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^\s*(?:[✓✔√✕✖✗✘×●○]|\d+\) |(?:not )?ok\b|---? (?:pass|fail|skip)|pass(?:ed)?\b|fail\b|failed \S*test|test ",
        r"|e\s{2,}|>\s|[-+]\s)",
        r"|tests? timed out|exceeded timeout of|timeout of \d+ ?ms exceeded|_test\.go:\d+",
        r"|assert|\bexpect(?:ed|\()|panicked at",
    ))
    .expect("the pattern is fixed and covered by tests")
});

/// Wordings with something variable in the middle. Curl's and git's "failed to connect" counts only
/// for another machine: a test that cannot reach its own server is the code's fault.
static NETWORK_FORMS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"docker pull.*timeout|failed to connect to (?P<host>\S+) port \d+")
        .expect("the pattern is fixed and covered by tests")
});

/// The phrase that shows a network time-out in the log, if there is one.
pub(super) fn network_timeout(log: &str) -> Option<&'static str> {
    log.lines().find_map(|line| {
        let line = line.to_lowercase();
        let phrase = phrase_in(&line)?;
        (!ABOUT_A_TEST.is_match(&line)).then_some(phrase)
    })
}

fn phrase_in(line: &str) -> Option<&'static str> {
    if let Some(phrase) = NETWORK_PHRASES.iter().find(|phrase| line.contains(*phrase)) {
        return Some(phrase);
    }
    let found = NETWORK_FORMS.captures(line)?;
    match found.name("host").map(|host| host.as_str()) {
        None => Some("docker pull timeout"),
        Some(host) if host.starts_with("localhost") || host.starts_with("127.") || host == "::1" => None,
        Some(_) => Some("failed to connect"),
    }
}

#[cfg(test)]
mod tests {
    use super::network_timeout;

    #[test]
    fn time_outs_of_the_network_are_infrastructure() {
        let lines = [
            "fatal: unable to access 'https://x/': Failed to connect to x.org port 443 after 130 ms",
            "ssh: connect to host codeberg.org port 22: Connection timed out",
            "curl: (28) Operation timed out after 30001 milliseconds with 0 bytes received",
            "curl: (28) Connection timed out after 10001 milliseconds",
            "warning: spurious network error (2 tries remaining): [28] Timeout was reached",
            "Get \"https://registry/v2/\": net/http: TLS handshake timeout",
            "dial tcp 10.0.0.1:443: i/o timeout",
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
            "npm ERR! network request failed, reason: connect ETIMEDOUT 104.16.0.1:443",
            "npm ERR! code ESOCKETTIMEDOUT",
            "error: HTTP 504 Gateway Timeout",
            "<title>504 Gateway Time-out</title>",
            "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool: Read timed out.",
            "java.net.SocketTimeoutException: connect timed out",
            "docker pull rust:1.95: timeout while fetching the manifest",
            "E: Failed to fetch http://deb.debian.org/x  Connection timed out [IP: 1.2.3.4 80]",
            "Failed to download: connection timed out",
            "\u{1b}[31mError: read: connection timed out\u{1b}[0m",
        ];
        for line in lines {
            let log = format!("building\n{line}\r\nfinished\n");
            assert!(network_timeout(&log).is_some(), "{line}");
        }
    }

    #[test]
    fn time_outs_of_tests_are_code() {
        let lines = [
            "test timed out after 5s",
            "Test timed out after 5s: operation timed out",
            "panic: test timed out after 10m0s",
            "thrown: \"Exceeded timeout of 5000 ms for a test.",
            "Error: Timeout of 2000ms exceeded. For async tests, ensure done() is called",
            "Failed: Timeout >5.0s",
            "TIMEOUT [  60.004s] shop::checkout pays",
            "TimeoutError: Timed out waiting for element #cart",
            "test net::connection_timed_out ... FAILED",
            "test retries when connection timed out ... ok",
            "  ✓ retries when the connection timed out (5 ms)",
            "  ● client › reports a gateway timeout",
            "  2) says connection timed out",
            "not ok 3 - i/o timeout is reported",
            "--- FAIL: TestClient/context deadline exceeded (0.00s)",
            "    client_test.go:42: context deadline exceeded",
            "AssertionError: 'connection timed out' != 'ok'",
            "E       requests.exceptions.ReadTimeout: read timed out",
            "FAILED tests/test_net.py::test_get - ReadTimeout: read timed out",
            "+ connection timed out",
            "assertion failed: expected \"gateway timeout\"",
            "curl: (7) Failed to connect to localhost port 8080 after 0 ms",
            "curl: (7) Failed to connect to 127.0.0.1 port 8080: Connection refused",
            "error: timeout must be positive",
            "the build timed out",
            "",
        ];
        for line in lines {
            assert_eq!(network_timeout(line), None, "{line}");
        }
    }

    #[test]
    fn one_bad_line_among_tests_is_enough() {
        let log =
            "test retries when connection timed out ... ok\nerror: failed to download: operation timed out\n";
        assert_eq!(network_timeout(log), Some("operation timed out"));
    }
}
