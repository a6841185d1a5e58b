//! Targets of torture: a target builds a layer over the harness's stores.

use crate::medium::{Medium, NandPlan, Shared};
use crate::tape::Tape;
use frit_core::{Error, MediumKind, Null, SECTOR_BYTES, Top};
use frit_media::{AnyStore, MediumSpec};
use frit_stack::{Bytes, Opener, Stack};
use std::sync::Arc;

/// Bytes of a cache line.
const CACHE_LINE: u64 = 64;

/// Properties of a medium of a subject.
#[derive(Clone, Debug)]
pub struct MediumShape {
    /// Name of the medium.
    pub name: String,
    /// Kind of the medium.
    pub kind: MediumKind,
    /// Layout of its store, if it is NAND.
    pub nand: Option<NandPlan>,
    /// Bytes within which writes are ordered: a PCM line, a sector of a disk.
    pub line_bytes: u64,
    /// Bytes that a cut cannot tear: a word of PCM, a sector of a disk.
    pub word_bytes: u64,
    /// Bytes of data, without the device's own metadata after them.
    pub data_bytes: u64,
    /// Units of the medium, by their numbers in the stack.
    pub units: std::ops::Range<u16>,
}

/// A target of torture.
pub trait Subject: Sync {
    /// Returns its media, in the order of the stores.
    fn media(&self) -> &[MediumShape];

    /// Builds the layer for use.
    ///
    /// # Errors
    /// Errors of the layer for media that it cannot use.
    fn live(&self, stores: &[Shared]) -> Result<Box<dyn Top<Null>>, Error>;

    /// Builds the layer for recording.
    ///
    /// # Errors
    /// The same as [`Subject::live`].
    fn taped(&self, stores: &[Shared]) -> Result<Box<dyn Top<Tape>>, Error>;

    /// Returns the same target over backing files behind a page cache.
    fn over_files(&self) -> &dyn Subject;

    /// Returns the same target with other parameters, `key=value` each, or `None` if it has no such
    /// variant.
    fn variant(&self, sets: &[String]) -> Option<Box<dyn Subject>>;

    /// Creates blank stores.
    fn blank(&self) -> Vec<Shared> {
        let medium = |(i, m): (usize, &MediumShape)| Shared::new(Medium::new(i as u8, m.nand));
        self.media().iter().enumerate().map(medium).collect()
    }
}

/// Loads a stack with these overrides.
type Load = dyn Fn(&[String]) -> frit_stack::Result<Stack> + Send + Sync;

/// A stack as a target.
pub struct StackSubject {
    stack: Stack,
    media: Vec<MediumShape>,
    load: Arc<Load>,
    over_files: Option<Box<StackSubject>>,
}

impl std::fmt::Debug for StackSubject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StackSubject").field("media", &self.media).finish_non_exhaustive()
    }
}

impl StackSubject {
    /// Creates a target from a stack, whose media should be small. `load` reads the stack with
    /// overrides, `key=value` each.
    ///
    /// # Errors
    /// A stack that cannot be built.
    pub fn new(
        load: impl Fn(&[String]) -> frit_stack::Result<Stack> + Send + Sync + 'static,
    ) -> frit_stack::Result<StackSubject> {
        let load: Arc<Load> = Arc::new(load);
        let layer = load(&[])?.layer().clone();
        let files = StackSubject::with(&load, &layer.durable(true))?;
        Ok(StackSubject {
            over_files: Some(Box::new(files)),
            ..StackSubject::with(&load, &layer.durable(false))?
        })
    }

    fn with(load: &Arc<Load>, sets: &[String]) -> frit_stack::Result<StackSubject> {
        let stack = load(sets)?;
        let hardware = stack.hardware()?;
        let mut media = Vec::new();
        for (i, device) in hardware.devices().iter().enumerate() {
            let Some(medium) = stack.media().iter().find(|m| m.used && m.name == device.name) else {
                continue;
            };
            let mine = |u: &u16| hardware.device_of(frit_core::UnitId(*u)) == i;
            let units = 0..hardware.units() as u16;
            let first = units.clone().find(mine).unwrap_or(0);
            let last = units.rev().find(mine).unwrap_or(0);
            let pcm_word = u64::from(frit_media::pcm::ATOMIC_BYTES);
            let (nand, line_bytes, word_bytes, data_bytes) = match &medium.spec {
                MediumSpec::Nand(c) => (Some(NandPlan::new(&c.geometry)), 0, pcm_word, c.geometry.bytes()),
                // Writes to a cache line reach persistent memory in order, for any line size of the
                // medium.
                MediumSpec::Pcm(c) => {
                    let line = u64::from(c.geometry.line_bytes).clamp(pcm_word, CACHE_LINE);
                    (None, line, pcm_word, c.geometry.bytes())
                }
                MediumSpec::Disk(c) => (None, SECTOR_BYTES, SECTOR_BYTES, c.bytes),
                MediumSpec::Dram(_) => continue,
            };
            let name = device.name.clone();
            media.push(MediumShape {
                name,
                kind: device.kind,
                nand,
                line_bytes,
                word_bytes,
                data_bytes,
                units: first..last + 1,
            });
        }
        Ok(StackSubject { stack, media, load: load.clone(), over_files: None })
    }

    /// Returns the stack.
    #[must_use]
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    fn bytes(&self, stores: &[Shared]) -> Bytes {
        let stores: Vec<(String, Shared)> =
            self.media.iter().map(|m| m.name.clone()).zip(stores.iter().cloned()).collect();
        Bytes::Opener(Opener::new(move |name, len| {
            stores
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, s)| AnyStore::Custom(s.open(len)))
                .ok_or_else(|| Error::param("medium", name, "the harness has no such medium"))
        }))
    }
}

impl Subject for StackSubject {
    fn media(&self) -> &[MediumShape] {
        &self.media
    }

    fn over_files(&self) -> &dyn Subject {
        self.over_files.as_deref().map_or(self, |s| s)
    }

    fn variant(&self, sets: &[String]) -> Option<Box<dyn Subject>> {
        let mut all = self.stack.layer().durable(false);
        all.extend_from_slice(sets);
        Some(Box::new(StackSubject::with(&self.load, &all).ok()?))
    }

    fn live(&self, stores: &[Shared]) -> Result<Box<dyn Top<Null>>, Error> {
        Ok(self.stack.build::<Null>(&self.bytes(stores)).map_err(|e| refused(&e))?.layer)
    }

    fn taped(&self, stores: &[Shared]) -> Result<Box<dyn Top<Tape>>, Error> {
        Ok(self.stack.build::<Tape>(&self.bytes(stores)).map_err(|e| refused(&e))?.layer)
    }
}

fn refused(e: &frit_stack::StackError) -> Error {
    let why: Vec<&str> = e.problems().iter().map(frit_stack::Problem::message).collect();
    Error::param("stack", "open", why.join("; "))
}
