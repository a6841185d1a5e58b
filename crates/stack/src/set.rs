//! Overrides of a stack: `key=value`, the form of `--set`.

use crate::decode::nearest;
use crate::engine;
use crate::error::{Problem, TextSpan};
use crate::keys::{TOP_KEYS, layer_keys, layer_kind};
use crate::tree::{self, Data, Entry, Table, Value};
use crate::{media, namespaces};
use std::path::Path;
use std::sync::Arc;

/// Applies one override to the parsed file, before the file is checked.
pub(crate) fn apply(root: &mut Table, arg: &str, dir: &Path, problems: &mut Vec<Problem>) {
    let text = tree::text("--set", arg);
    let whole = TextSpan { text: Arc::clone(&text), start: 0, end: arg.len() };
    let Some((key, _)) = arg.split_once('=') else {
        problems.push(
            Problem::new(format!("--set {arg}: no `=`"))
                .at(Some(whole), "no value")
                .help("write key=value, such as hfsl.SSW=1024"),
        );
        return;
    };
    let value = tree::parse_value(&text, key.len() + 1);
    let span = TextSpan { end: key.len(), ..whole };
    match find(root, key.trim(), dir) {
        Ok(path) => put(root, &path, &span, value, problems),
        Err((message, help)) => {
            problems
                .push(Problem::new(format!("--set {arg}: {message}")).at(Some(span), "this key").help(help));
        }
    }
}

/// Returns the full path of a key. The prefix `media.` is optional. The key alone is enough if only
/// one table can have it.
fn find(root: &Table, key: &str, dir: &Path) -> Result<Vec<String>, (String, String)> {
    let mut path: Vec<String> = key.split('.').map(|s| s.trim().to_owned()).collect();
    if path.iter().any(String::is_empty) {
        return Err(("a key is missing".into(), "write key=value, such as hfsl.SSW=1024".into()));
    }
    if path.len() > 1 {
        let first = path[0].as_str();
        let is_medium = root.table("media").is_some_and(|m| m.get(first).is_some());
        if root.get(first).is_none() && !TOP_KEYS.contains(&first) && is_medium {
            path.insert(0, "media".into());
        }
        return Ok(path);
    }
    let all = paths(root, dir);
    // Keys at the top of the file have a path of one element.
    if key == "about" || key == namespaces::KEY || root.get(key).is_some() {
        return Ok(path);
    }
    let found: Vec<&Vec<String>> = all.iter().filter(|p| p.last().is_some_and(|k| k == key)).collect();
    match found[..] {
        [one] => Ok(one.clone()),
        [] if engine::has_key(key) => Ok(vec!["engine".into(), key.into()]),
        [] => {
            let help = nearest(key, all.iter().filter_map(|p| p.last()).map(String::as_str))
                .map_or("`frit layers` and `frit profiles` list the keys".into(), |k| {
                    format!("did you mean `{k}`?")
                });
            Err((format!("no table of the stack has a key `{key}`"), help))
        }
        _ => {
            let full: Vec<String> = found.iter().map(|p| p.join(".")).collect();
            Err((format!("`{key}` is a key of several tables"), format!("use {}", full.join(" or "))))
        }
    }
}

/// Returns the paths of all keys that the tables of the stack can have.
fn paths(root: &Table, dir: &Path) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for entry in root.table("media").map_or(&[][..], |m| &m.entries) {
        let Some(table) = entry.value.as_table() else { continue };
        let keys = media::keys(media::kind(table, dir));
        all.extend(keys.iter().map(|k| vec!["media".to_owned(), entry.key.clone(), (*k).to_owned()]));
    }
    for entry in root.entries.iter().filter(|e| !TOP_KEYS.contains(&e.key.as_str())) {
        let Some(kind) = entry.value.as_table().and_then(|t| layer_kind(&entry.key, t)) else { continue };
        all.extend(layer_keys(kind).iter().map(|k| vec![entry.key.clone(), (*k).to_owned()]));
    }
    for key in ["kind", "scheduler"] {
        all.push(vec!["engine".to_owned(), key.to_owned()]);
    }
    all
}

/// Sets a value and creates the tables on its path that do not exist.
fn put(table: &mut Table, path: &[String], span: &TextSpan, value: Value, problems: &mut Vec<Problem>) {
    let [key, rest @ ..] = path else { return };
    if table.get(key).is_none() {
        let new = Table { span: span.clone(), entries: Vec::new() };
        let value = Value { span: span.clone(), data: Data::Table(new) };
        table.entries.push(Entry { key: key.clone(), span: span.clone(), value });
    }
    let Some(entry) = table.get_mut(key) else { return };
    if rest.is_empty() {
        entry.value = value;
        // Errors about the new value point to the override, not to the file.
        entry.span = span.clone();
        return;
    }
    match &mut entry.value.data {
        Data::Table(inner) => put(inner, rest, span, value, problems),
        Data::Plain(_) => problems.push(
            Problem::new(format!("--set {}: `{key}` is not a table", span.text.inner()))
                .at(Some(span.clone()), "this key"),
        ),
    }
}
