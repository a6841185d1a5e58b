//! Values of fields.

use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Number of a field.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    /// Reads a decimal number with an optional sign, fraction and exponent. Spaces around it are ignored.
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
            _ => self.as_f64().total_cmp(&other.as_f64()),
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
    /// Value of JSON.
    Json(&'a Value),
}

impl<'a> Cell<'a> {
    /// Returns the number, if the field is one. Strings of JSON are not.
    pub(crate) fn number(&self) -> Option<Number> {
        match self {
            Self::Csv(text) => Number::parse(text),
            Self::Json(Value::Number(number)) => Number::from_json(number),
            Self::Json(_) | Self::Missing => None,
        }
    }

    /// Returns the text: the string, or the JSON form of another value.
    pub(crate) fn text(&self) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Missing => None,
            Self::Csv(text) => Some(Cow::Borrowed(text)),
            Self::Json(Value::String(text)) => Some(Cow::Borrowed(text.as_bytes())),
            Self::Json(value) => Some(Cow::Owned(value.to_string().into_bytes())),
        }
    }
}
