//! Check of a file system on a nameless-write device: of its metadata, and of the blocks of contents.

use super::repair::repair;
use super::{REPORTED_MAX, Report, check};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::files::FileSystem;
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::nameless::{PlacedContents, VirtualBlocks, is_placed};
use crate::open::FsOptions;
use crate::types::{Allocate, Ino, InodeType};
use std::ops::Range;
use std::sync::Arc;

/// Checks a file system on a nameless-write device, which must not be open. Every block of contents is
/// verified to have the owner and the version that its file expects, and with `data` to be whole.
///
/// # Errors
/// As [`check`]; the file system belongs to another device.
pub fn check_placed(placed: &Arc<PlacedContents>, data: bool) -> Result<Report> {
    let mut report = check(&placed.medium())?;
    match open(placed, true, Clock::Wall) {
        Ok(fs) => each_lost(&fs, placed, data, &mut |ino, bytes, why| {
            report.add_message(format_args!(
                "inode {}: bytes {} to {} are lost: {why}",
                ino.0, bytes.start, bytes.end
            ));
            Ok(())
        })?,
        Err(Error::Damaged { .. }) if !report.is_clean() => {}
        Err(error) => return Err(error),
    }
    Ok(report)
}

/// Repairs a file system on a nameless-write device, as [`repair`]. Bytes of lost blocks become holes.
/// The device is closed.
///
/// # Errors
/// As [`check_placed`] and [`repair`]; the device fails.
pub fn repair_placed(placed: &Arc<PlacedContents>, clock: Clock) -> Result<Report> {
    let repaired = repair(&placed.medium(), &clock)?;
    let fs = open(placed, false, clock)?;
    let mut lost = Vec::new();
    each_lost(&fs, placed, true, &mut |ino, bytes, why| {
        lost.push(format!("inode {} has lost bytes from {} to {}: {why}", ino.0, bytes.start, bytes.end));
        fs.allocate(ino, Allocate::Punch, bytes.start, bytes.end - bytes.start)
    })?;
    let blocks = fs.medium().clone();
    fs.close()?;
    let mut report = check(&blocks)?;
    report.repaired = repaired.repaired + lost.len() as u64;
    report.repairs = repaired.repairs;
    report.repairs.extend(lost);
    report.repairs.truncate(REPORTED_MAX);
    Ok(report)
}

fn open(placed: &Arc<PlacedContents>, read_only: bool, clock: Clock) -> Result<Fs<Arc<VirtualBlocks>>> {
    let options = FsOptions { read_only, clock, placed: Some(Arc::clone(placed)), ..FsOptions::default() };
    Fs::open(placed.medium(), options)
}

/// Receives the bytes of a file that are lost, and the reason.
type EachLost<'a> = dyn FnMut(Ino, Range<u64>, &Error) -> Result<()> + 'a;

/// Calls `each` with the bytes of files whose blocks are lost.
fn each_lost(
    fs: &Fs<Arc<VirtualBlocks>>,
    placed: &PlacedContents,
    data: bool,
    each: &mut EachLost<'_>,
) -> Result<()> {
    for ino in fs.inodes() {
        // Damage of metadata is in the report already.
        let Ok(attr) = fs.attr(ino) else { continue };
        if attr.kind != InodeType::File {
            continue;
        }
        let node = fs.node(ino)?;
        let mut state = node.state.write();
        if fs.load_map(ino, &mut state).is_err() {
            continue;
        }
        let extents: Vec<_> = state.map.iter().flat_map(crate::extents::ExtentMap::iter).collect();
        drop(state);
        for extent in extents.into_iter().filter(|extent| is_placed(extent.start)) {
            for (at, start) in (extent.at..extent.end()).zip(extent.start..) {
                if let Err(error) = placed.verify(ino, start, data) {
                    each(ino, at * BLOCK..(at + 1) * BLOCK, &error)?;
                }
            }
        }
    }
    Ok(())
}
