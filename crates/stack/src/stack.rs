//! A stack: checked, and ready to be built.

use crate::engine::EngineConfig;
use crate::error::{Problem, Result, StackError};
use crate::layers::{Kind, LayerConfig, Role, Setting};
use crate::media::Medium;
use crate::tree::Table;
use crate::{builtin, read};
use frit_core::files::{self, TEXT_BYTES_MAX};
use std::path::{Path, PathBuf};

/// A layer of a stack.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Its name: that of its table.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its parameters.
    pub config: LayerConfig,
    /// What it lies on: each role that is filled, with the index of the medium.
    pub on: Vec<(&'static Role, usize)>,
}

impl Layer {
    /// Overrides, `key=value` each, with which it is durable: with `over_files` also when the machine stops
    /// under media in files.
    #[must_use]
    pub fn durable(&self, over_files: bool) -> Vec<String> {
        let needs = self.kind.durability();
        let files = if over_files { needs.over_files } else { &[] };
        let set = |s: &Setting| format!("{}.{}={}", self.name, s.key, s.value);
        needs.each_request.iter().chain(files).map(set).collect()
    }
}

/// A stack as a file describes it, checked as a whole.
#[derive(Clone, Debug)]
pub struct Stack {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) media: Vec<Medium>,
    pub(crate) layer: Layer,
    pub(crate) engine: EngineConfig,
    pub(crate) warnings: Vec<Problem>,
    /// What was read, with its places, for what only the layer finds out.
    pub(crate) root: Table,
    /// Where the paths of profiles start.
    pub(crate) dir: PathBuf,
}

impl Stack {
    /// Reads a stack from a file, or a builtin one: `name` is that of a builtin when it has neither a
    /// directory nor an extension and is no file. `sets` are overrides, `key=value` each.
    ///
    /// # Errors
    /// A file that cannot be read, and all that is wrong with what it says.
    pub fn load(name: impl AsRef<Path>, sets: &[String]) -> Result<Stack> {
        let path = name.as_ref();
        let shown = path.display().to_string();
        if path.extension().is_none() && path.components().count() == 1 && !path.is_file() {
            return Stack::builtin(&shown, sets);
        }
        let text = files::read_text(path, TEXT_BYTES_MAX).map_err(|e| {
            let hint = "a builtin stack has a name without directory and extension; `frit check` without one lists them";
            StackError::new(
                &shown,
                vec![Problem::new(format!("cannot read the stack {shown}: {e}")).help(hint)],
            )
        })?;
        let dir = path.parent().unwrap_or(Path::new(""));
        read::read(&shown, &text, sets, dir)
    }

    /// Reads a stack from a text; `name` is what errors call it. Paths of profiles start at the current
    /// directory.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(name: &str, text: &str, sets: &[String]) -> Result<Stack> {
        read::read(name, text, sets, Path::new(""))
    }

    /// A stack that comes with frit; see [`builtins`](crate::builtins).
    ///
    /// # Errors
    /// A name that none has, and overrides that cannot be.
    pub fn builtin(name: &str, sets: &[String]) -> Result<Stack> {
        read::read(name, builtin::text(name)?, sets, Path::new(""))
    }

    /// The same under another name: that of a variant, say.
    #[must_use]
    pub fn named(self, name: &str) -> Stack {
        Stack { name: name.into(), ..self }
    }

    /// Its name: the file's, or the builtin's.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its file says that it is; may be empty.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Its media, in the order of the file.
    #[must_use]
    pub fn media(&self) -> &[Medium] {
        &self.media
    }

    /// The layer on top.
    #[must_use]
    pub fn layer(&self) -> &Layer {
        &self.layer
    }

    /// What commands mean in time.
    #[must_use]
    pub fn engine_config(&self) -> &EngineConfig {
        &self.engine
    }

    /// What is odd, and yet can be.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }
}
