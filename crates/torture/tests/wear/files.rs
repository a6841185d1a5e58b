//! Crashes and power losses, over a file behind a page cache.

use crate::rig::{Rig, Run};
use frit_core::{Null, Stop};
use frit_torture::files::{Back, FileCut, Files, choose};
use frit_torture::medium::Shared;
use frit_torture::tap::Tap;
use std::sync::Arc;

/// Number of stops of a run.
const STOPS: usize = 220;
/// Number of stops of a recovery.
const NESTED: usize = 12;

/// Stops a recorded run everywhere. Returns the number of images.
pub(crate) fn stops(rig: &Rig, seed: u64) -> Result<usize, String> {
    let mut images = 0;
    for stop in [Stop::Process, Stop::Machine] {
        let store = rig.blank(true);
        let run = rig.record(&store, seed)?;
        let stores = [store];
        let cuts = choose(run.log.accesses.len(), seed, STOPS);
        let mut files = Files::new(&run.log, &stores);
        for (i, &cut) in cuts.iter().enumerate().filter(|(_, c)| c.stop == stop) {
            files.apply(cut);
            look(rig, &run, &stores[0], cut).map_err(|v| format!("{v} [{cut:?}]"))?;
            if i % 16 == 0 {
                files.apply(cut);
                nested(rig, &stores[0], cut).map_err(|v| format!("{v} [{cut:?}]"))?;
            }
            images += 1;
        }
    }
    Ok(images)
}

fn look(rig: &Rig, run: &Run, store: &Shared, cut: FileCut) -> Result<(), String> {
    let flushed = run.flushes.iter().rev().find(|f| f.1 <= cut.at).map_or(0, |f| f.0 as usize);
    let lasted = |r: usize| match cut.stop {
        Stop::Process => run.ends[r] <= cut.at,
        Stop::Machine => r < flushed,
    };
    let found = rig.recover(store, cut.stop)?;
    run.history.check(&found, lasted, cut.stop == Stop::Process)?;
    // The machine is running again, so only crashes of the process follow.
    if rig.recover(store, Stop::Process)? != found {
        return Err("a second recovery gives different contents".into());
    }
    rig.alive(store, &found, cut.seed)
}

/// Stops the recovery in the same way, or by a crash.
fn nested(rig: &Rig, store: &Shared, cut: FileCut) -> Result<(), String> {
    let copy = rig.blank(true);
    copy.lock().copy_from(&store.lock());
    let want = rig.recover(&copy, cut.stop)?;
    {
        let mut m = copy.lock();
        m.undo();
        m.tap = Some(Arc::new(Tap::default()));
    }
    let tap = copy.lock().tap.clone().expect("it was set");
    let mut d = rig.open::<()>(&copy)?;
    d.recover(&mut Null, cut.stop).map_err(|e| e.to_string())?;
    drop(d);
    {
        let mut m = copy.lock();
        m.tap = None;
        m.undo();
    }
    let log = tap.take();
    let copies = [copy];
    if cut.stop == Stop::Machine {
        ended(rig, &copies[0], &log, &want)?;
    }
    let mut files = Files::new(&log, &copies);
    for inner in choose(log.accesses.len(), cut.seed, NESTED) {
        let back = if cut.stop == Stop::Process { Back::All(0) } else { inner.back };
        files.apply(FileCut { stop: cut.stop, back, ..inner });
        if rig.recover(&copies[0], cut.stop)? != want {
            return Err(format!(
                "a recovery that was cut off at access {} gives different contents",
                inner.at
            ));
        }
    }
    Ok(())
}

/// Crashes the process in the recovery after a power loss, at each access of that recovery.
fn ended(rig: &Rig, store: &Shared, log: &frit_torture::tap::Log, want: &[u8]) -> Result<(), String> {
    for at in 1..=log.accesses.len() {
        let copy = rig.blank(true);
        copy.lock().copy_from(&store.lock());
        let copies = [copy];
        Files::new(log, &copies).apply(FileCut { at, stop: Stop::Process, back: Back::All(0), seed: 1 });
        if rig.recover(&copies[0], Stop::Process)? != want {
            return Err(format!("a crash at access {at} of recovery gives different contents"));
        }
    }
    Ok(())
}
