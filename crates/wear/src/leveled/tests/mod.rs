mod content;
mod even;
mod flips;
mod fresh;

use super::*;
use frit_core::Nanos;
use frit_media::{AnyStore, Hardware, LatencyCurve, MemoryStore, NoStore, PcmTiming, Store};
use strum::IntoEnumIterator;

fn kinds() -> impl Iterator<Item = LevelerKind> {
    LevelerKind::iter()
}

fn pcm_config(bytes: u64, line_bytes: u32) -> PcmConfig {
    let curve = |t| LatencyCurve::new(vec![(64, Nanos(t))], 16).unwrap();
    PcmConfig {
        name: "pcm".into(),
        geometry: PcmGeometry {
            channels: 1,
            chips_per_channel: 1,
            groups: 1,
            chip_bytes: bytes,
            write_unit: 8,
            line_bytes,
            interleave_bytes: line_bytes,
        },
        timing: PcmTiming {
            read: curve(10),
            write: curve(20),
            write_clean: None,
            refresh: Nanos(99),
            bus_ps_per_byte: 0,
            fence: Nanos(1),
        },
        endurance: 1_000_000,
        refresh_bytes: None,
        serial: 0,
    }
}

fn in_memory(bytes: u64, line: u32) -> Pcm {
    let config = pcm_config(bytes, line);
    let store = MemoryStore::new(config.geometry.store_bytes());
    Pcm::new(config, store, &mut Hardware::new()).unwrap()
}

fn without_bytes(bytes: u64, line: u32) -> Pcm {
    Pcm::new(pcm_config(bytes, line), NoStore, &mut Hardware::new()).unwrap()
}

/// Small configuration: 256-byte stripes, 2 × 3 banks, and a move after each 4096 bytes.
fn small(leveler: LevelerKind) -> WearConfig {
    WearConfig {
        leveler,
        stripe_bytes: 256,
        ranks: 2,
        banks: 3,
        cubes: 2,
        region_stripes: if leveler == LevelerKind::SecurityRefresh { 8 } else { 0 },
        interval: 1,
        ..WearConfig::default()
    }
}
