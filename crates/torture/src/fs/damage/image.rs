//! A small file system with objects of every kind, and the locations of its metadata.

use super::super::apply::ProgramSession;
use super::super::compare::command_of;
use super::super::every::base;
use super::super::op::FsOp;
use frit_fs::{
    Allocate, AnyMedium, AttrChanges, COMMAND_NAME, Caller, Clock, FileSystem, FormatOptions, Fs, Geometry,
    InStorage, Ino, Mapped, Medium, NewInode, RegisterSet, RegisterStatus, XattrMode,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Size of the medium in bytes.
pub(super) const BYTES: u64 = 512 << 10;
/// Bytes of a block of the file system.
const BLOCK: u64 = 4096;
/// First time of its clock, in nanoseconds.
const EPOCH: i64 = 1_000_000_000_000;
/// Number of names in the large directory.
const NAMES: usize = 300;
/// Number of extents of the fragmented file: more than an inode holds.
const EXTENTS: u64 = 20;

/// Kind and location of a range of bytes of the medium.
pub type MetadataRange = (&'static str, std::ops::Range<u64>);

/// An image and its earlier versions.
#[derive(Debug)]
pub struct PopulatedImage {
    /// Bytes of the medium. If it was not closed, it has two orphans: a file and a command file.
    pub image: Vec<u8>,
    /// Image before the last transaction.
    pub before_last: Vec<u8>,
    /// Images after each step of the creation, oldest first.
    pub history: Vec<Vec<u8>>,
    /// Kind and location of the metadata in use.
    pub metadata: Vec<MetadataRange>,
    /// Blocks of the data space that hold metadata.
    pub blocks: Vec<u64>,
    /// Inode numbers of directories and of their command files.
    pub commands: Vec<(u64, u64)>,
}

fn image(fs: &Fs<AnyMedium>) -> Vec<u8> {
    let mut image = vec![0; BYTES as usize];
    fs.medium().read(0, &mut image);
    image
}

/// Options of an image.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ImageOptions {
    /// Contents have checksums.
    pub sums: bool,
    /// The image is closed. Otherwise it was synced before the last operations, and has orphans.
    pub closed: bool,
}

/// Creates an image that was not closed and whose contents have no checksums.
///
/// # Errors
/// Errors of the file system.
pub fn populate() -> frit_fs::Result<PopulatedImage> {
    populate_as(ImageOptions::default())
}

/// Creates an image.
///
/// # Errors
/// Errors of the file system.
pub fn populate_as(how: ImageOptions) -> frit_fs::Result<PopulatedImage> {
    let medium: AnyMedium = Arc::new(Mapped::anonymous(BYTES)?);
    let format = FormatOptions {
        clock: Clock::counted(EPOCH),
        uuid: Some(7),
        inodes: Some(32),
        sums: how.sums,
        ..FormatOptions::default()
    };
    let fs = Fs::format(medium, format)?;
    let mut history = vec![image(&fs)];
    let mut session = ProgramSession::new(&fs);
    for op in base() {
        let _ = session.apply(&op);
        history.push(image(&fs));
    }
    more(&fs, &mut history)?;
    fs.sync()?;
    // The last two transactions do not change the ledger, since recovery would repair it.
    let late =
        ["root chmod a/e 640", "root append a/e 5000 3", "root rename b/p b/q replace", "root chmod a 750"];
    for op in late.into_iter().filter_map(|line| line.parse::<FsOp>().ok()) {
        let _ = session.apply(&op);
        history.push(image(&fs));
    }
    let before_last = history.iter().rev().nth(1).cloned().unwrap_or_default();
    let (metadata, blocks) = metadata(&fs);
    let command = |ino: &Ino| command_of(&fs, *ino).ok().flatten();
    let commands = fs.inodes().filter_map(|ino| Some((ino.0, command(&ino)?.ino.0))).collect();
    if how.closed {
        let medium = fs.close()?;
        let mut image = vec![0; BYTES as usize];
        medium.read(0, &mut image);
        history.push(image.clone());
        return Ok(PopulatedImage { before_last: image.clone(), image, history, metadata, blocks, commands });
    }
    Ok(PopulatedImage { image: image(&fs), before_last, history, metadata, blocks, commands })
}

/// Adds objects that the base tree lacks.
fn more(fs: &Fs<AnyMedium>, history: &mut Vec<Vec<u8>>) -> frit_fs::Result<()> {
    let who = &Caller::ROOT;
    let large = fs.create(who, Ino::ROOT, b"large", NewInode::directory(0o755))?.ino;
    let linked = fs.create(who, large, b"linked", NewInode::file(0o644))?.ino;
    for i in 0..NAMES {
        let name = format!("{i}{}", "-name".repeat(i % 8));
        fs.link(who, linked, large, name.as_bytes())?;
        if i.is_multiple_of(60) {
            history.push(image(fs));
        }
    }
    for i in (0..NAMES).step_by(7) {
        fs.unlink(who, large, format!("{i}{}", "-name".repeat(i % 8)).as_bytes())?;
    }
    history.push(image(fs));
    let pieces = fs.create(who, Ino::ROOT, b"pieces", NewInode::file(0o600))?.ino;
    for i in 0..EXTENTS {
        fs.write(pieces, i * 2 * BLOCK, &[i as u8 + 1; 100])?;
        history.push(image(fs));
    }
    fs.allocate(pieces, Allocate::Keep, EXTENTS * 2 * BLOCK, BLOCK)?;
    fs.set_xattr(who, pieces, b"user.large", &[5; 3000], XattrMode::Any)?;
    fs.set_xattr(who, large, b"user.small", b"value", XattrMode::Any)?;
    history.push(image(fs));
    fs.create(who, Ino::ROOT, b"long", NewInode::symlink(&[b't'; 1000]))?;
    fs.create(who, Ino::ROOT, b"fifo", NewInode { kind: frit_fs::InodeType::Fifo, ..NewInode::file(0o600) })?;
    let open = fs.create(who, Ino::ROOT, b"open", NewInode::file(0o600))?.ino;
    fs.write(open, 0, &[9; 5000])?;
    fs.pin(open)?;
    fs.unlink(who, Ino::ROOT, b"open")?;
    history.push(image(fs));
    commands(fs, large)?;
    history.push(image(fs));
    Ok(())
}

/// Changes a command file, removes a directory whose command file is open, and leaves an instruction in the
/// registers that is complete, and one in progress.
fn commands(fs: &Fs<AnyMedium>, large: Ino) -> frit_fs::Result<()> {
    let who = &Caller::ROOT;
    let of_large = fs.lookup(who, large, COMMAND_NAME)?.ino;
    fs.set_attr(who, of_large, &AttrChanges { mode: Some(0o620), ..AttrChanges::default() })?;
    let gone = fs.create(who, Ino::ROOT, b"gone", NewInode::directory(0o755))?.ino;
    fs.pin(fs.lookup(who, gone, COMMAND_NAME)?.ino)?;
    fs.rmdir(who, Ino::ROOT, b"gone")?;
    let set = RegisterSet { command: 1, ino: 5, queries: vec![b"word".to_vec()], ..RegisterSet::default() };
    let held = fs.start_registers(&set);
    fs.start_registers(&set);
    fs.finish_registers(held, &RegisterSet { status: RegisterStatus::Complete, counts: [3, 0, 0, 0], ..set });
    Ok(())
}

/// Returns the locations of metadata. A used block of the data space without contents of files
/// holds names, extents, attributes, or the target of the long symbolic link. The block of the link
/// is left out: all its bits are examined elsewhere.
fn metadata(fs: &Fs<AnyMedium>) -> (Vec<MetadataRange>, Vec<u64>) {
    let g = *fs.geometry();
    let word = |at: u64| {
        let mut bytes = [0; 8];
        fs.medium().read(at, &mut bytes);
        u64::from_le_bytes(bytes)
    };
    let mut used = BTreeSet::new();
    for block in 0..g.data_blocks {
        if word(g.bitmap_at + block / 64 * 8) >> (block % 64) & 1 == 1 {
            used.insert(g.data_first + block);
        }
    }
    let highest = word(g.ledger_at + 16);
    for ino in 1..=highest {
        let _ = fs.pieces(Ino(ino), 0, &mut |piece| {
            (piece.medium / BLOCK..(piece.medium + piece.len) / BLOCK)
                .for_each(|block| _ = used.remove(&block));
            true
        });
    }
    used.retain(|block| word(block * BLOCK) != u64::from_le_bytes([b't'; 8]));
    let mut all = vec![
        ("superblock", 0..512),
        ("registers", Geometry::REGISTERS_AT..Geometry::REGISTERS_AT + BLOCK),
        ("ledger", g.ledger_at..g.ledger_at + 64),
        ("orphans", g.orphans_at..g.orphans_at + 64),
        ("inodes", g.inodes_at..g.inodes_at + highest * 256),
        ("bitmap", g.bitmap_at..g.bitmap_at + g.lines * 512),
        ("superblock", g.copy_at()..g.copy_at() + 512),
    ];
    for slot in 0..g.slots {
        let at = g.journal_at + slot * g.slot_bytes;
        all.push(("journal", at..at + (3 + (word(at + 16) & 0xFFFF_FFFF)) * 8));
    }
    all.extend(used.iter().map(|block| ("names, extents, attributes", block * BLOCK..(block + 1) * BLOCK)));
    (all, used.into_iter().collect())
}
