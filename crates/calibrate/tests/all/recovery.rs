//! Known values come back from the trace of a drive, and values without effect are not told.

use crate::synthetic::{Workload, drive};
use frit_calibrate::{Calibration, FitOptions, Parameter, Predictor, Verdict};

fn fit(profile: &str, truth: &[(Parameter, u64)], w: &Workload) -> (Calibration, frit_calibrate::Settings) {
    let (model, sample, settings) = drive(profile, truth, w);
    let c = Calibration::run(&model, &sample, &FitOptions::default(), &mut |_| {}).unwrap();
    (c, settings)
}

fn loss(c: &Calibration, predictor: Predictor) -> f64 {
    c.held_out_part.scores.iter().find(|s| s.predictor == predictor).unwrap().loss
}

#[test]
fn known_values_come_back() {
    use Parameter::{ReadUs, TErase, TProg, TRead, Units, WriteUs};
    let truth = [(TRead, 90_000_000), (TProg, 700_000_000), (Units, 4), (ReadUs, 150), (WriteUs, 60)];
    let w = Workload { requests: 1000, pages_max: 64, gap_us: 4000.0, depth: 8, noise: 0.05 };
    let (c, settings) = fit("tlc-2020", &truth, &w);
    for p in &c.parameters {
        // A link of 0 MB/s has no limit.
        let value = match settings.get(p.name) {
            0 if p.name == Parameter::LinkMbPerS => f64::INFINITY,
            value => value as f64,
        };
        assert_ne!(p.verdict, Verdict::NotExamined, "{:?}", p.name);
        assert!(p.low.is_none_or(|low| low <= value), "{:?}: {value} below {:?}", p.name, p.low);
        assert!(p.high.is_none_or(|high| high >= value), "{:?}: {value} above {:?}", p.name, p.high);
    }
    let of = |name| c.parameters.iter().find(|p| p.name == name).unwrap();
    assert_eq!((of(Units).fitted, of(TErase).verdict), (4.0, Verdict::NotTold));
    for (name, value) in truth {
        let error = of(name).fitted / value as f64 - 1.0;
        assert!(error.abs() < 0.1, "{name:?}: {error}");
    }
    for name in [TProg, Units, ReadUs, WriteUs] {
        assert_eq!(of(name).verdict, Verdict::Told, "{name:?}");
    }
    // The noise alone has a mean loss of 0.05² / 2.
    assert!(loss(&c, Predictor::Calibrated) < 0.002);
    assert!(loss(&c, Predictor::Constant) > 0.05 && loss(&c, Predictor::Profile) > 0.05);
}

#[test]
fn one_size_and_one_request_at_a_time_tell_neither_parallelism_nor_rates() {
    use Parameter::{BusPerByte, LinkMbPerS, ReadUs, TErase, TProg, TRead, Units, WriteUs};
    let w = Workload { requests: 800, pages_max: 1, gap_us: 100_000.0, depth: 1, noise: 0.05 };
    let (c, _) = fit("tlc-2020", &[(TRead, 90_000_000), (ReadUs, 40)], &w);
    let of = |name| c.parameters.iter().find(|p| p.name == name).unwrap();
    for name in [TErase, Units] {
        assert_eq!((of(name).verdict, of(name).kept), (Verdict::NotTold, true), "{name:?}");
    }
    // Only the sums of these times are told: each can be zero, and each has an upper bound.
    for name in [BusPerByte, TRead, ReadUs, WriteUs] {
        assert_eq!(of(name).verdict, Verdict::AtMost, "{name:?}");
    }
    assert_eq!(of(LinkMbPerS).verdict, Verdict::AtLeast);
    assert!(matches!(of(TProg).verdict, Verdict::AtMost | Verdict::NotTold));
    // 90 + 40 µs and the transfer of 4 KiB.
    let read = c.sizes.iter().find(|s| s.op == "read").unwrap();
    assert!((read.calibrated_us / 133.4 - 1.0).abs() < 0.02, "{read:?}");
}

#[test]
fn a_calibration_repeats_exactly() {
    let w = Workload { requests: 400, pages_max: 16, gap_us: 3000.0, depth: 2, noise: 0.2 };
    let (model, sample, _) = drive("slc-k9-2016", &[(Parameter::ReadUs, 77)], &w);
    let options = FitOptions { evaluations: 300, ..FitOptions::default() };
    let mut counts = Vec::new();
    let first = Calibration::run(&model, &sample, &options, &mut |n| counts.push(n)).unwrap();
    let second = Calibration::run(&model, &sample, &options, &mut |_| {}).unwrap();
    assert_eq!((&first.parameters, &first.held_out_part), (&second.parameters, &second.held_out_part));
    assert!(first.evaluations <= 300 && counts.last() == Some(&first.evaluations));
    // The limit of replays shows where it matters.
    assert!(first.parameters.iter().any(|p| p.verdict == Verdict::NotExamined));
}

#[test]
fn parameters_that_are_not_fitted_keep_the_profile() {
    let w = Workload { requests: 400, pages_max: 16, gap_us: 3000.0, depth: 2, noise: 0.05 };
    let (model, sample, _) = drive("slc-k9-2016", &[(Parameter::ReadUs, 300)], &w);
    let options = FitOptions { evaluations: 400, parameters: vec![Parameter::ReadUs] };
    let c = Calibration::run(&model, &sample, &options, &mut |_| {}).unwrap();
    for p in &c.parameters {
        if p.name == Parameter::ReadUs {
            assert!((p.fitted / 300.0 - 1.0).abs() < 0.03 && p.verdict == Verdict::Told, "{p:?}");
        } else {
            assert_eq!((p.verdict, p.fitted), (Verdict::Fixed, p.profile));
        }
    }
}
