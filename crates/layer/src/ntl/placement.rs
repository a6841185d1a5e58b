//! Selection of the chip for the first write of a page, if the mapping does not determine it.

use frit_core::convert::{count_u32, low_u16, to_usize};
use frit_core::{Sink, UnitId, UnitState};
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Method of selecting an idle chip (the paper: "any idle chip", section II.A).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ChipPlacement {
    /// The next chip after that of the last first write.
    #[default]
    RoundRobin,
    /// The chip with the fewest pages of this request.
    LeastLoaded,
    /// The chip that is idle, or will be idle first.
    Idle,
}

impl ChipPlacement {
    /// Computes the cost of each chip. The chip with the lowest cost is selected; among equal ones,
    /// the first in turn.
    pub(super) fn costs(
        self,
        sink: &Sink,
        first_unit: UnitId,
        pages: &[u32],
        turn: u32,
        costs: &mut Vec<u64>,
    ) {
        let chips = count_u32(pages.len());
        costs.clear();
        costs.extend((0..chips).map(|chip| {
            let after = u64::from((chip + chips - turn) % chips);
            let load = match self {
                ChipPlacement::RoundRobin => 0,
                ChipPlacement::LeastLoaded => u64::from(pages[to_usize(chip)]),
                ChipPlacement::Idle => match sink.unit(UnitId(first_unit.0 + low_u16(u64::from(chip)))) {
                    UnitState::Idle => 0,
                    // The limit prevents an overflow of the product below.
                    UnitState::BusyUntil(t) => t.0.min(u64::MAX >> 13),
                },
            };
            // The load decides. Among equal loads the order in turn does.
            load * u64::from(chips) + after
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::{Cmd, Engine, Nanos, Tok};

    /// An engine whose units are busy until these times; 0: idle.
    struct Busy([u64; 4]);

    impl Engine for Busy {
        fn now(&self) -> Nanos {
            Nanos::ZERO
        }
        fn unit(&self, unit: UnitId) -> UnitState {
            match self.0[unit.idx()] {
                0 => UnitState::Idle,
                until => UnitState::BusyUntil(Nanos(until)),
            }
        }
        fn emit(&mut self, _: Cmd, _: Tok) -> Tok {
            Tok::DONE
        }
        fn join(&mut self, a: Tok, _: Tok) -> Tok {
            a
        }
    }

    #[test]
    fn the_next_in_turn_or_the_least_loaded() {
        let mut costs = Vec::new();
        let best = |costs: &[u64]| (0..costs.len()).min_by_key(|&i| costs[i]);
        ChipPlacement::RoundRobin.costs(&Sink::untimed(), UnitId(0), &[9, 0, 0, 0], 0, &mut costs);
        assert_eq!(best(&costs), Some(0));
        ChipPlacement::RoundRobin.costs(&Sink::untimed(), UnitId(0), &[0, 0, 0, 0], 3, &mut costs);
        assert_eq!((best(&costs), costs[0]), (Some(3), 1));
        ChipPlacement::LeastLoaded.costs(&Sink::untimed(), UnitId(0), &[2, 1, 1, 2], 2, &mut costs);
        assert_eq!(best(&costs), Some(2));
        ChipPlacement::Idle.costs(&Sink::untimed(), UnitId(0), &[2, 1, 1, 2], 1, &mut costs);
        assert_eq!(best(&costs), Some(1), "with nothing to wait for, the next in turn");
        ChipPlacement::Idle.costs(&Sink::new(Busy([900, 700, 0, 800])), UnitId(0), &[0; 4], 3, &mut costs);
        assert_eq!(best(&costs), Some(2), "the one that is idle");
        ChipPlacement::Idle.costs(&Sink::new(Busy([900, 700, 950, 800])), UnitId(0), &[0; 4], 3, &mut costs);
        assert_eq!(best(&costs), Some(1), "the one that is idle first");
    }
}
