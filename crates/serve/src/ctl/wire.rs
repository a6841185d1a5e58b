//! The protocol of the control socket: one JSON object a line, in both directions.
//!
//! A request names its version (`"v": 1`) and what to do (`"do": "set"`); the answer has `"ok"` or
//! `"error"`. A client may send several requests over one connection and gets the answers in order.
//! docs/control.md describes each message.

use crate::metrics::Stat;
use serde::{Deserialize, Serialize};

/// The version of the protocol. A server refuses others and says which it speaks.
pub const VERSION: u32 = 1;
/// The longest request line, in bytes: far more than all parameters set at once need.
pub const REQUEST_BYTES_MAX: usize = 64 * 1024;
/// The longest answer that a client takes, in bytes: the view of a large volume has a few thousand
/// slices of residence.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a client asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Do {
    /// All parameters, or one.
    Get {
        /// Which.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// Changes parameters: all of them, or none.
    Set {
        /// What to change, in this order.
        changes: Vec<Setting>,
    },
    /// What can be seen.
    Stat {},
}

/// One parameter and the value it should have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The parameter.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// A request as it goes over the wire.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`].
    pub v: u32,
    /// What to do.
    #[serde(flatten)]
    pub what: Do,
}

/// A parameter as `get` shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Param {
    /// Its name.
    pub key: String,
    /// Its value now.
    pub value: String,
    /// Its value in the stack that made the volume, unless the media decide it.
    pub default: Option<String>,
    /// Whether it can change while the volume is served.
    pub live: bool,
    /// What it does, its unit and its values.
    pub help: String,
}

/// A parameter that was changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// Its name.
    pub key: String,
    /// Its value before.
    pub old: String,
    /// Its value now.
    pub new: String,
}

/// What went well.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Done {
    /// Answers [`Do::Get`].
    Params(Vec<Param>),
    /// Answers [`Do::Set`]: what is different now; a value that was set already is not in it.
    Changed(Vec<Change>),
    /// Answers [`Do::Stat`].
    Stat(Box<Stat>),
}

/// Why a request was refused, for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// It is no request of this protocol.
    Malformed,
    /// It is one of another version.
    Version,
    /// It is longer than [`REQUEST_BYTES_MAX`].
    TooLong,
    /// The caller has not the right.
    Denied,
    /// A parameter cannot have this value; nothing was changed.
    Invalid,
    /// The volume could not do it.
    Failed,
    /// As many clients are connected as the server takes.
    Busy,
}

/// A refusal, in words.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{what}")]
pub struct Refused {
    /// Which kind.
    pub kind: Refusal,
    /// What was wrong, and what would be right.
    pub what: String,
}

impl Refused {
    /// A refusal of this kind.
    pub fn new(kind: Refusal, what: impl Into<String>) -> Refused {
        Refused { kind, what: what.into() }
    }
}

/// An answer as it goes over the wire.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// [`VERSION`].
    pub v: u32,
    /// What came of it.
    #[serde(flatten)]
    pub result: Outcome,
}

/// What came of a request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was done.
    Ok(Done),
    /// It was refused.
    Error(Refused),
}

impl From<Result<Done, Refused>> for Answer {
    fn from(result: Result<Done, Refused>) -> Answer {
        let result = match result {
            Ok(done) => Outcome::Ok(done),
            Err(refused) => Outcome::Error(refused),
        };
        Answer { v: VERSION, result }
    }
}

/// Reads a request from a line, without its end.
///
/// # Errors
/// What is wrong with it.
pub fn parse(line: &[u8]) -> Result<Do, Refused> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    if line.len() > REQUEST_BYTES_MAX {
        return Err(too_long());
    }
    let malformed = |e: serde_json::Error| Refused::new(Refusal::Malformed, format!("no request: {e}"));
    let Version { v } = serde_json::from_slice(line).map_err(malformed)?;
    if v != VERSION {
        let what = format!("a request of version {v}; this server speaks version {VERSION}");
        return Err(Refused::new(Refusal::Version, what));
    }
    serde_json::from_slice::<Request>(line).map(|r| r.what).map_err(malformed)
}

/// The refusal of a line that is too long.
#[must_use]
pub fn too_long() -> Refused {
    Refused::new(Refusal::TooLong, format!("a request has at most {REQUEST_BYTES_MAX} bytes"))
}

/// A message as a line, with its end.
///
/// # Errors
/// A value that JSON does not have; none of these messages contains one.
pub fn line<T: Serialize>(message: &T) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(key: &str, value: &str) -> Request {
        let changes = vec![Setting { key: key.into(), value: value.into() }];
        Request { v: VERSION, what: Do::Set { changes } }
    }

    #[test]
    fn requests_look_as_documented() {
        let text = |r: &Request| serde_json::to_string(r).unwrap();
        assert_eq!(text(&Request { v: 1, what: Do::Get { key: None } }), r#"{"v":1,"do":"get"}"#);
        assert_eq!(text(&set("SSW", "4K")), r#"{"v":1,"do":"set","changes":[{"key":"SSW","value":"4K"}]}"#);
        assert_eq!(parse(br#"{"v":1,"do":"stat"}"#), Ok(Do::Stat {}));
        assert_eq!(parse(br#"{"do":"get","key":"gc","v":1}"#), Ok(Do::Get { key: Some("gc".into()) }));
    }

    #[test]
    fn what_is_no_request_is_named() {
        let kind = |line: &[u8]| parse(line).unwrap_err().kind;
        assert_eq!(kind(b""), Refusal::Malformed);
        assert_eq!(kind(b"{}"), Refusal::Malformed);
        assert_eq!(kind(br#"{"v":1,"do":"format"}"#), Refusal::Malformed);
        assert_eq!(kind(br#"{"v":1,"do":"set","changes":[{"key":"gc"}]}"#), Refusal::Malformed);
        assert_eq!(kind(br#"{"v":2,"do":"format","then":{}}"#), Refusal::Version);
        assert_eq!(kind(&vec![b' '; REQUEST_BYTES_MAX + 1]), Refusal::TooLong);
        assert_eq!(kind(&[b'['; 10_000]), Refusal::Malformed, "nesting is bounded");
    }

    #[test]
    fn answers_come_back_as_they_were() {
        let change = Change { key: "gc".into(), old: "greedy".into(), new: "fifo".into() };
        let answers = [
            Answer::from(Ok(Done::Changed(vec![change]))),
            Answer::from(Err(Refused::new(Refusal::TooLong, "x"))),
            Answer::from(Ok(Done::Stat(Box::default()))),
        ];
        for answer in answers {
            let back: Answer = serde_json::from_slice(&line(&answer).unwrap()).unwrap();
            assert_eq!(back, answer);
        }
    }

    proptest! {
        /// Any bytes, and requests with any one byte changed: an answer, never a panic.
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn requests_with_a_changed_byte(at in 0usize..60, byte in any::<u8>(), value in ".{0,20}") {
            let whole = line(&set("SSW", &value)).unwrap();
            prop_assert_eq!(parse(&whole).unwrap(), set("SSW", &value).what);
            let mut changed = whole.clone();
            let at = at % changed.len();
            changed[at] = byte;
            let _ = parse(&changed);
            let _ = parse(&whole[..at]);
        }
    }
}
