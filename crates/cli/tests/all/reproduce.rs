//! `frit reproduce` for a user.

use std::process::{Command, Output};

fn frit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).arg("reproduce").args(args).output().unwrap()
}

fn ok(args: &[&str]) -> (String, String) {
    let o = frit(args);
    let (out, err) = (String::from_utf8(o.stdout).unwrap(), String::from_utf8(o.stderr).unwrap());
    assert!(o.status.success(), "{args:?}: {err}");
    (out, err)
}

/// Returns the error message of a failing command, without its line breaks.
fn fails(args: &[&str]) -> String {
    let o = frit(args);
    assert!(!o.status.success(), "{args:?}");
    let err = String::from_utf8(o.stderr).unwrap();
    assert!(!err.contains("panicked"), "{err}");
    err.split_whitespace().filter(|w| *w != "│").collect::<Vec<_>>().join(" ")
}

#[test]
fn ids_are_listed_and_chosen() {
    let (list, _) = ok(&["--list"]);
    for id in ["hfsl.t7.pcm", "hfsl.f12.firmware", "hfsl.f15", "hfsl.f17.others", "wa.fifo", "fin1-spc"] {
        assert!(list.contains(id), "{id}: {list}");
    }
    let (out, _) = ok(&["hfsl.t7.*", "hfsl.f12.firmware"]);
    assert!(
        out.contains("The published values are inputs") && out.contains("93.5 µs") && out.contains("−80 %"),
        "{out}"
    );
    assert!(fails(&["hfsl.f99"]).contains("no experiment is called 'hfsl.f99'"));
    assert!(fails(&["hfsl.f15", "--trace", "nonsense=x.csv"]).contains("no recorded workload"));
    assert!(fails(&["hfsl.f15", "--trace", "fin1-spc=there-is-none.spc"]).contains("no such file"));
    assert!(fails(&["hfsl.f15", "--traces", "there-is-none"]).contains("no such directory"));
    assert!(fails(&[]).contains("<IDS>"));
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(at("file"), "").unwrap();
    assert!(fails(&["hfsl.t7.*", "--plots", &at("file/plots")]).contains("cannot create the directory"));
    assert!(fails(&["hfsl.t7.*", "--json", &at("none/x.json")]).contains("cannot write"));
    let (out, err) = ok(&["hfsl.t7.*", "--plots", &at("new/plots")]);
    assert!(out.contains("93.5 µs") && err.contains("none of these results has a plot"), "{err}");
    assert!(std::path::Path::new(&at("new/plots")).is_dir());
}

#[test]
fn a_figure_is_measured_with_the_user_s_own_trace() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("own.csv");
    let mut text = String::from("time_us,op,sector,sectors,flags\n");
    for i in 0..4000u64 {
        text += &format!("{i},W,{},2,\n", i * 7919 % 2000 * 4 + 1);
    }
    std::fs::write(&trace, text).unwrap();
    let own = format!("fin1-spc={}", trace.display());
    let empty = dir.path().display().to_string();
    let args = ["hfsl.f16", "--quick", "--quiet", "--trace", &own, "--traces", &empty, "--json", "-"];
    let (out, _) = ok(&args);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let table = &json["experiments"][0]["measured"]["figure"]["tables"][0];
    let row = table["rows"].as_array().unwrap().iter().find(|r| r["workload"] == "fin1-spc").unwrap();
    // Writes of 1 KB: at SSW = 512 all go to NAND, from 1024 on all go to PCM.
    let values: Vec<f64> = row["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert!(values[0] == 4000.0 && values[1] == 4000.0 && values[2] == 0.0, "{row}");
    assert_eq!(row["verdicts"][0]["direction"], true, "{row}");
}

#[test]
fn recordings_that_are_not_there_are_skipped_aloud() {
    let dir = tempfile::tempdir().unwrap();
    let none = dir.path().display().to_string();
    let (out, err) = ok(&["hfsl.f17.others", "--quick", "--quiet", "--traces", &none]);
    assert!(err.contains("skipped fin1-spc") && out.contains("SKIPPED fin1-spc"), "{out}{err}");
    assert!(out.contains("Mean of the GENERATED workloads (gen-fin1)"), "{out}");
}

#[test]
fn this_machine_stands_beside_the_modelled_one() {
    let (out, _) = ok(&["ispfs.f9.requests", "--quick", "--quiet", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let query = &json["experiments"][0]["measured"]["query"];
    assert!(query["live"]["machine"]["processors"].as_u64().unwrap() > 0, "{query}");
    let of = |machine: &str| {
        let own = |v: &&serde_json::Value| v["machine"] == machine && v["what"] == "requests, software";
        query["verdicts"].as_array().unwrap().iter().find(own).unwrap()
    };
    // A quick run reads 1 MiB in blocks of 128 KiB: open, 8 blocks, the end, close.
    assert_eq!((&of("this machine")["value"], &of("this machine")["range"][0]), (&11.0.into(), &11.0.into()));
    assert!(of("board of the paper")["range"].is_null());
}
