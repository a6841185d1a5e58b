//! Volumes with known contents and a full history of their writes.

use crate::common::{SMALL, files, pattern};
use frit_core::Hints;
use frit_media::MediumSpec;
use frit_stack::Stack;
use frit_volume::{CreateOptions, OpenOptions, Volume};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::path::Path;

/// Sizes of a block and of a sector, in bytes.
pub(crate) const BLOCK: usize = 4096;
pub(crate) const SECTOR: usize = 512;
/// Maximum number of blocks that are written.
const BLOCKS_MOST: usize = 480;

/// A kind of volume: a built-in stack or one of these tests, its overrides, and the overrides that
/// enlarge it.
pub(crate) struct Kind {
    pub name: &'static str,
    pub base: &'static str,
    pub sets: &'static str,
    pub larger: &'static str,
}

const LEVELED: &str = "wear_ranks=1 wear_banks=2 wear_cubes=2 wear_stripe=4K wear_region=8 wear_interval=2";
const LEVELED_NTL: &str =
    "wear_ranks=1 wear_banks=1 wear_cubes=2 wear_stripe=16K wear_region=8 wear_interval=4";

const LEVELED_HFSL: &str = "pcm.chip_bytes=192K pcm_wear_ranks=1 pcm_wear_banks=2 pcm_wear_cubes=2 pcm_wear_stripe=4K \
    pcm_wear_region=8 pcm_wear_interval=1";

/// Every layer, with and without wear levelers of PCM.
pub(crate) const KINDS: [Kind; 13] = [
    Kind { name: "hfsl", base: "hfsl", sets: "", larger: "nand.blocks_per_plane=48" },
    Kind {
        name: "hfsl-start-gap",
        base: "hfsl",
        sets: "pcm_wear_leveling=start-gap",
        larger: "nand.blocks_per_plane=48",
    },
    Kind {
        name: "hfsl-security-refresh",
        base: "hfsl",
        sets: "pcm_wear_leveling=security-refresh",
        larger: "nand.blocks_per_plane=48",
    },
    Kind { name: "halo", base: "halo-small", sets: "wear_leveling=none", larger: "media.disk.bytes=3M" },
    Kind {
        name: "halo-start-gap",
        base: "halo-small",
        sets: "wear_leveling=start-gap",
        larger: "media.disk.bytes=3M",
    },
    Kind {
        name: "halo-security-refresh",
        base: "halo-small",
        sets: "wear_leveling=security-refresh",
        larger: "media.disk.bytes=3M",
    },
    Kind { name: "ntl", base: "ntl-small", sets: "", larger: "media.pcm.chip_bytes=1M" },
    Kind {
        name: "ntl-dynamic-row",
        base: "ntl-small",
        sets: "mapping=dynamic merge=row",
        larger: "media.pcm.chip_bytes=1M",
    },
    Kind {
        name: "ntl-start-gap",
        base: "ntl-small",
        sets: "wear_leveling=start-gap",
        larger: "media.pcm.chip_bytes=1M",
    },
    Kind { name: "ssc", base: "flashtier-small", sets: "", larger: "media.disk.bytes=3M" },
    Kind {
        name: "ssc-checkpoint",
        base: "flashtier-small",
        sets: "flush=checkpoint mapping_unit=0 nand.page_bytes=4K",
        larger: "media.disk.bytes=3M",
    },
    Kind {
        name: "ssc-synchronous",
        base: "flashtier-small",
        sets: "durability=synchronous",
        larger: "media.disk.bytes=3M",
    },
    Kind { name: "ntl-sfc", base: "ntl-small", sets: "wear_leveling=sfc", larger: "media.pcm.chip_bytes=1M" },
];

impl Kind {
    pub(crate) fn is_halo(&self) -> bool {
        self.base == "halo-small"
    }

    pub(crate) fn is_ssc(&self) -> bool {
        self.base == "flashtier-small"
    }

    pub(crate) fn is_ntl(&self) -> bool {
        self.base == "ntl-small"
    }

    /// Returns `true` if both copies of the record of a page changed, or more than one page: the pages can
    /// be the two copies of one of metadata. The pages of NAND are followed by the first copies of all
    /// records, and then the second ones (docs/reference/media.md).
    pub(crate) fn both_copies_in_nand(&self, now: &[u8], was: &[u8]) -> bool {
        const RECORD: usize = 24;
        let stack = self.stack("");
        let medium = stack.media().iter().find(|m| m.name == "nand");
        let Some(MediumSpec::Nand(nand)) = medium.map(|m| &m.spec) else { return false };
        let pages = (nand.geometry.bytes() as usize) / BLOCK;
        let changed = |at: usize, len: usize| now.get(at..at + len) != was.get(at..at + len);
        let copy = |page: usize, copy: usize| pages * BLOCK + (copy * pages + page) * RECORD;
        (0..pages).any(|page| (0..2).all(|n| changed(copy(page, n), RECORD)))
            || (0..pages).filter(|page| changed(page * BLOCK, BLOCK)).count() > 1
    }

    /// Returns the stack with additional overrides.
    pub(crate) fn stack(&self, more: &str) -> Stack {
        let small = match self.base {
            "halo-small" => "media.pcm.chip_bytes=160K media.disk.bytes=2M",
            "flashtier-small" => {
                "media.nand.planes_per_die=1 media.nand.blocks_per_plane=10 media.nand.pages_per_block=8 \
                 media.disk.bytes=2M clean_batch=8"
            }
            "ntl-small" => {
                "chip_bytes=512K interleave_bytes=16K refresh_bytes=16K block_pages=4 log_share=0.05"
            }
            _ => "",
        };
        let leveled = match self.base {
            _ if !self.sets.contains("wear_leveling") => "",
            "hfsl" => LEVELED_HFSL,
            "ntl-small" => LEVELED_NTL,
            _ => LEVELED,
        };
        let sets = [small, leveled, self.sets, more].join(" ");
        let sets: Vec<String> = sets.split_whitespace().map(str::to_owned).collect();
        if self.base == "hfsl" {
            return Stack::parse("small", SMALL, &sets).unwrap();
        }
        Stack::load(self.base, &sets).unwrap()
    }
}

/// The files of a volume, by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Reads the files of a volume.
pub(crate) fn snapshot(dir: &Path) -> Files {
    files(dir).into_iter().collect()
}

/// Writes the files of a volume.
pub(crate) fn write_files(dir: &Path, files: &Files) {
    std::fs::create_dir_all(dir).unwrap();
    for (name, bytes) in files {
        std::fs::write(dir.join(name), bytes).unwrap();
    }
}

/// State in which a volume was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ShutdownKind {
    /// Closed properly.
    Closed,
    /// Its program was killed after a flush of all data.
    Killed,
}

/// A closed or crashed volume with known contents.
pub(crate) struct TestVolume {
    pub kind: &'static Kind,
    pub left: ShutdownKind,
    /// Its files now, and at an earlier time.
    pub files: Files,
    pub earlier: Files,
    /// All versions of each sector, the last one last; 0 reads as zeros.
    pub history: Vec<Vec<u32>>,
}

/// Returns the bytes of a sector in a version.
pub(crate) fn sector(number: usize, version: u32) -> Vec<u8> {
    if version == 0 { vec![0; SECTOR] } else { pattern((number * SECTOR) as u64, version, SECTOR) }
}

/// A volume with a record of its expected contents.
struct Writer {
    volume: Volume,
    history: Vec<Vec<u32>>,
    version: u32,
}

impl Writer {
    fn write(&mut self, first: usize, sectors: usize) {
        self.version += 1;
        let bytes: Vec<u8> = (first..first + sectors).flat_map(|s| sector(s, self.version)).collect();
        self.volume.write((first * SECTOR) as u64, &bytes, Hints::NONE).unwrap();
        self.history[first..first + sectors].iter_mut().for_each(|h| h.push(self.version));
    }

    fn discard(&mut self, first: usize, sectors: usize) {
        self.volume.discard((first * SECTOR) as u64, (sectors * SECTOR) as u64).unwrap();
        self.history[first..first + sectors].iter_mut().for_each(|h| h.push(0));
    }

    fn some(&mut self, rng: &mut SmallRng, requests: usize) {
        let all = self.history.len();
        let used = all.min(BLOCKS_MOST * 8);
        for _ in 0..requests {
            let sectors = if rng.random_bool(0.5) { 8 } else { rng.random_range(1..=24) };
            let first = rng.random_range(0..used - sectors);
            let first = if sectors == 8 { first / 8 * 8 } else { first };
            match rng.random_range(0..10u8) {
                0 => self.discard(first, sectors),
                1 => drop(self.volume.step(8).unwrap()),
                _ => self.write(first, sectors),
            }
        }
    }
}

impl TestVolume {
    /// Creates a volume of a kind, uses it in two sessions, and leaves it.
    pub(crate) fn new(kind: &'static Kind, left: ShutdownKind, seed: u64, dir: &Path) -> TestVolume {
        let mut rng = SmallRng::seed_from_u64(seed);
        let options = CreateOptions { stack: kind.stack(""), force: false };
        let volume = Volume::create(dir, &options).unwrap();
        let sectors = (volume.bytes() as usize) / SECTOR;
        let mut w = Writer { volume, history: vec![vec![0]; sectors], version: 0 };
        for block in 0..(sectors / 8).min(BLOCKS_MOST) {
            if !block.is_multiple_of(5) {
                w.write(block * 8, 8);
            }
        }
        w.some(&mut rng, 60);
        w.volume.close().unwrap();
        let earlier = snapshot(dir);
        w.volume = Volume::open(dir, &OpenOptions::default()).unwrap();
        w.some(&mut rng, 160);
        w.volume.flush().unwrap();
        match left {
            ShutdownKind::Closed => w.volume.close().unwrap(),
            ShutdownKind::Killed => drop(w.volume),
        }
        let files = snapshot(dir);
        std::fs::remove_dir_all(dir).unwrap();
        TestVolume { kind, left, files, earlier, history: w.history }
    }

    /// Returns the number of its blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.history.len() / 8
    }

    /// Returns `true` if a block holds the bytes that were written last.
    pub(crate) fn is_right(&self, block: usize, bytes: &[u8]) -> bool {
        self.each(block, bytes, |number, part| sector(number, *self.history[number].last().unwrap()) == part)
    }

    /// Returns `true` if each sector of a block holds one of the versions that were written.
    pub(crate) fn is_some_version(&self, block: usize, bytes: &[u8]) -> bool {
        self.each(block, bytes, |number, part| {
            self.history[number].iter().any(|&v| sector(number, v) == part)
        })
    }

    fn each(&self, block: usize, bytes: &[u8], holds: impl Fn(usize, &[u8]) -> bool) -> bool {
        bytes.chunks(SECTOR).enumerate().all(|(i, part)| holds(block * 8 + i, part))
    }
}
