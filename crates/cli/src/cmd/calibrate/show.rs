//! Text of a calibration.

use crate::output::{right, table, text};
use frit_calibrate::{Calibration, Delays, FittedParameter, PartScores, Predictor, Sample, Verdict};
use frit_core::size;
use std::fmt::Write;

/// Returns the result as text.
pub(super) fn text_of(c: &Calibration, sample: &Sample) -> String {
    let mut out = head(c, sample);
    let mut t = table(&["parameter", "profile", "calibrated", "", "95 % interval"]);
    for p in &c.parameters {
        let how = match (p.kept, p.verdict) {
            (true, _) => "kept",
            (false, Verdict::Fixed) => "",
            (false, _) => "fitted",
        };
        t.add_row([
            p.name.name().to_owned(),
            p.format(p.profile),
            p.format(p.fitted),
            how.into(),
            p.interval(),
        ]);
    }
    right(&mut t, 1);
    right(&mut t, 2);
    let _ = writeln!(out, "{}", text(&t));
    let _ = writeln!(out, "{}", notes(c));
    for (name, part) in [("fitted part", &c.fitted_part), ("held-out part", &c.held_out_part)] {
        let _ = writeln!(out, "{}", scores(name, part));
    }
    let _ = writeln!(out, "{}", quantiles(c));
    out += &sizes(c);
    out
}

fn head(c: &Calibration, sample: &Sample) -> String {
    let mut out = format!(
        "{}: {} reads and writes, {} fitted and the last {} held out; volume of {}\n",
        c.trace.name,
        sample.requests.len(),
        c.fitted_part.requests,
        c.held_out_part.requests,
        size::format(sample.volume_bytes)
    );
    let _ = writeln!(
        out,
        "queue depth of the host {}, {:.1} % of the requests overlap another one; {} replays",
        c.queue_depth,
        c.overlapping * 100.0,
        c.evaluations
    );
    if c.left_out > 0 {
        let _ =
            writeln!(out, "left out: {} flushes, discards and requests without a measured time", c.left_out);
    }
    out + "\n"
}

fn notes(c: &Calibration) -> String {
    let mut out = c.delays.as_ref().map_or_else(String::new, delays);
    let any = |f: &dyn Fn(&FittedParameter) -> bool| c.parameters.iter().any(f);
    if any(&|p| p.kept) {
        out += "kept: the trace does not exclude the value of the profile, and the other values are fitted to it\n";
    }
    if any(&|p| matches!(p.verdict, Verdict::NotTold)) {
        out += "not told by the trace: no value from bound to bound of the search makes the fit significantly worse\n";
    }
    if any(&|p| p.verdict == Verdict::NotExamined) {
        out += "not examined: the replays did not suffice; raise --evaluations\n";
    }
    out
}

/// Describes the delays that the model does not have.
fn delays(d: &Delays) -> String {
    format!(
        "delays: {:.1} % of the requests took more than 1.65 times the time of a fit to all requests, and {:.1} % were\n\
         faster than it allows. The drive does work that the model does not have, such as garbage collection. So the\n\
         values are fitted to the fastest requests of each kind. {:.1} % took more than 1.65 times the time of the\n\
         calibrated drive; the scores include them.\n",
        d.too_slow * 100.0,
        d.too_fast * 100.0,
        d.delayed * 100.0
    )
}

fn predictor(p: Predictor) -> &'static str {
    match p {
        Predictor::Calibrated => "calibrated",
        Predictor::Profile => "profile",
        Predictor::Constant => "constant latencies",
    }
}

fn scores(name: &str, part: &PartScores) -> String {
    let mut t = table(&[name, "mean us", "RMS us", "demerit us", "loss"]);
    t.add_row(["measured", &format!("{:.1}", part.measured_mean_us), "", "", ""]);
    for s in &part.scores {
        t.add_row([
            predictor(s.predictor).to_owned(),
            format!("{:.1}", s.mean_us),
            format!("{:.1}", s.rms_us),
            format!("{:.1}", s.demerit_us),
            format!("{:.4}", s.loss),
        ]);
    }
    (1..5).for_each(|c| right(&mut t, c));
    text(&t)
}

fn quantiles(c: &Calibration) -> String {
    let mut t =
        table(&["quantile, held out", "measured us", "calibrated us", "profile us", "constant latencies us"]);
    for row in &c.held_out_quantiles {
        let times = std::iter::once(row.measured_us).chain(row.modelled_us).map(|us| format!("{us:.1}"));
        t.add_row(std::iter::once(format!("{} %", round(row.quantile * 100.0))).chain(times));
    }
    (0..5).for_each(|c| right(&mut t, c));
    text(&t)
}

fn round(percent: f64) -> f64 {
    (percent * 10.0).round() / 10.0
}

fn sizes(c: &Calibration) -> String {
    let mut t = table(&["fitted part", "size", "requests", "measured median us", "calibrated median us"]);
    for row in &c.sizes {
        t.add_row([
            row.op.to_owned(),
            size::format(row.bytes),
            row.requests.to_string(),
            format!("{:.1}", row.measured_us),
            format!("{:.1}", row.calibrated_us),
        ]);
    }
    (1..5).for_each(|c| right(&mut t, c));
    text(&t)
}
