//! Power cuts at every command, and damaged registers.

use super::device::TestDevice;
use frit_core::CrashKind;
use frit_torture::block::crash_image::{ImageBuilder, TearGranularity, first_uncertain};
use frit_torture::block::cut::{CutOptions, choose_cuts};

/// Largest number of cuts of a run.
const CUTS: usize = 300;

/// Cuts a recorded run everywhere. Returns the number of images.
pub(crate) fn power(device: &TestDevice, seed: u64) -> Result<usize, String> {
    let store = device.blank(false);
    let run = device.record(&store, seed)?;
    let stores = [store];
    let cuts = choose_cuts(&run.graph, seed, CutOptions { most: CUTS, exhaustive: false });
    let mut order: Vec<(usize, usize)> =
        cuts.iter().enumerate().map(|(i, c)| (first_uncertain(&run.graph, c), i)).collect();
    order.sort_unstable();
    let word_bytes = if seed.is_multiple_of(2) { 64 } else { 8 };
    let mut applier =
        ImageBuilder::new(&run.graph, &stores, TearGranularity { word_bytes, paired_pages: false });
    for &(open, i) in &order {
        applier.apply(&cuts[i], open);
        let lasted = run.graph.acknowledged(&cuts[i].set);
        let found = device.recover(&stores[0], CrashKind::Process)?;
        run.history.check(&found, |r| lasted.has(r), true)?;
        if device.recover(&stores[0], CrashKind::Process)? != found {
            return Err("a second recovery gives different contents".into());
        }
        if i % 8 == 0 {
            device.alive(&stores[0], &found, seed)?;
        }
    }
    Ok(order.len())
}

/// Damages each line of the registers in turn. Recovery must give the correct contents or fail.
pub(crate) fn damage(device: &TestDevice, seed: u64) -> Result<usize, String> {
    let store = device.blank(false);
    let run = device.record(&store, seed)?;
    let stores = [store];
    let cuts = choose_cuts(&run.graph, seed, CutOptions { most: 1, exhaustive: false });
    let mut all = cuts[0].clone();
    all.set = frit_torture::block::command_set::CommandSet::below(run.graph.len(), run.graph.len());
    ImageBuilder::new(&run.graph, &stores, TearGranularity::default()).apply(&all, run.graph.len());
    stores[0].lock().commit();
    let right = device.recover(&stores[0], CrashKind::Process)?;
    let d = device.open(&stores[0])?;
    let data = u64::from(d.shape().stripes()) * u64::from(d.shape().stripe_bytes);
    let end = d.pcm().bytes();
    drop(d);
    let mut lines = 0;
    if device.is_plain() {
        return Ok(lines);
    }
    for at in (data..end).step_by(64) {
        for garbage in [0u8, 0xFF, 0x5A] {
            stores[0].lock().poke(at, |b| b.fill(garbage), 64);
            if let Ok(found) = device.recover(&stores[0], CrashKind::Process)
                && found != right
            {
                return Err(format!("registers damaged at {at}: recovery gives wrong contents"));
            }
            stores[0].lock().undo();
            lines += 1;
        }
    }
    Ok(lines)
}
