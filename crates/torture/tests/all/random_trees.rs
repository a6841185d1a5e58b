//! Trees that nobody has chosen: each is drawn from what the reference allows, and tortured.
//!
//! `TREES=from..to` tortures other ones, and prints each before its run. With `SEED` (see
//! `scripts/explore.sh`) others are drawn.

use crate::common::{asked, short_or_long};
use frit_stack::Stack;
use frit_torture::block::campaign::run;
use frit_torture::block::case::TortureMode;
use frit_torture::block::options::CampaignOptions;
use frit_torture::block::small_stack;
use frit_torture::block::target::StackTarget;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::fmt::Write;

/// Number of trees of the test.
const TREES: u64 = 24;
/// Number of them in `make test`.
const FEW_TREES: u64 = 6;

/// Most layers between the top layer and a medium.
const DEPTH: u32 = 4;

/// Layers above a device; those with several entries are drawn more often.
const COMPOSED: [&str; 15] = [
    "cache",
    "cache",
    "flashtier",
    "flashtier",
    "flashcache",
    "concat",
    "stripe",
    "mirror",
    "thin",
    "compress",
    "segments",
    "delay",
    "flaky",
    "dram-cache",
    "record",
];

/// A stack file that is being written.
struct TreeText {
    rng: SmallRng,
    names: u32,
    text: String,
}

impl TreeText {
    /// Returns a stack file with a random tree of layers.
    fn draw(seed: u64) -> String {
        let mut tree = TreeText { rng: SmallRng::seed_from_u64(seed), names: 0, text: String::new() };
        let depth = tree.rng.random_range(1..=DEPTH);
        tree.composed(depth);
        format!("about = \"Random tree {seed}\"\n{}", tree.text)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of.choose(&mut self.rng).copied().unwrap_or_default()
    }

    fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}{}", self.names)
    }

    fn put(&mut self, table: &str, lines: &str) {
        let _ = write!(self.text, "\n[{table}]\n{lines}\n");
    }

    fn medium(&mut self, kind: &str, lines: &str) -> String {
        let name = self.name(kind);
        self.put(&format!("media.{name}"), lines);
        name
    }

    fn pcm(&mut self) -> String {
        let (profile, bytes) =
            (self.one(&["pcm-p8p-2016", "pcm-halo-2012"]), self.one(&["64K", "128K", "256K"]));
        self.medium("pcm", &format!("profile = \"{profile}\"\nchip_bytes = \"{bytes}\""))
    }

    /// Returns the name of a device with the block interface, with at most `depth` layers above its
    /// lowest one.
    fn device(&mut self, depth: u32) -> String {
        if depth == 0 || self.rng.random_bool(0.12) { self.leaf() } else { self.composed(depth) }
    }

    /// Returns the name of a disk, or of a layer over media only.
    fn leaf(&mut self) -> String {
        match self.rng.random_range(0..8) {
            0 | 1 => {
                let profile = self.one(&["st3500320as-2008", "ram-disk-ddr4", "nvme-p4500-2017"]);
                let bytes = self.one(&["1M", "2M", "3M"]);
                self.medium("disk", &format!("profile = \"{profile}\"\nbytes = \"{bytes}\""))
            }
            2 => {
                let bytes = self.one(&["1M", "2M"]);
                let chips =
                    self.medium("chips", &format!("profile = \"bnvm-pcm-bytes\"\nchip_bytes = \"{bytes}\""));
                let (name, page) = (self.name("ntl"), self.one(&["512", "2K", "4K"]));
                self.put(&name, &format!("kind = \"ntl\"\npcm = \"{chips}\"\npage_bytes = \"{page}\""));
                name
            }
            3 | 4 => self.flash_alone("ftl"),
            5 => self.flash_alone("nameless"),
            _ => self.hfsl(),
        }
    }

    /// Returns the name of NAND alone.
    fn nand(&mut self, blocks: u32) -> String {
        let pages = self.rng.random_range(1..=2) * 8;
        let channels = self.rng.random_range(1..=2);
        let page = self.one(&["2K", "4K", "16K"]);
        self.medium(
            "nand",
            &format!(
                "profile = \"slc-k9-2016\"\nchannels = {channels}\nchips_per_channel = 1\n\
                 blocks_per_plane = {blocks}\npages_per_block = {pages}\npage_bytes = \"{page}\""
            ),
        )
    }

    /// Returns the name of a layer over NAND alone.
    fn flash_alone(&mut self, kind: &str) -> String {
        let (nand, name) = (self.nand(24), self.name(kind));
        let lines =
            format!("kind = \"{kind}\"\nnand = \"{nand}\"\nrecovery = \"scan\"\nover_provisioning = 0.25");
        self.put(&name, &lines);
        name
    }

    fn hfsl(&mut self) -> String {
        let nand = format!(
            "profile = \"slc-k9-2016\"\nchannels = {}\nchips_per_channel = 1\nblocks_per_plane = 32\n\
             pages_per_block = {}\npage_bytes = \"{}\"",
            self.rng.random_range(1..=2),
            self.rng.random_range(1..=2) * 8,
            self.one(&["512", "2K", "4K", "8K", "16K"]),
        );
        let count = if self.rng.random_bool(0.25) { 2 } else { 1 };
        let devices: Vec<String> =
            (0..count).map(|_| format!("\"{}\"", self.medium("nand", &nand))).collect();
        let (pcm, name) = (self.pcm(), self.name("hfsl"));
        let fusion = self.one(&["both", "cache", "same-level", "none"]);
        self.put(
            &name,
            &format!(
                "kind = \"hfsl\"\nnand = [{}]\npcm = \"{pcm}\"\nFUSION_METHOD = \"{fusion}\"\n\
                 over_provisioning = 0.25",
                devices.join(", ")
            ),
        );
        name
    }

    /// Returns the name of a layer over devices.
    fn composed(&mut self, depth: u32) -> String {
        let kind = self.one(&COMPOSED);
        let mut lines = format!("kind = \"{kind}\"\n");
        let several = matches!(kind, "concat" | "stripe" | "mirror");
        let role = match kind {
            "cache" | "flashtier" | "flashcache" => "disk",
            "segments" => "map",
            _ => "device",
        };
        if several {
            let count = self.rng.random_range(2..=3);
            let devices: Vec<String> =
                (0..count).map(|_| format!("\"{}\"", self.device(depth - 1))).collect();
            let _ = writeln!(lines, "devices = [{}]", devices.join(", "));
        } else {
            let device = self.device(depth - 1);
            let _ = writeln!(lines, "{role} = \"{device}\"");
        }
        match kind {
            "cache" => {
                let pcm = self.pcm();
                let _ = writeln!(lines, "pcm = \"{pcm}\"");
            }
            "flashtier" => {
                let nand = self.nand(16);
                let durability = self.one(&["deferred", "synchronous"]);
                let mode = self.one(&["write-back", "write-through"]);
                let flush = self.one(&["log", "checkpoint"]);
                let _ = writeln!(lines, "nand = \"{nand}\"\ndurability = \"{durability}\"");
                let _ = writeln!(lines, "mode = \"{mode}\"\nflush = \"{flush}\"");
            }
            "flashcache" => {
                let ssd = self.flash_alone("ftl");
                let _ = writeln!(lines, "ssd = \"{ssd}\"\nset_blocks = 16\nclean_batch = 8");
            }
            "segments" => {
                let profile = self.one(&["s3-standard-2019", "s3-express-2023"]);
                let objects = self.one(&["40", "64"]);
                let store = self.medium(
                    "store",
                    &format!("profile = \"{profile}\"\nobject_bytes = \"16K\"\nobjects = {objects}"),
                );
                let _ = writeln!(lines, "store = \"{store}\"");
            }
            "compress" => {
                let algorithm = self.one(&["lz4", "zstd", "none"]);
                let _ = writeln!(lines, "algorithm = \"{algorithm}\"");
            }
            _ => {}
        }
        let name = self.name(kind);
        if kind == "record" {
            let _ = writeln!(lines, "file = \"{name}.csv\"");
        }
        self.put(&name, &lines);
        name
    }
}

#[test]
fn random_trees_hold() {
    let asked_for: Option<String> = asked("TREES");
    let first = asked::<u64>("SEED").unwrap_or(0).wrapping_mul(TREES);
    let seeds =
        asked_for.as_deref().map_or(first..first.saturating_add(short_or_long(FEW_TREES, TREES)), |range| {
            let (from, to) = range.split_once("..").expect("TREES=from..to");
            from.parse().unwrap()..to.parse().unwrap()
        });
    let mut failed = Vec::new();
    for seed in seeds {
        let text = TreeText::draw(seed);
        if asked_for.is_some() {
            println!("{text}");
        }
        if let Err(what) = torture(&text, seed) {
            println!("{text}\n# {what}");
            failed.push(seed);
        }
    }
    assert_eq!(failed, [0; 0], "these trees fail: see above");
}

/// Runs each kind of test on a tree.
fn torture(text: &str, seed: u64) -> Result<(), String> {
    let load = {
        let text = text.to_owned();
        move |sets: &[String]| Stack::parse("random", &text, sets)
    };
    let small = small_stack::overrides(&load).map_err(|e| e.to_string())?;
    let target = StackTarget::new(move |more| load(&[&small, more].concat())).map_err(|e| e.to_string())?;
    let mut modes = TortureMode::all();
    // The slots of flashcache have no checksums (docs/reference/flashcache.md).
    modes.retain(|mode| *mode != TortureMode::Damage || !text.contains("flashcache"));
    let options = CampaignOptions {
        seed,
        items: Some(modes.len() as u32),
        cuts_most: Some(short_or_long(100, 400)),
        nested_every: 256,
        modes: modes.to_vec(),
        ..CampaignOptions::default()
    };
    let report = run(&target, &options, &|_| {});
    match report.violations.first() {
        Some(f) => Err(format!("case {}: {:?}: {}", f.case, f.violation.oracle, f.violation.what)),
        None => Ok(()),
    }
}
