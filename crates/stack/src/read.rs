//! Reading of a stack from text. All errors are collected and reported at once.

use crate::decode::{nearest, suggest, unknown_key};
use crate::engine::{EngineConfig, EngineKind};
use crate::error::{Problem, Result, StackError};
use crate::keys::{TOP_KEYS, layer_keys, layer_kind};
use crate::layers::{LayerConfig, LayerKind};
use crate::media::{self, StackMedium};
use crate::order;
use crate::roles::{self, LayerTable, NO_MEDIUM};
use crate::stack::{Below, Layer, Stack};
use crate::tree::{self, Entry, Table};
use crate::{arrays, engine, namespaces, recordings, set};
use frit_engine::Scheduler;
use frit_media::{MediumSpec, PlaneOps};
use std::path::Path;
use strum::VariantNames;

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
        check_nand(&root, &media, engine, &mut problems);
    }
    let namespaces = namespaces::read(&root, &mut problems);
    let tables = layer_tables(&root, &mut problems);
    let mut configs = Vec::new();
    for layer in &tables {
        let path = &layer.entry.key;
        let config = layer.kind.decode(path, layer.table, &mut problems);
        check_layer_keys(layer, &mut problems);
        if let Some(config) = &config {
            warnings.extend(keys_without_effect(path, layer.table, config));
        }
        configs.push(config);
    }
    // Roles are read only if all media are valid: otherwise each broken medium would also be
    // reported as a missing one.
    let filled = if complete { roles::read(&tables, &mut media, &mut problems) } else { None };
    let layers = filled.and_then(|filled| {
        let order = order::top_first(&tables, &filled, &mut problems)?;
        let configs: Option<Vec<LayerConfig>> = configs.into_iter().collect();
        let (configs, place) = (configs?, |i: usize| order.iter().position(|&o| o == i).unwrap_or(0));
        let layer = |&i: &usize| Layer {
            name: tables[i].entry.key.clone(),
            kind: tables[i].kind,
            config: configs[i].clone(),
            on: filled[i]
                .iter()
                .map(|&(role, below)| match below {
                    Below::Layer(i) => (role, Below::Layer(place(i))),
                    medium @ Below::Medium(_) => (role, medium),
                })
                .collect(),
        };
        Some(order.iter().map(layer).collect::<Vec<_>>())
    });
    if let Some(layers) = &layers {
        recordings::check(layers, &root, &mut problems);
        arrays::check(layers, &media, &root, &mut problems);
        namespaces::check_layer(root.get(namespaces::KEY), &layers[0], &mut problems);
    }
    match (problems.is_empty(), layers, engine) {
        (true, Some(layers), Some(engine)) => {
            warnings.extend(unused_media(&media, &root));
            let (name, dir) = (name.into(), dir.into());
            Ok(Stack { name, about, media, layers, engine, namespaces, warnings, root, dir })
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
fn check_nand(root: &Table, media: &[StackMedium], engine: &EngineConfig, problems: &mut Vec<Problem>) {
    let has_chips = engine.scheduler.chips().is_some();
    for medium in media {
        let MediumSpec::Nand(nand) = &medium.spec else { continue };
        let table = root.get("media").and_then(|m| m.value.as_table()?.get(&medium.name)?.value.as_table());
        let at = |key| table.and_then(|t| t.get(key)).map(|e| e.span.clone());
        let is_multi = nand.geometry.plane_ops == PlaneOps::Multi;
        if is_multi && engine.kind == EngineKind::Event && !has_chips {
            problems.push(
                Problem::new(format!(
                    "the scheduler '{}' cannot execute the multi-plane commands of `media.{}`",
                    engine.scheduler_name(),
                    medium.name
                ))
                .at(at("plane_ops"), "`multi`")
                .help(
                    "use `engine.kind = \"in-order\"`, `engine.scheduler = \"out-of-order\"`, or \
                     `plane_ops = \"independent\"`",
                ),
            );
        }
        if has_chips && nand.cells.as_ref().is_some_and(|c| c.suspend.is_some()) {
            problems.push(
                Problem::new(format!(
                    "the scheduler 'out-of-order' suspends no operation, but `media.{}` has suspensions",
                    medium.name
                ))
                .at(at("suspend"), "suspensions")
                .help("use `engine.scheduler = \"read-first\"`, or `suspend = \"none\"`"),
            );
        }
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

/// Returns the tables that are layers.
fn layer_tables<'a>(root: &'a Table, problems: &mut Vec<Problem>) -> Vec<LayerTable<'a>> {
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
            Some(kind) => layers.push(LayerTable { entry, table, kind }),
            None => problems.push(unknown_layer(entry, table)),
        }
    }
    let kinds = LayerKind::VARIANTS.join(", ");
    if tables == 0 {
        let help = format!("add the table of a layer, such as [hfsl]; there are {kinds}");
        problems.push(Problem::new("the stack has no layer").help(help));
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
            known.extend(["media", "engine", namespaces::KEY]);
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

fn check_layer_keys(layer: &LayerTable<'_>, problems: &mut Vec<Problem>) {
    let known = layer_keys(layer.kind);
    for e in layer.table.entries.iter().filter(|e| !known.contains(&e.key.as_str())) {
        problems.push(unknown_key(&layer.entry.key, e, &known));
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
