//! What the way to the network costs: small requests and large answers through the relay to the model's API and through a tunnel
//! of the proxy, beside a direct connection in the same run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::Context;
use pointsman_adapters::process::Run;
use pointsman_adapters::proxy::{self, ProxyDir};
use pointsman_adapters::secret::Secret;
use pointsman_core::relay::{CredentialName, ModelAccess};
use pointsman_core::sandbox::network::Policy;
use pointsman_core::task::Task;

use crate::report::{Report, Target};
use crate::sample::Sample;
use crate::stage::Workspace;

/// Connections at a time, and small requests on each.
const CONNECTIONS: usize = 50;
const REQUESTS: usize = 100;
/// One large answer, and how often it is asked for.
const LARGE_MB: usize = 64;
const LARGE_TIMES: usize = 8;
/// Milliseconds more for a small request, in the median.
const MORE_LIMIT: f64 = 3.0;
/// Milliseconds for a megabyte: 300 MB in a second.
const MB_LIMIT: f64 = 1000.0 / 300.0;

/// The way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Direct,
    Relay,
    Tunnel,
}

impl Way {
    const ALL: [Self; 3] = [Self::Direct, Self::Relay, Self::Tunnel];

    fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Relay => "relay",
            Self::Tunnel => "tunnel",
        }
    }
}

/// The addresses of both ends.
#[derive(Clone, Copy)]
struct Ends {
    server: u16,
    inside: u16,
}

/// Measures the three ways in turn.
pub(crate) fn measure(place: &Workspace) -> anyhow::Result<Report> {
    let server = serve()?;
    let dir = tempfile::tempdir_in(&place.scratch)?;
    let inside = open(&place.program, dir.path(), server)?;
    let ends = Ends { server, inside };
    let (mut rows, mut targets, mut results) = (Vec::new(), Vec::new(), Vec::new());
    let mut direct = 0.0;
    for way in Way::ALL {
        let small = small(ends, way)?;
        let per_mb = large(ends, way)?;
        let median = small.percentile(50);
        let cells = [median, small.percentile(99), 1000.0 / per_mb];
        rows.push(
            std::iter::once(way.name().to_owned()).chain(cells.map(|cell| format!("{cell:.2}"))).collect(),
        );
        match way {
            Way::Direct => direct = median,
            Way::Relay | Way::Tunnel => {
                let what = format!("{}: more for a small request", way.name());
                targets.push(Target { what, unit: "ms", limit: MORE_LIMIT, found: median - direct });
                let what = format!("{}: for a megabyte", way.name());
                targets.push(Target { what, unit: "ms", limit: MB_LIMIT, found: per_mb });
            }
        }
        let mut value = small.to_json();
        value["way"] = way.name().into();
        value["mb_per_second"] = (1000.0 / per_mb).into();
        results.push(value);
    }
    // The proxy goes once its directory is gone.
    drop(dir);
    Ok(Report {
        name: "relay",
        title: format!(
            "Relay and proxy: {REQUESTS} small requests on each of {CONNECTIONS} connections, in milliseconds, and answers of \
             {LARGE_MB} MB,\nthrough the relay to the model's API, through a tunnel, and without either."
        ),
        header: vec!["WAY", "P50 MS", "P99 MS", "MB/S"],
        rows,
        targets,
        results,
    })
}

/// A server whose answers are as long as the path says, in megabytes; others are two bytes.
fn serve() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(&stream));
        }
    });
    Ok(port)
}

fn answer(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut from, mut to) = (BufReader::new(stream), stream);
    let piece = vec![b'x'; 1 << 20];
    loop {
        let mut is_large = false;
        loop {
            let mut line = String::new();
            if from.read_line(&mut line)? == 0 {
                return Ok(());
            }
            is_large |= line.contains("/v1/models/large");
            if line == "\r\n" {
                break;
            }
        }
        let megabytes = if is_large { LARGE_MB } else { 0 };
        let length = if is_large { LARGE_MB << 20 } else { 2 };
        write!(to, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\r\n")?;
        for _ in 0..megabytes {
            to.write_all(&piece)?;
        }
        if !is_large {
            to.write_all(b"{}")?;
        }
    }
}

/// Opens a sandbox's way to the network; answers the port that stands for the one inside.
fn open(program: &Path, dir: &Path, server: u16) -> anyhow::Result<u16> {
    let address = format!("127.0.0.1:{server}");
    let policy =
        Policy { hosts: vec![address.clone()], private_hosts: vec![address.clone()], ..Policy::default() };
    let access = ModelAccess {
        session: "dev-bench-1.1".to_owned(),
        role: Task::ROLE,
        upstream: format!("http://{address}"),
        credential: CredentialName::ApiKey,
        of_stranger: true,
        pools: Vec::new(),
    };
    let key = Secret::new("sk-ant-made-up").context("a token")?;
    let sandbox = ProxyDir::at(dir.join("proxy")).open(program, "one", &policy, Some((&access, &key)))?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let socket: PathBuf = sandbox.shown().join(proxy::SOCKET);
    let run = Run::new(program).arg("forward").args(["--serve", &std::process::id().to_string()]).arg(socket);
    std::thread::spawn(move || run.finish_with_input(Stdio::from(OwnedFd::from(listener))));
    Ok(port)
}

fn connect(ends: Ends, way: Way) -> anyhow::Result<TcpStream> {
    let port = if way == Way::Direct { ends.server } else { ends.inside };
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    if way == Way::Tunnel {
        write!(stream, "CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", ends.server)?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        anyhow::ensure!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    }
    Ok(stream)
}

/// Asks once; answers the number of bytes after the head.
fn ask(stream: &mut BufReader<TcpStream>, way: Way, path: &str) -> anyhow::Result<u64> {
    let prefix = if way == Way::Relay { "/model" } else { "" };
    stream.get_mut().write_all(format!("GET {prefix}{path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())?;
    let (mut length, mut first) = (0, String::new());
    stream.read_line(&mut first)?;
    anyhow::ensure!(first.starts_with("HTTP/1.1 200"), "{first}");
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if let Some(told) = line.strip_prefix("content-length:") {
            length = told.trim().parse()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    Ok(std::io::copy(&mut stream.by_ref().take(length), &mut std::io::sink())?)
}

fn small(ends: Ends, way: Way) -> anyhow::Result<Sample> {
    let one = move || -> anyhow::Result<Vec<f64>> {
        let mut stream = BufReader::new(connect(ends, way)?);
        ask(&mut stream, way, "/v1/models")?;
        let mut times = Vec::with_capacity(REQUESTS);
        for _ in 0..REQUESTS {
            let begun = Instant::now();
            ask(&mut stream, way, "/v1/models")?;
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(times)
    };
    let threads: Vec<_> = (0..CONNECTIONS).map(|_| std::thread::spawn(one)).collect();
    let mut all = Vec::new();
    for thread in threads {
        all.extend(thread.join().map_err(|_| anyhow::anyhow!("a connection failed"))??);
    }
    Ok(Sample::new(all))
}

/// Milliseconds for a megabyte, over several large answers on one connection.
fn large(ends: Ends, way: Way) -> anyhow::Result<f64> {
    let mut stream = BufReader::with_capacity(1 << 20, connect(ends, way)?);
    ask(&mut stream, way, "/v1/models")?;
    let begun = Instant::now();
    for _ in 0..LARGE_TIMES {
        let got = ask(&mut stream, way, "/v1/models/large")?;
        anyhow::ensure!(got == (LARGE_MB << 20) as u64, "{got} bytes");
    }
    Ok(begun.elapsed().as_secs_f64() * 1000.0 / (LARGE_MB * LARGE_TIMES) as f64)
}
