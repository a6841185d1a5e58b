//! Property tests of victims: each policy beside a list of all pages, with heat that cools.

use super::{BufferPolicy, PcmBuffer};
use frit_core::Lpn;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::str::FromStr;
use strum::VariantNames;

const PAGES: u32 = 24;

#[derive(Clone, Debug)]
enum Action {
    /// Writes a page. It becomes hot if the flag is set.
    Write(u32, bool),
    Remove(u32),
    /// Evicts the coldest page.
    Evict,
    /// The detector forgets a part of the hot pages.
    Cool(u32),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..PAGES, any::<bool>()).prop_map(|(p, hot)| Action::Write(p, hot)),
        1 => (0..PAGES).prop_map(Action::Remove),
        3 => Just(Action::Evict),
        1 => (1..4u32).prop_map(Action::Cool),
    ]
}

/// Pages of a buffer in the order of their last writes, the oldest first.
struct Model {
    buffer: PcmBuffer,
    order: Vec<u32>,
    hot: BTreeSet<u32>,
    /// Upper bound of the hot pages that all searches may have passed.
    may_pass: usize,
    passed: usize,
}

impl Model {
    fn act(&mut self, action: &Action) -> Option<(u32, Option<u32>)> {
        match *action {
            Action::Write(page, hot) => {
                if let Some(at) = self.order.iter().position(|&p| p == page) {
                    self.order.remove(at);
                    self.buffer.touched(page);
                } else {
                    self.buffer.admitted(page, Lpn(page));
                }
                self.order.push(page);
                if hot {
                    self.hot.insert(page);
                }
                self.may_pass += 1;
            }
            Action::Remove(page) => self.remove(page),
            Action::Cool(part) => {
                self.hot.retain(|p| p % part != 0);
                self.buffer.cooled();
                self.may_pass += self.order.len();
            }
            Action::Evict => {
                let (hot, passed) = (&self.hot, &mut self.passed);
                let found = self.buffer.coldest(&mut |page| {
                    *passed += usize::from(hot.contains(&page));
                    hot.contains(&page)
                });
                assert_eq!(found.is_some(), !self.order.is_empty());
                let oldest_cold = self.order.iter().copied().find(|p| !self.hot.contains(p));
                let expected = oldest_cold.or(self.order.first().copied());
                let found = found?;
                self.remove(found);
                return Some((found, expected));
            }
        }
        None
    }

    fn remove(&mut self, page: u32) {
        if let Some(at) = self.order.iter().position(|&p| p == page) {
            self.order.remove(at);
            self.buffer.removed(page, Lpn(page));
        }
    }
}

proptest! {
    #[test]
    fn the_coldest_page_leaves_first(actions in prop::collection::vec(action(), 1..400)) {
        for name in PcmBuffer::VARIANTS {
            let mut buffer = PcmBuffer::from_str(name).unwrap();
            buffer.reset(PAGES);
            let mut m =
                Model { buffer, order: Vec::new(), hot: BTreeSet::new(), may_pass: 0, passed: 0 };
            for a in &actions {
                let any_cold = m.order.iter().any(|p| !m.hot.contains(p));
                let Some((found, expected)) = m.act(a) else { continue };
                prop_assert!(!any_cold || !m.hot.contains(&found), "{name}: page {found} is hot");
                if *name == "lru" {
                    prop_assert_eq!(Some(found), expected);
                }
            }
            prop_assert!(m.passed <= m.may_pass, "{name}: {} > {}", m.passed, m.may_pass);
        }
    }
}
