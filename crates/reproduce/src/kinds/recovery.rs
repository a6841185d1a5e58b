//! Crashes of a volume with a cache, and its recovery.

use super::{Measure, Present, Subject};
use crate::outcome::{Cell, Outcome, OutcomePart, OutcomeTable};
use crate::workbench::Workbench;
use crate::{Error, Result};
use frit_core::{Hints, size};
use frit_media::{MediumSpec, PcmConfig, PcmGeometry};
use frit_stack::Stack;
use frit_volume::{CreateOptions, OpenOptions, Volume};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

const BLOCK: u64 = 4096;
/// Ratio of the sizes of disk and PCM.
const DISK_BY_PCM: u64 = 4;
/// Size of PCM in a quick run, in bytes.
const QUICK: u64 = 16 << 20;

/// Crashes of a volume with a cache.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryPlan {
    /// Stack of PCM and a disk.
    pub stack: String,
    /// Sizes of the PCM.
    pub caches: Vec<CacheBytes>,
    /// Share of the cache that is dirty at the crash.
    pub dirty: f64,
}

/// A cache size.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
pub struct CacheBytes {
    /// Size in bytes.
    #[serde(deserialize_with = "size::deserialize")]
    pub bytes: u64,
}

/// Recoveries by size of PCM.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RecoveryOutcome {
    /// The stack.
    pub stack: String,
    /// Rows, one for each size.
    pub rows: Vec<RecoveryRow>,
}

/// Recovery of a volume with one size of PCM.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RecoveryRow {
    /// Size of PCM, in bytes.
    pub pcm_bytes: u64,
    /// Size of dirty blocks in the cache, in bytes.
    pub dirty_bytes: u64,
    /// Duration of the layer's recovery, in seconds.
    pub seconds: f64,
    /// The same duration for 10⁹ dirty bytes.
    pub seconds_per_gb: f64,
    /// Bytes of PCM that the recovery read.
    pub bytes_read: u64,
    /// Modelled time of reading those bytes from the profile's PCM, in seconds.
    pub modelled_seconds: f64,
    /// Duration of opening the volume (files, header, layer), in seconds.
    pub open_seconds: f64,
    /// Number of blocks that were read back and verified.
    pub compared: u64,
}

impl Measure for RecoveryPlan {
    type Data = RecoveryOutcome;

    fn measure(
        &self,
        _: Subject<'_>,
        bench: &mut Workbench,
        note: &mut dyn FnMut(&str),
    ) -> Result<RecoveryOutcome> {
        let quick = bench.options.quick;
        let sizes = if quick { vec![QUICK] } else { self.caches.iter().map(|c| c.bytes).collect() };
        let mut rows = Vec::new();
        for bytes in sizes {
            note(&format!("PCM of {}", size::format(bytes)));
            let dir =
                tempfile::tempdir().map_err(|e| Error::Recovery(format!("a temporary directory: {e}")))?;
            rows.push(crash(self, bytes, &dir.path().join("volume"))?);
        }
        Ok(RecoveryOutcome { stack: self.stack.clone(), rows })
    }
}

impl Present for RecoveryOutcome {
    fn present(&self) -> Outcome {
        let head = [
            "PCM",
            "dirty",
            "recovery, s",
            "s per dirty GB",
            "PCM read",
            "modelled, s",
            "open, s",
            "blocks compared",
        ];
        let row = |r: &RecoveryRow| {
            vec![
                Cell::Size(r.pcm_bytes),
                Cell::with_unit(r.dirty_bytes as f64 / 1e6, 0, " MB"),
                Cell::number(r.seconds, 3),
                Cell::number(r.seconds_per_gb, 3),
                Cell::with_unit(r.bytes_read as f64 / 1e6, 1, " MB"),
                Cell::number(r.modelled_seconds, 3),
                Cell::number(r.open_seconds, 3),
                Cell::Count(r.compared),
            ]
        };
        let rows = self.rows.iter().map(row).collect();
        let parts = vec![
            OutcomePart::Text(format!("Stack {}, wall-clock time of this machine.", self.stack)),
            OutcomePart::Table(OutcomeTable::new(0, &head, rows)),
        ];
        Outcome { blank_end: true, ..Outcome::of(parts) }
    }
}

/// Fills a cache, drops the volume as in a crash of the program, and opens it again.
fn crash(plan: &RecoveryPlan, pcm_bytes: u64, dir: &Path) -> Result<RecoveryRow> {
    let failed = |what: &str, e: &dyn std::fmt::Display| Error::Recovery(format!("{what}: {e}"));
    let given = Stack::builtin(&plan.stack, &[]).map_err(Box::new)?;
    let chip = chip_bytes(&pcm_of(&given)?.geometry, pcm_bytes);
    let set = [format!("chip_bytes={chip}"), format!("media.disk.bytes={}", pcm_bytes * DISK_BY_PCM)];
    let stack = Stack::builtin(&plan.stack, &set).map_err(Box::new)?;
    let pcm = pcm_of(&stack)?.clone();
    let options = CreateOptions { stack, force: false };
    let mut volume = Volume::create(dir, &options).map_err(|e| failed("creating the volume", &e))?;
    let written = fill(&mut volume, (pcm_bytes as f64 / BLOCK as f64 * plan.dirty) as u64)
        .map_err(|e| failed("writing", &e))?;
    let dirty_bytes = volume.visible().metric("dirty_blocks").unwrap_or(0.0) as u64 * BLOCK;
    // Dropping the volume leaves the files in the state in which a killed program leaves them.
    drop(volume);

    // The clock starts before the files are opened: `open_seconds` covers more than the layer's
    // recovery.
    let begun = Instant::now();
    let mut volume =
        Volume::open(dir, &OpenOptions::default()).map_err(|e| failed("opening the volume again", &e))?;
    let open_seconds = begun.elapsed().as_secs_f64();
    let found = volume.recovery().clone();
    let mut block = [0; BLOCK as usize];
    for (&at, &number) in &written {
        volume.read(at * BLOCK, &mut block).map_err(|e| failed("reading back", &e))?;
        if block != content(at, number) {
            return Err(Error::Recovery(format!("block {at} is not what was written before the crash")));
        }
    }
    volume.close().map_err(|e| failed("closing the volume", &e))?;
    Ok(RecoveryRow {
        pcm_bytes,
        dirty_bytes,
        seconds: found.seconds,
        seconds_per_gb: found.seconds / (dirty_bytes.max(1) as f64 / 1e9),
        bytes_read: found.recovery.bytes_read,
        modelled_seconds: modelled(&pcm, found.recovery.bytes_read),
        open_seconds,
        compared: written.len() as u64,
    })
}

/// Writes random blocks until `blocks` different ones have been written, which are dirty unless the
/// cache wrote them to the disk meanwhile. Returns the last version of each block.
fn fill(volume: &mut Volume, blocks: u64) -> frit_core::Result<HashMap<u64, u64>> {
    let mut random = SmallRng::seed_from_u64(1);
    let mut written = HashMap::new();
    let span = volume.bytes() / BLOCK;
    let mut number = 0;
    while (written.len() as u64) < blocks {
        let at = random.random_range(0..span);
        number += 1;
        volume.write(at * BLOCK, &content(at, number), Hints::NONE)?;
        written.insert(at, number);
    }
    Ok(written)
}

/// Returns the bytes of a block; all versions differ.
fn content(at: u64, number: u64) -> [u8; BLOCK as usize] {
    let mut block = [0; BLOCK as usize];
    for (i, word) in block.chunks_exact_mut(8).enumerate() {
        let value = (at << 32 | number).wrapping_add(i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word.copy_from_slice(&value.to_le_bytes());
    }
    block
}

/// Returns the size of a chip with which a PCM of this geometry has `bytes`.
fn chip_bytes(geometry: &PcmGeometry, bytes: u64) -> u64 {
    bytes / (u64::from(geometry.channels) * u64::from(geometry.chips_per_channel))
}

fn pcm_of(stack: &Stack) -> Result<&PcmConfig> {
    let pcm = stack.media().iter().find_map(|m| match &m.spec {
        MediumSpec::Pcm(c) => Some(c),
        _ => None,
    });
    pcm.ok_or_else(|| Error::Recovery(format!("the stack '{}' has no PCM", stack.name())))
}

/// Returns the seconds to read this many bytes in stripes from all channels at once.
fn modelled(pcm: &PcmConfig, bytes: u64) -> f64 {
    let g = pcm.geometry;
    let strips = bytes.div_ceil(u64::from(g.interleave_bytes)).div_ceil(u64::from(g.channels));
    strips as f64 * pcm.timing.read.at(g.interleave_bytes).0 as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chips_have_the_size_of_the_pcm_together() {
        // Ranks of one chip each, and channels of eight chips.
        for stack in ["halo-small", "hfsl-small"] {
            let stack = Stack::builtin(stack, &[]).unwrap();
            let mut geometry = pcm_of(&stack).unwrap().geometry;
            geometry.chip_bytes = chip_bytes(&geometry, QUICK);
            assert_eq!(geometry.bytes(), QUICK);
        }
    }
}
