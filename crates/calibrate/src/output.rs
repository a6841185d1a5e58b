//! Files of a calibrated drive: a profile and a stack.

use crate::fit::{Calibration, FittedParameter};
use crate::identify::Verdict;
use crate::model::Model;
use crate::parameters::{Parameter, Unit};
use crate::score::{PartScores, Predictor};
use frit_media::profile::Picos;
use std::fmt::Write;

impl FittedParameter {
    /// Formats a value of the parameter with its unit.
    #[must_use]
    pub fn format(&self, value: f64) -> String {
        match self.unit {
            // Four digits: the search ends with steps of a hundredth of an octave.
            Unit::Ps => Picos(digits(value) as u64).to_string(),
            Unit::Us | Unit::NandPages if value == 0.0 => "none".into(),
            Unit::Us => format!("{value} us"),
            Unit::MbPerS if value == 0.0 => "no limit".into(),
            Unit::MbPerS => format!("{value} MB/s"),
            Unit::Units => format!("{value}"),
            Unit::NandPages if value == 1.0 => "1 NAND page".into(),
            Unit::NandPages => format!("{value} NAND pages"),
        }
    }

    /// Describes the interval.
    #[must_use]
    pub fn interval(&self) -> String {
        let end = |value: Option<f64>| value.map_or_else(String::new, |v| self.format(v));
        match self.verdict {
            Verdict::Told if self.low == self.high => format!("only {}", end(self.low)),
            Verdict::AtMost if self.high == Some(0.0) => format!("only {}", end(self.high)),
            Verdict::Told => format!("{} to {}", end(self.low), end(self.high)),
            Verdict::AtMost => format!("at most {}", end(self.high)),
            Verdict::AtLeast => format!("at least {}", end(self.low)),
            Verdict::NotTold => "not told by the trace".into(),
            Verdict::NotExamined => "not examined (--evaluations)".into(),
            Verdict::Fixed => "not fitted (--fit)".into(),
        }
    }
}

/// Rounds to four significant digits.
fn digits(value: f64) -> f64 {
    let unit = 10f64.powi((value.max(1.0).log10().floor() as i32 - 3).max(0));
    (value / unit).round() * unit
}

/// Describes the errors of the calibrated drive and of constant latencies on a part, in µs.
fn errors(part: &PartScores) -> String {
    let of = |p: Predictor| part.scores.iter().find(|s| s.predictor == p);
    let text = |p: Predictor| {
        of(p).map_or_else(String::new, |s| format!("RMS {:.1} us, demerit {:.1} us", s.rms_us, s.demerit_us))
    };
    format!("{} (constant latencies: {})", text(Predictor::Calibrated), text(Predictor::Constant))
}

/// Returns the source of the fitted values: the trace, its hash and the held-out error.
fn source(c: &Calibration) -> String {
    let hash = c.trace.sha256.as_deref().unwrap_or("unknown");
    format!(
        "frit calibrate, fitted to {} (SHA-256 {hash}){}; on the {} requests held out: {}",
        c.trace.name,
        if c.delays.is_some() { ", to its fastest requests because of delays" } else { "" },
        c.held_out_part.requests,
        errors(&c.held_out_part)
    )
}

/// Returns the profile of the calibrated drive as TOML. `name` is its name.
///
/// The capacity is that of the profile. Times outside the NAND and the write cache are not values of a
/// medium: [`stack_text`] has them.
#[must_use]
pub fn profile_text(model: &Model, c: &Calibration, name: &str) -> String {
    let g = &model.nand.geometry;
    let planes: u64 =
        [g.channels, g.chips_per_channel, g.dies_per_chip, g.planes_per_die].map(u64::from).iter().product();
    let all_blocks = planes * u64::from(g.blocks_per_plane);
    let keys = model.medium_keys(&c.settings, |planes| all_blocks.div_ceil(planes));
    let outside: Vec<String> = c
        .parameters
        .iter()
        .filter(|p| {
            let outside =
                [Parameter::ReadUs, Parameter::WriteUs, Parameter::LinkMbPerS, Parameter::MergeBuffer];
            outside.contains(&p.name)
        })
        .map(|p| format!("{} {}", p.name.name(), p.format(p.fitted)))
        .collect();
    let about = format!(
        "The NAND of {}, calibrated to {}. Outside the NAND, the fit has {}; --stack of frit calibrate writes a stack \
         with these values.",
        model.profile,
        c.trace.name,
        outside.join(", ")
    );
    let mut text = format!("name = {name:?}\nmedium = \"nand\"\nabout = {about:?}\n\n[values]\n");
    let _ = writeln!(text, "profile = {:?}", model.profile);
    for (key, value) in &keys {
        let _ = writeln!(text, "{key} = {value}");
    }
    let _ = writeln!(
        text,
        "\n[sources]\nprofile = \"The values that the trace does not tell, or does not exclude\""
    );
    for (key, _) in &keys {
        let fitted = c.parameters.iter().find(|p| p.name.name() == *key);
        let detail = match fitted {
            Some(p) => format!("; interval: {}", p.interval()),
            None if *key == "blocks_per_plane" => "; keeps the capacity of the profile".into(),
            None => {
                let units = c.parameters.iter().find(|p| p.name == Parameter::Units);
                units.map_or_else(String::new, |p| {
                    format!("; makes {} units, interval: {}", p.fitted, p.interval())
                })
            }
        };
        let _ = writeln!(text, "{key} = {:?}", format!("{}{detail}", source(c)));
    }
    text
}

/// Returns the stack of the calibrated drive as TOML, as large as the trace needs.
#[must_use]
pub fn stack_text(model: &Model, c: &Calibration) -> String {
    let about = format!("{}, {}", model.profile, source(c));
    format!("about = {about:?}\n\n{}", model.stack_text(&c.settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_four_digits_and_a_unit() {
        assert_eq!([833.0, 123_456.0, 99_999_999.0].map(digits), [833.0, 123_500.0, 1e8]);
        let p = FittedParameter {
            name: Parameter::TRead,
            unit: Unit::Ps,
            profile: 8e7,
            fitted: 123_456_789.0,
            kept: false,
            verdict: Verdict::AtMost,
            low: None,
            high: Some(2e8),
        };
        assert_eq!((p.format(p.fitted), p.interval()), ("123.5 us".into(), "at most 200 us".into()));
    }
}
