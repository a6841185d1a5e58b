//! Volumes of a given size, over every stack that can be a volume.

use frit_stack::layers::LayerKind;
use frit_stack::{Bytes, Stack, builtins};
use frit_volume::{durable_stack, sized_stack};
use std::path::Path;

/// Returns the stacks of several layers and composers: the builtin ones, and those of the torture.
fn stacks() -> Vec<(String, String)> {
    let torture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../torture/stacks");
    let files = std::fs::read_dir(torture).unwrap().map(|f| f.unwrap().path());
    let torture = files.map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&path).unwrap())
    });
    let mut all: Vec<_> =
        builtins().iter().map(|b| (b.name.to_owned(), b.text.to_owned())).chain(torture).collect();
    all.sort();
    all
}

/// Returns the capacity of a volume of a stack, in bytes: of a nameless-write device, that for contents.
fn capacity(stack: &Stack) -> u64 {
    let (durable, _) = durable_stack(stack).unwrap();
    let mut layer = durable.build(&Bytes::None).unwrap().layer;
    let contents =
        layer.nameless_device().map(|d| u64::from(d.space().capacity) * u64::from(d.block_bytes()));
    contents.unwrap_or(layer.info().sectors * 512)
}

#[test]
fn every_stack_has_the_size_that_is_asked_for() {
    let mut sized = 0;
    for (name, text) in stacks() {
        let load = |more: &[String]| Stack::parse(&name, &text, more);
        // A stack that cannot be a volume, for example without durable memory for its map.
        if durable_stack(&load(&[]).unwrap()).is_err() {
            continue;
        }
        for bytes in [8 << 20, (40 << 20) + 512, 3 << 30] {
            let stack = sized_stack(bytes, load).unwrap_or_else(|e| panic!("{name}, {bytes}: {e}"));
            let has = capacity(&stack);
            // At most a chunk of each layer, and a block in every plane, is more than asked for.
            let more = (1 << 20) + bytes / 100;
            // Whole zones: those of the builtin stack have 288 MiB.
            let more = if stack.layer().kind == LayerKind::Zns { more.max(288 << 20) } else { more };
            assert!((bytes..bytes + more).contains(&has), "{name}: {has} bytes, asked for {bytes}");
            sized += 1;
        }
    }
    assert!(sized >= 60, "{sized}");
}

#[test]
fn a_tree_without_space_for_its_metadata_says_so_at_its_line() {
    let text = include_str!("../../../../stacks/halo-mirror.toml");
    let load = |more: &[String]| Stack::parse("halo-mirror", text, more);
    let e = sized_stack(1 << 62, load).unwrap_err().to_string();
    assert!(e.contains("more than any device can have"), "{e}");
    let e = sized_stack(0, load).unwrap_err().to_string();
    assert!(e.contains("above zero"), "{e}");
}
