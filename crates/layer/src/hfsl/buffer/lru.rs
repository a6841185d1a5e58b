//! LRU over a balanced tree (HFSL paper, section 2.6.4).
//!
//! The paper looks up buffered pages in the tree. Here the map does that; the tree finds the
//! neighbours of a page, so that a run of pages is destaged together over several channels.

use super::BufferPolicy;
use frit_core::Lpn;
use std::collections::BTreeMap;

const NONE: u32 = u32::MAX;

/// Evicts the least recently written page.
#[derive(Clone, Debug)]
pub struct Lru {
    tree: BTreeMap<u32, u32>,
    newer: Vec<u32>,
    older: Vec<u32>,
    newest: u32,
    oldest: u32,
    /// Oldest page that is not known to be hot: all older ones are. `NONE` if all pages are.
    unjudged: u32,
}

impl Default for Lru {
    fn default() -> Self {
        Lru {
            tree: BTreeMap::new(),
            newer: Vec::new(),
            older: Vec::new(),
            newest: NONE,
            oldest: NONE,
            unjudged: NONE,
        }
    }
}

impl Lru {
    fn unlink(&mut self, desc: u32) {
        let (newer, older) = (self.newer[desc as usize], self.older[desc as usize]);
        if self.unjudged == desc {
            self.unjudged = newer;
        }
        match newer {
            NONE => self.newest = older,
            n => self.older[n as usize] = older,
        }
        match older {
            NONE => self.oldest = newer,
            o => self.newer[o as usize] = newer,
        }
    }

    fn link(&mut self, desc: u32) {
        self.newer[desc as usize] = NONE;
        self.older[desc as usize] = self.newest;
        match self.newest {
            NONE => self.oldest = desc,
            n => self.newer[n as usize] = desc,
        }
        self.newest = desc;
        if self.unjudged == NONE {
            self.unjudged = desc;
        }
    }
}

impl BufferPolicy for Lru {
    fn reset(&mut self, descriptors: u32) {
        *self = Lru::default();
        self.newer = vec![NONE; descriptors as usize];
        self.older = vec![NONE; descriptors as usize];
    }

    fn admitted(&mut self, desc: u32, lpn: Lpn) {
        self.tree.insert(lpn.0, desc);
        self.link(desc);
    }

    fn touched(&mut self, desc: u32) {
        if self.newest != desc {
            self.unlink(desc);
            self.link(desc);
        }
    }

    fn removed(&mut self, desc: u32, lpn: Lpn) {
        self.tree.remove(&lpn.0);
        self.unlink(desc);
    }

    fn victim(&mut self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    fn coldest(&mut self, hot: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        while self.unjudged != NONE && hot(self.unjudged) {
            self.unjudged = self.newer[self.unjudged as usize];
        }
        if self.unjudged == NONE { self.victim() } else { Some(self.unjudged) }
    }

    fn cooled(&mut self) {
        self.unjudged = self.oldest;
    }

    fn followers(&self, lpn: Lpn, most: u32) -> Vec<u32> {
        let after = self.tree.range(lpn.0.saturating_add(1)..);
        let run = after.zip(1u32..).take_while(|((at, _), i)| **at == lpn.0.saturating_add(*i));
        run.take(most as usize).map(|((_, desc), _)| *desc).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_written_leaves_first() {
        let mut l = Lru::default();
        l.reset(8);
        for d in 0..4 {
            l.admitted(d, Lpn(10 + d));
        }
        l.touched(0);
        assert_eq!(l.victim(), Some(1));
        l.removed(1, Lpn(11));
        assert_eq!(l.victim(), Some(2));
        assert_eq!(l.followers(Lpn(12), 9), vec![3]);
        assert_eq!(l.followers(Lpn(10), 9), Vec::<u32>::new());
        for (d, n) in [(2, 12), (3, 13), (0, 10)] {
            l.removed(d, Lpn(n));
        }
        assert_eq!(l.victim(), None);
    }
}
