//! The check of a pool: of its image, and of bodies that no inode has.

use super::repair::repair;
use super::{Report, check, highest};
use crate::bodies::{Bodies, match_bodies, strays};
use crate::clock::Clock;
use crate::error::Result;
use crate::format::Superblock;
use crate::ledger::Ledger;
use crate::medium::Medium;

/// Checks a file system whose contents are in a pool, and that nobody has open. What is in bodies is not looked at.
///
/// # Errors
/// As [`check`]; the bodies belong to another file system, or cannot be listed.
pub fn check_pool<M: Medium>(medium: &M, bodies: &dyn Bodies) -> Result<Report> {
    match_bodies(&Superblock::read(medium)?, Some(bodies))?;
    let mut report = check(medium)?;
    look(medium, bodies, &mut report)?;
    Ok(report)
}

/// Mends a file system whose contents are in a pool, as [`repair`], and removes bodies that no inode has then.
///
/// # Errors
/// As [`check_pool`] and [`repair`]; a body that cannot be removed.
pub fn repair_pool<M: Medium>(medium: &M, bodies: &dyn Bodies, clock: &Clock) -> Result<Report> {
    match_bodies(&Superblock::read(medium)?, Some(bodies))?;
    let mut report = repair(medium, clock)?;
    // Only what can be trusted says that nobody has a body.
    if report.is_clean() {
        for stray in all(medium, bodies)? {
            bodies.remove(stray)?;
            report.repaired += 1;
            report.repairs.push(format!(
                "the body {:x}-{:x} belonged to no inode: it was removed",
                stray.ino.0, stray.generation
            ));
        }
        report.repairs.truncate(super::TOLD_MAX);
    }
    look(medium, bodies, &mut report)?;
    Ok(report)
}

fn all<M: Medium>(medium: &M, bodies: &dyn Bodies) -> Result<Vec<crate::bodies::BodyId>> {
    let superblock = Superblock::read(medium)?;
    let (geometry, salt) = (superblock.geometry, superblock.salt());
    let ledger = Ledger::read(medium, &geometry, salt);
    let highest = ledger.map_or_else(|_| highest(medium, &geometry, salt), |ledger| ledger.highest);
    strays(medium, &superblock, highest, bodies)
}

/// Strays are in order after a stop: the next start sweeps them away.
fn look<M: Medium>(medium: &M, bodies: &dyn Bodies, report: &mut Report) -> Result<()> {
    for stray in all(medium, bodies)? {
        report.strays += 1;
        if report.closed {
            let (ino, generation) = (stray.ino.0, stray.generation);
            report.tell(format_args!("the body {ino:x}-{generation:x} belongs to no inode"));
        }
    }
    Ok(())
}
