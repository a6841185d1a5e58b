//! ext2, ext3 and ext4, beside `dumpe2fs` and `debugfs`.

use super::{Truth, files, have, numbers, run, scores};

/// Returns what e2fsprogs says of each block.
fn truth(image: &str) -> Truth {
    let mut truth = Truth::default();
    for line in run("dumpe2fs", &[image]).lines().map(str::trim) {
        if let Some(size) = line.strip_prefix("Block size:") {
            truth.block = size.trim().parse().unwrap();
        }
        // "Primary superblock at 0, Group descriptors at 1-1", "Inode table at 97-352 (+97)"
        if line.split(',').any(|part| part.contains(" at ")) && !line.starts_with("Filesystem") {
            for part in line.split(", ").filter_map(|p| p.split_once(" at ")) {
                let range = part.1.split(' ').next().and_then(numbers);
                truth.metadata.extend(range.into_iter().flatten());
            }
        }
    }
    let small = (0..400).map(|i| format!("/many/deep/a-small-file-{i}"));
    let data: Vec<String> =
        ["/text", "/noise", "/holes"].map(str::to_owned).into_iter().chain(small).collect();
    let places = ["<8>", "/", "/many", "/many/deep", "/lost+found"].map(str::to_owned);
    let paths: Vec<_> = data.iter().map(|p| (p, true)).chain(places.iter().map(|p| (p, false))).collect();
    let dir = tempfile::tempdir().unwrap();
    let commands = dir.path().join("commands");
    std::fs::write(&commands, paths.iter().map(|(path, _)| format!("stat {path}\n")).collect::<String>())
        .unwrap();
    let told = run("debugfs", &["-f", commands.to_str().unwrap(), image]);
    // It repeats each command before its answer.
    let answers: Vec<_> = told.split("debugfs: stat ").skip(1).collect();
    assert_eq!(answers.len(), paths.len());
    for ((path, is_data), answer) in paths.into_iter().zip(answers) {
        blocks_of(answer, path, is_data, &mut truth);
    }
    truth
}

/// Adds the blocks of a file, a directory or the journal, as `debugfs stat` lists them.
fn blocks_of(text: &str, path: &str, is_data: bool, truth: &mut Truth) {
    let Some((_, list)) = text.split_once("EXTENTS:").or_else(|| text.split_once("BLOCKS:")) else { return };
    let list = list.split("TOTAL").next().unwrap_or(list);
    // "(0-11):5-16, (IND):17, (ETB0):20"
    for entry in list.split([',', '\n']).filter_map(|e| e.trim().split_once("):")) {
        let Some(range) = numbers(entry.1.trim()) else { continue };
        match entry.0 {
            label if label.contains("ETB") => truth.metadata.extend(range),
            label if label.contains("IND") && path == "<8>" => truth.metadata.extend(range),
            label if label.contains("IND") => truth.unsigned.extend(range),
            _ if is_data => truth.data.extend(range),
            _ => truth.metadata.extend(range),
        }
    }
}

#[test]
fn metadata_of_ext_is_found() {
    if !have(&["mkfs.ext4", "dumpe2fs", "debugfs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let image = dir.path().join("image");
    let name = image.to_str().unwrap();
    let variants: [(&str, &[&str]); 9] = [
        ("ext4", &["-t", "ext4", "-b", "4096"]),
        ("ext4 with blocks of 1 KiB", &["-t", "ext4", "-b", "1024"]),
        ("ext4 without checksums", &["-t", "ext4", "-b", "4096", "-O", "^metadata_csum,^64bit"]),
        ("ext4 without flex_bg", &["-t", "ext4", "-b", "1024", "-O", "^flex_bg"]),
        ("ext4 with meta_bg", &["-t", "ext4", "-b", "1024", "-O", "meta_bg,^resize_inode"]),
        ("ext4 with sparse_super2", &["-t", "ext4", "-b", "1024", "-O", "sparse_super2,^resize_inode"]),
        ("ext4 with bigalloc", &["-t", "ext4", "-b", "4096", "-O", "bigalloc", "-C", "16384"]),
        ("ext3", &["-t", "ext3", "-b", "1024"]),
        ("ext2", &["-t", "ext2", "-b", "4096"]),
    ];
    for (variant, options) in variants {
        std::fs::File::create(&image).unwrap().set_len(96 << 20).unwrap();
        let source = ["-q", "-F", "-d", files.to_str().unwrap(), name];
        run("mkfs.ext4", &[options, &source].concat());
        let mut truth = truth(name);
        let (copied, live) = scores(variant, &image, &mut truth);
        assert!(copied.metadata > 30 && copied.data > 500, "{variant}: the tools list blocks, {copied:?}");
        assert_eq!((copied.missed, copied.false_positives), (0, 0), "{variant}, copied");
        assert_eq!((live.missed, live.false_positives), (0, 0), "{variant}, live");
    }
}
