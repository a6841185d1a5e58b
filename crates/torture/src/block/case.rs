//! Names of cases. With the stack, the seed and the version, a name reproduces a violation.
//!
//! `c12.1.345+6`: workload 12 of sampled cuts, second epoch, cut 345, whose recovery is cut at its
//! sixth cut.
//! `c12.1:0,4,7`: the same epoch with only three of its requests, and all cuts.

use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use strum::{EnumIter, EnumString, IntoStaticStr};

/// Kind of torture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EnumIter, EnumString, IntoStaticStr, Serialize)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum TortureMode {
    /// Power cuts sampled from longer runs.
    Cuts,
    /// All power cuts of short runs.
    Exhaustive,
    /// Backing files behind a page cache: crashes (`kill -9`) and power losses.
    Files,
    /// Damage: flipped bits; lost, misplaced and stale accesses.
    Damage,
    /// Errors of the host: EIO, ENOSPC, short writes.
    Errors,
    /// Program and erase failures, until no usable block is left.
    Wear,
}

impl TortureMode {
    /// Returns all modes.
    #[must_use]
    pub fn all() -> Vec<TortureMode> {
        use strum::IntoEnumIterator;
        TortureMode::iter().collect()
    }

    /// Returns the letter that the names of its cases begin with.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            TortureMode::Cuts => 'c',
            TortureMode::Exhaustive => 'x',
            TortureMode::Files => 'f',
            TortureMode::Damage => 'd',
            TortureMode::Errors => 'e',
            TortureMode::Wear => 'w',
        }
    }
}

/// A work item of a campaign, or a part of one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TortureCase {
    /// Mode.
    pub mode: TortureMode,
    /// Number of the workload.
    pub number: u32,
    /// Number of the epoch within the workload. Each later epoch starts from a crash of the one
    /// before.
    pub epoch: u32,
    /// Number of the cut or fault; all if `None`.
    pub cut: Option<u32>,
    /// Numbers of the cuts of the recovery, and of the recovery after that.
    pub nested: Vec<u32>,
    /// Indexes of the requests that are kept; all if empty.
    pub keep: Vec<u32>,
}

impl TortureCase {
    /// Creates the case of a whole workload.
    #[must_use]
    pub fn workload(mode: TortureMode, number: u32) -> TortureCase {
        TortureCase { mode, number, epoch: 0, cut: None, nested: Vec::new(), keep: Vec::new() }
    }

    /// Returns the case of one cut of this workload.
    #[must_use]
    pub fn at(&self, epoch: u32, cut: u32) -> TortureCase {
        TortureCase { epoch, cut: Some(cut), nested: Vec::new(), ..self.clone() }
    }

    /// Returns the case of a cut of this case's recovery.
    #[must_use]
    pub fn inner(&self, cut: u32) -> TortureCase {
        let mut nested = self.nested.clone();
        nested.push(cut);
        TortureCase { nested, ..self.clone() }
    }
}

impl fmt::Display for TortureCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}.{}", self.mode.letter(), self.number, self.epoch)?;
        if let Some(cut) = self.cut {
            write!(f, ".{cut}")?;
        }
        for n in &self.nested {
            write!(f, "+{n}")?;
        }
        if !self.keep.is_empty() {
            let kept: Vec<String> = self.keep.iter().map(u32::to_string).collect();
            write!(f, ":{}", kept.join(","))?;
        }
        Ok(())
    }
}

impl Serialize for TortureCase {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl FromStr for TortureCase {
    type Err = String;

    fn from_str(text: &str) -> Result<TortureCase, String> {
        let wrong = || {
            format!(
                "'{text}' is not a case; examples, as violations print them: c12.0.345, c12.0.345+6, c12.0:1,4,7"
            )
        };
        use strum::IntoEnumIterator;
        let mode = TortureMode::iter().find(|m| text.starts_with(m.letter())).ok_or_else(wrong)?;
        let number = |t: &str| t.parse::<u32>().map_err(|_| wrong());
        let (place, keep) = match text[1..].split_once(':') {
            Some((place, keep)) => (place, keep.split(',').map(number).collect::<Result<_, _>>()?),
            None => (&text[1..], Vec::new()),
        };
        let mut plus = place.split('+');
        let mut dots = plus.next().ok_or_else(wrong)?.split('.');
        let workload = number(dots.next().ok_or_else(wrong)?)?;
        let epoch = dots.next().map(number).transpose()?.unwrap_or(0);
        let cut = dots.next().map(number).transpose()?;
        if dots.next().is_some() {
            return Err(wrong());
        }
        let nested = plus.map(number).collect::<Result<_, _>>()?;
        Ok(TortureCase { mode, number: workload, epoch, cut, nested, keep })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_printed_and_read() {
        for text in ["c12.0.345", "x0.1", "f7.0.2+6+8", "d3.0:1,4,7", "c1.0.5:2"] {
            assert_eq!(text.parse::<TortureCase>().map(|c| c.to_string()), Ok(text.to_string()));
        }
        assert_eq!("c9".parse::<TortureCase>().map(|c| c.to_string()), Ok("c9.0".to_string()));
        for text in ["", "q1", "c", "c1.2.3.4", "c1.x", "c1.0:", "c1+x"] {
            assert!(text.parse::<TortureCase>().is_err(), "{text}");
        }
    }
}
