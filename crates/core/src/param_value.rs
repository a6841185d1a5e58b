//! Parsing of parameter values.

use crate::{Error, Result, size};
use std::str::FromStr;
use strum::VariantNames;

/// Parses a policy or keyword.
///
/// # Errors
/// The name is unknown. The error lists the valid names.
pub fn parse_name<P: FromStr + VariantNames>(key: &str, name: &str) -> Result<P> {
    name.parse().map_err(|_| Error::param(key, name, format!("there are {}", P::VARIANTS.join(", "))))
}

/// Parses a number.
///
/// # Errors
/// The value is not a number, or is out of the range of `V`.
pub fn parse_number<V: FromStr>(key: &str, value: &str) -> Result<V> {
    let why = "is not a number, or is out of range";
    value.trim().parse().map_err(|_| Error::param(key, value, why))
}

/// Parses `true` or `false`.
///
/// # Errors
/// The value is neither of them.
pub fn parse_bool(key: &str, value: &str) -> Result<bool> {
    value.trim().parse().map_err(|_| Error::param(key, value, "is neither true nor false"))
}

/// Parses a size in bytes, as [`size::parse`] does.
///
/// # Errors
/// The value is not a size.
pub fn parse_size(key: &str, value: &str) -> Result<u64> {
    size::parse(value).map_err(|why| Error::param(key, value, why))
}
