//! Verification of what a damaged file system returns: the data before the damage, or an error.

use super::super::compare::command_of;
use super::image::{BYTES, PopulatedImage};
use frit_fs::{
    AnyMedium, Attr, Caller, Clock, FileSystem, Fs, FsOptions, Ino, InodeType, Mapped, Medium, Report, check,
    repair,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Time at which the image is opened, in nanoseconds.
pub(super) const LATER: i64 = 2_000_000_000_000;
/// Largest number of names that a walk follows, since damaged directories may form cycles.
const WALKED: usize = 2000;

/// Attributes, contents and extended attributes of an inode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct InodeContents {
    pub(super) attr: Attr,
    pub(super) contents: Vec<u8>,
    pub(super) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// All inodes and names of a file system.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct TreeContents {
    pub(super) inodes: BTreeMap<Ino, InodeContents>,
    pub(super) names: BTreeMap<(Ino, Vec<u8>), Ino>,
    /// Command file of each directory.
    pub(super) commands: BTreeMap<Ino, Ino>,
}

/// Result of damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DamageVerdict {
    /// The check reported it.
    Reported,
    /// Everything reads as before.
    Harmless,
    /// The check did not report it, and one inode or one name reads differently.
    Unnoticed,
}

/// Verifies damaged images of one file system.
#[derive(Debug)]
pub struct DamageJudge {
    scratch: AnyMedium,
    expected: TreeContents,
    /// State before the last transaction, which recovery may discard as incomplete.
    before_last: TreeContents,
}

pub(super) fn known(fs: &dyn FileSystem, ino: Ino) -> frit_fs::Result<InodeContents> {
    let attr = fs.attr(ino)?;
    let contents = match attr.kind {
        InodeType::File => {
            let mut bytes = vec![0xA5; attr.size.min(1 << 20) as usize];
            let n = fs.read(ino, 0, &mut bytes)?;
            bytes.truncate(n);
            bytes
        }
        InodeType::Symlink => fs.read_link(ino)?,
        _ => Vec::new(),
    };
    let mut xattrs = Vec::new();
    for key in fs.xattrs(ino)?.split(|b| *b == 0).filter(|key| !key.is_empty()) {
        xattrs.push((key.to_vec(), fs.xattr(ino, key)?));
    }
    Ok(InodeContents { attr, contents, xattrs })
}

/// An entry of a directory listing.
pub(super) type ListedEntry = (Vec<u8>, Ino, InodeType);

/// Returns the names of a directory and the result of the listing.
pub(super) fn listed(fs: &dyn FileSystem, dir: Ino) -> (Vec<ListedEntry>, frit_fs::Result<()>) {
    let mut names = Vec::new();
    let end = fs.read_dir(dir, 0, &mut |entry| {
        names.push((entry.name.to_vec(), entry.ino, entry.kind));
        names.len() < WALKED
    });
    (names, end)
}

pub(super) fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

pub(super) fn whole(fs: &dyn FileSystem) -> Result<TreeContents, String> {
    let mut whole = TreeContents::default();
    let mut next = vec![Ino::ROOT];
    while let Some(ino) = next.pop() {
        if whole.inodes.contains_key(&ino) {
            continue;
        }
        let known = known(fs, ino).map_err(|e| format!("{ino:?}: {e}"))?;
        if known.attr.kind == InodeType::Directory {
            let (names, end) = listed(fs, ino);
            end.map_err(|e| format!("list {ino:?}: {e}"))?;
            for (name, below, _) in names.into_iter().filter(|(name, ..)| !is_dot(name)) {
                whole.names.insert((ino, name), below);
                next.push(below);
            }
            if let Some(command) = command_of(fs, ino).map_err(|e| format!("command file of {ino:?}: {e}"))? {
                whole.commands.insert(ino, command.ino);
                next.push(command.ino);
            }
        }
        whole.inodes.insert(ino, known);
    }
    Ok(whole)
}

fn open(medium: AnyMedium) -> frit_fs::Result<Fs<AnyMedium>> {
    Fs::open(medium, FsOptions { read_only: true, clock: Clock::counted(LATER), ..FsOptions::default() })
}

pub(super) fn is_io(error: &frit_fs::Error) -> bool {
    matches!(error, frit_fs::Error::Damaged { .. } | frit_fs::Error::Image(_))
}

impl DamageJudge {
    /// Creates a judge for an image.
    ///
    /// # Errors
    /// The image cannot be read.
    pub fn new(of: &PopulatedImage) -> Result<Self, String> {
        let scratch: AnyMedium = Arc::new(Mapped::anonymous(BYTES).map_err(|e| e.to_string())?);
        let read = |image: &[u8]| {
            scratch.write_data(0, image);
            whole(&open(Arc::clone(&scratch)).map_err(|e| e.to_string())?)
        };
        let (before_last, expected) = (read(&of.before_last)?, read(&of.image)?);
        Ok(Self { scratch, expected, before_last })
    }

    /// Checks a damaged image. If the check reports nothing, everything must read as before.
    ///
    /// # Errors
    /// The check reports nothing, and the tree cannot be read or differs in more than one inode and
    /// one name.
    pub fn check(&self, image: &[u8]) -> Result<DamageVerdict, String> {
        self.scratch.write_data(0, image);
        if check(&self.scratch).map_or(true, |report| !report.is_clean()) {
            return Ok(DamageVerdict::Reported);
        }
        let fs = open(Arc::clone(&self.scratch)).map_err(|e| format!("check is clean, and: {e}"))?;
        let found = whole(&fs).map_err(|e| format!("check is clean, and {e}"))?;
        let same = found == self.expected || found == self.before_last;
        if same {
            return Ok(DamageVerdict::Harmless);
        }
        self.expected.bounds(&found).map(|()| DamageVerdict::Unnoticed)
    }

    /// Reads everything of a damaged image by its former names. Each answer must be correct, or an
    /// error that reports damage. Returns the number of such errors.
    ///
    /// # Errors
    /// An answer that is neither correct nor such an error.
    pub fn read(&self, image: &[u8]) -> Result<u64, String> {
        self.scratch.write_data(0, image);
        let fs = match open(Arc::clone(&self.scratch)) {
            Ok(fs) => fs,
            Err(error) if is_io(&error) => return Ok(1),
            Err(error) => return Err(format!("open: {error}")),
        };
        match self.compare(&fs, &self.expected) {
            Ok(errors) => Ok(errors),
            Err(what) => self.compare(&fs, &self.before_last).map_err(|_| what),
        }
    }

    fn compare(&self, fs: &dyn FileSystem, right: &TreeContents) -> Result<u64, String> {
        let mut errors = 0;
        for ((dir, name), ino) in &right.names {
            match fs.lookup(&Caller::ROOT, *dir, name) {
                Ok(attr) if attr == right.inodes[ino].attr => {}
                Err(error) if is_io(&error) => errors += 1,
                other => return Err(format!("{} in {dir:?}: {other:?}", String::from_utf8_lossy(name))),
            }
        }
        for (dir, command) in &right.commands {
            match command_of(fs, *dir) {
                Ok(Some(attr)) if attr == right.inodes[command].attr => {}
                Err(error) if is_io(&error) => errors += 1,
                other => return Err(format!("command file of {dir:?}: {other:?}")),
            }
        }
        for (ino, expected) in &right.inodes {
            match known(fs, *ino) {
                Ok(found) if found == *expected => {}
                Err(error) if is_io(&error) => errors += 1,
                other => return Err(format!("{ino:?}: {other:?}, and it was {expected:?}")),
            }
            if expected.attr.kind == InodeType::Directory {
                errors += u64::from(right.listing(fs, *ino)?);
            }
        }
        Ok(errors)
    }

    /// Repairs a damaged image. After the repair the check must be clean. At most one inode may be
    /// missing or have different contents or attributes, and at most one name of other directories
    /// may be missing.
    ///
    /// # Errors
    /// A larger loss, or a check that is not clean.
    pub fn repair(&self, image: &[u8]) -> Result<(), String> {
        let report = self.repaired(image)?;
        let fs = open(Arc::clone(&self.scratch)).map_err(|e| format!("open after a repair: {e}"))?;
        let found = whole(&fs).map_err(|e| format!("after a repair: {e}"))?;
        self.expected
            .bounds(&found)
            .or_else(|what| self.before_last.bounds(&found).map_err(|_| what))
            .map_err(|what| format!("{what}; the repair said: {:#?}", report.repairs))
    }

    fn repaired(&self, image: &[u8]) -> Result<Report, String> {
        self.scratch.write_data(0, image);
        let report = match repair(&self.scratch, &Clock::counted(LATER)) {
            Ok(report) => report,
            // A medium without a valid superblock cannot be repaired.
            Err(error) => return Err(format!("repair: {error}")),
        };
        let after = check(&self.scratch).map_err(|e| format!("check after a repair: {e}"))?;
        match after.is_clean() && report.is_clean() {
            true => Ok(report),
            false => Err(format!("after a repair: {:?}; it said: {:#?}", after.problems, report.repairs)),
        }
    }
}

impl TreeContents {
    /// Verifies the listing of a directory. Returns `true` if it ended with an error.
    fn listing(&self, fs: &dyn FileSystem, dir: Ino) -> Result<bool, String> {
        let (names, end) = listed(fs, dir);
        let mut seen = BTreeSet::new();
        for (name, ino, kind) in names.into_iter().filter(|(name, ..)| !is_dot(name)) {
            let right = self.names.get(&(dir, name.clone()));
            if right != Some(&ino) || self.inodes[&ino].attr.kind != kind || !seen.insert(name.clone()) {
                return Err(format!("{dir:?} lists {} as {ino:?}", String::from_utf8_lossy(&name)));
            }
        }
        let all = self.names.range((dir, Vec::new())..).take_while(|((of, _), _)| *of == dir).count();
        match end {
            Err(error) if is_io(&error) => Ok(true),
            Ok(()) if seen.len() == all => Ok(false),
            other => Err(format!("{dir:?} lists {} of {all} names, and ends with {other:?}", seen.len())),
        }
    }

    /// Verifies that a repair of a single damage lost no more than it may.
    fn bounds(&self, found: &TreeContents) -> Result<(), String> {
        let differs = |(ino, known): &(&Ino, &InodeContents)| {
            found.inodes.get(ino).is_none_or(|now| {
                let own =
                    |of: &InodeContents| (of.attr.kind, of.attr.mode, of.attr.uid, of.attr.gid, of.attr.size);
                own(now) != own(known) || now.contents != known.contents || now.xattrs != known.xattrs
            })
        };
        let mut damaged: BTreeSet<Ino> = self.inodes.iter().filter(differs).map(|(ino, _)| *ino).collect();
        // A directory is lost with its command file.
        let with_directory: Vec<Ino> = self
            .commands
            .iter()
            .filter(|(dir, _)| damaged.contains(dir))
            .map(|(_, command)| *command)
            .collect();
        damaged.retain(|ino| !with_directory.contains(ino));
        let without = found.inodes.iter().find(|(ino, known)| {
            known.attr.kind == InodeType::Directory && !found.commands.contains_key(ino)
        });
        if let Some((dir, _)) = without {
            return Err(format!("{dir:?} has no command file"));
        }
        if damaged.len() > 1 {
            return Err(format!("{damaged:?} are not what they were"));
        }
        let gone: Vec<_> = self
            .names
            .iter()
            .filter(|(name, ino)| found.names.get(name) != Some(*ino))
            .filter(|((dir, _), ino)| !damaged.contains(dir) && !damaged.contains(ino))
            .collect();
        if gone.len() > 1 { Err(format!("names are gone: {gone:?}")) } else { Ok(()) }
    }
}

/// Performs every operation on a medium with arbitrary contents, to find panics and endless loops.
pub fn exercise(medium: &AnyMedium) {
    let _ = check(medium);
    if let Ok(fs) = open(Arc::clone(medium)) {
        let (mut next, mut seen) = (vec![Ino::ROOT], BTreeSet::new());
        while let Some(ino) = next.pop().filter(|_| seen.len() < WALKED) {
            if seen.insert(ino) {
                let _ = known(&fs, ino);
                let _ = fs.pieces(ino, 0, &mut |_| true);
                next.extend(listed(&fs, ino).0.into_iter().map(|(_, below, _)| below));
                next.extend(command_of(&fs, ino).ok().flatten().map(|command| command.ino));
            }
        }
        let _ = fs.usage();
    }
    let _ = repair(medium, &Clock::counted(LATER));
}
