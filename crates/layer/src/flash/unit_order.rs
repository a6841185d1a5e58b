//! Orders in which writes are striped over the units of a NAND device.

use frit_core::convert::to_usize;
use frit_media::{NandGeometry, PlaneOps};
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Order of channels (C), ways (W, the chips of a channel), dies (D) and planes (P): the first letter
/// changes fastest. The names are those of MQSim's plane allocation schemes (Tavakkol et al., FAST 2018).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the letters of each name are explained above")]
pub enum UnitOrder {
    #[default]
    Cwdp,
    Cwpd,
    Cdwp,
    Cdpw,
    Cpwd,
    Cpdw,
    Wcdp,
    Wcpd,
    Wdcp,
    Wdpc,
    Wpcd,
    Wpdc,
    Dcwp,
    Dcpw,
    Dwcp,
    Dwpc,
    Dpcw,
    Dpwc,
    Pcwd,
    Pcdw,
    Pwcd,
    Pwdc,
    Pdcw,
    Pdwc,
}

impl UnitOrder {
    /// Returns the units of a device in this order.
    #[must_use]
    pub fn units(self, g: &NandGeometry) -> Vec<u32> {
        let planes = if g.plane_ops == PlaneOps::Single { 1 } else { g.planes_per_die };
        let name: &'static str = self.into();
        // Number of units from one channel, way, die or plane to the next.
        let parts = [
            ('C', g.channels, 1),
            ('W', g.chips_per_channel, g.channels),
            ('D', g.dies_per_chip, g.channels * g.chips_per_channel),
            ('P', planes, g.channels * g.chips_per_channel * g.dies_per_chip),
        ];
        let mut units = Vec::with_capacity(to_usize(g.units()));
        units.push(0);
        for letter in name.chars() {
            for (_, count, step) in parts.into_iter().filter(|(part, ..)| *part == letter) {
                let inner = units.len();
                for i in 1..count {
                    units.extend_from_within(..inner);
                    let from = units.len() - inner;
                    units[from..].iter_mut().for_each(|unit| *unit += i * step);
                }
            }
        }
        units
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantNames;

    /// Two channels of three ways of one die of two planes.
    const SHAPE: NandGeometry = NandGeometry {
        channels: 2,
        chips_per_channel: 3,
        planes_per_die: 2,
        plane_ops: PlaneOps::Independent,
        ..crate::testing::TWO_UNITS
    };

    #[test]
    fn orders_stripe_over_their_first_letter_first() {
        let all: Vec<u32> = (0..12).collect();
        assert_eq!(UnitOrder::Cwdp.units(&SHAPE), all);
        // Unit 2 is the second way of channel 0, unit 6 the second plane of its first way.
        assert_eq!(UnitOrder::Wcdp.units(&SHAPE), [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]);
        assert_eq!(UnitOrder::Pdwc.units(&SHAPE), [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11]);
        let single = NandGeometry { plane_ops: PlaneOps::Single, ..SHAPE };
        assert_eq!(UnitOrder::Pwcd.units(&single), [0, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn every_order_has_every_unit_once() {
        assert_eq!(UnitOrder::VARIANTS.len(), 24);
        for name in UnitOrder::VARIANTS {
            let g = NandGeometry { dies_per_chip: 2, ..SHAPE };
            let mut units = name.parse::<UnitOrder>().unwrap().units(&g);
            units.sort_unstable();
            assert_eq!(units, (0..24).collect::<Vec<_>>(), "{name}");
        }
    }
}
