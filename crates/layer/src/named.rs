//! Values of parameters from text.

use frit_core::{Error, Result, size};
use std::str::FromStr;
use strum::VariantNames;

/// Finds a policy or a keyword by name, or says which there are.
pub(crate) fn named<P: FromStr + VariantNames>(key: &str, name: &str) -> Result<P> {
    name.parse().map_err(|_| Error::param(key, name, format!("there are {}", P::VARIANTS.join(", "))))
}

/// A number.
pub(crate) fn number<V: FromStr>(key: &str, value: &str) -> Result<V> {
    let why = "is no number, or too large or too small for it";
    value.trim().parse().map_err(|_| Error::param(key, value, why))
}

/// True or false.
pub(crate) fn switch(key: &str, value: &str) -> Result<bool> {
    value.trim().parse().map_err(|_| Error::param(key, value, "is neither true nor false"))
}

/// A size in bytes.
pub(crate) fn size_of(key: &str, value: &str) -> Result<u64> {
    size::parse(value).map_err(|why| Error::param(key, value, why))
}
