//! Sizes in human-readable form: `512`, `4K`, `2KiB`, `32G`.

use serde::de::{self, Deserializer, Visitor};
use std::fmt;

/// Parses a size in bytes. `k`, `M`, `G`, `T` are powers of 1024, with or without `iB` or `B`.
///
/// # Errors
/// Returns a sentence that names the invalid text and the accepted forms.
pub fn parse(text: &str) -> Result<u64, String> {
    let t = text.trim();
    let bad =
        || format!("'{text}' is not a size; write bytes or a number with K, M, G or T, such as 4K or 32GiB");
    let split = t.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(t.len());
    let (number, unit) = t.split_at(split);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(bad()),
    };
    let number = number.replace('_', "");
    // Integers are exact. Only other numbers are computed as floats.
    if let Ok(n) = number.parse::<u64>() {
        return n.checked_mul(1 << shift).ok_or_else(|| format!("'{text}' is larger than 2^64 bytes"));
    }
    let f: f64 = number.parse().map_err(|_| bad())?;
    let bytes = f * (1u64 << shift) as f64;
    if !(0.0..1.8e19).contains(&bytes) {
        return Err(format!("'{text}' is larger than 2^64 bytes"));
    }
    Ok(bytes.round() as u64)
}

/// Formats a size with the largest unit that divides it, or with one decimal.
#[must_use]
pub fn format(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut power = 0;
    while power + 1 < UNITS.len() && bytes >> (10 * (power + 1)) > 0 {
        power += 1;
    }
    let whole = bytes >> (10 * power);
    if whole << (10 * power) == bytes {
        format!("{whole} {}", UNITS[power])
    } else {
        format!("{:.1} {}", bytes as f64 / (1u64 << (10 * power)) as f64, UNITS[power])
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = u64;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size: bytes, or a text such as \"4K\" or \"32GiB\"")
    }
    fn visit_u64<E: de::Error>(self, v: u64) -> Result<u64, E> {
        Ok(v)
    }
    fn visit_i64<E: de::Error>(self, v: i64) -> Result<u64, E> {
        u64::try_from(v).map_err(|_| E::custom("a size cannot be negative"))
    }
    fn visit_str<E: de::Error>(self, v: &str) -> Result<u64, E> {
        parse(v).map_err(E::custom)
    }
}

/// Deserializes a size for `#[serde(deserialize_with)]`: a number of bytes, or a text that
/// [`parse`] accepts.
///
/// # Errors
/// Returns the error of [`parse`].
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    d.deserialize_any(SizeVisitor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_as_people_write_them() {
        for (text, bytes) in
            [("512", 512), ("4K", 4096), ("2KiB", 2048), ("1.5k", 1536), ("32 G", 32 << 30), ("1_000", 1000)]
        {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "x", "4Q", "-1", "99999999999T", "1e9", ".", "nan"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_print_and_parse_back() {
        for bytes in [0, 1, 512, 4096, 3 << 20, 32 << 30] {
            assert_eq!(parse(&format(bytes)), Ok(bytes));
        }
        assert_eq!(format(1536), "1.5 KiB");
    }
}
