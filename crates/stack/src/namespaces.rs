//! Name spaces: ranges of a volume that clients see as devices of their own.

use crate::error::Problem;
use crate::layers::LayerKind;
use crate::stack::{Layer, Stack};
use crate::tree::{Entry, Table};
use frit_core::{Info, SECTOR_BYTES, size};
use std::ops::Range;

/// Key of the name spaces at the top of a stack file.
pub(crate) const KEY: &str = "namespace";

/// Keys of a name space.
const KEYS: [&str; 2] = ["name", "size"];

/// Maximum length of a name, in bytes. Names of exports can be longer, but not names in tables.
const NAME_BYTES_MAX: usize = 64;

/// A name space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Namespace {
    /// Name, by which clients select it.
    pub name: String,
    /// Bytes of the volume that it consists of.
    pub range: Range<u64>,
}

impl Namespace {
    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}

impl Stack {
    /// Returns the name spaces in the order of their addresses; empty if the volume is not divided.
    #[must_use]
    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// Returns the name spaces as a stack file has them.
    pub(crate) fn namespace_tables(&self) -> Vec<toml::Value> {
        let table = |n: &Namespace| {
            let mut table = toml::Table::new();
            table.insert("name".into(), n.name.clone().into());
            table.insert("size".into(), i64::try_from(n.bytes()).unwrap_or(i64::MAX).into());
            toml::Value::Table(table)
        };
        self.namespaces.iter().map(table).collect()
    }

    /// Checks that the name spaces fit into a built layer.
    pub(crate) fn check_namespaces(&self, info: &Info) -> Result<(), Box<Problem>> {
        let Some(last) = self.namespaces.last() else { return Ok(()) };
        let at = self.root.get(KEY).map(|entry| entry.span.clone());
        let (needed, capacity) = (last.range.end, info.sectors * SECTOR_BYTES);
        if needed > capacity {
            let problem =
                format!("the name spaces have {}, and the volume has {}", shown(needed), shown(capacity));
            let help = "make them smaller, or the media larger";
            return Err(Box::new(Problem::new(problem).at(at, "more than the volume").help(help)));
        }
        let page = u64::from(info.page_bytes);
        if let Some(odd) = self.namespaces.iter().find(|n| !n.bytes().is_multiple_of(page)) {
            let problem = format!("the name space '{}' ends inside a page of the volume", odd.name);
            let help = format!("sizes have to be multiples of {page} bytes");
            return Err(Box::new(Problem::new(problem).at(at, "its size").help(help)));
        }
        Ok(())
    }
}

fn shown(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", size::format(bytes))
}

/// Reads the name spaces of a file. They lie one after the other, from the start of the volume on.
pub(crate) fn read(root: &Table, problems: &mut Vec<Problem>) -> Vec<Namespace> {
    let Some(entry) = root.get(KEY) else { return Vec::new() };
    let value = entry.value.to_toml();
    let Some(tables) = value.as_array().and_then(|all| all.iter().map(|v| v.as_table()).collect()) else {
        problems.push(
            Problem::new(format!("`{KEY}` has to be a list of tables"))
                .at(Some(entry.value.span.clone()), "wrong kind of value")
                .help("write [[namespace]], and below name = \"a\" and size = \"1G\""),
        );
        return Vec::new();
    };
    let tables: Vec<&toml::Table> = tables;
    let (mut all, mut start) = (Vec::<Namespace>::new(), 0u64);
    for table in tables {
        match one(table, &all, start) {
            Ok(namespace) => {
                start = namespace.range.end;
                all.push(namespace);
            }
            Err((message, help)) => problems
                .push(Problem::new(message).at(Some(entry.span.clone()), "these name spaces").help(help)),
        }
    }
    all
}

/// Reads a name space that begins at `start`. An error is a message and a remedy.
fn one(table: &toml::Table, before: &[Namespace], start: u64) -> Result<Namespace, (String, String)> {
    if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err((format!("a name space has no key `{key}`"), "it has `name` and `size`".into()));
    }
    let letters = "a name has letters, digits, `-` and `_`, at most 64 of them".to_owned();
    let Some(name) = table.get("name").and_then(toml::Value::as_str) else {
        return Err(("a name space has no name".into(), letters));
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(plain) {
        return Err((format!("'{name}' cannot be the name of a name space"), letters));
    }
    if before.iter().any(|n| n.name == name) {
        return Err((format!("there are two name spaces '{name}'"), "give each another name".into()));
    }
    let example = "write a size such as \"1G\", or a number of bytes";
    let bytes = match table.get("size") {
        Some(toml::Value::String(text)) => size::parse(text).map_err(|why| (why, example.into())),
        Some(toml::Value::Integer(n)) if *n > 0 => Ok(n.unsigned_abs()),
        Some(other) => {
            Err((format!("the size of the name space '{name}' cannot be {other}"), example.into()))
        }
        None => Err((format!("the name space '{name}' has no size"), example.into())),
    }?;
    let end = start.checked_add(bytes).filter(|&end| i64::try_from(end).is_ok());
    if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
        let why = format!("the size of the name space '{name}' is not a multiple of {SECTOR_BYTES} bytes");
        return Err((why, example.into()));
    }
    let Some(end) = end else {
        return Err((format!("the name space '{name}' is too large"), example.into()));
    };
    Ok(Namespace { name: name.to_owned(), range: start..end })
}

/// Checks that the top layer can be divided. Devices with commands of their own have addresses that are not
/// those of the volume, so their commands would reach all name spaces.
pub(crate) fn check_layer(entry: Option<&Entry>, top: &Layer, problems: &mut Vec<Problem>) {
    let Some(entry) = entry else { return };
    if matches!(top.kind, LayerKind::Zns | LayerKind::Ssc | LayerKind::NamelessDevice) {
        problems.push(
            Problem::new(format!("a volume of `{}` cannot be divided into name spaces", top.kind.name()))
                .at(Some(entry.span.clone()), "name spaces")
                .help("its commands have addresses of their own; use a block device, such as ftl"),
        );
    }
}
