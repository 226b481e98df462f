//! The relay's connection to a model's API over TLS: which certificates it accepts, and that no credential leaves before one is.
//!
//! The proxy is a process here, because the certificates of a machine are read once per process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_adapters::proxy::{ProxyDir, SOCKET};
use pointsman_adapters::secret::Secret;
use pointsman_adapters::unix_socket::connect_in;
use pointsman_core::relay::{CredentialName, ModelAccess};
use pointsman_core::role::Role;
use pointsman_core::sandbox::network::Policy;
use pointsman_testkit::eventually;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const LIMIT: Duration = Duration::from_secs(20);
const PROGRAM: &str = env!("CARGO_BIN_EXE_pointsman");
const KEY: &str = "sk-ant-operator-0123456789";
const ANSWER: &str = r#"{"model":"m","usage":{"input_tokens":7,"output_tokens":3}}"#;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

/// An API behind TLS with the certificate of this name. It notes every request.
struct TlsApi {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl TlsApi {
    fn start(certificate: &str) -> Self {
        let chain = vec![CertificateDer::from_pem_file(data(&format!("{certificate}.pem"))).unwrap()];
        let key = PrivateKeyDer::from_pem_file(data(&format!("{certificate}.key"))).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = Arc::new(config.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || serve(StreamOwned::new(tls, socket), &seen));
            }
        });
        Self { port, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: impl Read + Write, seen: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut text, mut length) = (String::new(), 0);
        while !text.ends_with("\r\n\r\n") {
            let mut line = String::new();
            // A client that goes, or that did not like the certificate.
            let Ok(1..) = stream.read_line(&mut line) else { return };
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            text.push_str(&line);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        seen.lock().unwrap().push(text);
        let length = ANSWER.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        let answered = stream.get_mut().write_all(format!("{head}{ANSWER}").as_bytes());
        if answered.and_then(|()| stream.get_mut().flush()).is_err() {
            return;
        }
    }
}

/// A proxy on a machine that trusts one authority.
struct Proxy {
    dir: tempfile::TempDir,
    process: Child,
}

impl Proxy {
    fn start(authority: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("pm").tempdir_in("/tmp").unwrap();
        let mut command = Command::new(PROGRAM);
        command.arg("proxy").arg(dir.path()).env_clear().env("SSL_CERT_FILE", data(authority));
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        eventually("the proxy to listen", LIMIT, || connect_in(dir.path(), "control.sock").ok());
        Self { dir, process }
    }

    /// The answer to one message of a session.
    fn ask(&self, name: &str, upstream: &str, private: &str) -> String {
        let policy =
            Policy { hosts: Vec::new(), private_hosts: vec![private.to_owned()], ..Policy::default() };
        let access = ModelAccess {
            session: format!("dev-shop-{name}.1"),
            role: Role::Dev,
            upstream: upstream.to_owned(),
            credential: CredentialName::ApiKey,
            of_stranger: false,
            pools: Vec::new(),
        };
        let proxy = ProxyDir::at(self.dir.path());
        let secret = Secret::new(KEY).unwrap();
        let sandbox = proxy.open(Path::new(PROGRAM), name, &policy, Some((&access, &secret))).unwrap();
        let mut stream = connect_in(&sandbox.shown(), SOCKET).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let head = "POST /model/v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 15";
        write!(stream, "{head}\r\n\r\n{{\"messages\":[]}}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_relay_speaks_tls_to_an_api_that_the_machine_trusts_and_to_no_other() {
    let (local, elsewhere) = (TlsApi::start("local"), TlsApi::start("elsewhere"));
    let at = |api: &TlsApi| format!("127.0.0.1:{}", api.port);
    let url = |api: &TlsApi| format!("https://127.0.0.1:{}", api.port);

    let trusting = Proxy::start("authority.pem");
    let answer = trusting.ask("1", &url(&local), &at(&local));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(ANSWER), "{answer}");
    let requests = local.requests();
    assert!(requests.len() == 1 && requests[0].contains(&format!("x-api-key: {KEY}\r\n")), "{requests:?}");
    // By its name as well as by its address.
    let named = format!("localhost:{}", local.port);
    let answer = trusting.ask("2", &format!("https://{named}"), &named);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // A certificate of the same authority for another name.
    let answer = trusting.ask("3", &url(&elsewhere), &at(&elsewhere));
    assert!(answer.starts_with("HTTP/1.1 502") && !answer.contains(KEY), "{answer}");

    let strict = Proxy::start("other-authority.pem");
    let answer = strict.ask("4", &url(&local), &at(&local));
    assert!(answer.starts_with("HTTP/1.1 502") && !answer.contains(KEY), "{answer}");
    assert!(answer.contains("Pointsman cannot reach the model's API"), "{answer}");
    assert_eq!(
        local.requests().len(),
        2,
        "no request, and no credential, before the certificate is accepted"
    );
    assert_eq!(elsewhere.requests(), [""; 0]);
}
