//! Overrides that make any stack small. The image of a large volume takes longer to recover, and
//! shows no more than that of a small one.

use frit_media::{MediumSpec, PcmConfig};
use frit_stack::layers::{LayerConfig, LayerKind};
use frit_stack::{Below, Layer, Stack};

/// Blocks of a NAND unit: those that the layer reserves, some for garbage collection, and some for
/// data.
const BLOCKS: u32 = 14;
/// Pages of a block.
const PAGES: u32 = 8;
/// Largest number of units and channels of a medium.
const UNITS: u32 = 2;
/// Sub-pages of PCM: few enough to run out in a short run.
const SLOTS: u64 = 120;
/// Blocks of a disk's cache: slightly more than the minimum.
const CACHED: u64 = 72;
/// Home pages of a chip.
const HOMES: u64 = 40;
// Bytes that are contiguous on a chip and are refreshed together.
const CHIP_STRIP: u64 = 16 << 10;
/// Size of a disk: one region of 1 MiB and a part of another.
const DISK_BYTES: u64 = 1280 << 10;
/// Size of an object, and number of objects.
const OBJECT_BYTES: u32 = 16 << 10;
const OBJECTS: u32 = 64;
/// Largest capacity of a layer that offers any.
const SMALL_BYTES: u64 = 448 << 10;
/// Factors of the capacity of NAND that are tried in turn: a layer above it may need more than the
/// smallest one has.
const SCALES: [u32; 4] = [1, 2, 4, 8];
/// Largest page of NAND. Larger ones slow down the images and show no more.
const PAGE_MOST: u32 = 16 << 10;

/// Returns the overrides that make a stack small, `key=value` each. Policies, page sizes and
/// sub-pages do not change. `load` reads the stack with overrides.
///
/// # Errors
/// The small stack cannot be built.
pub fn overrides(load: impl Fn(&[String]) -> frit_stack::Result<Stack>) -> frit_stack::Result<Vec<String>> {
    let given = load(&[])?;
    let mut scales = SCALES.into_iter().map(|scale| overrides_at(scale, &given, &load));
    let smallest = scales.next().unwrap_or_else(|| Ok(Vec::new()));
    smallest.or_else(|e| scales.find_map(Result::ok).ok_or(e))
}

fn overrides_at(
    scale: u32,
    given: &Stack,
    load: impl Fn(&[String]) -> frit_stack::Result<Stack>,
) -> frit_stack::Result<Vec<String>> {
    let layers = given.layers();
    let mut sets: Vec<String> =
        layers.iter().flat_map(|layer| [of_layer(layer), of_media(given, layer, scale)].concat()).collect();
    // The lowest first: the capacity of a layer follows from those below it.
    for (i, layer) in layers.iter().enumerate().rev() {
        // A durable layer offers less, since records take space.
        let durable = [&sets[..], &given.durable(true)].concat();
        if offers_any_size(layer.kind) && load(&durable)?.layer_bytes(i)? > SMALL_BYTES {
            sets.push(format!("{}.size={SMALL_BYTES}", layer.name));
        }
    }
    load(&[&sets[..], &given.durable(true)].concat())?.layer_bytes(0)?;
    Ok(sets)
}

/// Returns `true` if the layer has a parameter for its capacity. The value 0 stands for what the
/// devices have, so that they cannot become full.
fn offers_any_size(kind: LayerKind) -> bool {
    matches!(kind, LayerKind::Compress | LayerKind::Segments | LayerKind::Thin)
}

/// Returns the overrides of the media of a layer, with `scale` times the smallest capacity.
fn of_media(stack: &Stack, layer: &Layer, scale: u32) -> Vec<String> {
    let mut sets = Vec::new();
    let (mut pages, mut page) = (0, 4096);
    let media =
        |below: &(_, Below)| if let Below::Medium(i) = below.1 { Some(&stack.media()[i]) } else { None };
    for m in layer.on.iter().filter_map(media) {
        let MediumSpec::Nand(c) = &m.spec else { continue };
        let g = c.geometry;
        let mut set = |key: &str, value: u32| sets.push(format!("media.{}.{key}={value}", m.name));
        set("channels", g.channels.min(UNITS));
        set("chips_per_channel", 1);
        set("dies_per_chip", 1);
        set("planes_per_die", 1);
        set("blocks_per_plane", g.blocks_per_plane.min(BLOCKS * scale));
        set("pages_per_block", g.pages_per_block.min(PAGES));
        page = g.page_bytes.min(PAGE_MOST);
        set("page_bytes", page);
        pages += g.channels.min(UNITS) * BLOCKS * PAGES * scale;
    }
    for m in layer.on.iter().filter_map(media) {
        match &m.spec {
            MediumSpec::Pcm(c) => {
                let channels = c.geometry.channels.min(UNITS);
                let ring = redo_ring_bytes(layer, c);
                let chip = chip_bytes(layer, c, channels, pcm_bytes(layer, page, pages) + ring);
                sets.push(format!("media.{}.channels={channels}", m.name));
                sets.push(format!("media.{}.chips_per_channel=1", m.name));
                sets.push(format!("media.{}.chip_bytes={chip}", m.name));
                if layer.kind == LayerKind::Ntl {
                    sets.push(format!("media.{}.interleave_bytes={CHIP_STRIP}", m.name));
                    if c.refresh_bytes.is_some() {
                        sets.push(format!("media.{}.refresh_bytes={CHIP_STRIP}", m.name));
                    }
                }
            }
            MediumSpec::Dram(_) => sets.push(format!("media.{}.bytes={}", m.name, 64 * u64::from(page))),
            MediumSpec::Disk(_) => sets.push(format!("media.{}.bytes={DISK_BYTES}", m.name)),
            MediumSpec::Object(c) => {
                sets.push(format!("media.{}.object_bytes={}", m.name, c.object_bytes.min(OBJECT_BYTES)));
                sets.push(format!("media.{}.objects={}", m.name, c.objects.min(OBJECTS)));
                sets.push(format!("media.{}.connections={}", m.name, c.connections.min(UNITS)));
            }
            MediumSpec::Nand(_) => {}
        }
    }
    sets
}

/// Returns the overrides of the layer's own parameters.
fn of_layer(of: &Layer) -> Vec<String> {
    let mut sets = Vec::new();
    let layer = &of.name;
    match of.kind {
        LayerKind::Hfsl => {
            sets.push(format!("{layer}.heat_window=64"));
            for key in ["capacity", "FLASHSIZE", "PAGESIZE", "BLOCKSIZE", "BLOCKNUM", "PCMSIZE"] {
                sets.push(format!("{layer}.{key}=0"));
            }
            if levels_pcm(of) {
                for set in ["ranks=1", "banks=2", "cubes=2", "region=8", "stripe=2K", "interval=1"] {
                    sets.push(format!("{layer}.pcm_wear_{set}"));
                }
            }
        }
        LayerKind::Ftl | LayerKind::Nameless | LayerKind::NamelessDevice | LayerKind::Zns => {
            sets.push(format!("{layer}.capacity=0"));
        }
        LayerKind::Cache => {
            for set in ["cache_bytes=0", "wear_ranks=1", "wear_banks=2", "wear_cubes=2"] {
                sets.push(format!("{layer}.{set}"));
            }
            // A small region and interval make the wear leveler move often. Regions apply only
            // within a bank.
            for set in ["wear_stripe=4K", "wear_region=8", "wear_interval=2"] {
                sets.push(format!("{layer}.{set}"));
            }
        }
        LayerKind::Ntl => {
            for set in ["block_pages=4", "log_share=0.05", "wear_ranks=1", "wear_banks=1", "wear_cubes=2"] {
                sets.push(format!("{layer}.{set}"));
            }
            // A stripe holds a refresh unit; the short interval makes the wear leveler move often.
            for set in ["wear_stripe=16K", "wear_region=8", "wear_interval=4"] {
                sets.push(format!("{layer}.{set}"));
            }
        }
        // Small sets are full soon, and their metadata is one sector.
        LayerKind::Flashcache => {
            for set in ["set_blocks=8", "metadata_block=512", "clean_batch=4"] {
                sets.push(format!("{layer}.{set}"));
            }
        }
        LayerKind::Flashtier
        | LayerKind::Ssc
        | LayerKind::Concat
        | LayerKind::Delay
        | LayerKind::HostLink
        | LayerKind::Flaky
        | LayerKind::Record => {}
        LayerKind::Stripe | LayerKind::Thin => sets.push(format!("{layer}.chunk=8K")),
        // Few pages fit, so that pages are evicted often.
        LayerKind::DramCache => {
            sets.extend(["capacity=32K", "write_back=8K"].map(|set| format!("{layer}.{set}")));
        }
        // Few marks stay, so that marks are cleared often.
        LayerKind::Mirror => {
            for set in ["read_chunk=8K", "region=16K", "keep_marked=4"] {
                sets.push(format!("{layer}.{set}"));
            }
        }
        LayerKind::Compress => {
            for set in ["chunk=8K", "buffer_chunks=3"] {
                sets.push(format!("{layer}.{set}"));
            }
        }
        // Little space to spare, so that objects are cleaned often.
        LayerKind::Segments => {
            for set in ["chunk=4K", "over_provisioning=50", "clean_below=40", "buffers=2"] {
                sets.push(format!("{layer}.{set}"));
            }
        }
    }
    if offers_any_size(of.kind) {
        sets.push(format!("{layer}.size=0"));
    }
    sets
}

/// Returns `true` if the layer is an HFSL with a wear leveler of PCM.
fn levels_pcm(layer: &Layer) -> bool {
    matches!(&layer.config, LayerConfig::Hfsl(c) if c.pcm_wear.wear_leveling != "none")
}

/// Returns the bytes of PCM that a small layer needs.
fn pcm_bytes(layer: &Layer, page: u32, pages: u32) -> u64 {
    match &layer.config {
        LayerConfig::Hfsl(_) => {
            let sub = u64::from(page / 8).max(512);
            let plain = 2 * 8 * u64::from(pages) + SLOTS * (sub + 64) + 4 * sub;
            // Registers of a line for each stripe of 2 KiB, twice over files, and gaps: as much
            // again, at most.
            if levels_pcm(layer) { plain * 2 } else { plain }
        }
        LayerConfig::Cache(c) => {
            let plain = (32 << 10) + CACHED * (4096 + 64);
            // Wear leveling adds registers for stripes of 4 KiB, twice over files, and gaps: a
            // quarter each, at most.
            if c.wear.wear_leveling == "none" { plain } else { plain * 3 / 2 }
        }
        LayerConfig::Ntl(c) => {
            let plain = u64::from(UNITS) * (HOMES * (4096 + 64) + 4 * CHIP_STRIP + (16 << 10));
            if c.wear.wear_leveling == "none" { plain } else { plain * 3 / 2 }
        }
        // They have no PCM.
        LayerConfig::Ftl(_)
        | LayerConfig::Flashtier(_)
        | LayerConfig::Nameless(_)
        | LayerConfig::NamelessDevice(_)
        | LayerConfig::Ssc(_)
        | LayerConfig::Zns(_)
        | LayerConfig::Flashcache(_)
        | LayerConfig::Concat(_)
        | LayerConfig::Stripe(_)
        | LayerConfig::Mirror(_)
        | LayerConfig::Thin(_)
        | LayerConfig::Compress(_)
        | LayerConfig::Segments(_)
        | LayerConfig::Delay(_)
        | LayerConfig::HostLink(_)
        | LayerConfig::DramCache(_)
        | LayerConfig::Flaky(_)
        | LayerConfig::Record(_) => 0,
    }
}

/// Returns the bytes of a ring of redo records whose size the stack states.
fn redo_ring_bytes(layer: &Layer, pcm: &PcmConfig) -> u64 {
    match &layer.config {
        LayerConfig::Hfsl(c) => u64::from(c.redo_lines) * u64::from(pcm.geometry.line_bytes),
        _ => 0,
    }
}

fn chip_bytes(layer: &Layer, c: &PcmConfig, channels: u32, bytes: u64) -> u64 {
    let g = c.geometry;
    if layer.kind == LayerKind::Ntl {
        return bytes.div_ceil(u64::from(channels)).next_multiple_of(CHIP_STRIP);
    }
    let strip =
        u64::from(g.interleave_bytes.max(g.line_bytes).max(4096)).max(c.refresh_bytes.map_or(0, u64::from));
    bytes.div_ceil(u64::from(channels)).next_multiple_of(strip)
}
