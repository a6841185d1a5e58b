//! Hints that a device gives to writes: their effect on the placement of an HFSL volume, their
//! counters, and that they change no data.

use crate::common::{reopen, volume};
use frit_core::{HintKind, Hints, MediumKind};
use frit_serve::hints::{HintCount, HintOptions, HintSource};
use frit_serve::{Backend, Device, DeviceOptions, TraceRecorder};
use std::path::Path;
use std::sync::Arc;

const KIB: u64 = 1 << 10;

/// Opens a new HFSL volume on which only hints send writes to PCM.
fn device(dir: &Path, hints: HintOptions) -> Arc<Device> {
    let mut volume = volume(&dir.join("volume"));
    Backend::set_params(&mut volume, &[("placement", "hint")]).unwrap();
    Device::new(Box::new(volume), DeviceOptions { hints, ..DeviceOptions::default() })
}

fn ranges(texts: &[&str]) -> HintOptions {
    HintOptions { ranges: texts.iter().map(|t| t.parse().unwrap()).collect(), ..HintOptions::default() }
}

/// Returns the medium of each KiB of a range.
fn media(device: &Device, at: u64, len: u64) -> Vec<Option<MediumKind>> {
    let mut media = Vec::new();
    let mut each = |bytes: u64, medium| media.extend(std::iter::repeat_n(medium, (bytes / KIB) as usize));
    device.lock().extents(at, len, &mut each).unwrap();
    media
}

fn write(device: &Device, at: u64, data: &[u8]) {
    let _ = device.lock().write(at, data, Hints::NONE).unwrap();
}

fn count(device: &Device, source: HintSource, kind: HintKind) -> HintCount {
    device.counters().hints.get(source, kind)
}

#[test]
fn a_range_sends_its_pages_to_pcm_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let device = device(dir.path(), ranges(&["64K+16K=metadata"]));
    let data: Vec<u8> = (0..128 * KIB).map(|i| ((i * 7) >> 3) as u8).collect();
    write(&device, 0, &data);
    let media = media(&device, 0, 128 * KIB);
    for (kib, medium) in media.iter().enumerate() {
        let want = if (64..80).contains(&kib) { MediumKind::Pcm } else { MediumKind::Nand };
        assert_eq!(*medium, Some(want), "KiB {kib}");
    }
    let mut back = vec![0; data.len()];
    let _ = device.lock().read(0, &mut back).unwrap();
    assert!(back == data, "the parts of a write are in their places");
    let counted = HintCount { requests: 1, bytes: 16 * KIB };
    assert_eq!(count(&device, HintSource::Range, HintKind::Metadata), counted);
    // The rule ends with its removal.
    assert!(device.remove_hint("64K+16K=metadata".parse().unwrap()));
    write(&device, 64 * KIB, &data[..16 * KIB as usize]);
    assert!(media_are(&device, 64 * KIB, 16 * KIB, MediumKind::Nand));
    assert_eq!(count(&device, HintSource::Range, HintKind::Metadata), counted);
    device.close().unwrap();
    let mut volume = reopen(&dir.path().join("volume"));
    volume.read(0, &mut back).unwrap();
    assert!(back[..64 * KIB as usize] == data[..64 * KIB as usize], "data after a restart");
}

fn media_are(device: &Device, at: u64, len: u64, medium: MediumKind) -> bool {
    media(device, at, len).iter().all(|m| *m == Some(medium))
}

#[test]
fn writes_of_partial_sectors_get_hints_too() {
    let dir = tempfile::tempdir().unwrap();
    let device = device(dir.path(), ranges(&["0+4K=metadata"]));
    write(&device, 100, &[7; 300]);
    assert!(media_are(&device, 0, 2 * KIB, MediumKind::Pcm));
    assert_eq!(count(&device, HintSource::Range, HintKind::Metadata), HintCount { requests: 1, bytes: 300 });
    device.close().unwrap();
}

#[test]
fn hints_of_the_protocol_are_counted_without_any_rule() {
    let dir = tempfile::tempdir().unwrap();
    let device = device(dir.path(), HintOptions::default());
    let _ = device.lock().write(0, &[7; 8192], Hints::METADATA.with(Hints::FUA)).unwrap();
    assert!(media_are(&device, 0, 8 * KIB, MediumKind::Pcm));
    let counted = HintCount { requests: 1, bytes: 8 * KIB };
    assert_eq!(count(&device, HintSource::Protocol, HintKind::Metadata), counted);
    assert_eq!(device.counters().hints.iter().filter(|c| c.2 != HintCount::default()).count(), 1);
    device.close().unwrap();
}

#[test]
fn a_range_outside_the_volume_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let device = device(dir.path(), ranges(&["100T+4K=hot"]));
    assert_eq!(device.hints().ranges, [], "a server ignores it, with a message");
    assert!(device.add_hint("100T+4K=hot".parse().unwrap()).unwrap_err().contains("beyond the volume"));
    device.close().unwrap();
}

/// A recording has the hints that all pages of a write have, so that its replay places them alike.
#[test]
fn a_recording_has_the_hints_of_whole_writes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.csv");
    let recorder = Some(TraceRecorder::create(path.to_str().unwrap()).unwrap());
    let hints = ranges(&["4K+8K=metadata", "8K+4K=hot"]);
    let options = DeviceOptions { recorder, hints, ..DeviceOptions::default() };
    let device = Device::new(Box::new(volume(&dir.path().join("volume"))), options);
    write(&device, 4096, &[1; 8192]);
    write(&device, 8192, &[1; 4096]);
    write(&device, 0, &[1; 8192]);
    device.close().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let flags: Vec<&str> = text.lines().skip(1).map(|l| l.split(',').nth(4).unwrap()).collect();
    assert_eq!(flags, ["M", "MH", ""], "{text}");
}
