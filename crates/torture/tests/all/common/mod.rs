//! Small stacks of every kind, and functions that the tests of layers share.

use frit_stack::Stack;
use frit_torture::block::campaign::run;
use frit_torture::block::case::TortureMode;
use frit_torture::block::options::CampaignOptions;
use frit_torture::block::report::CampaignReport;
use frit_torture::block::small_stack;
use frit_torture::block::target::StackTarget;

/// Names of the stacks in `stacks/`, fast ones first.
pub(crate) const STACKS: [&str; 8] =
    ["none-512", "none-4k", "array-4k", "cache-1k", "cache-4k", "level-2k", "both-4k", "level-16k"];

/// FTLs in `stacks/`.
pub(crate) const FTLS: [&str; 13] = [
    "ftl-4k",
    "ftl-units",
    "ftl-merge",
    "ftl-slc",
    "ftl-slc-direct",
    "ftl-slc-dynamic",
    "ftl-slc-shared",
    "ftl-streams",
    "ftl-dftl",
    "ftl-fast",
    "ftl-bast",
    "ftl-block",
    "ftl-one-unit",
];

/// FTLs with a write cache of one bit a cell.
pub(crate) const CACHED_FTLS: &[&str] = &["ftl-slc", "ftl-slc-direct"];

/// FTLs whose blocks change between one and all bits a cell.
pub(crate) const DYNAMIC_FTLS: &[&str] = &["ftl-slc-dynamic", "ftl-slc-shared"];

/// Solid-state caches in `stacks/`: deferred and synchronous durability, write-through, and streams past the
/// cache.
pub(crate) const SSCS: [&str; 4] = ["ssc-4k", "ssc-sync", "ssc-through", "ssc-bypass"];

/// Nameless-write devices in `stacks/`.
pub(crate) const NAMELESS: [&str; 3] = ["nameless-4k", "nameless-units", "nameless-queues"];

/// Nameless-write devices without a volume in `stacks/`, whose flushes are atomic.
pub(crate) const NAMELESS_DEVICES: [&str; 2] = ["nameless-device", "nameless-device-4k"];

/// Zoned devices in `stacks/`.
pub(crate) const ZONED: [&str; 3] = ["zns-4k", "zns-units", "zns-narrow"];

/// The built-in stack of a disk behind a cache, which variants change by overrides.
pub(crate) const HALO: &str = "halo-small";

/// Size of the disk that is half a region, for fast examinations.
const HALF: &str = "media.disk.bytes=640K";

/// Replaces the wear leveler of [`HALO`] by none. Each leveler is a variant of its own.
const NOT_LEVELED: &str = "cache.wear_leveling=none";

/// Modes of [`HALO`] by name. Policies and wear levelers are variants with their own names.
const MODES: [(&str, &str); 8] = [
    ("halo", ""),
    ("halo-half", HALF),
    ("cleaning", "cache.dirty_low=0 cache.flying=0.2"),
    ("read-caching", "cache.read_caching=true"),
    ("write-through", "cache.mode=write-through"),
    ("write-around", "cache.mode=write-around cache.dirty_low=0"),
    ("around-read-caching", "cache.mode=write-around cache.read_caching=true"),
    ("bypass", "cache.bypass_bytes=8K cache.policy=lru"),
];

/// The built-in NTL stack, which variants change by overrides.
pub(crate) const NTL: &str = "ntl-small";

/// Variants of [`NTL`] by name.
pub(crate) const MAPPINGS: [(&str, &str); 9] = [
    ("ntl-static", "ntl.log=none"),
    ("ntl-dynamic", "ntl.mapping=dynamic ntl.log=none ntl.merge=row"),
    ("ntl-block", "ntl.mapping=block ntl.log=none"),
    ("ntl-full", "ntl.log=full"),
    ("ntl-full-row", "ntl.mapping=dynamic ntl.log=full ntl.merge=row"),
    ("ntl-coarse", "ntl.mapping=block ntl.log=coarse"),
    ("ntl-remap", "ntl.log=remap"),
    ("ntl-512", "ntl.page_bytes=512 ntl.log=full ntl.merge=row"),
    ("ntl-buffer", "ntl.log=full ntl.log_buffer=dram"),
];

/// The built-in stack of a mirror behind a cache.
pub(crate) const HALO_MIRROR: &str = "halo-mirror";

/// The built-in HFSL stack, which variants change by overrides.
const HFSL: &str = "hfsl-small";

/// Variants of [`HFSL`] by name, each with a wear leveler below PCM. Names `redo-LINES-LEVELER` are
/// variants with a ring of redo records of that size.
pub(crate) const PCM_LEVELERS: [(&str, &str); 6] = [
    ("hfsl-start-gap", "pcm_wear_leveling=start-gap"),
    ("hfsl-start-gap-both", "pcm_wear_leveling=start-gap FUSION_METHOD=both page_bytes=4K"),
    ("hfsl-randomized", "pcm_wear_leveling=randomized-start-gap FUSION_METHOD=cache"),
    ("hfsl-round-robin", "pcm_wear_leveling=round-robin"),
    ("hfsl-sfc", "pcm_wear_leveling=sfc FUSION_METHOD=both"),
    ("hfsl-security-refresh", "pcm_wear_leveling=security-refresh"),
];

/// Stacks of several layers in `stacks/`, which are made small.
pub(crate) const TREES: [&str; 14] = [
    "tree-halo-hfsl",
    "tree-halo-ftl",
    "tree-concat",
    "tree-stripe",
    "tree-halo-stripe",
    "tree-dram-cache",
    "tree-four",
    "tree-mixed",
    "tree-two-caches",
    "tree-halo-ntl",
    "tree-segments",
    "tree-nand-array",
    "tree-halo-ssc",
    "tree-ssc-thin",
];

/// Numbers of lines of the ring of redo records: a record is overwritten by the next one, by the
/// next but one, or rarely.
pub(crate) const REDO_LINES: [u32; 3] = [1, 2, 64];

fn path(name: &str) -> String {
    format!("{}/stacks/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn target(name: &str) -> StackTarget {
    let Some((base, sets)) = variant_of(name) else {
        let path = path(name);
        if name.starts_with("tree-") {
            let small =
                small_stack::overrides(|more| Stack::load(&path, more)).expect("a tree of these tests");
            let load = move |more: &[String]| Stack::load(&path, &[&small, more].concat());
            return StackTarget::new(load).expect("a tree of these tests");
        }
        return StackTarget::new(move |sets| Stack::load(&path, sets)).expect("a stack of these tests");
    };
    let load = |more: &[String]| Stack::load(base, &[more, &sets].concat());
    let small = small_stack::overrides(load).expect("a variant of these tests");
    let small: Vec<String> = small.into_iter().chain(sets).collect();
    StackTarget::new(move |more| Stack::load(base, &small.iter().chain(more).cloned().collect::<Vec<_>>()))
        .expect("a variant of these tests")
}

/// Returns the built-in stack of a variant, and its overrides.
fn variant_of(name: &str) -> Option<(&'static str, Vec<String>)> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    if name == HALO_MIRROR {
        return Some((HALO_MIRROR, words("media.left.bytes=640K media.right.bytes=640K")));
    }
    if let Some(leveler) = name.strip_prefix("ntl-leveler-") {
        return Some((NTL, words(&format!("ntl.wear_leveling={leveler}"))));
    }
    if let Some((_, sets)) = PCM_LEVELERS.iter().find(|(n, _)| *n == name) {
        return Some((HFSL, words(sets)));
    }
    if let Some(ring) = name.strip_prefix("redo-") {
        let (lines, leveler) = ring.split_once('-')?;
        return Some((HFSL, words(&format!("redo_lines={lines} pcm_wear_leveling={leveler} SSW=1024"))));
    }
    if let Some((_, sets)) = MAPPINGS.iter().find(|(n, _)| *n == name) {
        return Some((NTL, words(sets)));
    }
    let text = if let Some(policy) = name.strip_prefix("policy-") {
        format!("{HALF} cache.policy={policy} cache.flying=0 {NOT_LEVELED}")
    } else if let Some(leveler) = name.strip_prefix("leveler-") {
        format!("{HALF} cache.wear_leveling={leveler}")
    } else {
        let (_, sets) = MODES.iter().find(|(n, _)| *n == name)?;
        let size = if name == "halo" { "" } else { HALF };
        format!("{size} {sets} {NOT_LEVELED}")
    };
    Some((HALO, words(&text)))
}

/// Prints violations, each with the command line that reproduces it.
pub(crate) fn complain(name: &str, r: &CampaignReport) {
    let stack = match variant_of(name) {
        Some((base, sets)) => sets.iter().fold(base.to_owned(), |s, set| format!("{s} --set {set}")),
        None if name.starts_with("tree-") => format!("crates/torture/stacks/{name}.toml"),
        None => format!("crates/torture/stacks/{name}.toml --full-size"),
    };
    for f in r.violations.iter().take(8) {
        println!("{name}: {:?}: {}", f.violation.oracle, f.violation.what);
        println!("  frit torture --stack {stack} --seed 1 --replay {}", f.case);
    }
}

/// Tortures a variant and prints a row of the table that [`many_images`] begins.
pub(crate) fn torture(name: &str, options: CampaignOptions) -> CampaignReport {
    let options = CampaignOptions { nested_every: 256, alive_every: 32, ..options };
    let r = run(&target(name), &options, &|_| {});
    println!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} / {} / {} | {:.1} |",
        r.workloads,
        r.requests,
        r.commands,
        r.images,
        r.nested,
        r.distinct_images,
        r.distinct_states,
        r.faults,
        r.faults_struck,
        r.faults_seen,
        r.seconds
    );
    complain(name, &r);
    r
}

/// Returns the value of an environment variable. `ONLY` (a name), `SEED`, `MODES` and `ITEMS`
/// narrow a search by hand.
pub(crate) fn asked<V: std::str::FromStr>(key: &str) -> Option<V> {
    std::env::var(key).ok()?.parse().ok()
}

/// One in this number of crash images is examined. With `LONG=1`, which `make explore` sets, all are; they take several
/// minutes longer on two processors.
const SAMPLING: usize = 32;
/// Largest number of cuts of a workload when a share of the images is examined: few, so that the images come from many
/// workloads. Images of one workload differ less than those of two.
const SAMPLED_CUTS: usize = 100;

/// Returns the value for `make test`, or the second one with `LONG=1`.
pub(crate) fn short_or_long<V>(short: V, long: V) -> V {
    if all_images() { long } else { short }
}

fn all_images() -> bool {
    std::env::var_os("LONG").is_some()
}

/// Returns the number of images to examine, of `all`.
pub(crate) fn share_of(all: usize) -> usize {
    if all_images() { all } else { all.div_ceil(SAMPLING) }
}

/// Limits the cuts of each workload, so that a share of the images has as many workloads as all.
pub(crate) fn sampled(options: CampaignOptions) -> CampaignOptions {
    CampaignOptions { cuts_most: (!all_images()).then_some(SAMPLED_CUTS), ..options }
}

/// Cuts many workloads of each variant, which must give the wanted number of distinct images.
/// Returns the total of distinct images, or `usize::MAX` if `ONLY` is set.
pub(crate) fn many_images(variants: &[(String, usize)]) -> usize {
    println!(
        "| variant | workloads | requests | commands | images | of recoveries | distinct images | states | faults | s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let only: Option<String> = asked("ONLY");
    let modes: Option<String> = asked("MODES");
    let modes: Vec<TortureMode> = match modes {
        Some(m) => m.split(',').filter_map(|m| m.parse().ok()).collect(),
        None => vec![TortureMode::Cuts, TortureMode::Files, TortureMode::Cuts, TortureMode::Exhaustive],
    };
    let (mut distinct, mut images, mut violations, mut seconds) = (0, 0, 0, 0.0);
    for (name, wanted) in variants.iter().filter(|(n, _)| only.as_ref().is_none_or(|o| n.contains(o))) {
        let items = asked("ITEMS").unwrap_or(if *wanted > 1 { 40 } else { 4 });
        let options = CampaignOptions {
            seed: asked("SEED").unwrap_or(1),
            modes: modes.clone(),
            images: (*wanted > 1).then_some(share_of(*wanted)),
            items: Some(items),
            ..CampaignOptions::default()
        };
        let r = torture(name, sampled(options));
        distinct += r.distinct_images;
        images += r.images;
        violations += r.violations.len();
        seconds += r.seconds;
    }
    println!("{distinct} distinct crash images of {images}, {violations} violations, {seconds:.0} s");
    assert_eq!(violations, 0);
    if only.is_some() { usize::MAX } else { distinct }
}

/// Injects faults and damage into each variant. Returns the number of faults that struck, and of
/// those that were reported to a client.
pub(crate) fn many_faults(variants: &[(String, usize)], modes: &[TortureMode]) -> (u64, u64) {
    let (mut struck, mut seen, mut violations) = (0, 0, 0);
    for (name, _) in variants {
        let items = Some(asked("ITEMS").unwrap_or_else(|| short_or_long(modes.len() as u32, 8)));
        let seed = asked("SEED").unwrap_or(1);
        let r = torture(
            name,
            CampaignOptions {
                seed,
                modes: modes.to_vec(),
                items,
                cuts_most: (!all_images()).then_some(150),
                ..CampaignOptions::default()
            },
        );
        struck += r.faults_struck;
        seen += r.faults_seen;
        violations += r.violations.len();
    }
    println!("{struck} faults struck, {seen} were reported, {violations} violations");
    assert_eq!(violations, 0);
    (struck, seen)
}
