//! Counts of the device beside an independent model in Python (`scripts/models/ssc.py`).

use super::*;
use std::process::Command;

/// Largest difference of a count, as a share. The model has no checkpoints: the device does not evict
/// what the log since the last checkpoint still describes.
const WITHIN: f64 = 0.05;

const REQUESTS: u32 = 60_000;
const SPAN: u64 = 3000;
const DIRTY: u64 = 300;

/// Names of the counts, in the order of [`measured`].
const NAMES: [&str; 5] = ["hits", "misses", "emptied", "evicted", "copied"];

/// Counts of the device. `reads` and `dirty` of 16 requests are reads and dirty writes.
fn measured(reads: u64, dirty: u64) -> ([f64; 5], u32, usize) {
    let g = NandGeometry { channels: 1, blocks_per_plane: 72, pages_per_block: 32, ..GEOMETRY };
    let nand = Nand::new(nand_config(g, NandFaults::default()), NoStore, &mut Hardware::new()).unwrap();
    let config = SscConfig { merge_buffer: 1, ..SscConfig::default() };
    let mut device = Ssc::new(config, nand).unwrap();
    let sink = &mut Sink::untimed();
    let page = WriteData::Len(GEOMETRY.page_bytes);
    let (mut state, mut checkpoint) = (1u64, 0);
    for _ in 0..REQUESTS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (block, kind) = (((state >> 33) % SPAN) as u32, (state >> 24) % 16);
        if kind < reads {
            let into = ReadTarget::Len(GEOMETRY.page_bytes);
            if device.read(sink, block, 0, into, Cause::Host, Tok::DONE).unwrap() == CacheRead::Miss {
                device.write_clean(sink, block, page, Cause::Host, Tok::DONE).unwrap();
            }
        } else if kind < reads + dirty {
            device.write_dirty(sink, block, page, Cause::Host, Tok::DONE).unwrap();
        } else {
            device.write_clean(sink, block, page, Cause::Host, Tok::DONE).unwrap();
        }
        if device.dirty >= DIRTY {
            device.clean(sink, 0..SPAN as u32, Tok::DONE).unwrap();
        }
        checkpoint = device.checkpoint.blocks.len().max(checkpoint);
    }
    let s = device.stats;
    let counts = [s.hits, s.misses, s.victims, s.evicted_silently, s.copied].map(|n| n as f64);
    // The blocks of checkpoints hold no data.
    (counts, 72 - checkpoint as u32, device.sizes.low)
}

#[test]
fn counts_are_those_of_the_model() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/models/ssc.py");
    for (reads, dirty) in [(8, 0), (8, 4), (2, 10)] {
        let (counts, blocks, low) = measured(reads, dirty);
        let args = [
            ("--erase-blocks", u64::from(blocks)),
            ("--pages", 32),
            ("--free", low as u64),
            ("--span", SPAN),
            ("--count", u64::from(REQUESTS)),
            ("--reads", reads),
            ("--dirty-writes", dirty),
            ("--dirty", DIRTY),
        ];
        let args = args.iter().flat_map(|(key, value)| [(*key).to_owned(), value.to_string()]);
        let Ok(said) = Command::new("python3").arg("-B").arg(script).args(args).output() else { return };
        let said = String::from_utf8(said.stdout).unwrap();
        for (name, count) in NAMES.iter().zip(counts) {
            let from = said.find(&format!("\"{name}\": ")).unwrap() + name.len() + 4;
            let number: String = said[from..].chars().take_while(char::is_ascii_digit).collect();
            let model: f64 = number.parse().unwrap();
            // A few copies are no share.
            let equal = (count - model).abs() <= 5.0 + WITHIN * model;
            assert!(equal, "{name} with {reads} reads and {dirty} dirty writes: {count}, model {model}");
        }
    }
}
