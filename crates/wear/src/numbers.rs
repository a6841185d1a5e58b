//! Number types of wear leveling: logical and physical stripes, and regions.

use frit_core::number_types;

/// Number of a stripe as the layer above addresses it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct LogicalStripe(pub u32);

/// Number of a stripe of the device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PhysicalStripe(pub u32);

/// Number of a region, whose stripes move together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct RegionId(pub u32);

number_types!(LogicalStripe, PhysicalStripe, RegionId);

impl PhysicalStripe {
    /// Returns the address of a byte of the stripe on the device, for stripes of `1 << shift` bytes.
    #[inline]
    #[must_use]
    pub const fn byte(self, shift: u32, offset: u32) -> u64 {
        (self.0 as u64) << shift | offset as u64
    }
}
