//! The superblock: identity, configuration and state of a volume.
//!
//! `frit.volume` holds two copies of 64 KiB that are written in turn: a power loss during a write
//! leaves the other copy intact. The newest valid copy is used. `docs/reference/format.md`
//! documents the format.

mod encoding;
mod file;

pub(crate) use encoding::ACCESS_MEDIA_MAX;
pub use file::{COPY_BYTES, FILE_NAME, SuperblockFile, decode_newest};
pub(crate) use file::{TEMP_FILE_NAME, sync_dir, sync_parent};

use frit_core::{CrashKind, MediumKind, Recovery};
use frit_media::FileAccess;
use frit_stack::Stack;
use frit_stack::layers::LayerConfig;
use std::time::{SystemTime, UNIX_EPOCH};

/// Format version that this frit writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// Feature bits, which let a version of frit mark volumes that an older one has to refuse.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct Features {
    /// Features that a program may ignore.
    pub compatible: u32,
    /// Features that allow a program that does not know them to read the volume only.
    pub read_only: u32,
    /// Features that a program has to know to open the volume.
    pub incompatible: u32,
}

impl Features {
    /// Incompatible feature: the stack has several layers.
    pub const LAYERS: u32 = 1;
    /// Incompatible feature: HFSL has a ring of redo records instead of one record.
    pub const REDO_RING: u32 = 2;
    /// Incompatible feature: a medium is an object store.
    pub const OBJECTS: u32 = 4;
    /// Incompatible feature: an HFSL has several NAND devices.
    pub const NAND_ARRAY: u32 = 8;
    /// The incompatible features that this frit knows.
    pub(crate) const KNOWN: u32 =
        Features::LAYERS | Features::REDO_RING | Features::OBJECTS | Features::NAND_ARRAY;

    /// Returns the features of a new volume of a stack.
    pub(crate) fn of(stack: &Stack) -> Features {
        let has_ring = stack.layers().iter().any(|layer| matches!(layer.config, LayerConfig::Hfsl(_)));
        let layers = if stack.layers().len() > 1 { Features::LAYERS } else { 0 };
        let ring = if has_ring { Features::REDO_RING } else { 0 };
        let has_objects = stack.media().iter().any(|m| m.used && m.spec.kind() == MediumKind::Object);
        let objects = if has_objects { Features::OBJECTS } else { 0 };
        let has_array = stack.layers().iter().any(|layer| stack.all_on(layer, "nand").len() > 1);
        let array = if has_array { Features::NAND_ARRAY } else { 0 };
        Features { incompatible: layers | ring | objects | array, ..Features::default() }
    }
}

/// State in which a volume was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VolumeState {
    /// Its creation was not finished.
    Creating,
    /// Closed properly.
    Clean,
    /// Open, or not closed because of a crash or power loss.
    Dirty,
}

/// Kind of file that holds the bytes of a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// A mapped regular file.
    File,
    /// A mapped block device.
    BlockDevice,
    /// A file on a DAX file system: the mapping accesses the memory directly.
    DaxFile,
    /// A store of objects.
    ObjectStore,
}

/// Description of a medium in the superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediumRecord {
    /// Its name in the stack.
    pub name: String,
    /// Kind of the medium.
    pub kind: MediumKind,
    /// Kind of file that holds its bytes.
    pub backing: Backing,
    /// Size in bytes.
    pub bytes: u64,
    /// Path of the file if the stack names one, relative to the volume. Empty: `<name>.medium`. URL of
    /// a store of objects.
    pub path: String,
    /// The way in which the file or device is accessed. It describes the host and not the format: a
    /// frit that does not know it uses the page cache.
    pub access: FileAccess,
}

impl MediumRecord {
    /// Returns `true` if a file or a block device holds the bytes, and `false` for a store of objects.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.backing != Backing::ObjectStore
    }
}

/// The last recovery that had work to do, for `frit inspect`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct RecoveryRecord {
    /// Time of the recovery, in seconds since 1970.
    pub unix: u64,
    /// `true` after a power loss, `false` after a crash of the process alone.
    #[serde(rename = "machine")]
    pub power_loss: bool,
    /// See [`Recovery::from_flush`].
    pub from_flush: bool,
    /// See [`Recovery::pages`].
    pub pages: u64,
    /// See [`Recovery::pages_in_pcm`].
    pub pages_in_pcm: u64,
    /// See [`Recovery::redone`].
    pub redone: u32,
    /// See [`Recovery::padded`].
    pub padded: u32,
    /// See [`Recovery::suspect_blocks`].
    pub suspect_blocks: u32,
    /// Number of lost pages.
    pub lost: u32,
    /// See [`Recovery::bytes_read`].
    pub bytes_read: u64,
    /// Duration, in microseconds.
    pub micros: u64,
}

impl RecoveryRecord {
    /// Returns the record of a recovery that has just ended.
    #[must_use]
    pub fn new(r: &Recovery, crash: CrashKind, micros: u64) -> RecoveryRecord {
        RecoveryRecord {
            unix: unix_now(),
            power_loss: crash == CrashKind::PowerLoss,
            from_flush: r.from_flush,
            pages: r.pages,
            pages_in_pcm: r.pages_in_pcm,
            redone: r.redone,
            padded: r.padded,
            suspect_blocks: r.suspect_blocks,
            lost: u32::try_from(r.losses()).unwrap_or(u32::MAX),
            bytes_read: r.bytes_read,
            micros,
        }
    }
}

/// Contents of the superblock: identity, configuration and state of a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Number of updates; the valid copy with the larger number is used.
    pub sequence: u64,
    /// Feature bits.
    pub features: Features,
    /// State in which the volume was left.
    pub state: VolumeState,
    /// UUID of the volume; kept when the volume grows.
    pub uuid: [u8; 16],
    /// Boot ID of the machine when the volume was last opened for writing.
    pub boot_id: [u8; 16],
    /// Creation time, in seconds since 1970; informational.
    pub created_unix: u64,
    /// Version of frit that created the volume.
    pub created_by: String,
    /// The stack's name.
    pub name: String,
    /// The stack as [`StackIdentity::text`](frit_stack::StackIdentity::text).
    pub stack: String,
    /// SHA-256 of that text.
    pub sha256: [u8; 32],
    /// Media that hold the volume's bytes.
    pub media: Vec<MediumRecord>,
    /// Changed parameters with their values, in the order of their last changes.
    pub params: Vec<(String, String)>,
    /// The last recovery that had work to do.
    pub recovery: Option<RecoveryRecord>,
}

impl Superblock {
    /// Returns the UUID in its usual text form.
    #[must_use]
    pub fn uuid_text(&self) -> String {
        uuid::Uuid::from_bytes(self.uuid).hyphenated().to_string()
    }

    /// Returns the hash in hexadecimal.
    #[must_use]
    pub fn sha256_text(&self) -> String {
        self.sha256.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Sets a parameter, replacing an older value.
    pub(crate) fn set_param(&mut self, key: &str, value: &str) {
        self.params.retain(|(k, _)| k != key);
        self.params.push((key.into(), value.into()));
    }
}

/// Returns the SHA-256 of a text, such as a stack.
pub(crate) fn sha256(text: &str) -> [u8; 32] {
    use sha2::Digest;
    sha2::Sha256::digest(text.as_bytes()).into()
}

/// Returns the current time in seconds since 1970; informational, no decision depends on it.
pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Returns the boot ID of this machine; zeros, which match no boot, if the host does not provide
/// it.
pub(crate) fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    uuid::Uuid::try_parse(text.trim()).map_or([0; 16], uuid::Uuid::into_bytes)
}

#[cfg(test)]
mod tests;
