//! Traces and profiles that cannot be used: one error each.

use crate::synthetic::read;
use frit_calibrate::{Calibration, FitOptions, Model, Sample};
use std::path::Path;

fn lines(n: usize, service: &str) -> String {
    (0..n).map(|i| format!("{},a,0,Read,{},4096,{service}\n", 1000 + i * 1000, i * 4096)).collect()
}

fn told(text: &str, hold_out: f64) -> String {
    Sample::new(&read(text).unwrap(), hold_out).unwrap_err().to_string()
}

#[test]
fn traces_without_usable_times_are_refused() {
    let none: String = (0..300).map(|i| format!("{},a,0,Read,0,4096\n", 1000 + i)).collect();
    assert!(
        told(&none, 0.3).contains("has no measured service times; formats that have them: biotracer, msr")
    );
    let zero = lines(200, "35") + &lines(3, "0") + &lines(200, "35");
    let e = told(&zero, 0.3);
    assert!(e.contains("3 of 403 service times are not above zero") && e.contains("request 201"), "{e}");
    let negative: String = (0..400)
        .map(|i| {
            let end = if i == 7 { "1.000002" } else { "1.000009" };
            format!("0\t8\t4096\t0\t1.000001\t1.000002\t1.000003\t{end}\n")
        })
        .collect();
    let e = told(&negative, 0.3);
    assert!(e.contains("1 of 400 service times") && e.contains("-1000 ns, of request 8"), "{e}");
}

#[test]
fn short_traces_are_refused() {
    let e = told(&lines(150, "35"), 0.3);
    assert!(e.contains("105 measured reads and writes to fit and 45 to hold out"), "{e}");
    assert!(told(&lines(1000, "35"), 0.05).contains("50 to hold out; each part needs at least 100"));
    assert!(Sample::new(&read(&lines(1000, "35")).unwrap(), 0.1).is_ok());
}

#[test]
fn other_media_are_refused() {
    let told = |name: &str| Model::check(name, Path::new("")).unwrap_err().to_string();
    let e = told("pcm-p8p-2016");
    assert!(
        e.contains("'pcm-p8p-2016' describes") && e.contains("a pcm medium") && e.contains("needs NAND"),
        "{e}"
    );
    for disk in ["st3500320as-2008", "nvme-p4500-2017"] {
        assert!(told(disk).contains("frit disk score"), "{disk}");
    }
    assert!(told("tlc-1999").contains("no such profile"));
    assert!(Model::check("mlc-openssd-2011", Path::new("")).is_ok());
}

#[test]
fn a_limit_that_does_not_allow_a_fit_is_refused() {
    let sample = Sample::new(&read(&lines(400, "35")).unwrap(), 0.3).unwrap();
    let model = Model::new("tlc-2020", Path::new(""), &sample).unwrap();
    let options = FitOptions { evaluations: 50, ..FitOptions::default() };
    let e = Calibration::run(&model, &sample, &options, &mut |_| {}).unwrap_err().to_string();
    assert!(e.contains("50 evaluations are too few"), "{e}");
}
