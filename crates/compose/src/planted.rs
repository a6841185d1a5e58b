//! Bugs of composition that tests plant on purpose, see [`frit_core::planted`].

use frit_core::planted::{Group, PlantedBug};

/// A bug of the composition of layers, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "nest-")]
#[repr(u16)]
pub enum NestBug {
    // Requests.
    /// An upper layer gets the acknowledgement of a request before the layer below gives it.
    AckEarly,
    /// A request to a layer below does not wait for what the upper layer put before it.
    StartEarly,
    /// A write that fails in the layer below is acknowledged.
    WriteErrorDropped,
    /// A request of several parts is acknowledged with its first part.
    FirstPartAcked,
    /// A discard is not passed down.
    ZeroNotPassed,

    // Durability.
    /// A flush is not passed down.
    FlushNotPassed,
    /// A flush reaches the first device only.
    FlushFirstDevice,
    /// A flush does not wait for the writes before it.
    FlushEarly,
    /// The guarantee of a composer is that of its strongest device.
    StrongestGuarantee,

    // Start and end.
    /// Only the first device is formatted.
    FormatFirstDevice,
    /// The layers below are not recovered.
    BelowNotRecovered,
    /// Only the first device is recovered.
    RecoverFirstDevice,
    /// Findings of a layer below are not reported.
    FindingsDropped,
}

impl PlantedBug for NestBug {
    const GROUP: Group = Group::Nest;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}
