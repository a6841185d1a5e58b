//! Volumes on the command line.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn frit(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).current_dir(dir).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs frit, asserts the exit code, and returns the output.
fn ends(dir: &Path, args: &[&str], code: i32) -> String {
    let out = frit(dir, args);
    let shown = format!("{}{}", text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(code), "{args:?}: {shown}");
    // Rejoins words that the terminal width has separated.
    shown.split_whitespace().filter(|w| *w != "│").collect::<Vec<_>>().join(" ")
}

fn json(dir: &Path, args: &[&str]) -> serde_json::Value {
    serde_json::from_slice(&frit(dir, args).stdout).unwrap()
}

/// Returns bytes without repeated sequences.
fn noise(len: usize) -> Vec<u8> {
    let mut x = 1u64;
    let next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

const SIZE: &[&str] = &["--stack", "hfsl-small", "--size", "8M"];

fn create(dir: &Path, name: &str) -> String {
    ends(dir, &[&["create", name], SIZE].concat(), 0)
}

#[test]
fn a_volume_from_making_to_growing() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    let made = create(d, "vol");
    for words in ["a volume of 8 MiB", "format version 1", "vol/nand.medium", "map_persist is each"] {
        assert!(made.contains(words), "{words} in {made}");
    }
    let image = noise(3_000_000);
    std::fs::write(d.join("image"), &image).unwrap();
    assert!(ends(d, &["import", "vol", "image"], 0).contains("imported"));
    let seen = ends(d, &["inspect", "vol"], 0);
    for words in ["state clean", "8 MiB", "no parameter", "nand block", "never: always closed properly"] {
        assert!(seen.contains(words), "{words} in {seen}");
    }
    let seen = json(d, &["inspect", "vol", "--json"]);
    assert_eq!((seen["state"].as_str(), seen["inside"]["bytes"].as_u64()), (Some("clean"), Some(8 << 20)));
    assert!(
        seen["inside"]["nand_bytes"].as_u64().unwrap() + seen["inside"]["pcm_bytes"].as_u64().unwrap()
            >= 3_000_000
    );
    assert!(ends(d, &["check", "vol"], 0).contains("Nothing left"));
    let scrubbed = json(d, &["scrub", "vol", "--json"]);
    assert_eq!((&scrubbed["ok"], scrubbed["findings"].as_array().unwrap().len()), (&true.into(), 0));
    assert!(scrubbed["checked"]["bytes_verified"].as_u64().unwrap() >= 3_000_000);
    std::fs::create_dir(d.join("empty")).unwrap();
    let checked = json(d, &["check", "vol", "empty", "--json"]);
    assert_eq!((&checked[0]["ok"], &checked[1]["ok"]), (&true.into(), &false.into()));
    assert!(checked[1]["error"].as_str().unwrap().contains("no volume here"), "{checked}");
    assert!(ends(d, &["grow", "vol", "--size", "12M"], 0).contains("12 MiB (12582912 bytes) now"));
    ends(d, &["export", "vol", "out"], 0);
    let out = std::fs::read(d.join("out")).unwrap();
    assert!(
        out.len() == 12 << 20 && out[..image.len()] == image && out[image.len()..].iter().all(|&b| b == 0)
    );
    assert!(ends(d, &["export", "vol", "out"], 1).contains("--force overwrites it"));
    let out = frit(d, &["export", "vol", "-"]);
    assert!(out.status.success() && out.stdout[..image.len()] == image);
    // The stack that inspect prints creates the same volume again.
    let stack = frit(d, &["inspect", "vol", "--stack"]).stdout;
    std::fs::write(d.join("same.toml"), stack).unwrap();
    ends(d, &["create", "again", "--stack", "same.toml"], 0);
    let hash = |v: &str| json(d, &["inspect", v, "--json"])["sha256"].clone();
    assert_eq!(hash("again"), hash("vol"));
    assert!(ends(d, &["recover", "vol"], 0).contains("closed properly"));
}

#[test]
fn mistakes_have_words_and_codes() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    std::fs::create_dir(d.join("empty")).unwrap();
    for command in [&["check", "empty"][..], &["scrub", "empty"], &["recover", "none"], &["inspect", "empty"]]
    {
        assert!(ends(d, command, 2).contains("no volume here"), "{command:?}");
    }
    assert!(ends(d, &["export", "none", "x"], 2).contains("no volume here"));
    std::fs::write(d.join("image"), [0; 512]).unwrap();
    assert!(ends(d, &["import", "none", "image"], 2).contains("no volume here"));
    assert!(!d.join("x").exists() && !d.join("none").exists());
    assert!(ends(d, &["create", "vol", "--stack", "no-pcm-small"], 1).contains("[media.hfsl-pcm]"));
    assert!(ends(d, &["create", "vol", "--stack", "hfsl-smal"], 1).contains("did you mean `hfsl-small`?"));
    assert!(!d.join("vol").exists());
    create(d, "vol");
    assert!(ends(d, &[&["create", "vol"], SIZE].concat(), 1).contains("--force replaces it"));
    ends(d, &[&["create", "vol", "--force"], SIZE].concat(), 0);
    assert!(ends(d, &["grow", "vol"], 1).contains("how large?"));
    assert!(ends(d, &["check", "vol", "hfsl-small"], 1).contains("separately"));
    assert!(ends(d, &["check", "hfsl-small", "--data"], 1).contains("are for volumes"));
    assert!(ends(d, &["check", "vol", "--set", "SSW=1"], 1).contains("for stacks"));
    std::fs::rename(d.join("vol/pcm.medium"), d.join("vol/pcm.gone")).unwrap();
    let e = ends(d, &["check", "vol"], 2);
    assert!(e.contains("medium 'pcm' (vol/pcm.medium): is missing"), "{e}");
    assert!(ends(d, &["inspect", "vol"], 2).contains("is missing"));
    std::fs::rename(d.join("vol/pcm.gone"), d.join("vol/pcm.medium")).unwrap();
    std::fs::write(d.join("file"), b"x").unwrap();
    assert!(ends(d, &["inspect", "file"], 2).contains("it is not a directory"));
    assert!(ends(d, &["torture", "--mode", "foo"], 2).contains("cuts, exhaustive, files"));
    assert!(ends(d, &["torture", "--replay", "c0.0.99999"], 1).contains("no case c0.0.99999"));
    assert!(ends(d, &["ctl", "vol", "set", "copyback=yes"], 1).contains("neither true nor false"));
    assert!(ends(d, &["ctl", "vol", "set", "gc_high_blocks=1"], 1).contains("at least gc_low_blocks"));
}

#[test]
fn a_disk_behind_a_cache_is_told_of_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    ends(d, &["create", "vol", "--stack", "halo-small", "--size", "16M"], 0);
    std::fs::write(d.join("image"), noise(100_000)).unwrap();
    ends(d, &["import", "vol", "image"], 0);
    let seen = ends(d, &["inspect", "vol"], 0);
    assert!(seen.contains(" KiB PCM, ") && seen.contains(" MiB disk UUID"), "{seen}");
    assert!(!seen.contains("NAND") && !seen.contains("unwritten"), "{seen}");
    let inside = &json(d, &["inspect", "vol", "--json"])["inside"];
    let bytes = |key: &str| inside[key].as_u64().unwrap();
    assert_eq!(bytes("disk_bytes") + bytes("pcm_bytes"), 16 << 20);
    assert!(bytes("pcm_bytes") >= 100_000, "{inside}");
    let checked = ends(d, &["check", "vol", "--data"], 0);
    assert!(checked.contains(" blocks in the cache, "), "{checked}");
    let stat = ends(d, &["ctl", "vol", "stat"], 0);
    assert!(!stat.contains("NAND") && stat.contains("dirty_blocks"), "{stat}");
    let fixed = ends(d, &["ctl", "vol", "set", "policy=lru"], 1);
    assert!(fixed.contains("frit grow"), "{fixed}");
    assert!(ends(d, &["grow", "vol", "--set", "policy=lru"], 0).contains("16 MiB"));
    ends(d, &["export", "vol", "out"], 0);
    let out = std::fs::read(d.join("out")).unwrap();
    let image = std::fs::read(d.join("image")).unwrap();
    assert!(out[..image.len()] == image && out[image.len()..].iter().all(|&b| b == 0));
}

#[test]
fn a_flipped_bit_is_found_by_a_scrub_and_by_an_export() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    create(d, "vol");
    let image = noise(1_000_000);
    std::fs::write(d.join("image"), &image).unwrap();
    ends(d, &["import", "vol", "image"], 0);
    let nand = d.join("vol/nand.medium");
    let mut bytes = std::fs::read(&nand).unwrap();
    let needle = &image[500_000 / 2048 * 2048..][..512];
    let at = bytes.windows(512).position(|w| w == needle).unwrap();
    bytes[at + 77] ^= 0x10;
    std::fs::write(&nand, &bytes).unwrap();
    ends(d, &["check", "vol"], 0);
    let found = ends(d, &["scrub", "vol"], 1);
    assert!(found.contains("major") && found.contains("1 finding is left"), "{found}");
    assert!(ends(d, &["export", "vol", "out"], 1).contains("damaged"));
    assert!(!d.join("out").exists(), "half an image looks whole");
    let found = ends(d, &["export", "vol", "out", "--rescue"], 1);
    assert!(found.contains("zeros instead of 2048 bytes at 499712"), "{found}");
    assert!(std::fs::read(&nand).unwrap() == bytes, "looking changed something");
}

#[test]
fn a_volume_in_use_says_by_whom() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    create(d, "vol");
    // An import that waits for its image keeps the volume locked.
    let mut child = Command::new(env!("CARGO_BIN_EXE_frit"))
        .current_dir(d)
        .args(["import", "vol", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut seen = String::new();
    for _ in 0..200 {
        seen = ends(d, &["inspect", "vol"], 0);
        if seen.contains("in use by") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let by = format!("in use by process {} (frit)", child.id());
    assert!(seen.contains(&by), "{seen}");
    for command in [&["check", "vol"][..], &["recover", "vol"], &["export", "vol", "x"]] {
        assert!(ends(d, command, 2).contains(&by), "{command:?}");
    }
    assert!(ends(d, &[&["create", "vol", "--force"], SIZE].concat(), 1).contains(&by));
    assert!(ends(d, &["grow", "vol", "--size", "12M"], 1).contains(&by));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ends(d, &["inspect", "vol"], 0).contains("dirty"));
    assert!(ends(d, &[&["create", "vol", "--force"], SIZE].concat(), 1).contains("was not closed"));
    assert!(ends(d, &["recover", "vol"], 0).contains("The program crashed or was killed"));
    let seen = ends(d, &["inspect", "vol"], 0);
    assert!(seen.contains("state clean") && seen.contains("after a crash of the program"), "{seen}");
}

#[test]
fn growing_keeps_the_bytes_at_physical_addresses_and_prints_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    let user = std::os::unix::fs::MetadataExt::uid(&d.metadata().unwrap());
    let named = format!("raw_access=[\"uid:{user}\"]");
    ends(d, &["create", "vol", "--stack", "hfsl-small", "--set", &named, "--set", "raw_bytes=64K"], 0);
    ends(d, &["ctl", "vol", "poke", "--raw", "pcm", "4128770", "00ff7a"], 0);
    let said = ends(d, &["grow", "vol", "--set", "media.pcm.chip_bytes=512K"], 0);
    let line = "area for physical addresses: PCM 4128768+65536 before, 8323072+65536 now; offsets in it are \
                unchanged";
    assert!(said.contains(line), "{said}");
    assert!(ends(d, &["ctl", "vol", "peek", "--raw", "pcm", "8323073+5"], 0).contains("00 00 ff 7a 00"));
    let said = ends(d, &["grow", "vol", "--set", "raw_bytes=0"], 1);
    assert!(said.contains("set raw_bytes to 65536 or more"), "{said}");
}
