//! Opening a volume: lock, superblock, media, recovery.

use crate::backing::MediumFile;
use crate::create::sha256;
use crate::error::{Error, Result};
use crate::superblock::{FILE_NAME, RecoveryRecord, State, Superblock, SuperblockFile, boot_id};
use crate::volume::{Parts, Volume};
use frit_core::{Null, Recovery, Sink, Stop};
use frit_media::Hardware;
use frit_stack::{Built, Bytes, Opener, Stack};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// How a volume is opened.
#[derive(Clone, Copy, Default, Debug)]
pub struct OpenOptions {
    /// Changes nothing in the volume: what recovery has to write stays in memory. Others may read it at
    /// the same time.
    pub read_only: bool,
    /// What stopped it; `None`: the machine, when it was booted since, else the program.
    pub stop: Option<Stop>,
}

/// What an opening found.
#[derive(Clone, Debug, Serialize)]
pub struct Recovered {
    /// What the layer says.
    #[serde(flatten)]
    pub recovery: Recovery,
    /// The machine had stopped, not just the program.
    pub machine: bool,
    /// How long the layer took.
    pub seconds: f64,
    /// The same for 10⁹ bytes of the volume.
    pub seconds_per_gb: f64,
    /// Bytes that were found in durable memory.
    pub durable_bytes: u64,
}

impl Recovered {
    /// Of a volume that was just made.
    pub(crate) fn nothing(stop: Stop) -> Recovered {
        let recovery = Recovery { clean: true, ..Recovery::default() };
        Recovered {
            recovery,
            machine: stop == Stop::Machine,
            seconds: 0.0,
            seconds_per_gb: 0.0,
            durable_bytes: 0,
        }
    }
}

/// The stack over the files.
pub(crate) fn build<S: Sink>(
    stack: &Stack,
    files: &Arc<Vec<MediumFile>>,
    uuid: [u8; 16],
    blank: bool,
) -> Result<Built<S>>
where
    S::Tok: 'static,
{
    let files = Arc::clone(files);
    let opener = Opener::new(move |name, bytes| {
        let file = files.iter().find(|f| f.name == name && f.bytes == bytes);
        let none = || {
            let why = "the stack asks for a medium that the volume does not have: the superblock is damaged, or \
                       was written by another version";
            frit_core::Error::param(name, bytes, why)
        };
        file.ok_or_else(none)?.store(blank)
    });
    Ok(stack.build(&Bytes::Opener(opener.owned_by(uuid)))?)
}

/// The stack that a superblock holds.
pub(crate) fn stack_of(s: &Superblock, dir: &Path) -> Result<Stack> {
    let damaged = |why: String| Error::Superblock { path: dir.join(FILE_NAME), why };
    if sha256(&s.stack) != s.sha256 {
        return Err(damaged("the stack in the superblock is not the one that its hash names".into()));
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
        Volume::open_with(dir, options, |_| Null)
    }
}

impl<S: Sink> Volume<S>
where
    S::Tok: 'static,
{
    /// Opens the volume in `dir` with a sink for its commands: an engine that paces, or a recorder.
    ///
    /// # Errors
    /// No volume, or one that is in use; media that are missing or of another size; a superblock or
    /// media of a version that this frit does not know; a layer that cannot come up.
    pub fn open_with(
        dir: impl AsRef<Path>,
        options: &OpenOptions,
        sink: impl FnOnce(&Hardware) -> S,
    ) -> Result<Volume<S>> {
        let dir = dir.as_ref();
        let mut superblock = SuperblockFile::open(dir, options.read_only)?;
        let was = superblock.now().clone();
        if was.state == State::Creating {
            let why = "its making was not finished; make it again with frit create".into();
            return Err(Error::NotAVolume { dir: dir.into(), why });
        }
        let stack = stack_of(&was, dir)?;
        let files = was.media.iter().map(|m| MediumFile::open(dir, m, options.read_only));
        let files = Arc::new(files.collect::<Result<Vec<_>>>()?);
        let boot = boot_id();
        let rebooted = was.boot_id != boot || boot == [0; 16];
        // A superblock that says clean over a layer that is in use is an older copy, put back by hand: what has
        // stopped since is not known.
        let stop = match was.state {
            State::Dirty if !rebooted => Stop::Process,
            _ => Stop::Machine,
        };
        let stop = options.stop.unwrap_or(stop);
        // A stop of the machine is known by the boot that is recorded: it is replaced only once recovery
        // is done, so that a recovery that is itself stopped starts over as this one.
        if was.state == State::Clean && !options.read_only {
            superblock.set_state(State::Dirty, boot)?;
        }
        let built = build::<S>(&stack, &files, was.uuid, false)?;
        let mut sink = sink(&built.hardware);
        let mut layer = built.layer;
        let start = Instant::now();
        let recovery = layer.recover(&mut sink, stop)?;
        let taken = start.elapsed();
        let seconds = taken.as_secs_f64();
        let durable_bytes = recovery.pages_in_pcm * u64::from(layer.info().page_bytes);
        let gb = (layer.info().sectors * frit_core::SECTOR_BYTES) as f64 / 1e9;
        let recovered = Recovered {
            machine: stop == Stop::Machine && !recovery.clean,
            recovery,
            seconds,
            seconds_per_gb: seconds / gb.max(1e-9),
            durable_bytes,
        };
        if !options.read_only {
            let record = RecoveryRecord::new(&recovered.recovery, stop, taken.as_micros() as u64);
            let dirty = was.state == State::Dirty;
            if dirty {
                superblock.update(|s| {
                    s.boot_id = boot;
                    s.recovery = Some(record);
                })?;
            }
        }
        let mut volume = Volume::from_parts(Parts {
            dir: dir.into(),
            stack,
            layer,
            sink,
            superblock,
            files,
            read_only: options.read_only,
            recovered,
        });
        volume.reapply()?;
        Ok(volume)
    }
}

#[cfg(test)]
mod tests;
