//! What a crash of a volume with a cache costs.

use super::show::{count, table};
use frit_core::size;
use serde::Serialize;

/// Recoveries by size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RecoveryOutcome {
    /// The stack.
    pub stack: String,
    /// One row a size.
    pub rows: Vec<RecoveryRow>,
}

/// A size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RecoveryRow {
    /// Bytes of PCM.
    pub pcm_bytes: u64,
    /// Bytes of blocks in the cache that the disk had not got.
    pub dirty_bytes: u64,
    /// How long the layer took to come up.
    pub seconds: f64,
    /// The same for 10⁹ dirty bytes.
    pub seconds_per_gb: f64,
    /// Bytes of PCM that it read.
    pub bytes_read: u64,
    /// How long those take on the profile's PCM.
    pub modelled_seconds: f64,
    /// How long it took to open the volume: files, head, layer.
    pub open_seconds: f64,
    /// Blocks that were read back and compared; all were as written.
    pub compared: u64,
}

/// As text.
pub(super) fn recovery(o: &RecoveryOutcome) -> String {
    let head = [
        "PCM",
        "dirty",
        "recovery, s",
        "s a GB dirty",
        "PCM read",
        "modelled, s",
        "open, s",
        "blocks compared",
    ]
    .map(String::from);
    let row = |r: &RecoveryRow| {
        vec![
            size::show(r.pcm_bytes),
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
    format!("Stack {}, time by the clock of this machine.\n\n{}\n", o.stack, table(&head, 0, &rows))
}
