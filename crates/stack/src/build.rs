//! Composition of a layer and its media from a checked stack.

use crate::error::{Problem, Result, StackError};
use crate::layers::{
    LayerConfig, cache, flashcache, flashtier, ftl, hfsl, nameless, nameless_device, ntl, ssc, zns,
};
use crate::media::{StackMedium, param_problem};
use crate::objects;
use crate::stack::{Below, Layer, Stack};
use crate::stores::Bytes;
use crate::tree::Table;
use frit_compose::compress::Compress;
use frit_compose::concat::Concat;
use frit_compose::delay::Delay;
use frit_compose::dram_cache::DramCache;
use frit_compose::flaky::Flaky;
use frit_compose::host_link::HostLink;
use frit_compose::mirror::Mirror;
use frit_compose::record::{Record, RecordPort};
use frit_compose::segments::Segments;
use frit_compose::stripe::Stripe;
use frit_compose::thin::Thin;
use frit_compose::{Composed, Composer, Devices, NestedLayer, Tree};
use frit_core::{BlockDevice, Error, NamelessDevice, SECTOR_BYTES, StackDevice};
use frit_layer::FlashcacheConfig;
use frit_media::checksum::digest;
use frit_media::{DramConfig, Hardware, MediumSpec, NandConfig, NandGeometry, ObjectConfig, PcmConfig};

/// A composed stack: a layer over its media.
pub struct BuiltStack {
    /// The top layer.
    pub layer: Box<dyn StackDevice>,
    /// The devices, as an engine takes them.
    pub hardware: Hardware,
    /// The places where the stack asks for a recording.
    pub records: Vec<RecordPort>,
}

impl std::fmt::Debug for BuiltStack {
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
    pub fn build(&self, bytes: &Bytes) -> Result<BuiltStack> {
        let mut hardware = Hardware::new();
        let mut builder = Builder { stack: self, records: Vec::new() };
        let mut top = builder
            .build_layer(0, bytes, &mut hardware)
            .map_err(|problem| StackError::new(&self.name, vec![*problem]))?;
        self.check_namespaces(&top.info()).map_err(|problem| StackError::new(&self.name, vec![*problem]))?;
        top.serve_clients();
        let layer: Box<dyn StackDevice> =
            if self.layers.len() > 1 { Box::new(Tree::new(&self.layer().name, top)) } else { top };
        Ok(BuiltStack { layer, hardware, records: builder.records })
    }
}

impl Stack {
    /// Returns the capacity of a layer over what is below it, in bytes. That of a nameless-write device is
    /// for contents, beside its virtual address space.
    pub fn layer_bytes(&self, index: usize) -> Result<u64> {
        let mut builder = Builder { stack: self, records: Vec::new() };
        let mut built = builder
            .build_layer(index, &Bytes::None, &mut Hardware::new())
            .map_err(|problem| StackError::new(&self.name, vec![*problem]))?;
        let contents = |device: &mut dyn NamelessDevice| {
            u64::from(device.space().capacity) * u64::from(device.block_bytes())
        };
        let bytes = built.info().sectors * SECTOR_BYTES;
        Ok(if index == 0 { built.nameless_device().map_or(bytes, contents) } else { bytes })
    }
}

/// Builds a composer of one device.
fn over_one_device(config: &LayerConfig, device: Devices) -> frit_core::Result<Box<dyn StackDevice>> {
    match config {
        LayerConfig::Delay(c) => Ok(composed(Delay::new(c.clone(), device))),
        LayerConfig::HostLink(c) => Ok(composed(HostLink::new(c.clone(), device))),
        LayerConfig::DramCache(c) => DramCache::new(c.clone(), device).map(composed),
        LayerConfig::Flaky(c) => Ok(composed(Flaky::new(c.clone(), device))),
        LayerConfig::Thin(c) => Thin::new(c.clone(), device).map(composed),
        LayerConfig::Compress(c) => Compress::new(c.clone(), device).map(composed),
        _ => Err(Error::param("kind", "", "is no layer over one device")),
    }
}

/// Builds the layers of a stack.
struct Builder<'a> {
    stack: &'a Stack,
    records: Vec<RecordPort>,
}

impl Builder<'_> {
    /// Builds a layer over what is below it. A medium is registered with the hardware when it is
    /// built, so the lowest come first.
    fn build_layer(
        &mut self,
        index: usize,
        stores: &Bytes,
        hardware: &mut Hardware,
    ) -> std::result::Result<Box<dyn StackDevice>, Box<Problem>> {
        let (stack, layer) = (self.stack, &self.stack.layers[index]);
        let located = |e: Error| Box::new(stack.locate(layer, e));
        let nand = || stack.nand(layer);
        let built = match &layer.config {
            LayerConfig::Hfsl(c) => hfsl::build((**c).clone(), stack.hfsl_media(layer), stores, hardware),
            LayerConfig::Ftl(c) => ftl::build((**c).clone(), nand(), stores, hardware),
            LayerConfig::Cache(config) => {
                let pcm = require_medium("pcm", stack.pcm(layer)).map_err(located)?;
                let pcm = cache::open_pcm(pcm, stores, hardware).map_err(located)?;
                let disk = self.devices(layer, "disk", stores, hardware)?.pop();
                require_medium("disk", disk).and_then(|disk| cache::build((**config).clone(), pcm, disk))
            }
            LayerConfig::Flashtier(c) => {
                let disk = self.devices(layer, "disk", stores, hardware)?.pop();
                require_medium("disk", disk)
                    .and_then(|disk| flashtier::build((**c).clone(), nand(), disk, stores, hardware))
            }
            LayerConfig::Nameless(c) => nameless::build((**c).clone(), nand(), stores, hardware),
            LayerConfig::NamelessDevice(c) => nameless_device::build((**c).clone(), nand(), stores, hardware),
            LayerConfig::Ssc(c) => ssc::build((**c).clone(), nand(), stores, hardware),
            LayerConfig::Zns(c) => zns::build((**c).clone(), nand(), stores, hardware),
            LayerConfig::Flashcache(c) => return self.build_flashcache(layer, c, stores, hardware),
            LayerConfig::Ntl(config) => require_medium("pcm", stack.pcm(layer))
                .and_then(|pcm| ntl::build((**config).clone(), pcm, stores, hardware)),
            LayerConfig::Concat(config) => {
                let devices = self.devices(layer, "devices", stores, hardware)?;
                Ok(composed(Concat::new(config.clone(), Devices::new(devices))))
            }
            LayerConfig::Delay(_)
            | LayerConfig::HostLink(_)
            | LayerConfig::DramCache(_)
            | LayerConfig::Flaky(_)
            | LayerConfig::Thin(_)
            | LayerConfig::Compress(_) => {
                let device = Devices::new(self.devices(layer, "device", stores, hardware)?);
                over_one_device(&layer.config, device)
            }
            LayerConfig::Record(config) => {
                let device = self.devices(layer, "device", stores, hardware)?;
                let record = Record::new(config.clone(), Devices::new(device));
                self.records.push(record.port());
                Ok(composed(record))
            }
            LayerConfig::Stripe(config) => {
                let devices = Devices::new(self.devices(layer, "devices", stores, hardware)?);
                Stripe::new(config.clone(), devices).map(composed)
            }
            LayerConfig::Mirror(config) => {
                let devices = self.devices(layer, "devices", stores, hardware)?;
                // Mirrors of one stack differ in their names, and those of volumes in their owners.
                let identity = stores.serial(&layer.name) ^ digest(layer.name.as_bytes());
                Mirror::new(config.clone(), devices, identity).map(composed)
            }
            LayerConfig::Segments(config) => {
                let map = Devices::new(self.devices(layer, "map", stores, hardware)?);
                let store = require_medium("store", stack.object_store(layer))
                    .and_then(|store| objects::open(store, stores, hardware))
                    .map_err(located)?;
                Segments::new(config.clone(), map, store).map(composed)
            }
        };
        built.map_err(located)
    }

    /// Builds a layer of the kind flashcache over its two devices.
    fn build_flashcache(
        &mut self,
        layer: &Layer,
        config: &FlashcacheConfig,
        stores: &Bytes,
        hardware: &mut Hardware,
    ) -> std::result::Result<Box<dyn StackDevice>, Box<Problem>> {
        let ssd = self.devices(layer, "ssd", stores, hardware)?.pop();
        let disk = self.devices(layer, "disk", stores, hardware)?.pop();
        let built = require_medium("ssd", ssd).and_then(|ssd| {
            let disk = require_medium("disk", disk)?;
            flashcache::build(config.clone(), ssd, disk, stores.are_stored())
        });
        built.map_err(|e| Box::new(self.stack.locate(layer, e)))
    }

    /// Builds the devices in a role of a layer.
    fn devices(
        &mut self,
        layer: &Layer,
        role: &str,
        stores: &Bytes,
        hardware: &mut Hardware,
    ) -> std::result::Result<Vec<Box<dyn BlockDevice>>, Box<Problem>> {
        let stack = self.stack;
        let below = layer.on.iter().filter(|(r, _)| r.key == role);
        below
            .map(|&(_, below)| match below {
                Below::Layer(i) => {
                    let built = self.build_layer(i, stores, hardware)?;
                    // A stack file of 1 MiB cannot have more layers.
                    let number = u16::try_from(i).unwrap_or(u16::MAX);
                    let mut layer = NestedLayer::new(&stack.layers[i].name, number, built);
                    if !stores.are_stored() {
                        layer = layer.without_bytes();
                    }
                    Ok(Box::new(layer) as Box<dyn BlockDevice>)
                }
                Below::Medium(i) => {
                    let disk =
                        if let MediumSpec::Disk(c) = &stack.media[i].spec { Some(c.clone()) } else { None };
                    require_medium(role, disk)
                        .and_then(|disk| cache::open_disk(disk, stores, hardware))
                        .map_err(|e| Box::new(stack.locate(layer, e)))
                }
            })
            .collect()
    }
}

impl Stack {
    /// Returns the devices that the layers use, as an engine takes them.
    ///
    /// # Errors
    /// As for [`Stack::build`].
    pub fn hardware(&self) -> Result<Hardware> {
        Ok(self.build(&Bytes::None)?.hardware)
    }

    fn hfsl_media(&self, layer: &Layer) -> hfsl::Media {
        hfsl::Media { nand: self.nand(layer), pcm: self.pcm(layer), dram: self.dram(layer) }
    }

    fn nand(&self, layer: &Layer) -> Vec<NandConfig> {
        let config = |m: &StackMedium| if let MediumSpec::Nand(c) = &m.spec { Some(c.clone()) } else { None };
        self.all_on(layer, "nand").into_iter().filter_map(config).collect()
    }

    /// Returns the geometry of NAND as its layer divides it: a page is a mapping unit of an FTL or of a
    /// solid-state cache.
    #[must_use]
    pub fn divided_geometry(&self, medium: &str, geometry: NandGeometry) -> NandGeometry {
        let above = self.layers.iter().find(|l| self.all_on(l, "nand").iter().any(|m| m.name == medium));
        match above.map(|l| &l.config) {
            Some(LayerConfig::Ftl(config)) => config.divide(geometry).unwrap_or(geometry),
            Some(LayerConfig::Nameless(config)) => config.divide(geometry).unwrap_or(geometry),
            Some(LayerConfig::NamelessDevice(c)) => c.device.divide(geometry).unwrap_or(geometry),
            Some(LayerConfig::Flashtier(config)) => config.ssc.divide(geometry).unwrap_or(geometry),
            Some(LayerConfig::Ssc(config)) => config.ssc.divide(geometry).unwrap_or(geometry),
            Some(LayerConfig::Zns(config)) => config.divide(geometry).unwrap_or(geometry),
            _ => geometry,
        }
    }

    fn pcm(&self, layer: &Layer) -> Option<PcmConfig> {
        self.on(layer, "pcm")
            .and_then(|m| if let MediumSpec::Pcm(c) = &m.spec { Some(c.clone()) } else { None })
    }

    fn dram(&self, layer: &Layer) -> Option<DramConfig> {
        self.on(layer, "dram")
            .and_then(|m| if let MediumSpec::Dram(c) = &m.spec { Some(c.clone()) } else { None })
    }

    pub(crate) fn object_store(&self, layer: &Layer) -> Option<ObjectConfig> {
        self.on(layer, "store")
            .and_then(|m| if let MediumSpec::Object(c) = &m.spec { Some(c.clone()) } else { None })
    }

    /// Returns the first medium that fills a role of a layer.
    #[must_use]
    pub fn on(&self, layer: &Layer, role: &str) -> Option<&StackMedium> {
        self.all_on(layer, role).first().copied()
    }

    /// Returns the media that fill a role of a layer, in the order of its list.
    #[must_use]
    pub fn all_on(&self, layer: &Layer, role: &str) -> Vec<&StackMedium> {
        let media = layer.on.iter().filter(|(r, _)| r.key == role).filter_map(|&(_, below)| match below {
            Below::Medium(i) => Some(&self.media[i]),
            Below::Layer(_) => None,
        });
        media.collect()
    }

    /// Turns an error of a layer or of a medium into a problem with a source location: that of the
    /// parameter in the layer's table, else in the table of a medium.
    pub(crate) fn locate(&self, layer: &Layer, error: Error) -> Problem {
        let name = &layer.name;
        let tables = self.root.table("media");
        let Error::Param { key, .. } = &error else {
            // Errors that are not about a parameter name the medium in their text.
            let text = error.to_string();
            let medium = self.media.iter().find(|m| m.used && text.contains(&format!("'{}'", m.name)));
            let at = medium.and_then(|m| tables?.table(&m.name)).map(|t| t.span.clone());
            return Problem::new(format!("`{name}`: {error}")).at(at, "this medium");
        };
        let Some(table) = self.root.table(name) else { return Problem::new(error.to_string()) };
        let names =
            |t: &Table, known: &[&str]| key.split(", ").any(|k| t.get(k).is_some() || known.contains(&k));
        if names(table, &layer.kind.keys()) {
            return param_problem(name, table, "", error);
        }
        let below =
            layer.on.iter().filter_map(|&(_, b)| if let Below::Medium(i) = b { Some(i) } else { None });
        for medium in below.map(|i| &self.media[i]) {
            let table = tables.and_then(|t| t.table(&medium.name));
            let known = crate::media::keys(Some(medium.spec.kind()));
            if let Some(table) = table.filter(|t| names(t, &known)) {
                return param_problem(&format!("media.{}", medium.name), table, "profile", error);
            }
        }
        Problem::new(format!("`{name}`: {error}")).at(Some(table.span.clone()), "this layer")
    }
}

fn composed<C: Composer + 'static>(composer: C) -> Box<dyn StackDevice> {
    Box::new(Composed::new(composer))
}

/// Requires a medium without which the layer cannot be built.
fn require_medium<M>(role: &str, medium: Option<M>) -> frit_core::Result<M> {
    medium.ok_or_else(|| Error::param(role, "", "is needed"))
}
