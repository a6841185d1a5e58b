//! The detector of metadata on real file systems, compared with the tools of each file system.
//!
//! An image is made without a mount. A tool of the file system says what each block holds; it
//! shares no code with the detector. The blocks of the image are then written past a detector in
//! two ways: in order onto an empty volume, as a copy of an image does (the detector has to learn
//! places while they are written), and one by one onto a volume that holds the image, as a mounted
//! file system does.

mod btrfs;
mod ext4;
mod xfs;

use frit_serve::hints::Detector;
use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Length of a write of a copy, in bytes.
const COPY_BYTES: u64 = 256 << 10;

/// Returns `true` if all programs are available. Prints a message otherwise.
fn have(programs: &[&str]) -> bool {
    let missing = |program: &&&str| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let extra = ["/usr/sbin", "/sbin"].map(PathBuf::from);
        !std::env::split_paths(&paths).chain(extra).any(|dir| dir.join(program).exists())
    };
    let gone: Vec<&&str> = programs.iter().filter(missing).collect();
    if !gone.is_empty() {
        eprintln!("SKIPPED: no {gone:?} on this machine");
    }
    gone.is_empty()
}

/// Runs a program, and returns its output.
fn run(program: &str, args: &[&str]) -> String {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let out = Command::new(program).args(args).env("PATH", path).output().unwrap();
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{program} {args:?}: {}\n{error}", out.status);
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Makes a directory with files: small ones, large ones, one of text, one with many extents.
fn files(dir: &Path) -> PathBuf {
    let root = dir.join("files");
    let many = root.join("many/deep");
    std::fs::create_dir_all(&many).unwrap();
    for i in 0..400 {
        std::fs::write(many.join(format!("a-small-file-{i}")), format!("file {i}\n").repeat(1 + i % 700))
            .unwrap();
    }
    let text: String = (0..300_000).map(|i| format!("{i}\n")).collect();
    std::fs::write(root.join("text"), text).unwrap();
    let mut x = 1u64;
    let noise: Vec<u8> = (0..3_000_000)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 56) as u8
        })
        .collect();
    std::fs::write(root.join("noise"), noise).unwrap();
    let holes = File::create(root.join("holes")).unwrap();
    (0..100).for_each(|i| holes.write_all_at(&[7; 8192], i * 32_768).unwrap());
    root
}

/// Blocks of an image, as a tool of its file system describes them.
#[derive(Default)]
struct Truth {
    block: u64,
    /// Unit in which a mounted file system writes, if it is not a block.
    unit: Option<u64>,
    metadata: BTreeSet<u64>,
    /// Metadata without a signature and at no fixed place, which no detector can find.
    unsigned: BTreeSet<u64>,
    data: BTreeSet<u64>,
}

/// Numbers of blocks.
#[derive(PartialEq, Eq, Debug)]
struct Score {
    metadata: usize,
    detected: usize,
    missed: usize,
    /// Missed, but without a signature.
    unsigned: usize,
    data: usize,
    /// Blocks of files that were taken for metadata.
    false_positives: usize,
}

impl Truth {
    fn score(&self, found: &BTreeSet<u64>) -> Score {
        let detected = self.metadata.intersection(found).count();
        Score {
            metadata: self.metadata.len(),
            detected,
            missed: self.metadata.len() - detected,
            unsigned: self.unsigned.difference(found).count(),
            data: self.data.len(),
            false_positives: self.data.intersection(found).count(),
        }
    }

    /// Keeps the metadata of blocks that the image contains: nothing is written for the others.
    fn keep(&mut self, written: &BTreeSet<u64>) {
        for set in [&mut self.metadata, &mut self.unsigned, &mut self.data] {
            set.retain(|b| written.contains(b));
        }
    }
}

/// An image and the volume onto which it is written.
struct Replay<'a> {
    image: &'a File,
    volume: File,
    bytes: u64,
    block: u64,
    detector: Detector,
    found: BTreeSet<u64>,
    written: BTreeSet<u64>,
}

impl Replay<'_> {
    fn new<'a>(image: &'a File, volume: File, block: u64) -> Replay<'a> {
        let bytes = image.metadata().unwrap().len();
        volume.set_len(bytes).unwrap();
        let (found, written) = (BTreeSet::new(), BTreeSet::new());
        let mut replay =
            Replay { image, volume, bytes, block, detector: Detector::new(bytes), found, written };
        replay.learn();
        replay
    }

    /// Supplies what the detector asks for from the volume.
    fn learn(&mut self) {
        while let Some(range) = self.detector.wanted() {
            let mut data = vec![0; (range.end - range.start) as usize];
            self.volume.read_exact_at(&mut data, range.start).unwrap();
            self.detector.supply(range.start, &data);
        }
    }

    /// Writes a range of the image, unless it is zero.
    fn write(&mut self, range: Range<u64>) {
        let mut data = vec![0; (range.end.min(self.bytes) - range.start) as usize];
        self.image.read_exact_at(&mut data, range.start).unwrap();
        let whole = |r: Range<u64>| r.start / self.block..r.end.div_ceil(self.block);
        let zero = data.iter().all(|b| *b == 0);
        if zero {
            return;
        }
        for (i, block) in data.chunks(self.block as usize).enumerate() {
            if block.iter().any(|b| *b != 0) {
                self.written.insert(range.start / self.block + i as u64);
            }
        }
        self.detector.observe(range.start, &data, &mut |r| self.found.extend(whole(r)));
        self.volume.write_all_at(&data, range.start).unwrap();
        self.learn();
    }
}

/// Writes an image in both ways, and compares what was detected with the truth.
fn scores(name: &str, image: &Path, truth: &mut Truth) -> (Score, Score) {
    let file = File::open(image).unwrap();
    let bytes = file.metadata().unwrap().len();
    let mut copy = Replay::new(&file, tempfile::tempfile().unwrap(), truth.block);
    (0..bytes).step_by(COPY_BYTES as usize).for_each(|at| copy.write(at..at + COPY_BYTES));
    truth.keep(&copy.written);
    let after_copy = truth.score(&copy.found);
    eprintln!("{name}, copied: {after_copy:?}, {:?}", copy.detector.file_systems());
    // A volume that holds the image already: single blocks, in an order far from sequential.
    let volume = File::options().read(true).write(true).open(image).unwrap();
    let mut live = Replay::new(&file, volume, truth.block);
    let unit = truth.unit.unwrap_or(truth.block);
    let units: BTreeSet<u64> = copy.written.iter().map(|b| b * truth.block / unit).collect();
    let units: Vec<u64> = units.into_iter().collect();
    for i in 0..units.len() {
        let at = units[(i * 7919) % units.len()] * unit;
        live.write(at..at + unit);
    }
    let score = truth.score(&live.found);
    for (way, found) in [("copied", &copy.found), ("live", &live.found)] {
        let missed: Vec<&u64> = truth.metadata.difference(found).take(10).collect();
        let wrong: Vec<&u64> = truth.data.intersection(found).take(10).collect();
        if !(missed.is_empty() && wrong.is_empty()) {
            eprintln!("{name}, {way}: missed {missed:?}, wrong {wrong:?}");
        }
    }
    eprintln!("{name}, live: {score:?}");
    (after_copy, score)
}

/// Parses `A-B` or `A`.
fn numbers(text: &str) -> Option<Range<u64>> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    Some(from.parse().ok()?..to.parse::<u64>().ok()? + 1)
}
