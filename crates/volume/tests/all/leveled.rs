//! HFSL volumes over each wear leveler of PCM: killed, stopped with the machine, and recovered.

use crate::common::{create_with, open, pattern, place_in_memory, read, try_open};
use frit_core::{CheckScope, CrashKind, Hints};
use frit_volume::{OpenOptions, Volume};

const LEVELERS: [&str; 5] = ["start-gap", "randomized-start-gap", "round-robin", "sfc", "security-refresh"];

/// Overrides for small stripes that move often.
fn sets(leveler: &str) -> Vec<String> {
    let keys = ["ranks=1", "banks=2", "cubes=2", "region=8", "stripe=4K", "interval=1"];
    let mut sets = vec!["pcm.chip_bytes=192K".to_owned(), format!("pcm_wear_leveling={leveler}")];
    sets.extend(keys.map(|key| format!("pcm_wear_{key}")));
    sets
}

/// Bytes that the volume must hold, in versions of 1 KiB.
struct Shadow {
    bytes: Vec<u8>,
    version: u32,
}

impl Shadow {
    /// Writes to a few hot and many cold places of the volume and of the shadow.
    fn write(&mut self, v: &mut Volume, requests: u64) {
        for i in 0..requests {
            self.version += 1;
            let at = if i % 2 == 0 { i % 16 } else { i * 37 % 240 } << 10;
            let data = pattern(at, self.version, 1024);
            v.write(at, &data, Hints::NONE).unwrap();
            self.bytes[at as usize..at as usize + 1024].copy_from_slice(&data);
        }
    }

    /// Asserts that the volume holds the same bytes, and that a check has no findings.
    fn compare(&self, v: &mut Volume) {
        assert!(read(v, 0, self.bytes.len()) == self.bytes);
        let scope = CheckScope { data: true, ..CheckScope::default() };
        v.check(scope, &mut |f| panic!("{f:?}")).unwrap();
    }
}

fn moves(v: &Volume) -> f64 {
    v.visible().layers[0].metrics.iter().find(|m| m.name == "wear_moves").unwrap().value
}

#[test]
fn a_leveler_below_hfsl_keeps_what_was_acknowledged() {
    for leveler in LEVELERS {
        let (_dir, dir) = place_in_memory();
        let sets = sets(leveler);
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let mut v = create_with(&dir, &sets, false).unwrap();
        let mut shadow = Shadow { bytes: vec![0; 240 << 10], version: 0 };
        for round in 0..6 {
            shadow.write(&mut v, 400);
            assert!(moves(&v) > 50.0, "{leveler}: {} moves", moves(&v));
            if round % 3 == 2 {
                v.close().unwrap();
                v = open(&dir);
                assert!(v.recovery().recovery.clean);
            } else if round % 3 == 1 {
                v.flush().unwrap();
                drop(v);
                let options = OpenOptions { read_only: false, crash: Some(CrashKind::PowerLoss) };
                v = Volume::open(&dir, &options).unwrap();
                assert!(v.recovery().power_loss && v.recovery().recovery.from_flush);
            } else {
                drop(v);
                v = open(&dir);
                assert!(!v.recovery().recovery.clean && !v.recovery().power_loss);
            }
            shadow.compare(&mut v);
        }
        v.close().unwrap();
    }
}

/// Registers that cannot be used refuse the volume with their place, and change nothing.
#[test]
fn damaged_registers_below_hfsl_are_an_error_with_the_place() {
    let (_dir, dir) = place_in_memory();
    let sets = sets("start-gap");
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let mut v = create_with(&dir, &sets, false).unwrap();
    Shadow { bytes: vec![0; 240 << 10], version: 0 }.write(&mut v, 400);
    v.close().unwrap();
    let file = dir.join("pcm.medium");
    let mut bytes = std::fs::read(&file).unwrap();
    let header = bytes.windows(8).position(|w| w == b"fritWEAR").unwrap();
    bytes[header + 9] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let e = try_open(&dir).unwrap_err().to_string();
    assert!(e.contains("wear-leveling registers is damaged"), "{e}");
    bytes[header + 9] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    open(&dir).close().unwrap();
}
