//! Values of fields.

use super::json::decode;
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Number of a field: an integer of 64 bits, or else the nearest floating-point number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    /// Reads a decimal number with an optional sign, fraction and exponent. Spaces around it are ignored. A
    /// number beyond the largest floating-point number is a text.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = text.trim_ascii();
        // Names such as `inf` and `nan` are texts.
        if !text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        if let Ok(integer) = text.parse() {
            return Some(Self::Integer(integer));
        }
        text.parse().ok().filter(|float: &f64| float.is_finite()).map(Self::Float)
    }

    pub(crate) fn from_json(number: &serde_json::Number) -> Option<Self> {
        number.as_i64().map(Self::Integer).or_else(|| number.as_f64().map(Self::Float))
    }

    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Float(float) => float,
        }
    }

    /// Compares the values, without any rounding.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            (Self::Integer(a), Self::Float(b)) => compare_mixed(a, b),
            (Self::Float(a), Self::Integer(b)) => compare_mixed(b, a).reverse(),
            (Self::Float(a), Self::Float(b)) => compare_floats(a, b),
        }
    }

    pub(crate) fn to_json(self) -> Value {
        match self {
            Self::Integer(integer) => integer.into(),
            Self::Float(float) => float.into(),
        }
    }
}

/// Compares an integer with a finite floating-point number. The integer may have no equal one.
fn compare_mixed(integer: i64, float: f64) -> Ordering {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0; // 2^63, behind the largest integer
    if float >= BEYOND {
        return Ordering::Less;
    }
    if float < -BEYOND {
        return Ordering::Greater;
    }
    let whole = float.trunc();
    integer.cmp(&(whole as i64)).then_with(|| compare_floats(whole, float))
}

/// Compares finite numbers. The two zeros are equal.
fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// Value of a field in a record.
#[derive(Clone, Debug)]
pub(crate) enum Cell<'a> {
    /// The record does not have the field, or it is `null`.
    Missing,
    /// Field of CSV: a text, and a number if it is written as one.
    Csv(&'a [u8]),
    /// Value of JSON: its text in the file, whose syntax is right.
    Json(&'a [u8]),
}

impl<'a> Cell<'a> {
    /// Returns the number, if the field is one. Strings of JSON are not.
    pub(crate) fn number(&self) -> Option<Number> {
        match self {
            Self::Csv(text) | Self::Json(text) => Number::parse(text),
            Self::Missing => None,
        }
    }

    /// Returns the truth value, if the field is one. Strings of JSON are not.
    pub(crate) fn boolean(&self) -> Option<bool> {
        match self {
            Self::Csv(text) | Self::Json(text) => match text.trim_ascii() {
                b"true" => Some(true),
                b"false" => Some(false),
                _ => None,
            },
            Self::Missing => None,
        }
    }

    /// Returns the text: the string that is encoded, or another value as it is in the file.
    pub(crate) fn text(&self) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Missing => None,
            Self::Json([b'"', string @ .., b'"']) => Some(decode(string)),
            Self::Csv(text) | Self::Json(text) => Some(Cow::Borrowed(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Number;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    const EXPONENT_MAX: u32 = 1200;

    /// Value in units of 2^-1200, as digits in base 2^32, and its sign: a plain and slow form of a number.
    fn digits(number: Number) -> (bool, Vec<u32>) {
        let (negative, mantissa, shift) = match number {
            Number::Integer(integer) => (integer < 0, integer.unsigned_abs(), EXPONENT_MAX),
            Number::Float(float) => {
                let (bits, exponent) = (float.to_bits(), (float.to_bits() >> 52) as u32 & 0x7ff);
                let fraction = bits & ((1 << 52) - 1);
                let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
                (float.is_sign_negative(), mantissa, EXPONENT_MAX + exponent.max(1) - 1075)
            }
        };
        let mut digits = vec![0; 80];
        for bit in (0..64).filter(|bit| mantissa >> bit & 1 == 1) {
            digits[((bit + shift) / 32) as usize] |= 1 << ((bit + shift) % 32);
        }
        digits.reverse();
        (negative && mantissa != 0, digits)
    }

    fn plain_order(a: Number, b: Number) -> Ordering {
        match (digits(a), digits(b)) {
            ((false, a), (false, b)) => a.cmp(&b),
            ((true, a), (true, b)) => b.cmp(&a),
            ((is_negative, _), _) => {
                if is_negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }

    /// Numbers near the borders of what both kinds can hold.
    fn number() -> impl Strategy<Value = Number> {
        let near = prop_oneof![Just(0_i64), Just(1 << 53), Just(-1 << 53), Just(i64::MIN), Just(i64::MAX)];
        let integer = (near, -3_i64..=3).prop_map(|(near, more)| near.saturating_add(more));
        let integer = prop_oneof![integer, any::<i64>()];
        let float = (integer.clone(), -2_i64..=2, -0.9..0.9).prop_map(|(near, steps, fraction)| {
            f64::from_bits((near as f64).to_bits().wrapping_add_signed(steps)) + fraction
        });
        let float = prop_oneof![float, proptest::num::f64::NORMAL, Just(-0.0)];
        prop_oneof![
            integer.prop_map(Number::Integer),
            float.prop_filter("finite", |float| float.is_finite()).prop_map(Number::Float)
        ]
    }

    proptest! {
        #[test]
        fn numbers_are_compared_exactly(a in number(), b in number()) {
            prop_assert_eq!(a.compare(b), plain_order(a, b));
        }
    }

    #[test]
    fn integers_that_no_float_has_are_compared_exactly() {
        let order = |a: &str, b: &str| {
            Number::parse(a.as_bytes()).unwrap().compare(Number::parse(b.as_bytes()).unwrap())
        };
        assert_eq!(order("9007199254740992.0", "9007199254740993"), Ordering::Less);
        assert_eq!(order("9223372036854775807", "9223372036854775808"), Ordering::Less);
        assert_eq!(order("-9223372036854775808", "-9.223372036854775808e18"), Ordering::Equal);
        assert_eq!(order("-9223372036854775807", "-9.3e18"), Ordering::Greater);
        assert_eq!(order("-9223372036854775808", "-9.3e18"), Ordering::Greater);
        assert_eq!(order("-1", "-0.5"), Ordering::Less);
        assert_eq!(order("0", "-0.0"), Ordering::Equal);
    }
}
