//! Durability of a layer: recovery after a crash or a power loss, its result, and checks.

use crate::{MediumKind, Result, Sector, Sink};
use serde::Serialize;

/// Kind of failure that precedes a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrashKind {
    /// Crash of the process, or power loss of modelled media. All data that the stores accepted is
    /// present.
    Process,
    /// Power loss of the machine that holds the backing files. Only synced data is sure to be
    /// present.
    PowerLoss,
}

/// Point at which an acknowledged write is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DurabilityPoint {
    /// At the acknowledgement.
    OnAck,
    /// At the completion of a flush that was requested after the acknowledgement.
    OnFlush,
}

/// Guarantees of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteGuarantee {
    /// Point at which an acknowledged write is durable.
    pub durable_at: DurabilityPoint,
    /// Unit of atomicity in bytes, a multiple of a sector. Aligned parts of a volume of this size
    /// are old or new as a whole after any interruption of a write.
    pub atomic_bytes: u32,
    /// A flush is atomic: after any interruption, the whole volume is as of the last flush that was
    /// completed, or as of the one in progress.
    pub atomic_flush: bool,
}

impl Default for WriteGuarantee {
    /// Durable at the acknowledgement, atomic in blocks of 4 KiB.
    fn default() -> WriteGuarantee {
        WriteGuarantee { durable_at: DurabilityPoint::OnAck, atomic_bytes: 4096, atomic_flush: false }
    }
}

/// Result of a recovery.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Recovery {
    /// The layer had been shut down in order, so nothing had to be repaired.
    pub clean: bool,
    /// The map as of the last flush was taken, because the machine had lost power.
    pub from_flush: bool,
    /// Number of mapped pages.
    pub pages: u64,
    /// Number of mapped pages in durable memory.
    pub pages_in_pcm: u64,
    /// Map entries that the recovery completed from the redo record of an interrupted commit.
    pub redone: u32,
    /// Pages programmed with padding because a program may have been interrupted there.
    pub padded: u32,
    /// Free blocks that are erased again before use, because an erase may have been interrupted.
    pub suspect_blocks: u32,
    /// Pages whose data is lost. A read of one returns an error that names the page.
    pub lost: Vec<LostPage>,
    /// Losses of pages that no record names any more. A read of any page that may be affected
    /// returns an error.
    pub unnamed: Vec<String>,
    /// Bytes that the recovery read from media.
    pub bytes_read: u64,
    /// Recoveries of the layers below, the uppermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<LayerRecovery>,
}

/// Result of the recovery of a layer below another one.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct LayerRecovery {
    /// Name of the layer in its stack.
    pub layer: String,
    /// Result of its recovery.
    pub recovery: Recovery,
}

impl Recovery {
    /// Returns this recovery and those of the layers below, with their names. The name of this one is
    /// empty.
    pub fn layers(&self) -> impl Iterator<Item = (&str, &Recovery)> {
        std::iter::once(("", self)).chain(self.below.iter().map(|b| (b.layer.as_str(), &b.recovery)))
    }

    /// Returns the number of named and unnamed losses of all layers.
    #[must_use]
    pub fn losses(&self) -> usize {
        self.layers().map(|(_, r)| r.lost.len() + r.unnamed.len()).sum()
    }

    /// Returns the recovery of a layer by its name; of the top layer for an empty name.
    pub fn layer_mut(&mut self, layer: &str) -> Option<&mut Recovery> {
        if layer.is_empty() {
            return Some(self);
        }
        self.below.iter_mut().find(|b| b.layer == layer).map(|b| &mut b.recovery)
    }

    /// Returns `true` if the data of a page is lost.
    #[must_use]
    pub fn lost_any(&self) -> bool {
        self.losses() > 0
    }
}

/// A logical page whose data is lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LostPage {
    /// Logical page number.
    pub lpn: u32,
    /// Kind and place of the damage.
    pub why: String,
}

/// Extent of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CheckScope {
    /// Read all mapped data and verify its checksums (a scrub).
    pub data: bool,
    /// Repair where possible: stale entries point to the newest page again, and lost pages that
    /// were found are mapped.
    pub repair: bool,
    /// With `repair`: also map versions that are, or may be, older than the lost ones.
    pub older: bool,
}

/// Severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Space or speed is lost, but no data.
    Minor,
    /// Data is stale or lost.
    Major,
}

/// An inconsistency that a check found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Name of the layer, if it is below another one; empty for the top layer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub layer: String,
    /// Keyword for scripts: `bad-entry`, `bad-data`, `stale-entry`, `bad-descriptor`, `double-use`
    /// …
    pub kind: &'static str,
    /// Severity.
    pub severity: Severity,
    /// The logical page, if the finding concerns one.
    pub lpn: Option<u32>,
    /// The medium.
    pub medium: MediumKind,
    /// Address on the medium, in the medium's own terms.
    pub at: u64,
    /// Description: the state that was found and the expected state.
    pub what: String,
    /// `true` if the check repaired it.
    pub repaired: bool,
}

/// Numbers of items that a check examined.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct CheckCounts {
    /// Map entries.
    pub entries: u64,
    /// Pages whose data was read.
    pub pages_read: u64,
    /// Bytes of data verified.
    pub bytes_verified: u64,
    /// Spare areas and descriptors examined.
    pub records: u64,
}

impl std::ops::Add for CheckCounts {
    type Output = CheckCounts;

    fn add(self, other: CheckCounts) -> CheckCounts {
        CheckCounts {
            entries: self.entries + other.entries,
            pages_read: self.pages_read + other.pages_read,
            bytes_verified: self.bytes_verified + other.bytes_verified,
            records: self.records + other.records,
        }
    }
}

/// A range of a volume that lies on one medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Length in sectors.
    pub sectors: u64,
    /// The medium. `None` if the range was never written or was discarded; it reads as zeros.
    pub place: Option<MediumKind>,
}

/// A layer that can serve a volume. [`Durable::recover`] restores every acknowledged request after
/// a crash or power loss at any point.
pub trait Durable {
    /// Writes the metadata that assigns the media to this layer. Blank media need it once.
    ///
    /// # Errors
    /// Returns an error if the configuration cannot be durable (no durable memory for the map), or
    /// if a medium fails.
    fn format(&mut self, sink: &mut Sink) -> Result<()>;

    /// Recovers the state from the contents of the media. The call is idempotent: it may be
    /// repeated or interrupted.
    ///
    /// # Errors
    /// Returns an error if the media were never formatted or belong to another configuration, or if
    /// a store fails.
    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery>;

    /// Returns the guarantees of an acknowledgement under the current parameters. If a layer lets
    /// some requests bypass its durable memory, this is the weakest guarantee; requests that do not
    /// bypass it keep the default.
    fn write_guarantee(&self) -> WriteGuarantee {
        WriteGuarantee::default()
    }

    /// Returns `false` if a boot or a recovery can restore data that was discarded before.
    fn keeps_discards(&self) -> bool {
        true
    }

    /// Compares map, spare areas and descriptors, and also the data if `scope` asks for it.
    ///
    /// # Errors
    /// Returns an error if a store fails. Damaged contents are reported as [`Finding`]s.
    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts>;

    /// Calls `each` with the extents of a range, in ascending order.
    ///
    /// # Errors
    /// Returns an error if the range is outside the layer.
    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()>;

    /// Returns the reason for which the layer is in read-only mode; `None` if it accepts writes. A
    /// layer over several devices returns the reason of one that refuses writes, and may accept
    /// writes to the others.
    fn refuses(&self) -> Option<String>;

    /// Enters read-only mode: the layer refuses writes from now on, and reads continue. The volume
    /// calls it for failures that the layer itself cannot detect.
    fn refuse(&mut self, why: String);
}
