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

    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            // Both are finite. The two zeros are equal.
            _ => self.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal),
        }
    }

    pub(crate) fn to_json(self) -> Value {
        match self {
            Self::Integer(integer) => integer.into(),
            Self::Float(float) => float.into(),
        }
    }
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
