//! The picture of the README shows the results of `make demo`, as the stacks give them now.

use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Picture of the README, relative to the root of the repository.
const PICTURE: &str = "docs/demo.svg";
/// Fill colours of the stacks after the first (Okabe and Ito).
const COLOURS: [&str; 2] = ["#0072b2", "#e69f00"];
const WIDTH: f64 = 860.0;
const LEFT: f64 = 270.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 84.0;
const BAR: f64 = 13.0;
const ROW: f64 = 36.0;
/// Ratio at both ends of the logarithmic axis.
const RATIO_MAX: f64 = 5.0;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the arguments of the `frit` command of `make demo`.
fn demo_command() -> Vec<String> {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let recipe = makefile.split("\ndemo:").nth(1).unwrap().replace("\\\n", " ");
    let line = recipe.lines().find_map(|l| l.trim().strip_prefix("$(FRIT) ")).unwrap();
    line.split_whitespace().map(str::to_owned).collect()
}

/// Runs the demo and returns its reports.
fn reports() -> Vec<Value> {
    let out = tempfile::tempdir().unwrap();
    let json = out.path().join("demo.json");
    let page = out.path().join("demo.html").to_str().unwrap().to_owned();
    let args = demo_command().into_iter().map(|a| if a == "out/demo.html" { page.clone() } else { a });
    let mut frit = Command::new(env!("CARGO_BIN_EXE_frit"));
    let run = frit.args(args).arg("--quiet").arg("--json").arg(&json).current_dir(root()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(Path::new(&page).exists(), "make demo promises a page with plots");
    serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap()
}

/// A metric of the picture: its name, its value in a report, and its text. Times of the software
/// are left out: they depend on the machine.
struct Metric(&'static str, fn(&Value) -> f64, fn(f64) -> String);

fn latency(report: &Value, class: &str, figure: &str) -> f64 {
    let classes = report["latency"].as_array().unwrap();
    let of = classes.iter().find(|c| c["class"] == class).unwrap();
    of["response"][figure].as_f64().unwrap()
}

fn time(ns: f64) -> String {
    if ns < 1e6 { format!("{:.0} µs", ns / 1e3) } else { format!("{:.2} ms", ns / 1e6) }
}

const METRICS: [Metric; 7] = [
    Metric("latency, mean", |r| latency(r, "all", "mean_ns"), time),
    Metric("latency, p99", |r| latency(r, "all", "p99_ns"), time),
    Metric("read latency, mean", |r| latency(r, "read", "mean_ns"), time),
    Metric("write latency, mean", |r| latency(r, "write", "mean_ns"), time),
    Metric("requests/s", |r| r["throughput"]["requests_per_s"].as_f64().unwrap(), |v| format!("{v:.0}")),
    Metric(
        "write amplification, NAND",
        |r| r["write_amplification"]["nand"].as_f64().unwrap(),
        |v| format!("{v:.3}"),
    ),
    Metric("NAND erases", |r| r["media"][0]["erases"].as_f64().unwrap(), |v| format!("{v:.0}")),
];

fn stack_name(report: &Value) -> &str {
    let name = report["stack"]["name"].as_str().unwrap();
    name.rsplit('/').next().unwrap().trim_end_matches(".toml")
}

/// Draws the metrics of all stacks relative to the first.
fn picture(reports: &[Value]) -> String {
    let (first, others) = reports.split_first().unwrap();
    let height = TOP + ROW * METRICS.len() as f64 + 12.0;
    let axis = WIDTH - LEFT - RIGHT;
    let x = |ratio: f64| {
        LEFT + axis * (0.5 + ratio.clamp(1.0 / RATIO_MAX, RATIO_MAX).ln() / RATIO_MAX.ln() / 2.0)
    };
    let mut s = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let mut text = |x: f64, y: f64, anchor: &str, style: &str, words: &str| {
        writeln!(s, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{words}</text>")
            .unwrap();
    };
    let title = format!(
        "{} over {}, and relative to it",
        first["workload"]["name"].as_str().unwrap(),
        stack_name(first)
    );
    text(12.0, 24.0, "start", "font-weight=\"bold\"", &title);
    for (i, report) in others.iter().enumerate() {
        let at = 12.0 + 190.0 * i as f64;
        text(at, 46.0, "start", &format!("fill=\"{}\"", COLOURS[i]), &format!("■ {}", stack_name(report)));
    }
    text(12.0 + 380.0, 46.0, "start", "fill=\"#555555\"", "lower is better, except for requests/s");
    for ratio in [0.2, 0.5, 1.0, 2.0, 5.0] {
        text(x(ratio), TOP - 10.0, "middle", "fill=\"#555555\"", &format!("{ratio}×"));
    }
    for (k, Metric(name, value, show)) in METRICS.iter().enumerate() {
        let top = TOP + ROW * k as f64;
        let base = value(first);
        text(12.0, top + 20.0, "start", "", name);
        text(LEFT - 12.0, top + 20.0, "end", "font-weight=\"bold\"", &show(base));
        for (i, report) in others.iter().enumerate() {
            let y = top + 14.0 + BAR * i as f64;
            text(WIDTH - 90.0, y, "end", "", &format!("{:.3}×", value(report) / base));
            text(WIDTH - 12.0, y, "end", "fill=\"#555555\"", &show(value(report)));
        }
    }
    for (k, Metric(_, value, _)) in METRICS.iter().enumerate() {
        for (i, report) in others.iter().enumerate() {
            let ratio = value(report) / value(first);
            let (from, to) = (x(ratio.min(1.0)), x(ratio.max(1.0)));
            let y = TOP + ROW * k as f64 + 4.0 + BAR * i as f64;
            let (width, fill) = ((to - from).max(1.0), COLOURS[i]);
            writeln!(
                s,
                "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{fill}\"/>",
                BAR - 1.0
            )
            .unwrap();
        }
    }
    let (middle, bottom) = (x(1.0), height - 10.0);
    writeln!(s, "<path d=\"M{middle:.1} {TOP}V{bottom:.1}\" stroke=\"#333333\"/>\n</svg>").unwrap();
    s
}

/// With `UPDATE_DOCS=1` the test writes the picture.
#[test]
fn the_picture_of_the_readme_is_that_of_the_demo() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains(&format!("]({PICTURE})")), "the README does not show {PICTURE}");
    let right = picture(&reports());
    let path = root().join(PICTURE);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, right).unwrap();
        return;
    }
    let shown = std::fs::read_to_string(&path).unwrap();
    let differs = shown.lines().zip(right.lines()).find(|(a, b)| a != b);
    assert!(
        shown == right,
        "{PICTURE} is out of date, first in (shown, now): {differs:#?}; UPDATE_DOCS=1 cargo test -p frit-cli demo writes it"
    );
}
