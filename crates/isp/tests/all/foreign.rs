//! Results compared with other programs. A test without its program says that it is skipped.

use crate::support::{Setting, program};
use frit_isp::{Answer, Command, text};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::Write as _;
use std::process::Stdio;

fn output(name: &str, arguments: &[&str], input: &[u8]) -> String {
    let mut child = std::process::Command::new(name)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn command(json: &str) -> Command {
    text::parse(json.as_bytes()).unwrap().command
}

fn answer(json: &str, data: &[u8]) -> Answer {
    let setting = Setting {
        threads: 3,
        chunk_bytes: 1000,
        part_bytes: 5000,
        sizes: vec![7, 0, 900],
        ..Setting::plain()
    };
    setting.answer(data, command(json))
}

fn log() -> Vec<u8> {
    let mut rng = SmallRng::seed_from_u64(7);
    let words = ["error", "warning", "terror", "disk", "", "a", "errorerror", "x9", "\t"];
    let mut text = Vec::new();
    for _ in 0..20_000 {
        text.extend_from_slice(words[rng.random_range(0..words.len())].as_bytes());
        text.push(if rng.random_ratio(1, 6) { b'\n' } else { b' ' });
    }
    text
}

#[test]
fn grep_counts_the_same_lines_and_matches() {
    if !program("grep") {
        return;
    }
    let log = log();
    for regex in ["error", "^a", "r.*r", "[wx](arning|9)$", "(^| )disk( |$)", "^$", "e+r"] {
        let json = format!("{{\"regex\":{},\"file\":\"x\"}}", serde_json::json!(regex));
        let Answer::Regex(found) = answer(&json, &log) else { panic!("another answer") };
        let lines: u64 = output("grep", &["-acE", regex], &log).trim().parse().unwrap();
        assert_eq!(found.lines, lines, "{regex}");
        // The syntax of grep prefers the longest alternative; these expressions have the same matches.
        let matches = output("grep", &["-aoE", regex], &log).lines().count() as u64;
        assert_eq!(found.count, matches, "{regex}");
        let json = format!(
            "{{\"filter\":{{\"regex\":{}}},\"invert\":true,\"file\":\"x\"}}",
            serde_json::json!(regex)
        );
        let Answer::Filter(filter) = answer(&json, &log) else { panic!("another answer") };
        assert_eq!(
            String::from_utf8(filter.payload).unwrap(),
            output("grep", &["-avE", regex], &log),
            "{regex}"
        );
    }
}

/// Runs a Python program that prints one JSON value.
fn python(code: &str, input: &[u8]) -> serde_json::Value {
    serde_json::from_str(&output("python3", &["-c", code], input)).unwrap()
}

#[test]
fn python_computes_the_same_hashes_and_bytes() {
    if !program("python3") {
        return;
    }
    let log = log();
    let code = "import sys,hashlib,json,collections\nd=sys.stdin.buffer.read()\nc=collections.Counter(d)\n\
                print(json.dumps([hashlib.sha256(d).hexdigest(),[c[i] for i in range(256)]]))";
    let expected = python(code, &log);
    let Answer::Checksum(sum) = answer(r#"{"checksum":"sha256","file":"x"}"#, &log) else { panic!() };
    assert_eq!(expected[0], sum.checksum);
    let Answer::Histogram(histogram) = answer(r#"{"histogram":"bytes","file":"x"}"#, &log) else { panic!() };
    assert_eq!(expected[1], serde_json::json!(histogram.bins));
}

#[test]
fn python_reads_the_same_records_of_csv() {
    if !program("python3") {
        return;
    }
    let mut rng = SmallRng::seed_from_u64(3);
    for quotes in [false, true] {
        let mut text = b"host,size,note\r\n".to_vec();
        for n in 0..3000 {
            let note = match rng.random_range(0..4) {
                0 if quotes => "\"two\nlines, \"\"quoted\"\"\"",
                1 if quotes => "\"\"",
                _ => "plain",
            };
            let end = if n % 3 == 0 { "\r\n" } else { "\n" };
            text.extend_from_slice(
                format!("h{},{},{note}{end}", n % 17, rng.random_range(-99..99)).as_bytes(),
            );
        }
        let code = "import sys,csv,json,io\nr=csv.DictReader(io.TextIOWrapper(sys.stdin.buffer,newline=''))\ng={}\n\
                    for x in r:\n  if len(x['note'])!=0: g.setdefault(x['host'],[]).append(int(x['size']))\n\
                    print(json.dumps([{'by':[k],'records':len(v),'values':[sum(v),min(v),max(v),sum(v)/len(v)]} \
                    for k,v in g.items()]))";
        let json = r#"{"aggregate":[{"sum":"size"},{"min":"size"},{"max":"size"},{"mean":"size"}],"by":["host"],
                      "where":[["note","!=",""]],"format":"csv","file":"x"}"#;
        let Answer::Aggregate(found) = answer(json, &text) else { panic!() };
        assert_eq!(python(code, &text), serde_json::to_value(&found.groups).unwrap());
    }
}

#[test]
fn python_reads_the_same_records_of_json() {
    if !program("python3") {
        return;
    }
    let mut rng = SmallRng::seed_from_u64(4);
    let mut text = Vec::new();
    for n in 0..3000 {
        let size = rng.random_range(-1000..1000);
        let line = format!(
            "{{\"x\": [1, {{\"a\": \"}}\"}}], \"a\": {{\"size\": {size}.25}}, \"h\": \"\\u00e4{}\"}}\n",
            n % 7
        );
        text.extend_from_slice(line.as_bytes());
    }
    let code = "import sys,json,math\ng={}\nfor l in sys.stdin:\n  x=json.loads(l)\n  \
                if x['a']['size']>0: g.setdefault(x['h'],[]).append(x['a']['size'])\n\
                print(json.dumps([{'by':[k],'records':len(v),'values':[math.fsum(v),min(v),max(v),len(v)]} \
                for k,v in g.items()]))";
    let json = r#"{"aggregate":[{"sum":"a.size"},{"min":"a.size"},{"max":"a.size"},{"count":"a.size"}],"by":["h"],
                  "where":[["a.size",">",0]],"format":"jsonl","file":"x"}"#;
    let Answer::Aggregate(found) = answer(json, &text) else { panic!() };
    assert_eq!(python(code, &text), serde_json::to_value(&found.groups).unwrap());
}

#[test]
fn python_compares_numbers_of_both_kinds_alike() {
    if !program("python3") {
        return;
    }
    let mut rng = SmallRng::seed_from_u64(6);
    for round in 0..20 {
        let near = [0, 1 << 53, -(1 << 53), i64::MAX, i64::MIN][round % 5];
        let mut number = || {
            let integer = i128::from(near) + rng.random_range(-4..4);
            match rng.random_range(0..3) {
                0 => integer.to_string(),
                1 => format!("{integer}.0"),
                _ => format!("{:e}", integer as f64 + rng.random_range(-2.0..2.0)),
            }
        };
        let limit = number();
        let text: String = (0..50).map(|_| format!("{{\"x\":{}}}\n", number())).collect();
        // Python compares integers with floating-point numbers exactly.
        let code = format!(
            "import sys,json\nwhole=lambda s: int(s) if -2**63<=int(s)<2**63 else float(s)\n\
             read=lambda s: json.loads(s,parse_int=whole)\nlimit=read('{limit}')\n\
             v=[read(l)['x'] for l in sys.stdin]\nv=[x for x in v if x>limit]\n\
             print(json.dumps([min(v,default=None),max(v,default=None),len(v)]))"
        );
        let json = format!(
            r#"{{"aggregate":[{{"min":"x"}},{{"max":"x"}},{{"count":"x"}}],"where":[["x",">",{limit}]],"format":"jsonl","file":"x"}}"#
        );
        let Answer::Aggregate(found) = answer(&json, text.as_bytes()) else { panic!() };
        assert_eq!(
            python(&code, text.as_bytes()),
            serde_json::json!(found.groups[0].values),
            "{limit} {text}"
        );
    }
}

#[test]
fn python_computes_the_same_exact_sums_and_means() {
    if !program("python3") {
        return;
    }
    let mut rng = SmallRng::seed_from_u64(5);
    let mut text = Vec::new();
    for n in 0..2000 {
        // Numbers of all sizes and of similar ones, integers, and numbers that almost cancel each other.
        let number = match n % 4 {
            0 => f64::from_bits(rng.random()),
            1 => rng.random_range(-1e3..1e3),
            2 => rng.random_range(-1.0..1.0) * f64::MAX,
            _ => rng.random_range(-1e18..1e18_f64).trunc(),
        };
        if number.is_finite() {
            let text_of = if n % 8 == 3 { format!("{number}") } else { format!("{number:e}") };
            text.extend_from_slice(format!("{{\"g\": {}, \"x\": {text_of}}}\n", n % 100).as_bytes());
        }
    }
    let code = "import sys,json\nfrom fractions import Fraction as F\ng={}\n\
                for l in sys.stdin:\n  x=json.loads(l)\n  g.setdefault(str(x['g']),[]).append(F(x['x']))\n\
                def near(x):\n  try: return float(x)\n  except OverflowError: return None\n\
                print(json.dumps([[k,near(sum(v)),near(sum(v)/len(v))] for k,v in g.items()]))";
    let json = r#"{"aggregate":[{"sum":"x"},{"mean":"x"}],"by":["g"],"format":"jsonl","file":"x"}"#;
    let Answer::Aggregate(found) = answer(json, &text) else { panic!() };
    let expected = python(code, &text);
    assert_eq!(expected.as_array().unwrap().len(), found.groups.len());
    for (expected, group) in expected.as_array().unwrap().iter().zip(&found.groups) {
        assert_eq!(expected[0], group.by[0]);
        for (expected, found) in [(&expected[1], &group.values[0]), (&expected[2], &group.values[1])] {
            assert_eq!(expected.as_f64(), found.as_f64(), "group {group:?}");
        }
    }
}
