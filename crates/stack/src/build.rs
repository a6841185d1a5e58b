//! Composition of a layer and its media from a checked stack.

use crate::error::{Problem, Result, StackError};
use crate::layers::{LayerConfig, cache, hfsl, ntl};
use crate::media::{Medium, param_problem};
use crate::stack::Stack;
use crate::tree::Table;
use frit_core::{Error, Null, Sink, StackDevice};
use frit_media::{
    AnyStore, DiskConfig, DramConfig, FileStore, Hardware, MediumSpec, MemoryStore, NandConfig, PcmConfig,
};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Storage of the bytes of a stack's media. It is an option of the run, not a part of the stack.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// No bytes are stored: a simulation at full speed.
    None,
    /// Sparse memory: only what is written takes space.
    Memory,
    /// A function of the caller opens each store; see also [`Bytes::files`].
    StoreOpener(StoreOpener),
}

/// Opens the store of a medium, given its name and its size in bytes.
#[derive(Clone)]
pub struct StoreOpener {
    open: Arc<OpenFn>,
    owner: Option<[u8; 16]>,
}

type OpenFn = dyn Fn(&str, u64) -> frit_core::Result<AnyStore> + Send + Sync;

impl StoreOpener {
    /// Creates an opener from a function.
    pub fn new(
        open: impl Fn(&str, u64) -> frit_core::Result<AnyStore> + Send + Sync + 'static,
    ) -> StoreOpener {
        StoreOpener { open: Arc::new(open), owner: None }
    }

    /// Binds the media to an owner, such as a volume. The serial number of each medium is derived
    /// from the owner and the name of the medium, so that media of different owners are not
    /// confused.
    #[must_use]
    pub fn owned_by(mut self, owner: [u8; 16]) -> StoreOpener {
        self.owner = Some(owner);
        self
    }
}

impl std::fmt::Debug for StoreOpener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreOpener")
    }
}

impl Bytes {
    /// Stores each medium in a sparse file in a directory. Existing files are used as they are; the
    /// layer then has to [`boot`](frit_core::Quiesce::boot).
    #[must_use]
    pub fn files(dir: impl Into<PathBuf>) -> Bytes {
        let dir = dir.into();
        Bytes::StoreOpener(StoreOpener::new(move |name, len| {
            DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(|source| Error::Io {
                what: format!("cannot create the directory {}", dir.display()),
                source,
            })?;
            Ok(AnyStore::File(FileStore::open(dir.join(format!("{name}.medium")), len)?))
        }))
    }

    /// Returns the serial number of a medium, or 0 if the opener has no owner.
    pub(crate) fn serial(&self, name: &str) -> u64 {
        match self {
            Bytes::StoreOpener(StoreOpener { owner: Some(owner), .. }) => {
                // Zero stands for "no serial number", so a digest of 0 becomes 1.
                frit_media::checksum::digest(&[owner, name.as_bytes()].concat()).max(1)
            }
            _ => 0,
        }
    }

    /// Opens the store of a medium.
    pub(crate) fn store(&self, name: &str, len: u64) -> frit_core::Result<AnyStore> {
        match self {
            // Layers over `Bytes::None` are compiled with a store of their own (`NoStore`) and do
            // not call this. Sparse memory that is never written is equivalent.
            Bytes::None | Bytes::Memory => Ok(AnyStore::Memory(MemoryStore::new(len))),
            Bytes::StoreOpener(opener) => (opener.open)(name, len),
        }
    }
}

/// A composed stack: a layer over its media.
pub struct BuiltStack<S: Sink> {
    /// The top layer.
    pub layer: Box<dyn StackDevice<S>>,
    /// The devices, as an engine takes them.
    pub hardware: Hardware,
}

impl<S: Sink> std::fmt::Debug for BuiltStack<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let layer = self.layer.info();
        f.debug_struct("BuiltStack").field("layer", &layer).field("hardware", &self.hardware).finish()
    }
}

impl Stack {
    /// Builds the layer and its media.
    ///
    /// # Errors
    /// Sizes that do not fit together, reported at the line that gives them; files that cannot be
    /// used.
    pub fn build<S: Sink>(&self, bytes: &Bytes) -> Result<BuiltStack<S>>
    where
        S::Tok: 'static,
    {
        let mut hardware = Hardware::new();
        let layer = match &self.layer.config {
            LayerConfig::Hfsl(config) => needed("nand", self.nand()).and_then(|nand| {
                let media = hfsl::Media { nand, pcm: self.pcm(), dram: self.dram() };
                hfsl::build((**config).clone(), media, bytes, &mut hardware)
            }),
            LayerConfig::Cache(config) => needed("pcm", self.pcm())
                .and_then(|pcm| Ok((pcm, needed("disk", self.disk())?)))
                .and_then(|(pcm, disk)| cache::build((**config).clone(), pcm, disk, bytes, &mut hardware)),
            LayerConfig::Ntl(config) => needed("pcm", self.pcm())
                .and_then(|pcm| ntl::build((**config).clone(), pcm, bytes, &mut hardware)),
        };
        match layer {
            Ok(layer) => Ok(BuiltStack { layer, hardware }),
            Err(e) => Err(StackError::new(&self.name, vec![self.locate(e)])),
        }
    }

    /// Returns the devices that the layer uses, as an engine takes them.
    ///
    /// # Errors
    /// As for [`Stack::build`].
    pub fn hardware(&self) -> Result<Hardware> {
        Ok(self.build::<Null>(&Bytes::None)?.hardware)
    }

    fn nand(&self) -> Option<NandConfig> {
        self.on("nand").and_then(|m| if let MediumSpec::Nand(c) = &m.spec { Some(c.clone()) } else { None })
    }

    fn pcm(&self) -> Option<PcmConfig> {
        self.on("pcm").and_then(|m| if let MediumSpec::Pcm(c) = &m.spec { Some(c.clone()) } else { None })
    }

    fn dram(&self) -> Option<DramConfig> {
        self.on("dram").and_then(|m| if let MediumSpec::Dram(c) = &m.spec { Some(c.clone()) } else { None })
    }

    fn disk(&self) -> Option<DiskConfig> {
        self.on("disk").and_then(|m| if let MediumSpec::Disk(c) = &m.spec { Some(c.clone()) } else { None })
    }

    /// Returns the medium that fills a role of the layer.
    pub(crate) fn on(&self, role: &str) -> Option<&Medium> {
        self.layer.on.iter().find(|(r, _)| r.key == role).map(|&(_, i)| &self.media[i])
    }

    /// Turns an error of the layer or of a medium into a problem with a source location: that of
    /// the parameter in the layer's table, else in the table of a medium.
    fn locate(&self, error: Error) -> Problem {
        let name = &self.layer.name;
        let tables = self.root.table("media");
        let Error::Param { key, .. } = &error else {
            // Errors that are not about a parameter name the medium in their text.
            let text = error.to_string();
            let medium = self.media.iter().find(|m| m.used && text.contains(&format!("'{}'", m.name)));
            let at = medium.and_then(|m| tables?.table(&m.name)).map(|t| t.spot.clone());
            return Problem::new(format!("`{name}`: {error}")).at(at, "this medium");
        };
        let Some(layer) = self.root.table(name) else { return Problem::new(error.to_string()) };
        let names =
            |t: &Table, known: &[&str]| key.split(", ").any(|k| t.get(k).is_some() || known.contains(&k));
        if names(layer, &self.layer.kind.keys()) {
            return param_problem(name, layer, "", error);
        }
        for medium in self.media.iter().filter(|m| m.used) {
            let table = tables.and_then(|t| t.table(&medium.name));
            let known = crate::media::keys(Some(medium.spec.kind()));
            if let Some(table) = table.filter(|t| names(t, &known)) {
                return param_problem(&format!("media.{}", medium.name), table, "profile", error);
            }
        }
        Problem::new(format!("`{name}`: {error}")).at(Some(layer.spot.clone()), "this layer")
    }
}

/// Requires a medium without which the layer cannot be built.
fn needed<M>(role: &str, medium: Option<M>) -> frit_core::Result<M> {
    medium.ok_or_else(|| Error::param(role, "", "is needed"))
}
