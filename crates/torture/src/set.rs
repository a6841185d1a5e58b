//! Sets of commands, as bits.

/// A set of small numbers below a limit that is fixed when it is made.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Set {
    words: Vec<u64>,
}

impl Set {
    /// The empty set of numbers below `n`.
    #[must_use]
    pub fn new(n: usize) -> Set {
        Set { words: vec![0; n.div_ceil(64)] }
    }

    /// The numbers below `upto`, of those below `n`.
    #[must_use]
    pub fn below(n: usize, upto: usize) -> Set {
        let mut s = Set::new(n);
        for i in 0..upto {
            s.add(i);
        }
        s
    }

    /// Whether a number is in it.
    #[inline]
    #[must_use]
    pub fn has(&self, i: usize) -> bool {
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// Puts a number in.
    #[inline]
    pub fn add(&mut self, i: usize) {
        self.words[i / 64] |= 1 << (i % 64);
    }

    /// Takes a number out.
    #[inline]
    pub fn remove(&mut self, i: usize) {
        self.words[i / 64] &= !(1 << (i % 64));
    }

    /// Puts in all that is in another.
    #[inline]
    pub fn add_all(&mut self, other: &Set) {
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a |= b;
        }
    }

    /// Takes out all that is in another.
    pub fn remove_all(&mut self, other: &Set) {
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a &= !b;
        }
    }

    /// Whether all of it is in another.
    #[inline]
    #[must_use]
    pub fn within(&self, other: &Set) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// Whether it shares a number with another.
    #[inline]
    #[must_use]
    pub fn meets(&self, other: &Set) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// How many numbers are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// What its numbers are below, rounded up.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.words.len() * 64
    }

    /// A hash of it.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.words.iter().fold(0, |h, &w| crate::stamp::mix(h ^ w))
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// The numbers in it, in rising order.
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
        let mut a = Set::below(130, 3);
        a.add(129);
        assert_eq!(a.iter().collect::<Vec<_>>(), [0, 1, 2, 129]);
        assert_eq!(a.len(), 4);
        let b = Set::below(130, 2);
        assert!(b.within(&a) && !a.within(&b) && a.meets(&b));
        a.remove_all(&b);
        a.remove(129);
        assert_eq!(a.iter().collect::<Vec<_>>(), [2]);
        assert!(!a.meets(&b) && Set::new(130).is_empty());
        a.add_all(&b);
        assert!(a.has(0) && a.has(2) && !a.has(3));
    }
}
