//! The tester finds planted bugs of a file system, and no divergence in the model.

use frit_fs::{
    Allocate, Attr, AttrChanges, Caller, DirEntry, Error, FileExtent, FileSystem, Ino, NewInode, RenameMode,
    Result, Seek, Usage, XattrMode,
};
use frit_torture::fs::apply::ProgramSession;
use frit_torture::fs::compare::{compare, digest};
use frit_torture::fs::differential::minimize;
use frit_torture::fs::every::{base, every};
use frit_torture::fs::{Divergence, ModelFs, Rules, parse, replay, run};
use std::sync::atomic::{AtomicU64, Ordering};

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    /// Space runs out sometimes, before an operation has an effect, and writes are short. This is
    /// correct where space is limited.
    Full,
    /// The same, but the failed operation had its effect.
    FullButDone,
    /// Punched holes keep their first byte.
    Punch,
    /// A rename onto another name of the same inode removes the old one.
    SameInode,
    /// Links do not change the time of the inode.
    LinkTime,
    /// Listings skip a name when they are continued.
    Listing,
    /// Data beyond the first 100 KiB is not found.
    Seek,
    /// An extended attribute that is set again keeps its old value.
    Xattr,
    /// Extents beyond the first page are not listed.
    Pieces,
}

/// The model with a planted bug.
struct BuggyModel {
    model: ModelFs,
    bug: Bug,
    calls: AtomicU64,
}

impl BuggyModel {
    fn new(bug: Bug) -> BuggyModel {
        BuggyModel { model: ModelFs::with_command_files(), bug, calls: AtomicU64::new(0) }
    }

    /// Returns `true` if space has run out for this call.
    fn full(&self) -> bool {
        matches!(self.bug, Bug::Full | Bug::FullButDone)
            && self.calls.fetch_add(1, Ordering::Relaxed) % 5 == 4
    }
}

impl FileSystem for BuggyModel {
    fn usage(&self) -> Result<Usage> {
        self.model.usage()
    }
    fn lookup(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.model.lookup(who, dir, name)
    }
    fn attr(&self, ino: Ino) -> Result<Attr> {
        self.model.attr(ino)
    }
    fn set_attr(&self, who: &Caller, ino: Ino, changes: &AttrChanges) -> Result<Attr> {
        self.model.set_attr(who, ino, changes)
    }
    fn create(&self, who: &Caller, dir: Ino, name: &[u8], new: NewInode<'_>) -> Result<Attr> {
        let full = self.full();
        let on = if full && self.bug == Bug::Full { &self.model.clone() } else { &self.model };
        let attr = on.create(who, dir, name, new)?;
        if full { Err(Error::NoSpace) } else { Ok(attr) }
    }
    fn link(&self, who: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let before = self.model.attr(ino)?.ctime;
        let attr = self.model.link(who, ino, dir, name)?;
        if self.bug == Bug::LinkTime {
            let changes = AttrChanges { ctime: Some(before), ..AttrChanges::default() };
            self.model.set_attr(&Caller::ROOT, ino, &changes)?;
        }
        Ok(attr)
    }
    fn unlink(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.model.unlink(who, dir, name)
    }
    fn rmdir(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.model.rmdir(who, dir, name)
    }
    fn rename(&self, who: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), mode: RenameMode) -> Result<()> {
        let of = |(dir, name)| self.model.lookup(who, dir, name).ok().map(|a| (a.ino, a.kind));
        let same = of(from).is_some() && of(from) == of(to) && from != to;
        self.model.rename(who, from, to, mode)?;
        if self.bug == Bug::SameInode && same && mode == RenameMode::Replace {
            self.model.unlink(who, from.0, from.1)?;
        }
        Ok(())
    }
    fn read_link(&self, ino: Ino) -> Result<Vec<u8>> {
        self.model.read_link(ino)
    }
    fn pin(&self, ino: Ino) -> Result<()> {
        self.model.pin(ino)
    }
    fn unpin(&self, ino: Ino) -> Result<()> {
        self.model.unpin(ino)
    }
    fn read(&self, ino: Ino, at: u64, into: &mut [u8]) -> Result<usize> {
        self.model.read(ino, at, into)
    }
    fn write(&self, ino: Ino, at: u64, data: &[u8]) -> Result<usize> {
        let part = if self.full() { data.len() / 2 } else { data.len() };
        let part = if data.len() == 1 { 1 } else { part };
        self.model.write(ino, at, &data[..part])
    }
    fn append(&self, ino: Ino, data: &[u8]) -> Result<(u64, usize)> {
        let part = if self.full() && data.len() > 1 { data.len() / 2 } else { data.len() };
        self.model.append(ino, &data[..part])
    }
    fn allocate(&self, ino: Ino, how: Allocate, at: u64, len: u64) -> Result<()> {
        let mut first = [0];
        let punch = how == Allocate::Punch && self.bug == Bug::Punch;
        let n = if punch { self.model.read(ino, at, &mut first).unwrap_or(0) } else { 0 };
        self.model.allocate(ino, how, at, len)?;
        if n > 0 {
            self.model.write(ino, at, &first)?;
        }
        Ok(())
    }
    fn seek(&self, ino: Ino, what: Seek, at: u64) -> Result<u64> {
        match self.model.seek(ino, what, at)? {
            r if self.bug == Bug::Seek && what == Seek::Data && r > 100 << 10 => Err(Error::BeyondEnd),
            r => Ok(r),
        }
    }
    fn sync_file(&self, ino: Ino, data_only: bool) -> Result<()> {
        self.model.sync_file(ino, data_only)
    }
    fn sync(&self) -> Result<()> {
        self.model.sync()
    }
    fn read_dir(&self, ino: Ino, from: u64, each: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        let skip = u64::from(self.bug == Bug::Listing && from > 2);
        self.model.read_dir(ino, from + skip, each)
    }
    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.model.xattr(ino, name)
    }
    fn xattrs(&self, ino: Ino) -> Result<Vec<u8>> {
        self.model.xattrs(ino)
    }
    fn set_xattr(&self, who: &Caller, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        let old = self.model.xattr(ino, name).ok().filter(|_| self.bug == Bug::Xattr);
        self.model.set_xattr(who, ino, name, old.as_deref().unwrap_or(value), mode)
    }
    fn remove_xattr(&self, who: &Caller, ino: Ino, name: &[u8]) -> Result<()> {
        self.model.remove_xattr(who, ino, name)
    }
    fn pieces(&self, ino: Ino, at: u64, each: &mut dyn FnMut(&FileExtent) -> bool) -> Result<()> {
        let last = if self.bug == Bug::Pieces { 1 } else { u64::MAX };
        self.model.pieces(ino, at, &mut |p| p.at < last && each(p))
    }
}

/// Returns the first divergence of some seeds, with the bug.
fn found(bug: Bug, rules: &Rules) -> Option<Divergence> {
    (0..160).find_map(|seed| run(seed, 400, &BuggyModel::new(bug), rules).err())
}

#[test]
fn what_is_wrong_is_found_with_few_operations() {
    let limited = Rules { limited: true, ..Rules::default() };
    for (bug, rules) in [
        (Bug::Full, Rules::default()),
        (Bug::FullButDone, limited),
        (Bug::Punch, Rules::default()),
        (Bug::SameInode, Rules::default()),
        (Bug::LinkTime, Rules::default()),
        (Bug::Listing, Rules::default()),
        (Bug::Seek, Rules::default()),
        (Bug::Xattr, Rules::default()),
        (Bug::Pieces, Rules::default()),
    ] {
        let first = found(bug, &rules).unwrap_or_else(|| panic!("{bug:?} is not found"));
        let few = minimize(&first, &|| Box::new(BuggyModel::new(bug)), &rules);
        println!("{bug:?}: {} operations, {} needed\n{few}", first.ops.len(), few.ops.len());
        assert!(few.ops.len() <= 12, "{bug:?} needs {} operations:\n{few}", few.ops.len());
        // The printed form reproduces the divergence.
        assert_eq!(parse(&few.to_string()).unwrap(), few.ops);
    }
}

#[test]
fn a_limit_is_no_divergence_where_it_may_be() {
    let limited = Rules { limited: true, ..Rules::default() };
    assert_eq!(found(Bug::Full, &limited), None);
}

#[test]
fn every_pair_leaves_a_tree_that_agrees_with_itself() {
    let start = ModelFs::with_command_files();
    let mut session = ProgramSession::new(&start);
    for op in base() {
        session.apply(&op).unwrap();
    }
    let before = digest(&start).unwrap();
    let all = every();
    for first in &all {
        let copy = start.clone();
        let mut one = session.on(&copy);
        _ = one.apply(first);
        for second in all.iter().step_by(17) {
            let other = copy.clone();
            _ = one.on(&other).apply(second);
            digest(&other).unwrap_or_else(|e| panic!("{first}\n{second}\n{e}"));
        }
        compare(&copy, &copy.clone()).unwrap();
    }
    assert_eq!(digest(&start).unwrap(), before, "a copy changed the original");
}

#[test]
fn a_failed_operation_changes_nothing() {
    for op in every() {
        let model = ModelFs::with_command_files();
        let mut session = ProgramSession::new(&model);
        for op in base() {
            session.apply(&op).unwrap();
        }
        let before = digest(&model).unwrap();
        if session.apply(&op).is_err() {
            assert_eq!(digest(&model).unwrap(), before, "{op}");
        }
    }
}

#[test]
fn the_model_is_as_the_model() {
    let mut ops = base();
    ops.extend(every());
    for command_files in [true, false] {
        let rules = Rules { trees: 1, times: 1, command_files, ..Rules::default() };
        assert_eq!(replay(&ops, &ModelFs::of(command_files), &rules), Ok(()));
    }
}
