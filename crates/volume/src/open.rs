//! Opening a volume: lock, superblock, media, recovery.

use crate::backing::MediumFile;
use crate::error::{Error, Result};
use crate::object_stores::ObjectStores;
use crate::open_report::OpenReport;
use crate::superblock::{
    FILE_NAME, RecoveryRecord, Superblock, SuperblockFile, VolumeState, boot_id, sha256,
};
use crate::volume::{Volume, VolumeParts};
use frit_core::{CrashKind, Sink};
use frit_media::Hardware;
use frit_objects::OpenMode;
use frit_stack::{Bytes, Stack, StoreOpener};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Options for opening a volume.
#[derive(Clone, Copy, Default, Debug)]
pub struct OpenOptions {
    /// Opens the volume without changing it: writes of the recovery stay in memory. Several readers
    /// can have it open at the same time.
    pub read_only: bool,
    /// Kind of crash to recover from. `None`: power loss if the machine has booted since the volume
    /// was last opened for writing, otherwise a crash of the process.
    pub crash: Option<CrashKind>,
}

/// Returns the bytes of the media in the files and in the stores of objects of a volume.
pub(crate) fn bytes_in(
    files: &Arc<Vec<MediumFile>>,
    stores: ObjectStores,
    uuid: [u8; 16],
    blank: bool,
) -> Bytes {
    let files = Arc::clone(files);
    let opener = StoreOpener::new(move |name, bytes| {
        let file = files.iter().find(|f| f.name == name && f.bytes == bytes);
        let none = || {
            let why = "the stack asks for a medium that the volume does not have: the superblock is damaged, or \
                       was written by another version";
            frit_core::Error::param(name, bytes, why)
        };
        file.ok_or_else(none)?.store(blank)
    });
    Bytes::StoreOpener(opener.owned_by(uuid).with_objects(move |config| stores.open(config)))
}

/// Returns the stack that a superblock holds, after checking its hash.
pub(crate) fn stack_of(s: &Superblock, dir: &Path) -> Result<Stack> {
    let damaged = |why: String| Error::Superblock { path: dir.join(FILE_NAME), why };
    if sha256(&s.stack) != s.sha256 {
        return Err(damaged("the stack in the superblock does not match its hash".into()));
    }
    Stack::parse(&s.name, &s.stack, &[]).map_err(|e| {
        damaged(format!(
            "this frit ({}) does not understand the stack that frit {} wrote: {e}",
            env!("CARGO_PKG_VERSION"),
            s.created_by
        ))
    })
}

impl Volume {
    /// Opens the volume in `dir`.
    ///
    /// # Errors
    /// As for [`Volume::open_with`].
    pub fn open(dir: impl AsRef<Path>, options: &OpenOptions) -> Result<Volume> {
        Volume::open_with(dir, options, |_| Sink::untimed())
    }
}

impl Volume {
    /// Opens the volume in `dir` with a sink for its commands, for example a pacing engine, or an
    /// [`Sink`] with an observer.
    ///
    /// # Errors
    /// The directory is not a volume, or it is in use; media are missing or have another size; the
    /// superblock or the media have a version that this frit does not know; the layer cannot
    /// recover.
    pub fn open_with(
        dir: impl AsRef<Path>,
        options: &OpenOptions,
        sink: impl FnOnce(&Hardware) -> Sink,
    ) -> Result<Volume> {
        let dir = dir.as_ref();
        let mut superblock = SuperblockFile::open(dir, options.read_only)?;
        let recorded = superblock.current().clone();
        if recorded.state == VolumeState::Creating {
            let why = "its creation was not finished; run frit create again".into();
            return Err(Error::NotAVolume { dir: dir.into(), why });
        }
        let stack = stack_of(&recorded, dir)?;
        let files = recorded.media.iter().filter(|m| m.is_file());
        let files = files.map(|m| MediumFile::open(dir, m, options.read_only));
        let files = Arc::new(files.collect::<Result<Vec<_>>>()?);
        let boot = boot_id();
        let rebooted = recorded.boot_id != boot || boot == [0; 16];
        // A clean superblock over a layer that is marked in use is an older copy, restored by hand.
        // The kind of crash since then is unknown, so the worse one, a power loss, is assumed.
        let crash = match recorded.state {
            VolumeState::Dirty if !rebooted => CrashKind::Process,
            _ => CrashKind::PowerLoss,
        };
        let crash = options.crash.unwrap_or(crash);
        // A power loss is recognized by the recorded boot ID. That ID is replaced only after
        // recovery, so that an interrupted recovery starts over as a recovery from power loss.
        if recorded.state == VolumeState::Clean && !options.read_only {
            superblock.set_state(VolumeState::Dirty, boot)?;
        }
        let mode = if options.read_only { OpenMode::ReadOnly } else { OpenMode::ReadWrite };
        let stores = ObjectStores::new(dir, &recorded.media, mode);
        let built = stack.build(&bytes_in(&files, stores, recorded.uuid, false))?;
        let mut sink = sink(&built.hardware);
        let mut layer = built.layer;
        let start = Instant::now();
        let recovery = layer.recover(&mut sink, crash)?;
        let taken = start.elapsed();
        let seconds = taken.as_secs_f64();
        let durable_bytes = recovery.pages_in_pcm * u64::from(layer.info().page_bytes);
        let gb = (layer.info().sectors * frit_core::SECTOR_BYTES) as f64 / 1e9;
        let recovered = OpenReport {
            power_loss: crash == CrashKind::PowerLoss && !recovery.clean,
            recovery,
            seconds,
            seconds_per_gb: seconds / gb.max(1e-9),
            durable_bytes,
            access_notes: files.iter().filter_map(MediumFile::access_note).collect(),
        };
        if !options.read_only {
            let record = RecoveryRecord::new(&recovered.recovery, crash, taken.as_micros() as u64);
            let dirty = recorded.state == VolumeState::Dirty;
            if dirty {
                superblock.update(|s| {
                    s.boot_id = boot;
                    s.recovery = Some(record);
                })?;
            }
        }
        let mut volume = Volume::from_parts(VolumeParts {
            dir: dir.into(),
            stack,
            layer,
            sink,
            superblock,
            files,
            records: built.records,
            read_only: options.read_only,
            recovered,
        });
        volume.apply_saved_params()?;
        Ok(volume)
    }
}

#[cfg(test)]
mod tests;
