//! Random operations over a small set of names, so that operations affect each other.

use super::op::{Act, FsOp, OpTarget, Path, SLOTS, User};
use frit_fs::{Allocate, FILE_MAX, InodeType, RenameMode, Seek, SetTime, Time, XattrMode};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Names of the set; the last one has the largest length.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "n*255"];
/// Special and invalid names, and an ordinary one.
const STRANGE: [&str; 4] = [".", "..", "n*256", "a"];
/// Name of the command file of each directory.
const COMMAND: &str = ".isp";
/// Percentage of paths that are those of command files, and of opened files.
const COMMAND_PERCENT: u32 = 4;
const COMMAND_OPEN_PERCENT: u32 = 30;
const ATTRIBUTES: [&str; 5] = ["user.a", "user.b", "trusted.t", "user.n*250", "system.none"];
const EDGES: [u64; 12] = [0, 1, 100, 4095, 4096, 4097, 8192, 12_287, 65_536, 102_400, 1 << 40, (1 << 41) + 5];
const MODES: [u16; 10] = [0, 0o400, 0o644, 0o666, 0o700, 0o755, 0o777, 0o1777, 0o2775, 0o6755];

/// Draws operations. Equal seeds give equal operations for equal trees.
#[derive(Clone, Debug)]
pub struct OpGenerator {
    rng: SmallRng,
    /// `true` if offsets go up to the largest size of a file.
    pub limits: bool,
    /// `true` if directories have command files. Otherwise their name is not drawn.
    pub command_files: bool,
}

impl OpGenerator {
    /// Creates a drawer from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed), limits: true, command_files: false }
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.choose(&mut self.rng).copied()
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn name(&mut self) -> &'static str {
        let strange = self.rng.random_range(0..60) == 0;
        self.of(if strange { &STRANGE[..] } else { &NAMES[..] }).unwrap_or("a")
    }

    /// Draws the path of a command file, with this probability. The path above it is mostly that of a
    /// directory.
    fn command(&mut self, there: &[Path], percent: u32) -> Option<Path> {
        if !self.command_files || !self.chance(percent) {
            return None;
        }
        let known = there.choose(&mut self.rng).cloned().unwrap_or_else(|| Path::new(""));
        // What was drawn may be a file, whose directory is as good.
        let above = known.0.rsplit_once('/').map(|(above, _)| Path::new(above));
        let dir = above.filter(|_| self.chance(50)).unwrap_or(known);
        Some(dir.join(COMMAND))
    }

    /// Draws a path, mostly of an existing inode or of a name in an existing directory.
    fn path(&mut self, there: &[Path]) -> Path {
        if let Some(command) = self.command(there, COMMAND_PERCENT) {
            return command;
        }
        let known = there.choose(&mut self.rng).cloned().unwrap_or_else(|| Path::new(""));
        let depth = known.0.split('/').filter(|w| !w.is_empty()).count();
        match self.rng.random_range(0..10) {
            0..6 => known,
            6..9 if depth < 3 => {
                let name = self.name();
                known.join(name)
            }
            _ => {
                let name = self.name();
                Path::new(name)
            }
        }
    }

    /// Draws a path that probably does not exist.
    fn free(&mut self, there: &[Path]) -> Path {
        if let Some(command) = self.command(there, COMMAND_PERCENT) {
            return command;
        }
        let known = there.choose(&mut self.rng).cloned().unwrap_or_else(|| Path::new(""));
        let mut words: Vec<&str> = known.0.split('/').filter(|w| !w.is_empty()).collect();
        if words.len() >= 3 || self.rng.random_range(0..3) == 0 {
            words.pop();
        }
        words.push(self.name());
        Path(words.join("/"))
    }

    fn target(&mut self, there: &[Path]) -> OpTarget {
        if self.chance(15) {
            return OpTarget::Slot(self.rng.random_range(0..SLOTS));
        }
        OpTarget::Path(self.path(there))
    }

    fn offset(&mut self) -> u64 {
        let edge = self.of(&EDGES).unwrap_or(0);
        match self.rng.random_range(0..40) {
            0 if self.limits => FILE_MAX - self.rng.random_range(0..5000),
            1 if self.limits => FILE_MAX + 1,
            2..12 => self.rng.random_range(0..110_000),
            12..16 => edge,
            // Large offsets are rare, so most files stay small.
            _ if edge > 1 << 30 => 4096 * self.rng.random_range(0..16),
            _ => edge,
        }
    }

    fn len(&mut self) -> u32 {
        match self.rng.random_range(0..10) {
            0 => self.rng.random_range(0..100_000),
            1..3 => self.rng.random_range(0..9000),
            3 => 0,
            _ => self.of(&[1, 2, 100, 4095, 4096, 4097, 8192, 16_384]).unwrap_or(1),
        }
    }

    fn stamp(&mut self) -> u8 {
        if self.chance(8) { 0 } else { self.rng.random_range(1..=255) }
    }

    fn time(&mut self) -> Option<SetTime> {
        let times = [0, 1, 1_000_000_001, -1_500_000_000, 1_600_000_000_123_456_789];
        match self.rng.random_range(0..4) {
            0 => None,
            1 | 2 => Some(SetTime::Now),
            _ => self.of(&times).map(|t| SetTime::To(Time(t))),
        }
    }

    /// Draws the next operation for a tree with these paths.
    pub fn draw(&mut self, there: &[Path]) -> FsOp {
        let who = match self.rng.random_range(0..100) {
            0..60 => User::Root,
            60..78 => User::Alice,
            78..90 => User::Bob,
            _ => User::Trusted,
        };
        let act = match self.rng.random_range(0..100) {
            0..46 => self.of_names(there),
            46..76 => self.of_contents(there),
            _ => self.of_attributes(there),
        };
        FsOp { who, act }
    }

    fn of_names(&mut self, there: &[Path]) -> Act {
        match self.rng.random_range(0..46) {
            0..9 => {
                let (path, mode) = (self.free(there), self.of(&MODES).unwrap_or(0o644));
                Act::Create { path, kind: InodeType::File, mode, rdev: 0 }
            }
            9..16 => {
                let (path, mode) = (self.free(there), self.of(&MODES[..8]).unwrap_or(0o755));
                Act::Create { path, kind: InodeType::Directory, mode: mode | 0o300, rdev: 0 }
            }
            16 | 17 => {
                let kinds = [
                    (InodeType::Fifo, 0),
                    (InodeType::Socket, 0),
                    (InodeType::Char, 259),
                    (InodeType::Block, 1793),
                ];
                let (kind, rdev) = self.of(&kinds).unwrap_or(kinds[0]);
                Act::Create { path: self.free(there), kind, mode: 0o660, rdev }
            }
            18 | 19 => {
                let to = self.of(&["a", "x*100", "x*4095", "x*4096", "../b", "x*0"]).unwrap_or("a");
                Act::Symlink { path: self.free(there), to: to.to_string() }
            }
            20..24 => Act::Link { what: self.target(there), path: self.free(there) },
            24..28 => Act::Unlink(self.path(there)),
            28..31 => Act::Rmdir(self.path(there)),
            31..40 => {
                let modes =
                    [RenameMode::Replace, RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
                let mode = self.of(&modes).unwrap_or(RenameMode::Replace);
                let from = self.path(there);
                let to = if self.chance(50) { self.path(there) } else { self.free(there) };
                Act::Rename { from, to, mode }
            }
            40..44 => {
                let slot = self.rng.random_range(0..SLOTS);
                let command = self.command(there, COMMAND_OPEN_PERCENT);
                Act::Open { slot, path: command.unwrap_or_else(|| self.path(there)) }
            }
            _ => Act::Close(self.rng.random_range(0..SLOTS)),
        }
    }

    fn of_contents(&mut self, there: &[Path]) -> Act {
        let what = self.target(there);
        match self.rng.random_range(0..30) {
            0..10 => Act::Write { what, at: self.offset(), len: self.len(), stamp: self.stamp() },
            10..13 => Act::Append { what, len: self.len(), stamp: self.stamp() },
            13..17 => Act::Read { what, at: self.offset(), len: self.len() },
            17..20 => Act::Truncate { what, size: self.offset() },
            20..26 => {
                let all = [
                    Allocate::Extend,
                    Allocate::Keep,
                    Allocate::Punch,
                    Allocate::Punch,
                    Allocate::Zero,
                    Allocate::ZeroKeep,
                ];
                let how = self.of(&all).unwrap_or(Allocate::Punch);
                Act::Allocate { what, how, at: self.offset(), len: u64::from(self.len()) }
            }
            26..29 => {
                let kind = self.of(&[Seek::Data, Seek::Hole]).unwrap_or(Seek::Data);
                Act::Seek { what, kind, at: self.offset() }
            }
            _ if self.chance(20) => Act::Sync,
            _ if self.chance(50) => Act::Gather(what),
            _ => Act::SyncFile { what, data_only: self.chance(50) },
        }
    }

    fn of_attributes(&mut self, there: &[Path]) -> Act {
        let what = self.target(there);
        let name = self.of(&ATTRIBUTES).unwrap_or("user.a").to_string();
        let ids = [None, Some(0), Some(1000), Some(1000), Some(1001)];
        match self.rng.random_range(0..24) {
            0..3 => Act::Stat(what),
            3..7 => Act::Chmod { what, mode: self.of(&MODES).unwrap_or(0o644) },
            7..10 => {
                let (uid, gid) = (self.of(&ids).flatten(), self.of(&ids).flatten());
                Act::Chown { what, uid, gid: gid.or(if uid.is_none() { Some(1000) } else { None }) }
            }
            10..12 => {
                Act::Times { what, atime: self.time(), mtime: Some(self.time().unwrap_or(SetTime::Now)) }
            }
            12..15 => Act::List(what),
            15 => Act::ReadLink(what),
            16 | 17 => Act::Xattr { what, name },
            18 => Act::Xattrs(what),
            19 => Act::RemoveXattr { what, name },
            _ => {
                let modes = [XattrMode::Any, XattrMode::Any, XattrMode::Create, XattrMode::Replace];
                let mode = self.of(&modes).unwrap_or(XattrMode::Any);
                let len = self.of(&[0, 1, 20, 100, 300]).unwrap_or(1);
                Act::SetXattr { what, name, len, stamp: self.stamp(), mode }
            }
        }
    }
}
