//! Sets of commands, as bit sets.

/// A set of numbers below a limit that is fixed at creation.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct CommandSet {
    words: Vec<u64>,
}

impl CommandSet {
    /// Creates an empty set of numbers below `n`.
    #[must_use]
    pub fn new(n: usize) -> CommandSet {
        CommandSet { words: vec![0; n.div_ceil(64)] }
    }

    /// Creates the set of the numbers below `upto`, with the limit `n`.
    #[must_use]
    pub fn below(n: usize, upto: usize) -> CommandSet {
        let mut s = CommandSet::new(n);
        for i in 0..upto {
            s.add(i);
        }
        s
    }

    /// Returns `true` if a number is in the set.
    #[inline]
    #[must_use]
    pub fn has(&self, i: usize) -> bool {
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// Adds a number.
    #[inline]
    pub fn add(&mut self, i: usize) {
        self.words[i / 64] |= 1 << (i % 64);
    }

    /// Removes a number.
    #[inline]
    pub fn remove(&mut self, i: usize) {
        self.words[i / 64] &= !(1 << (i % 64));
    }

    /// Adds all numbers of another set.
    #[inline]
    pub fn add_all(&mut self, other: &CommandSet) {
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a |= b;
        }
    }

    /// Removes all numbers of another set.
    pub fn remove_all(&mut self, other: &CommandSet) {
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a &= !b;
        }
    }

    /// Returns `true` if it is a subset of another set.
    #[inline]
    #[must_use]
    pub fn within(&self, other: &CommandSet) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// Returns `true` if it shares a number with another set.
    #[inline]
    #[must_use]
    pub fn meets(&self, other: &CommandSet) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Returns the limit of its numbers, rounded up to a multiple of 64.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.words.len() * 64
    }

    /// Returns a hash of the set.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.words.iter().fold(0, |h, &w| frit_core::split_mix::mix(h ^ w))
    }

    /// Returns `true` if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// Returns its numbers in rising order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &w)| {
            let mut w = w;
            std::iter::from_fn(move || {
                (w != 0).then(|| {
                    let bit = w.trailing_zeros() as usize;
                    w &= w - 1;
                    i * 64 + bit
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_do_what_sets_do() {
        let mut a = CommandSet::below(130, 3);
        a.add(129);
        assert_eq!(a.iter().collect::<Vec<_>>(), [0, 1, 2, 129]);
        assert_eq!(a.len(), 4);
        let b = CommandSet::below(130, 2);
        assert!(b.within(&a) && !a.within(&b) && a.meets(&b));
        a.remove_all(&b);
        a.remove(129);
        assert_eq!(a.iter().collect::<Vec<_>>(), [2]);
        assert!(!a.meets(&b) && CommandSet::new(130).is_empty());
        a.add_all(&b);
        assert!(a.has(0) && a.has(2) && !a.has(3));
    }
}
