//! What the host knows about a request and a layer may use.

/// Hints of one request. A layer may ignore them all and stays correct.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Hints(u8);

impl Hints {
    /// None.
    pub const NONE: Hints = Hints(0);
    /// File-system metadata or journal.
    pub const METADATA: Hints = Hints(1);
    /// Must be durable when acknowledged (force unit access).
    pub const FUA: Hints = Hints(2);
    /// Somebody waits for it (synchronous).
    pub const SYNC: Hints = Hints(4);
    /// The host says that it will be written again soon.
    pub const HOT: Hints = Hints(8);
    /// The host says that it will not be written again soon.
    pub const COLD: Hints = Hints(16);

    /// Whether all of `other` is set.
    #[inline]
    #[must_use]
    pub fn has(self, other: Hints) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[inline]
    #[must_use]
    pub fn with(self, other: Hints) -> Hints {
        Hints(self.0 | other.0)
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
    }
}
