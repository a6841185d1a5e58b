//! Metadata benchmark of `frit fs-sim`: create, stat, rename and unlink in one directory, compared
//! with a model of it.

use super::measure::MetricsRecorder;
use super::{BenchVerification, directory};
use crate::error::{Error, Result};
use crate::sim_medium::SimMedium;
use frit_fs::{Caller, FileSystem, Fs, Ino, InodeType, NewInode, Paths, RenameMode};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;

/// Path of the directory.
const PATH: &str = "names";

/// Expected names of the directory, with their inodes.
pub(super) type ExpectedNames = BTreeMap<Vec<u8>, Ino>;

fn first_name(i: u64) -> Vec<u8> {
    format!("file-{i:09}").into_bytes()
}

fn second_name(i: u64) -> Vec<u8> {
    format!("name-{i:09}").into_bytes()
}

/// Runs all operations on `count` names and returns the names that remain.
///
/// All names are compared in every run, also without `verify`. A listing changes the directory's
/// times, which later operations write, and a verified run must have the same metrics as any other.
pub(super) fn play(
    fs: &Fs<&SimMedium>,
    meter: &mut MetricsRecorder<'_>,
    count: u64,
    rng: &mut SmallRng,
    checked: &mut BenchVerification,
) -> Result<ExpectedNames> {
    let mut model = ExpectedNames::new();
    if count == 0 {
        return Ok(model);
    }
    let me = Caller::ROOT;
    let dir = directory(fs, PATH)?;
    let mut order: Vec<u64> = (0..count).collect();
    meter.begin();
    for i in &order {
        let name = first_name(*i);
        let made = meter.operation(|| fs.create(&me, dir, &name, NewInode::file(0o644)));
        model.insert(name, made.map_err(Error::fs("create"))?.ino);
    }
    meter.end("create", None, 0, false);
    compare(fs, &model, checked)?;

    order.shuffle(rng);
    meter.begin();
    for i in &order {
        let name = first_name(*i);
        let found = meter.operation(|| fs.lookup(&me, dir, &name)).map_err(Error::fs("stat"))?;
        checked.names += 1;
        if model.get(&name) != Some(&found.ino) || found.kind != InodeType::File {
            checked.mismatch(|| format!("{PATH}: stat of {} returned another inode", name.escape_ascii()));
        }
    }
    meter.end("stat", None, 0, false);

    meter.begin();
    for i in &order {
        let (from, to) = (first_name(*i), second_name(*i));
        let moved = meter.operation(|| fs.rename(&me, (dir, &from), (dir, &to), RenameMode::Replace));
        moved.map_err(Error::fs("rename"))?;
        if let Some(ino) = model.remove(&from) {
            model.insert(to, ino);
        }
    }
    meter.end("rename", None, 0, false);
    compare(fs, &model, checked)?;

    // One name in sixteen stays, for the comparison after a recovery.
    let gone = order.len() - order.len() / 16;
    meter.begin();
    for i in &order[..gone] {
        let name = second_name(*i);
        meter.operation(|| fs.unlink(&me, dir, &name)).map_err(Error::fs("unlink"))?;
        model.remove(&name);
    }
    meter.end("unlink", None, 0, false);
    compare(fs, &model, checked)?;
    Ok(model)
}

/// Compares the directory with the expected names.
pub(super) fn compare(
    fs: &Fs<&SimMedium>,
    model: &ExpectedNames,
    checked: &mut BenchVerification,
) -> Result<()> {
    let me = Caller::ROOT;
    let Ok(dir) = fs.metadata(&me, PATH) else {
        if !model.is_empty() {
            checked.mismatch(|| format!("{PATH} does not exist"));
        }
        return Ok(());
    };
    let mut found = ExpectedNames::new();
    let mut twice = 0;
    fs.read_dir(dir.ino, 2, &mut |entry| {
        twice += u64::from(found.insert(entry.name.to_vec(), entry.ino).is_some());
        true
    })
    .map_err(Error::fs("list"))?;
    checked.names += model.len() as u64;
    if found != *model || twice > 0 {
        checked.mismatch(|| {
            format!("{PATH} lists {} names that differ from the {} expected ones", found.len(), model.len())
        });
    }
    Ok(())
}
