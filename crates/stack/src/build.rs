//! Composition of a layer and its media from a checked stack.

use crate::error::{Problem, Result, StackError};
use crate::layers::{LayerConfig, cache, hfsl, ntl};
use crate::media::{StackMedium, param_problem};
use crate::stack::Stack;
use crate::stores::{Bytes, NoStores, Stores};
use crate::tree::Table;
use frit_core::{Error, Sink, StackDevice, UntimedSink};
use frit_engine::{AnyScheduler, Event, InOrder};
use frit_media::{DiskConfig, DramConfig, Hardware, MediumSpec, NandConfig, PcmConfig};

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

/// A sink for which stacks can be built.
///
/// The layers are generic in their sink, and large. This crate compiles them for the sinks that
/// implement this trait, once for the whole program. Another sink implements it with
/// [`Stack::build_with_bytes`] or [`Stack::build_without_bytes`].
pub trait StackSink: Sink<Tok: 'static> + Sized {
    /// Builds the layer of a stack and its media.
    ///
    /// # Errors
    /// Sizes that do not fit together, reported at the line that gives them; files that cannot be
    /// used.
    fn build(stack: &Stack, bytes: &Bytes) -> Result<BuiltStack<Self>>;
}

macro_rules! stack_sinks {
    ($($sink:ty),*) => {
        $(impl StackSink for $sink {
            fn build(stack: &Stack, bytes: &Bytes) -> Result<BuiltStack<Self>> {
                match bytes {
                    Bytes::None => stack.build_without_bytes(),
                    _ => stack.build_with_bytes(bytes),
                }
            }
        })*
    };
}

stack_sinks!(UntimedSink, InOrder, Event<AnyScheduler>);

impl Stack {
    /// Builds the layer and its media.
    ///
    /// # Errors
    /// As for [`StackSink::build`].
    pub fn build<S: StackSink>(&self, bytes: &Bytes) -> Result<BuiltStack<S>> {
        S::build(self, bytes)
    }

    /// Builds the layer and its media without virtual time.
    ///
    /// # Errors
    /// As for [`StackSink::build`].
    pub fn build_untimed(&self, bytes: &Bytes) -> Result<BuiltStack<UntimedSink>> {
        self.build(bytes)
    }

    /// Builds the layer over media that store bytes. [`Bytes::None`] is taken for
    /// [`Bytes::Memory`].
    ///
    /// # Errors
    /// As for [`StackSink::build`].
    pub fn build_with_bytes<S: Sink>(&self, bytes: &Bytes) -> Result<BuiltStack<S>>
    where
        S::Tok: 'static,
    {
        self.build_on(bytes)
    }

    /// Builds the layer over media without bytes.
    ///
    /// # Errors
    /// As for [`StackSink::build`].
    pub fn build_without_bytes<S: Sink>(&self) -> Result<BuiltStack<S>>
    where
        S::Tok: 'static,
    {
        self.build_on(&NoStores)
    }

    fn build_on<S: Sink, B: Stores>(&self, stores: &B) -> Result<BuiltStack<S>>
    where
        S::Tok: 'static,
    {
        let mut hardware = Hardware::new();
        let layer = match &self.layer.config {
            LayerConfig::Hfsl(config) => require_medium("nand", self.nand()).and_then(|nand| {
                let media = hfsl::Media { nand, pcm: self.pcm(), dram: self.dram() };
                hfsl::build((**config).clone(), media, stores, &mut hardware)
            }),
            LayerConfig::Cache(config) => require_medium("pcm", self.pcm())
                .and_then(|pcm| Ok((pcm, require_medium("disk", self.disk())?)))
                .and_then(|(pcm, disk)| cache::build((**config).clone(), pcm, disk, stores, &mut hardware)),
            LayerConfig::Ntl(config) => require_medium("pcm", self.pcm())
                .and_then(|pcm| ntl::build((**config).clone(), pcm, stores, &mut hardware)),
        };
        match layer {
            Ok(layer) => Ok(BuiltStack { layer, hardware }),
            Err(e) => Err(StackError::new(&self.name, vec![self.locate(e)])),
        }
    }

    /// Returns the devices that the layer uses, as an engine takes them.
    ///
    /// # Errors
    /// As for [`StackSink::build`].
    pub fn hardware(&self) -> Result<Hardware> {
        Ok(self.build_untimed(&Bytes::None)?.hardware)
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
    pub(crate) fn on(&self, role: &str) -> Option<&StackMedium> {
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
            let at = medium.and_then(|m| tables?.table(&m.name)).map(|t| t.span.clone());
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
        Problem::new(format!("`{name}`: {error}")).at(Some(layer.span.clone()), "this layer")
    }
}

/// Requires a medium without which the layer cannot be built.
fn require_medium<M>(role: &str, medium: Option<M>) -> frit_core::Result<M> {
    medium.ok_or_else(|| Error::param(role, "", "is needed"))
}
