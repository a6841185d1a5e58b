//! The files of the recordings that a stack asks for.

use crate::error::Problem;
use crate::layers::LayerConfig;
use crate::stack::{Layer, Stack};
use crate::tree::Table;
use std::path::{Component, PathBuf};

impl Stack {
    /// Returns the files of the layers that record requests, relative to the working directory.
    #[must_use]
    pub fn record_files(&self) -> Vec<&str> {
        self.layers.iter().filter_map(file).collect()
    }
}

fn file(layer: &Layer) -> Option<&str> {
    if let LayerConfig::Record(config) = &layer.config { Some(&config.file) } else { None }
}

/// Checks that each layer that records has a file, and no two the same one.
pub(crate) fn check(layers: &[Layer], root: &Table, problems: &mut Vec<Problem>) {
    let mut seen: Vec<(PathBuf, &str)> = Vec::new();
    for layer in layers {
        let Some(given) = file(layer) else { continue };
        if given.is_empty() {
            let at = root.table(&layer.name).map(|t| t.span.clone());
            let problem = Problem::new(format!("`{}` has no file", layer.name)).at(at, "this layer");
            problems.push(problem.help("name it: `file = \"requests.csv.zst\"`"));
            continue;
        }
        let path = normal(given);
        if let Some((_, first)) = seen.iter().find(|(p, _)| *p == path) {
            let at = root.table(&layer.name).and_then(|t| t.get("file")).map(|e| e.value.span.clone());
            let message = format!("`{}.file` is also the file of `{first}`", layer.name);
            problems.push(Problem::new(message).at(at, "the same file").help("give each recording a file"));
        }
        seen.push((path, &layer.name));
    }
}

/// Returns a path without components that have no effect.
fn normal(path: &str) -> PathBuf {
    PathBuf::from(path).components().filter(|c| *c != Component::CurDir).collect()
}
