//! Report of the recovery at opening.

use frit_core::{CrashKind, Recovery};
use serde::Serialize;

/// Result of opening a volume.
#[derive(Clone, Debug, Serialize)]
pub struct OpenReport {
    /// Recovery result of the layer.
    #[serde(flatten)]
    pub recovery: Recovery,
    /// `true` after a power loss, `false` after a crash of the process alone.
    #[serde(rename = "machine")]
    pub power_loss: bool,
    /// Duration of the layer's recovery, in seconds.
    pub seconds: f64,
    /// The same duration for 10⁹ bytes of the volume.
    pub seconds_per_gb: f64,
    /// Bytes found in durable memory.
    pub durable_bytes: u64,
    /// Media that are not accessed in the way that the stack gives, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access_notes: Vec<String>,
}

impl OpenReport {
    /// Returns the result for a new volume, which needs no recovery.
    pub(crate) fn new_volume(crash: CrashKind) -> OpenReport {
        let recovery = Recovery { clean: true, ..Recovery::default() };
        OpenReport {
            recovery,
            power_loss: crash == CrashKind::PowerLoss,
            seconds: 0.0,
            seconds_per_gb: 0.0,
            durable_bytes: 0,
            access_notes: Vec::new(),
        }
    }
}
