//! Bugs planted in direct access: the tests of appends find each of them.

use super::{append, left, power};
use frit_core::planted::{self, Found};
use frit_fs::planted::DirectBug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use strum::IntoEnumIterator;

#[test]
fn planted_bugs_are_found() {
    planted::silence_panics();
    let found = Found::of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/direct/planted.csv"));
    for bug in DirectBug::iter() {
        let (name, is_sound): (_, fn() -> bool) = match bug {
            DirectBug::SizeUnchecked => ("append: impossible sizes", append::ignores_impossible_sizes),
            DirectBug::SizeNotFixed => ("append: a stopped program", append::is_safe_with_a_stopped_program),
            DirectBug::RetractedInUse => ("append: space in use", append::keeps_space_in_use),
            DirectBug::GrowthNotWrittenBack => ("power: losses", power::survives_power_losses),
            DirectBug::BootIgnored => ("left: earlier boots", left::forgets_earlier_boots),
            DirectBug::LeftBlocksUnchecked => ("left: blocks in use", left::refuses_blocks_in_use),
        };
        // A panic finds a bug as well.
        found.search(bug, [(name.to_owned(), is_sound)], |is_sound| {
            (!catch_unwind(AssertUnwindSafe(is_sound)).unwrap_or(false)).then_some("test")
        });
    }
    found.finish();
}
