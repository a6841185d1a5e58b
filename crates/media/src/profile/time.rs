//! Times with a unit: `75.5 us`, `1.5 ms`, `833 ps`. A number without a unit is refused.

use frit_core::Nanos;
use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

/// A time in picoseconds, since a bus transfers a byte in less than a nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Picos(pub u64);

const UNITS: [(&str, u64); 6] = [
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("µs", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];

/// Longest time accepted: one hour.
const MAX_PS: f64 = 3_600e12;

impl Picos {
    /// Parses a number with a unit.
    ///
    /// # Errors
    /// A sentence that states the problem and the accepted form.
    pub fn parse(text: &str) -> Result<Picos, String> {
        let t = text.trim();
        let bad =
            || format!("'{text}' is not a time; write a number and ps, ns, us, ms or s, such as \"75.5 us\"");
        let split = t.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
        let (number, unit) = (&t[..split], t[split..].trim());
        let (_, ps) = UNITS.iter().find(|(u, _)| *u == unit).ok_or_else(bad)?;
        let number: f64 = number.parse().map_err(|_| bad())?;
        let total = number * *ps as f64;
        if !(0.0..=MAX_PS).contains(&total) {
            return Err(format!("'{text}' is longer than an hour, which no command takes"));
        }
        Ok(Picos(total.round() as u64))
    }

    /// Rounds to nanoseconds.
    #[must_use]
    pub fn nanos(self) -> Nanos {
        Nanos((self.0 + 500) / 1000)
    }
}

impl std::fmt::Display for Picos {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (unit, ps) = match self.0 {
            0..1_000 => ("ps", 1.0),
            1_000..1_000_000 => ("ns", 1e3),
            1_000_000..1_000_000_000 => ("us", 1e6),
            1_000_000_000..1_000_000_000_000 => ("ms", 1e9),
            _ => ("s", 1e12),
        };
        write!(f, "{} {unit}", self.0 as f64 / ps)
    }
}

impl Serialize for Picos {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Picos {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Picos, D::Error> {
        struct V;
        impl de::Visitor<'_> for V {
            type Value = Picos;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a time with its unit, such as \"75.5 us\"")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Picos, E> {
                Picos::parse(v).map_err(E::custom)
            }
        }
        d.deserialize_any(V)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_parse_as_people_write_them() {
        for (text, ps) in [
            ("75.5 us", 75_500_000),
            ("62.301us", 62_301_000),
            ("833 ps", 833),
            ("1.5 ms", 1_500_000_000),
            ("2 s", 2_000_000_000_000),
            (" 3 µs ", 3_000_000),
            ("0 ns", 0),
        ] {
            assert_eq!(Picos::parse(text), Ok(Picos(ps)), "{text}");
        }
        for text in ["", "25", "us", "-1 us", "1 m", "1.2.3 ns", "1e3 ns", "99999 s", "5 us 3"] {
            assert!(Picos::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn times_print_and_parse_back(ps in 0u64..3_600_000_000_000_000) {
            prop_assert_eq!(Picos::parse(&Picos(ps).to_string()), Ok(Picos(ps)));
        }
    }
}
