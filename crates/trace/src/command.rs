//! Commands of devices that are more than a block device, as operations of requests.

use frit_core::ZoneAction;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Command of a solid-state cache or of a zoned device. The names are those that traces and reports
/// use. Addresses are sectors.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "kebab-case", ascii_case_insensitive)]
pub enum DeviceCommand {
    /// Reads cached blocks; a block that is absent is a miss.
    ReadOrMiss,
    /// Writes blocks that only the cache has.
    WriteDirty,
    /// Writes blocks that the disk has as well.
    WriteClean,
    /// Removes blocks.
    Evict,
    /// Makes blocks clean.
    Clean,
    /// Lists the blocks that are present.
    Exists,
    /// Writes at the write pointer of a zone.
    ZoneAppend,
    /// Opens zones explicitly.
    ZoneOpen,
    /// Closes zones.
    ZoneClose,
    /// Makes zones full.
    ZoneFinish,
    /// Makes zones empty.
    ZoneReset,
}

/// Interface of a device to which a command belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandSet {
    /// A solid-state cache.
    Cache,
    /// A zoned device.
    Zones,
}

impl DeviceCommand {
    /// Returns all commands.
    #[must_use]
    pub fn all() -> &'static [DeviceCommand] {
        DeviceCommand::VARIANTS
    }

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the interface that has the command.
    #[must_use]
    pub fn set(self) -> CommandSet {
        use DeviceCommand as C;
        match self {
            C::ReadOrMiss | C::WriteDirty | C::WriteClean | C::Evict | C::Clean | C::Exists => {
                CommandSet::Cache
            }
            C::ZoneAppend | C::ZoneOpen | C::ZoneClose | C::ZoneFinish | C::ZoneReset => CommandSet::Zones,
        }
    }

    /// Returns the action that the command performs on a zone; `None` if it is none.
    #[must_use]
    pub fn zone_action(self) -> Option<ZoneAction> {
        match self {
            DeviceCommand::ZoneOpen => Some(ZoneAction::Open),
            DeviceCommand::ZoneClose => Some(ZoneAction::Close),
            DeviceCommand::ZoneFinish => Some(ZoneAction::Finish),
            DeviceCommand::ZoneReset => Some(ZoneAction::Reset),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_that_are_read_again() {
        for &c in DeviceCommand::all() {
            assert_eq!(c.name().parse(), Ok(c));
            assert!(
                c.name().len() > 1 && c.name().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'),
                "{c:?}"
            );
            assert_eq!(c.set() == CommandSet::Zones, c.name().starts_with("zone-"), "{c:?}");
        }
    }
}
