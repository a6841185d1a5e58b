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
/// Height of the heading of a workload.
const TOP: f64 = 122.0;
const BAR: f64 = 13.0;
const ROW: f64 = 36.0;
/// Height of the part of a workload.
const SECTION: f64 = TOP + ROW * METRICS.len() as f64 + 16.0;
/// Number of stacks of the demo.
const STACKS: usize = 3;
/// Ratio at both ends of the logarithmic axis.
const RATIO_MAX: f64 = 5.0;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the arguments of the `frit` command of `make demo`.
fn demo_command() -> Vec<String> {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    // The first part of the target is a variable of it.
    let recipe = makefile.split_once("\ndemo: toolchain").unwrap().1.replace("\\\n", " ");
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

/// Returns the text of a finding; every report of the demo has those that the picture shows.
fn finding<'a>(report: &'a Value, rule: &str) -> &'a str {
    let all = report["findings"].as_array().unwrap();
    let of = all.iter().find(|f| f["rule"] == rule);
    of.unwrap_or_else(|| panic!("{} has no finding {rule}", stack_name(report)))["text"].as_str().unwrap()
}

/// A text of the picture.
struct Text<'a> {
    anchor: &'a str,
    style: &'a str,
    words: &'a str,
}

fn write_text(s: &mut String, x: f64, y: f64, t: &Text<'_>) {
    let Text { anchor, style, words } = t;
    writeln!(s, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{words}</text>").unwrap();
}

/// Returns the place of a ratio on the logarithmic axis.
fn place(ratio: f64) -> f64 {
    let axis = WIDTH - LEFT - RIGHT;
    LEFT + axis * (0.5 + ratio.clamp(1.0 / RATIO_MAX, RATIO_MAX).ln() / RATIO_MAX.ln() / 2.0)
}

/// Draws the metrics of all stacks relative to the first, workload by workload.
fn picture(reports: &[Value]) -> String {
    let height = SECTION * (reports.len() / STACKS) as f64;
    let mut s = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (i, of_one) in reports.chunks(STACKS).enumerate() {
        heading(&mut s, of_one, SECTION * i as f64);
        bars(&mut s, of_one, SECTION * i as f64 + TOP);
    }
    s.push_str("</svg>\n");
    s
}

/// Draws the names of a workload and of its stacks, and the reasons for the results.
fn heading(s: &mut String, reports: &[Value], top: f64) {
    let (first, others) = reports.split_first().unwrap();
    let soft = "fill=\"#555555\"";
    let mut text = |x: f64, y: f64, anchor: &str, style: &str, words: &str| {
        write_text(s, x, top + y, &Text { anchor, style, words });
    };
    let name = first["workload"]["name"].as_str().unwrap();
    let what = if name == "zipf" { "zipf (small updates, generated)" } else { name };
    let title = format!("{what} over {}, and relative to it", stack_name(first));
    text(12.0, 24.0, "start", "font-weight=\"bold\"", &title);
    for (i, report) in others.iter().enumerate() {
        let style = format!("fill=\"{}\"", COLOURS[i]);
        text(12.0 + 190.0 * i as f64, 46.0, "start", &style, &format!("■ {}", stack_name(report)));
    }
    text(392.0, 46.0, "start", soft, "lower is better, except for requests/s");
    let reason = |r: &Value| format!("{}: {}", stack_name(r), finding(r, "bottleneck"));
    text(12.0, 68.0, "start", "font-size=\"12\"", &reason(first));
    text(12.0, 84.0, "start", "font-size=\"12\"", &reason(&others[0]));
    for ratio in [0.2, 0.5, 1.0, 2.0, 5.0] {
        text(place(ratio), TOP - 10.0, "middle", soft, &format!("{ratio}×"));
    }
}

/// Draws the rows of metrics of a workload.
fn bars(s: &mut String, reports: &[Value], top: f64) {
    let (first, others) = reports.split_first().unwrap();
    for (k, Metric(name, value, show)) in METRICS.iter().enumerate() {
        let (top, base) = (top + ROW * k as f64, value(first));
        let soft = "fill=\"#555555\"";
        let mut text = |x: f64, y: f64, anchor: &str, style: &str, words: &str| {
            write_text(s, x, y, &Text { anchor, style, words });
        };
        text(12.0, top + 20.0, "start", "", name);
        text(LEFT - 12.0, top + 20.0, "end", "font-weight=\"bold\"", &show(base));
        for (i, report) in others.iter().enumerate() {
            let y = top + 14.0 + BAR * i as f64;
            text(WIDTH - 90.0, y, "end", "", &format!("{:.3}×", value(report) / base));
            text(WIDTH - 12.0, y, "end", soft, &show(value(report)));
        }
        for (i, report) in others.iter().enumerate() {
            let ratio = value(report) / base;
            let (from, to) = (place(ratio.min(1.0)), place(ratio.max(1.0)));
            let y = top + 4.0 + BAR * i as f64;
            let (width, fill) = ((to - from).max(1.0), COLOURS[i]);
            let height = BAR - 1.0;
            writeln!(
                s,
                "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
            )
            .unwrap();
        }
    }
    let (middle, bottom) = (place(1.0), top + ROW * METRICS.len() as f64);
    writeln!(s, "<path d=\"M{middle:.1} {top:.1}V{bottom:.1}\" stroke=\"#333333\"/>").unwrap();
}

/// The demo has a case where fusing PCM and NAND loses and one where it wins, and says why.
fn teaches(reports: &[Value]) {
    let [mail, mail_hfsl, _, small, small_hfsl, _] = reports else { panic!("three stacks, two workloads") };
    let rate = |r: &Value| r["throughput"]["requests_per_s"].as_f64().unwrap();
    assert!(rate(mail_hfsl) < 0.67 * rate(mail), "HFSL loses no more on {}", mail["workload"]["name"]);
    assert!(finding(mail_hfsl, "bottleneck").starts_with("PCM is "));
    assert!(finding(mail_hfsl, "pcm-too-small").contains("left for NAND"));
    assert!(rate(small_hfsl) > 1.5 * rate(small), "HFSL wins no more on {}", small["workload"]["name"]);
    assert!(finding(small, "partial-writes").contains("reads a page of 2 KiB"));
    assert!(finding(small_hfsl, "pcm-absorbs").contains("(0.0 %)"));
}

/// With `UPDATE_DOCS=1` the test writes the picture.
#[test]
fn the_picture_of_the_readme_is_that_of_the_demo() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains(&format!("]({PICTURE})")), "the README does not show {PICTURE}");
    let reports = reports();
    teaches(&reports);
    let right = picture(&reports);
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
