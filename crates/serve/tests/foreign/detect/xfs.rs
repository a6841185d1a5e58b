//! XFS, beside `xfs_db`.

use super::{Truth, files, have, run, scores};
use std::fmt::Write;
use std::path::Path;

/// Writes the description of a tree of files for `mkfs.xfs -p`.
fn protofile(files: &Path) -> String {
    let mut text = String::from("/dev/null\n0 0\nd--755 0 0\n");
    for name in ["text", "noise", "holes"] {
        let _ = writeln!(text, "{name} ---644 0 0 {}", files.join(name).display());
    }
    text += "many d--755 0 0\n";
    for i in 0..400 {
        let name = format!("a-small-file-{i}");
        let _ = writeln!(text, "{name} ---644 0 0 {}", files.join("many/deep").join(&name).display());
    }
    // A symbolic link that does not fit into its inode.
    let _ = writeln!(text, "link l--777 0 0 {}", "x/".repeat(400));
    text + "$\n$\n"
}

fn number(image: &str, field: &str) -> u64 {
    let text = run("xfs_db", &["-r", "-c", "sb 0", "-c", &format!("p {field}"), image]);
    text.split('=').nth(1).and_then(|n| n.trim().parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// Returns what `xfs_db` says of each block, and the number of blocks of directories behind the
/// first of each directory block, which has the only signature.
fn truth(image: &str) -> (Truth, usize) {
    let mut truth = Truth { block: number(image, "blocksize"), ..Truth::default() };
    let (groups, blocks, bits) =
        (number(image, "agcount"), number(image, "agblocks"), number(image, "agblklog"));
    let all = number(image, "dblocks");
    let mut directories = 0;
    for group in 0..groups {
        let count = blocks.min(all - group * blocks);
        let (go, list) = (format!("fsblock {}", group << bits), format!("blockuse -n -c {count}"));
        let text = run("xfs_db", &["-r", "-c", "blockget -n", "-c", &go, "-c", &list, image]);
        // "block 32769 (1/1) type btbno"
        let mut known = 0;
        for line in text.lines().filter(|l| l.starts_with("block ")) {
            let words: Vec<&str> = line.split(' ').collect();
            let in_group = words[2].trim_end_matches(')').split('/').nth(1).unwrap();
            let block = group * blocks + in_group.parse::<u64>().unwrap();
            known += 1;
            match words[4] {
                "data" => truth.data.insert(block),
                // mkfs.xfs writes a symbolic link without the header that the kernel gives it.
                "symlink" => truth.unsigned.insert(block),
                free if free.starts_with("free") || free == "unknown" => false,
                kind => {
                    directories += usize::from(kind == "dir");
                    truth.metadata.insert(block)
                }
            };
        }
        assert_eq!(known, count, "xfs_db lists all blocks of group {group}");
    }
    let tails = directories - (directories >> number(image, "dirblklog"));
    (truth, tails)
}

#[test]
fn metadata_of_xfs_is_found() {
    if !have(&["mkfs.xfs", "xfs_db"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let proto = dir.path().join("proto");
    std::fs::write(&proto, protofile(&files)).unwrap();
    let image = dir.path().join("image");
    let name = image.to_str().unwrap();
    let variants: [(&str, &[&str]); 4] = [
        ("XFS", &[]),
        ("XFS with blocks of 1 KiB", &["-b", "size=1024"]),
        ("XFS with directory blocks of 16 KiB", &["-n", "size=16384"]),
        ("XFS of version 4", &["-m", "crc=0"]),
    ];
    for (variant, options) in variants {
        std::fs::File::create(&image).unwrap().set_len(320 << 20).unwrap();
        let made = ["-q", "-f", "-p", proto.to_str().unwrap(), name];
        run("mkfs.xfs", &[options, &made].concat());
        let (mut truth, tails) = truth(name);
        let (copied, live) = scores(variant, &image, &mut truth);
        assert!(copied.metadata > 50 && copied.data > 500, "{variant}: the tool lists blocks, {copied:?}");
        assert_eq!((copied.missed, copied.false_positives), (0, 0), "{variant}, copied");
        // The kernel writes a directory block as a whole; here each of its blocks is a write.
        assert!(live.missed <= tails, "{variant}, live: {live:?}, {tails} without a signature");
        assert_eq!(live.false_positives, 0, "{variant}, live");
    }
}
