//! [`HintMap`]: the hints of every byte of a volume.

use super::{HintRange, Hints};

/// Bytes that have the same hints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HintSpan {
    /// First byte.
    pub at: u64,
    /// End, exclusive.
    pub end: u64,
    /// Hints of all bytes.
    pub hints: Hints,
}

/// Hints by address: sorted spans that do not overlap, searched in logarithmic time.
///
/// Spans begin and end at multiples of an alignment, the page size of a volume: a page has the
/// hints of all rules that touch it, since a layer places whole pages.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HintMap(Vec<HintSpan>);

/// Smallest unit of hints, in bytes: blocks of this size are never divided.
const UNIT_MIN: u64 = 4096;

impl HintMap {
    /// Returns the unit in which a volume with pages of `page_bytes` gives hints, in bytes: a page,
    /// and at least 4 KiB, so that the parts of a write divide no block that is written at once.
    #[must_use]
    pub fn unit(page_bytes: u32) -> u64 {
        UNIT_MIN.max(page_bytes.into())
    }

    /// Builds the map of rules. Where rules overlap, a byte has the hints of all of them.
    ///
    /// # Panics
    /// `align` is 0.
    #[must_use]
    pub fn new(rules: &[HintRange], align: u64) -> HintMap {
        let span = |r: &HintRange| HintSpan { at: r.at(), end: r.end(), hints: r.kind().hints() };
        HintMap::of_spans(rules.iter().map(span), align)
    }

    /// Builds the map of spans that may overlap, in any order.
    ///
    /// # Panics
    /// `align` is 0.
    #[must_use]
    pub fn of_spans(spans: impl IntoIterator<Item = HintSpan>, align: u64) -> HintMap {
        // Each span is a begin and an end. Between two positions, a hint is set if more spans with
        // it have begun than ended.
        let mut edges: Vec<(u64, bool, Hints)> = Vec::new();
        for s in spans.into_iter().filter(|s| s.at < s.end && s.hints != Hints::NONE) {
            let end = s.end.checked_next_multiple_of(align).unwrap_or(u64::MAX);
            edges.extend([(s.at - s.at % align, true, s.hints), (end, false, s.hints)]);
        }
        edges.sort_unstable_by_key(|e| e.0);
        let mut open = [0usize; u8::BITS as usize];
        let mut map: Vec<HintSpan> = Vec::new();
        let mut from = 0;
        for edges in edges.chunk_by(|a, b| a.0 == b.0) {
            let at = edges[0].0;
            let hints = Hints(open.iter().enumerate().fold(0, |h, (bit, n)| h | u8::from(*n > 0) << bit));
            match map.last_mut() {
                _ if hints == Hints::NONE || from == at => {}
                Some(last) if last.end == from && last.hints == hints => last.end = at,
                _ => map.push(HintSpan { at: from, end: at, hints }),
            }
            for (_, begins, hints) in edges {
                for (bit, open) in open.iter_mut().enumerate().filter(|(bit, _)| hints.0 >> bit & 1 == 1) {
                    debug_assert!(*begins || *open > 0, "span of hint {bit} ends before it begins");
                    *open = if *begins { *open + 1 } else { *open - 1 };
                }
            }
            from = at;
        }
        HintMap(map)
    }

    /// Returns `true` if no byte has a hint.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the spans of the whole map, in order.
    #[must_use]
    pub fn spans(&self) -> &[HintSpan] {
        &self.0
    }

    /// Returns the spans with hints inside a range, cut to the range.
    pub fn overlapping(&self, at: u64, len: u64) -> impl Iterator<Item = HintSpan> + use<'_> {
        let end = at.saturating_add(len);
        let first = self.0.partition_point(|s| s.end <= at);
        let cut = move |s: &HintSpan| HintSpan { at: s.at.max(at), end: s.end.min(end), hints: s.hints };
        self.0[first..].iter().take_while(move |s| s.at < end).map(cut)
    }

    /// Splits a range into spans of equal hints, also of none. They cover the range in order.
    pub fn parts(&self, at: u64, len: u64) -> impl Iterator<Item = HintSpan> + use<'_> {
        let end = at.saturating_add(len);
        let mut marked = self.overlapping(at, len).peekable();
        let mut at = at;
        std::iter::from_fn(move || {
            let part = match marked.peek() {
                _ if at >= end => return None,
                Some(s) if s.at == at => marked.next()?,
                Some(s) => HintSpan { at, end: s.at, hints: Hints::NONE },
                None => HintSpan { at, end, hints: Hints::NONE },
            };
            at = part.end;
            Some(part)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HintKind;

    fn rule(at: u64, len: u64, kind: HintKind) -> HintRange {
        HintRange::new(at, len, kind).unwrap()
    }

    #[test]
    fn pages_have_the_hints_of_all_rules_that_touch_them() {
        let rules = [
            rule(4097, 1, HintKind::Metadata),
            rule(0, 12_288, HintKind::Hot),
            rule(20_480, 4096, HintKind::Cold),
        ];
        let map = HintMap::new(&rules, 4096);
        let both = Hints::METADATA.with(Hints::HOT);
        let span = |at: u64, end: u64, hints| HintSpan { at: at * 4096, end: end * 4096, hints };
        assert_eq!(
            map.spans(),
            [span(0, 1, Hints::HOT), span(1, 2, both), span(2, 3, Hints::HOT), span(5, 6, Hints::COLD)]
        );
        let cut: Vec<HintSpan> = map.overlapping(4096 + 512, 4096).collect();
        assert_eq!(cut.len(), 2);
        assert_eq!((cut[0].at, cut[1].end), (4096 + 512, 8192 + 512));
        let parts: Vec<(u64, Hints)> = map.parts(8192, 16_384).map(|s| (s.end - s.at, s.hints)).collect();
        assert_eq!(parts, [(4096, Hints::HOT), (8192, Hints::NONE), (4096, Hints::COLD)]);
    }

    #[test]
    fn a_range_may_end_at_the_last_address() {
        let map = HintMap::new(&[rule(u64::MAX - 10, 10, HintKind::Hot)], 4096);
        assert_eq!(map.spans()[0].end, u64::MAX);
        assert_eq!(map.parts(u64::MAX - 5, 5).count(), 1);
    }

    /// Compares a map with a plain table of the hints of each byte, over all rules of small ranges.
    #[test]
    fn a_map_agrees_with_a_table_of_bytes() {
        let kinds = [HintKind::Metadata, HintKind::Hot, HintKind::Cold];
        // A linear congruential generator: the same cases in every run.
        let mut state = 7u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..2000 {
            let align = [1, 4, 16][draw(3) as usize];
            let rules: Vec<HintRange> =
                (0..draw(6)).map(|_| rule(draw(60), 1 + draw(20), kinds[draw(3) as usize])).collect();
            let mut table = [Hints::NONE; 128];
            for r in &rules {
                let range = (r.at() / align * align) as usize..r.end().next_multiple_of(align) as usize;
                table[range].iter_mut().for_each(|h| *h = h.with(r.kind().hints()));
            }
            let map = HintMap::new(&rules, align);
            let (at, len) = (draw(100), draw(28));
            let mut next = at;
            for part in map.parts(at, len) {
                assert_eq!(part.at, next);
                assert!((part.at..part.end).all(|b| table[b as usize] == part.hints), "{rules:?} {part:?}");
                next = part.end;
            }
            assert_eq!(next, at + len);
            assert!(map.spans().windows(2).all(|w| w[0].end < w[1].at || w[0].hints != w[1].hints));
        }
    }
}
