//! Sources of hints, and the counters of the writes that they mark.

use frit_core::{HintKind, Hints};
use strum::{IntoStaticStr, VariantArray};

/// Source of a hint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum HintSource {
    /// A range of the operator.
    Range,
    /// The detector of metadata.
    Detector,
    /// The protocol of the request.
    Protocol,
    /// The process that sent the request.
    Process,
}

/// Hints of a request before any rule of the device.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ClientHints {
    /// Hints that the protocol transmits.
    pub(crate) own: Hints,
    /// Hints of the process that sent the request.
    pub(crate) process: Hints,
}

const KINDS: usize = HintKind::VARIANTS.len();
const SOURCES: usize = HintSource::VARIANTS.len();

/// Set of hints, each with its source.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Marks(u16);

impl Marks {
    pub(crate) const NONE: Marks = Marks(0);

    /// Returns the marks of hints from one source. Hints that no rule can give are left out.
    pub(crate) fn of(source: HintSource, hints: Hints) -> Marks {
        let kinds = HintKind::VARIANTS.iter().enumerate().filter(|(_, k)| hints.has(k.hints()));
        kinds.fold(Marks::NONE, |m, (i, _)| m.with(Marks(1 << (source as usize * KINDS + i))))
    }

    /// Returns the marks of a request before any rule of the device.
    #[inline]
    pub(crate) fn of_client(client: ClientHints) -> Marks {
        if client.own == Hints::NONE && client.process == Hints::NONE {
            return Marks::NONE;
        }
        Marks::of(HintSource::Protocol, client.own).with(Marks::of(HintSource::Process, client.process))
    }

    #[inline]
    pub(crate) fn with(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    /// Returns the hints from all sources.
    #[inline]
    pub(crate) fn hints(self) -> Hints {
        if self == Marks::NONE {
            return Hints::NONE;
        }
        let kind = |i: usize| (0..SOURCES).any(|source| self.0 >> (source * KINDS + i) & 1 == 1);
        let set = HintKind::VARIANTS.iter().enumerate().filter(|(i, _)| kind(*i));
        set.fold(Hints::NONE, |h, (_, k)| h.with(k.hints()))
    }
}

/// Writes that a source has marked with a hint.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HintCount {
    /// Number of writes with at least one marked page.
    pub requests: u64,
    /// Number of bytes in marked pages.
    pub bytes: u64,
}

/// Counters of marked writes, by source and hint.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HintCounters([[HintCount; KINDS]; SOURCES]);

impl HintCounters {
    /// Counts the bytes of a part of a write.
    #[inline]
    pub(crate) fn add_bytes(&mut self, marks: Marks, bytes: u64) {
        if marks != Marks::NONE {
            self.each(marks, |count| count.bytes += bytes);
        }
    }

    /// Counts a write by the marks of all its parts.
    #[inline]
    pub(crate) fn add_request(&mut self, marks: Marks) {
        if marks != Marks::NONE {
            self.each(marks, |count| count.requests += 1);
        }
    }

    fn each(&mut self, marks: Marks, add: impl Fn(&mut HintCount)) {
        let all = self.0.iter_mut().flatten().enumerate();
        all.filter(|(bit, _)| marks.0 >> bit & 1 == 1).for_each(|(_, count)| add(count));
    }

    /// Returns the counters of a source and a hint.
    #[must_use]
    pub fn get(&self, source: HintSource, kind: HintKind) -> HintCount {
        self.0[source as usize][kind as usize]
    }

    /// Returns all counters, in the order of tables.
    pub fn iter(&self) -> impl Iterator<Item = (HintSource, HintKind, HintCount)> + use<'_> {
        let kinds = |s: &HintSource| {
            HintKind::VARIANTS.iter().map({
                let s = *s;
                move |k| (s, *k)
            })
        };
        HintSource::VARIANTS.iter().flat_map(kinds).map(|(s, k)| (s, k, self.get(s, k)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_keep_their_sources() {
        let both =
            Marks::of(HintSource::Range, Hints::HOT).with(Marks::of(HintSource::Detector, Hints::METADATA));
        assert_eq!(both.hints(), Hints::HOT.with(Hints::METADATA));
        assert_eq!(Marks::of(HintSource::Protocol, Hints::FUA.with(Hints::SYNC)), Marks::NONE);
        let mut counters = HintCounters::default();
        counters.add_bytes(both, 4096);
        counters.add_bytes(Marks::of(HintSource::Range, Hints::HOT), 512);
        counters.add_request(both);
        let found: Vec<_> = counters.iter().filter(|c| c.2 != HintCount::default()).collect();
        assert_eq!(
            found,
            [
                (HintSource::Range, HintKind::Hot, HintCount { requests: 1, bytes: 4608 }),
                (HintSource::Detector, HintKind::Metadata, HintCount { requests: 1, bytes: 4096 })
            ]
        );
    }
}
