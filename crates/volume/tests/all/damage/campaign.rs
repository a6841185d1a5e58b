//! The campaign: damage, every access path, and the permitted results.

use super::access_paths::{ACCESS_PATHS, AccessPath, AccessResult, enter};
use super::damage_kind::{DAMAGE_KINDS, Damage, DamageKind, strike};
use super::test_volume::{Kind, ShutdownKind, TestVolume};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::path::Path;

/// Damage after which an older version of a block may be read without an error.
/// docs/design/durability.md names each exception; there is no other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exception {
    /// HFSL: a part of PCM holds entries of an earlier time, whose pages still exist. In a volume
    /// that was closed properly, a check finds the newer pages.
    OlderEntries,
    /// A whole medium, or the only one, is of an earlier time and consistent in itself.
    OlderMedium,
    /// Both copies of a record are damaged, in a volume that was not closed properly.
    BothCopiesNotClosed,
    /// A repair was allowed to fall back to older versions.
    RepairToOlder,
}

/// Returns the exception that applies to this damage and access path.
fn exception(subject: &TestVolume, damage: &Damage, door: AccessPath) -> Option<Exception> {
    let pcm = damage.file == "pcm.medium";
    let ssc = subject.kind.is_ssc() && damage.file == "nand.medium";
    let hfsl = !subject.kind.is_halo() && !subject.kind.is_ntl() && !subject.kind.is_ssc();
    match damage.harm {
        DamageKind::OlderPage if hfsl && pcm => Some(Exception::OlderEntries),
        DamageKind::OlderFile if pcm => {
            Some(if hfsl { Exception::OlderEntries } else { Exception::OlderMedium })
        }
        DamageKind::OlderFile if ssc => Some(Exception::OlderMedium),
        _ if damage.both_copies && subject.left == ShutdownKind::Killed && !hfsl => {
            Some(Exception::BothCopiesNotClosed)
        }
        _ if door == AccessPath::Older => Some(Exception::RepairToOlder),
        _ => None,
    }
}

/// Returns the violation that an access path shows, if any.
fn judge(subject: &TestVolume, damage: &Damage, door: AccessPath, out: &AccessResult) -> Option<String> {
    if let Some(wrong) = &out.wrong {
        return Some(wrong.clone());
    }
    if damage.harm == DamageKind::Cut && damage.file != "frit.volume" {
        let named = out.refused.as_ref().is_some_and(|why| why.contains("bytes and had"));
        let told = out.told && out.blocks.is_empty();
        return (!(named || door == AccessPath::Grow && told))
            .then(|| format!("a file that was cut: {:?}", out.refused));
    }
    let allowed = exception(subject, damage, door);
    for (i, bytes) in out.blocks.iter().enumerate() {
        let Some(bytes) = bytes else { continue };
        if subject.is_right(i, bytes) {
            continue;
        }
        match allowed {
            Some(_) if subject.is_some_version(i, bytes) => {}
            _ => return Some(format!("block {i} reads as something that is not what was written last")),
        }
    }
    let errors = out.blocks.iter().filter(|b| b.is_none()).count();
    let tells = matches!(
        door,
        AccessPath::Check | AccessPath::Recover | AccessPath::Repair | AccessPath::Older | AccessPath::Rescue
    );
    (tells && errors > 0 && !out.told)
        .then(|| format!("{errors} blocks cannot be read, and nothing is said of it"))
}

/// Counts of the campaign.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    pub damages: usize,
    /// Access paths that were tested.
    pub doors: usize,
    /// Access paths that reported the damage.
    pub told: usize,
}

/// Damages a volume of a kind `each` times with each kind of damage, and tests every access path.
/// Returns the first violation with the means to reproduce it.
pub(crate) fn run(
    kind: &'static Kind,
    left: ShutdownKind,
    seed: u64,
    each: u64,
    dir: &Path,
) -> Result<Tally, String> {
    let subject = TestVolume::new(kind, left, seed, &dir.join("made"));
    let volume = dir.join("vol");
    let mut tally = Tally::default();
    for round in 0..each {
        for (i, harm) in DAMAGE_KINDS.into_iter().enumerate() {
            let mut rng = SmallRng::seed_from_u64(seed ^ (round << 8 | i as u64) << 20);
            let Some((files, damage)) = strike(&subject, harm, &mut rng) else { continue };
            tally.damages += 1;
            let mut found_by_check = false;
            let mut older = false;
            for door in ACCESS_PATHS {
                let out = enter(door, &subject, &files, &volume);
                tally.doors += 1;
                tally.told += usize::from(out.told);
                found_by_check |= door == AccessPath::Check && out.told;
                let wrong = |what: &str| {
                    let Damage { harm, file, at, .. } = &damage;
                    let name = kind.name;
                    format!(
                        "{name} {left:?} seed {seed} round {round}: {harm:?} of {file} at {at:?}, {door:?}: {what}"
                    )
                };
                if let Some(what) = judge(&subject, &damage, door, &out) {
                    return Err(wrong(&what));
                }
                let stale =
                    |(i, b): (usize, &Option<Vec<u8>>)| b.as_ref().is_some_and(|b| !subject.is_right(i, b));
                older |= door == AccessPath::ReadOnly && out.blocks.iter().enumerate().any(stale);
                // A crash leaves pages of unacknowledged writes, which look like newer ones.
                if older
                    && left == ShutdownKind::Closed
                    && !found_by_check
                    && exception(&subject, &damage, door) == Some(Exception::OlderEntries)
                {
                    return Err(wrong("an older version is read, and a check did not find the newer one"));
                }
            }
        }
    }
    Ok(tally)
}
