//! Exact sum of floating-point numbers.

/// Every floating-point number is a multiple of 2^-1074.
const UNIT_BITS: usize = 1074;
/// Bits of a digit.
const DIGIT_BITS: usize = 32;
const DIGIT_MASK: i64 = (1 << DIGIT_BITS) - 1;
/// Additions after which carries are propagated: each one changes a digit by less than 2^32.
const ADDITIONS_MAX: u32 = 1 << 30;
/// Digits of a quotient behind the point: those of a divisor of 64 bits, and 64 bits to round.
const FRACTION_DIGITS: usize = 4;
/// Bits of the significand of a floating-point number.
const SIGNIFICAND_BITS: usize = 53;
/// Exponent of numbers that are no longer finite, without the bit of the significand that is added to it.
const EXPONENT_MAX: u64 = 0x7fe;

/// Sum of floating-point numbers as a whole number of 2^-1074. It has the digits that its numbers need.
#[derive(Clone, Default)]
pub(super) struct ExactSum {
    /// Digits of 32 bits with a sign, the least one first. Carries between them are delayed.
    digits: Vec<i64>,
    /// Place of the first digit: it counts units of 2^(32 `first`).
    first: usize,
    additions: u32,
}

impl ExactSum {
    /// Memory beside the sum itself, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<i64>() * self.digits.capacity()
    }

    /// Adds a finite number.
    pub(super) fn add(&mut self, number: f64) {
        let bits = number.to_bits();
        let fraction = bits & ((1 << (SIGNIFICAND_BITS - 1)) - 1);
        let (significand, shift) = match (bits >> (SIGNIFICAND_BITS - 1)) as usize & 0x7ff {
            0 => (fraction, 0),
            exponent => (fraction | 1 << (SIGNIFICAND_BITS - 1), exponent - 1),
        };
        if significand != 0 {
            let wide = u128::from(significand) << (shift % DIGIT_BITS);
            self.add_digits(wide, shift / DIGIT_BITS, number.is_sign_negative());
        }
    }

    /// Adds a whole number.
    pub(super) fn add_integer(&mut self, number: i128) {
        let magnitude = number.unsigned_abs();
        let at = UNIT_BITS / DIGIT_BITS;
        for (index, shift) in (0..4).map(|index| (index, UNIT_BITS % DIGIT_BITS + index * DIGIT_BITS)) {
            let digit = magnitude >> (index * DIGIT_BITS) & DIGIT_MASK as u128;
            if digit != 0 {
                self.add_digits(digit << (shift % DIGIT_BITS), at + shift / DIGIT_BITS, number < 0);
            }
        }
    }

    /// Adds a number of at most 96 bits that begins at a digit.
    fn add_digits(&mut self, number: u128, at: usize, negative: bool) {
        self.reserve(at, 3);
        let digits = &mut self.digits[at - self.first..];
        for (index, digit) in digits.iter_mut().take(3).enumerate() {
            let part = (number >> (index * DIGIT_BITS)) as i64 & DIGIT_MASK;
            *digit += if negative { -part } else { part };
        }
        self.count();
    }

    /// Adds another sum.
    pub(super) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        other.carry();
        self.reserve(other.first, other.digits.len());
        let digits = &mut self.digits[other.first.saturating_sub(self.first)..];
        digits.iter_mut().zip(&other.digits).for_each(|(digit, more)| *digit += more);
        self.count();
    }

    fn count(&mut self) {
        self.additions += 1;
        if self.additions >= ADDITIONS_MAX {
            self.carry();
        }
    }

    /// Makes room for digits.
    fn reserve(&mut self, at: usize, number: usize) {
        if number == 0 {
            return;
        }
        if self.digits.is_empty() {
            self.first = at;
        }
        if at < self.first {
            self.digits.splice(..0, std::iter::repeat_n(0, self.first - at));
            self.first = at;
        }
        let len = self.digits.len().max(at + number - self.first);
        self.digits.reserve_exact(len - self.digits.len());
        self.digits.resize(len, 0);
    }

    /// Propagates carries. All digits but the last one are from 0 to 2^32 - 1 then, and the last one has
    /// the sign of the sum.
    fn carry(&mut self) {
        self.additions = 0;
        let mut carry = 0;
        for digit in &mut self.digits {
            let sum = *digit + carry;
            (*digit, carry) = (sum & DIGIT_MASK, sum >> DIGIT_BITS);
        }
        match self.digits.last_mut() {
            Some(last) if carry == -1 => *last -= 1 << DIGIT_BITS,
            _ if carry != 0 => self.digits.push(carry),
            _ => {}
        }
    }

    /// Floating-point number nearest to the sum divided by a number that is not zero. Of two that are
    /// equally near, the one with an even significand. There is none beyond the largest number.
    pub(super) fn quotient(mut self, divisor: u64) -> Option<f64> {
        self.carry();
        let negative = self.digits.last().is_some_and(|last| *last < 0);
        if negative {
            self.digits.iter_mut().for_each(|digit| *digit = -*digit);
            self.carry();
        }
        // Long division, from the last digit to those behind the point.
        let (mut quotient, mut rest) = (vec![0; FRACTION_DIGITS], 0);
        quotient.extend_from_slice(&self.digits);
        for digit in quotient.iter_mut().rev() {
            let part = rest << DIGIT_BITS | u128::from(*digit as u64);
            *digit = (part / u128::from(divisor)) as i64;
            rest = part % u128::from(divisor);
        }
        let magnitude = round(&quotient, self.first * DIGIT_BITS, rest > 0)?;
        Some(if negative { -magnitude } else { magnitude })
    }
}

/// Rounds digits of which the first ones are behind the point. `shift` is the number of units of a one
/// before the point as a power of two. With `more`, the number is slightly greater than its digits.
fn round(digits: &[i64], shift: usize, more: bool) -> Option<f64> {
    let bit = |at: usize| (digits[at / DIGIT_BITS] >> (at % DIGIT_BITS) & 1) as u64;
    let Some(top) = (0..digits.len() * DIGIT_BITS).rev().find(|at| bit(*at) == 1) else { return Some(0.0) };
    // Least bit of the significand. A small number has no bits below 2^-1074.
    let unit = (FRACTION_DIGITS * DIGIT_BITS).saturating_sub(shift);
    let least = (top + 1).saturating_sub(SIGNIFICAND_BITS).max(unit);
    let significand = (least..=top).rev().fold(0, |bits, at| bits << 1 | bit(at));
    let more = more || (0..least - 1).any(|at| bit(at) == 1);
    let up = bit(least - 1) == 1 && (more || significand & 1 == 1);
    // A significand of 53 bits adds one to the exponent, and so does one that is rounded up to 54 bits.
    let exponent = (least + shift - FRACTION_DIGITS * DIGIT_BITS) as u64;
    if exponent >= EXPONENT_MAX {
        return None;
    }
    let number = f64::from_bits((exponent << (SIGNIFICAND_BITS - 1)) + significand + u64::from(up));
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::{ADDITIONS_MAX, ExactSum};
    use proptest::prelude::*;

    fn sum(numbers: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        numbers.iter().for_each(|number| sum.add(*number));
        sum
    }

    fn finite() -> impl Strategy<Value = f64> {
        let any = prop_oneof![4 => proptest::num::f64::NORMAL, 1 => proptest::num::f64::SUBNORMAL];
        prop_oneof![any, -1e6..1e6, Just(f64::MAX), Just(-f64::MAX), Just(f64::from_bits(1)), Just(-0.0)]
    }

    proptest! {
        #[test]
        fn one_number_is_its_sum(number in finite()) {
            prop_assert_eq!(sum(&[number]).quotient(1), Some(number));
            // A division by a power of two is rounded by the processor as well.
            prop_assert_eq!(sum(&[number]).quotient(1 << 40), Some(number / (1_u64 << 40) as f64));
        }

        #[test]
        fn two_numbers_are_added_and_one_is_divided_as_by_the_processor(a in finite(), b in finite(), n in 1_u64..1 << 53) {
            prop_assert_eq!(sum(&[a, b]).quotient(1), Some(a + b).filter(|sum| sum.is_finite()));
            prop_assert_eq!(sum(&[a]).quotient(n), Some(a / n as f64));
        }

        #[test]
        fn a_sum_depends_on_no_order_and_no_division(
            numbers in proptest::collection::vec(finite(), 1..40), at in any::<prop::sample::Index>(), n: u64,
        ) {
            let n = n.max(1);
            let expected = sum(&numbers).quotient(n);
            let mut sorted = numbers.clone();
            sorted.sort_by(f64::total_cmp);
            prop_assert_eq!(sum(&sorted).quotient(n), expected);
            let (first, second) = numbers.split_at(at.index(numbers.len()));
            let mut merged = sum(first);
            merged.merge(&sum(second));
            prop_assert_eq!(merged.clone().quotient(n), expected);
            // What is added and subtracted has no effect.
            sorted.iter().for_each(|number| merged.add(-number));
            merged.add(0.5);
            prop_assert_eq!(merged.quotient(1), Some(0.5));
        }

        #[test]
        fn whole_numbers_are_rounded_as_by_the_processor(a: i128, n: i64, float in -1e15..1e15) {
            let float: f64 = float;
            let mut sum = sum(&[float.trunc()]);
            sum.add_integer(a >> 2);
            prop_assert_eq!(sum.quotient(1), Some(((a >> 2) + float.trunc() as i128) as f64));
            let mut integer = ExactSum::default();
            integer.add_integer(n.into());
            prop_assert_eq!(integer.quotient(1), Some(n as f64));
        }
    }

    #[test]
    fn delayed_carries_do_not_overflow() {
        for number in [f64::MAX, -f64::MAX, 3.0e-320] {
            let mut many = sum(&[number]);
            // Each digit is as large as after this many additions.
            many.digits.iter_mut().for_each(|digit| *digit *= i64::from(ADDITIONS_MAX - 1));
            many.additions = ADDITIONS_MAX - 1;
            many.add(number);
            assert_eq!(many.additions, 0);
            assert_eq!(many.clone().quotient(u64::from(ADDITIONS_MAX)), Some(number));
            for _ in 0..5 {
                many.carry();
                many.merge(&many.clone());
            }
            assert!(many.digits.len() <= 6, "{number}");
            assert_eq!(many.quotient(u64::from(ADDITIONS_MAX) * 32), Some(number));
        }
    }

    #[test]
    fn an_empty_sum_is_zero() {
        assert_eq!(ExactSum::default().quotient(3), Some(0.0));
        assert_eq!(sum(&[0.0, -0.0]).quotient(1), Some(0.0));
    }
}
