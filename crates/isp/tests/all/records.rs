//! Instructions on CSV and JSON lines, compared with loops over the generated records.

use crate::support::{Setting, setting};
use frit_isp::{
    Aggregate, Answer, Command, Comparison, Compute, Condition, Format, Histogram, Select, SelectAnswer,
    Status,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Columns of generated records: a group, an integer, and a number or text.
const NAMES: [&str; 3] = ["host", "size", "note"];

#[derive(Clone, Debug)]
struct Record {
    host: String,
    size: Option<i64>,
    note: String,
}

fn record(special: bool) -> impl Strategy<Value = Record> {
    let note = if special { "[a,\"\n 0-9.]{0,6}" } else { "[a 0-9.]{0,6}" };
    let host = if special { "[ab]|\"" } else { "[abc]" };
    (host, proptest::option::of(-20_i64..20), note).prop_map(|(host, size, note)| Record { host, size, note })
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let plain = proptest::collection::vec(record(false), 0..40);
    prop_oneof![plain, proptest::collection::vec(record(true), 0..40)]
}

fn size_text(record: &Record) -> String {
    record.size.map_or("-".into(), |size| size.to_string())
}

/// Form of CSV.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// A field has quotes also if it needs none.
    always: bool,
    /// End of a record.
    end: &'static str,
    /// The last record has its end.
    last: bool,
    /// Lines may be longer than those of an engine.
    long: bool,
}

fn form() -> impl Strategy<Value = Form> {
    let end = prop_oneof![4 => Just("\n"), 1 => Just("\r\n"), 2 => Just("\r")];
    let form = (proptest::bool::weighted(0.2), end, any::<bool>(), proptest::bool::weighted(0.3));
    form.prop_map(|(always, end, last, long)| Form { always, end, last, long })
}

/// Writes CSV. A field has quotes if it needs them.
fn csv(records: &[Record], form: Form) -> Vec<u8> {
    let always = form.always;
    let field = |text: &str| {
        if always || text.contains([',', '"', '\n']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    let row =
        |record: &Record| [field(&record.host), field(&size_text(record)), field(&record.note)].join(",");
    let rows: Vec<_> = std::iter::once(NAMES.join(",")).chain(records.iter().map(row)).collect();
    let mut text = rows.join(form.end);
    if form.last {
        text.push_str(form.end);
    }
    text.into_bytes()
}

fn json_lines(records: &[Record], end: bool) -> Vec<u8> {
    let object = |record: &Record| json!({"other": [1, {"host": "x"}], "host": record.host, "in": {"size": record.size}, "note": record.note});
    let mut text = records.iter().map(|record| object(record).to_string()).collect::<Vec<_>>().join("\n");
    text.push_str(if end { "\nnot an object\n\n[1]\n" } else { "" });
    text.into_bytes()
}

fn whole(setting: &Setting) -> Setting {
    Setting { offset: 0, length: None, ..setting.clone() }
}

/// The same for CSV of a form.
fn whole_for(form: Form, setting: &Setting) -> Setting {
    let setting = whole(setting);
    if form.long { Setting { line_bytes: 1, ..setting } } else { setting }
}

const LINES: Form = Form { always: false, end: "\n", last: true, long: false };

const CSV: Format = Format::Csv { delimiter: b',', header: true };

fn condition(field: &str, comparison: Comparison, value: impl Into<Value>) -> Condition {
    Condition { field: field.into(), comparison, value: value.into() }
}

/// Groups in the order of their first records, with the number of records, and sum, least and greatest
/// of their sizes.
fn naive_groups(records: &[Record], least: i64) -> Vec<Value> {
    let mut groups: Vec<(String, u64, Vec<i64>)> = Vec::new();
    for record in records.iter().filter(|record| record.size.is_some_and(|size| size >= least)) {
        let index = groups.iter().position(|group| group.0 == record.host).unwrap_or_else(|| {
            groups.push((record.host.clone(), 0, Vec::new()));
            groups.len() - 1
        });
        groups[index].1 += 1;
        groups[index].2.extend(record.size);
    }
    let group = |(host, records, sizes): &(String, u64, Vec<i64>)| {
        let sum: i64 = sizes.iter().sum();
        let mean = sum as f64 / sizes.len() as f64;
        json!({"by": [host], "records": records,
            "values": [sum, sizes.iter().min(), sizes.iter().max(), mean, sizes.len()]})
    };
    groups.iter().map(group).collect()
}

fn aggregate(field: &str, format: Format, least: i64) -> Command {
    let functions = [Compute::Sum, Compute::Min, Compute::Max, Compute::Mean, Compute::Count];
    Command::Aggregate(Aggregate {
        compute: functions.map(|function| (function, field.to_owned())).to_vec(),
        by: vec!["host".into()],
        format,
        conditions: vec![condition(field, Comparison::GreaterOrEqual, least)],
    })
}

fn groups(answer: &Answer) -> (Vec<Value>, u64) {
    let Answer::Aggregate(answer) = answer else { panic!("{answer:?}") };
    (serde_json::to_value(&answer.groups).unwrap().as_array().unwrap().clone(), answer.invalid)
}

proptest! {
    #[test]
    fn aggregates_of_csv(
        records in records(), form in form(), least in -20_i64..20, setting in setting(),
    ) {
        let answer = whole_for(form, &setting).answer(&csv(&records, form), aggregate("size", CSV, least));
        prop_assert_eq!(groups(&answer), (naive_groups(&records, least), 0));
    }

    #[test]
    fn aggregates_of_json_lines(records in records(), end: bool, least in -20_i64..20, setting in setting()) {
        let command = aggregate("in.size", Format::JsonLines, least);
        let answer = whole(&setting).answer(&json_lines(&records, end), command);
        prop_assert_eq!(groups(&answer), (naive_groups(&records, least), if end { 2 } else { 0 }));
    }

    #[test]
    fn selected_fields_of_csv(
        records in records(), form in form(),
        limit in proptest::option::of(0_u64..10), setting in setting(),
    ) {
        let select = Select {
            fields: vec!["note".into(), "host".into()],
            format: CSV,
            conditions: vec![condition("note", Comparison::Contains, "a"), condition("host", Comparison::NotEqual, "b")],
            limit,
        };
        let kept = records.iter().filter(|record| record.note.contains('a') && record.host != "b");
        let kept: Vec<_> = kept.take(limit.unwrap_or(1000) as usize).collect();
        let quoted = |text: &str| {
            if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
        };
        let payload: String =
            kept.iter().map(|record| format!("{},{}\n", quoted(&record.note), quoted(&record.host))).collect();
        let expected = SelectAnswer { records: kept.len() as u64, invalid: 0, payload: payload.into_bytes() };
        let answer = whole_for(form, &setting).answer(&csv(&records, form), Command::Select(select));
        prop_assert_eq!(answer, Answer::Select(expected));
    }

    #[test]
    fn selected_fields_of_json_lines(records in records(), setting in setting(), memory in 0_usize..400) {
        let select = Select {
            fields: vec!["in.size".into(), "host".into()],
            format: Format::JsonLines,
            conditions: vec![condition("in.size", Comparison::Exists, Value::Null)],
            limit: None,
        };
        let mut payload = String::new();
        let mut truncated = false;
        let mut number = 0;
        for record in records.iter().filter(|record| record.size.is_some()) {
            let line = format!("{{\"in.size\":{},\"host\":{}}}\n", size_text(record), json!(record.host));
            if payload.len() + line.len() > memory {
                truncated = true;
                break;
            }
            payload.push_str(&line);
            number += 1;
        }
        let outcome = whole(&setting).outcome(&json_lines(&records, false), Command::Select(select), memory);
        let expected = SelectAnswer { records: number, invalid: 0, payload: payload.into_bytes() };
        prop_assert_eq!(&outcome.result, &Ok(Answer::Select(expected)));
        prop_assert_eq!(outcome.truncated, truncated);
    }

    #[test]
    fn invalid_lines_are_counted_up_to_the_last_record(
        lines in proptest::collection::vec(proptest::option::weighted(0.4, 0_u32..1000), 0..60),
        limit in proptest::option::of(0_u64..20), memory in 0_usize..800, setting in setting(),
    ) {
        let text: String = lines
            .iter()
            .map(|line| line.map_or("not an object\n".into(), |number| format!("{{\"x\":{number}}}\n")))
            .collect();
        let (mut payload, mut number, mut invalid, mut truncated) = (String::new(), 0, 0, false);
        for line in &lines {
            let Some(value) = line else { invalid += 1; continue };
            let record = format!("{{\"x\":{value}}}\n");
            if limit == Some(0) {
                break;
            }
            truncated = payload.len() + record.len() > memory;
            if truncated {
                break;
            }
            payload.push_str(&record);
            number += 1;
            if limit == Some(number) {
                break;
            }
        }
        let select = Select { fields: vec!["x".into()], format: Format::JsonLines, conditions: vec![], limit };
        let outcome = whole(&setting).outcome(text.as_bytes(), Command::Select(select), memory);
        let expected = SelectAnswer { records: number, invalid, payload: payload.into_bytes() };
        prop_assert_eq!(&outcome.result, &Ok(Answer::Select(expected)));
        prop_assert_eq!(outcome.truncated, truncated);
    }

    #[test]
    fn histograms_of_a_field(records in records(), bins in 1_usize..30, setting in setting()) {
        let histogram = Histogram::Field {
            field: "size".into(), low: -10.0, high: 10.0, bins, format: CSV, conditions: vec![],
        };
        let (mut below, mut above, mut without, mut counts) = (0, 0, 0, vec![0; bins]);
        for record in &records {
            match record.size {
                None => without += 1,
                Some(..=-11) => below += 1,
                Some(10..) => above += 1,
                Some(size) => counts[(size + 10) as usize * bins / 20] += 1,
            }
        }
        let answer = whole(&setting).answer(&csv(&records, LINES), Command::Histogram(histogram));
        let Answer::Histogram(answer) = answer else { panic!("{answer:?}") };
        prop_assert_eq!(answer.bins, counts);
        prop_assert_eq!((answer.below, answer.above, answer.without), (below, above, without));
    }

    #[test]
    fn groups_beyond_the_memory_are_cut(records in records(), setting in setting(), memory in 0_usize..4000) {
        let outcome = whole(&setting).outcome(&csv(&records, LINES), aggregate("size", CSV, -20), memory);
        let all = naive_groups(&records, -20);
        let (some, _) = groups(outcome.result.as_ref().unwrap());
        prop_assert_eq!(&some, &all[..some.len()]);
        prop_assert_eq!(outcome.truncated, some.len() < all.len());
    }
}

proptest! {
    // Each case has four engines.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sums_of_fractions_do_not_depend_on_threads(
        numbers in proptest::collection::vec(-1e9_f64..1e9, 0..200), setting in setting(),
    ) {
        let text: String = numbers.iter().map(|number| format!("{{\"x\":{number}}}\n")).collect();
        let command = Command::Aggregate(Aggregate {
            compute: vec![(Compute::Sum, "x".into())], by: vec![], format: Format::JsonLines, conditions: vec![],
        });
        let setting = whole(&setting);
        let one = groups(&Setting { threads: 1, ..setting.clone() }.answer(text.as_bytes(), command.clone()));
        for threads in 2..=4 {
            let other = Setting { threads, ..setting.clone() }.answer(text.as_bytes(), command.clone());
            prop_assert_eq!(&groups(&other), &one);
        }
        if let Some(sum) = one.0.first().and_then(|group| group["values"][0].as_f64()) {
            let expected: f64 = numbers.iter().sum();
            prop_assert!((sum - expected).abs() <= 1e-3, "{} {}", sum, expected);
        }
    }
}

#[test]
fn a_column_that_is_missing_is_named() {
    let outcome = Setting::plain().outcome(b"a,b\n1,2\n", aggregate("size", CSV, 0), 1 << 20);
    let failure = outcome.result.clone().unwrap_err();
    assert_eq!(failure.status, Status::Format);
    assert!(failure.message.contains("\"host\"") && failure.message.contains("a, b"), "{failure}");
}

#[test]
fn records_of_csv_without_line_feeds_may_be_many() {
    for record in ["12,345678\r", "\"1\n2\",345678\r"] {
        let text = format!("a,b\r{}", record.repeat(400_000));
        let count = Command::Aggregate(Aggregate {
            compute: vec![(Compute::Count, "b".into())],
            by: vec![],
            format: CSV,
            conditions: vec![],
        });
        let engine = Setting { chunk_bytes: 64 << 10, part_bytes: 1 << 20, ..Setting::plain() };
        let (groups, _) = groups(&engine.answer(text.as_bytes(), count));
        assert_eq!(groups[0]["records"], 400_000);
    }
}

#[test]
fn a_record_that_is_too_long_has_its_position() {
    let mark = "\u{feff}";
    for (text, at) in [
        (format!("{mark}host,size,note\r\n\r\nx,1,\"{}", "a\n".repeat(600_000)), 21),
        (format!("host,size,note\n{}x,1,\"{}", "a,2,b\n".repeat(200_000), "a\n".repeat(600_000)), 1_200_015),
    ] {
        let outcome = Setting::plain().outcome(text.as_bytes(), aggregate("size", CSV, 0), 1 << 20);
        let failure = outcome.result.as_ref().unwrap_err();
        assert_eq!(failure.status, Status::RecordTooLong);
        assert!(failure.message.starts_with(&format!("the record of CSV at byte {at} has")), "{failure}");
    }
}

#[test]
fn columns_without_a_header_are_numbers() {
    let select = Select {
        fields: vec!["2".into()],
        format: Format::Csv { delimiter: b';', header: false },
        conditions: vec![condition("1", Comparison::Matches, "^x")],
        limit: None,
    };
    let Answer::Select(answer) = Setting::plain().answer(b"x1;a\ny;b\nzx;c\nx;d", Command::Select(select))
    else {
        panic!("another answer");
    };
    assert_eq!(answer.payload, b"a\nd\n");
}
