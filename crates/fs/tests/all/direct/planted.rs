//! Bugs planted in direct access: the tests of appends find each of them.

use super::{append, left, power};
use frit_core::planted::{self, PlantedBug};
use frit_fs::planted::DirectBug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use strum::IntoEnumIterator;

#[test]
fn planted_bugs_are_found() {
    planted::silence_panics();
    for bug in DirectBug::iter() {
        let is_sound = match bug {
            DirectBug::SizeUnchecked => append::ignores_impossible_sizes,
            DirectBug::SizeNotFixed => append::is_safe_with_a_stopped_program,
            DirectBug::RetractedInUse => append::keeps_space_in_use,
            DirectBug::GrowthNotWrittenBack => power::survives_power_losses,
            DirectBug::BootIgnored => left::forgets_earlier_boots,
            DirectBug::LeftBlocksUnchecked => left::refuses_blocks_in_use,
        };
        planted::set(Some(bug.id()));
        // A panic finds a bug as well.
        let found = !catch_unwind(AssertUnwindSafe(is_sound)).unwrap_or(false);
        planted::set(None);
        assert!(found, "{}", bug.name());
        assert!(is_sound(), "{} without the bug", bug.name());
    }
}
