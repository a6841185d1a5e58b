//! `frit calibrate` for a user or a script, and beside an independent model in Python
//! (`scripts/models/service_times.py`).

use crate::models::{decompressed, has_python, output, root};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output};

fn frit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).args(args).current_dir(root()).output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let out = frit(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Returns the error message of a failing command, in one line.
fn told(args: &[&str]) -> String {
    let out = frit(args);
    assert!(!out.status.success() && out.stdout.is_empty(), "{args:?}");
    String::from_utf8_lossy(&out.stderr).replace("\n  │ ", " ").replace('\n', " ")
}

/// Writes a trace in which a read takes 200 µs and 10 ns for a byte, and a write 1 ms.
fn trace(path: &Path) -> String {
    let mut text = String::from("t,op,lba,n,us\n");
    for i in 0..400 {
        let pages = 1 << (i * 7 % 6);
        let (op, us) = match i % 3 {
            0 => ("W", 1000.0),
            _ => ("R", 200.0 + 40.96 * f64::from(pages)),
        };
        // A tenth more or less, in turn.
        let us = us * (0.9 + 0.05 * f64::from(i % 5));
        writeln!(text, "{},{op},{},{},{us:.1}", i * 20_000, i % 50 * 512, pages * 8).unwrap();
    }
    std::fs::write(path, text).unwrap();
    path.display().to_string()
}

const COLUMNS: &str = "--columns=time=t:us,op=op,sector=lba,sectors=n,service=us:us";

#[test]
fn a_calibration_is_shown_and_its_files_run() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(&dir.path().join("trace.csv"));
    let [profile, stack] = ["mine.toml", "drive.toml"].map(|f| dir.path().join(f).display().to_string());
    let files = ["--output", &profile, "--stack", &stack];
    let base = ["calibrate", "tlc-2020", &trace, COLUMNS, "--evaluations", "700"];
    let shown = stdout(&[&base[..], &files[..]].concat());
    for words in
        ["280 fitted and the last 120 held out", "t_erase", "not told by the trace", "demerit us", "99.9 %"]
    {
        assert!(shown.contains(words), "{words} in\n{shown}");
    }
    let json: serde_json::Value = serde_json::from_str(&stdout(&[&base[..], &["--json"]].concat())).unwrap();
    let score = |i: usize| json["held_out_part"]["scores"][i]["rms_us"].as_f64().unwrap();
    assert!(score(0) < 100.0 && score(0) < score(1) && score(0) < score(2), "{json:#}");
    let erase = &json["parameters"][0];
    assert_eq!((erase["name"].as_str(), erase["verdict"].as_str()), (Some("t_erase"), Some("not_told")));
    assert!(stdout(&["profiles", &profile]).contains("held out: RMS"));
    stdout(&["check", &stack]);
    // The stack is the drive of the fit: a run has the mean time of the calibration.
    let run =
        ["run", &stack, &trace, "--open", "--compact", "--warm", "fill", "--quiet", "--json", "-", COLUMNS];
    let run: serde_json::Value = serde_json::from_str(&stdout(&run)).unwrap();
    let all = run[0]["latency"].as_array().unwrap().last().unwrap();
    let mean = |part: &str| json[part]["scores"][0]["mean_us"].as_f64().unwrap();
    let fitted = 0.7 * mean("fitted_part") + 0.3 * mean("held_out_part");
    let ratio = all["service"]["mean_ns"].as_f64().unwrap() / 1e3 / fitted;
    assert!((ratio - 1.0).abs() < 0.002, "{ratio} {all}");
    let fixed = stdout(&[&base[..], &["--fit", "read_us,write_us"]].concat());
    assert!(fixed.contains("not fitted (--fit)"), "{fixed}");
}

#[test]
fn a_link_takes_the_time_of_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("far.toml");
    let stack = "[media.nand]\nprofile = \"slc-k9-2016\"\nblocks_per_plane = 64\n[ftl]\n\
                 [far]\nkind = \"delay\"\ndevice = \"ftl\"\nwrite_us = 50\n";
    std::fs::write(&path, stack).unwrap();
    let mean = |rate: &str| {
        let stack = format!("{},far.link_mb_per_s={rate}", path.display());
        let w = "gen:sequential,count=100,size=2K,align=2K,span=200K";
        let run: serde_json::Value =
            serde_json::from_str(&stdout(&["run", &stack, w, "--quiet", "--json", "-"])).unwrap();
        run[0]["latency"][0]["response"]["mean_ns"].as_f64().unwrap()
    };
    // 2048 bytes at 10 ns, and the program of 213.2 µs with the delay of 50 µs.
    let far = mean("100");
    assert!((far - mean("0") - 20_480.0).abs() < 0.5 && (far - 283_680.0).abs() < 0.5, "{far}");
}

#[test]
fn wrong_input_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.csv");
    let good = trace(&path);
    assert!(told(&["calibrate", "pcm-p8p-2016", &good, COLUMNS]).contains("needs NAND"));
    assert!(told(&["calibrate", "st3500320as-2008", &good, COLUMNS]).contains("frit disk score"));
    let no_time = "--columns=time=t:us,op=op,sector=lba,sectors=n";
    assert!(told(&["calibrate", "tlc-2020", &good, no_time]).contains("no measured service times"));
    assert!(told(&["calibrate", "tlc-2020", &good, COLUMNS, "--limit", "150"]).contains("at least 100"));
    assert!(
        told(&["calibrate", "tlc-2020", &good, COLUMNS, "--evaluations", "5"]).contains("too few for a fit")
    );
    assert!(told(&["calibrate", "tlc-2020", "gen:uniform"]).contains("no measured times"));
    assert!(told(&["calibrate", "tlc-2020", &good, COLUMNS, "--fit", "t_reed"]).contains("t_read"));
    let zero = std::fs::read_to_string(&path).unwrap() + "8000000,R,0,8,0\n";
    std::fs::write(&path, zero).unwrap();
    let e = told(&["calibrate", "tlc-2020", &good, COLUMNS]);
    assert!(e.contains("1 of 401 service times") && e.contains("request 401"), "{e}");
}

const RECORDING: &str = "../shared/traces/public/Booting_log176.txt.zst";

#[test]
fn reads_of_a_recording_are_on_the_line_of_the_model() {
    if !has_python() {
        return;
    }
    if !root().join(RECORDING).is_file() {
        eprintln!("skipped: no {RECORDING}");
        return;
    }
    let args =
        ["calibrate", "tlc-pages-2018", RECORDING, "--limit", "3000", "--evaluations", "500", "--json"];
    let fit = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(fit.path(), stdout(&args)).unwrap();
    let trace = decompressed(RECORDING);
    let told = output(
        Command::new("python3")
            .args(["-B", "scripts/models/service_times.py"])
            .arg(trace.path())
            .arg(fit.path())
            .args(["--limit", "3000", "--tolerance", "0.1"]),
    );
    assert!(told.ends_with("0 differ\n") && !told.contains("\n0 sizes"), "{told}");
}
