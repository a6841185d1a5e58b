//! Targets of torture: a target builds a layer over the harness's stores.

use crate::block::medium::{SharedMedium, TortureMedium};
use crate::block::nand_layout::NandLayout;
use frit_core::{Error, MediumKind, SECTOR_BYTES, StackDevice};
use frit_media::{AnyStore, MediumSpec};
use frit_stack::{Below, Bytes, Stack, StoreOpener};
use std::sync::Arc;

/// Bytes of a cache line.
const CACHE_LINE: u64 = 64;

/// Properties of a medium of a target.
#[derive(Clone, Debug)]
pub struct MediumShape {
    /// Name of the medium.
    pub name: String,
    /// Kind of the medium.
    pub kind: MediumKind,
    /// Layout of its store, if it is NAND.
    pub nand: Option<NandLayout>,
    /// Bytes within which writes are ordered: a PCM line, a sector of a disk. On an object store,
    /// the requests to one slot are ordered.
    pub line_bytes: u64,
    /// Bytes that a cut cannot tear: a word of PCM, a sector of a disk or of the store of objects.
    pub word_bytes: u64,
    /// Bytes of data, without the device's own metadata after them.
    pub data_bytes: u64,
    /// `true` if the top layer uses the medium, `false` if a layer below does.
    pub of_top: bool,
    /// A layer detects every damage to its contents.
    pub verified: bool,
    /// Units of the medium, by their numbers in the stack.
    pub units: std::ops::Range<u16>,
}

/// A target of torture.
pub trait TortureTarget: Sync {
    /// Returns its media, in the order of the stores.
    fn media(&self) -> &[MediumShape];

    /// Builds the layer for use.
    ///
    /// # Errors
    /// Errors of the layer for media that it cannot use.
    fn build(&self, stores: &[SharedMedium]) -> Result<Box<dyn StackDevice>, Error>;

    /// Returns the same target over backing files behind a page cache.
    fn over_files(&self) -> &dyn TortureTarget;

    /// Returns the same target with other parameters, `key=value` each, or `None` if it has no such
    /// variant.
    fn variant(&self, sets: &[String]) -> Option<Box<dyn TortureTarget>>;

    /// Returns `true` if a layer below the top layer uses a medium.
    fn is_layered(&self) -> bool {
        self.media().iter().any(|m| !m.of_top)
    }

    /// Returns `true` if a layer of the target keeps changes in DRAM until a flush, so that a request
    /// which wrote to no disk is not certain either.
    fn commits_at_flush(&self) -> bool {
        false
    }

    /// Creates blank stores.
    fn blank_stores(&self) -> Vec<SharedMedium> {
        let medium = |(i, m): (usize, &MediumShape)| SharedMedium::new(TortureMedium::new(i as u8, m.nand));
        self.media().iter().enumerate().map(medium).collect()
    }
}

/// Loads a stack with these overrides.
type Load = dyn Fn(&[String]) -> frit_stack::Result<Stack> + Send + Sync;

/// A stack as a target.
pub struct StackTarget {
    stack: Stack,
    media: Vec<MediumShape>,
    load: Arc<Load>,
    over_files: Option<Box<StackTarget>>,
}

impl std::fmt::Debug for StackTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StackTarget").field("media", &self.media).finish_non_exhaustive()
    }
}

impl StackTarget {
    /// Creates a target from a stack, whose media should be small. `load` reads the stack with
    /// overrides, `key=value` each.
    ///
    /// # Errors
    /// A stack that cannot be built.
    pub fn new(
        load: impl Fn(&[String]) -> frit_stack::Result<Stack> + Send + Sync + 'static,
    ) -> frit_stack::Result<StackTarget> {
        let load: Arc<Load> = Arc::new(load);
        let stack = load(&[])?;
        let files = StackTarget::with(&load, &stack.durable(true))?;
        Ok(StackTarget {
            over_files: Some(Box::new(files)),
            ..StackTarget::with(&load, &stack.durable(false))?
        })
    }

    fn with(load: &Arc<Load>, sets: &[String]) -> frit_stack::Result<StackTarget> {
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
                MediumSpec::Nand(c) => {
                    let geometry = stack.divided_geometry(&medium.name, c.geometry);
                    (Some(NandLayout::new(&geometry)), 0, pcm_word, geometry.bytes())
                }
                // Writes to a cache line reach persistent memory in order, for any line size of the
                // medium.
                MediumSpec::Pcm(c) => {
                    let line = u64::from(c.geometry.line_bytes).clamp(pcm_word, CACHE_LINE);
                    (None, line, pcm_word, c.geometry.bytes())
                }
                MediumSpec::Disk(c) => (None, SECTOR_BYTES, SECTOR_BYTES, c.bytes),
                MediumSpec::Object(c) => (None, SECTOR_BYTES, SECTOR_BYTES, c.data_bytes()),
                MediumSpec::Dram(_) => continue,
            };
            let name = device.name.clone();
            let of_top = stack.layer().on.iter().any(|&(_, below)| stack.name_of(below) == name);
            // The contents of a disk have checksums only if a layer directly above it gives them some.
            let above = stack.layers().iter().any(|l| {
                l.kind.verifies_device()
                    && l.on.iter().any(|(_, below)| match below {
                        Below::Medium(m) => stack.media()[*m].name == name,
                        Below::Layer(_) => false,
                    })
            });
            let verified = device.kind != MediumKind::Disk || above;
            media.push(MediumShape {
                name,
                of_top,
                kind: device.kind,
                nand,
                line_bytes,
                word_bytes,
                data_bytes,
                verified,
                units: first..last + 1,
            });
        }
        Ok(StackTarget { stack, media, load: load.clone(), over_files: None })
    }

    /// Returns the stack.
    #[must_use]
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    fn bytes(&self, stores: &[SharedMedium]) -> Bytes {
        let stores: Vec<(String, SharedMedium)> =
            self.media.iter().map(|m| m.name.clone()).zip(stores.iter().cloned()).collect();
        Bytes::StoreOpener(StoreOpener::new(move |name, len| {
            stores
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, s)| AnyStore::Custom(s.open(len)))
                .ok_or_else(|| Error::param("medium", name, "the harness has no such medium"))
        }))
    }
}

impl TortureTarget for StackTarget {
    fn media(&self) -> &[MediumShape] {
        &self.media
    }

    fn commits_at_flush(&self) -> bool {
        self.stack.layers().iter().any(|l| l.kind.commits_at_flush())
    }

    fn over_files(&self) -> &dyn TortureTarget {
        self.over_files.as_deref().map_or(self, |s| s)
    }

    fn variant(&self, sets: &[String]) -> Option<Box<dyn TortureTarget>> {
        let mut all = self.stack.durable(false);
        all.extend_from_slice(sets);
        Some(Box::new(StackTarget::with(&self.load, &all).ok()?))
    }

    fn build(&self, stores: &[SharedMedium]) -> Result<Box<dyn StackDevice>, Error> {
        Ok(self.stack.build(&self.bytes(stores)).map_err(|e| refused(&e))?.layer)
    }
}

fn refused(e: &frit_stack::StackError) -> Error {
    let why: Vec<&str> = e.problems().iter().map(frit_stack::Problem::message).collect();
    Error::param("stack", "open", why.join("; "))
}
