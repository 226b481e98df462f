//! Chromium, driven over the WebDriver protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pointsman_testkit::{eventually, not_run};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A browser on a loaded machine takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with a profile of its own. It ends with this value.
pub(super) struct Chromium {
    driver: Child,
    port: String,
    session: String,
    _profile: TempDir,
}

impl Chromium {
    /// Starts a browser; none where it cannot be had, which is reported.
    pub(super) fn start() -> Option<Self> {
        let named = |name: &str| std::env::var(name).ok().filter(|path| !path.is_empty());
        let (Some(program), Some(browser)) = (named("POINTSMAN_CHROMEDRIVER"), named("POINTSMAN_CHROMIUM"))
        else {
            not_run("chromium", "POINTSMAN_CHROMIUM names no browser; scripts/test-web installs one");
            return None;
        };
        let profile = tempfile::Builder::new().prefix("pmweb").tempdir_in("/tmp").unwrap();
        let mut driver = Command::new(program)
            .arg("--port=0")
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        let started = lines.find(|line| line.contains("started successfully on port "));
        let started = started.expect("chromedriver says where it listens");
        let port = started.trim_end_matches('.').rsplit(' ').next().unwrap().to_owned();
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--force-device-scale-factor=1",
            &format!("--user-data-dir={}", profile.path().join("profile").display()),
        ];
        let options = json!({ "binary": browser, "args": arguments });
        let wanted = json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": options } } });
        let mut chromium = Self { driver, port, session: String::new(), _profile: profile };
        let made = chromium.call("POST", "/session", &wanted);
        chromium.session = made["sessionId"].as_str().expect("a session of the browser").to_owned();
        chromium.size(1440, 900);
        Some(chromium)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = if method == "GET" || method == "DELETE" { String::new() } else { body.to_string() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        // The driver keeps the connection open, so the head says how much there is to read.
        let mut answer = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while answer.read_line(&mut line).unwrap() > 2 {
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut json = vec![0; length];
        answer.read_exact(&mut json).unwrap();
        let text = String::from_utf8_lossy(&json);
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{method} {path}: {text}"));
        let value = value["value"].clone();
        assert!(value["error"].is_null(), "{method} {path}: {value}");
        value
    }

    fn in_session(&self, method: &str, path: &str, body: &Value) -> Value {
        self.call(method, &format!("/session/{}{path}", self.session), body)
    }

    /// Opens a page.
    pub(super) fn open(&self, url: &str) {
        self.in_session("POST", "/url", &json!({ "url": url }));
    }

    /// The value of a script in the page.
    pub(super) fn eval(&self, script: &str) -> Value {
        self.in_session("POST", "/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The value of a script that calls its last argument.
    pub(super) fn eval_later(&self, script: &str) -> Value {
        self.in_session("POST", "/execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Waits until a script is true.
    pub(super) fn wait(&self, what: &str, script: &str) {
        let look = || (self.eval(&format!("return !!({script});")) == Value::Bool(true)).then_some(());
        eventually(what, PATIENCE, look);
    }

    /// Presses keys, one after another, wherever the focus is.
    pub(super) fn press(&self, keys: &str) {
        let strokes: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
            })
            .collect();
        let actions = json!({ "actions": [{ "type": "key", "id": "keys", "actions": strokes }] });
        self.in_session("POST", "/actions", &actions);
    }

    /// Sets the size of the page.
    pub(super) fn size(&self, width: u32, height: u32) {
        let params =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.devtools("Emulation.setDeviceMetricsOverride", &params);
    }

    /// Makes the page believe that the system is dark, or light.
    pub(super) fn theme(&self, theme: &str) {
        let params = json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
        self.devtools("Emulation.setEmulatedMedia", &params);
    }

    /// Switches scripts off, or on again.
    pub(super) fn scripts(&self, are_on: bool) {
        self.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": !are_on }));
    }

    fn devtools(&self, command: &str, params: &Value) {
        self.in_session("POST", "/goog/cdp/execute", &json!({ "cmd": command, "params": params }));
    }

    /// Clicks the first element of this kind.
    pub(super) fn click(&self, selector: &str) {
        let found =
            self.in_session("POST", "/element", &json!({ "using": "css selector", "value": selector }));
        let id = found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        self.in_session("POST", &format!("/element/{id}/click"), &json!({}));
    }

    /// Types into the first element of this kind.
    pub(super) fn type_into(&self, selector: &str, text: &str) {
        let found =
            self.in_session("POST", "/element", &json!({ "using": "css selector", "value": selector }));
        let id = found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        self.in_session("POST", &format!("/element/{id}/value"), &json!({ "text": text }));
    }

    /// Keeps a picture of the page, if somebody wants pictures.
    pub(super) fn picture(&self, name: &str) {
        let Some(dir) = std::env::var_os("POINTSMAN_PICTURES") else { return };
        let shot = self.in_session("GET", "/screenshot", &Value::Null);
        let bytes = from_base64(shot.as_str().unwrap_or_default());
        std::fs::write(Path::new(&dir).join(format!("{name}.png")), bytes).unwrap();
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.session.is_empty() {
            self.in_session("DELETE", "", &Value::Null);
        }
        // The driver ends the browser that it started.
        let pid = rustix::process::Pid::from_child(&self.driver);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.driver.wait();
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for digit in text.bytes().filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte)) {
        bits = bits << 6 | u32::try_from(digit).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap());
        }
    }
    bytes
}
