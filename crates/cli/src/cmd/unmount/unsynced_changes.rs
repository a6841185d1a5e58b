//! Changes of an image on a disk that were not synced at unmount.

use frit_core::paths::{self, OpenOptions};
use frit_fs::{Image, Medium, OverlayOptions};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::output::print;

/// Suffix of the names of overlays.
const OVERLAY: &str = ".overlay";
/// Size of a copied chunk, in bytes.
const CHUNK: usize = 1 << 20;

/// Syncs a mounted file system: fsync(2) of its root directory syncs the whole image. Gives up when
/// the server does not answer in time. Returns `false` if the server was killed.
///
/// # Errors
/// The error of fsync(2); the server does not answer.
pub(super) fn sync(mountpoint: &Path, timeout: Duration) -> io::Result<bool> {
    let (say, said) = channel();
    let at = mountpoint.to_owned();
    std::thread::spawn(move || say.send(File::open(at).and_then(|root| root.sync_all())));
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the server does not answer");
    match said.recv_timeout(timeout).map_err(late)? {
        // A user without access to the directory may still unmount it; the server syncs the image
        // when it ends.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(true),
        Err(e) if [io::ErrorKind::NotConnected, io::ErrorKind::ConnectionAborted].contains(&e.kind()) => {
            Ok(false)
        }
        other => other.map(|()| true),
    }
}

/// Returns the overlay of the process that has an image open, if this user may inspect that
/// process.
pub(super) fn overlay_of(image: &Path) -> Option<PathBuf> {
    let image = image.canonicalize().ok()?;
    let processes = std::fs::read_dir("/proc").ok()?.filter_map(|entry| Some(entry.ok()?.path().join("fd")));
    processes.filter_map(|fds| std::fs::read_dir(fds).ok()).find_map(|fds| {
        let open: Vec<PathBuf> = fds.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok()).collect();
        let overlay = open.iter().find(|path| path.to_string_lossy().ends_with(OVERLAY))?;
        open.contains(&image).then(|| overlay.clone())
    })
}

/// Syncs the changes that a server left in an overlay, or writes the whole file system to a new
/// file.
///
/// # Errors
/// The image cannot be synced, and no other file is given or it cannot be written.
pub(super) fn sync_or_save(image: &Path, overlay: &Path, save: Option<&Path>) -> Result<()> {
    let options = OverlayOptions { dir: overlay.parent().map(Path::to_owned), ..OverlayOptions::default() };
    let medium = Image::open(image, &options).into_diagnostic()?;
    if medium.unsynced() == 0 {
        return Ok(());
    }
    let Err(error) = medium.sync() else { return Ok(()) };
    if let Some(file) = save {
        copy(&medium, file).into_diagnostic().wrap_err_with(|| format!("cannot write {}", file.display()))?;
        return print(&format!(
            "{} could not be synced ({error}); {} holds the whole file system, use it instead\n",
            image.display(),
            file.display()
        ));
    }
    Err(miette!(
        help = "free space on its disk; then frit fsck or frit mount syncs them. The overlay is lost \
                when the machine stops",
        "{error}; its last changes are only in memory, in {}",
        overlay.display()
    ))
}

/// Copies a medium to a new file, without blocks of zeros, and syncs it.
fn copy(medium: &Image, to: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let written = write(medium, &file).and_then(|()| file.sync_all());
    if written.is_err() {
        // The incomplete file was created here and is useless.
        let _ = paths::remove_file(to);
        return written;
    }
    let dir = to.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    paths::open_dir(dir)?.sync_all()
}

fn write(medium: &Image, file: &File) -> io::Result<()> {
    file.set_len(medium.bytes())?;
    let mut buffer = vec![0; CHUNK];
    for at in (0..medium.bytes()).step_by(CHUNK) {
        let part = &mut buffer[..CHUNK.min((medium.bytes() - at) as usize)];
        medium.read(at, part);
        if part.iter().any(|&byte| byte != 0) {
            file.write_all_at(part, at)?;
        }
    }
    Ok(())
}
