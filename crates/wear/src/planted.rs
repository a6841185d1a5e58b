//! Bugs of wear leveling that tests plant on purpose, see [`frit_core::planted`].

use frit_core::planted::{Group, PlantedBug};

/// A bug of wear leveling of PCM, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "wear-")]
#[repr(u16)]
pub enum WearBug {
    // Moves.
    /// A register does not wait for the copy of the stripe.
    RegisterEarly,
    /// There is no fence between the copy of a stripe and the register.
    CopyNotFenced,
    /// There is no fence after a register.
    RegisterNotFenced,
    /// A copy does not wait for earlier writes to the stripe.
    CopyEarly,
    /// A place is overwritten before the register that freed it is durable.
    GapEarly,
    /// A write to a stripe does not wait for the register of its move.
    WriteEarly,
    /// The steps of an exchange through the scratch stripe are not recorded.
    SwapNotNoted,

    // Flushes.
    /// A region moves twice between two flushes.
    MovedTwice,
    /// Registers as of the last flush are written before the data is synced.
    SyncedFirst,

    // Recovery.
    /// Recovery takes a register for the newest although a newer one is damaged.
    DamageUnseen,
    /// After a power loss of the machine, recovery takes registers that are newer than their data.
    SyncedIgnored,
    /// Registers that a power loss of the machine made invalid are not cleared.
    VoidKept,
    /// A recovery from a power loss of the machine is not marked as begun.
    RestoreUnmarked,
}

impl PlantedBug for WearBug {
    const GROUP: Group = Group::Wear;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}
