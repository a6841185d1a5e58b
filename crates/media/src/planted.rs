//! Bugs planted on purpose in the media, see [`frit_core::planted`].

use frit_core::planted::{Group, PlantedBug};

/// A bug of the media, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[repr(u16)]
pub enum Bug {
    /// The data checksum of a NAND page is not verified.
    NandDataUnchecked,
    /// Only the first copy of the record of a NAND page is read.
    NandSecondCopyIgnored,
    /// The units of an array of NAND devices that hold data are assigned to the wrong devices when
    /// the array is opened.
    ArrayRotatedAtOpen,
    /// A sync of an array of NAND devices syncs the first device only.
    ArraySyncsFirst,
}

impl PlantedBug for Bug {
    const GROUP: Group = Group::Media;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}
