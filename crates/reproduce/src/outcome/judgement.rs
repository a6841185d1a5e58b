//! Verdicts on claims, and their text.

use std::fmt;

/// Judgement of a claim, or of one part of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    /// The judged aspect.
    pub aspect: JudgedAspect,
    /// `true` if the measurement agrees; `None` if there is nothing to count.
    pub holds: Option<bool>,
    /// Deviation of the measured value; `None`: not shown.
    pub deviation: Option<Deviation>,
}

/// Aspect of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JudgedAspect {
    /// The claim as a whole.
    Claim,
    /// Direction of a change.
    Direction,
    /// A value.
    Value,
    /// A value that is an input, and so the published one.
    Input,
}

/// Deviation of a measured value.
#[derive(Clone, PartialEq, Debug)]
pub enum Deviation {
    /// From a band of values.
    Band {
        /// Measured value.
        value: f64,
        /// Lower bound.
        least: f64,
        /// Upper bound; `None`: no limit.
        most: Option<f64>,
    },
    /// From a published change, in percentage points.
    Points(f64),
}

impl Judgement {
    /// Returns a judgement without a deviation.
    pub(crate) fn of(aspect: JudgedAspect, holds: Option<bool>) -> Judgement {
        Judgement { aspect, holds, deviation: None }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(holds) = self.holds else { return f.write_str("nothing to count") };
        f.write_str(match self.aspect {
            JudgedAspect::Claim | JudgedAspect::Input => "",
            JudgedAspect::Direction => "direction ",
            JudgedAspect::Value => "value ",
        })?;
        f.write_str(match (holds, self.aspect) {
            (true, JudgedAspect::Input) => "the same",
            (true, _) => "agrees",
            (false, _) => "DIFFERS",
        })?;
        match &self.deviation {
            Some(Deviation::Band { least, most, .. }) if holds => write!(f, " ({})", band(*least, *most)),
            Some(Deviation::Band { value, least, most }) => {
                write!(f, " ({value:.4}, {})", band(*least, *most))
            }
            Some(Deviation::Points(by)) if !holds => {
                f.write_str(&format!(" by {by:+.1} points").replace('-', "−"))
            }
            Some(Deviation::Points(_)) | None => Ok(()),
        }
    }
}

/// Returns a band of values as text.
fn band(least: f64, most: Option<f64>) -> String {
    match most {
        Some(most) => format!("{least}–{most}"),
        None => format!("at least {least}"),
    }
}

/// Returns the judgements of one claim as text.
pub(crate) fn claim_text(judgements: &[Judgement]) -> String {
    judgements.iter().map(Judgement::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the judgements of several claims as text.
pub(super) fn claims_text(claims: &[Vec<Judgement>]) -> String {
    claims.iter().map(|c| claim_text(c)).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judgements_name_what_is_judged_and_how_far_it_is_off() {
        let value = |holds, deviation| Judgement {
            aspect: JudgedAspect::Value,
            holds: Some(holds),
            deviation: Some(deviation),
        };
        let band = |most| Deviation::Band { value: 0.72049, least: 0.5, most };
        assert_eq!(value(false, band(Some(0.7))).to_string(), "value DIFFERS (0.7205, 0.5–0.7)");
        assert_eq!(value(true, band(None)).to_string(), "value agrees (at least 0.5)");
        assert_eq!(value(false, Deviation::Points(-21.23)).to_string(), "value DIFFERS by −21.2 points");
        assert_eq!(value(true, Deviation::Points(1.0)).to_string(), "value agrees");
        let of = |aspect, holds| Judgement::of(aspect, holds).to_string();
        assert_eq!(of(JudgedAspect::Input, Some(true)), "the same");
        assert_eq!(of(JudgedAspect::Claim, Some(false)), "DIFFERS");
        assert_eq!(of(JudgedAspect::Direction, None), "nothing to count");
        let both = [
            Judgement::of(JudgedAspect::Direction, Some(true)),
            Judgement::of(JudgedAspect::Value, Some(true)),
        ];
        assert_eq!(claim_text(&both), "direction agrees, value agrees");
    }
}
