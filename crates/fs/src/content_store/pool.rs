//! A content store in a directory of any file system. A kernel can pass its content files to
//! programs.
//!
//! `DIR/image` is the medium. `DIR/bodies/xx/INO-GENERATION` is a content file; both numbers are
//! hexadecimal and `xx` is the inode number modulo 256. `DIR/bodies/uuid` holds the UUID of the
//! file system that the content files belong to.

use super::{BackingFs, ContentFile, ContentId, ContentMetadata, ContentStore, StatFs};
use crate::error::{Error, Result};
use crate::format::fresh_uuid;
use crate::types::{Allocate, Ino, Seek, Time};
use frit_core::paths::{self, OpenOptions, Place};
use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, fallocate,
    fdatasync, fstat, fstatvfs, fsync, ftruncate, futimens, mkdirat, openat, seek, statat, syncfs, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of subdirectories that content files are distributed over.
const PARTS: u32 = 256;
/// Name of the file with the UUID.
const UUID: &str = "uuid";

/// Directory with a content file for each regular file.
#[derive(Debug)]
pub struct Pool {
    /// `DIR/bodies`.
    bodies: OwnedFd,
    path: PathBuf,
    uuid: u128,
    /// `false` if another user can put links and other files in place of the content files.
    is_trusted: bool,
}

/// Open content file of a pool.
#[derive(Debug)]
struct PoolFile {
    file: Arc<OwnedFd>,
    path: PathBuf,
}

/// Converts an error of a system call.
fn failed(what: &'static str, path: &Path, errno: Errno) -> Error {
    match errno {
        Errno::NOSPC => Error::NoSpace,
        Errno::DQUOT => Error::Quota,
        Errno::FBIG | Errno::OVERFLOW => Error::TooLarge,
        Errno::NXIO => Error::BeyondEnd,
        Errno::OPNOTSUPP => Error::Unsupported("refused by the file system of the pool"),
        Errno::INVAL => Error::Invalid("refused by the file system of the pool"),
        other => Error::Os { what, path: path.to_owned(), error: other.into() },
    }
}

fn no_file(what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::Os { what, path: path.to_owned(), error }
}

/// Returns the path of a content file relative to `bodies`.
fn name(of: ContentId) -> String {
    format!("{:02x}/{:x}-{:x}", of.ino.0 % u64::from(PARTS), of.ino.0, of.generation)
}

/// Parses the name of a content file.
fn parse(part: u32, name: &[u8]) -> Option<ContentId> {
    let (ino, generation) = std::str::from_utf8(name).ok()?.split_once('-')?;
    let of = ContentId {
        ino: Ino(u64::from_str_radix(ino, 16).ok()?),
        generation: u32::from_str_radix(generation, 16).ok()?,
    };
    (of.ino.0 % u64::from(PARTS) == u64::from(part)).then_some(of)
}

fn look_of(stat: &Stat) -> ContentMetadata {
    let time = |seconds: i64, nanos: u64| Time::new(seconds, nanos as u32);
    ContentMetadata {
        size: stat.st_size as u64,
        sectors: stat.st_blocks as u64,
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
    }
}

/// Fails if `bodies` belongs to a user other than root, this process, or the owner of the pool.
fn refuse_foreign(bodies: &Path, directory: &Path) -> Result<()> {
    let look = |path: &Path| path.symlink_metadata().map_err(no_file("cannot stat", path));
    let (found, above) = (look(bodies)?, look(directory)?);
    let is_trusted = [0, above.uid(), rustix::process::geteuid().as_raw()].contains(&found.uid());
    if is_trusted && found.is_dir() {
        return Ok(());
    }
    Err(Error::Image(format!(
        "{} is not a directory of this user: inspect it, and remove it",
        bodies.display()
    )))
}

impl Pool {
    /// Returns the path of the medium in the directory of a pool.
    #[must_use]
    pub fn image(directory: &Path) -> PathBuf {
        directory.join("image")
    }

    /// Creates a pool in a directory, or gives an existing one a new UUID; `None`: a random one.
    /// Existing content files are removed when a file system is formatted with the pool.
    ///
    /// # Errors
    /// A call to the file system of the directory failed.
    pub fn make(directory: &Path, uuid: Option<u128>) -> Result<Self> {
        let path = directory.join("bodies");
        paths::create_dir_all(&path, 0o700).map_err(no_file("cannot create", &path))?;
        refuse_foreign(&path, directory)?;
        let bodies = paths::open_dir(&path).map_err(no_file("cannot open", &path))?;
        for part in 0..PARTS {
            let name = format!("{part:02x}");
            match mkdirat(&bodies, &name, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(no_file("cannot create", &path.join(name))(e.into())),
            }
        }
        let [low, high] = fresh_uuid();
        let uuid = uuid.unwrap_or(u128::from(low) | u128::from(high) << 64);
        let id = path.join(UUID);
        let os = no_file("cannot write", &id);
        let mut file = OpenOptions::new();
        file.write(true).create(true).truncate(true).mode(0o600);
        // O_NOFOLLOW, because another user may have placed a symbolic link there.
        let file = file.flags(OFlags::NOFOLLOW).open(&id);
        let mut file = file.map_err(&os)?;
        writeln!(file, "{uuid:032x}").and_then(|()| file.sync_all()).map_err(os)?;
        Self::open(directory)
    }

    /// Opens a pool that [`Pool::make`] created.
    ///
    /// # Errors
    /// The directory is not a pool.
    pub fn open(directory: &Path) -> Result<Self> {
        let path = directory.join("bodies");
        let none = |why: &dyn std::fmt::Display| {
            Error::Image(format!("{} is not a pool of a file system: {why}", directory.display()))
        };
        let mut text = String::new();
        let id = path.join(UUID);
        let read = File::open(&id).and_then(|mut file| file.read_to_string(&mut text));
        read.map_err(|error| none(&format_args!("{}: {error}", id.display())))?;
        let uuid = u128::from_str_radix(text.trim(), 16);
        let uuid = uuid.map_err(|_| none(&format_args!("{} contains no UUID", id.display())))?;
        let place = Place::of_dir(&path).map_err(no_file("cannot open", &path))?;
        let bodies = place.reopen_dir().map_err(no_file("cannot open", &path))?.into();
        Ok(Self { bodies, path, uuid, is_trusted: place.is_trusted() })
    }

    /// Returns the kind of file system that holds the pool.
    #[must_use]
    pub fn backing_fs(&self) -> BackingFs {
        BackingFs::of(&self.bodies, &self.path)
    }

    /// Returns the open subdirectory of a name and the rest of the name, if the subdirectory may be
    /// a link of another user.
    fn part<'a>(&self, name: &'a str) -> Result<(Option<OwnedFd>, &'a str), Errno> {
        let Some((part, file)) = name.split_once('/').filter(|_| !self.is_trusted) else {
            return Ok((None, name));
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok((Some(openat(&self.bodies, part, flags, Mode::empty())?), file))
    }

    fn open_in_part(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let (part, file) = self.part(name)?;
        let mut flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        // A FIFO would block.
        flags.set(OFlags::NONBLOCK, part.is_some());
        let opened = openat(part.as_ref().unwrap_or(&self.bodies), file, flags, Mode::from_raw_mode(0o600))?;
        if part.is_some() {
            let found = fstat(&opened)?;
            // A hard link may be a file of somebody else.
            let is_content = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
            if !is_content || found.st_nlink > 1 {
                return Err(Errno::LOOP);
            }
        }
        Ok(opened)
    }

    fn try_open(&self, name: &str, flags: OFlags) -> Result<Option<OwnedFd>, Errno> {
        match self.open_in_part(name, flags) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

impl ContentStore for Pool {
    fn uuid(&self) -> u128 {
        self.uuid
    }

    fn open(&self, of: ContentId, make: bool) -> Result<Option<Arc<dyn ContentFile>>> {
        let name = name(of);
        let flags = OFlags::RDWR | if make { OFlags::CREATE } else { OFlags::empty() };
        let opened = match self.try_open(&name, flags) {
            Ok(None) if make => {
                // The subdirectory may have been removed by hand.
                let _ = mkdirat(&self.bodies, &name[..2], Mode::from_raw_mode(0o700));
                self.try_open(&name, flags)
            }
            // On a read-only file system, an existing content file is still readable.
            Err(Errno::ROFS) if !make => self.try_open(&name, OFlags::RDONLY),
            opened => opened,
        };
        let path = self.path.join(&name);
        let opened = opened.map_err(|errno| failed("cannot open", &path, errno))?;
        Ok(opened.map(|file| Arc::new(PoolFile { file: Arc::new(file), path }) as Arc<dyn ContentFile>))
    }

    fn look(&self, of: ContentId) -> Result<Option<ContentMetadata>> {
        let name = name(of);
        let looked = self.part(&name).and_then(|(part, file)| {
            statat(part.as_ref().unwrap_or(&self.bodies), file, AtFlags::SYMLINK_NOFOLLOW)
        });
        match looked {
            Ok(stat) => Ok(Some(look_of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed("cannot stat", &self.path.join(name), errno)),
        }
    }

    fn remove(&self, of: ContentId) -> Result<()> {
        let name = name(of);
        let removed = self
            .part(&name)
            .and_then(|(part, file)| unlinkat(part.as_ref().unwrap_or(&self.bodies), file, AtFlags::empty()));
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed("cannot remove", &self.path.join(name), errno)),
        }
    }

    fn all(&self) -> Result<Vec<ContentId>> {
        let mut all = Vec::new();
        for part in 0..PARTS {
            let name = format!("{part:02x}");
            let path = self.path.join(&name);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let Some(dir) = self.try_open(&name, flags).map_err(|e| failed("cannot open", &path, e))? else {
                continue;
            };
            for entry in Dir::read_from(&dir).map_err(|e| failed("cannot list", &path, e))? {
                let entry = entry.map_err(|e| failed("cannot list", &path, e))?;
                all.extend(parse(part, entry.file_name().to_bytes()));
            }
        }
        Ok(all)
    }

    fn usage(&self) -> Result<StatFs> {
        let found = fstatvfs(&self.bodies).map_err(|e| failed("cannot stat", &self.path, e))?;
        Ok(StatFs { block_bytes: found.f_frsize as u32, blocks: found.f_blocks, blocks_free: found.f_bavail })
    }

    fn sync(&self) -> Result<()> {
        syncfs(&self.bodies).map_err(|e| failed("cannot sync", &self.path, e))
    }
}

impl PoolFile {
    fn failed(&self, what: &'static str) -> impl Fn(Errno) -> Error {
        let path = &self.path;
        move |errno| failed(what, path, errno)
    }

    fn try_allocate(&self, flags: FallocateFlags, at: u64, len: u64) -> Result<(), Errno> {
        fallocate(&self.file, flags, at, len)
    }
}

impl ContentFile for PoolFile {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match rustix::io::pread(&self.file, &mut into[done..], at.saturating_add(done as u64)) {
                // EINVAL: the position exceeds the maximum file size of the underlying file system.
                Ok(0) | Err(Errno::INVAL) => break,
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.failed("cannot read")(errno)),
            }
        }
        Ok(done)
    }

    fn write(&self, at: u64, data: &[u8]) -> Result<usize> {
        let mut done = 0;
        while done < data.len() {
            match rustix::io::pwrite(&self.file, &data[done..], at + done as u64) {
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                // A partial write succeeds; the next call returns the error.
                Err(_) if done > 0 => break,
                Err(errno) => return Err(self.failed("cannot write")(errno)),
            }
        }
        Ok(done)
    }

    fn resize(&self, to: u64) -> Result<()> {
        ftruncate(&self.file, to).map_err(self.failed("cannot resize"))
    }

    fn allocate(&self, mode: Allocate, at: u64, len: u64) -> Result<()> {
        let keep = FallocateFlags::KEEP_SIZE;
        let flags = match mode {
            Allocate::Extend => FallocateFlags::empty(),
            Allocate::Keep => keep,
            Allocate::Punch => FallocateFlags::PUNCH_HOLE | keep,
            Allocate::Zero => FallocateFlags::ZERO_RANGE,
            Allocate::ZeroKeep => FallocateFlags::ZERO_RANGE | keep,
        };
        match self.try_allocate(flags, at, len) {
            Err(Errno::OPNOTSUPP) if flags.contains(FallocateFlags::ZERO_RANGE) => {
                // tmpfs does not support ZERO_RANGE. Space is allocated first, because that is the
                // step that can fail; then the range is punched and allocated again.
                let fill = flags - FallocateFlags::ZERO_RANGE;
                self.try_allocate(fill, at, len)
                    .and_then(|()| self.try_allocate(FallocateFlags::PUNCH_HOLE | keep, at, len))
                    .and_then(|()| self.try_allocate(fill, at, len))
            }
            done => done,
        }
        .map_err(self.failed("cannot allocate"))
    }

    fn seek(&self, what: Seek, at: u64) -> Result<u64> {
        let to = match what {
            Seek::Data => rustix::fs::SeekFrom::Data(at),
            Seek::Hole => rustix::fs::SeekFrom::Hole(at),
        };
        seek(&self.file, to).map_err(|errno| match errno {
            // EINVAL: the position exceeds the maximum file size.
            Errno::INVAL => Error::BeyondEnd,
            errno => self.failed("cannot search")(errno),
        })
    }

    fn look(&self) -> Result<ContentMetadata> {
        fstat(&self.file).map(|stat| look_of(&stat)).map_err(self.failed("cannot stat"))
    }

    fn set_times(&self, atime: Option<Time>, mtime: Option<Time>) -> Result<()> {
        let spec = |time: Option<Time>| match time.map(Time::split) {
            Some((tv_sec, nanos)) => Timespec { tv_sec, tv_nsec: nanos.into() },
            None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        };
        let times = Timestamps { last_access: spec(atime), last_modification: spec(mtime) };
        futimens(&self.file, &times).map_err(self.failed("cannot set the times of"))
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        let synced = if data_only { fdatasync(&self.file) } else { fsync(&self.file) };
        synced.map_err(self.failed("cannot sync"))
    }

    fn descriptor(&self) -> Option<Arc<OwnedFd>> {
        Some(Arc::clone(&self.file))
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;
    use std::os::unix::fs::{lchown, symlink};

    #[test]
    fn links_in_a_pool_of_another_user_lead_nowhere() {
        if rustix::process::geteuid().as_raw() != 0 {
            eprintln!("skipped: a pool of another user needs root");
            return;
        }
        const OTHER: u32 = 65534;
        let root = tempfile::tempdir().unwrap();
        let (pool, outside) = (root.path().join("pool"), root.path().join("outside"));
        drop(Pool::make(&pool, None).unwrap());
        std::fs::create_dir(&outside).unwrap();
        let [of_five, victim] = ["5-1", "victim"].map(|name| outside.join(name));
        for file in [&of_five, &victim] {
            std::fs::write(file, "precious").unwrap();
        }
        let bodies = pool.join("bodies");
        std::fs::remove_dir(bodies.join("05")).unwrap();
        symlink(&outside, bodies.join("05")).unwrap();
        std::fs::hard_link(&victim, bodies.join("06/6-1")).unwrap();
        for path in [&pool, &bodies, &bodies.join("05"), &bodies.join("06")] {
            lchown(path, Some(OTHER), None).unwrap();
        }
        let pool = Pool::open(&pool).unwrap();
        let of = |ino| ContentId { ino: Ino(ino), generation: 1 };
        for make in [false, true] {
            assert!(pool.open(of(5), make).is_err() && pool.open(of(6), make).is_err());
        }
        assert!(pool.look(of(5)).is_err() && pool.remove(of(5)).is_err());
        pool.open(of(7), true).unwrap().unwrap().write(0, b"content").unwrap();
        for file in [&of_five, &victim] {
            assert_eq!(std::fs::read(file).unwrap(), b"precious");
        }
        // A link instead of the directory of all of them.
        std::fs::rename(&bodies, root.path().join("aside")).unwrap();
        symlink(root.path().join("aside"), &bodies).unwrap();
        assert!(Pool::open(bodies.parent().unwrap()).is_err());
    }
}
