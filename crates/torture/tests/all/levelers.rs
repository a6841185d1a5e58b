//! HFSL over each wear leveler of PCM, and with each size of the ring of redo records. Power cuts
//! strike inside the moves of stripes as well.

use crate::common::{PCM_LEVELERS, REDO_LINES, many_faults, many_images, share_of, target};
use frit_core::visible::StackView;
use frit_core::{Hints, Sector, Sink, WriteData};
use frit_torture::block::case::TortureMode;
use frit_torture::block::target::TortureTarget;
use frit_wear::LevelerKind;
use strum::VariantNames;

/// Returns the variants under torture, and the number of distinct images that each must give.
fn variants() -> Vec<(String, usize)> {
    PCM_LEVELERS.iter().map(|(name, _)| ((*name).to_owned(), 5_000)).collect()
}

#[test]
fn distinct_images_of_leveled_pcm_hold() {
    let distinct = many_images(&variants());
    assert!(distinct >= share_of(30_000), "{distinct}");
}

/// Returns the variants with each size of the ring of redo records, over each leveler and without
/// one.
fn rings() -> Vec<(String, usize)> {
    let name = |lines| LevelerKind::VARIANTS.iter().map(move |leveler| format!("redo-{lines}-{leveler}"));
    REDO_LINES.iter().flat_map(name).map(|name| (name, 1_000)).collect()
}

/// Commits of several entries are whole with rings of any size.
#[test]
fn distinct_images_of_redo_rings_hold() {
    let distinct = many_images(&rings());
    assert!(distinct >= share_of(18_000), "{distinct}");
}

/// Damage, lost, misplaced and stale accesses of rings: no record is applied to newer versions.
#[test]
fn failing_and_damaged_redo_rings_cost_nothing_that_was_acknowledged() {
    let none: Vec<(String, usize)> =
        rings().into_iter().filter(|(name, _)| name.ends_with("-none")).collect();
    let (struck, seen) = many_faults(&none, &[TortureMode::Errors, TortureMode::Damage]);
    assert!(struck > 125 && seen * 4 > struck, "{struck} {seen}");
}

/// Failing media, and damage in them: the client receives an error, and no acknowledged data is
/// lost.
#[test]
fn failing_and_damaged_leveled_pcm_costs_nothing_that_was_acknowledged() {
    let (struck, seen) = many_faults(&variants(), &[TortureMode::Errors, TortureMode::Damage]);
    assert!(struck > 250 && seen * 4 > struck, "{struck} {seen}");
}

/// The variants have all levelers, and a short run moves stripes often.
#[test]
fn stripes_move_in_the_small_stacks() {
    for leveler in LevelerKind::VARIANTS.iter().filter(|l| **l != "none") {
        assert!(PCM_LEVELERS.iter().any(|(_, sets)| sets.contains(&format!("={leveler}"))), "{leveler}");
    }
    for (name, _) in PCM_LEVELERS {
        let target = target(name);
        let mut layer = target.build(&target.blank_stores()).unwrap();
        layer.format(&mut Sink::untimed()).unwrap();
        for i in 0..60 {
            layer
                .write(
                    &mut Sink::untimed(),
                    Sector(i * 24 % 320),
                    WriteData::Bytes(&[i as u8; 2048]),
                    Hints::NONE,
                )
                .unwrap();
        }
        let mut view = StackView::default();
        layer.visible(&mut view);
        let moves = view.layers[0].metrics.iter().find(|m| m.name == "wear_moves").unwrap().value;
        println!("{name}: {moves} moves");
        assert!(moves >= 12.0, "{name}: {moves}");
    }
}
