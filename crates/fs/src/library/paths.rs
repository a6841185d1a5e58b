//! Operations by paths, on anything that is a file system.

use crate::error::{Error, Result};
use crate::files::Files;
use crate::types::{Attr, Caller, Changes, Ino, Kind, New, RenameMode};

/// Symbolic links that a path may lead through (MAXSYMLINKS of Linux).
const LINKS_MAX: u32 = 40;

/// Operations by paths. A path begins at the root directory, with or without a slash; symbolic links on it are
/// followed, the last name only where that is said.
pub trait Paths: Files {
    /// The inode of a path; `follow`: the last name may be a symbolic link to it.
    ///
    /// # Errors
    /// A name is missing, is no directory, or may not be searched; too many links.
    fn resolve(&self, who: &Caller, path: &str, follow: bool) -> Result<Attr> {
        let mut links = 0;
        walk(self, who, self.attr(Ino::ROOT)?, path.as_bytes(), follow, &mut links)
    }

    /// The directory of a path, and the last name.
    ///
    /// # Errors
    /// As [`Paths::resolve`]; the path has no last name.
    fn parent<'p>(&self, who: &Caller, path: &'p str) -> Result<(Ino, &'p [u8])> {
        let path = path.trim_end_matches('/');
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.is_empty() {
            return Err(Error::Invalid("the root directory has no name"));
        }
        Ok((self.resolve(who, above, true)?.ino, name.as_bytes()))
    }

    /// What is known of a path.
    ///
    /// # Errors
    /// As [`Paths::resolve`].
    fn metadata(&self, who: &Caller, path: &str) -> Result<Attr> {
        self.resolve(who, path, true)
    }

    /// Makes something.
    ///
    /// # Errors
    /// As [`Files::create`].
    fn make(&self, who: &Caller, path: &str, new: New<'_>) -> Result<Attr> {
        let (dir, name) = self.parent(who, path)?;
        self.create(who, dir, name, new)
    }

    /// Makes a directory and those above it that are missing.
    ///
    /// # Errors
    /// As [`Files::create`].
    fn make_directories(&self, who: &Caller, path: &str, mode: u16) -> Result<Attr> {
        let mut at = self.attr(Ino::ROOT)?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = match self.create(who, at.ino, name.as_bytes(), New::directory(mode)) {
                Err(Error::Exists) => {
                    let mut links = 0;
                    walk(self, who, at, name.as_bytes(), true, &mut links)?
                }
                made => made?,
            };
        }
        Ok(at)
    }

    /// Removes a name: of a directory, which must be empty, or of anything else.
    ///
    /// # Errors
    /// As [`Files::unlink`] and [`Files::rmdir`].
    fn remove_path(&self, who: &Caller, path: &str) -> Result<()> {
        let (dir, name) = self.parent(who, path)?;
        if self.lookup(who, dir, name)?.kind == Kind::Directory {
            self.rmdir(who, dir, name)
        } else {
            self.unlink(who, dir, name)
        }
    }

    /// Moves a name over another one, which is replaced.
    ///
    /// # Errors
    /// As [`Files::rename`].
    fn move_path(&self, who: &Caller, from: &str, to: &str) -> Result<()> {
        let (from, to) = (self.parent(who, from)?, self.parent(who, to)?);
        self.rename(who, from, to, RenameMode::Replace)
    }

    /// The names of a directory, without `.` and `..`.
    ///
    /// # Errors
    /// As [`Files::read_dir`].
    fn names_of(&self, who: &Caller, path: &str) -> Result<Vec<(Vec<u8>, Kind)>> {
        let dir = self.resolve(who, path, true)?.ino;
        let mut names = Vec::new();
        self.read_dir(dir, 2, &mut |entry| {
            names.push((entry.name.to_vec(), entry.kind));
            true
        })?;
        Ok(names)
    }

    /// All bytes of a file.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn contents(&self, who: &Caller, path: &str) -> Result<Vec<u8>> {
        let attr = self.resolve(who, path, true)?;
        let mut bytes = vec![0; attr.size as usize];
        let len = self.read(attr.ino, 0, &mut bytes)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Makes a file with these bytes, or gives them to one that exists.
    ///
    /// # Errors
    /// As [`Files::create`] and [`Files::write`]; no space for all of them.
    fn store(&self, who: &Caller, path: &str, bytes: &[u8]) -> Result<Attr> {
        let ino = match self.make(who, path, New::file(0o644)) {
            Err(Error::Exists) => self.resolve(who, path, true)?.ino,
            made => made?.ino,
        };
        self.set_attr(who, ino, &Changes { size: Some(0), ..Changes::default() })?;
        let mut at = 0;
        while at < bytes.len() {
            at += self.write(ino, at as u64, &bytes[at..])?;
        }
        self.attr(ino)
    }
}

impl<F: Files + ?Sized> Paths for F {}

fn walk<F: Files + ?Sized>(
    fs: &F,
    who: &Caller,
    from: Attr,
    path: &[u8],
    follow: bool,
    links: &mut u32,
) -> Result<Attr> {
    let mut at = from;
    let mut left = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).peekable();
    while let Some(name) = left.next() {
        let dir = at;
        at = fs.lookup(who, dir.ino, name)?;
        if at.kind == Kind::Symlink && (follow || left.peek().is_some()) {
            *links += 1;
            if *links > LINKS_MAX {
                return Err(Error::TooManyLinks);
            }
            let target = fs.read_link(at.ino)?;
            let start = if target.first() == Some(&b'/') { fs.attr(Ino::ROOT)? } else { dir };
            at = walk(fs, who, start, &target, true, links)?;
        }
    }
    Ok(at)
}
