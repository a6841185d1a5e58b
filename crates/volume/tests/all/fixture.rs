//! Volumes created by earlier versions still open, with their contents intact.
//!
//! `cargo test -p frit-volume --test all -- --ignored fixture::make` regenerates the fixture of the
//! present format. That is allowed only until the format is released: afterwards a change of the
//! format is a new version, with a fixture of its own beside the old ones. Fixtures are named by
//! the version of the superblock and, where it is another one, that of HFSL in PCM.

use crate::common::{self, open_read_only, read};
use frit_core::{CheckScope, CrashKind, Hints};
use frit_volume::superblock::VolumeState;
use frit_volume::{OpenOptions, Volume, inspect};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Number of requests that the fixture was made with.
const REQUESTS: u64 = 900;
/// Size of the volume's first part, in bytes, which receives nearly all requests.
const BUSY: u64 = 160 << 10;

/// Names of the fixtures, each with the version of HFSL in PCM; the last one is the present format.
/// Version 1 has one redo record in the header, and version 2 a ring of them.
const FIXTURES: [(&str, u32); 2] = [("1", 1), ("1-hfsl-2", 2)];

fn file(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/format-{version}.tar.zst"))
}

/// Returns the version in the header of HFSL.
fn hfsl_version(volume: &Path) -> u32 {
    let pcm = std::fs::read(volume.join("pcm.medium")).unwrap();
    assert_eq!(&pcm[..8], b"fritHFSL");
    u32::from_le_bytes(pcm[8..12].try_into().unwrap())
}

/// A request.
enum FixtureRequest {
    Write(u64, Vec<u8>),
    Discard(u64, u64),
    Flush,
}

/// Returns sectors that identify their address and the request that wrote them, and that compress
/// well.
fn data(at: u64, n: u64, len: u64) -> Vec<u8> {
    (at / 512..(at + len) / 512).flat_map(|sector| (sector << 16 | n).to_le_bytes().repeat(64)).collect()
}

/// Returns the n-th request. The sequence must never change.
fn request(n: u64, size: u64) -> FixtureRequest {
    let mut x = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^= x >> 27;
    let len = [512, 512, 1024, 2048, 4096, 4096, 8192, 16_384][(x >> 8 & 7) as usize];
    let span = if x >> 20 & 31 == 0 { size } else { BUSY };
    let at = (x >> 32) % ((span - len) / 512) * 512;
    match x & 15 {
        0 => FixtureRequest::Discard(at, len),
        1 if n.is_multiple_of(4) => FixtureRequest::Flush,
        _ => FixtureRequest::Write(at, data(at, n, len)),
    }
}

/// Carries out requests on the volume and on `shadow`; without `v`, only on `shadow`, for the
/// expected contents.
fn carry_out(requests: std::ops::Range<u64>, shadow: &mut [u8], mut v: Option<&mut Volume>) {
    for n in requests {
        match request(n, shadow.len() as u64) {
            FixtureRequest::Write(at, data) => {
                shadow[at as usize..at as usize + data.len()].copy_from_slice(&data);
                if let Some(v) = &mut v {
                    v.write(at, &data, Hints::NONE).unwrap();
                }
            }
            FixtureRequest::Discard(at, len) => {
                shadow[at as usize..(at + len) as usize].fill(0);
                if let Some(v) = &mut v {
                    v.discard(at, len).unwrap();
                }
            }
            FixtureRequest::Flush => v.iter_mut().for_each(|v| v.flush().unwrap()),
        }
        if let Some(v) = &mut v
            && n.is_multiple_of(16)
        {
            v.step(8).unwrap();
        }
    }
}

/// Creates the fixture: a volume that was closed, and one that was not.
#[test]
#[ignore = "writes the fixture of the present format"]
fn make() {
    let dir = tempfile::tempdir().unwrap();
    for (name, closed) in [("clean", true), ("dirty", false)] {
        let sets =
            ["nand.blocks_per_plane=12", "pcm.chip_bytes=64K", "pcm.chips_per_channel=2", "pcm.channels=1"];
        let mut v = common::create_with(&dir.path().join(name), &sets, false).unwrap();
        let mut shadow = vec![0; v.bytes() as usize];
        carry_out(0..REQUESTS / 2, &mut shadow, Some(&mut v));
        v.set_param("SSW", "1024").unwrap();
        v.set_param("gc", "fifo").unwrap();
        carry_out(REQUESTS / 2..REQUESTS, &mut shadow, Some(&mut v));
        if closed {
            v.close().unwrap();
        }
    }
    let (present, _) = FIXTURES[FIXTURES.len() - 1];
    std::fs::create_dir_all(file(present).parent().unwrap()).unwrap();
    let out = zstd::Encoder::new(File::create(file(present)).unwrap(), 19).unwrap();
    let mut tar = tar::Builder::new(out);
    for name in ["clean", "dirty"] {
        for (inside, bytes) in common::files(&dir.path().join(name)) {
            if inside == "frit.lock" {
                continue;
            }
            // Times and owners are not part of the fixture.
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            tar.append_data(&mut header, format!("{name}/{inside}"), &bytes[..]).unwrap();
        }
    }
    tar.into_inner().unwrap().finish().unwrap();
}

#[test]
fn every_version_has_a_fixture_that_opens_and_holds_what_it_held() {
    for (version, hfsl) in FIXTURES {
        let dir = tempfile::tempdir().unwrap();
        let packed = File::open(file(version)).unwrap_or_else(|e| panic!("format {version}: {e}"));
        assert!(packed.metadata().unwrap().len() < 512 << 10);
        tar::Archive::new(zstd::Decoder::new(packed).unwrap()).unpack(dir.path()).unwrap();
        for (name, state) in [("clean", VolumeState::Clean), ("dirty", VolumeState::Dirty)] {
            let volume = dir.path().join(name);
            let s = inspect(&volume).unwrap().superblock;
            assert_eq!(s.state, state);
            let params = [("SSW".to_owned(), "1024".to_owned()), ("gc".into(), "fifo".into())];
            assert_eq!(s.params, params);
            // A volume of an older version has no lock file; the first opening creates it.
            std::fs::write(volume.join("frit.lock"), b"").unwrap();
            assert_eq!(hfsl_version(&volume), hfsl);
            let before = common::files(&volume);
            let mut v = open_read_only(&volume).unwrap_or_else(|e| panic!("format {version}, {name}: {e}"));
            let mut shadow = vec![0; v.bytes() as usize];
            carry_out(0..REQUESTS, &mut shadow, None);
            // As after a power loss: whichever map is used, every page that it names exists.
            for (read_only, stop) in
                [(true, CrashKind::PowerLoss), (true, CrashKind::Process), (false, CrashKind::Process)]
            {
                drop(v);
                v = Volume::open(&volume, &OpenOptions { read_only, crash: Some(stop) }).unwrap();
                assert!(v.recovery().recovery.lost.is_empty());
                assert_eq!(v.recovery().recovery.clean, state == VolumeState::Clean);
                if stop == CrashKind::Process {
                    assert!(read(&mut v, 0, shadow.len()) == shadow, "format {version}, {name}");
                }
                if read_only {
                    assert!(common::files(&volume) == before);
                }
            }
            let mut found = Vec::new();
            v.check(CheckScope { data: true, ..CheckScope::default() }, &mut |f| found.push(f)).unwrap();
            assert!(found.is_empty(), "format {version}, {name}: {found:?}");
            // Commits of several entries, on a volume of either version.
            for n in REQUESTS..REQUESTS + 100 {
                v.write(n * 4096 % BUSY, &data(n * 4096 % BUSY, n, 4096), Hints::NONE).unwrap();
            }
            v.write(0, &data(0, 7, 4096), Hints::FUA).unwrap();
            v.close().unwrap();
            assert_eq!(hfsl_version(&volume), hfsl, "the version stays");
            let mut v = common::open(&volume);
            v.check(CheckScope { data: true, ..CheckScope::default() }, &mut |f| panic!("{f:?}")).unwrap();
            assert!(read(&mut v, 0, 4096) == data(0, 7, 4096));
        }
    }
}
