//! Parsing of parameter values.

use frit_core::{Error, Result, size};
use std::str::FromStr;
use strum::VariantNames;

/// Parses a policy or keyword. The error lists the valid names.
pub(crate) fn parse_name<P: FromStr + VariantNames>(key: &str, name: &str) -> Result<P> {
    name.parse().map_err(|_| Error::param(key, name, format!("there are {}", P::VARIANTS.join(", "))))
}

/// Parses a number.
pub(crate) fn parse_number<V: FromStr>(key: &str, value: &str) -> Result<V> {
    let why = "is not a number, or is out of range";
    value.trim().parse().map_err(|_| Error::param(key, value, why))
}

/// Parses `true` or `false`.
pub(crate) fn parse_bool(key: &str, value: &str) -> Result<bool> {
    value.trim().parse().map_err(|_| Error::param(key, value, "is neither true nor false"))
}

/// Parses a size in bytes.
pub(crate) fn parse_size(key: &str, value: &str) -> Result<u64> {
    size::parse(value).map_err(|why| Error::param(key, value, why))
}
