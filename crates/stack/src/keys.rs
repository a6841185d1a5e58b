//! Keys of the tables of a stack file.

use crate::layers::LayerKind;
use crate::namespaces;
use crate::tree::Table;

/// Keys at the top of a file that are not layers.
pub(crate) const TOP_KEYS: [&str; 4] = ["about", "media", "engine", namespaces::KEY];

/// Returns the kind of the layer that a table describes, given by its `kind` or else by its name.
pub(crate) fn layer_kind(name: &str, table: &Table) -> Option<LayerKind> {
    table.text("kind").unwrap_or(name).parse().ok()
}

/// Returns all keys that the table of a layer can have.
pub(crate) fn layer_keys(kind: LayerKind) -> Vec<&'static str> {
    let roles = kind.roles().iter().map(|r| r.key);
    kind.keys().into_iter().chain(roles).chain(["kind"]).collect()
}
