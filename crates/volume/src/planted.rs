//! Bugs planted on purpose in volumes, see [`frit_core::planted`].

use frit_core::planted::{Group, PlantedBug};

/// A bug of the commands on whole volumes, named by its effect. Tests of a single layer cannot
/// reveal it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[repr(u16)]
pub enum Bug {
    /// Growing a volume copies zeros for data that cannot be read.
    GrowCopiesZeros,
    /// An export without `rescue` writes zeros for data that cannot be read.
    ExportWritesZeros,
    /// The losses that a search finds are not reported.
    LossesNotTold,
}

impl PlantedBug for Bug {
    const GROUP: Group = Group::Volume;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}
