//! Knowledge of future accesses, for the policy `belady`.

use super::BlockAccess;
use frit_core::convert::to_u64;
use std::collections::HashMap;
use std::sync::Arc;

/// Returns, for each access of a sequence, the ordinal of the next access to the same block;
/// `u64::MAX`: none.
#[must_use]
pub fn next_uses(accesses: &[BlockAccess]) -> Arc<[u64]> {
    let mut last = HashMap::new();
    let mut next = vec![u64::MAX; accesses.len()];
    for (at, a) in accesses.iter().enumerate() {
        if let Some(before) = last.insert(a.lbn, at) {
            next[before] = to_u64(at);
        }
    }
    next.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Lbn;

    #[test]
    fn the_next_use_of_each_access_is_found() {
        let accesses = [7, 8, 7, 7, 8, 9].map(|lbn| BlockAccess { lbn: Lbn(lbn), write: true, begins: true });
        assert_eq!(*next_uses(&accesses), [2, 4, 3, u64::MAX, u64::MAX, u64::MAX]);
    }
}
