//! The hidden commands of the network of sandboxes: the proxy outside, and the forwarder inside that leads to it.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use pointsman_adapters::process::Run;
use pointsman_adapters::proxy::{self, forwarder};
use rustix::process::{Pid, getppid};

use super::failure::Failure;
use crate::daemon::clock;

/// Serve the network of all sandboxes, for the daemon
#[derive(Debug, Args)]
pub(crate) struct Proxy {
    /// The directory of their sockets
    dir: PathBuf,
}

impl Proxy {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        // It outlives the daemon, and its terminal.
        let _ = rustix::process::setsid();
        proxy::serve(&self.dir, clock::now)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Lead the socket that is standard input to the proxy; the daemon's own
#[derive(Debug, Args)]
pub(crate) struct Forward {
    /// The proxy's socket
    socket: PathBuf,
    /// Stay and do it for this process, instead of starting the process that does
    #[arg(long, value_name = "PID")]
    serve: Option<i32>,
}

impl Forward {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let listener = io::stdin().as_fd().try_clone_to_owned()?;
        if let Some(of) = self.serve.and_then(Pid::from_raw) {
            // An interrupt on the agent's terminal is not for us.
            let _ = rustix::process::setsid();
            forwarder::serve(&TcpListener::from(listener), &self.socket, of)?;
            return Ok(ExitCode::SUCCESS);
        }
        // Our parent becomes the command.
        let of = getppid().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let of = of.as_raw_nonzero().to_string();
        let run = Run::new(std::env::current_exe()?).arg("forward").args(["--serve", &of]).arg(&self.socket);
        run.start_unattended(listener.into()).map_err(|error| Failure::failed(format!("{error:#}")))?;
        Ok(ExitCode::SUCCESS)
    }
}
