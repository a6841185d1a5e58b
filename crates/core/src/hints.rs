//! Hints of the host about a request, which a layer may use, and rules that give hints to ranges of
//! a volume.
//!
//! A [`HintRange`] is one rule, as users write it. A [`HintMap`] answers which hints the bytes of a
//! request have. The server of a volume and a replay use the same rules.

mod map;
mod range;

pub use map::{HintMap, HintSpan};
pub use range::{HintKind, HintRange};

use crate::Cause;

/// Hints of one request. A layer that ignores all of them is still correct.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Hints(u8);

impl Hints {
    /// No hint.
    pub const NONE: Hints = Hints(0);
    /// The data is metadata or journal of a file system.
    pub const METADATA: Hints = Hints(1);
    /// The write must be durable when it is acknowledged (force unit access).
    pub const FUA: Hints = Hints(2);
    /// A caller waits for the request (synchronous).
    pub const SYNC: Hints = Hints(4);
    /// The host expects that the data is written again soon.
    pub const HOT: Hints = Hints(8);
    /// The host expects that the data is not written again soon.
    pub const COLD: Hints = Hints(16);
    /// The read is one of the processing engine of the device, and its bytes do not go to the host.
    pub const IN_STORAGE: Hints = Hints(32);

    /// The hints from which a layer chooses the medium of data.
    pub const PLACEMENT: Hints = Hints::METADATA.with(Hints::HOT).with(Hints::COLD);

    /// Returns `true` if all hints of `other` are set.
    #[inline]
    #[must_use]
    pub fn has(self, other: Hints) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the cause of the commands of a read with these hints.
    #[inline]
    #[must_use]
    pub fn read_cause(self) -> Cause {
        if self.has(Hints::IN_STORAGE) { Cause::Isp } else { Cause::Host }
    }

    /// Returns the union of both sets of hints.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Hints) -> Hints {
        Hints(self.0 | other.0)
    }

    /// Returns the hints that are in `other`.
    #[inline]
    #[must_use]
    pub fn only(self, other: Hints) -> Hints {
        Hints(self.0 & other.0)
    }

    /// Returns the hints that are not in `other`.
    #[inline]
    #[must_use]
    pub fn without(self, other: Hints) -> Hints {
        Hints(self.0 & !other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_combine() {
        let h = Hints::METADATA.with(Hints::FUA);
        assert!(h.has(Hints::METADATA) && h.has(Hints::FUA) && !h.has(Hints::HOT));
        assert!(h.has(Hints::NONE));
        assert_eq!(h.without(Hints::FUA), Hints::METADATA);
        assert_eq!(Hints::METADATA.without(Hints::FUA), Hints::METADATA);
    }
}
