//! Opening of files for writing.

use super::existing;
use super::place::Place;
use super::refused;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Maximum number of attempts when others create and remove the name at the same time.
const ATTEMPTS: u32 = 16;

/// Options for opening a file, named as those of [`std::fs::OpenOptions`].
#[derive(Clone, Debug)]
pub struct OpenOptions {
    flags: OFlags,
    is_read: bool,
    is_written: bool,
    is_created: bool,
    is_new: bool,
    is_truncated: bool,
    mode: u32,
    any_user: bool,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}

impl OpenOptions {
    /// Returns options of which none is set, and the mode 0666.
    #[must_use]
    pub fn new() -> OpenOptions {
        OpenOptions {
            flags: OFlags::CLOEXEC,
            is_read: false,
            is_written: false,
            is_created: false,
            is_new: false,
            is_truncated: false,
            mode: 0o666,
            any_user: false,
        }
    }

    /// Open for reading.
    pub fn read(&mut self, yes: bool) -> &mut OpenOptions {
        self.is_read = yes;
        self
    }

    /// Open for writing.
    pub fn write(&mut self, yes: bool) -> &mut OpenOptions {
        self.is_written = yes;
        self
    }

    /// Open for writing at the end.
    pub fn append(&mut self, yes: bool) -> &mut OpenOptions {
        self.is_written |= yes;
        self.flags.set(OFlags::APPEND, yes);
        self
    }

    /// Empty an existing file, after it was examined.
    pub fn truncate(&mut self, yes: bool) -> &mut OpenOptions {
        self.is_truncated = yes;
        self
    }

    /// Create a missing file.
    pub fn create(&mut self, yes: bool) -> &mut OpenOptions {
        self.is_created = yes;
        self
    }

    /// Create the file, and fail if anything has its name.
    pub fn create_new(&mut self, yes: bool) -> &mut OpenOptions {
        self.is_new = yes;
        self
    }

    /// Mode of a created file, which the umask reduces.
    pub fn mode(&mut self, mode: u32) -> &mut OpenOptions {
        self.mode = mode;
        self
    }

    /// Further flags, such as `O_EXCL` for a device.
    pub fn flags(&mut self, flags: OFlags) -> &mut OpenOptions {
        self.flags |= flags;
        self
    }

    /// Accept an existing regular file of any user: the user named it in order to work on it, and it
    /// is not an output that took the place of a missing file.
    pub fn any_user(&mut self, yes: bool) -> &mut OpenOptions {
        self.any_user = yes;
        self
    }

    /// Opens a file.
    ///
    /// # Errors
    /// The error of the host; a link of another user in the path; an existing file through which
    /// another user could redirect what is written.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        let is_name = self.is_new || self.flags.contains(OFlags::NOFOLLOW);
        let place = if is_name { Place::of_name(path)? } else { Place::of(path)? };
        self.open_at(&place)
    }

    /// Opens the name of a place, which is not followed if it is a link.
    ///
    /// # Errors
    /// As [`OpenOptions::open`].
    pub fn open_at(&self, place: &Place) -> io::Result<File> {
        let access = match (self.is_read, self.is_written) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (_, false) => OFlags::RDONLY,
        };
        let flags = self.flags | access;
        let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        if self.is_new {
            return self.open_name(place, flags | new);
        }
        if place.is_trusted() {
            let mut flags = flags;
            flags.set(OFlags::CREATE, self.is_created);
            flags.set(OFlags::TRUNC, self.is_truncated);
            // A link at the end was followed already, except one that only the kernel can follow.
            flags.set(OFlags::NOFOLLOW, !place.is_magic() || flags.contains(OFlags::NOFOLLOW));
            return self.open_name(place, flags);
        }
        for _ in 0..ATTEMPTS {
            match place.pin() {
                Ok(pin) => return self.open_pinned(place, &pin, flags),
                Err(Errno::NOENT) if self.is_created => {}
                Err(e) => return Err(e.into()),
            }
            match self.open_name(place, flags | new) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                opened => return opened,
            }
        }
        let path = crate::text::shown(&place.path());
        Err(refused(format!("{path} is created and removed by another program again and again")))
    }

    fn open_name(&self, place: &Place, flags: OFlags) -> io::Result<File> {
        let mode = Mode::from_raw_mode(self.mode);
        Ok(rustix::fs::openat(place.dir(), place.name(), flags, mode)?.into())
    }

    /// Opens the very file that was examined.
    fn open_pinned(&self, place: &Place, pin: &OwnedFd, flags: OFlags) -> io::Result<File> {
        let found = fstat(pin)?;
        existing::check(place, &found, self.any_user)?;
        let path = format!("/proc/self/fd/{}", pin.as_raw_fd());
        // The link of procfs leads to the file itself, so it is followed.
        let file: File = rustix::fs::open(path, flags - OFlags::NOFOLLOW, Mode::empty())?.into();
        if self.is_truncated && FileType::from_raw_mode(found.st_mode) == FileType::RegularFile {
            file.set_len(0)?;
        }
        Ok(file)
    }
}
