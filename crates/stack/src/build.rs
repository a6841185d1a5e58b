//! From a checked stack to a layer over its media.

use crate::error::{Problem, Result, StackError};
use crate::layers::{LayerConfig, cache, hfsl, ntl};
use crate::media::{Medium, param_problem};
use crate::stack::Stack;
use crate::tree::Table;
use frit_core::{Error, Null, Sink, Top};
use frit_media::{
    AnyStore, DiskConfig, DramConfig, FileStore, Hardware, MediumSpec, MemoryStore, NandConfig, PcmConfig,
};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where the bytes of a stack live. It is a choice of the run, not of the stack.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// Nowhere: a simulation at full speed.
    None,
    /// In memory, as much as is written.
    Memory,
    /// Where a program says: see also [`Bytes::files`].
    Opener(Opener),
}

/// Opens the store of a medium, by its name and its size in bytes.
#[derive(Clone)]
pub struct Opener {
    open: Arc<OpenFn>,
    owner: Option<[u8; 16]>,
}

type OpenFn = dyn Fn(&str, u64) -> frit_core::Result<AnyStore> + Send + Sync;

impl Opener {
    /// From a function.
    pub fn new(open: impl Fn(&str, u64) -> frit_core::Result<AnyStore> + Send + Sync + 'static) -> Opener {
        Opener { open: Arc::new(open), owner: None }
    }

    /// Whose media they are: each gets a serial number from it and its name, and no other's is taken for it.
    #[must_use]
    pub fn owned_by(mut self, owner: [u8; 16]) -> Opener {
        self.owner = Some(owner);
        self
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Opener")
    }
}

impl Bytes {
    /// In a directory, a file for each medium, sparse. Files that are there are used as they are: the
    /// layer has to [`boot`](frit_core::Quiesce::boot).
    #[must_use]
    pub fn files(dir: impl Into<PathBuf>) -> Bytes {
        let dir = dir.into();
        Bytes::Opener(Opener::new(move |name, len| {
            DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(|source| Error::Io {
                what: format!("cannot make the directory {}", dir.display()),
                source,
            })?;
            Ok(AnyStore::File(FileStore::open(dir.join(format!("{name}.medium")), len)?))
        }))
    }

    /// The serial number of a medium; 0 when nobody owns it.
    pub(crate) fn serial(&self, name: &str) -> u64 {
        match self {
            Bytes::Opener(Opener { owner: Some(owner), .. }) => {
                // Zero stands for none.
                frit_media::checksum::digest(&[owner, name.as_bytes()].concat()).max(1)
            }
            _ => 0,
        }
    }

    /// A store for a medium.
    pub(crate) fn store(&self, name: &str, len: u64) -> frit_core::Result<AnyStore> {
        match self {
            // `None` is compiled into stores of its own; memory of which nothing is used is as good.
            Bytes::None | Bytes::Memory => Ok(AnyStore::Memory(MemoryStore::new(len))),
            Bytes::Opener(opener) => (opener.open)(name, len),
        }
    }
}

/// A stack, ready to serve.
pub struct Built<S: Sink> {
    /// The layer on top.
    pub layer: Box<dyn Top<S>>,
    /// The devices, for an engine.
    pub hardware: Hardware,
}

impl<S: Sink> std::fmt::Debug for Built<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let layer = self.layer.info();
        f.debug_struct("Built").field("layer", &layer).field("hardware", &self.hardware).finish()
    }
}

impl Stack {
    /// Makes the layer and its media.
    ///
    /// # Errors
    /// Sizes that do not add up, at the line that gives them; files that cannot be used.
    pub fn build<S: Sink>(&self, bytes: &Bytes) -> Result<Built<S>>
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
            Ok(layer) => Ok(Built { layer, hardware }),
            Err(e) => Err(StackError::new(&self.name, vec![self.locate(e)])),
        }
    }

    /// The devices that the layer uses, as an engine takes them.
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

    /// The medium in a role of the layer.
    pub(crate) fn on(&self, role: &str) -> Option<&Medium> {
        self.layer.on.iter().find(|(r, _)| r.key == role).map(|&(_, i)| &self.media[i])
    }

    /// Where the parameter is that an error names: in the layer's table, else in that of a medium.
    fn locate(&self, error: Error) -> Problem {
        let name = &self.layer.name;
        let tables = self.root.table("media");
        let Error::Param { key, .. } = &error else {
            // Such errors name the medium.
            let text = error.to_string();
            let medium = self.media.iter().find(|m| m.used && text.contains(&format!("'{}'", m.name)));
            let at = medium.and_then(|m| tables?.table(&m.name)).map(|t| t.spot.clone());
            return Problem::new(format!("`{name}`: {error}")).at(at, "this medium");
        };
        let Some(layer) = self.root.table(name) else { return Problem::new(error.to_string()) };
        let names =
            |t: &Table, known: &[&str]| key.split(", ").any(|k| t.get(k).is_some() || known.contains(&k));
        if names(layer, self.layer.kind.keys()) {
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

/// A medium that a layer cannot be without.
fn needed<M>(role: &str, medium: Option<M>) -> frit_core::Result<M> {
    medium.ok_or_else(|| Error::param(role, "", "is needed"))
}
