//! The walk along a path, which holds each directory open.

use super::existing;
use super::open_below;
use super::place::Place;
use super::trust::{DirFacts, Judge, Trust};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// Limit of links in a path, as in Linux.
const LINKS_MAX: u32 = 40;
/// Magic number of procfs in `statfs` (linux/magic.h).
const PROC: u64 = 0x9fa0;

/// What the last name of a path stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Last {
    /// The name itself, even if it is a link.
    Name,
    /// The file or directory that it leads to, or the name if it does not exist.
    Target,
    /// A directory, which exists.
    Dir,
}

/// The directory that a walk has reached.
struct Walk {
    judge: Judge,
    dir: OwnedFd,
    /// Path of the directory, without links.
    shown: PathBuf,
    trust: Trust,
    device: u64,
    links: u32,
}

/// A step of a path that is still to be done.
#[derive(Debug)]
enum Step {
    Root,
    Up,
    Down(OsString),
}

fn steps(path: &Path) -> Vec<Step> {
    let step = |part: Component<'_>| match part {
        Component::RootDir => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Down(name.into())),
        Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(step).collect()
}

impl Walk {
    fn begin(path: &Path) -> io::Result<Walk> {
        let judge = Judge::here()?;
        let start = if path.is_absolute() { "/" } else { "." };
        let dir = open_below(CWD, start)?;
        let device = rustix::fs::fstat(&dir)?.st_dev;
        let shown = if path.is_absolute() { "/".into() } else { std::env::current_dir().unwrap_or_default() };
        Ok(Walk { judge, trust: judge.judge_open(&dir), dir, shown, device, links: 0 })
    }

    /// Makes an open directory the current one.
    fn enter(&mut self, dir: OwnedFd, shown: PathBuf, trust: Option<Trust>) -> io::Result<()> {
        let facts = DirFacts::of(&dir)?;
        self.trust = trust.unwrap_or_else(|| self.judge.judge(Some((self.trust, self.device)), &facts));
        (self.device, self.dir, self.shown) = (facts.device, dir, shown);
        Ok(())
    }

    fn root(&mut self) -> io::Result<()> {
        let root = open_below(CWD, "/")?;
        let trust = self.judge.judge_open(&root);
        self.enter(root, "/".into(), Some(trust))
    }

    fn up(&mut self) -> io::Result<()> {
        let above = open_below(&self.dir, "..")?;
        // What a directory without protection is in was chosen by whoever can move it.
        let trust = if self.trust == Trust::None { Trust::None } else { self.judge.judge_open(&above) };
        let shown = self.shown.parent().unwrap_or(Path::new("/")).to_owned();
        self.enter(above, shown, Some(trust))
    }

    /// Goes on to what a name stands for. Returns the target of a link, whose steps are next.
    fn down(&mut self, name: &OsStr) -> io::Result<Option<PathBuf>> {
        match open_below(&self.dir, name) {
            Ok(dir) => self.enter(dir, self.shown.join(name), None).map(|()| None),
            Err(e @ (Errno::NOTDIR | Errno::LOOP)) => match self.link(name)? {
                Some(Link::Path(target)) => Ok(Some(target)),
                Some(Link::Magic) => {
                    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                    let dir = rustix::fs::openat(&self.dir, name, flags, Mode::empty())?;
                    let trust = self.judge.judge_open(&dir);
                    let shown = self.shown.join(name);
                    let shown = std::fs::read_link(&shown).ok().filter(|t| t.is_absolute()).unwrap_or(shown);
                    self.enter(dir, shown, Some(trust)).map(|()| None)
                }
                None => Err(e.into()),
            },
            Err(e) => Err(e.into()),
        }
    }

    /// Reads a link, if the name is one and may be followed.
    fn link(&mut self, name: &OsStr) -> io::Result<Option<Link>> {
        let target = match rustix::fs::readlinkat(&self.dir, name, Vec::new()) {
            Ok(target) => PathBuf::from(OsString::from_vec(target.into_bytes())),
            Err(Errno::INVAL | Errno::NOENT) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        if self.trust != Trust::Full {
            return Err(existing::link_refused(&self.shown, name, self.dir.as_fd()));
        }
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        // Links of procfs lead to open files, which may have no path.
        let is_magic = rustix::fs::fstatfs(&self.dir).is_ok_and(|fs| fs.f_type as u64 == PROC);
        Ok(Some(if is_magic { Link::Magic } else { Link::Path(target) }))
    }

    fn place(self, name: OsString, is_magic: bool) -> Place {
        Place::new(self.dir, self.shown, name, self.trust, self.judge, is_magic)
    }
}

enum Link {
    Path(PathBuf),
    /// The kernel follows it.
    Magic,
}

/// Walks along a path.
pub(super) fn walk(path: &Path, last: Last) -> io::Result<Place> {
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT.into());
    }
    let mut walk = Walk::begin(path)?;
    let mut left = steps(path);
    while let Some(step) = left.pop() {
        match step {
            Step::Root => walk.root()?,
            Step::Up => walk.up()?,
            Step::Down(name) if left.is_empty() && last == Last::Name => return Ok(walk.place(name, false)),
            Step::Down(name) if left.is_empty() && last == Last::Target => match walk.link(&name)? {
                Some(Link::Path(target)) => left.extend(steps(&target)),
                Some(Link::Magic) => return Ok(walk.place(name, true)),
                None => return Ok(walk.place(name, false)),
            },
            Step::Down(name) => left.extend(walk.down(&name)?.iter().flat_map(|target| steps(target))),
        }
    }
    match last {
        Last::Name => Err(no_name(path)),
        Last::Dir | Last::Target => Ok(walk.place(".".into(), false)),
    }
}

/// Returns the path that a path leads to. It exists.
pub(super) fn canonical(path: &Path) -> io::Result<PathBuf> {
    let place = walk(path, Last::Target)?;
    if place.is_magic() {
        return std::fs::read_link(place.path()).and_then(std::fs::canonicalize);
    }
    rustix::fs::statat(place.dir(), place.name(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(place.path())
}

fn no_name(path: &Path) -> io::Error {
    let what = format!("{} does not end in a name", crate::text::shown(path));
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
