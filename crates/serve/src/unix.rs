//! Unix sockets with restricted permissions.

use frit_core::paths::Place;
use rustix::fs::{FileType, Mode, Stat, fstat};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Length of the queue of connections to be accepted, the same as in `std`.
const BACKLOG: i32 = 128;
/// Maximum length of a path in a socket address, in bytes.
const PATH_BYTES_MAX: usize = 107;

/// The name of a listening socket, in a directory that stays open.
#[derive(Debug)]
pub(crate) struct SocketName {
    place: Place,
    /// Device and inode of the name. Only a name that this server created is removed.
    identity: (u64, u64),
}

impl SocketName {
    /// Removes the name, unless another one took its place.
    pub(crate) fn remove(&self) {
        // The number of a removed inode is soon that of another file.
        let is_ours = |found: &Stat| is_socket(found) && (found.st_dev, found.st_ino) == self.identity;
        if self.place.stat().is_ok_and(|found| found.as_ref().is_some_and(is_ours)) {
            // An error means that the name was removed by another process, which is harmless.
            let _ = self.place.remove_file();
        }
    }
}

fn is_socket(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Socket
}

/// Listens at a path. A stale socket of this user, left by a killed server, is replaced; one in use
/// is not. A link at the end of the path is not followed.
///
/// The socket has its mode from the first moment, so that no other user can connect in between:
/// Linux creates the name with the mode of the socket, reduced by the umask; a mode reduced in this
/// way is corrected afterwards.
///
/// # Errors
/// The error of the host; another server listens there; something else has the name.
pub(crate) fn listen(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketName)> {
    let place = Place::of_name(path).map_err(|e| match e.kind() {
        // A path that does not end in a name, such as `/`.
        io::ErrorKind::InvalidInput if path.exists() => not_a_socket(),
        _ => e,
    })?;
    remove_stale(&place)?;
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode))?;
    let shown = place.path();
    let is_short = place.is_trusted() && shown.as_os_str().len() <= PATH_BYTES_MAX;
    let address = if is_short { shown } else { place.short_path() };
    rustix::net::bind(&socket, &SocketAddrUnix::new(address)?)?;
    // The name is examined while it is pinned: the owner of the directory may exchange it.
    let pin = place.pin()?;
    let found = fstat(&pin)?;
    let own = rustix::process::geteuid().as_raw();
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket
        || (found.st_uid, found.st_nlink) != (own, 1)
    {
        return Err(io::Error::other("another program replaced the socket while it was made"));
    }
    if found.st_mode & 0o777 != mode {
        rustix::fs::chmod(format!("/proc/self/fd/{}", pin.as_raw_fd()), Mode::from_raw_mode(mode))?;
    }
    rustix::net::listen(&socket, BACKLOG)?;
    Ok((socket.into(), SocketName { place, identity: (found.st_dev, found.st_ino) }))
}

fn not_a_socket() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "it exists and is not a socket")
}

/// Removes the name of a socket of this user on which no server listens any more.
fn remove_stale(place: &Place) -> io::Result<()> {
    let Some(found) = place.stat()? else { return Ok(()) };
    if !is_socket(&found) {
        return Err(not_a_socket());
    }
    match UnixStream::connect(place.short_path()) {
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AddrInUse, "a server listens there")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
        Err(e) => return Err(e),
    }
    let own = rustix::process::geteuid().as_raw();
    if ![0, own].contains(&found.st_uid) {
        let what = format!("a socket of user {} is there: remove it, or name another path", found.st_uid);
        return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
    }
    place.remove_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_socket_has_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in [("own", 0o600), ("all", 0o666)] {
            let path = dir.path().join(name);
            let (listener, socket_name) = listen(&path, mode).unwrap();
            assert_eq!(std::fs::symlink_metadata(&path).unwrap().mode() & 0o777, mode);
            UnixStream::connect(&path).unwrap();
            listener.accept().unwrap();
            assert_eq!(listen(&path, mode).unwrap_err().kind(), io::ErrorKind::AddrInUse);
            drop(listener);
            listen(&path, mode).unwrap().1.remove();
            assert!(!path.exists());
            std::fs::write(&path, "precious").unwrap();
            socket_name.remove();
            assert_eq!(listen(&path, mode).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(std::fs::read(&path).unwrap(), b"precious", "a file of another program stays");
        }
    }
}
