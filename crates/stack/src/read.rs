//! Reading of a stack from text. All errors are collected and reported at once.

use crate::decode::{nearest, suggest, unknown_key};
use crate::engine::{EngineConfig, EngineKind};
use crate::error::{Problem, Result, StackError};
use crate::keys::{TOP_KEYS, layer_keys, layer_kind};
use crate::layers::{LayerConfig, LayerKind};
use crate::media::{self, StackMedium};
use crate::roles::{self, NO_MEDIUM};
use crate::stack::{Layer, Stack};
use crate::tree::{self, Entry, Table};
use crate::{engine, set};
use frit_media::{MediumSpec, PlaneOps};
use std::path::Path;
use strum::VariantNames;

/// Maximum number of layers that an error names.
const NAMES_MAX: usize = 8;

pub(crate) fn read(name: &str, content: &str, sets: &[String], dir: &Path) -> Result<Stack> {
    let mut problems = Vec::new();
    let text = tree::text(name, content);
    if let Some(problem) = tree::control_character(&text) {
        return Err(StackError::new(name, vec![problem]));
    }
    let mut root = tree::parse(&text, &mut problems);
    if problems.is_empty() {
        for arg in sets {
            set::apply(&mut root, arg, dir, &mut problems);
        }
    }
    // The tree of a file with syntax errors is incomplete; checking it would report follow-up
    // errors.
    if !problems.is_empty() {
        return Err(StackError::new(name, problems));
    }
    let about = read_about(&root, &mut problems);
    let (mut media, complete) = read_media(&root, dir, &mut problems);
    let mut warnings = Vec::new();
    let engine = read_engine(&root, &mut problems, &mut warnings);
    if let Some(engine) = &engine {
        check_planes(&root, &media, engine, &mut problems);
    }
    let tables = layer_tables(&root, &mut problems);
    let mut layers: Vec<Layer> = Vec::new();
    for (entry, table, kind) in tables {
        let config = kind.decode(&entry.key, table, &mut problems);
        check_layer_keys(entry, table, kind, &mut problems);
        // Roles are read only if all media are valid: otherwise each broken medium would also be
        // reported as a missing one.
        let on =
            if complete { roles::read(&entry.key, table, kind, &mut media, &mut problems) } else { None };
        if let Some(config) = &config {
            warnings.extend(keys_without_effect(&entry.key, table, config));
        }
        if let (Some(config), Some(on)) = (config, on) {
            layers.push(Layer { name: entry.key.clone(), kind, config, on });
        }
    }
    match (problems.is_empty(), layers.pop(), engine) {
        (true, Some(layer), Some(engine)) => {
            warnings.extend(unused_media(&media, &root));
            Ok(Stack { name: name.into(), about, media, layer, engine, warnings, root, dir: dir.into() })
        }
        _ => {
            problems.sort_by_key(|p| p.sort_key(name));
            Err(StackError::new(name, problems))
        }
    }
}

fn read_about(root: &Table, problems: &mut Vec<Problem>) -> String {
    let Some(entry) = root.get("about") else { return String::new() };
    if let Some(text) = entry.value.as_str() {
        return text.to_owned();
    }
    let at = Some(entry.value.span.clone());
    problems.push(Problem::new("`about` has to be a string").at(at, "wrong kind of value"));
    String::new()
}

/// Reads the media. Also returns `true` if all of them are valid.
fn read_media(root: &Table, dir: &Path, problems: &mut Vec<Problem>) -> (Vec<StackMedium>, bool) {
    let before = problems.len();
    let mut media = Vec::new();
    let Some(entry) = root.get("media") else { return (media, true) };
    let Some(table) = as_table(entry, "media", problems) else { return (media, false) };
    for entry in &table.entries {
        let path = format!("media.{}", entry.key);
        check_name(entry, problems);
        let Some(table) = as_table(entry, &path, problems) else { continue };
        media.extend(media::read(&path, &entry.key, table, dir, problems));
    }
    (media, problems.len() == before)
}

fn read_engine(
    root: &Table,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) -> Option<EngineConfig> {
    match root.get("engine") {
        None => Some(EngineConfig::default()),
        Some(entry) => engine::read(as_table(entry, "engine", problems)?, problems, warnings),
    }
}

/// Checks that the engine can simulate the media.
fn check_planes(root: &Table, media: &[StackMedium], engine: &EngineConfig, problems: &mut Vec<Problem>) {
    let is_multi = |m: &&StackMedium| matches!(&m.spec, MediumSpec::Nand(nand) if nand.geometry.plane_ops == PlaneOps::Multi);
    if engine.kind == EngineKind::InOrder {
        return;
    }
    for medium in media.iter().filter(is_multi) {
        let table = root.get("media").and_then(|m| m.value.as_table()?.get(&medium.name)?.value.as_table());
        let at = table.and_then(|t| t.get("plane_ops")).map(|e| e.span.clone());
        problems.push(
            Problem::new(format!(
                "the event engine cannot simulate the multi-plane commands of `media.{}`",
                medium.name
            ))
            .at(at, "`multi`")
            .help("use `engine.kind = \"in-order\"`, or `plane_ops = \"independent\"`"),
        );
    }
}

fn as_table<'a>(entry: &'a Entry, path: &str, problems: &mut Vec<Problem>) -> Option<&'a Table> {
    let table = entry.value.as_table();
    if table.is_none() {
        problems.push(
            Problem::new(format!("`{path}` has to be a table"))
                .at(Some(entry.value.span.clone()), "not a table")
                .help(format!("write [{path}], and its keys below")),
        );
    }
    table
}

/// Checks the name of a medium or layer. Names occur in paths of `--set` and in file names, so only
/// safe characters are allowed.
fn check_name(entry: &Entry, problems: &mut Vec<Problem>) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if entry.key.is_empty() || !entry.key.chars().all(plain) || entry.key == NO_MEDIUM {
        problems.push(
            Problem::new(format!("'{}' cannot be the name of a medium or a layer", entry.key))
                .at(Some(entry.span.clone()), "this name")
                .help("use letters, digits, `-` and `_`, and not the word `none`"),
        );
    }
}

/// Returns the tables that are layers, and checks that there is exactly one, to which requests go.
fn layer_tables<'a>(root: &'a Table, problems: &mut Vec<Problem>) -> Vec<(&'a Entry, &'a Table, LayerKind)> {
    let mut layers = Vec::new();
    let mut tables = 0;
    for entry in root.entries.iter().filter(|e| !TOP_KEYS.contains(&e.key.as_str())) {
        tables += 1;
        if entry.value.as_table().is_none() && entry.key.parse::<LayerKind>().is_err() {
            problems.push(unknown_top_key(entry));
            continue;
        }
        let Some(table) = as_table(entry, &entry.key, problems) else { continue };
        check_name(entry, problems);
        match layer_kind(&entry.key, table) {
            Some(kind) => layers.push((entry, table, kind)),
            None => problems.push(unknown_layer(entry, table)),
        }
    }
    let kinds = LayerKind::VARIANTS.join(", ");
    if tables == 0 {
        let help = format!("add the table of a layer, such as [hfsl]; there are {kinds}");
        problems.push(Problem::new("the stack has no layer").help(help));
    }
    if let [_, (_, table, _), ..] = layers[..] {
        let names: Vec<&str> = layers.iter().take(NAMES_MAX).map(|(e, ..)| e.key.as_str()).collect();
        let others: Vec<String> = names.iter().skip(1).map(|name| format!("[{name}]")).collect();
        problems.push(
            Problem::new(format!("{} are all top layers: requests go to one layer", names.join(" and ")))
                .at(Some(table.span.clone()), "another layer")
                .help(format!("a stack has one layer; remove {}", others.join(" and "))),
        );
    }
    layers
}

fn unknown_top_key(entry: &Entry) -> Problem {
    let known: Vec<&str> = TOP_KEYS.iter().chain(LayerKind::VARIANTS).copied().collect();
    let owners: Vec<String> = LayerKind::all()
        .iter()
        .filter(|k| k.keys().contains(&entry.key.as_str()))
        .map(|k| format!("it is a key of [{}]", k.name()))
        .collect();
    let help = if owners.is_empty() { suggest(&entry.key, &known) } else { owners.join(", ") };
    Problem::new(format!("`{}` is not a key of a stack", entry.key))
        .at(Some(entry.span.clone()), "unknown key")
        .help(help)
}

fn unknown_layer(entry: &Entry, table: &Table) -> Problem {
    let mut known: Vec<&str> = LayerKind::VARIANTS.to_vec();
    let (named, span) = match table.get("kind") {
        Some(kind) => (kind.value.as_str().unwrap_or_default(), kind.value.span.clone()),
        None => {
            // Tables that are not layers. They are not values of `kind`.
            known.extend(["media", "engine"]);
            (entry.key.as_str(), entry.span.clone())
        }
    };
    let help = match nearest(named, known) {
        Some(k) => format!("did you mean `{k}`?"),
        None => format!(
            "a table is `media`, `engine` or a layer, whose name or `kind` is one of {}",
            LayerKind::VARIANTS.join(", ")
        ),
    };
    Problem::new(format!("there is no layer '{named}'")).at(Some(span), "unknown layer").help(help)
}

fn check_layer_keys(entry: &Entry, table: &Table, kind: LayerKind, problems: &mut Vec<Problem>) {
    let known = layer_keys(kind);
    for e in table.entries.iter().filter(|e| !known.contains(&e.key.as_str())) {
        problems.push(unknown_key(&entry.key, e, &known));
    }
}

fn keys_without_effect(path: &str, table: &Table, config: &LayerConfig) -> Vec<Problem> {
    let given = config.unused().into_iter().filter_map(|(key, why)| Some((table.get(key)?, why)));
    given
        .map(|(entry, why)| {
            Problem::warning(format!("`{path}.{}` has no effect: {why}", entry.key))
                .at(Some(entry.span.clone()), "no effect")
        })
        .collect()
}

fn unused_media(media: &[StackMedium], root: &Table) -> Vec<Problem> {
    let span = |name: &str| Some(root.table("media")?.get(name)?.span.clone());
    media
        .iter()
        .filter(|m| !m.used)
        .map(|m| {
            Problem::warning(format!("no layer uses the medium '{}': it is not built", m.name))
                .at(span(&m.name), "unused")
        })
        .collect()
}
