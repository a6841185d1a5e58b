//! States that are allowed after a cut: the state before the interrupted operation or the state
//! after it. Only the contents of a file that is being written may be mixed: each aligned word is
//! old or new.

use super::super::compare::{Tree, TreeNode};
use super::super::op::Act;
use super::recording_medium::WORD;
use frit_fs::InodeType;
use std::collections::BTreeMap;

/// Bytes of a page of a [`TreeNode`].
const PAGE: u64 = 4096;

/// Returns `true` if the operation changes bytes of a file in place.
pub(super) fn in_place(act: &Act) -> bool {
    matches!(act, Act::Write { .. } | Act::Append { .. } | Act::Allocate { .. })
}

/// Verifies a tree that was found after a cut of `act` between `before` and `after`.
pub(super) fn allowed(found: &Tree, before: &Tree, after: Option<(&Tree, &Act)>) -> Result<(), String> {
    let Some(difference) = before.difference(found) else { return Ok(()) };
    let Some((after, act)) = after else { return Err(format!("after completed operations: {difference}")) };
    let Some(other) = after.difference(found) else { return Ok(()) };
    if in_place(act) && between(found, before, after) {
        return Ok(());
    }
    Err(format!("from the state before: {difference}; from the state after: {other}"))
}

/// Verifies a tree whose contents are external to the medium. Names and attributes must all be old
/// or all be new. The contents of each file, by itself, must be old or new.
pub(super) fn allowed_outside(
    found: &Tree,
    before: &Tree,
    after: Option<(&Tree, &Act)>,
) -> Result<(), String> {
    let Some(difference) = before.difference(found) else { return Ok(()) };
    let Some((after, _)) = after else { return Err(format!("after completed operations: {difference}")) };
    let Some(other) = after.difference(found) else { return Ok(()) };
    // Names and attributes are compared without sizes and pages, which are verified for each file
    // below.
    let bare = |tree: &Tree| {
        let mut bare = tree.clone();
        for node in bare.0.values_mut().filter(|node| node.seen.kind == InodeType::File) {
            (node.seen.size, node.pages) = (0, BTreeMap::new());
        }
        bare
    };
    let names = bare(found) == bare(before) || bare(found) == bare(after);
    let contents = |node: &TreeNode, path| {
        [before, after].iter().filter_map(|tree| tree.0.get(path)).any(|known| {
            known.seen.kind == node.seen.kind
                && (known.seen.size, &known.pages) == (node.seen.size, &node.pages)
        })
    };
    if names && found.0.iter().all(|(path, node)| node.seen.kind != InodeType::File || contents(node, path)) {
        return Ok(());
    }
    Err(format!("from the state before: {difference}; from the state after: {other}"))
}

/// Returns `true` if every node has its old or new attributes and each word of its contents is old
/// or new.
fn between(found: &Tree, before: &Tree, after: &Tree) -> bool {
    let same_names = |tree: &Tree| tree.0.keys().eq(found.0.keys());
    same_names(before)
        && same_names(after)
        && found.0.iter().all(|(path, node)| {
            let (old, new) = (&before.0[path], &after.0[path]);
            let like = |other: &TreeNode| {
                let bare = |node: &TreeNode| TreeNode { pages: BTreeMap::new(), ..node.clone() };
                bare(node) == bare(other)
            };
            (like(old) || like(new)) && words(node, old, new)
        })
}

/// Returns `true` if each word is old or new, and each byte that the file gained is new.
fn words(found: &TreeNode, old: &TreeNode, new: &TreeNode) -> bool {
    let numbers = found.pages.keys().chain(old.pages.keys()).chain(new.pages.keys());
    numbers.into_iter().all(|number| {
        let base = number * PAGE;
        (0..PAGE).step_by(WORD as usize).all(|at| {
            let word = |node: &TreeNode| -> Vec<u8> {
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
