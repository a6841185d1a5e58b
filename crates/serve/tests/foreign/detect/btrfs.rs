//! btrfs, beside `btrfs inspect-internal dump-tree`.

use super::{Truth, files, have, run, scores};

/// A chunk: logical start, length, `true` for data, starts of its copies on the device.
struct Chunk {
    logical: u64,
    length: u64,
    is_data: bool,
    copies: Vec<u64>,
}

fn word_after(line: &str, word: &str) -> Option<u64> {
    let mut words = line.split_whitespace().skip_while(|w| *w != word).skip(1);
    words.next()?.trim_end_matches(')').parse().ok()
}

fn chunks(image: &str) -> Vec<Chunk> {
    let mut all: Vec<Chunk> = Vec::new();
    let mut logical = None;
    for line in run("btrfs", &["inspect-internal", "dump-tree", "-t", "chunk", image]).lines() {
        if line.contains(" key (") {
            logical = line.contains("CHUNK_ITEM").then(|| word_after(line, "CHUNK_ITEM")).flatten();
        } else if let (Some(at), true) = (logical, line.contains("length") && line.contains(" type ")) {
            let length = word_after(line, "length").unwrap();
            let is_data = line.contains("type DATA");
            all.push(Chunk { logical: at, length, is_data, copies: Vec::new() });
        } else if logical.is_some() && line.trim().starts_with("stripe ") {
            all.last_mut().unwrap().copies.extend(word_after(line, "offset"));
        }
    }
    all
}

/// Returns what btrfs-progs says of each block.
fn truth(image: &str) -> Truth {
    let block = 4096;
    let mut truth = Truth { block, ..Truth::default() };
    let node = run("btrfs", &["inspect-internal", "dump-super", image]);
    let node =
        node.lines().find(|l| l.starts_with("nodesize")).and_then(|l| word_after(l, "nodesize")).unwrap();
    truth.unit = Some(node);
    let chunks = chunks(image);
    truth.metadata.insert(65_536 / block);
    for chunk in chunks.iter().filter(|c| c.is_data) {
        chunk.copies.iter().for_each(|at| truth.data.extend(at / block..(at + chunk.length) / block));
    }
    for line in run("btrfs", &["inspect-internal", "dump-tree", image]).lines() {
        // "leaf 30769152 items 11 free space 12709 generation 7 owner ROOT_TREE"
        let logical =
            ["leaf", "node"].iter().find(|w| line.starts_with(**w)).and_then(|w| word_after(line, w));
        let Some(logical) = logical.filter(|_| line.contains(" items ")) else { continue };
        let chunk = chunks.iter().find(|c| (c.logical..c.logical + c.length).contains(&logical)).unwrap();
        for copy in &chunk.copies {
            let at = copy + logical - chunk.logical;
            truth.metadata.extend(at / block..(at + node) / block);
        }
    }
    // A superblock's copy can lie in the range of a chunk.
    let metadata = &truth.metadata;
    truth.data.retain(|b| !metadata.contains(b) && b * block != 64 << 20);
    truth
}

#[test]
fn metadata_of_btrfs_is_found() {
    if !have(&["mkfs.btrfs", "btrfs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let image = dir.path().join("image");
    let name = image.to_str().unwrap();
    let variants: [(&str, &[&str]); 3] = [
        ("btrfs", &[]),
        ("btrfs with tree blocks of 4 KiB", &["-n", "4096", "-m", "single"]),
        ("btrfs with tree blocks of 64 KiB", &["-n", "65536"]),
    ];
    for (variant, options) in variants {
        std::fs::File::create(&image).unwrap().set_len(256 << 20).unwrap();
        run("mkfs.btrfs", &[options, &["-q", "--rootdir", files.to_str().unwrap(), name]].concat());
        let mut truth = truth(name);
        let (copied, live) = scores(variant, &image, &mut truth);
        assert!(copied.metadata > 20 && copied.data > 500, "{variant}: the tool lists blocks, {copied:?}");
        assert_eq!((copied.missed, copied.false_positives), (0, 0), "{variant}, copied");
        assert_eq!((live.missed, live.false_positives), (0, 0), "{variant}, live");
    }
}
