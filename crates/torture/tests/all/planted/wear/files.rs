//! Crashes and power losses, over a file behind a page cache.

use super::device::{Run, TestDevice};
use frit_core::{CrashKind, Sink};
use frit_torture::block::access_log::AccessLog;
use frit_torture::block::medium::SharedMedium;
use frit_torture::block::page_cache::{FileImages, FileStop, WritebackOutcome, choose_stops};
use std::sync::Arc;

/// Number of stops of a run.
const STOPS: usize = 220;
/// Number of stops of a recovery.
const NESTED: usize = 12;

/// Stops a recorded run everywhere. Returns the number of images.
pub(crate) fn stops(device: &TestDevice, seed: u64) -> Result<usize, String> {
    let mut images = 0;
    for stop in [CrashKind::Process, CrashKind::PowerLoss] {
        let store = device.blank(true);
        let run = device.record(&store, seed)?;
        let stores = [store];
        let cuts = choose_stops(run.log.accesses.len(), seed, STOPS);
        let mut files = FileImages::new(&run.log, &stores);
        for (i, &cut) in cuts.iter().enumerate().filter(|(_, c)| c.stop == stop) {
            files.apply(cut);
            look(device, &run, &stores[0], cut).map_err(|v| format!("{v} [{cut:?}]"))?;
            if i % 16 == 0 {
                files.apply(cut);
                nested(device, &stores[0], cut).map_err(|v| format!("{v} [{cut:?}]"))?;
            }
            images += 1;
        }
    }
    Ok(images)
}

fn look(device: &TestDevice, run: &Run, store: &SharedMedium, cut: FileStop) -> Result<(), String> {
    let flushed = run.flushes.iter().rev().find(|f| f.1 <= cut.at).map_or(0, |f| f.0 as usize);
    let lasted = |r: usize| match cut.stop {
        CrashKind::Process => run.ends[r] <= cut.at,
        CrashKind::PowerLoss => r < flushed,
    };
    let found = device.recover(store, cut.stop)?;
    run.history.check(&found, lasted, cut.stop == CrashKind::Process)?;
    // The machine is running again, so only crashes of the process follow.
    if device.recover(store, CrashKind::Process)? != found {
        return Err("a second recovery gives different contents".into());
    }
    device.alive(store, &found, cut.seed)
}

/// Stops the recovery in the same way, or by a crash.
fn nested(device: &TestDevice, store: &SharedMedium, cut: FileStop) -> Result<(), String> {
    let copy = device.blank(true);
    copy.lock().copy_from(&store.lock());
    let want = device.recover(&copy, cut.stop)?;
    {
        let mut m = copy.lock();
        m.undo();
        m.access_log = Some(Arc::new(AccessLog::default()));
    }
    let access_log = copy.lock().access_log.clone().expect("it was set");
    let mut d = device.open(&copy)?;
    d.recover(&mut Sink::untimed(), cut.stop).map_err(|e| e.to_string())?;
    drop(d);
    {
        let mut m = copy.lock();
        m.access_log = None;
        m.undo();
    }
    let log = access_log.take();
    let copies = [copy];
    if cut.stop == CrashKind::PowerLoss {
        ended(device, &copies[0], &log, &want)?;
    }
    let mut files = FileImages::new(&log, &copies);
    for inner in choose_stops(log.accesses.len(), cut.seed, NESTED) {
        let back = if cut.stop == CrashKind::Process { WritebackOutcome::All(0) } else { inner.back };
        files.apply(FileStop { stop: cut.stop, back, ..inner });
        if device.recover(&copies[0], cut.stop)? != want {
            return Err(format!(
                "a recovery that was cut off at access {} gives different contents",
                inner.at
            ));
        }
    }
    Ok(())
}

/// Crashes the process in the recovery after a power loss, at each access of that recovery.
fn ended(
    device: &TestDevice,
    store: &SharedMedium,
    log: &frit_torture::block::access_log::AccessRecords,
    want: &[u8],
) -> Result<(), String> {
    for at in 1..=log.accesses.len() {
        let copy = device.blank(true);
        copy.lock().copy_from(&store.lock());
        let copies = [copy];
        FileImages::new(log, &copies).apply(FileStop {
            at,
            stop: CrashKind::Process,
            back: WritebackOutcome::All(0),
            seed: 1,
        });
        if device.recover(&copies[0], CrashKind::Process)? != want {
            return Err(format!("a crash at access {at} of recovery gives different contents"));
        }
    }
    Ok(())
}
