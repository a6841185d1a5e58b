//! What a start may find: the state before the operation that was cut off, or the one behind it. Only the contents of
//! a file that is being written may be between: each aligned word old or new.

use super::super::compare::{Node, Tree};
use super::super::op::Act;
use super::recorded::WORD;
use frit_fs::Kind;
use std::collections::BTreeMap;

/// Bytes of a page of a [`Node`].
const PAGE: u64 = 4096;

/// Whether an operation changes bytes of a file where they are.
pub(super) fn in_place(act: &Act) -> bool {
    matches!(act, Act::Write { .. } | Act::Append { .. } | Act::Allocate { .. })
}

/// Whether a tree may be found when `act` was cut off between `before` and `after`.
pub(super) fn allowed(found: &Tree, before: &Tree, after: Option<(&Tree, &Act)>) -> Result<(), String> {
    let Some(difference) = before.difference(found) else { return Ok(()) };
    let Some((after, act)) = after else { return Err(format!("from what had returned: {difference}")) };
    let Some(other) = after.difference(found) else { return Ok(()) };
    if in_place(act) && between(found, before, after) {
        return Ok(());
    }
    Err(format!("from the state before: {difference}; from the state after: {other}"))
}

/// The same where contents are outside of the medium: names and attributes are as before or as after, and so are the
/// contents of each file by itself.
pub(super) fn allowed_outside(
    found: &Tree,
    before: &Tree,
    after: Option<(&Tree, &Act)>,
) -> Result<(), String> {
    let Some(difference) = before.difference(found) else { return Ok(()) };
    let Some((after, _)) = after else { return Err(format!("from what had returned: {difference}")) };
    let Some(other) = after.difference(found) else { return Ok(()) };
    let bare = |tree: &Tree| {
        let mut bare = tree.clone();
        for node in bare.0.values_mut().filter(|node| node.seen.kind == Kind::File) {
            (node.seen.size, node.pages) = (0, BTreeMap::new());
        }
        bare
    };
    let names = bare(found) == bare(before) || bare(found) == bare(after);
    let contents = |node: &Node, path| {
        [before, after].iter().filter_map(|tree| tree.0.get(path)).any(|known| {
            known.seen.kind == node.seen.kind
                && (known.seen.size, &known.pages) == (node.seen.size, &node.pages)
        })
    };
    if names && found.0.iter().all(|(path, node)| node.seen.kind != Kind::File || contents(node, path)) {
        return Ok(());
    }
    Err(format!("from the state before: {difference}; from the state after: {other}"))
}

/// Whether all is as before or as after, and each word of contents is one of both.
fn between(found: &Tree, before: &Tree, after: &Tree) -> bool {
    let same_names = |tree: &Tree| tree.0.keys().eq(found.0.keys());
    same_names(before)
        && same_names(after)
        && found.0.iter().all(|(path, node)| {
            let (old, new) = (&before.0[path], &after.0[path]);
            let like = |other: &Node| {
                let bare = |node: &Node| Node { pages: BTreeMap::new(), ..node.clone() };
                bare(node) == bare(other)
            };
            (like(old) || like(new)) && words(node, old, new)
        })
}

/// Whether each word is the old or the new one, and each byte that the file gained the new one.
fn words(found: &Node, old: &Node, new: &Node) -> bool {
    let numbers = found.pages.keys().chain(old.pages.keys()).chain(new.pages.keys());
    numbers.into_iter().all(|number| {
        let base = number * PAGE;
        (0..PAGE).step_by(WORD as usize).all(|at| {
            let word = |node: &Node| -> Vec<u8> {
                let page = node.pages.get(number);
                let end = found.seen.size.min(base + at + WORD);
                (base + at..end)
                    .map(|i| page.and_then(|page| page.get((i - base) as usize)).copied().unwrap_or(0))
                    .collect()
            };
            let here = word(found);
            let gained = base + at >= old.seen.size;
            here == word(new) || (!gained && here == word(old))
        })
    })
}
