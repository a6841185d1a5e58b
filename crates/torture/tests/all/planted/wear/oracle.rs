//! Allowed contents after a crash or power loss, by word.

/// A part of a request: words to write or to refresh.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartSpec {
    pub(crate) first: u64,
    pub(crate) len: u64,
    /// `true` for a refresh, which sets the words to zeros.
    pub(crate) empties: bool,
}

/// A recorded part of a request: words, and their new version.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: u64,
    len: u64,
    version: u32,
}

/// Range of the versions that a word may have. Versions with equal contents, such as zeros, make it
/// more than one.
#[derive(Clone, Copy, Debug)]
struct VersionRange {
    least: u32,
    most: u32,
}

/// All requests, in order.
#[derive(Clone, Debug)]
pub(crate) struct History {
    words: u64,
    /// For each version, `true` if its words are zeros. Version 0 is the initial one.
    empties: Vec<bool>,
    /// For each word, its versions in order. The first one is certain.
    versions: Vec<Vec<u32>>,
    /// Requests of two parts. The second part follows the first after a fence.
    requests: Vec<[Part; 2]>,
}

/// Returns the value that a write stores in a word; never zero.
fn stamp(word: u64, version: u32) -> u64 {
    let check = (word << 32 | u64::from(version)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    u64::from(version) << 32 | check
}

impl History {
    pub(crate) fn new(words: u64) -> History {
        History { words, empties: vec![true], versions: vec![vec![0]; words as usize], requests: Vec::new() }
    }

    /// Makes everything written so far certain, and restarts the count of requests.
    pub(crate) fn settle(&mut self) {
        for v in &mut self.versions {
            v.drain(..v.len() - 1);
        }
        self.requests.clear();
    }

    /// Records a request of two parts. Returns the bytes of each part.
    pub(crate) fn request(&mut self, parts: [PartSpec; 2]) -> [Vec<u8>; 2] {
        let noted = parts.map(|PartSpec { first, len, empties }| {
            let version = self.empties.len() as u32;
            self.empties.push(empties);
            for w in first..first + len {
                self.versions[w as usize].push(version);
            }
            Part { first, len, version }
        });
        self.requests.push(noted);
        let bytes = |p: Part| (p.first..p.first + p.len).flat_map(move |w| stamp(w, p.version).to_le_bytes());
        noted.map(|p| bytes(p).collect())
    }

    /// Returns the range of versions of a word that have this value.
    fn find(&self, word: usize, value: u64) -> Option<VersionRange> {
        let leaves = |v: u32| if self.empties[v as usize] { 0 } else { stamp(word as u64, v) };
        let mut may = self.versions[word].iter().copied().filter(|&v| leaves(v) == value);
        let least = may.next()?;
        Some(VersionRange { least, most: may.next_back().unwrap_or(least) })
    }

    /// Verifies an image. `lasted` returns `true` for requests that certainly persist. `ordered` is
    /// `true` if the second part of a request may persist only with the first.
    pub(crate) fn check(
        &self,
        image: &[u8],
        lasted: impl Fn(usize) -> bool,
        ordered: bool,
    ) -> Result<(), String> {
        let mut found = Vec::with_capacity(self.words as usize);
        for (w, bytes) in image.chunks_exact(8).enumerate() {
            let value = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
            let Some(versions) = self.find(w, value) else {
                let may = &self.versions[w];
                return Err(format!("word {w} holds {value:016x}; written there were versions {may:?}"));
            };
            found.push(versions);
        }
        let all = |p: &Part, least: u32| (p.first..p.first + p.len).find(|&w| found[w as usize].most < least);
        for (r, parts) in self.requests.iter().enumerate() {
            for p in parts {
                if let Some(w) = all(p, p.version).filter(|_| lasted(r)) {
                    let v = found[w as usize].most;
                    return Err(format!(
                        "word {w} is at version {v}; {} of request {r} was acknowledged",
                        p.version
                    ));
                }
            }
            let [log, rest] = parts;
            let begun = (rest.first..rest.first + rest.len).any(|w| found[w as usize].least >= rest.version);
            if let Some(w) = all(log, log.version).filter(|_| ordered && begun) {
                return Err(format!(
                    "request {r}: the part behind the fence is there, word {w} before it is not"
                ));
            }
        }
        Ok(())
    }
}
