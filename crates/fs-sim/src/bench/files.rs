//! Patterns of IOzone on one file, whose times do not include a flush (its default): write,
//! rewrite, reread, random read, random write.

use super::contents::ExpectedContents;
use super::measure::MetricsRecorder;
use super::{BenchVerification, UNIT};
use crate::error::{Error, Result};
use crate::sim_medium::SimMedium;
use frit_fs::{Caller, File, Fs, OpenFile, Paths};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// Path of the file.
const PATH: &str = "file";

/// Runs all patterns with one record size on a new file.
pub(super) fn play(
    fs: &Fs<&SimMedium>,
    meter: &mut MetricsRecorder<'_>,
    contents: &mut ExpectedContents,
    record: u64,
    rng: &mut SmallRng,
    mut checked: Option<&mut BenchVerification>,
) -> Result<()> {
    let me = Caller::ROOT;
    if fs.metadata(&me, PATH).is_ok() {
        fs.remove_path(&me, PATH).map_err(Error::fs("unlink"))?;
    }
    let file = fs.open_file(&me, PATH, OpenFile::CREATE).map_err(Error::fs("create"))?;
    let order: Vec<u64> = (0..contents.bytes()).step_by(record as usize).collect();
    let mut buffer = vec![0; record as usize];
    for (name, writes, random) in [
        ("write", true, false),
        ("rewrite", true, false),
        ("reread", false, false),
        ("random read", false, true),
        ("random write", true, true),
    ] {
        let mut order = order.clone();
        if random {
            order.shuffle(rng);
        }
        contents.next_pass();
        meter.begin();
        for at in order {
            if writes {
                contents.write(at, &mut buffer);
                whole(meter.operation(|| file.write_at(at, &buffer)), record, "write")?;
            } else {
                whole(meter.operation(|| file.read_at(at, &mut buffer)), record, "read")?;
                if let Some(checked) = checked.as_deref_mut() {
                    expect(contents, at, &buffer, checked);
                }
            }
        }
        meter.end(name, Some(record), contents.bytes(), writes);
    }
    file.sync(false).map_err(Error::fs("fsync"))
}

/// Returns an error unless the whole record was transferred.
fn whole(moved: frit_fs::Result<usize>, record: u64, what: &'static str) -> Result<()> {
    match moved.map_err(Error::fs(what))? {
        n if n as u64 == record => Ok(()),
        _ => Err(Error::fs(what)(frit_fs::Error::NoSpace)),
    }
}

/// Compares the data of a read with the last written data.
fn expect(contents: &ExpectedContents, at: u64, found: &[u8], checked: &mut BenchVerification) {
    let mut unit = [0; UNIT as usize];
    for (i, found) in found.chunks_exact(UNIT as usize).enumerate() {
        let at = at + i as u64 * UNIT;
        contents.fill(at, &mut unit);
        if unit != found {
            checked
                .mismatch(|| format!("{PATH}: the 1024 bytes at {at} are not those that were written last"));
        }
        checked.bytes += UNIT;
    }
}

/// Compares the whole file.
pub(super) fn compare(
    fs: &Fs<&SimMedium>,
    contents: &ExpectedContents,
    checked: &mut BenchVerification,
) -> Result<()> {
    let file: File<'_, _> =
        fs.open_file(&Caller::ROOT, PATH, OpenFile::READ).map_err(Error::fs("open after recovery"))?;
    let size = file.attr().map_err(Error::fs("stat after recovery"))?.size;
    if size != contents.bytes() {
        checked.mismatch(|| format!("{PATH}: {size} bytes after recovery, of {}", contents.bytes()));
    }
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    while at < size.min(contents.bytes()) {
        let n = file.read_at(at, &mut buffer).map_err(Error::fs("read after recovery"))?;
        expect(contents, at, &buffer[..n], checked);
        at += n as u64;
    }
    Ok(())
}
