//! Operations by path, on any implementation of [`FileSystem`].

use crate::error::{Error, Result};
use crate::files::FileSystem;
use crate::types::{Attr, AttrChanges, Caller, Ino, InodeType, NewInode, RenameMode};

/// What is not supported below a directory.
const OUT: &str = "names and symbolic links that lead out of the directory";
/// Maximum number of symbolic links in a path (MAXSYMLINKS of Linux).
const LINKS_MAX: u32 = 40;

/// Operations by path. A path starts at the root directory, with or without a leading slash.
/// Symbolic links in it are followed; one in the last name is followed only where documented.
pub trait Paths: FileSystem {
    /// Resolves a path to an inode. `follow`: a symbolic link in the last name is followed.
    ///
    /// # Errors
    /// A name does not exist, is not a directory, or is not searchable; there are too many symbolic
    /// links.
    fn resolve(&self, caller: &Caller, path: &str, follow: bool) -> Result<Attr> {
        walk(self, caller, self.attr(Ino::ROOT)?, path.as_bytes(), &mut Links::followed(follow))
    }

    /// Resolves a path from a directory, of a file system that is mounted, and never above this directory: what
    /// is above it may be hidden from the caller, by a mount or a changed root. Neither does it lead through
    /// inodes on which something else is mounted (`covered`). All symbolic links are followed.
    ///
    /// # Errors
    /// As [`Paths::resolve`]; [`Error::Unsupported`] for a name or a link that leads out of the directory,
    /// [`Error::Covered`] for a covered inode.
    fn resolve_below(&self, caller: &Caller, dir: Ino, path: &[u8], covered: &[Ino]) -> Result<Attr> {
        let mut links = Links { above: Some(Vec::new()), covered, ..Links::followed(true) };
        walk(self, caller, self.attr(dir)?, path, &mut links)
    }

    /// Resolves a path as [`Paths::resolve_below`], of a file to be overwritten. Names that others can change
    /// lead nowhere else: in a directory that somebody else owns or may write, no symbolic link is followed,
    /// and the file has no other name, and belongs to the caller or to the owner of the directory.
    ///
    /// # Errors
    /// As [`Paths::resolve_below`]; [`Error::Placed`] for such a link or file.
    fn resolve_target_below(&self, caller: &Caller, dir: Ino, path: &[u8], covered: &[Ino]) -> Result<Attr> {
        let mut links = Links { above: Some(Vec::new()), covered, own: true, ..Links::followed(true) };
        walk(self, caller, self.attr(dir)?, path, &mut links)
    }

    /// Resolves a path to its parent directory and its last name.
    ///
    /// # Errors
    /// As [`Paths::resolve`]; the path has no last name.
    fn parent<'p>(&self, caller: &Caller, path: &'p str) -> Result<(Ino, &'p [u8])> {
        let path = path.trim_end_matches('/');
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.is_empty() {
            return Err(Error::Invalid("the root directory has no name"));
        }
        Ok((self.resolve(caller, above, true)?.ino, name.as_bytes()))
    }

    /// Returns the attributes of a path.
    ///
    /// # Errors
    /// As [`Paths::resolve`].
    fn metadata(&self, caller: &Caller, path: &str) -> Result<Attr> {
        self.resolve(caller, path, true)
    }

    /// Creates an inode.
    ///
    /// # Errors
    /// As [`FileSystem::create`].
    fn make(&self, caller: &Caller, path: &str, new: NewInode<'_>) -> Result<Attr> {
        let (dir, name) = self.parent(caller, path)?;
        self.create(caller, dir, name, new)
    }

    /// Creates a directory and its missing ancestors.
    ///
    /// # Errors
    /// As [`FileSystem::create`].
    fn make_directories(&self, caller: &Caller, path: &str, mode: u16) -> Result<Attr> {
        let mut at = self.attr(Ino::ROOT)?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = match self.create(caller, at.ino, name.as_bytes(), NewInode::directory(mode)) {
                // The existing name may be a directory or a symbolic link to one.
                Err(Error::Exists) => walk(self, caller, at, name.as_bytes(), &mut Links::followed(true))?,
                made => made?,
            };
        }
        Ok(at)
    }

    /// Removes a name, of an empty directory or of any other inode.
    ///
    /// # Errors
    /// As [`FileSystem::unlink`] and [`FileSystem::rmdir`].
    fn remove_path(&self, caller: &Caller, path: &str) -> Result<()> {
        let (dir, name) = self.parent(caller, path)?;
        if self.lookup(caller, dir, name)?.kind == InodeType::Directory {
            self.rmdir(caller, dir, name)
        } else {
            self.unlink(caller, dir, name)
        }
    }

    /// Renames a path and replaces an existing target.
    ///
    /// # Errors
    /// As [`FileSystem::rename`].
    fn move_path(&self, caller: &Caller, from: &str, to: &str) -> Result<()> {
        let (from, to) = (self.parent(caller, from)?, self.parent(caller, to)?);
        self.rename(caller, from, to, RenameMode::Replace)
    }

    /// Returns the names of a directory, without `.` and `..`.
    ///
    /// # Errors
    /// As [`FileSystem::read_dir`].
    fn names_of(&self, caller: &Caller, path: &str) -> Result<Vec<(Vec<u8>, InodeType)>> {
        let dir = self.resolve(caller, path, true)?.ino;
        let mut names = Vec::new();
        // Position 2 skips `.` and `..`.
        self.read_dir(dir, 2, &mut |entry| {
            names.push((entry.name.to_vec(), entry.kind));
            true
        })?;
        Ok(names)
    }

    /// Returns the whole contents of a file.
    ///
    /// # Errors
    /// As [`FileSystem::read`].
    fn contents(&self, caller: &Caller, path: &str) -> Result<Vec<u8>> {
        let attr = self.resolve(caller, path, true)?;
        let mut bytes = vec![0; attr.size as usize];
        let len = self.read(attr.ino, 0, &mut bytes)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Writes the whole contents of a file, which is created if it does not exist.
    ///
    /// # Errors
    /// As [`FileSystem::create`] and [`FileSystem::write`]; no space for all of them.
    fn store(&self, caller: &Caller, path: &str, bytes: &[u8]) -> Result<Attr> {
        let ino = match self.make(caller, path, NewInode::file(0o644)) {
            Err(Error::Exists) => self.resolve(caller, path, true)?.ino,
            made => made?.ino,
        };
        self.set_attr(caller, ino, &AttrChanges { size: Some(0), ..AttrChanges::default() })?;
        let mut at = 0;
        while at < bytes.len() {
            at += self.write(ino, at as u64, &bytes[at..])?;
        }
        self.attr(ino)
    }
}

impl<F: FileSystem + ?Sized> Paths for F {}

/// Treatment of symbolic links in a path.
struct Links<'c> {
    /// A link in the last name is followed.
    last: bool,
    /// Directories above the current one, up to the first one, out of which nothing leads. `None`: a link to an
    /// absolute path leads to the root directory of the file system.
    above: Option<Vec<Attr>>,
    /// Inodes through which nothing leads.
    covered: &'c [Ino],
    /// Only the caller and root could have placed the links, and the file.
    own: bool,
    /// Number of links followed so far.
    followed: u32,
}

impl Links<'_> {
    /// Links of a path from the root directory.
    fn followed(last: bool) -> Self {
        Self { last, above: None, covered: &[], own: false, followed: 0 }
    }
}

fn walk<F: FileSystem + ?Sized>(
    fs: &F,
    caller: &Caller,
    from: Attr,
    path: &[u8],
    links: &mut Links<'_>,
) -> Result<Attr> {
    let mut at = from;
    let mut left = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).peekable();
    while let Some(name) = left.next() {
        let dir = at;
        match (name, &mut links.above) {
            (b".", Some(_)) => {
                fs.lookup(caller, dir.ino, name)?;
                continue;
            }
            // Not what is above the directory by now: others may have moved it.
            (b"..", Some(above)) => {
                fs.lookup(caller, dir.ino, name)?;
                at = above.pop().ok_or(Error::Unsupported(OUT))?;
                continue;
            }
            _ => {}
        }
        at = fs.lookup(caller, dir.ino, name)?;
        if links.covered.contains(&at.ino) {
            return Err(Error::Covered);
        }
        if links.own {
            check_kept(caller, &dir, &at)?;
        }
        if at.kind == InodeType::Symlink && (links.last || left.peek().is_some()) {
            links.followed += 1;
            if links.followed > LINKS_MAX {
                return Err(Error::TooManyLinks);
            }
            let target = fs.read_link(at.ino)?;
            let start = match (target.first(), &links.above) {
                (Some(b'/'), None) => fs.attr(Ino::ROOT)?,
                (Some(b'/'), Some(_)) => return Err(Error::Unsupported(OUT)),
                _ => dir,
            };
            let last = std::mem::replace(&mut links.last, true);
            at = walk(fs, caller, start, &target, links)?;
            links.last = last;
        } else if let Some(above) = &mut links.above {
            above.push(dir);
        }
    }
    Ok(at)
}

/// Fails if others can have placed a name to redirect what the caller writes. Directories are what they are,
/// whoever owns the one above.
fn check_kept(caller: &Caller, dir: &Attr, found: &Attr) -> Result<()> {
    const STICKY: u16 = 0o1000;
    let whose = match () {
        () if found.kind == InodeType::Directory => return Ok(()),
        () if dir.uid != caller.uid && dir.uid != 0 => "another user owns",
        () if dir.mode & 0o002 != 0 => "every user may write to",
        () if caller.uid == 0 && dir.gid != 0 && dir.mode & 0o020 != 0 => "a group may write to",
        () => return Ok(()),
    };
    let is_of_directory = found.uid == dir.uid && dir.mode & STICKY == 0;
    let (what, remedy) = match () {
        () if found.kind == InodeType::Symlink => ("a symbolic link", "name its target"),
        () if found.links != 1 => ("a file with several names (hard links)", "name a file that has one"),
        () if found.uid != caller.uid && !is_of_directory => {
            ("a file of another user", "remove it and make one of your own")
        }
        () => return Ok(()),
    };
    Err(Error::Placed { what, whose, remedy })
}
