//! Damage of every kind, through every way to access an image. The images are closed or not, with
//! checksums of contents or without. No wrong data goes unreported, and the tests find all bugs
//! planted in the code that detects damage.
//!
//! `SEED=7 CASES=1000 cargo test -p frit-torture --test all planted::fs_damage::` tries other cases, and
//! more.

use frit_core::planted::Found;
use frit_fs::planted::DamageBug;
use frit_torture::fs::damage::{
    AccessChecker, AccessPath, DamageInjector, DamageKind, ImageOptions, PopulatedImage, populate_as,
};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use strum::IntoEnumIterator;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Creates an image with each combination of options.
fn all_made() -> Vec<(ImageOptions, PopulatedImage, AccessChecker)> {
    let ways = [(true, true), (true, false), (false, true), (false, false)];
    let make = |(sums, closed)| {
        let how = ImageOptions { sums, closed };
        let made = populate_as(how).unwrap();
        let paths = AccessChecker::new(&made).unwrap();
        (how, made, paths)
    };
    ways.into_iter().map(make).collect()
}

/// Applies each kind of damage to each image this many times, and accesses the result in each way.
/// Returns the failures.
fn tried(
    all: &[(ImageOptions, PopulatedImage, AccessChecker)],
    (kinds, doors_tried): (&[DamageKind], &[AccessPath]),
    cases: u64,
    mut each: impl FnMut(&ImageOptions, DamageKind, AccessPath, &str),
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (how, made, paths) in all {
        let injector = DamageInjector::new(made, paths.geometry(), paths.unsummed());
        for &kind in kinds {
            for case in 0..cases {
                let seed = number("SEED", 1) << 32 | case << 8 | kind as u64;
                let (image, what) = injector.inject(kind, &mut SmallRng::seed_from_u64(seed));
                for &path in doors_tried.iter().filter(|path| kind.is_for(**path)) {
                    let look = || paths.look(path, &image, kind.is_older());
                    match catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| Err("panics".to_string())) {
                        Ok(outcome) => each(how, kind, path, outcome.into()),
                        Err(error) => {
                            wrong.push(format!("{how:?}, {what} (seed {seed}), {path:?}: {error}"));
                        }
                    }
                }
            }
        }
    }
    wrong
}

#[test]
fn nothing_is_silently_another() {
    let mut counts: BTreeMap<(DamageKind, AccessPath, String), u64> = BTreeMap::new();
    let (kinds, paths): (Vec<_>, Vec<_>) = (DamageKind::iter().collect(), AccessPath::iter().collect());
    let wrong = tried(&all_made(), (&kinds, &paths), number("CASES", 12), |_, kind, path, outcome| {
        *counts.entry((kind, path, outcome.to_string())).or_default() += 1;
    });
    println!("| damage | through | outcome | cases |\n|---|---|---|---|");
    for ((kind, path, outcome), count) in &counts {
        let (kind, path): (&str, &str) = (kind.into(), path.into());
        println!("| {kind} | {path} | {outcome} | {count} |");
    }
    let first = wrong.iter().take(number("SHOWN", 5) as usize).cloned().collect::<Vec<_>>().join("\n---\n");
    assert!(wrong.is_empty(), "{} wrong:\n{first}", wrong.len());
    // Each kind of damage is reported by each way of access.
    for (kind, path) in DamageKind::iter().flat_map(|kind| AccessPath::iter().map(move |path| (kind, path))) {
        let noticed = counts.contains_key(&(kind, path, "told".into()));
        assert!(noticed || kind.is_older() || !kind.is_for(path), "{kind:?} through {path:?}");
    }
}

/// Returns the kinds of damage and the way of access that reveal a bug, and the number of cases
/// that it takes.
fn shown_by(bug: DamageBug) -> (&'static [DamageKind], AccessPath, u64) {
    match bug {
        DamageBug::NamesNotCompared => (&[DamageKind::Zeros], AccessPath::ReadOnly, 12),
        DamageBug::TargetUnchecked => (&[DamageKind::Swapped, DamageKind::Garbage], AccessPath::ReadOnly, 40),
        DamageBug::PartUnchecked => (&[DamageKind::Bit, DamageKind::Garbage], AccessPath::Overwrite, 12),
        DamageBug::RepairUntold => (&[DamageKind::Bit, DamageKind::Garbage], AccessPath::Repair, 40),
        DamageBug::CheckSkipsTargets => (&[DamageKind::Zeros, DamageKind::Garbage], AccessPath::Check, 80),
        DamageBug::MissingCommandIgnored => (&[DamageKind::Command], AccessPath::Check, 40),
        DamageBug::StrayCommandKept => (&[DamageKind::Command], AccessPath::Repair, 20),
        DamageBug::BlocksNotCompared => (&[DamageKind::OlderPage], AccessPath::ReadOnly, 120),
        _ => (&[DamageKind::Bit, DamageKind::Garbage], AccessPath::ReadOnly, 12),
    }
}

#[test]
fn every_planted_bug_of_damage_is_found() {
    let all = all_made();
    let found = Found::of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/planted/fs_damage.csv"));
    for bug in DamageBug::iter() {
        let (kinds, path, cases) = shown_by(bug);
        let names: Vec<&str> = kinds.iter().map(<&str>::from).collect();
        let case = format!("{} through {}", names.join(" and "), <&str>::from(path));
        found.search(bug, [(case, ())], |()| {
            (!tried(&all, (kinds, &[path]), cases, |_, _, _, _| ()).is_empty()).then_some("damage")
        });
    }
    found.finish();
}
