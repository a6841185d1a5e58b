//! Every stack that comes with frit is valid, can be built, and serves requests.

use frit_core::{Hints, ReadTarget, Sector, Sink, StackDevice, WriteData};
use frit_stack::{Bytes, Stack, builtins};

#[test]
fn builtin_stacks_build_and_serve() {
    for b in builtins() {
        let stack = Stack::builtin(b.name, &[]).unwrap_or_else(|e| panic!("{}: {e}", b.name));
        assert!(stack.warnings().is_empty(), "{}: {:?}", b.name, stack.warnings());
        assert!(!stack.about().is_empty(), "{} says what it is", b.name);
        let mut built = stack.build(&Bytes::Memory).unwrap_or_else(|e| panic!("{}: {e}", b.name));
        let info = built.layer.info();
        assert_eq!(info.name, stack.layer().kind.name());
        let last = Sector(info.sectors - 64);
        let mut sink = Sink::untimed();
        if built.layer.zone_access().is_some() {
            serves_zones(built.layer.as_mut(), b.name);
            continue;
        }
        for (i, at) in [Sector(0), Sector(5), last].into_iter().enumerate() {
            for sectors in [1usize, 3, 16] {
                let data = vec![(16 * i + sectors) as u8; 512 * sectors];
                built.layer.write(&mut sink, at, WriteData::Bytes(&data), Hints::NONE).unwrap();
                let mut back = vec![0; data.len()];
                built.layer.read(&mut sink, at, ReadTarget::Bytes(&mut back), Hints::NONE).unwrap();
                assert!(back == data, "{}: {sectors} sectors at {at:?}", b.name);
            }
        }
        built.layer.flush(&mut sink).unwrap();
        built.layer.discard(&mut sink, Sector(0), 64).unwrap();
        let mut back = vec![1; 512];
        built.layer.read(&mut sink, Sector(5), ReadTarget::Bytes(&mut back), Hints::NONE).unwrap();
        assert!(back.iter().all(|&b| b == 0));
        let past = built.layer.read(&mut sink, Sector(info.sectors), ReadTarget::Len(512), Hints::NONE);
        assert!(past.is_err(), "{}: a read past the end", b.name);
    }
}

/// The stack of the HALO paper has its leveler and overwrites in place, and loses less than 1 % of
/// its 2 GB to the leveler and the records. The stack of a volume is durable.
#[test]
fn the_stack_of_the_halo_paper_caches_two_gigabytes_and_ours_is_durable() {
    for (name, life) in [("halo-paper", "sfc"), ("halo-ours", "round-robin")] {
        let stack = Stack::builtin(name, &[]).unwrap();
        let mut built = stack.build(&Bytes::None).unwrap();
        let mut view = frit_core::StackView::default();
        built.layer.write(&mut Sink::untimed(), Sector(0), WriteData::Len(4096), Hints::NONE).unwrap();
        built.layer.visible(&mut view);
        let slots = view.metric("cache_slots").unwrap();
        assert!(slots > 0.99 * 524_288.0 && slots < 1.01 * 524_288.0, "{name}: {slots}");
        assert!(view.metric("wear_life_rate").is_some(), "{name} has no leveler ({life})");
        assert!(stack.identity().text.contains(&format!("\"{life}\"")), "{name}");
    }
}

/// Writes the first and the last zone in order, reads them, and resets them.
fn serves_zones(layer: &mut dyn StackDevice, name: &str) {
    let mut sink = Sink::untimed();
    let info = layer.zone_access().unwrap().zoned_info();
    let block = info.block_bytes as usize;
    for zone in [0, info.zones - 1] {
        let start = Sector(u64::from(zone) * info.zone_sectors);
        for blocks in [1usize, 3, 16] {
            let data = vec![blocks as u8; block * blocks];
            let access = layer.zone_access().unwrap();
            let at = access.append(&mut sink, zone, WriteData::Bytes(&data)).unwrap();
            let mut back = vec![0; data.len()];
            layer.read(&mut sink, at, ReadTarget::Bytes(&mut back), Hints::NONE).unwrap();
            assert!(back == data, "{name}: {blocks} blocks at {at:?}");
        }
        layer.flush(&mut sink).unwrap();
        layer.discard(&mut sink, start, info.zone_sectors).unwrap();
        let mut back = vec![1; 512];
        layer.read(&mut sink, start, ReadTarget::Bytes(&mut back), Hints::NONE).unwrap();
        assert!(back.iter().all(|&b| b == 0), "{name}");
    }
}
