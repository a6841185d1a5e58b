//! The life of a volume: made, written, closed, opened, dropped, opened again.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::panic)]

use frit_core::Hints;
use frit_stack::Stack;
use frit_volume::{CreateOptions, OpenOptions, Volume};

const SMALL: &str = r#"
media.nand = { profile = "slc-k9-2016", channels = 2, chips_per_channel = 1, dies_per_chip = 1, planes_per_die = 1, blocks_per_plane = 32 }
media.pcm = { profile = "pcm-p8p-2016", chip_bytes = "128K" }
hfsl = {}
"#;

fn stack() -> Stack {
    Stack::parse("small", SMALL, &[]).unwrap()
}

#[test]
fn what_was_written_is_there_after_close_and_after_drop() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("v");
    let mut v = Volume::create(&dir, &CreateOptions { stack: stack(), force: false }).unwrap();
    let data: Vec<u8> = (0..8192u32).map(|i| (i / 7) as u8).collect();
    v.write(4096, &data, Hints::NONE).unwrap();
    v.close().unwrap();
    let mut v = Volume::open(&dir, &OpenOptions::default()).unwrap();
    let mut back = vec![0; 8192];
    v.read(4096, &mut back).unwrap();
    assert!(back == data);
    v.write(1 << 20, &data, Hints::FUA).unwrap();
    v.set_param("SSW", "1024").unwrap();
    v.discard(4096, 4096).unwrap();
    drop(v);
    let mut v = Volume::open(&dir, &OpenOptions::default()).unwrap();
    v.read(1 << 20, &mut back).unwrap();
    assert!(back == data);
    v.read(4096, &mut back).unwrap();
    assert!(back[..4096].iter().all(|&b| b == 0) && back[4096..] == data[4096..]);
    let ssw = v.params().into_iter().find(|p| p.key == "SSW").unwrap();
    assert_eq!(ssw.value, "1024");
    v.close().unwrap();
}
