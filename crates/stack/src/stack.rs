//! A checked stack that can be built.

use crate::engine::EngineConfig;
use crate::error::Problem;
use crate::layers::{LayerConfig, LayerKind, RequiredSetting, Role};
use crate::media::StackMedium;
use crate::namespaces::Namespace;
use crate::tree::Table;
use std::path::PathBuf;

/// What fills a role of a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Below {
    /// A medium, by its index in [`Stack::media`].
    Medium(usize),
    /// A layer, by its index in [`Stack::layers`].
    Layer(usize),
}

/// A layer of a stack.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Name of the layer: that of its table.
    pub name: String,
    /// The kind of the layer.
    pub kind: LayerKind,
    /// Parameters of the layer.
    pub config: LayerConfig,
    /// What is below the layer: each role that is filled, once for each name.
    pub on: Vec<(&'static Role, Below)>,
}

impl Layer {
    /// Returns the overrides, each `key=value`, that make the layer durable. With `over_files` it
    /// is also durable after a power loss of the machine, with media in files.
    #[must_use]
    pub fn durable(&self, over_files: bool) -> Vec<String> {
        let needs = self.kind.durability();
        let files = if over_files { needs.over_files } else { &[] };
        let set = |s: &RequiredSetting| format!("{}.{}={}", self.name, s.key, s.value);
        needs.each_request.iter().chain(files).map(set).collect()
    }
}

/// A stack as its file describes it, checked as a whole.
#[derive(Clone, Debug)]
pub struct Stack {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) media: Vec<StackMedium>,
    /// The layers, an upper one before those below it.
    pub(crate) layers: Vec<Layer>,
    pub(crate) engine: EngineConfig,
    /// Name spaces, in the order of their addresses.
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) warnings: Vec<Problem>,
    /// Parsed file with source locations, for errors that only the layer can detect.
    pub(crate) root: Table,
    /// Base directory of the paths of profiles.
    pub(crate) dir: PathBuf,
}

impl Stack {
    /// Returns the same stack under another name, for example that of a variant.
    #[must_use]
    pub fn named(self, name: &str) -> Stack {
        Stack { name: name.into(), ..self }
    }

    /// Returns the name of the stack: the file's, or the builtin's.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description that the file gives; it may be empty.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Returns the media, in the order of the file.
    #[must_use]
    pub fn media(&self) -> &[StackMedium] {
        &self.media
    }

    /// Returns the top layer.
    #[must_use]
    pub fn layer(&self) -> &Layer {
        &self.layers[0]
    }

    /// Returns the layers, each before those below it: the top layer is the first.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns the name of what fills a role.
    #[must_use]
    pub fn name_of(&self, below: Below) -> &str {
        match below {
            Below::Medium(i) => &self.media[i].name,
            Below::Layer(i) => &self.layers[i].name,
        }
    }

    /// Returns the overrides, each `key=value`, that make all layers durable: see
    /// [`Layer::durable`].
    #[must_use]
    pub fn durable(&self, over_files: bool) -> Vec<String> {
        self.layers.iter().flat_map(|layer| layer.durable(over_files)).collect()
    }

    /// Returns what the stack needs in addition to be durable, and how to add it.
    #[must_use]
    pub fn missing_for_durability(&self) -> Option<String> {
        let lacks = |l: &&Layer| matches!(l.config, LayerConfig::Hfsl(_)) && self.on(l, "pcm").is_none();
        let name = &self.layers.iter().find(lacks)?.name;
        Some(format!(
            "durable memory for the map, and the layer `{name}` of the stack '{}' has none. Add a PCM, for \
             example\n\n  [media.{name}-pcm]\n  profile = \"pcm-p8p-2016\"\n\nand `pcm = \"{name}-pcm\"` in \
             `[{name}]`",
            self.name
        ))
    }

    /// Returns the engine, which models the time of commands.
    #[must_use]
    pub fn engine_config(&self) -> &EngineConfig {
        &self.engine
    }

    /// Returns the warnings: problems that do not prevent the use of the stack.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }
}
