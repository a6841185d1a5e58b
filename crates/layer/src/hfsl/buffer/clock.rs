//! CLOCK eviction: a page written again gets a second chance.

use super::BufferPolicy;
use frit_core::Lpn;
use std::collections::VecDeque;

/// Ring of pages with one reference bit each. Entries of removed pages are dropped when the hand
/// reaches them. A descriptor counts its admissions, so that an old entry of the ring is not
/// mistaken for the current one.
///
/// Hot pages that the hand passed are set aside, so that it passes each of them once. They return
/// behind the hand when pages may have cooled.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    ring: VecDeque<(u32, u32)>,
    aside: VecDeque<(u32, u32)>,
    referenced: Vec<bool>,
    stay: Vec<u32>,
    inside: Vec<bool>,
}

impl BufferPolicy for Clock {
    fn reset(&mut self, descriptors: u32) {
        let n = descriptors as usize;
        self.ring.clear();
        self.aside.clear();
        self.referenced = vec![false; n];
        self.stay = vec![0; n];
        self.inside = vec![false; n];
    }

    fn admitted(&mut self, desc: u32, _: Lpn) {
        let d = desc as usize;
        self.stay[d] = self.stay[d].wrapping_add(1);
        self.inside[d] = true;
        self.referenced[d] = false;
        self.ring.push_back((desc, self.stay[d]));
    }

    fn touched(&mut self, desc: u32) {
        self.referenced[desc as usize] = true;
    }

    fn removed(&mut self, desc: u32, _: Lpn) {
        self.inside[desc as usize] = false;
        // Without this the queues grow without bound where pages are removed by overwrites rather
        // than by eviction.
        if self.ring.len() + self.aside.len() > 2 * self.stay.len() {
            let (stay, inside) = (&self.stay, &self.inside);
            let valid = |&(d, s): &(u32, u32)| inside[d as usize] && stay[d as usize] == s;
            self.ring.retain(valid);
            self.aside.retain(valid);
        }
    }

    fn victim(&mut self) -> Option<u32> {
        self.cooled();
        self.advance(&mut |_| false)
    }

    fn coldest(&mut self, hot: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        if let found @ Some(_) = self.advance(hot) {
            return found;
        }
        // All pages are hot: the hand goes over those that were set aside, which stay aside.
        std::mem::swap(&mut self.ring, &mut self.aside);
        let found = self.advance(&mut |_| false);
        std::mem::swap(&mut self.ring, &mut self.aside);
        found
    }

    fn cooled(&mut self) {
        self.ring.append(&mut self.aside);
    }
}

impl Clock {
    /// Advances the hand to the next page that is neither referenced nor hot.
    fn advance(&mut self, hot: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        while let Some(&(desc, stay)) = self.ring.front() {
            let d = desc as usize;
            if !self.inside[d] || self.stay[d] != stay {
                self.ring.pop_front();
            } else if hot(desc) {
                self.ring.pop_front();
                self.aside.push_back((desc, stay));
            } else if self.referenced[d] {
                self.referenced[d] = false;
                self.ring.rotate_left(1);
            } else {
                return Some(desc);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_referenced_page_gets_a_second_chance() {
        let mut c = Clock::default();
        c.reset(4);
        c.admitted(0, Lpn(5));
        c.admitted(1, Lpn(6));
        c.touched(0);
        assert_eq!(c.victim(), Some(1));
        c.removed(1, Lpn(6));
        c.admitted(1, Lpn(9));
        assert_eq!(c.victim(), Some(0));
        c.removed(0, Lpn(5));
        assert_eq!(c.victim(), Some(1));
        c.removed(1, Lpn(9));
        assert_eq!(c.victim(), None);
    }
}
