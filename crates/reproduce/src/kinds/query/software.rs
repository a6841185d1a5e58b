//! Word query by software on this machine: blocks of a file are read and searched.

use super::live::ThreadTimes;
use crate::{Error, Result};
use frit_isp::Searcher;
use serde::Serialize;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A query by software.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SoftwareRun {
    /// Time from opening the file to closing it.
    pub total_ns: u64,
    /// Time in which the thread waited for a processor that had other work.
    pub waited_ns: u64,
    /// Processor time of the thread.
    pub cpu_ns: u64,
    /// System calls: open, reads, close.
    pub requests: u64,
}

/// Counts words as the software of the paper: each word is compared at every position, byte by byte up
/// to the first difference, as by `strncmp` (ISPFS paper, section 5.2).
pub(super) fn by_position(path: &Path, block: u64, words: &[String]) -> Result<(SoftwareRun, Vec<u64>)> {
    let longest = words.iter().map(String::len).max().unwrap_or(1);
    scan(path, block, longest, words.len(), |bytes, starts, counts| {
        for at in 0..starts {
            for (word, count) in words.iter().zip(counts.iter_mut()) {
                let equal = bytes[at..].iter().zip(word.as_bytes()).take_while(|(a, b)| a == b).count();
                *count += u64::from(equal == word.len());
            }
        }
    })
}

/// Counts words with the search of the engine, which compares them with vectors.
pub(super) fn by_vectors(path: &Path, block: u64, words: &[String]) -> Result<(SoftwareRun, Vec<u64>)> {
    let searcher = Searcher::new(words);
    scan(path, block, searcher.longest(), words.len(), |bytes, starts, counts| {
        searcher.search(bytes, starts, |word, _| counts[word] += 1);
    })
}

/// Reads a file in blocks. `search` counts the words that begin at the first positions of a buffer: those
/// whose longest word is complete, and at the end of the file all.
fn scan(
    path: &Path,
    block: u64,
    longest: usize,
    words: usize,
    mut search: impl FnMut(&[u8], usize, &mut [u64]),
) -> Result<(SoftwareRun, Vec<u64>)> {
    let failed = |source| Error::File { path: path.display().to_string(), source };
    let block = block.max(1) as usize;
    let mut buffer = vec![0; longest + block];
    let mut counts = vec![0; words];
    let began = ThreadTimes::now();
    let mut file = File::open(path).map_err(failed)?;
    let (mut requests, mut kept) = (1, 0);
    loop {
        let read = file.read(&mut buffer[kept..kept + block]).map_err(failed)?;
        requests += 1;
        let filled = kept + read;
        let starts = if read == 0 { filled } else { (filled + 1).saturating_sub(longest) };
        search(&buffer[..filled], starts, &mut counts);
        if read == 0 {
            break;
        }
        buffer.copy_within(starts..filled, 0);
        kept = filled - starts;
    }
    drop(file);
    requests += 1;
    let (total_ns, cpu_ns, waited_ns) = began.elapsed();
    Ok((SoftwareRun { total_ns, waited_ns, cpu_ns, requests }, counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_across_blocks_are_counted_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("text");
        std::fs::write(&path, "aaab storage aa strage storagestorag").unwrap();
        let words = ["storage", "aa", "x"].map(str::to_owned);
        for block in 1..40 {
            let (run, counts) = by_position(&path, block, &words).unwrap();
            assert_eq!(counts, [2, 3, 0], "{block}");
            // Opening, the reads of 36 bytes, the read at the end, closing.
            assert_eq!(run.requests, 3 + 36_u64.div_ceil(block), "{block}");
            assert_eq!(by_vectors(&path, block, &words).unwrap().1, counts, "{block}");
        }
        let missing = by_position(&place.path().join("none"), 1, &words).unwrap_err().to_string();
        assert!(missing.contains("none: "), "{missing}");
    }
}
