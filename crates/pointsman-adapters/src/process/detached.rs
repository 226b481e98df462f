//! Programs that outlive us: they are to leave our session at once (`setsid`), and nobody waits for their end but a
//! thread that collects what is left of them while we live.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::OFlags;

use super::{Error, GroupLeadership, Run};

impl Run {
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
