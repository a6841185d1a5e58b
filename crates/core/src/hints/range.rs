//! [`HintRange`]: the rule that gives a hint to a range of a volume.

use super::Hints;
use crate::size;
use std::fmt;
use std::str::FromStr;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A hint that a rule can give.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum HintKind {
    /// Metadata or journal of a file system.
    Metadata,
    /// Data that is written again soon.
    Hot,
    /// Data that is not written again soon.
    Cold,
}

impl HintKind {
    /// Returns the hint as a set.
    #[must_use]
    pub fn hints(self) -> Hints {
        match self {
            HintKind::Metadata => Hints::METADATA,
            HintKind::Hot => Hints::HOT,
            HintKind::Cold => Hints::COLD,
        }
    }

    /// Parses the name of a hint.
    ///
    /// # Errors
    /// A sentence that names the text and the possible names.
    pub fn parse(text: &str) -> Result<HintKind, String> {
        text.trim()
            .parse()
            .map_err(|_| format!("'{text}' is not a hint; the hints are metadata, hot and cold"))
    }
}

impl fmt::Display for HintKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.into())
    }
}

/// A rule: every write to a range of the volume has a hint.
///
/// Text form: `OFFSET+LENGTH=HINT`, such as `1G+64M=metadata`. Offset and length are in bytes and
/// take the suffixes of [`crate::size`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HintRange {
    at: u64,
    len: u64,
    kind: HintKind,
}

impl HintRange {
    /// Creates a rule.
    ///
    /// # Errors
    /// An empty range, or one that ends beyond 2^64.
    pub fn new(at: u64, len: u64, kind: HintKind) -> Result<HintRange, String> {
        if len == 0 {
            return Err("a range of length 0 contains no byte".into());
        }
        match at.checked_add(len) {
            Some(_) => Ok(HintRange { at, len, kind }),
            None => Err(format!("a range of {len} bytes at {at} ends beyond 2^64")),
        }
    }

    /// Returns the first byte.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Returns the end of the range, exclusive.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.at + self.len
    }

    /// Returns the hint.
    #[must_use]
    pub fn kind(&self) -> HintKind {
        self.kind
    }
}

impl FromStr for HintRange {
    type Err = String;

    fn from_str(text: &str) -> Result<HintRange, String> {
        let bad = || format!("'{text}' is not OFFSET+LENGTH=HINT, such as 1G+64M=metadata");
        let (range, kind) = text.split_once('=').ok_or_else(bad)?;
        let (at, len) = range.split_once('+').ok_or_else(bad)?;
        HintRange::new(size::parse(at)?, size::parse(len)?, HintKind::parse(kind)?)
            .map_err(|why| format!("'{text}': {why}"))
    }
}

impl fmt::Display for HintRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}={}", Exact(self.at), Exact(self.len), self.kind)
    }
}

/// A size with the largest suffix that divides it, which parses to the same number.
struct Exact(u64);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exact(bytes) = *self;
        let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
        match units.into_iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift) {
            Some((shift, unit)) => write!(f, "{}{unit}", bytes >> shift),
            None => write!(f, "{bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_a_text_form() {
        let rule: HintRange = "1G+64M=metadata".parse().unwrap();
        assert_eq!(
            (rule.at(), rule.end(), rule.kind()),
            (1 << 30, (1 << 30) + (64 << 20), HintKind::Metadata)
        );
        for text in ["0+4K=hot", "1536+513=cold", "3T+1025K=metadata", "0+1=hot"] {
            let rule: HintRange = text.parse().unwrap();
            assert_eq!(rule.to_string(), text);
        }
        assert_eq!("0+1024 = cold".parse::<HintRange>().unwrap().to_string(), "0+1K=cold");
    }

    #[test]
    fn what_is_no_rule_is_refused_with_its_reason() {
        let why = |text: &str| text.parse::<HintRange>().unwrap_err();
        assert!(why("4K=hot").contains("OFFSET+LENGTH=HINT"));
        assert!(why("0+4K").contains("OFFSET+LENGTH=HINT"));
        assert!(why("0+4K=warm").contains("metadata, hot and cold"));
        assert!(why("0+0=hot").contains("length 0"));
        assert!(why("18446744073709551615+2=hot").contains("2^64"));
        assert!(why("x+4K=hot").contains("'x'"));
    }
}
