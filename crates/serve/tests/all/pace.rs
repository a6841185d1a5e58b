//! Tests of pacing. Only lower bounds are asserted: a busy machine is late, but never early.

use crate::common::volume;
use frit_core::{Hints, Sink};
use frit_engine::InOrder;
use frit_serve::ctl::{ControlTarget, DeviceTarget, VolumeInfo};
use frit_serve::pace::{PaceMeter, PacedBackend, Timer};
use frit_serve::{Device, DeviceOptions, ReplyTime};
use frit_volume::{OpenOptions, Volume};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Program latency of a NAND page in the stack `hfsl-small`, 200 µs; the read latency is 62 µs
/// (profile slc-k9-2016).
const PROGRAM: Duration = Duration::from_micros(200);
const READ: Duration = Duration::from_micros(62);

fn paced(dir: &Path) -> (Arc<Device>, Arc<PaceMeter>) {
    volume(dir).close().unwrap();
    let mut modelled = None;
    let volume = Volume::open_with(dir, &OpenOptions::default(), |hardware| {
        modelled = Some(hardware.clone());
        Sink::new(InOrder::new(hardware))
    })
    .unwrap();
    let meter = Arc::new(PaceMeter::default());
    let backend = PacedBackend::new(volume, modelled.unwrap(), meter.clone());
    let options = DeviceOptions { meter: Some(meter.clone()), ..DeviceOptions::default() };
    (Device::new(Box::new(backend), options), meter)
}

/// Returns the time from `since` to the due time of the reply.
fn after(done: ReplyTime, since: Instant) -> Duration {
    done.not_before.unwrap().saturating_duration_since(since)
}

#[test]
fn replies_take_at_least_the_time_of_the_medium() {
    let dir = tempfile::tempdir().unwrap();
    let (device, _) = paced(&dir.path().join("volume"));
    assert!(device.paced());
    let data = vec![5; 64 * 1024];
    let start = Instant::now();
    let done = device.lock().write(0, &data, Hints::NONE).unwrap();
    assert!(after(done, start) >= PROGRAM, "{:?}", after(done, start));
    // The read uses the same units as the write, and is executed after it.
    let mut back = vec![0; 2048];
    let read = device.lock().read(0, &mut back).unwrap();
    assert_eq!(back, data[..2048]);
    assert!(read.not_before.unwrap() > start + PROGRAM);
    std::thread::sleep(Duration::from_millis(50));
    let start = Instant::now();
    let read = device.lock().read(4096, &mut back).unwrap();
    assert!(after(read, start) >= READ, "{:?}", after(read, start));
    // A small write goes to PCM, so its latency depends on the number of bytes.
    let done = device.lock().write(1 << 20, &[1; 512], Hints::NONE).unwrap();
    assert!(done.not_before.is_some());
    device.close().unwrap();
}

#[test]
fn a_busy_unit_makes_the_next_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (device, _) = paced(&dir.path().join("volume"));
    let start = Instant::now();
    let mut last = start;
    // There are more pages than units, so programs must be queued.
    for i in 0..16u64 {
        let done = device.lock().write(i << 18, &vec![1; 256 * 1024], Hints::NONE).unwrap();
        last = last.max(done.not_before.unwrap());
    }
    let pages = 16 * 128;
    let units = 16;
    assert!(last - start >= PROGRAM * (pages / units), "{:?}", last - start);
    device.close().unwrap();
}

#[test]
fn what_was_achieved_is_reported_by_operation() {
    let dir = tempfile::tempdir().unwrap();
    let (device, meter) = paced(&dir.path().join("volume"));
    let timer = Timer::start().unwrap();
    let send = |done: ReplyTime| {
        let (device, due) = (device.clone(), done.not_before.unwrap());
        timer.at(due, move || device.replied(due));
    };
    for i in 0..40u64 {
        send(device.lock().write(i * 8192, &[i as u8; 8192], Hints::NONE).unwrap());
        send(device.lock().read(i * 8192, &mut [0; 4096]).unwrap());
    }
    send(device.flush().unwrap());
    drop(timer);
    let stat = meter.stat();
    let ops: Vec<(&str, u64)> = stat.iter().map(|s| (&s.op[..], s.replies)).collect();
    assert_eq!(ops, [("read", 40), ("write", 40), ("flush", 1)]);
    for s in stat.iter().filter(|s| s.op != "flush") {
        assert!(s.model_p50_ns > 0, "{s:?}");
    }
    device.close().unwrap();
}

#[test]
fn busy_and_idle_channels_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (device, meter) = paced(&dir.path().join("volume"));
    let about = VolumeInfo { pace: Some(meter), ..VolumeInfo::default() };
    let target = DeviceTarget::new(device.clone(), about);
    std::thread::sleep(Duration::from_millis(20));
    let idle = target.stat().channels;
    // Eight channels of NAND with a unit each, two of PCM.
    let count = |medium: &str| idle.iter().filter(|c| c.medium == medium).count();
    assert_eq!((count("nand"), count("pcm"), idle.len()), (8, 2, 10), "{idle:?}");
    assert!(idle.iter().all(|c| c.busy_units == 0 && c.idle_in_ns == 0 && c.units > 0), "{idle:?}");
    // 16 pages on each of the channels: about 3 ms.
    let done = device.lock().write(0, &vec![1; 128 * 2048], Hints::NONE).unwrap();
    let busy = target.stat().channels;
    let nand: Vec<_> = busy.iter().filter(|c| c.medium == "nand").collect();
    if done.not_before.unwrap() > Instant::now() {
        assert!(nand.iter().any(|c| c.busy_units > 0 && c.idle_in_ns > 0), "{nand:?}");
    }
    for (before, after) in idle.iter().zip(&busy).filter(|(c, _)| c.medium == "nand") {
        assert!(after.busy_ns > before.busy_ns, "{before:?} {after:?}");
    }
    assert_eq!(busy.iter().map(|c| c.channel).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
    device.close().unwrap();
}
