//! Search without vector instructions of a known width: `memmem`, which selects its own.

use super::Needle;

/// Reports the occurrences of each needle that begin before `starts`.
pub(super) fn search<F: FnMut(usize, usize)>(needles: &[Needle], hay: &[u8], starts: usize, found: &mut F) {
    for (index, needle) in needles.iter().enumerate() {
        let end = starts.saturating_add(needle.bytes.len() - 1).min(hay.len());
        let finder = memchr::memmem::Finder::new(&needle.bytes);
        let mut from = 0;
        while let Some(at) = hay.get(from..end).and_then(|rest| finder.find(rest)) {
            found(index, from + at);
            from += at + 1;
        }
    }
}
