//! Compares the seven drives of DiskSim's validation set with the service times that were measured
//! on them. The files are in `../shared/drives`; if they are missing, the test prints a message and
//! passes.

use frit_core::Nanos;
use frit_media::disk::diskspecs::{self, LoadedDrive};
use frit_media::disk::score::{self, MeasuredRequest, Score};
use std::io::Read;
use std::path::{Path, PathBuf};

struct ReferenceDrive {
    name: &'static str,
    /// Score of DiskSim in µs.
    disksim_us: u32,
    /// Bus time of a sector in ns, for reads and writes, if the drive's own file does not state it
    /// (from the `.parv` files of DiskSim's validation set).
    bus_ns: Option<(u64, u64)>,
}

const fn known(name: &'static str, disksim_us: u32, bus_ns: Option<(u64, u64)>) -> ReferenceDrive {
    ReferenceDrive { name, disksim_us, bus_ns }
}

const DRIVES: [ReferenceDrive; 7] = [
    known("atlas_III", 378, None),
    known("barracuda", 348, None),
    known("cheetah4LP", 318, None),
    known("atlas10k", 268, None),
    known("hp_c2247a", 89, Some((170_100, 186_860))),
    known("hp_c2490a", 254, Some((148_410, 148_410))),
    known("dec_rz26", 341, Some((70_690, 70_690))),
];

fn folder() -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/drives");
    if !dir.is_dir() {
        eprintln!("SKIPPED: {} is not there", dir.display());
        return None;
    }
    Some(dir)
}

fn read(dir: &Path, name: &str) -> (LoadedDrive, Vec<MeasuredRequest>) {
    let loaded = diskspecs::load(&dir.join(format!("{name}.diskspecs"))).unwrap();
    let packed = std::fs::read(dir.join(format!("{name}.trace.zst"))).unwrap();
    let mut text = String::new();
    zstd::stream::read::Decoder::new(&packed[..]).unwrap().read_to_string(&mut text).unwrap();
    (loaded, score::parse(&text).unwrap())
}

fn score_with(loaded: &LoadedDrive, trace: &[MeasuredRequest], bus_ps: Option<(u64, u64)>) -> Score {
    let mut spec = loaded.spec.clone();
    if let Some((read, write)) = bus_ps {
        (spec.bus.read_ps, spec.bus.write_ps) = (read, write);
    }
    let measured: Vec<Nanos> = trace.iter().map(|m| m.service).collect();
    score::compare(&measured, &score::replay(&spec, trace).unwrap())
}

#[test]
fn no_worse_than_one_and_a_half_times_disksim_and_better_on_some() {
    let Some(dir) = folder() else { return };
    let mut better = 0;
    for ReferenceDrive { name, disksim_us, bus_ns } in DRIVES {
        let disksim = f64::from(disksim_us) / 1e3;
        let (loaded, trace) = read(&dir, name);
        assert_eq!(loaded.spec.bus.read_ps == 0, bus_ns.is_some(), "{name}");
        let s = score_with(&loaded, &trace, bus_ns.map(|(r, w)| (r * 1000, w * 1000)));
        eprintln!("{name}: {:.3} ms, DiskSim {disksim:.3} ms", s.rms_ms);
        assert!(s.rms_ms <= 1.5 * disksim, "{name}: {s:?}");
        better += usize::from(s.rms_ms < disksim);
    }
    assert!(better >= 4, "better on {better} of seven");
}

#[test]
fn the_bus_that_a_trace_shows_does_as_well() {
    let Some(dir) = folder() else { return };
    for ReferenceDrive { name, disksim_us, bus_ns } in DRIVES {
        let Some((published, _)) = bus_ns else { continue };
        let disksim = f64::from(disksim_us) / 1e3;
        let (loaded, trace) = read(&dir, name);
        let seen = score::bus_ps(&trace).unwrap();
        assert!((seen as f64 / (published * 1000) as f64 - 1.0).abs() < 0.12, "{name}: {seen} ps");
        let s = score_with(&loaded, &trace, Some((seen, seen)));
        eprintln!(
            "{name}: {:.3} ms with the bus of its trace, {:.4} ms a sector",
            s.rms_ms,
            seen as f64 / 1e9
        );
        assert!(s.rms_ms <= 1.5 * disksim, "{name}: {s:?}");
    }
}
