//! Keys for wear leveling below a layer. They are part of the layer's table.

use frit_wear::WearKeys;

/// Returns the parameters without effect under the given configuration, each with the reason.
pub(super) fn ineffective(wear: &WearKeys) -> Vec<(&'static str, &'static str)> {
    let mut ineffective = Vec::new();
    let leveler = &wear.wear_leveling[..];
    if leveler == "none" {
        ineffective.push(("wear_interval", "wear leveling is off"));
    }
    if leveler != "sfc" {
        ineffective.push(("wear_cubes", "only `wear_leveling` = sfc has cubes"));
    }
    if !["start-gap", "randomized-start-gap", "security-refresh"].contains(&leveler) {
        ineffective
            .push(("wear_region", "only start-gap, randomized-start-gap and security-refresh have regions"));
    }
    ineffective
}
