//! Values of records: numbers and texts as they are in the file, exact sums, borders of bins, and lines that
//! are not JSON.

use crate::support::{Setting, setting};
use frit_isp::{Answer, Command, Status, text};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Reads an instruction for a file.
fn command(json: &Value) -> Command {
    let mut instruction = json.clone();
    instruction["file"] = "x".into();
    text::parse(instruction.to_string().as_bytes()).unwrap().command
}

fn answer(data: &[u8], instruction: &Value) -> Answer {
    Setting::plain().answer(data, command(instruction))
}

/// Returns the message of an instruction that is refused, when it is read or when it starts.
fn refused(instruction: &str) -> String {
    let failure = match text::parse(instruction.as_bytes()) {
        Err(failure) => failure,
        Ok(instruction) => {
            Setting::plain().outcome(b"", instruction.command, 1 << 20).result.clone().unwrap_err()
        }
    };
    assert_eq!(failure.status, Status::Invalid, "{failure}");
    failure.message
}

/// Returns the records that `select` returns, and the number of invalid lines.
fn selected(data: &[u8], format: &str, fields: &[&str], conditions: &Value) -> (String, u64) {
    let instruction = json!({"select": fields, "format": format, "where": conditions});
    let Answer::Select(answer) = answer(data, &instruction) else { panic!("another answer") };
    (String::from_utf8(answer.payload).unwrap(), answer.invalid)
}

/// Returns the groups of `aggregate`, without their numbers of records.
fn groups(data: &[u8], instruction: &Value) -> Vec<(Vec<Value>, Vec<Value>)> {
    let Answer::Aggregate(answer) = answer(data, instruction) else { panic!("another answer") };
    answer.groups.into_iter().map(|group| (group.by, group.values)).collect()
}

/// Returns the functions of the field `x` of JSON lines.
fn functions(data: &str, functions: &[&str]) -> Vec<Value> {
    let functions: Vec<Value> = functions.iter().map(|name| json!({*name: "x"})).collect();
    groups(data.as_bytes(), &json!({"aggregate": functions, "format": "jsonl"})).remove(0).1
}

#[test]
fn the_border_of_a_bin_belongs_to_the_bin_above() {
    let text: String = std::iter::once("v".into()).chain((0..3000).map(|v| format!("\n{v}"))).collect();
    let instruction =
        json!({"histogram": {"field": "v", "low": 0, "high": 3000, "bins": 100}, "format": "csv"});
    let Answer::Histogram(found) = answer(text.as_bytes(), &instruction) else { panic!("another answer") };
    assert_eq!(found.bins, vec![30; 100]);
    assert_eq!((found.below, found.above), (0, 0));
}

#[test]
fn a_histogram_that_is_too_wide_is_refused_for_its_width() {
    let instruction = |low: &str, high: &str, bins: u32| {
        format!(
            r#"{{"histogram":{{"field":"v","low":{low},"high":{high},"bins":{bins}}},"format":"csv","file":"x"}}"#
        )
    };
    let wide = refused(&instruction("-1.7e308", "1.7e308", 4));
    assert!(wide.contains("the width") && !wide.contains("is below"), "{wide}");
    assert!(refused(&instruction("2", "2", 4)).contains("\"low\" is 2.0, and not below \"high\", 2.0"));
    assert!(refused(&instruction("1", "2", 0)).contains("1 to 65536 bins"));
}

/// Lines with their validity: it depends on the line alone.
const LINES: [(&[u8], bool); 24] = [
    (br#"{"id":1,"x":1e400}"#, true),
    (br#"{"id":1,"x":"\ud800"}"#, true),
    (br#"{"id":1,"x":"\ude00\ud800\u0041"}"#, true),
    (br#" { "id" : 1 , "x" : [ true , false , null , { } , [ ] , -0.5E-3 ] } "#, true),
    (b"{\"id\":1,\"x\":\"\xff\"}", false),
    (b"{\"id\":1,\"\xff\":2}", false),
    (b"{\"id\":1,\"x\":\"\t\"}", false),
    (br#"{"id":1,"x":"\q"}"#, false),
    (br#"{"id":1,"x":"\u12g4"}"#, false),
    (br#"{"id":1,"x":"open}"#, false),
    (br#"{"id":1,"x":01}"#, false),
    (br#"{"id":1,"x":+1}"#, false),
    (br#"{"id":1,"x":1.}"#, false),
    (br#"{"id":1,"x":.5}"#, false),
    (br#"{"id":1,"x":1e}"#, false),
    (br#"{"id":1,"x":-}"#, false),
    (br#"{"id":1,"x":NaN}"#, false),
    (br#"{"id":1,"x":truex}"#, false),
    (br#"{"id":1,"x":[1,]}"#, false),
    (br#"{"id":1,"x":[1}}"#, false),
    (br#"{"id":1,}"#, false),
    (br#"{"id":1,"x"}"#, false),
    (br#"{"id":1} 2"#, false),
    (br#"[{"id":1}]"#, false),
];

#[test]
fn a_line_is_valid_whatever_fields_are_read() {
    let nested = format!(r#"{{"id":1,"x":{}{}}}"#, "[".repeat(2000), "]".repeat(2000));
    let lines = LINES.iter().copied().chain([(nested.as_bytes(), true)]);
    for (line, valid) in lines {
        let data = [line, b"\n{\"id\":2,\"x\":2}\n"].concat();
        for fields in [&["id"][..], &["x"], &["id", "x"], &["x.y.z"], &["other"]] {
            let (payload, invalid) = selected(&data, "jsonl", fields, &json!([]));
            let shown = String::from_utf8_lossy(line);
            assert_eq!(invalid, u64::from(!valid), "{fields:?} of {shown}");
            assert_eq!(payload.lines().count(), 1 + usize::from(valid), "{fields:?} of {shown}");
        }
    }
}

#[test]
fn a_number_that_is_too_large_is_no_number_in_both_formats() {
    let functions = json!([{"count": "x"}, {"sum": "x"}, {"max": "x"}]);
    let json = b"{\"x\":1e400}\n{\"x\":2}\n{\"x\":-1e999}";
    let csv = b"x\n1e400\n2\n-1e999\n";
    for (data, format) in [(&json[..], "jsonl"), (&csv[..], "csv")] {
        let found = groups(data, &json!({"aggregate": functions, "format": format}));
        assert_eq!(found, [(vec![], vec![json!(3), json!(2), json!(2)])], "{format}");
        let (_, invalid) = selected(data, format, &["x"], &json!([["x", ">", 1]]));
        assert_eq!(invalid, 0);
    }
}

const NUMBERS: [&str; 7] =
    ["12345678901234567890123", "3.141592653589793238462643", "-0", "0.1000", "1E2", "1e400", "-0.0e+05"];

#[test]
fn numbers_keep_their_text() {
    for number in NUMBERS {
        let line = format!("{{\"a\": {{\"x\": {number} }}, \"s\": \"\\u00e4\\n\", \"n\":null}}\n");
        let (payload, _) = selected(line.as_bytes(), "jsonl", &["a.x", "s", "n", "none"], &json!([]));
        let expected = format!("{{\"a.x\":{number},\"s\":\"\\u00e4\\n\",\"n\":null,\"none\":null}}\n");
        assert_eq!(payload, expected);
        for conditions in [json!([["a.x", "=", number]]), json!([["a.x", "contains", number]])] {
            assert_eq!(selected(line.as_bytes(), "jsonl", &["a.x"], &conditions).0.lines().count(), 1);
        }
    }
    let lines: String = NUMBERS.iter().map(|number| format!("{{\"x\":{number}}}\n")).collect();
    let found = groups(lines.as_bytes(), &json!({"aggregate": [], "by": ["x"], "format": "jsonl"}));
    let found: Vec<_> = found.into_iter().map(|(mut by, _)| by.remove(0)).collect();
    assert_eq!(found, NUMBERS);
}

#[test]
fn strings_are_grouped_by_what_they_encode() {
    let lines = r#"{"s":"ä\"/"}
{"s":"\u00e4\u0022\/"}
{"\u0073":"\u00E4\"/"}
{"s":"\ud83d\ude00"}
{"s":"😀"}
{"s":[1, "a"]}
{"s":"x","s":"\ud800"}
"#;
    let found =
        groups(lines.as_bytes(), &json!({"aggregate": [{"count": "s"}], "by": ["s"], "format": "jsonl"}));
    let group = |text: &str, count: u64| (vec![json!(text)], vec![json!(count)]);
    assert_eq!(found, [group("ä\"/", 3), group("😀", 2), group("[1, \"a\"]", 1), group("\u{fffd}", 1)]);
}

#[test]
fn sums_do_not_overflow_in_between() {
    let lines = |numbers: &[&str]| -> String {
        numbers.iter().map(|number| format!("{{\"x\":{number}}}\n")).collect()
    };
    let both = |numbers: &[&str]| functions(&lines(numbers), &["sum", "mean"]);
    assert_eq!(both(&["1e308", "1e308", "-1e308"]), [json!(1e308), json!(1e308 / 3.0)]);
    assert_eq!(both(&["1e308", "1", "1e-300", "-1e308", "-1"]), [json!(1e-300), json!(1e-300 / 5.0)]);
    assert_eq!(both(&["9007199254740993", "0.5"]), [json!(9007199254740994.0), json!(4503599627370496.75)]);
    assert_eq!(
        both(&["9223372036854775807", "1"]),
        [json!(9223372036854775808.0), json!(4611686018427387904.0)]
    );
    assert_eq!(both(&["5e-324", "0", "0.0"]), [json!(5e-324), json!(0.0)]);
    // The sum is beyond the largest number, and the mean is not.
    assert_eq!(both(&["1e308", "1e308"]), [Value::Null, json!(1e308)]);
    assert_eq!(both(&["-1.7976931348623157e308", "-1e292"]), [Value::Null, json!(-2.0_f64.powi(1023))]);
    assert_eq!(both(&["\"a\""]), [Value::Null, Value::Null]);
}

proptest! {
    /// The numbers are multiples of 2^-40, so that their sum is a whole number of them.
    #[test]
    fn a_sum_is_the_nearest_number_to_the_exact_one(
        numbers in proptest::collection::vec((-(1_i64 << 53)..1 << 53, 0_u32..60), 1..60), setting in setting(),
    ) {
        let unit = 2.0_f64.powi(-40);
        let exact: i128 = numbers.iter().map(|(n, shift)| i128::from(*n) << shift).sum();
        let text: String = numbers.iter()
            .map(|(n, shift)| format!("{{\"x\":{:e}}}\n", *n as f64 * 2.0_f64.powi(*shift as i32) * unit))
            .collect();
        let setting = Setting { offset: 0, length: None, ..setting };
        let instruction = json!({"aggregate": [{"sum": "x"}], "format": "jsonl"});
        let Answer::Aggregate(found) = setting.answer(text.as_bytes(), command(&instruction)) else {
            panic!("another answer")
        };
        // A conversion from an integer rounds to the nearest number, and a power of two is exact.
        prop_assert_eq!(found.groups[0].values[0].as_f64(), Some(exact as f64 * unit));
    }
}

#[test]
fn numbers_of_both_kinds_are_compared_exactly() {
    for (low, high) in [
        ("9007199254740992.0", "9007199254740993"),
        ("-9007199254740993", "-9007199254740992.0"),
        ("9223372036854775807", "9223372036854775808.0"),
        ("-9.3e18", "-9223372036854775808"),
    ] {
        let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (first, second) in [(low, high), (high, low)] {
            let lines = format!("{{\"x\":{first}}}\n{{\"x\":{second}}}\n");
            assert_eq!(functions(&lines, &["min", "max"]), [number(low), number(high)]);
            for (comparison, value, found) in
                [("=", low, low), ("<", high, low), ("!=", high, low), (">", low, high), ("=", high, high)]
            {
                let condition = json!([["x", comparison, number(value)]]);
                let (payload, _) = selected(lines.as_bytes(), "jsonl", &["x"], &condition);
                assert_eq!(payload, format!("{{\"x\":{found}}}\n"), "{comparison} {value}");
            }
        }
    }
}

/// JSON text of an object in which keys can occur several times.
fn object_text() -> impl Strategy<Value = String> {
    let key = proptest::sample::select(vec!["a", "b", "c", "\\u0061", "", "ab"]);
    let leaf = proptest::sample::select(vec![
        "1",
        "null",
        "\"b\"",
        "[]",
        "{}",
        "[{\"a\":[1]}]",
        "\"\\\"{\"",
        "-0.5e1",
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(5, 40, 4, move |inner| {
            let members = proptest::collection::vec((key.clone(), inner.clone(), ".{0}| "), 0..5);
            let object = members.prop_map(|members| {
                let member = |(key, value, space): (&str, String, String)| {
                    format!("{space}\"{key}\"{space}:{space}{value}")
                };
                format!("{{{}}}", members.into_iter().map(member).collect::<Vec<_>>().join(","))
            });
            let array =
                proptest::collection::vec(inner, 0..3).prop_map(|values| format!("[{}]", values.join(" , ")));
            prop_oneof![4 => object, 1 => array]
        })
        .prop_map(|value| format!("{{\"a\":{value}}}"))
}

proptest! {
    /// The other reader keeps the last value of a key, too.
    #[test]
    fn fields_of_nested_objects_are_those_of_another_reader(
        objects in proptest::collection::vec(object_text(), 1..6),
        paths in proptest::collection::vec(
            proptest::collection::vec(proptest::sample::select(vec!["a", "b", "c", "", "ab"]), 1..5), 1..6,
        ),
    ) {
        let names: Vec<String> = paths.iter().map(|path| path.join(".")).collect();
        let fields: Vec<&str> = names.iter().map(String::as_str).collect();
        let (payload, invalid) = selected(objects.join("\n").as_bytes(), "jsonl", &fields, &json!([]));
        prop_assert_eq!(invalid, 0);
        prop_assert_eq!(payload.lines().count(), objects.len());
        for (line, object) in payload.lines().zip(&objects) {
            let object: Value = serde_json::from_str(object).unwrap();
            let expected: Vec<_> = paths
                .iter()
                .map(|path| path.iter().try_fold(&object, |at, key| at.as_object()?.get(*key)).unwrap_or(&Value::Null))
                .collect();
            // Keys of the output can be equal, so it is read as a list.
            let mut rest = line.strip_prefix('{').unwrap();
            for (name, expected) in names.iter().zip(expected) {
                rest = rest.strip_prefix(&format!("{}:", json!(name))).unwrap();
                let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
                prop_assert_eq!(&values.next().unwrap().unwrap(), expected, "{} of {}", name, line);
                rest = &rest[values.byte_offset()..];
                rest = rest.strip_prefix(',').unwrap_or(rest);
            }
            prop_assert_eq!(rest, "}");
        }
    }
}

#[test]
fn a_byte_order_mark_is_removed_at_the_begin_of_the_range_only() {
    let mark = "\u{feff}";
    let json = format!("{mark}{{\"x\":1}}\n{mark}{{\"x\":2}}\n{{\"x\":\"{mark}\"}}\n");
    let found = selected(json.as_bytes(), "jsonl", &["x"], &json!([]));
    assert_eq!(found, (format!("{{\"x\":1}}\n{{\"x\":\"{mark}\"}}\n"), 1));
    // Each line of 128 bytes is a part of its own.
    let line = |text: &str| format!("{mark}{text}{}\n", "-".repeat(127 - mark.len() - text.len()));
    let csv = [format!("{mark}x,y\n"), (0..20).map(|at| line(&format!("{at},"))).collect()].concat();
    let (payload, _) = selected(csv.as_bytes(), "csv", &["x"], &json!([]));
    assert_eq!(payload, (0..20).map(|at| format!("{mark}{at}\n")).collect::<String>());
    for only in [mark.to_owned(), format!("{mark}\n")] {
        let columns = json!({"select": ["1"], "format": "csv", "header": false});
        let Answer::Select(found) = answer(only.as_bytes(), &columns) else { panic!("another answer") };
        assert_eq!((found.records, found.payload), (0, vec![]), "{only:?}");
    }
}

#[test]
fn an_empty_field_alone_is_a_record() {
    let (payload, _) = selected(b"a,b\n,1\nx,2\n\"\",3\n", "csv", &["a"], &json!([]));
    assert_eq!(payload, "\"\"\nx\n\"\"\n");
    let (again, _) = selected(format!("a\n{payload}").as_bytes(), "csv", &["a"], &json!([]));
    assert_eq!(again, payload);
    let (payload, _) = selected(b"a,b\n,1\n,\n", "csv", &["a", "b"], &json!([]));
    assert_eq!(payload, ",1\n,\n");
}

#[test]
fn lines_with_other_white_space_than_that_of_json_are_invalid() {
    let (payload, invalid) =
        selected(b"\x0c\n \t\r\n\n{\"x\":1}\n\x0b\n\x0c{\"x\":1}\n", "jsonl", &["x"], &json!([]));
    assert_eq!((payload.as_str(), invalid), ("{\"x\":1}\n", 3));
}

#[test]
fn a_field_that_is_selected_many_times_needs_no_more_than_the_memory() {
    let long = format!("{{\"x\":\"{}\"}}\n", "a".repeat(1 << 19));
    let csv = format!("x\n{}\n", "a".repeat(1 << 19));
    for (data, format) in [(&long, "jsonl"), (&csv, "csv")] {
        let fields = vec!["x"; 10_000];
        for instruction in [
            json!({"select": fields, "format": format}),
            json!({"aggregate": [], "by": fields, "format": format}),
        ] {
            let outcome = Setting::plain().outcome(data.as_bytes(), command(&instruction), 1 << 20);
            assert!(outcome.truncated);
            match outcome.result.clone().unwrap() {
                Answer::Select(found) => assert_eq!((found.records, found.payload), (0, vec![])),
                Answer::Aggregate(found) => assert_eq!(found.groups, []),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn conditions_have_values_that_can_be_compared() {
    let lines = "{\"v\":true}\n{\"v\":false}\n{\"v\":\"true\"}\n{\"v\":1}\n{\"v\":null}\n";
    let select = |condition: Value| selected(lines.as_bytes(), "jsonl", &["v"], &json!([condition])).0;
    assert_eq!(select(json!(["v", "=", true])), "{\"v\":true}\n");
    assert_eq!(select(json!(["v", "!=", true])), "{\"v\":false}\n");
    assert_eq!(select(json!(["v", "=", "true"])), "{\"v\":true}\n{\"v\":\"true\"}\n");
    let csv = "v,w\ntrue,1\nfalse,2\nTRUE,3\n,4\n";
    let select = |condition: Value| selected(csv.as_bytes(), "csv", &["w"], &json!([condition])).0;
    assert_eq!(select(json!(["v", "=", true])), "1\n");
    assert_eq!(select(json!(["v", "!=", true])), "2\n");
    for (condition, message) in [
        (r#"["size","contains",5]"#, "\"contains\" in [\"size\",\"contains\",5] needs a string"),
        (r#"["size","matches",true]"#, "\"matches\" in [\"size\",\"matches\",true] needs a string"),
        (r#"["size","<",true]"#, "only \"=\" and \"!=\" compare with true and false"),
        (r#"["size","exists",1]"#, "\"exists\" in [\"size\",\"exists\",1] has no value"),
        (r#"["size","="]"#, "needs a number, a string, true or false"),
        (r#"["size","=",null]"#, "needs a number, a string, true or false"),
        (r#"["size","<",[1]]"#, "\"<\" in [\"size\",\"<\",[1]] needs a number or a string"),
        (r#"["size","=",[1]]"#, "needs a number, a string, true or false"),
    ] {
        let line = format!(r#"{{"select":["a"],"format":"jsonl","where":[{condition}],"file":"x"}}"#);
        let found = refused(&line);
        assert!(found.contains(message), "{condition}: {found}");
    }
}

#[test]
fn zero_is_one_number() {
    let lines = "{\"x\":-0.0}\n{\"x\":0}\n{\"x\":-0}\n";
    let (payload, _) = selected(lines.as_bytes(), "jsonl", &["x"], &json!([["x", "=", 0]]));
    assert_eq!(payload, lines);
}

#[test]
fn all_records_are_one_group_also_if_there_are_none() {
    let functions = json!([{"count": "x"}, {"sum": "x"}, {"min": "x"}, {"max": "x"}, {"mean": "x"}]);
    let empty = (vec![], vec![json!(0), Value::Null, Value::Null, Value::Null, Value::Null]);
    for (data, format) in [("", "jsonl"), ("{\"x\":1}\n", "jsonl"), ("x\n", "csv"), ("", "csv")] {
        let mut instruction = json!({"aggregate": functions, "format": format, "where": [["x", ">", 5]]});
        assert_eq!(groups(data.as_bytes(), &instruction), std::slice::from_ref(&empty), "{data:?}");
        instruction["by"] = json!(["x"]);
        assert_eq!(groups(data.as_bytes(), &instruction), [], "{data:?}");
    }
}
