//! Programs that outlive us: they are to leave our session at once (`setsid`), and nobody waits for their end but a
//! thread that collects what is left of them while we live.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::OFlags;

use super::supervise::supervise;
use super::{End, Error, GroupLeadership, Run};

impl Run {
    /// Starts it with this input and without output. Nobody waits for its end: it is for a process that ends itself at once.
    pub fn start_unattended(self, input: Stdio) -> Result<(), Error> {
        let mut command = self.command(GroupLeadership::Nobody)?;
        command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
        self.spawn(command).map(drop)
    }

    /// Runs it to its end with this input and without output.
    pub fn finish_with_input(self, input: Stdio) -> Result<End, Error> {
        let mut command = self.command(GroupLeadership::Nobody)?;
        command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = self.spawn(command)?;
        let limits = self.limits;
        supervise(&mut child, &[], Vec::new(), limits, None)
            .map_err(|source| self.io_error("wait for", source))
    }

    /// Starts it without input; what it says goes to the end of `log`.
    pub fn start_detached(self, log: &Path) -> Result<(), Error> {
        let opened = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(log)
            .and_then(|log| Ok((log.try_clone()?, log)));
        let (stdout, stderr) = opened.map_err(|source| self.io_error("open the log of", source))?;
        let mut command = self.command(GroupLeadership::Nobody)?;
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        let mut child = self.spawn(command)?;
        std::thread::Builder::new()
            .name("collect".to_owned())
            .spawn(move || child.wait().map(drop))
            .map(drop)
            .map_err(|source| self.io_error("wait for", source))
    }
}
