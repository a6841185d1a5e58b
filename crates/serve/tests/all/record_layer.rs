//! Recordings of layers of served volumes.

use crate::common::reopen;
use frit_core::Hints;
use frit_serve::{Device, DeviceOptions, TraceRecorder};
use frit_stack::Stack;
use frit_trace::{Options, ReqOp, Workload};
use frit_volume::{CreateOptions, Volume};
use std::path::Path;
use std::sync::Arc;

fn volume(dir: &Path, file: &Path) -> Volume {
    let text = format!(
        "[media.hdd]\nprofile = \"st3500320as-2008\"\nbytes = \"1M\"\n\
         [rec]\nkind = \"record\"\ndevice = \"hdd\"\nfile = \"{}\"\n",
        file.display()
    );
    let stack = Stack::parse("recorded", &text, &[]).unwrap();
    Volume::create(dir, &CreateOptions { stack, force: false }).unwrap().close().unwrap();
    assert!(!file.exists(), "creation records nothing");
    reopen(dir)
}

/// Serves a volume, with those recordings whose files can be created.
fn serve(volume: Volume) -> (Arc<Device>, usize) {
    let layer_recorders: Vec<_> =
        volume.record_ports().iter().filter_map(|port| TraceRecorder::of_layer(port).ok()).collect();
    let recordings = layer_recorders.len();
    let options = DeviceOptions { layer_recorders, ..DeviceOptions::default() };
    (Device::new(Box::new(volume), options), recordings)
}

fn use_it(d: &Device) {
    let _ = d.lock().write(4096, &[1; 8192], Hints::NONE).unwrap();
    let _ = d.lock().read(8192, &mut [0; 512]).unwrap();
    let _ = d.lock().discard(0, 4096).unwrap();
    let _ = d.flush().unwrap();
}

fn unrecorded(d: &Device) -> f64 {
    d.with(|b| b.visible().metric("unrecorded_requests")).unwrap().unwrap()
}

#[test]
fn requests_of_a_layer_are_recorded_while_the_volume_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let (at, file) = (dir.path().join("volume"), dir.path().join("rec.csv"));
    let (d, recordings) = serve(volume(&at, &file));
    assert_eq!(recordings, 1);
    use_it(&d);
    assert_eq!(unrecorded(&d), 0.0);
    d.close().unwrap();
    let mut workload = Workload::open(file.to_str().unwrap(), &Options::default()).unwrap();
    let (mut got, mut batch) = (Vec::new(), Vec::new());
    while workload.fill(&mut batch).unwrap() {
        got.extend(batch.iter().map(|r| (r.op, r.sector.0, r.sectors)));
    }
    let expected =
        [(ReqOp::Write, 8, 16), (ReqOp::Read, 16, 1), (ReqOp::Discard, 0, 8), (ReqOp::Flush, 0, 0)];
    assert_eq!(got[..4], expected);
    // The rest are the flushes of the closing.
    assert!(got[4..].iter().all(|r| r.0 == ReqOp::Flush), "{got:?}");

    // The next session does not replace the file, and serves its clients all the same.
    let before = std::fs::read(&file).unwrap();
    let (d, recordings) = serve(reopen(&at));
    assert_eq!(recordings, 0);
    use_it(&d);
    d.close().unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), before);
}
