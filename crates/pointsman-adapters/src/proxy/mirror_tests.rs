//! The mirrors of package registries on real sockets: what they pass on, what they change, and what never reaches a registry.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_core::sandbox::network::registries::Registry;
use pointsman_core::sandbox::network::{Policy, Refusal};
use pointsman_core::time::Timestamp;
use pointsman_testkit::eventually;

use super::{CONTROL, POLICY, SHOWN, SOCKET, SandboxDir, recognise, serve};
use crate::unix_socket::connect_in;

const LIMIT: Duration = Duration::from_secs(20);

/// A registry: paths with their answers, each a status line with headers and a body. It notes every request.
struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

type Answers = fn(&str, u16) -> Option<(String, String)>;

impl Server {
    /// `other` is the port of another server that answers may name.
    fn start(other: u16, answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&requests);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let noted = Arc::clone(&noted);
                std::thread::spawn(move || {
                    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                    while let Some(first) = lines.next() {
                        let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
                        noted.lock().unwrap().push(format!("{first}\n{}", head.join("\n")));
                        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
                        let found = answers(&path, other);
                        let (status, body) = found.unwrap_or(("404 Not Found".to_owned(), "none".to_owned()));
                        let body = if first.starts_with("HEAD") { String::new() } else { body };
                        let length = body.len();
                        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
                        if stream.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn files(path: &str, _: u16) -> Option<(String, String)> {
    path.starts_with("/f/").then(|| ("200 OK".to_owned(), format!("content of {path}")))
}

fn registry(path: &str, other: u16) -> Option<(String, String)> {
    let ok = |kind: &str, body: String| Some((format!("200 OK\r\nContent-Type: {kind}"), body));
    match path {
        "/simple/fruit/" => {
            ok("text/html", format!("<a href=\"http://127.0.0.1:{other}/f/fruit-1.whl#sha256=ab\">x</a>"))
        }
        "/simple/moved/" => Some(("301 Moved\r\nLocation: /simple/fruit/".to_owned(), String::new())),
        "/simple/away/" => Some(("302 Found\r\nLocation: http://localhost:1/x".to_owned(), String::new())),
        "/simple/round/" => Some(("302 Found\r\nLocation: /simple/round/".to_owned(), String::new())),
        "/index/config.json" | "/config.json" => {
            let dl = format!(
                "{{\"dl\": \"http://127.0.0.1:{other}/f/{{crate}}\", \"api\": \"http://127.0.0.1:{other}\"}}"
            );
            ok("application/json", dl)
        }
        "/npm/fruit" => ok("application/json", "{\"versions\": {}}".to_owned()),
        "/secret" => ok("text/plain", "secret".to_owned()),
        _ => None,
    }
}

struct World {
    temporary: Option<tempfile::TempDir>,
    dir: PathBuf,
    served: Option<std::thread::JoinHandle<std::io::Result<()>>>,
    server: Server,
    files: Server,
}

impl World {
    fn new() -> Self {
        let files = Server::start(0, files);
        let server = Server::start(files.port, registry);
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("proxy");
        std::fs::create_dir_all(dir.join("one").join(SHOWN)).unwrap();
        let at = format!("http://127.0.0.1:{}", server.port);
        let entries = [format!("pip+{at}/simple"), format!("cargo+{at}/index/"), format!("npm+{at}/npm/")];
        let policy = Policy {
            private_hosts: vec![format!("127.0.0.1:{}", server.port), format!("127.0.0.1:{}", files.port)],
            registries: entries.iter().map(|entry| Registry::parse(entry).unwrap()).collect(),
            ..Policy::default()
        };
        std::fs::write(dir.join("one").join(POLICY), serde_json::to_vec(&policy).unwrap()).unwrap();
        let at = dir.clone();
        let served = std::thread::spawn(move || serve(&at, || Timestamp(1)));
        eventually("the proxy to listen", LIMIT, || connect_in(&dir, CONTROL).ok());
        Self { temporary: Some(temporary), dir, served: Some(served), server, files }
    }

    fn connect(&self) -> UnixStream {
        let stream: UnixStream = connect_in(&self.dir.join("one").join(SHOWN), SOCKET).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    fn ask(&self, first: &str, rest: &str) -> String {
        let mut stream = self.connect();
        write!(stream, "{first} HTTP/1.1\r\nHost: 127.0.0.2:7179\r\nConnection: close\r\n{rest}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path}"), "\r\n")
    }

    fn refusals(&self) -> Vec<(String, Refusal)> {
        let refused = SandboxDir::below(&self.dir, "one").unwrap().refused().0;
        refused.into_iter().map(|(what, count)| (what, count.why)).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.temporary.take());
        let served = self.served.take().unwrap().join();
        assert!(served.is_ok_and(|served| served.is_ok()) || std::thread::panicking());
    }
}

#[test]
fn packages_are_read_and_what_their_pages_link_to() {
    let world = World::new();
    for page in ["fruit", "moved"] {
        let page = world.get(&format!("/packages/pip/0/index/{page}/"));
        assert!(page.starts_with("HTTP/1.1 200") && !page.contains("href=\"http"), "{page}");
        let link = page.split('"').nth(1).unwrap();
        let (path, fragment) = link.split_once('#').unwrap();
        assert_eq!(fragment, "sha256=ab");
        let file = world.get(path);
        assert!(file.ends_with("content of /f/fruit-1.whl"), "{path}: {file}");
        // Another file of the same server was linked to by nobody.
        let other = world.get(&path.replace("fruit-1.whl", "other-1.whl"));
        assert!(other.starts_with("HTTP/1.1 404") && !other.contains("content of"), "{other}");
    }
    let settings = world.get("/packages/cargo/1/config.json");
    assert!(settings.contains("http://127.0.0.2:7179/packages/cargo/1/-/dl/{crate}"), "{settings}");
    assert!(!settings.contains("api"), "{settings}");
    assert!(world.get("/packages/cargo/1/-/dl/fruit/1.0.0/abc").ends_with("content of /f/fruit"));
    assert!(world.get("/packages/npm/2/fruit").contains("versions"));
    assert!(world.get("/packages/npm/2/none").starts_with("HTTP/1.1 404"));
    let head = world.ask("HEAD /packages/npm/2/fruit", "\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    // Several on one connection.
    let mut stream = world.connect();
    let request = "GET /packages/npm/2/fruit HTTP/1.1\r\nHost: x\r\n\r\n";
    write!(stream, "{request}{}", request.replace("Host: x", "Connection: close")).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 2, "{answers}");
}

#[test]
fn nothing_is_sent_to_a_registry_but_names() {
    let world = World::new();
    let before = world.server.requests().len();
    for (first, status) in [
        ("PUT /packages/npm/2/fruit", "405"),
        ("POST /packages/npm/2/-/npm/v1/security/audits", "405"),
        ("DELETE /packages/pip/0/index/fruit/", "405"),
        ("GET /packages/npm/2/fruit", "405"),
    ] {
        let answer = world.ask(first, "Content-Length: 6\r\nAuthorization: Bearer x\r\n\r\ncanary");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{first}: {answer}");
        assert!(answer.contains("read-only"), "{answer}");
    }
    for path in ["/packages/npm/2/../secret", "/packages/pip/0/file/0/http/127.0.0.1:1/x", "/packages/go/2/x"]
    {
        let answer = world.get(path);
        assert!(answer.starts_with("HTTP/1.1 4"), "{path}: {answer}");
    }
    assert_eq!(world.server.requests().len(), before);
    let headers =
        "Authorization: Bearer canary\r\nCookie: canary\r\nX-Canary: canary\r\nUser-Agent: npm/10\r\n\r\n";
    assert!(world.ask("GET /packages/npm/2/fruit", headers).contains("versions"));
    let request = world.server.requests().pop().unwrap();
    assert!(request.contains("npm/10") && !request.contains("canary"), "{request}");
    let refused = world.refusals();
    let upload = ("a package registry: PUT /packages/npm/2/fruit".to_owned(), Refusal::ReadOnly);
    assert!(refused.contains(&upload), "{refused:?}");
}

#[test]
fn a_registry_leads_nowhere_that_the_machine_does_not_list() {
    let world = World::new();
    for page in ["away", "round"] {
        let answer = world.get(&format!("/packages/pip/0/index/{page}/"));
        assert!(answer.starts_with("HTTP/1.1 403") || answer.starts_with("HTTP/1.1 502"), "{answer}");
    }
    let registry = format!("pip+http://127.0.0.1:{}/simple", world.server.port);
    assert!(world.refusals().iter().any(|(what, _)| *what == registry), "{:?}", world.refusals());
    // By its own address it is asked for reading as well, and only then.
    let own = format!("http://127.0.0.1:{}", world.server.port);
    assert!(world.get(&format!("{own}/npm/fruit")).contains("versions"));
    let answer = world.ask(&format!("POST {own}/npm/fruit"), "Content-Length: 6\r\n\r\ncanary");
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    let tunnel = world.ask(&format!("CONNECT 127.0.0.1:{}", world.server.port), "\r\n");
    assert!(tunnel.starts_with("HTTP/1.1 403"), "{tunnel}");
    assert!(world.server.requests().iter().all(|request| request.starts_with("GET")));
    assert!(world.files.requests().is_empty());
}

#[test]
fn hosts_that_answer_as_registries_are_recognised() {
    let world = World::new();
    let (registry, files) = (world.server.port, world.files.port);
    let hosts = [format!("127.0.0.1:{registry}"), format!("127.0.0.1:{files}"), "127.0.0.1:1".to_owned()];
    let policy = Policy { private_hosts: hosts.to_vec(), ..Policy::default() };
    let listed = Policy { hosts: hosts.to_vec(), ..policy.clone() };
    // The host of the files is covered by the registry.
    let found = vec![format!("cargo+http://127.0.0.1:{registry}/"), "127.0.0.1:1".to_owned()];
    assert_eq!(recognise(&hosts, &listed), found);
    // A tool that asks for the host although there is a mirror needs the host.
    let known = Registry::parse(&format!("npm+http://127.0.0.1:{registry}/npm/")).unwrap();
    let mirrored = Policy { registries: vec![known], ..listed };
    assert_eq!(recognise(&hosts[..1], &mirrored), hosts[..1]);
}
