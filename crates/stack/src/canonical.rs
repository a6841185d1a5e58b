//! Canonical text of a stack, independent of the form of its file, and the hash of that text.
//! Reports carry both.

use crate::layers::{LayerConfig, LayerKind};
use crate::namespaces;
use crate::stack::{Layer, Stack};
use crate::tree::Table;
use frit_core::size;
use frit_engine::Scheduler;
use sha2::{Digest, Sha256};

/// Identity of a stack: name, canonical text and hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackIdentity {
    /// Name of the stack.
    pub name: String,
    /// An equivalent stack file: every value of every medium that is used, the parameters of each
    /// layer that differ from their defaults, and the engine with all of its parameters; in a fixed
    /// order, without comments.
    pub text: String,
    /// SHA-256 of the text, in hexadecimal digits.
    pub sha256: String,
}

impl Stack {
    /// Returns the identity of the stack, for reports. It is the same for files with the same
    /// meaning.
    #[must_use]
    pub fn identity(&self) -> StackIdentity {
        let mut root = toml::Table::new();
        let mut media = toml::Table::new();
        for m in self.media.iter().filter(|m| m.used) {
            if let Ok(table) = toml::Table::try_from(&m.complete) {
                media.insert(m.name.clone(), table.into());
            }
        }
        root.insert("media".into(), media.into());
        for layer in &self.layers {
            root.insert(layer.name.clone(), self.layer_table(layer).into());
        }
        root.insert("engine".into(), self.engine_table().into());
        if !self.namespaces.is_empty() {
            root.insert(namespaces::KEY.into(), self.namespace_tables().into());
        }
        let text = root.to_string();
        let sha256 = Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
        StackIdentity { name: self.name.clone(), text, sha256 }
    }

    fn layer_table(&self, layer: &Layer) -> toml::Table {
        let mut table = toml::Table::new();
        table.insert("kind".into(), layer.kind.name().into());
        for &(role, below) in &layer.on {
            let name = toml::Value::from(self.name_of(below));
            let filled = layer.on.iter().filter(|(r, _)| r.key == role.key).count();
            // A list of one name is the same as the name.
            if filled == 1 && role.names.takes_one() {
                table.insert(role.key.into(), name);
            } else if let toml::Value::Array(names) =
                table.entry(role.key).or_insert(toml::Value::Array(Vec::new()))
            {
                names.push(name);
            }
        }
        let given = self.root.table(&layer.name).map(|t| layer_params(t, layer.kind)).unwrap_or_default();
        let reads = |t: &toml::Table| layer.kind.decode_checked(t);
        for key in given.keys() {
            let mut without = given.clone();
            without.remove(key);
            // A parameter without effect on the configuration is a default, and is omitted.
            if reads(&without).as_ref() == Some(&layer.config) {
                continue;
            }
            table.insert(key.clone(), canonical_size(&given, key, &layer.config, reads));
        }
        table
    }

    fn engine_table(&self) -> toml::Table {
        let kind: &str = self.engine.kind.into();
        let mut table = toml::Table::new();
        table.insert("kind".into(), kind.into());
        table.insert("scheduler".into(), self.engine.scheduler_name().into());
        for p in self.engine.scheduler.clone().params().list() {
            table.insert(p.key.into_owned(), p.value.into());
        }
        table
    }
}

/// Returns the parameters of the layer that its table gives, without roles and `kind`.
fn layer_params(table: &Table, kind: LayerKind) -> toml::Table {
    let keys = kind.keys();
    let layer_entries = table.entries.iter().filter(|e| keys.contains(&e.key.as_str()));
    layer_entries.map(|e| (e.key.clone(), e.value.to_toml())).collect()
}

/// Returns a size as a number of bytes if the configuration stays the same, else the value as
/// given.
fn canonical_size(
    given: &toml::Table,
    key: &str,
    config: &LayerConfig,
    reads: impl Fn(&toml::Table) -> Option<LayerConfig>,
) -> toml::Value {
    let value = given[key].clone();
    let bytes = value.as_str().and_then(|s| size::parse(s).ok()).and_then(|n| i64::try_from(n).ok());
    let Some(bytes) = bytes else { return value };
    let mut with = given.clone();
    with.insert(key.into(), bytes.into());
    if reads(&with).as_ref() == Some(config) { bytes.into() } else { value }
}
