//! The parameters of a fit: names, scales and bounds.

use serde::Serialize;
use strum::{EnumCount, EnumIter, IntoEnumIterator, IntoStaticStr};

/// A parameter of the model of a drive.
///
/// The order is that in which values of the profile are [kept](crate::FittedParameter::kept): those that
/// a data sheet states come first.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Debug,
    EnumIter,
    EnumCount,
    IntoStaticStr,
    strum::EnumString,
    strum::VariantNames,
    Serialize,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    /// tBERS of the NAND.
    TErase,
    /// Transfer time of a byte on a channel.
    BusPerByte,
    /// tR of the NAND, the mean of its types of pages.
    TRead,
    /// tPROG of the NAND, the mean of its types of pages.
    TProg,
    /// Number of units of NAND that work in parallel.
    Units,
    /// Write cache, in NAND pages.
    MergeBuffer,
    /// Rate of the link between host and drive.
    LinkMbPerS,
    /// Time of a read outside the NAND and the link.
    ReadUs,
    /// Time of a write outside the NAND and the link.
    WriteUs,
}

/// Number of parameters.
pub(crate) const COUNT: usize = Parameter::COUNT;

/// Unit of a parameter's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Picoseconds.
    Ps,
    /// Microseconds.
    Us,
    /// Megabytes (10⁶ bytes) a second.
    MbPerS,
    /// Units of NAND.
    Units,
    /// NAND pages.
    NandPages,
}

impl Parameter {
    /// Returns the name, as in profiles and stack files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the unit of the value.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Parameter::TErase | Parameter::BusPerByte | Parameter::TRead | Parameter::TProg => Unit::Ps,
            Parameter::Units => Unit::Units,
            Parameter::MergeBuffer => Unit::NandPages,
            Parameter::LinkMbPerS => Unit::MbPerS,
            Parameter::ReadUs | Parameter::WriteUs => Unit::Us,
        }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Returns `true` if the parameter has a list of values instead of a range.
    pub(crate) fn is_discrete(self) -> bool {
        matches!(self, Parameter::Units | Parameter::MergeBuffer)
    }
}

/// Values of all parameters on the scales of the search: the logarithm to base 2, or the index in the
/// list of values.
pub(crate) type Point = [f64; COUNT];

/// Largest factor between a time of the profile and a fitted one (assumed): 2⁷.
const TIME_OCTAVES: f64 = 7.0;
/// Longest time outside the NAND: 0.1 s.
const OVERHEAD_US_MAX: f64 = 1e5;
/// Value below which such a time is zero: stacks have whole microseconds.
const OVERHEAD_US_MIN: f64 = 0.5;
/// Rates of a link. The largest stands for no limit.
const LINK_MB_PER_S: (f64, f64) = (1.0, 65_536.0);
/// Numbers of parallel units that are tried, in addition to that of the profile.
const UNITS: [u32; 14] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];
/// Sizes of the write cache that are tried, in NAND pages; 0 is none.
const MERGE_BUFFERS: [u32; 10] = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256];

/// The space of values around a profile.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    low: Point,
    high: Point,
    /// The values of the profile.
    pub(crate) profile: Point,
    /// Numbers of units, in ascending order.
    units: Vec<u32>,
}

/// Values of a NAND profile on which a space is based.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProfileTimes {
    pub(crate) t_read_ps: f64,
    pub(crate) t_prog_ps: f64,
    pub(crate) t_erase_ps: f64,
    pub(crate) bus_ps: f64,
    pub(crate) units: u32,
}

impl Space {
    pub(crate) fn new(times: ProfileTimes) -> Space {
        let mut units: Vec<u32> = UNITS.to_vec();
        units.push(times.units);
        units.sort_unstable();
        units.dedup();
        let (mut low, mut high, mut profile) = ([0.0; COUNT], [0.0; COUNT], [0.0; COUNT]);
        for p in Parameter::iter() {
            let i = p.index();
            let around = |ps: f64| {
                let at = ps.max(1.0).log2();
                ((at - TIME_OCTAVES).max(0.0), at + TIME_OCTAVES, at)
            };
            (low[i], high[i], profile[i]) = match p {
                Parameter::TErase => around(times.t_erase_ps),
                Parameter::BusPerByte => around(times.bus_ps),
                Parameter::TRead => around(times.t_read_ps),
                Parameter::TProg => around(times.t_prog_ps),
                Parameter::Units => {
                    let own = units.partition_point(|u| *u < times.units);
                    (0.0, (units.len() - 1) as f64, own as f64)
                }
                Parameter::MergeBuffer => (0.0, (MERGE_BUFFERS.len() - 1) as f64, 0.0),
                Parameter::LinkMbPerS => {
                    (LINK_MB_PER_S.0.log2(), LINK_MB_PER_S.1.log2(), LINK_MB_PER_S.1.log2())
                }
                Parameter::ReadUs | Parameter::WriteUs => {
                    (OVERHEAD_US_MIN.log2(), OVERHEAD_US_MAX.log2(), OVERHEAD_US_MIN.log2())
                }
            };
        }
        Space { low, high, profile, units }
    }

    /// Returns the bounds of a parameter.
    pub(crate) fn bounds(&self, p: Parameter) -> (f64, f64) {
        (self.low[p.index()], self.high[p.index()])
    }

    /// Returns the place on the scale that is nearest to a value, within the bounds.
    pub(crate) fn place(&self, p: Parameter, value: f64) -> f64 {
        let (low, high) = self.bounds(p);
        let nearest = |list: &[u32]| list.partition_point(|v| f64::from(*v) < value) as f64;
        match p {
            Parameter::Units => nearest(&self.units),
            Parameter::MergeBuffer => nearest(&MERGE_BUFFERS),
            _ => value.max(f64::MIN_POSITIVE).log2(),
        }
        .clamp(low, high)
    }

    /// Returns the value at a place on the scale, as a stack has it: times in whole units, 0 for no time
    /// outside the NAND and for no limit of the link.
    pub(crate) fn value(&self, p: Parameter, at: f64) -> f64 {
        let listed = |list: &[u32]| list.get(at.round() as usize).map_or(0.0, |v| f64::from(*v));
        match p {
            Parameter::Units => listed(&self.units),
            Parameter::MergeBuffer => listed(&MERGE_BUFFERS),
            Parameter::LinkMbPerS if at >= self.high[p.index()] => 0.0,
            Parameter::ReadUs | Parameter::WriteUs if at <= self.low[p.index()] => 0.0,
            Parameter::ReadUs | Parameter::WriteUs => at.exp2().round(),
            _ => at.exp2().round().max(1.0),
        }
    }

    /// Returns the values at a point.
    pub(crate) fn values(&self, point: &Point) -> [u64; COUNT] {
        let mut values = [0; COUNT];
        for p in Parameter::iter() {
            values[p.index()] = self.value(p, point[p.index()]) as u64;
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        let times =
            ProfileTimes { t_read_ps: 8e7, t_prog_ps: 2.9e9, t_erase_ps: 3e9, bus_ps: 833.0, units: 20 };
        Space::new(times)
    }

    #[test]
    fn the_profile_is_a_point_of_its_space() {
        let space = space();
        let values = space.values(&space.profile);
        assert_eq!(values, [3_000_000_000, 833, 80_000_000, 2_900_000_000, 20, 0, 0, 0, 0]);
        for p in Parameter::iter() {
            let (low, high) = space.bounds(p);
            assert!(low < high && (low..=high).contains(&space.profile[p.index()]), "{p:?}");
            assert_eq!(Parameter::try_from(p.name()), Ok(p));
        }
    }

    #[test]
    fn values_have_a_place_and_places_a_value() {
        let space = space();
        for (p, value) in [
            (Parameter::Units, 3.0),
            (Parameter::MergeBuffer, 16.0),
            (Parameter::LinkMbPerS, 200.0),
            (Parameter::ReadUs, 77.0),
            (Parameter::TRead, 12_345_678.0),
        ] {
            assert_eq!(space.value(p, space.place(p, value)), value, "{p:?}");
        }
        assert_eq!(space.value(Parameter::LinkMbPerS, space.place(Parameter::LinkMbPerS, 1e9)), 0.0);
        assert_eq!(space.value(Parameter::WriteUs, space.place(Parameter::WriteUs, 0.0)), 0.0);
    }
}
