//! Mapping schemes: the property test of the layer, long overwriting, and merges counted by hand.

use super::*;
use crate::ftl::Mapping;
use crate::ftl::mapping::MappingScheme;

const SCHEMES: [Mapping; 4] = [Mapping::Dftl, Mapping::Fast, Mapping::Bast, Mapping::Block];

fn with(mapping: Mapping) -> FtlConfig {
    FtlConfig { mapping, cmt_entries: 8, read_buffer: 0, over_provisioning: 1.0, ..config(0, 0) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn every_scheme_keeps_every_byte(actions in actions(500, 40, 160)) {
        for mapping in SCHEMES {
            run(with(mapping), &actions, NandFaults::default());
            run(FtlConfig { erase_after_flush: true, copyback: true, ..with(mapping) }, &actions, NandFaults::default());
        }
    }

    #[test]
    fn failing_programs_and_erases_lose_nothing_under_any_scheme(actions in actions(500, 40, 160), seed in any::<u64>()) {
        let faults = NandFaults { program_fail: 0.002, erase_fail: 0.002, seed, ..NandFaults::default() };
        for mapping in SCHEMES {
            run(FtlConfig { over_provisioning: 3.0, log_blocks: if mapping.has_log() { 3 } else { 0 }, ..with(mapping) }, &actions, faults);
        }
    }
}

#[test]
fn random_overwriting_under_every_scheme_keeps_the_newest_versions() {
    for mapping in SCHEMES {
        let mut layer = layer(with(mapping), NandFaults::default());
        let sink = &mut Sink::untimed();
        let (pages, page) = (u64::from(layer.pages), layer.page_bytes as usize);
        let mut versions = vec![0u8; pages as usize];
        let mut state = 1u64;
        for n in 0..6_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let lpn = (state >> 33) % pages;
            versions[lpn as usize] = n as u8;
            write(&mut layer, lpn * page as u64 / 512, &vec![n as u8; page]);
            if n % 64 == 0 {
                layer.step(sink, 2).unwrap();
            }
        }
        layer.audit();
        for (lpn, version) in versions.iter().enumerate() {
            let out = read(&mut layer, (lpn * page / 512) as u64, page as u64 / 512).unwrap();
            assert!(out.iter().all(|b| b == version), "{mapping:?}: page {lpn}");
        }
        layer
            .check(sink, CheckScope { data: true, ..CheckScope::default() }, &mut |f| panic!("{f:?}"))
            .unwrap();
    }
}

#[test]
fn worn_out_volumes_keep_their_data_under_every_scheme() {
    for mapping in SCHEMES {
        for seed in 1..6 {
            wear_out(
                &FtlConfig {
                    over_provisioning: 3.0,
                    log_blocks: if mapping.has_log() { 3 } else { 0 },
                    ..with(mapping)
                },
                seed,
            );
        }
    }
}

#[test]
fn impossible_logs_are_refused_by_key() {
    let refused = |config: FtlConfig| {
        let nand = nand_config(geometry(&config), NandFaults::default());
        let nand = Nand::new(nand, NoStore, &mut Hardware::new()).unwrap();
        match Ftl::new(config, nand).map(|_| ()) {
            Err(Error::Param { key, .. }) => key,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(FtlConfig { log_blocks: 100, ..with(Mapping::Fast) }), "log_blocks");
    assert_eq!(refused(FtlConfig { log_blocks: 1, ..with(Mapping::Fast) }), "log_blocks");
    assert_eq!(refused(FtlConfig { over_provisioning: 0.1, ..with(Mapping::Bast) }), "over_provisioning");
    assert_eq!(refused(FtlConfig { capacity: 80 * 4096, ..with(Mapping::Block) }), "capacity");
}

/// Writes pages one by one.
fn write_pages(layer: &mut Layer, pages: impl IntoIterator<Item = u32>) {
    for lpn in pages {
        write(layer, u64::from(lpn) * 8, &[lpn as u8; 4096]);
    }
}

/// Merges of a layer: switch, partial, full, and the pages that they copied.
fn merges(layer: &Layer) -> [u64; 4] {
    let s = &layer.stats.merges;
    [s.switch, s.partial, s.full, s.copied]
}

/// Blocks have 8 pages. Two logical blocks are filled first, which takes no merge.
fn filled(mapping: Mapping, log_blocks: u32) -> Layer {
    let mut layer = layer(FtlConfig { log_blocks, ..with(mapping) }, NandFaults::default());
    write_pages(&mut layer, 0..32);
    assert_eq!(merges(&layer), [0; 4]);
    assert_eq!(layer.scheme.log_blocks(), 0);
    layer
}

#[test]
fn merges_of_bast_are_those_of_the_paper() {
    let mut layer = filled(Mapping::Bast, 2);
    // A log block in order, which is full: a switch when the next page needs a log block.
    write_pages(&mut layer, 0..8);
    write_pages(&mut layer, [0]);
    assert_eq!(merges(&layer), [1, 0, 0, 0]);
    // Log blocks of blocks 0 and 1; block 2 needs one, and that of block 0 is the oldest: 7 copies.
    write_pages(&mut layer, [9, 16]);
    assert_eq!(merges(&layer), [1, 1, 0, 7]);
    // That of block 1 is not in order: all 8 pages are copied.
    write_pages(&mut layer, [24]);
    assert_eq!(merges(&layer), [1, 1, 1, 15]);
}

#[test]
fn merges_of_fast_are_those_of_the_paper() {
    let mut layer = filled(Mapping::Fast, 2);
    // The sequential log block is full: a switch when another block begins.
    write_pages(&mut layer, 0..8);
    write_pages(&mut layer, [8, 9, 10]);
    assert_eq!(merges(&layer), [1, 0, 0, 0]);
    // It has three pages: the other five are copied.
    write_pages(&mut layer, [16]);
    assert_eq!(merges(&layer), [1, 1, 0, 5]);
    // Eight pages of two blocks fill the random log block. The next one needs it: two full merges.
    write_pages(&mut layer, [1, 2, 3, 4, 25, 26, 27, 28]);
    assert_eq!(merges(&layer), [1, 1, 0, 5]);
    write_pages(&mut layer, [5]);
    assert_eq!(merges(&layer), [1, 1, 2, 21]);
}

#[test]
fn an_overwrite_under_a_block_map_copies_the_rest_of_the_block() {
    let mut layer = filled(Mapping::Block, 0);
    write_pages(&mut layer, [3]);
    assert_eq!(merges(&layer), [0, 0, 1, 7]);
    // One request of five pages over two blocks: 8 - 2 and 8 - 3 copies.
    write(&mut layer, 6 * 8, &[1; 5 * 4096]);
    assert_eq!(merges(&layer), [0, 0, 3, 7 + 6 + 5]);
    write(&mut layer, 8 * 8, &[1; 8 * 4096]);
    assert_eq!(merges(&layer), [1, 0, 3, 18], "a whole block");
}

#[test]
fn dftl_reads_and_writes_translation_pages_by_the_rules_of_the_cache() {
    let mut layer = layer(FtlConfig { cmt_entries: 2, ..with(Mapping::Dftl) }, NandFaults::default());
    // No translation page yet: a miss reads nothing. The third page evicts a changed entry.
    write_pages(&mut layer, [0, 1]);
    let counts = |layer: &Layer| (layer.stats.translation.reads, layer.stats.translation.writes);
    assert_eq!(counts(&layer), (0, 0));
    write_pages(&mut layer, [2]);
    // The write-back has both changed entries, and the entry of page 2 is read from it.
    assert_eq!(counts(&layer), (1, 1));
    // Page 1 was written back, so its eviction writes nothing.
    write_pages(&mut layer, [3]);
    assert_eq!(counts(&layer), (2, 1));
    // A hit costs nothing.
    assert!(read(&mut layer, 24, 8).unwrap().iter().all(|&b| b == 3));
    assert_eq!(counts(&layer), (2, 1));
    // A miss of a read evicts page 2, whose entry changed: read, write, and the read of the entry.
    assert!(read(&mut layer, 0, 8).unwrap().iter().all(|&b| b == 0));
    assert_eq!(counts(&layer), (4, 2));
}
