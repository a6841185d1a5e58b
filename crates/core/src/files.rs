//! Files that users name: reads with a size limit, and atomic writes.

use crate::paths::{OpenOptions, Place, secret_number};
use rustix::fs::{FileType, Stat};
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Largest size of a text file that is read (stack files, profiles, experiments, curves), in bytes.
/// Real files are far smaller.
pub const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Largest number of bytes of a file's name that the name of its temporary file repeats, because
/// that name is longer but has to fit into the limit of the file system too.
const NAME_BYTES_MAX: usize = 200;

/// Reads a text file of at most `bytes_max` bytes. Pipes and devices are read too, up to the limit.
///
/// # Errors
/// Returns an error if the file cannot be read, is longer than the limit (`FileTooLarge`), or is
/// not UTF-8 (`InvalidData`).
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let bytes = read(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|e| {
        let what = format!("it is not text: byte {} is not UTF-8", e.utf8_error().valid_up_to());
        io::Error::new(ErrorKind::InvalidData, what)
    })
}

/// Reads a file of at most `bytes_max` bytes.
///
/// # Errors
/// Returns an error if the file cannot be read, or is longer than the limit (`FileTooLarge`).
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let what = format!("it is longer than {}, the limit", crate::size::format(bytes_max));
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// A file that replaces the file of its name only when it is complete.
///
/// The bytes are written to a temporary file in the same directory. [`OutputFile::commit`] syncs
/// and renames the temporary file. If the value is dropped without a commit, the temporary file is
/// removed and the named file is unchanged. A symbolic link is replaced, not followed. Devices,
/// pipes and sockets, and all paths under /dev and /proc, are written in place. The path is walked as
/// [`crate::paths`] describes, and its directory stays open until the rename.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    path: PathBuf,
    /// The temporary file, and the place that it is renamed to.
    temporary: Option<(Place, Place)>,
}

/// Writes a whole file through an [`OutputFile`].
///
/// # Errors
/// Returns an error that names the file if the file cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(bytes).map_err(|e| named(path, &e))?;
    file.commit()
}

impl OutputFile {
    /// Creates a file. It gets the access rights of the file that it replaces, or else those that
    /// the umask allows.
    ///
    /// # Errors
    /// Returns an error that names the file if no file can be written at the path.
    pub fn create(path: &Path) -> io::Result<OutputFile> {
        OutputFile::begin(path, 0o666).map_err(|e| named(path, &e))
    }

    /// Creates a file for users' data: a new one is readable by its owner only. A file that it
    /// replaces keeps its access rights.
    ///
    /// # Errors
    /// Returns the errors of [`OutputFile::create`].
    pub fn create_private(path: &Path) -> io::Result<OutputFile> {
        OutputFile::begin(path, 0o600).map_err(|e| named(path, &e))
    }

    fn begin(path: &Path, mode: u32) -> io::Result<OutputFile> {
        let place = match Place::of_name(path) {
            // A path such as `.` or `/`.
            Err(e) if e.kind() == ErrorKind::InvalidInput && path.is_dir() => {
                return Err(ErrorKind::IsADirectory.into());
            }
            place => place?,
        };
        let existing = place.stat()?;
        let kind = existing.map(|found| FileType::from_raw_mode(found.st_mode));
        if kind.is_some_and(|kind| is_in_place(path, kind)) {
            let file = OpenOptions::new().write(true).truncate(true).open(path)?;
            return Ok(OutputFile { file, path: path.into(), temporary: None });
        }
        if kind == Some(FileType::Directory) {
            return Err(ErrorKind::IsADirectory.into());
        }
        let replaced = existing.filter(|found| is_replaced(&place, found));
        if replaced.is_some() {
            // A file without write permission must not be replaced either: the rename alone would
            // not check it.
            OpenOptions::new().write(true).open_at(&place)?;
        }
        // The temporary file never has more access rights than the final file.
        let mode = if replaced.is_some() { 0o600 } else { mode };
        let (file, temporary) = create_beside(&place, mode)?;
        let output = OutputFile { file, path: path.into(), temporary: Some((temporary, place)) };
        if let Some(found) = replaced {
            output.file.set_permissions(Permissions::from_mode(found.st_mode & 0o777))?;
        }
        Ok(output)
    }

    /// Returns the open file, for operations that `Write` does not offer.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns `true` if the bytes are written to the path itself, such as a device or a pipe.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.temporary.is_none()
    }

    /// Syncs the file and renames it to its final name.
    ///
    /// # Errors
    /// Returns an error that names the file if it cannot be written. The named file is unchanged
    /// then.
    pub fn commit(mut self) -> io::Result<()> {
        self.finish().map_err(|e| named(&self.path, &e))
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some((temporary, place)) = &self.temporary else { return Ok(()) };
        self.file.sync_all()?;
        rustix::fs::renameat(temporary.dir(), temporary.name(), place.dir(), place.name())?;
        // The contents are complete under either name. Without this sync only the rename may be
        // lost.
        let _ = place.reopen_dir().and_then(|dir| dir.sync_all());
        self.temporary = None;
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|e| named(&self.path, &e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.temporary {
            // A failure here has no remedy. The name of the file shows that it is temporary.
            let _ = temporary.remove_file();
        }
    }
}

/// Returns `true` for a path that is written in place: a rename onto it would replace a device by a
/// file.
fn is_in_place(path: &Path, kind: FileType) -> bool {
    let special = ![FileType::RegularFile, FileType::Directory, FileType::Symlink].contains(&kind);
    let within = |dir: &str| path.strip_prefix(dir).is_ok_and(|rest| rest.components().count() > 0);
    // /dev/shm holds ordinary files of users.
    special || within("/proc") || (within("/dev") && !within("/dev/shm"))
}

/// Returns `true` if an existing file gives its access rights to the one that replaces it. The
/// rights of a file that another user put there are that user's choice.
fn is_replaced(place: &Place, found: &Stat) -> bool {
    let own = found.st_uid == rustix::process::geteuid().as_raw() && found.st_nlink == 1;
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && (place.is_trusted() || own)
}

/// Creates a temporary file with a new name in the directory of a place.
fn create_beside(place: &Place, mode: u32) -> io::Result<(File, Place)> {
    let text = place.name().to_string_lossy();
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    loop {
        let name = format!(".{}.{:016x}.tmp", &text[..end], secret_number());
        let temporary = place.beside(name)?;
        match OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open_at(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            // Another process has the same number: try the next one.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

/// Returns an error of the same kind that names the file exactly once.
fn named(path: &Path, e: &io::Error) -> io::Error {
    let prefix = format!("cannot write {}", crate::text::shown(path));
    let text = e.to_string();
    if text.starts_with(&prefix) {
        return io::Error::new(e.kind(), text);
    }
    io::Error::new(e.kind(), format!("{prefix}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::FileTypeExt;

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("frit-files-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn names(dir: &Path) -> Vec<String> {
        let name = |e: io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
        let mut all: Vec<String> = fs::read_dir(dir).unwrap().map(name).collect();
        all.sort();
        all
    }

    #[test]
    fn a_file_is_replaced_when_it_is_complete_and_not_before() {
        let dir = dir("replace");
        let path = dir.join("report.json");
        write(&path, b"first").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names(&dir), ["report.json"], "nothing is left of what was not complete");
        write(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        OutputFile::create_private(&dir.join("own")).unwrap().commit().unwrap();
        assert_eq!(fs::metadata(dir.join("own")).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_file(dir.join("own")).unwrap();
        let long = dir.join("n".repeat(255));
        write(&long, b"x").unwrap();
        assert_eq!(names(&dir).len(), 2);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn links_are_replaced_and_devices_written_in_place() {
        let dir = dir("links");
        let (target, link) = (dir.join("target"), dir.join("link"));
        fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"precious");
        assert!(link.symlink_metadata().unwrap().is_file());
        assert!(OutputFile::create(Path::new("/dev/null")).unwrap().is_in_place());
        write(Path::new("/dev/null"), b"gone").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let e = write(Path::new("/dev/full"), b"x").unwrap_err().to_string();
        assert!(e.starts_with("cannot write /dev/full: "), "{e}");
        let e = write(&dir, b"x").unwrap_err().to_string();
        assert!(e.starts_with(&format!("cannot write {}: ", dir.display())), "{e}");
        let e = write(&dir.join("no/such"), b"x").unwrap_err().to_string();
        assert!(e.contains("no/such: "), "{e}");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn files_that_never_end_are_read_up_to_a_limit() {
        let e = read_text(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(
            (e.kind(), e.to_string()),
            (ErrorKind::FileTooLarge, "it is longer than 1 MiB, the limit".into())
        );
        let dir = dir("limit");
        let path = dir.join("text");
        fs::write(&path, "1234").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "1234");
        assert_eq!(read(&path, 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
        fs::write(&path, [b'a', 0xff]).unwrap();
        assert_eq!(read_text(&path, 4).unwrap_err().to_string(), "it is not text: byte 1 is not UTF-8");
        fs::remove_dir_all(&dir).unwrap();
    }
}
