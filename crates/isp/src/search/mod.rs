//! Search for all occurrences of several words.
//!
//! An occurrence of a word is a position at which all of its bytes follow. Occurrences may overlap:
//! `aa` occurs twice in `aaa`. A comparison at every position gives the same result.

#[cfg(target_arch = "x86_64")]
mod fingerprint;
mod portable;
#[cfg(target_arch = "x86_64")]
mod vector;

/// Maximum number of words of one search.
pub const WORDS_MAX: usize = 64;
/// Maximum length of a word in bytes.
pub const WORD_BYTES_MAX: usize = 256;

/// Word that is searched for.
#[derive(Clone, Debug)]
struct Needle {
    bytes: Box<[u8]>,
    /// First eight bytes of the word, and zeros behind a shorter one.
    prefix: u64,
    /// Bits of `prefix` that belong to the word.
    prefix_mask: u64,
}

impl Needle {
    fn new(word: &[u8]) -> Self {
        let mut prefix = [0; 8];
        let mut mask = [0; 8];
        for (i, byte) in word.iter().take(8).enumerate() {
            (prefix[i], mask[i]) = (*byte, 0xff);
        }
        let (prefix, prefix_mask) = (u64::from_le_bytes(prefix), u64::from_le_bytes(mask));
        Self { bytes: word.into(), prefix, prefix_mask }
    }
}

/// Instructions of the processor that a search uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernel {
    /// Blocks of 64 bytes with AVX-512BW.
    Avx512,
    /// Blocks of 32 bytes with AVX2.
    Avx2,
    /// One `memmem` search for each word.
    Portable,
}

impl Kernel {
    /// The kernels that this processor can execute, the fastest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut kernels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                kernels.push(Self::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                kernels.push(Self::Avx2);
            }
        }
        kernels.push(Self::Portable);
        kernels
    }
}

/// Words that are searched for together.
#[derive(Clone, Debug)]
pub struct Searcher {
    needles: Vec<Needle>,
    /// Fingerprints of groups of needles.
    #[cfg(target_arch = "x86_64")]
    fingerprints: Vec<fingerprint::Fingerprint>,
    kernel: Kernel,
}

impl Searcher {
    /// Creates a search with the fastest kernel of this processor. Empty words are left out.
    #[must_use]
    pub fn new<W: AsRef<[u8]>>(words: &[W]) -> Self {
        let kernel = Kernel::available().first().copied().unwrap_or(Kernel::Portable);
        Self::with_kernel(words, kernel)
    }

    /// Creates a search with the given kernel, or the portable one if the processor does not have it.
    #[must_use]
    pub fn with_kernel<W: AsRef<[u8]>>(words: &[W], kernel: Kernel) -> Self {
        let kernel = if Kernel::available().contains(&kernel) { kernel } else { Kernel::Portable };
        let words = words.iter().map(AsRef::as_ref).filter(|word| !word.is_empty());
        let needles: Vec<_> = words.map(Needle::new).collect();
        Self {
            #[cfg(target_arch = "x86_64")]
            fingerprints: needles.chunks(vector::GROUP).map(fingerprint::Fingerprint::new).collect(),
            needles,
            kernel,
        }
    }

    /// Length of the longest word in bytes.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.needles.iter().map(|needle| needle.bytes.len()).max().unwrap_or(0)
    }

    /// Calls `found` with the number of a word and the position of an occurrence, for every occurrence
    /// that begins before `starts` and ends in `hay`. The positions of one word ascend.
    pub fn search<F: FnMut(usize, usize)>(&self, hay: &[u8], starts: usize, mut found: F) {
        let starts = starts.min(hay.len());
        match self.kernel {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 | Kernel::Avx2 => {
                vector::search(self.kernel, &self.needles, &self.fingerprints, hay, starts, &mut found);
            }
            _ => portable::search(&self.needles, hay, starts, &mut found),
        }
    }
}

#[cfg(test)]
mod tests;
