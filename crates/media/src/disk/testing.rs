//! A drive whose times can be computed by hand.

use super::geometry::{DiskGeometry, Zone};
use super::seek::SeekCurve;
use super::spec::{
    Background, Bus, CacheSpec, DiskSpec, DriveScheduler, MAX_WAIT, Mechanics, Overheads, Positioning,
};
use frit_core::Nanos;

/// Returns a drive of 100 cylinders with one track of 100 sectors each and no skew. A revolution
/// takes 10 ms, thus a sector 0.1 ms; a seek takes 1 ms plus 0.1 ms per cylinder. It has no
/// overheads and no cache, and its bus takes 1 µs per sector.
pub(super) fn simple() -> DiskSpec {
    let ms = |x: u64| Nanos(x * 1_000_000);
    let zone = Zone { last_cylinder: 99, sectors_per_track: 100, ..Zone::default() };
    DiskSpec {
        name: "simple".into(),
        geometry: DiskGeometry { heads: 1, cylinders: 100, zones: vec![zone], ..DiskGeometry::default() },
        mechanics: Mechanics {
            positioning: Positioning::Full,
            revolution_ps: 10_000_000_000,
            seek: SeekCurve::Points(vec![(1, Nanos(1_100_000)), (90, ms(10))]),
            head_switch: ms(1),
            write_settle_ns: 500_000,
        },
        overheads: Overheads::default(),
        bus: Bus { read_ps: 1_000_000, write_ps: 1_000_000, holds_reads: true, ..Bus::default() },
        cache: CacheSpec::default(),
        queue_depth: 1,
        scheduler: DriveScheduler::Fifo,
        max_wait: MAX_WAIT,
        background: Background::Yield,
    }
}
