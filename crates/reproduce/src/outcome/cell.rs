//! Cells of tables: typed values, and their text.

use super::Judgement;
use super::format::{change, count, seconds};
use super::judgement::claims_text;
use frit_core::size;
use std::fmt;

/// A cell of a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// A name, or other words.
    Text(String),
    /// No value: a dash.
    Missing,
    /// An integer, with thousands separators.
    Count(u64),
    /// A number.
    Number {
        /// The number.
        value: f64,
        /// Number of decimals.
        decimals: usize,
        /// Text behind the number, such as ` ns`.
        unit: &'static str,
    },
    /// A difference in percent, with its sign and two decimals.
    Difference(f64),
    /// A ratio, as a change in percent with its sign.
    Change(f64),
    /// A value of a metric: an integer with thousands separators, or a number with three decimals.
    Value(f64),
    /// A measured value, with its change relative to the published value, which is not zero.
    Measured {
        /// Measured value.
        value: f64,
        /// Published value.
        published: f64,
    },
    /// A size in bytes, with the largest unit.
    Size(u64),
    /// A duration in seconds, with the most readable unit.
    Duration(f64),
    /// Verdicts on claims, each with the judgements of its parts; a dash without claims.
    Verdict(Vec<Vec<Judgement>>),
}

impl Cell {
    /// Returns a cell with these words.
    pub(crate) fn text(words: &str) -> Cell {
        Cell::Text(words.to_owned())
    }

    /// Returns a cell with a name, or without one.
    pub(crate) fn name(name: Option<&str>) -> Cell {
        name.map_or(Cell::Missing, Cell::text)
    }

    /// Returns a number without a unit.
    pub(crate) fn number(value: f64, decimals: usize) -> Cell {
        Cell::Number { value, decimals, unit: "" }
    }

    /// Returns a number with the text of its unit.
    pub(crate) fn with_unit(value: f64, decimals: usize, unit: &'static str) -> Cell {
        Cell::Number { value, decimals, unit }
    }

    /// Returns a share as a percentage with this many decimals.
    pub(crate) fn percent(share: f64, decimals: usize) -> Cell {
        Cell::Number { value: share * 100.0, decimals, unit: " %" }
    }

    /// Returns the verdict on one claim.
    pub(crate) fn verdict(judgements: Vec<Judgement>) -> Cell {
        Cell::Verdict(vec![judgements])
    }

    /// Returns a duration in seconds; `None` for other cells.
    pub(super) fn duration(&self) -> Option<f64> {
        match self {
            Cell::Duration(seconds) => Some(*seconds),
            _ => None,
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Text(words) => f.write_str(words),
            Cell::Missing => f.write_str("–"),
            Cell::Count(n) => f.write_str(&count(*n)),
            Cell::Number { value, decimals, unit } => {
                let decimals = *decimals;
                write!(f, "{value:.decimals$}{unit}")
            }
            Cell::Difference(percent) => write!(f, "{percent:+.2} %"),
            Cell::Change(ratio) => f.write_str(&change(*ratio)),
            Cell::Value(v) if v.fract() == 0.0 && *v >= 0.0 => f.write_str(&count(*v as u64)),
            Cell::Value(v) => write!(f, "{v:.3}"),
            Cell::Measured { value, published } => {
                write!(f, "{} ({})", Cell::Value(*value), change(value / published))
            }
            Cell::Size(bytes) => f.write_str(&size::format(*bytes)),
            Cell::Duration(s) => f.write_str(&seconds(*s)),
            Cell::Verdict(claims) if claims.is_empty() => f.write_str("–"),
            Cell::Verdict(claims) => f.write_str(&claims_text(claims)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::JudgedAspect;

    #[test]
    fn cells_show_their_values_and_units() {
        let shown = |cells: &[Cell]| cells.iter().map(Cell::to_string).collect::<Vec<_>>();
        assert_eq!(shown(&[Cell::Value(67595.0), Cell::Value(1.5301)]), ["67,595", "1.530"]);
        assert_eq!(shown(&[Cell::Missing, Cell::name(None), Cell::name(Some("A"))]), ["–", "–", "A"]);
        assert_eq!(
            shown(&[Cell::number(1.0153, 4), Cell::with_unit(33.3, 0, " ns"), Cell::percent(0.0701, 2)]),
            ["1.0153", "33 ns", "7.01 %"]
        );
        assert_eq!(
            shown(&[Cell::Measured { value: 1.1, published: 1.0 }, Cell::Difference(-0.634)]),
            ["1.100 (+10.0 %)", "-0.63 %"]
        );
        assert_eq!(shown(&[Cell::Size(8192), Cell::Duration(0.0125)]), ["8 KiB", "12.5 ms"]);
    }

    #[test]
    fn verdicts_are_separated_by_claims() {
        let agrees = Judgement::of(JudgedAspect::Claim, Some(true));
        let two = Cell::Verdict(vec![vec![agrees.clone()], vec![agrees]]);
        assert_eq!(two.to_string(), "agrees; agrees");
        assert_eq!(Cell::Verdict(Vec::new()).to_string(), "–");
    }
}
