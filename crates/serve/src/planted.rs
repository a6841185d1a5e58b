//! Bugs planted on purpose in mounts, see [`frit_core::planted`].

use frit_core::planted::{Group, PlantedBug};

/// A bug of a mount, named by its effect. Only the kernel reveals it, so the tests of a mount on
/// damaged images find it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "fs-")]
#[repr(u16)]
pub enum Bug {
    /// A listing omits entries whose inode cannot be read.
    UnreadableUnlisted,
}

impl PlantedBug for Bug {
    const GROUP: Group = Group::Serve;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}
