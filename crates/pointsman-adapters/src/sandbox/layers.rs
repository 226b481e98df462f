//! An overlay of two layers, in namespaces that this process has for itself.
//!
//! bubblewrap of Debian 12 has no overlays of its own, so our own program makes the mount and then becomes bubblewrap, whose
//! sandbox shows it like any other directory.

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getgid, getuid};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use super::Bubblewrap;
use crate::git::layers::Layers;
use crate::process::Run;

/// For a probe, which takes milliseconds.
const PROBE_LIMIT: Duration = Duration::from_secs(20);

/// Layers, and the empty directory at which they are seen as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayeredCheckout {
    pub layers: Layers,
    pub at: PathBuf,
}

/// Mounts layers for this process and what it becomes. Nobody else sees the mount, and it ends with the last of them.
pub fn mount_layers(checkout: &LayeredCheckout) -> io::Result<()> {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    let options = checkout.layers.mount_options().ok_or(io::ErrorKind::InvalidFilename)?;
    let options = CString::new(options)?;
    #[allow(
        deprecated,
        reason = "the call that replaces it is unsafe because of file tables, which stay as they are"
    )]
    rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    // Whoever may not change groups may map the own one.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    mount("overlay", &checkout.at, "overlay", MountFlags::empty(), Some(options.as_c_str()))?;
    checkout.layers.remove_gone(&checkout.at)
}

impl Bubblewrap {
    /// Whether layers can be mounted below a directory and shown inside. `program` is our own, which mounts them.
    pub fn probe_layers(&self, program: &Path, below: &Path) -> bool {
        let Ok(place) = tempfile::Builder::new().prefix("layers-").tempdir_in(below) else { return false };
        let dir = |name: &str| {
            let path = place.path().join(name);
            fs::create_dir(&path).map(|()| path)
        };
        let probe = || -> io::Result<bool> {
            let layers = Layers {
                lower: dir("lower")?,
                upper: dir("upper")?,
                work: dir("work")?,
                gone: place.path().join("gone"),
                changed: 0,
            };
            fs::write(layers.lower.join("file"), "")?;
            fs::write(&layers.gone, "file\0")?;
            let at = dir("at")?;
            let checkout = LayeredCheckout { layers, at: at.clone() };
            let run = Run::new(program).args(["confine", "{}", "--layers"]);
            let run = run.arg(serde_json::to_string(&checkout)?).arg("--").arg(self.program());
            let run = run.args(["--unshare-user", "--ro-bind", "/", "/", "--bind"]).arg(&at).arg(&at);
            let run = run.args(["test", "!", "-e"]).arg(at.join("file")).time_limit(PROBE_LIMIT);
            Ok(run.inherit(&["PATH"]).finish().is_ok_and(|told| told.end.success()))
        };
        probe().unwrap_or(false)
    }
}
