//! Check of each inode by itself.

use super::CheckContext;
use super::blocks::Blocks;
use crate::checksums;
use crate::error::Error;
use crate::extents::{self, ExtentMap, LineReader};
use crate::format::BLOCK;
use crate::inode::{FAST_SYMLINK_MAX, Inode};
use crate::journal::BlockRun;
use crate::medium::Medium;
use crate::names::target;
use crate::planted::DamageBug;
use crate::types::{Ino, InodeType, TARGET_MAX};
use crate::xattr;
use frit_core::planted::is_planted;

/// State of an inode during a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CheckedInode {
    pub(super) kind: Option<InodeType>,
    /// `true` if the inode does not match its checksum; its type is unknown.
    pub(super) unreadable: bool,
    /// `true` if the inode is on the orphan list.
    pub(super) orphan: bool,
    /// `true` if the inode is reachable from the root directory.
    pub(super) reached: bool,
    pub(super) links: u32,
    /// Number of names found.
    pub(super) names: u32,
    /// Number of subdirectories found.
    pub(super) subdirs: u32,
    /// Parent of a directory, or directory of a command file.
    pub(super) parent: Ino,
    /// Command file of a directory; 0 if it has none.
    pub(super) command: Ino,
}

/// State of all inodes up to the highest number ever used; the first is number 1.
#[derive(Debug)]
pub(super) struct CheckedInodes {
    pub(super) seen: Vec<CheckedInode>,
}

impl CheckedInodes {
    /// Creates the state for `highest` inodes, all of them free.
    pub(super) fn blank(highest: u64) -> Self {
        let free = CheckedInode {
            kind: None,
            unreadable: false,
            orphan: false,
            reached: false,
            links: 0,
            names: 0,
            subdirs: 0,
            parent: Ino(0),
            command: Ino(0),
        };
        Self { seen: vec![free; highest as usize] }
    }

    pub(super) fn read<M: Medium>(
        checked: &mut CheckContext<'_, M>,
        blocks: &mut Blocks,
        highest: u64,
    ) -> Self {
        let mut inodes = Self::blank(highest);
        let seen = &mut inodes.seen;
        for number in 1..=highest {
            let ino = Ino(number);
            match Inode::read(checked.medium, &checked.geometry, checked.salt, ino) {
                Ok(None) => {}
                Ok(Some(inode)) => {
                    match inode.kind {
                        InodeType::Directory => checked.report.directories += 1,
                        InodeType::Command => checked.report.commands += 1,
                        _ => checked.report.files += 1,
                    }
                    let kept = &mut seen[number as usize - 1];
                    kept.kind = Some(inode.kind);
                    kept.links = inode.links;
                    kept.parent = inode.parent;
                    kept.command = inode.command;
                    check_blocks(checked, blocks, ino, &inode);
                }
                Err(error) => {
                    seen[number as usize - 1].unreadable = true;
                    checked.report.add_message(format_args!("{}: {error}", checked.place(ino)));
                }
            }
        }
        if seen.first().is_none_or(|root| root.kind != Some(InodeType::Directory)) {
            checked.report.add_message("inode 1 is not a directory, but it must be the root");
        }
        inodes
    }

    pub(super) fn get(&mut self, ino: Ino) -> Option<&mut CheckedInode> {
        self.seen.get_mut((ino.0 as usize).checked_sub(1)?)
    }
}

/// Checks the extents, extended attributes and size of one inode, and marks its blocks as used.
fn check_blocks<M: Medium>(checked: &mut CheckContext<'_, M>, blocks: &mut Blocks, ino: Ino, inode: &Inode) {
    let map = match map_of(checked, ino, inode) {
        Ok(map) => map,
        Err(error) => {
            checked.report.add_message(format_args!("{}: {error}", checked.place(ino)));
            return;
        }
    };
    if checked.contents && inode.kind == InodeType::File {
        check_contents(checked, ino, &map);
    }
    let mut count = inode.xattrs.len;
    let runs = map.iter().map(|extent| extent.run()).chain(map.extent_blocks()).chain([inode.xattrs]);
    for run in runs.filter(|run| run.len > 0) {
        mark(checked, blocks, ino, run);
    }
    count += map.iter().map(|extent| extent.len).sum::<u64>() + map.extent_blocks().count() as u64;
    if count != inode.blocks {
        checked.report.add_message(format_args!(
            "{} records {} blocks, but has {count}",
            checked.place(ino),
            inode.blocks
        ));
    }
    if let Err(error) = xattr::read(checked.medium, &checked.geometry, checked.salt, ino, inode) {
        checked.report.add_message(format_args!("{}: {error}", checked.place(ino)));
    }
    if let Err(error) = target_of(checked, ino, inode, &map) {
        checked.report.add_message(format_args!("{}: {error}", checked.place(ino)));
    }
    let fits = match inode.kind {
        InodeType::Directory => {
            // Directories have neither holes nor unwritten blocks.
            let whole = map.iter().zip(std::iter::once(0).chain(map.iter().map(|e| e.end())));
            inode.size.is_multiple_of(BLOCK)
                && map.iter().map(|e| e.len).sum::<u64>() == inode.size / BLOCK
                && whole.into_iter().all(|(extent, end)| extent.at == end && extent.written)
        }
        InodeType::Symlink => {
            let inline = inode.size as usize <= FAST_SYMLINK_MAX;
            inode.size >= 1 && inode.size as usize <= TARGET_MAX && (inline || map.len() == 1)
        }
        InodeType::File => true,
        _ => inode.size == 0 && map.is_empty(),
    };
    if !fits {
        checked.report.add_message(format_args!(
            "{}: its size of {} bytes does not match its blocks",
            checked.place(ino),
            inode.size
        ));
    }
}

/// Verifies the contents of a file against their checksums.
fn check_contents<M: Medium>(checked: &mut CheckContext<'_, M>, ino: Ino, map: &ExtentMap) {
    let (medium, geometry) = (checked.medium, checked.geometry);
    let place = checked.place(ino);
    for extent in map.iter().filter(|extent| extent.written && geometry.holds(extent.start, extent.len)) {
        let report = &mut checked.report;
        // Damage is reported by the callback, and the remaining extents are still verified.
        let _ = checksums::words(medium, &geometry, extent.run(), |block, word| {
            match checksums::verify_block(medium, block, word) {
                Ok(()) if word == 0 => report.unsummed += 1,
                Ok(()) => report.verified += 1,
                Err(_) => report.add_message(format_args!(
                    "{place}: the contents from byte {} on, in block {block}, do not match their checksum",
                    (extent.at + (block - extent.start)) * BLOCK
                )),
            }
            Ok(())
        });
    }
}

/// Verifies the target of a symbolic link that is stored in a block.
fn target_of<M: Medium>(
    checked: &CheckContext<'_, M>,
    ino: Ino,
    inode: &Inode,
    map: &ExtentMap,
) -> Result<(), Error> {
    match map.at(0).filter(|_| inode.kind == InodeType::Symlink && !is_planted(DamageBug::CheckSkipsTargets))
    {
        Some(extent) => target::read(checked.medium, checked.salt, ino, inode, extent.start).map(drop),
        None => Ok(()),
    }
}

/// Loads the extents of an inode.
fn map_of<M: Medium>(checked: &CheckContext<'_, M>, ino: Ino, inode: &Inode) -> Result<ExtentMap, Error> {
    let reader = LineReader { medium: checked.medium, geometry: &checked.geometry, salt: checked.salt, ino };
    extents::load_uncounted(&reader, inode)
}

fn mark<M: Medium>(checked: &mut CheckContext<'_, M>, blocks: &mut Blocks, ino: Ino, run: BlockRun) {
    let placed = checked.geometry.places(run.start, run.len);
    checked.report.placed += if placed { run.len } else { 0 };
    if !placed && !checked.geometry.holds(run.start, run.len) {
        checked.report.add_message(format_args!(
            "{}: blocks {} to {} lie outside of the data space",
            checked.place(ino),
            run.start,
            run.end()
        ));
    } else if let Some(block) = blocks.mark(&checked.geometry, run) {
        checked.report.add_message(format_args!(
            "{}: block {block} belongs to another inode as well",
            checked.place(ino)
        ));
    }
}
