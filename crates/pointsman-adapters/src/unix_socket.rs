//! Unix sockets in directories with long paths: the address of a socket is short, so it is named through its directory's
//! descriptor.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Binds a socket of this name, for its owner alone, in place of one that is there.
pub fn bind_in(dir: &Path, name: &str) -> io::Result<UnixListener> {
    match fs::remove_file(dir.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let handle = File::open(dir)?;
    let listener = UnixListener::bind(short(&handle, name))?;
    fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Connects to a socket of this name.
pub fn connect_in(dir: &Path, name: &str) -> io::Result<UnixStream> {
    let handle = File::open(dir)?;
    UnixStream::connect(short(&handle, name))
}

fn short(dir: &File, name: &str) -> PathBuf {
    Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name)
}
