//! Sizing of a stack for a volume of a given size.
//!
//! The capacity is passed down the tree. A layer over devices says how large they have to be
//! ([`Resizable`]), and a layer over its own media searches for their sizes by building itself
//! ([`LayerSearch`]). A disk gets its size.

use crate::error::{Result, StackError};
use crate::layers::{Interface, LayerConfig};
use crate::stack::{Below, Layer, Stack};
use frit_compose::sizing::{DeviceSizes, Resizable, StoreSize};
use frit_core::{Error, size};
use frit_media::MediumSpec;
use std::fmt::Display;

/// Sizes of disks are multiples of this: a cache ignores a remainder that does not fill one of its
/// blocks.
const DISK_STEP: u64 = 4096;

/// Rule by which the sizes below a layer follow from its capacity.
#[derive(Clone, Copy)]
pub(crate) enum SizeRule<'a> {
    /// A function of the capacity, for a layer over block devices.
    Devices(&'a dyn Resizable),
    /// A search that builds the layer over its media, and returns overrides.
    Media(fn(&LayerSearch<'_>, u64) -> Result<Vec<String>>),
}

/// Function that reads a stack with overrides added to those that the user gives.
type Load<'a> = &'a dyn Fn(&[String]) -> Result<Stack>;

/// Returns the stack with media of the sizes that a volume of `bytes`, above zero, needs. The volume
/// has at least this size, and at most what its layers round up. `load` reads the stack with overrides
/// added to the given ones.
///
/// # Errors
/// The stack is invalid, or cannot have this size: the problem at the line of the layer or medium
/// that limits it.
pub fn sized(bytes: u64, load: impl Fn(&[String]) -> Result<Stack>) -> Result<Stack> {
    let stack = load(&[])?;
    let mut sizing = Sizing { stack: &stack, load: &load, sets: Vec::new() };
    sizing.size_layer(0, bytes)?;
    let sets = sizing.sets;
    // The volume is built as a durable one, since records take space as well.
    let has = load(&[&sets[..], &stack.durable(true)].concat())?.layer_bytes(0)?;
    if has < bytes {
        let why = format!("a volume of {bytes} bytes cannot be made: {has} is the next size below");
        return Err(problem(&stack, stack.layer(), Error::param("size", size::format(bytes), why)));
    }
    load(&sets)
}

/// Locates an error of a layer.
fn problem(stack: &Stack, layer: &Layer, error: Error) -> StackError {
    StackError::new(stack.name(), vec![stack.locate(layer, error)])
}

struct Sizing<'a> {
    /// The stack before its sizes change.
    stack: &'a Stack,
    load: Load<'a>,
    /// Overrides of the layers and media that have their sizes.
    sets: Vec<String>,
}

impl Sizing<'_> {
    /// Adds the overrides with which a layer offers `bytes`.
    fn size_layer(&mut self, index: usize, bytes: u64) -> Result<()> {
        let (stack, layer) = (self.stack, &self.stack.layers()[index]);
        match layer.config.size_rule() {
            SizeRule::Media(search) => {
                let sets = search(&LayerSearch { stack, load: self.load, index }, bytes)?;
                self.sets.extend(sets);
                Ok(())
            }
            SizeRule::Devices(rule) => {
                let now = present_sizes(stack, layer)?;
                let sizes = rule.sizes_for(&now, bytes).map_err(|e| problem(stack, layer, e))?;
                self.sets.extend(sizes.own.map(|own| format!("{}.size={own}", layer.name)));
                if let (Some(store), Some(medium)) = (sizes.store, stack.on(layer, "store")) {
                    self.sets.push(format!("media.{}.objects={}", medium.name, store.objects));
                }
                devices(layer)
                    .zip(sizes.devices)
                    .try_for_each(|(below, bytes)| self.size_device(below, bytes))
            }
        }
    }

    fn size_device(&mut self, below: Below, bytes: u64) -> Result<()> {
        match below {
            Below::Layer(index) => self.size_layer(index, bytes),
            Below::Medium(index) => {
                let name = &self.stack.media()[index].name;
                self.sets.push(format!("media.{name}.bytes={}", bytes.next_multiple_of(DISK_STEP)));
                Ok(())
            }
        }
    }
}

/// Returns the block devices of a layer, in the order of its roles and lists.
fn devices(layer: &Layer) -> impl Iterator<Item = Below> {
    layer.on.iter().filter(|(role, _)| role.needs == Interface::Block).map(|&(_, below)| below)
}

/// Returns the present sizes below a layer.
fn present_sizes(stack: &Stack, layer: &Layer) -> Result<DeviceSizes> {
    let bytes = |below| match below {
        Below::Layer(index) => stack.layer_bytes(index),
        Below::Medium(index) => Ok(match &stack.media()[index].spec {
            MediumSpec::Disk(disk) => disk.bytes,
            _ => 0,
        }),
    };
    let store = stack
        .object_store(layer)
        .map(|c| StoreSize { object_bytes: c.object_bytes, objects: u64::from(c.objects) });
    Ok(DeviceSizes { devices: devices(layer).map(bytes).collect::<Result<_>>()?, store, own: None })
}

/// Search for the sizes of the media of one layer.
pub(crate) struct LayerSearch<'a> {
    stack: &'a Stack,
    load: Load<'a>,
    index: usize,
}

impl<'a> LayerSearch<'a> {
    fn layer(&self) -> &'a Layer {
        &self.stack.layers()[self.index]
    }

    /// Returns the name of the layer.
    pub(crate) fn name(&self) -> &'a str {
        &self.layer().name
    }

    /// Returns the configuration of the layer.
    pub(crate) fn config(&self) -> &'a LayerConfig {
        &self.layer().config
    }

    /// Returns the stack before its sizes change.
    pub(crate) fn stack(&self) -> &'a Stack {
        self.stack
    }

    /// Returns the names of the media in a role of the layer, with a part of their descriptions.
    pub(crate) fn media<T>(&self, role: &str, part: impl Fn(&MediumSpec) -> Option<T>) -> Vec<(&'a str, T)> {
        let media = self.stack.all_on(self.layer(), role).into_iter();
        media.filter_map(|m| Some((m.name.as_str(), part(&m.spec)?))).collect()
    }

    /// Returns the capacity of the layer with overrides, as a durable volume has it.
    pub(crate) fn capacity(&self, sets: &[String]) -> Result<u64> {
        (self.load)(&[sets, &self.layer().durable(true)].concat())?.layer_bytes(self.index)
    }

    /// Returns the error of a value that does not allow the capacity.
    pub(crate) fn refused(&self, key: &str, value: impl Display, why: &str) -> StackError {
        problem(self.stack, self.layer(), Error::param(key, value, why))
    }
}
