//! Bins of equal width, and the bin of a number.

use crate::outcome::Failure;
use crate::records::Number;

/// Maximum number of bins.
const BINS_MAX: usize = 65_536;

/// Place of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Below the first bin.
    Below,
    /// In the bin with this index.
    Bin(usize),
    /// Above the last bin.
    Above,
}

/// Bins of equal width. Bin `i` has the numbers from border `i` up to but without border `i + 1`.
pub(super) struct Bins {
    /// Borders, ascending: one more than bins.
    borders: Vec<f64>,
    width: f64,
}

impl Bins {
    /// Divides the numbers from `low` up to but without `high`.
    pub(super) fn new(low: f64, high: f64, number: usize) -> Result<Self, Failure> {
        if !(1..=BINS_MAX).contains(&number) {
            return Err(Failure::invalid(format!("a histogram has 1 to {BINS_MAX} bins, and not {number}")));
        }
        if low >= high {
            return Err(Failure::invalid(format!(
                "\"low\" is {low:?}, and not below \"high\", {high:?}, as the borders of a histogram are"
            )));
        }
        let width = high - low;
        if !width.is_finite() {
            return Err(Failure::invalid(format!(
                "the width of the histogram from \"low\", {low:?}, to \"high\", {high:?}, is beyond the largest \
                 floating-point number; choose borders with a smaller difference"
            )));
        }
        let mut borders: Vec<f64> =
            (0..number).map(|bin| border(low, width, bin, number).min(high)).collect();
        borders.push(high);
        Ok(Self { borders, width })
    }

    /// Compares a number with the bins.
    pub(super) fn place(&self, value: Number) -> Place {
        let is_from = |border: f64| value.compare(Number::Float(border)).is_ge();
        if !is_from(self.borders[0]) {
            Place::Below
        } else if is_from(self.borders[self.number()]) {
            Place::Above
        } else {
            Place::Bin(self.find(value.as_f64(), is_from))
        }
    }

    /// Number of bins.
    pub(super) fn number(&self) -> usize {
        self.borders.len() - 1
    }

    /// Bin of a number near `value`, which is from `low` up to but without `high`. `is_from` compares it with
    /// borders.
    fn find(&self, value: f64, is_from: impl Fn(f64) -> bool) -> usize {
        let number = self.number();
        let near = ((value - self.borders[0]) * number as f64 / self.width) as usize;
        let near = near.min(number - 1);
        if is_from(self.borders[near]) && !is_from(self.borders[near + 1]) {
            return near;
        }
        // The division was rounded over a border, or bins are so narrow that their borders are equal.
        self.borders.partition_point(|border| is_from(*border)) - 1
    }
}

/// Least number of a bin.
fn border(low: f64, width: f64, bin: usize, number: usize) -> f64 {
    let (bin, number) = (bin as f64, number as f64);
    // The product is exact for most borders that users choose. It overflows if the width is very large.
    let scaled = if (width * number).is_finite() { width * bin / number } else { width / number * bin };
    low + scaled
}

#[cfg(test)]
mod tests {
    use super::{BINS_MAX, Bins, Number, Place};
    use proptest::prelude::*;

    /// Numbers of all sizes, and some that are near to each other.
    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![
            -1e3..1e3,
            (-1000_i32..1000).prop_map(f64::from),
            (-50_i32..50).prop_map(|tenths| f64::from(tenths) / 10.0),
            (0_u64..40).prop_map(|more| f64::from_bits(1e16_f64.to_bits() + more)),
            (0_u64..40).prop_map(f64::from_bits),
            proptest::num::f64::NORMAL,
        ]
    }

    proptest! {
        #[test]
        fn a_number_is_between_the_borders_of_its_bin(
            ends in (number(), number()), bins in prop_oneof![1_usize..200, 1..=BINS_MAX],
            at in 0.0..1.0, bin in any::<prop::sample::Index>(),
        ) {
            let (low, high) = if ends.0 < ends.1 { ends } else { (ends.1, ends.0) };
            prop_assume!(low < high && (high - low).is_finite());
            let all = Bins::new(low, high, bins).unwrap();
            prop_assert_eq!((all.borders[0], all.borders[bins], all.number()), (low, high, bins));
            prop_assert!(all.borders.is_sorted());
            let border = all.borders[bin.index(bins)];
            for value in [low, high.next_down(), low + (high - low) * at, border, border.next_down(), border.next_up()] {
                match all.place(Number::Float(value)) {
                    Place::Below => prop_assert!(value < low),
                    Place::Above => prop_assert!(value >= high),
                    Place::Bin(bin) => prop_assert!(
                        all.borders[bin] <= value && value < all.borders[bin + 1], "{value} in {bin}"
                    ),
                }
            }
        }
    }

    #[test]
    fn integers_are_not_rounded_to_borders() {
        let place = |low: i64, high: i64, value: i64| {
            Bins::new(low as f64, high as f64, 2).unwrap().place(Number::Integer(value))
        };
        let border = 1 << 53;
        assert_eq!(place(border - 4, border, border - 1), Place::Bin(1));
        assert_eq!(place(border + 2, border + 6, border + 1), Place::Below);
        // As floating-point numbers, both are 2^53 + 4.
        assert_eq!(place(border, border + 8, border + 3), Place::Bin(0));
        assert_eq!(place(border, border + 8, border + 4), Place::Bin(1));
        assert_eq!(place(1 << 62, i64::MAX, i64::MAX), Place::Bin(1));
    }
}
