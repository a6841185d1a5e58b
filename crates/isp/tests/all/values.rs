//! Values of records: numbers and texts as they are in the file, exact sums, borders of bins, and lines that
//! are not JSON.

use crate::support::Setting;
use frit_isp::{Answer, Command, Status, text};
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
