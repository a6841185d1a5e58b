//! Ways to access a damaged image, and the results that each allows. Each answer is correct or an
//! error that reports the damage, and a repair names everything that it gives up. No wrong data and
//! no loss goes unreported.

use super::super::compare::command_of;
use super::image::PopulatedImage;
use super::judge::{InodeContents, LATER, TreeContents, is_dot, is_io, known, listed, whole};
use frit_fs::{
    AnyMedium, Attr, Caller, Clock, Error, FileSystem, Fs, FsOptions, Geometry, Ino, InodeType, Mapped,
    Medium, Report, Time, check, check_contents, repair,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use strum::{EnumIter, IntoStaticStr};

/// Bytes of a block.
const BLOCK: u64 = 4096;

/// A way to access an image.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum AccessPath {
    /// Opens it read-only, then lists and reads everything, as a copy program does.
    ReadOnly,
    /// Opens it for writing, lists and reads everything, closes it, and does the same again.
    ReadWrite,
    /// Writes a part of each block of each file with its former bytes, closes it, then lists and
    /// reads everything.
    Overwrite,
    /// Defragments each file, closes it, then lists and reads everything.
    Gather,
    /// Checks it, with contents if they have checksums.
    Check,
    /// Repairs it, then checks it, lists and reads everything.
    Repair,
}

/// Result of an access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum AccessOutcome {
    /// Everything reads as before the damage.
    Right,
    /// The damage is reported: by errors, by a check, or by a repair that says what it gave up.
    Told,
    /// Some data is of an earlier state, which is allowed only for damage by older pages.
    Older,
}

/// Accesses damaged images and verifies the results.
#[derive(Debug)]
pub struct AccessChecker {
    geometry: Geometry,
    expected: TreeContents,
    /// State before the last transaction: damage of that transaction may look like an interrupted
    /// one.
    before_last: TreeContents,
    older: Vec<TreeContents>,
    /// Blocks of contents without a checksum.
    unsummed: BTreeSet<u64>,
}

fn medium(image: &[u8]) -> Result<AnyMedium, String> {
    let medium = Mapped::anonymous(image.len() as u64).map_err(|e| e.to_string())?;
    medium.write_data(0, image);
    Ok(Arc::new(medium))
}

fn open(medium: &AnyMedium, read_only: bool) -> frit_fs::Result<Fs<AnyMedium>> {
    Fs::open(
        Arc::clone(medium),
        FsOptions { read_only, clock: Clock::counted(LATER), ..FsOptions::default() },
    )
}

/// Returns the properties of an inode that no access changes.
fn own(known: &InodeContents) -> InodeContents {
    let size = if known.attr.kind == InodeType::Directory { 0 } else { known.attr.size };
    let [atime, mtime, ctime] = [Time(0); 3];
    let attr = Attr { size, links: 0, sectors: 0, atime, mtime, ctime, ..known.attr };
    InodeContents { attr, ..known.clone() }
}

/// Returns `true` if a message names one of these inodes, or the name.
fn told(said: &[String], inodes: &[Ino], name: &[u8]) -> bool {
    let name = format!("`{}`", String::from_utf8_lossy(name));
    said.iter().any(|said| {
        said.contains(&name) || inodes.iter().any(|ino| said.contains(&format!("inode {} ", ino.0)))
    })
}

impl AccessChecker {
    /// Creates a verifier for an image.
    ///
    /// # Errors
    /// The image itself cannot be read.
    pub fn new(made: &PopulatedImage) -> Result<Self, String> {
        let read = |image: &[u8]| whole(&open(&medium(image)?, true).map_err(|e| e.to_string())?);
        let fs = open(&medium(&made.image)?, true).map_err(|e| e.to_string())?;
        let geometry = *fs.geometry();
        let mut unsummed = BTreeSet::new();
        for ino in fs.inodes() {
            let _ = fs.pieces(ino, 0, &mut |piece| {
                for block in piece.medium / BLOCK..(piece.medium + piece.len) / BLOCK {
                    let mut sum = [0; 8];
                    if geometry.has_sums() {
                        fs.medium().read(geometry.sum_at(block), &mut sum);
                    }
                    if sum == [0; 8] {
                        unsummed.insert(block);
                    }
                }
                true
            });
        }
        let older: Result<Vec<_>, _> = made.history.iter().map(|image| read(image)).collect();
        let (expected, before_last) = (read(&made.image)?, read(&made.before_last)?);
        Ok(Self { geometry, expected, before_last, older: older?, unsummed })
    }

    /// Returns the layout of the image.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the blocks of contents whose damage cannot be detected.
    #[must_use]
    pub fn unsummed(&self) -> &BTreeSet<u64> {
        &self.unsummed
    }

    /// Accesses a damaged image. `older` is `true` if some of its pages may be of an earlier state.
    ///
    /// # Errors
    /// Wrong data or a loss that was not reported.
    pub fn look(&self, door: AccessPath, image: &[u8], older: bool) -> Result<AccessOutcome, String> {
        let medium = medium(image)?;
        match door {
            AccessPath::ReadOnly => self.read(&medium, true, older),
            AccessPath::ReadWrite => {
                let first = self.read(&medium, false, older)?;
                Ok(first.max(self.read(&medium, false, older)?))
            }
            AccessPath::Overwrite => self.change(&medium, older, |fs| self.overwrite(fs)),
            AccessPath::Gather => self.change(&medium, older, |fs| {
                for ino in self.expected.inodes.keys() {
                    let _ = fs.gather(*ino);
                }
            }),
            AccessPath::Check => self.check(&medium, older),
            AccessPath::Repair => self.repair(&medium, older),
        }
    }

    /// Returns the states that may be found, in order. The first one that everything agrees with
    /// gives the outcome.
    fn states(&self, older: bool) -> Vec<(Vec<&TreeContents>, AccessOutcome)> {
        let mut states = vec![
            (vec![&self.expected], AccessOutcome::Right),
            (vec![&self.before_last], AccessOutcome::Right),
        ];
        if older {
            states.push((self.older.iter().chain([&self.expected]).collect(), AccessOutcome::Older));
        }
        states
    }

    fn read(&self, medium: &AnyMedium, read_only: bool, older: bool) -> Result<AccessOutcome, String> {
        let fs = match open(medium, read_only) {
            Ok(fs) => fs,
            Err(error) if is_io(&error) => return Ok(AccessOutcome::Told),
            Err(error) => return Err(format!("open: {error}")),
        };
        let outcome = self.compare(&fs, older, &[], true)?;
        match fs.close() {
            Err(error) if !is_io(&error) => Err(format!("close: {error}")),
            _ => Ok(outcome),
        }
    }

    fn change(
        &self,
        medium: &AnyMedium,
        older: bool,
        change: impl FnOnce(&Fs<AnyMedium>),
    ) -> Result<AccessOutcome, String> {
        let Ok(fs) = open(medium, false) else { return Ok(AccessOutcome::Told) };
        change(&fs);
        let _ = fs.close();
        match open(medium, false) {
            Ok(fs) => self.compare(&fs, older, &[], false),
            Err(error) if is_io(&error) => Ok(AccessOutcome::Told),
            Err(error) => Err(format!("open: {error}")),
        }
    }

    /// Writes the first bytes of each block with their former values.
    fn overwrite(&self, fs: &Fs<AnyMedium>) {
        for (ino, known) in
            self.expected.inodes.iter().filter(|(_, known)| known.attr.kind == InodeType::File)
        {
            for at in (0..known.contents.len()).step_by(BLOCK as usize) {
                let bytes = &known.contents[at..known.contents.len().min(at + 8)];
                // A hole stays a hole.
                if fs.seek(*ino, frit_fs::Seek::Data, at as u64).is_ok_and(|data| data == at as u64) {
                    let _ = fs.write(*ino, at as u64, bytes);
                }
            }
        }
    }

    fn check(&self, medium: &AnyMedium, older: bool) -> Result<AccessOutcome, String> {
        let look = if self.geometry.has_sums() { check_contents } else { check };
        if look(medium).map_or(true, |report| !report.is_clean()) {
            return Ok(AccessOutcome::Told);
        }
        let fs = open(medium, true).map_err(|e| format!("check is clean, and: {e}"))?;
        match self.compare(&fs, older, &[], true) {
            Ok(AccessOutcome::Told) => Err("check is clean, and something cannot be read".to_string()),
            other => other.map_err(|e| format!("check is clean, and {e}")),
        }
    }

    fn repair(&self, medium: &AnyMedium, older: bool) -> Result<AccessOutcome, String> {
        // A medium without a valid superblock cannot be repaired.
        let Ok(report) = repair(medium, &Clock::counted(LATER)) else { return Ok(AccessOutcome::Told) };
        let after = check(medium).map_err(|e| format!("check after a repair: {e}"))?;
        if !after.is_clean() || !report.is_clean() {
            return Err(format!("after a repair: {:?}; it said: {:#?}", after.problems, report.repairs));
        }
        let fs = open(medium, false).map_err(|e| format!("open after a repair: {e}"))?;
        let Report { repairs, .. } = &report;
        let outcome = self.compare(&fs, older, repairs, false);
        outcome.map_err(|e| format!("{e}; the repair said: {repairs:#?}"))
    }

    /// Lists and reads everything. `said` holds messages that name the data that may be missing.
    fn compare(
        &self,
        fs: &Fs<AnyMedium>,
        older: bool,
        said: &[String],
        strict: bool,
    ) -> Result<AccessOutcome, String> {
        let mut wrong = None;
        for (states, outcome) in self.states(older) {
            match (StateComparison { fs, states, said, strict }).all() {
                Ok(0) => return Ok(outcome),
                Ok(_) => return Ok(AccessOutcome::Told),
                Err(what) => wrong = Some(what),
            }
        }
        Err(wrong.unwrap_or_default())
    }
}

/// A file system and the states that it may be in.
struct StateComparison<'a> {
    fs: &'a Fs<AnyMedium>,
    states: Vec<&'a TreeContents>,
    /// Messages of a repair.
    said: &'a [String],
    /// Times and link counts must also be correct.
    strict: bool,
}

impl StateComparison<'_> {
    /// Walks all listed names from the root. Returns the number of errors and reported losses.
    fn all(&self) -> Result<u64, String> {
        let (mut next, mut seen, mut errors) = (vec![Ino::ROOT], BTreeSet::new(), 0);
        while let Some(ino) = next.pop() {
            if !seen.insert(ino) {
                continue;
            }
            errors += self.inode(ino)?;
            if self.states.iter().any(|whole| is_directory(whole, ino)) {
                let (below, more) = self.directory(ino)?;
                errors += more;
                next.extend(below);
                match self.command(ino)? {
                    Some(command) => next.push(command),
                    None => errors += 1,
                }
            }
        }
        Ok(errors)
    }

    fn inode(&self, ino: Ino) -> Result<u64, String> {
        match known(self.fs, ino) {
            Ok(found) => {
                // Reads change the access time. A damaged list of orphans that names a file frees
                // the blocks beyond its end.
                let same = |right: &&InodeContents| match self.strict {
                    true => {
                        found
                            == InodeContents {
                                attr: Attr {
                                    atime: found.attr.atime,
                                    sectors: found.attr.sectors,
                                    ..right.attr
                                },
                                ..(*right).clone()
                            }
                    }
                    false => own(&found) == own(right),
                };
                if self.states.iter().filter_map(|whole| whole.inodes.get(&ino)).any(|right| same(&right)) {
                    return Ok(0);
                }
                match told(self.said, &[ino], b"") {
                    true => Ok(1),
                    false => Err(format!("{ino:?} is {:?}, and {} bytes", found.attr, found.contents.len())),
                }
            }
            Err(error) if is_io(&error) => Ok(1),
            Err(error) => Err(format!("{ino:?} is listed, and says: {error}")),
        }
    }

    /// Returns the command file of a directory if it is known, or `None` if its damage is reported.
    fn command(&self, dir: Ino) -> Result<Option<Ino>, String> {
        let right = |ino: &Ino| self.states.iter().any(|whole| whole.commands.get(&dir) == Some(ino));
        match command_of(self.fs, dir) {
            Ok(Some(attr)) if right(&attr.ino) => Ok(Some(attr.ino)),
            Err(error) if is_io(&error) => Ok(None),
            // What is listed as a directory is none.
            Err(Error::NotDirectory) => Ok(None),
            Ok(Some(_)) if told(self.said, &[dir], b"") => Ok(None),
            other => Err(format!("the command file of {dir:?}: {other:?}")),
        }
    }

    /// Returns the known inodes that a directory names, and the number of errors.
    fn directory(&self, dir: Ino) -> Result<(Vec<Ino>, u64), String> {
        let (names, end) = listed(self.fs, dir);
        let (mut below, mut errors) = (Vec::new(), 0);
        let mut found = BTreeSet::new();
        for (name, ino, _) in names.into_iter().filter(|(name, ..)| !is_dot(name)) {
            let right = self.states.iter().any(|whole| whole.names.get(&(dir, name.clone())) == Some(&ino));
            // A repair may create `lost+found`.
            let of_repair = name == b"lost+found" && !self.said.is_empty();
            match (right, of_repair || told(self.said, &[dir, ino], &name)) {
                (true, _) => below.push(ino),
                (false, true) => errors += 1,
                (false, false) => return Err(format!("{dir:?} lists {}", String::from_utf8_lossy(&name))),
            }
            match self.fs.lookup(&Caller::ROOT, dir, &name) {
                Ok(attr) if attr.ino == ino => {}
                Err(error) if is_io(&error) => {
                    below.retain(|known| *known != ino);
                    errors += 1;
                }
                other => return Err(format!("{} in {dir:?}: {other:?}", String::from_utf8_lossy(&name))),
            }
            found.insert(name);
        }
        match end {
            Ok(()) => errors += self.missing(dir, &found)?,
            Err(error) if is_io(&error) => errors += 1,
            Err(Error::NotDirectory) => errors += 1,
            Err(error) => return Err(format!("{dir:?} lists: {error}")),
        }
        Ok((below, errors))
    }

    /// Verifies that every name missing from a complete listing is reported. Returns the number of
    /// missing names.
    fn missing(&self, dir: Ino, found: &BTreeSet<Vec<u8>>) -> Result<u64, String> {
        let lacks = |whole: &&TreeContents| {
            let names = whole.names.range((dir, Vec::new())..).take_while(|((of, _), _)| *of == dir);
            let lost = names.filter(|((_, name), _)| !found.contains(name));
            lost.map(|((_, name), ino)| (name.clone(), *ino)).collect::<Vec<_>>()
        };
        let lost = self.states.iter().map(lacks).min_by_key(Vec::len).unwrap_or_default();
        match lost.iter().find(|(name, _)| !told(self.said, &[dir], name)) {
            None => Ok(lost.len() as u64),
            Some((name, _)) => Err(format!("{dir:?} lacks {}", String::from_utf8_lossy(name))),
        }
    }
}

fn is_directory(whole: &TreeContents, ino: Ino) -> bool {
    whole.inodes.get(&ino).is_some_and(|known| known.attr.kind == InodeType::Directory)
}
