//! Volumes of several layers: features in the superblock, recovery by layer, parameters by path, and
//! an object store in a directory.

use crate::common::{open, pattern, place, read};
use frit_core::{CheckScope, Hints};
use frit_stack::Stack;
use frit_volume::superblock::Features;
use frit_volume::{CreateOptions, Volume, grow, inspect};
use std::path::Path;

const FRONT: &str = "media.front = { profile = \"pcm-halo-2012\", chip_bytes = \"128K\" }\n";

/// A cache over segments, whose map is on NTL.
fn far(url: &str) -> String {
    format!(
        r#"
{FRONT}media.dimm = {{ profile = "bnvm-pcm-bytes", chip_bytes = "16M" }}
media.remote = {{ profile = "s3-standard-2019", object_bytes = "64K", objects = 256, connections = 2{url} }}
top = {{ kind = "cache", pcm = "front", disk = "log" }}
log = {{ kind = "segments", map = "map", store = "remote", size = "8M" }}
map = {{ kind = "ntl", pcm = "dimm", page_bytes = "4K" }}
"#
    )
}

fn near() -> String {
    format!(
        r#"
{FRONT}media.nand = {{ profile = "slc-k9-2016", channels = 1, chips_per_channel = 1, blocks_per_plane = 32 }}
media.pcm = {{ profile = "pcm-p8p-2016", chip_bytes = "128K" }}
top = {{ kind = "cache", pcm = "front", disk = "ssd" }}
ssd = {{ kind = "hfsl", nand = "nand", pcm = "pcm" }}
"#
    )
}

fn create(dir: &Path, text: &str) -> Volume {
    let stack = Stack::parse("tree", text, &[]).unwrap();
    Volume::create(dir, &CreateOptions { stack, force: false }).unwrap()
}

/// An older frit refuses such a volume by the name of the feature.
#[test]
fn the_superblock_names_the_features_of_the_stack() {
    let one =
        "media.pcm = { profile = \"bnvm-pcm-bytes\", chip_bytes = \"16M\" }\nntl = { page_bytes = \"4K\" }\n";
    let cases = [
        (one.to_owned(), 0),
        (near(), Features::LAYERS | Features::REDO_RING),
        (far(""), Features::LAYERS | Features::OBJECTS),
    ];
    for (text, expected) in cases {
        let (_d, dir) = place();
        create(&dir, &text).close().unwrap();
        assert_eq!(inspect(&dir).unwrap().superblock.features.incompatible, expected, "{text}");
    }
}

#[test]
fn a_tree_is_recovered_by_layer_and_keeps_its_data() {
    for (text, below) in [(near(), vec!["ssd"]), (far(""), vec!["log", "map"])] {
        let (_d, dir) = place();
        let mut v = create(&dir, &text);
        let data = pattern(0, 1, 2 << 20);
        // More than the cache holds, and an end that is only in the cache.
        v.write(0, &data, Hints::NONE).unwrap();
        v.flush().unwrap();
        v.write(5 << 19, &data[..8192], Hints::NONE).unwrap();
        drop(v);
        let mut v = open(&dir);
        let recovery = &v.recovery().recovery;
        assert!(!recovery.clean && !recovery.lost_any());
        let layers: Vec<&str> = recovery.layers().map(|(layer, _)| layer).skip(1).collect();
        assert_eq!(layers, below);
        assert!(read(&mut v, 0, data.len()) == data && read(&mut v, 5 << 19, 8192) == data[..8192]);
        let mut findings = Vec::new();
        v.check(CheckScope { data: true, ..CheckScope::default() }, &mut |f| findings.push(f)).unwrap();
        assert!(findings.is_empty(), "{findings:?}");
        v.close().unwrap();
        assert!(open(&dir).recovery().recovery.clean);
    }
}

#[test]
fn parameters_of_lower_layers_are_kept_by_path() {
    let (_d, dir) = place();
    let mut v = create(&dir, &far(""));
    v.set_param("log.clean_below", "33").unwrap();
    let e = v.set_param("log.chunk", "8K").unwrap_err().to_string();
    assert!(e.contains("chunk"), "{e}");
    v.close().unwrap();
    let value = |v: &mut Volume| v.params().into_iter().find(|p| p.key == "log.clean_below").map(|p| p.value);
    assert_eq!(value(&mut open(&dir)).as_deref(), Some("33"));
}

#[test]
fn objects_in_a_directory_outlive_a_crash_and_belong_to_one_volume() {
    let (d, dir) = place();
    let bucket = d.path().join("bucket");
    // The writer that is dropped was a thread of this process, which lives on.
    let text = far(&format!(", url = \"file://{}?takeover=at-once\"", bucket.display()));
    let mut v = create(&dir, &text);
    let data = pattern(7, 1, 3 << 20);
    v.write(1 << 20, &data, Hints::NONE).unwrap();
    v.flush().unwrap();
    drop(v);
    let segments = || {
        let names = std::fs::read_dir(&bucket).unwrap().map(|e| e.unwrap().file_name());
        names.filter(|n| n.to_string_lossy().starts_with("seg-")).count()
    };
    assert!(segments() > 20, "{}", segments());
    let mut v = open(&dir);
    assert!(read(&mut v, 1 << 20, data.len()) == data);
    // What is discarded leaves the directory.
    v.discard(0, 8 << 20).unwrap();
    v.flush().unwrap();
    v.close().unwrap();
    assert!(segments() < 4, "{}", segments());
    let (_d, other) = place();
    let stack = Stack::parse("tree", &text, &[]).unwrap();
    let e = Volume::create(&other, &CreateOptions { stack, force: false }).unwrap_err().to_string();
    assert!(e.contains("another volume"), "{e}");
}

#[test]
fn a_tree_grows_and_keeps_its_data() {
    let (_d, dir) = place();
    let mut v = create(&dir, &far(""));
    let data = pattern(3, 1, 3 << 20);
    v.write(0, &data, Hints::NONE).unwrap();
    v.close().unwrap();
    let larger = Stack::parse("tree", &far("").replace("size = \"8M\"", "size = \"12M\""), &[]).unwrap();
    grow(&dir, &larger, &mut |_, _, _| {}).unwrap();
    let mut v = open(&dir);
    assert_eq!(v.bytes(), 12 << 20);
    assert!(read(&mut v, 0, data.len()) == data);
    assert!(read(&mut v, 11 << 20, 4096).iter().all(|&b| b == 0));
}
