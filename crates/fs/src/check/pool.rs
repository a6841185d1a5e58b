//! Check of a pool: of its image, and of stray content files.

use super::repair::repair;
use super::{Report, check, highest};
use crate::clock::Clock;
use crate::content_store::{ContentStore, check_content_store, strays};
use crate::counters::Counters;
use crate::error::Result;
use crate::format::Superblock;
use crate::medium::Medium;

/// Checks a file system with its contents in a pool, which must not be open. The data in content
/// files is not checked.
///
/// # Errors
/// As [`check`]; the content files belong to another file system, or cannot be listed.
pub fn check_pool(medium: &dyn Medium, content_store: &dyn ContentStore) -> Result<Report> {
    check_content_store(&Superblock::read(&medium)?, Some(content_store))?;
    let mut report = check(medium)?;
    check_strays(medium, content_store, &mut report)?;
    Ok(report)
}

/// Repairs a file system with its contents in a pool, as [`repair`], and removes stray content
/// files.
///
/// # Errors
/// As [`check_pool`] and [`repair`]; a content file cannot be removed.
pub fn repair_pool(medium: &dyn Medium, content_store: &dyn ContentStore, clock: &Clock) -> Result<Report> {
    check_content_store(&Superblock::read(&medium)?, Some(content_store))?;
    let mut report = repair(medium, clock)?;
    // Strays are removed only if the metadata is clean: a damaged inode may still own its content
    // file.
    if report.is_clean() {
        for stray in all(medium, content_store)? {
            content_store.remove(stray)?;
            report.repaired += 1;
            report.repairs.push(format!(
                "the content file {:x}-{:x} belonged to no inode: it was removed",
                stray.ino.0, stray.generation
            ));
        }
        report.repairs.truncate(super::REPORTED_MAX);
    }
    check_strays(medium, content_store, &mut report)?;
    Ok(report)
}

fn all(
    medium: &dyn Medium,
    content_store: &dyn ContentStore,
) -> Result<Vec<crate::content_store::ContentId>> {
    let superblock = Superblock::read(&medium)?;
    let (geometry, salt) = (superblock.geometry, superblock.salt());
    let counters = Counters::read(&medium, &geometry, salt);
    let highest = counters.map_or_else(|_| highest(&medium, &geometry, salt), |counters| counters.highest);
    strays(&medium, &superblock, highest, content_store)
}

/// Counts stray content files. After a crash they are expected, and the next open removes them;
/// after a clean close they are reported as problems.
fn check_strays(medium: &dyn Medium, content_store: &dyn ContentStore, report: &mut Report) -> Result<()> {
    for stray in all(medium, content_store)? {
        report.strays += 1;
        if report.closed {
            let (ino, generation) = (stray.ino.0, stray.generation);
            report.add_message(format_args!("the content file {ino:x}-{generation:x} belongs to no inode"));
        }
    }
    Ok(())
}
