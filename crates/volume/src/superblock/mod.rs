//! The superblock: what a volume is, and how it was left.
//!
//! Two copies of 64 KiB in `frit.volume`, written in turn: a power cut while one is written leaves the
//! other. The newest valid one counts. `docs/format.md` draws the bytes.

mod bytes;
mod file;

pub use file::{COPY_BYTES, FILE_NAME, SuperblockFile, newest};
pub(crate) use file::{NEW_NAME, sync_dir, sync_parent};

use frit_core::{MediumKind, Recovery, Stop};
use std::time::{SystemTime, UNIX_EPOCH};

/// The format that this version writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// Feature bits. None is used yet: they are there so that a later version can say what an older one
/// has to refuse.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct Features {
    /// A program that does not know these can open the volume.
    pub compatible: u32,
    /// ... only for reading.
    pub read_only: u32,
    /// ... not at all.
    pub incompatible: u32,
}

/// How a volume was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its making was not finished.
    Creating,
    /// Closed in order.
    Clean,
    /// Open, or stopped while it was.
    Dirty,
}

/// What holds the bytes of a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// A file, mapped.
    File,
    /// A block device, mapped.
    BlockDevice,
    /// A file on a DAX file system: the mapping is the memory itself.
    DaxFile,
}

/// A medium as the superblock knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediumRecord {
    /// Its name in the stack.
    pub name: String,
    /// What it is.
    pub kind: MediumKind,
    /// What holds its bytes.
    pub backing: Backing,
    /// How many there are.
    pub bytes: u64,
    /// The file, where the stack names one; relative to the volume. Empty: `<name>.medium`.
    pub path: String,
}

/// The last recovery that had something to do, for `frit inspect`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct RecoveryRecord {
    /// When, in seconds since 1970.
    pub unix: u64,
    /// The machine had stopped, not just the program.
    pub machine: bool,
    /// As [`Recovery::from_flush`].
    pub from_flush: bool,
    /// As [`Recovery::pages`].
    pub pages: u64,
    /// As [`Recovery::pages_in_pcm`].
    pub pages_in_pcm: u64,
    /// As [`Recovery::redone`].
    pub redone: u32,
    /// As [`Recovery::padded`].
    pub padded: u32,
    /// As [`Recovery::suspect_blocks`].
    pub suspect_blocks: u32,
    /// How many pages were lost.
    pub lost: u32,
    /// As [`Recovery::bytes_read`].
    pub bytes_read: u64,
    /// How long it took, in microseconds.
    pub micros: u64,
}

impl RecoveryRecord {
    /// Of a recovery that just ended.
    #[must_use]
    pub fn new(r: &Recovery, stop: Stop, micros: u64) -> RecoveryRecord {
        RecoveryRecord {
            unix: unix_now(),
            machine: stop == Stop::Machine,
            from_flush: r.from_flush,
            pages: r.pages,
            pages_in_pcm: r.pages_in_pcm,
            redone: r.redone,
            padded: r.padded,
            suspect_blocks: r.suspect_blocks,
            lost: u32::try_from(r.lost.len() + r.unnamed.len()).unwrap_or(u32::MAX),
            bytes_read: r.bytes_read,
            micros,
        }
    }
}

/// What a volume is, and how it was left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Counts the updates; the valid copy with the larger one counts.
    pub sequence: u64,
    /// Feature bits.
    pub features: Features,
    /// How it was left.
    pub state: State,
    /// Which volume it is; kept when it grows.
    pub uuid: [u8; 16],
    /// The boot of the machine in which it was last opened for writing.
    pub boot_id: [u8; 16],
    /// When it was made, in seconds since 1970. Only shown.
    pub created_unix: u64,
    /// The version that made it.
    pub created_by: String,
    /// The stack's name.
    pub name: String,
    /// The stack as [`Identity::text`](frit_stack::Identity::text).
    pub stack: String,
    /// SHA-256 of that text.
    pub sha256: [u8; 32],
    /// The media that hold bytes.
    pub media: Vec<MediumRecord>,
    /// Parameters that were changed, with their values, in the order of their last changes.
    pub params: Vec<(String, String)>,
    /// The last recovery that had something to do.
    pub recovery: Option<RecoveryRecord>,
}

impl Superblock {
    /// The UUID as it is written.
    #[must_use]
    pub fn uuid_text(&self) -> String {
        uuid::Uuid::from_bytes(self.uuid).hyphenated().to_string()
    }

    /// The hash as it is written.
    #[must_use]
    pub fn sha256_text(&self) -> String {
        self.sha256.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Puts a parameter in place of an older value.
    pub(crate) fn set_param(&mut self, key: &str, value: &str) {
        self.params.retain(|(k, _)| k != key);
        self.params.push((key.into(), value.into()));
    }
}

/// Now, for what is shown to people; nothing is decided by it.
pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The boot of this machine; zeros where the host does not say, which is no boot that ever was.
pub(crate) fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    uuid::Uuid::try_parse(text.trim()).map_or([0; 16], uuid::Uuid::into_bytes)
}

#[cfg(test)]
mod tests;
