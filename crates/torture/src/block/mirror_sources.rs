//! Mirrors whose sides differ after a crash: from which side each one reads what is not copied yet.
//!
//! If this side, the source, fails before all copies are done, requests that were not flushed before
//! the crash may have the state of another side (docs/reference/composers/mirror.md, promises).

use frit_core::StackDevice;
use frit_core::visible::StackView;

/// The mirrors of a stack whose sides may differ, each with its source.
#[derive(Clone, Default, Debug)]
pub struct MirrorSources {
    /// Number of the layer, and number of the side.
    sources: Vec<(usize, u64)>,
}

/// Returns the values of metrics of the mirrors of a layer, with the numbers of these.
fn mirrors(layer: &dyn StackDevice) -> impl Iterator<Item = (usize, u64, u64)> {
    let mut view = StackView::default();
    layer.visible(&mut view);
    view.layers.into_iter().enumerate().filter_map(|(number, layer)| {
        let value = |name| layer.metrics.iter().find(|m| m.name == name).map(|m| m.value as u64);
        Some((number, value("source")?, value("regions_to_copy")?))
    })
}

impl MirrorSources {
    /// Returns the mirrors of a layer that have to copy regions.
    #[must_use]
    pub fn of(layer: &dyn StackDevice) -> MirrorSources {
        let differing = mirrors(layer).filter(|&(_, _, copies)| copies > 0);
        MirrorSources { sources: differing.map(|(number, source, _)| (number, source)).collect() }
    }

    #[cfg(test)]
    pub(crate) fn test(sources: &[(usize, u64)]) -> MirrorSources {
        MirrorSources { sources: sources.to_vec() }
    }

    /// Returns `true` if no mirror has to copy regions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Returns the sources of the same mirrors in another state of the stack.
    #[must_use]
    pub fn now(layer: &dyn StackDevice) -> MirrorSources {
        MirrorSources { sources: mirrors(layer).map(|(number, source, _)| (number, source)).collect() }
    }

    /// Returns `true` if one of these mirrors has another source now, so that its source failed.
    #[must_use]
    pub fn failed_by(&self, now: &MirrorSources) -> bool {
        let other =
            |&(number, source): &(usize, u64)| now.sources.iter().any(|&(n, s)| n == number && s != source);
        self.sources.iter().any(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_source_of_the_same_mirror_is_a_failure() {
        let of = MirrorSources::test;
        assert!(of(&[(2, 0)]).failed_by(&of(&[(0, 0), (2, 1)])));
        assert!(!of(&[(2, 0)]).failed_by(&of(&[(0, 1), (2, 0)])));
        assert!(!of(&[]).failed_by(&of(&[(2, 1)])));
        assert!(!of(&[(2, 0)]).failed_by(&of(&[])));
    }
}
