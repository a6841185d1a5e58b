//! Stacks of several layers: trees that are impossible are refused at their line, with a hint, and
//! the summary and the identity of a tree have all of its layers.

use crate::errors::told_as;
use frit_core::{Hints, ReadTarget, Sector, Sink, WriteData};
use frit_stack::{Bytes, Stack};

/// Two flash devices, a memory and a disk.
const MEDIA: &str = r#"about = "a tree"
[media.front]
profile = "pcm-halo-2012"
chip_bytes = "1M"
[media.nand-a]
profile = "slc-k9-2016"
chips_per_channel = 1
blocks_per_plane = 64
[media.nand-b]
profile = "slc-k9-2016"
chips_per_channel = 1
blocks_per_plane = 64
[media.hdd]
profile = "st3500320as-2008"
bytes = "16M"
[a]
kind = "hfsl"
nand = "nand-a"
pcm = "none"
FUSION_METHOD = "none"
"#;

/// The second flash device.
const B: &str = "[b]\nkind = \"hfsl\"\nnand = \"nand-b\"\npcm = \"none\"\nFUSION_METHOD = \"none\"\n";

/// Number of lines of `MEDIA`.
const LINES: usize = 20;

fn tree(layers: &str) -> String {
    assert_eq!(MEDIA.lines().count(), LINES);
    format!("{MEDIA}{layers}")
}

#[test]
fn names_that_make_no_tree_are_refused_at_their_line() {
    let cases: &[(String, &[&str])] = &[
        (
            tree(B),
            &[
                "t:21:1 a and b are all top layers: requests go to one layer | remove [b], or name it in a role of \
               another layer, such as `disk = \"b\"` of a cache",
            ],
        ),
        (
            tree("[top]\nkind = \"concat\"\ndevices = [\"a\", \"top\"]\n"),
            &["t:23:11 `top.devices`: a layer cannot be below itself"],
        ),
        (
            tree(
                "[top]\nkind = \"delay\"\ndevice = \"a\"\n[x]\nkind = \"delay\"\ndevice = \"y\"\n[y]\nkind = \"delay\"\ndevice = \"x\"\n",
            ),
            &[
                "t:24:1 `x` is below itself: the layers name each other in a circle | one layer has to be above all \
               others; `frit check` draws a valid stack",
            ],
        ),
        (
            tree("[top]\nkind = \"concat\"\ndevices = [\"a\", \"a\"]\n"),
            &[
                "t:23:11 `top.devices`: 'a' is already in use, as `top.devices` | a layer serves one layer in one role",
            ],
        ),
        (
            tree(
                "[top]\nkind = \"concat\"\ndevices = [\"a\", \"hdd\"]\n[over]\nkind = \"delay\"\ndevice = \"hdd\"\n",
            ),
            &["t:26:10 `over.device`: 'hdd' is already in use | a medium serves one layer in one role"],
        ),
        (
            tree("[cache]\npcm = \"a\"\ndisk = \"hdd\"\n"),
            &["t:22:7 `cache.pcm` needs a pcm medium; 'a' is a layer | known names: front"],
        ),
        (
            tree("[cache]\npcm = \"front\"\ndisk = \"nand-b\"\n"),
            &["t:23:8 `cache.disk` needs a disk or a layer; 'nand-b' is nand | known names: hdd, a, cache"],
        ),
        (
            tree("[cache]\npcm = \"front\"\ndisk = \"hd\"\n"),
            &["t:23:8 `cache.disk`: there is no medium or layer 'hd' | did you mean `hdd`?"],
        ),
    ];
    told_as(cases);
}

#[test]
fn lists_of_devices_and_sizes_that_do_not_fit_are_refused() {
    let cases: &[(String, &[&str])] = &[
        (
            tree("[top]\nkind = \"stripe\"\ndevices = [\"a\"]\n"),
            &[
                "t:23:11 `top.devices` names 1 and needs at least 2 | the devices, as a list of names of disks or layers",
            ],
        ),
        (
            tree("[top]\nkind = \"stripe\"\ndevices = \"a\"\n"),
            &[
                "t:23:11 `top.devices` has to be a list of names of disks or layers | the devices, as a list of names \
               of disks or layers",
            ],
        ),
        (
            tree("[top]\nkind = \"delay\"\ndevice = [\"a\"]\n"),
            &["t:23:10 `top.device` has to be a name of a disk or a layer | the device: a disk or a layer"],
        ),
        (
            tree("[top]\nkind = \"stripe\"\n"),
            &["t:21:1 `top` has no devices | name them: `devices = [\"a\", \"b\"]`"],
        ),
        (
            tree("[top]\nkind = \"stripe\"\ndevices = [\"a\", \"hdd\"]\nchunk = \"1000\"\n"),
            &["t:24:9 `top.chunk` = 1000: has to be a multiple of 512 bytes"],
        ),
        (
            tree("[top]\nkind = \"stripe\"\ndevices = [\"a\", \"hdd\"]\nchunk = \"32M\"\n"),
            &["t:24:9 `top.chunk` = 32 MiB: is larger than the smallest device, which has 16 MiB"],
        ),
        (
            tree("[top]\nkind = \"record\"\ndevice = \"a\"\n"),
            &["t:21:1 `top` has no file | name it: `file = \"requests.csv.zst\"`"],
        ),
        (
            tree(
                "[top]\nkind = \"record\"\ndevice = \"low\"\nfile = \"./x.csv\"\n\
                 [low]\nkind = \"record\"\ndevice = \"a\"\nfile = \"x.csv\"\n",
            ),
            &["t:28:8 `low.file` is also the file of `top` | give each recording a file"],
        ),
        (
            tree("[hdd]\nkind = \"delay\"\ndevice = \"a\"\n[top]\nkind = \"delay\"\ndevice = \"hdd\"\n"),
            &[
                "t:26:10 `top.device`: 'hdd' is a medium and a layer | give the medium or the layer another name",
            ],
        ),
    ];
    told_as(cases);
}

const HALO: &str =
    "[cache]\npcm = \"front\"\ndisk = \"far\"\n[far]\nkind = \"delay\"\ndevice = \"a\"\nread_us = 5\n";

/// A simulation has no bytes, but the metadata of a mirror and of a map have some.
#[test]
fn metadata_reach_layers_whose_media_store_no_bytes() {
    let pcm = "[media.memory]\nprofile = \"pcm-p8p-2016\"\nchip_bytes = \"256K\"\n";
    let fused = "[fused]\nkind = \"hfsl\"\nnand = \"nand-b\"\npcm = \"memory\"\n";
    let cached = "[cached]\nkind = \"cache\"\npolicy = \"halo\"\npcm = \"front\"\ndisk = \"hdd\"\n";
    let mirror = "[top]\nkind = \"mirror\"\ndevices = [\"a\", \"fused\", \"cached\"]\n";
    for over in ["", "[over]\nkind = \"thin\"\ndevice = \"top\"\nsize = \"8M\"\n"] {
        let text = tree(&format!("{pcm}{fused}{cached}{mirror}{over}"));
        let mut built = Stack::parse("t", &text, &[]).unwrap().build(&Bytes::None).unwrap();
        let mut sink = Sink::untimed();
        for at in 0..200 {
            let at = Sector(at * 37 % 8192);
            built.layer.write(&mut sink, at, WriteData::Len(512), Hints::NONE).unwrap();
            built.layer.read(&mut sink, at, ReadTarget::Len(4096), Hints::NONE).unwrap();
            built.layer.flush(&mut sink).unwrap();
        }
    }
}

#[test]
fn a_tree_is_summarized_from_its_top() {
    let stack = Stack::parse("t", &tree(HALO), &[]).unwrap();
    let (summary, _) = stack.summary().unwrap();
    let names: Vec<&str> = summary.layers.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["cache", "far", "a"]);
    assert_eq!(summary.layers[0].on["disk"], ["far"]);
    // A layer that computes addresses has the capacity of the device below it.
    assert_eq!(summary.layers[1].capacity_bytes, summary.layers[2].capacity_bytes);
    let far = summary.layers[1].parameters.iter().find(|p| p.key == "read_us").unwrap();
    assert!(far.given && far.value == "5");
    let unused: Vec<&str> = stack.warnings().iter().map(frit_stack::Problem::message).collect();
    assert_eq!(unused.len(), 2, "{unused:?}");
}

#[test]
fn the_identity_of_a_tree_is_a_file_of_the_same_tree() {
    let stack = Stack::parse("t", &tree(HALO), &["far.read_us=9".into()]).unwrap();
    let identity = stack.identity();
    let again = Stack::parse("t", &identity.text, &[]).unwrap();
    assert_eq!(again.identity(), identity);
    let names = |s: &Stack| s.layers().iter().map(|l| l.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&again), names(&stack));
    assert_ne!(identity.sha256, Stack::parse("t", &tree(HALO), &[]).unwrap().identity().sha256);
}

#[test]
fn parameters_have_paths_and_change_in_their_layer() {
    let stack = Stack::parse("t", &tree(HALO), &[]).unwrap();
    let mut built = stack.build(&Bytes::Memory).unwrap();
    let params = built.layer.params();
    assert_eq!(params.get("far.read_us").unwrap(), "5");
    params.set("far.read_us", "7").unwrap();
    assert_eq!(built.layer.params().get("far.read_us").unwrap(), "7");
    // A name without a layer is one of the top layer.
    built.layer.params().set("threshold", "0.5").unwrap();
    assert_eq!(built.layer.params().get("cache.threshold").unwrap(), "0.5");
    let e = built.layer.params().set("near.read_us", "1").unwrap_err().to_string();
    assert!(e.contains("no layer 'near'; there are cache, far, a"), "{e}");
    let fixed = built.layer.params().set("a.gc_low_blocks", "x").unwrap_err().to_string();
    assert!(fixed.contains("gc_low_blocks"), "{fixed}");
}
