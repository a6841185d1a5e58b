//! Recovery of a volume with a cache after a crash.

use super::format::{count, table};
use frit_core::size;
use serde::Serialize;

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

/// Returns the recoveries as text.
pub(super) fn recovery(o: &RecoveryOutcome) -> String {
    let head = [
        "PCM",
        "dirty",
        "recovery, s",
        "s per dirty GB",
        "PCM read",
        "modelled, s",
        "open, s",
        "blocks compared",
    ]
    .map(String::from);
    let row = |r: &RecoveryRow| {
        vec![
            size::format(r.pcm_bytes),
            format!("{:.0} MB", r.dirty_bytes as f64 / 1e6),
            format!("{:.3}", r.seconds),
            format!("{:.3}", r.seconds_per_gb),
            format!("{:.1} MB", r.bytes_read as f64 / 1e6),
            format!("{:.3}", r.modelled_seconds),
            format!("{:.3}", r.open_seconds),
            count(r.compared),
        ]
    };
    let rows: Vec<_> = o.rows.iter().map(row).collect();
    format!("Stack {}, wall-clock time of this machine.\n\n{}\n", o.stack, table(&head, 0, &rows))
}
