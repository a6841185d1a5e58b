//! Protocol of the control socket: one JSON object per line, in both directions.
//!
//! A request contains the protocol version (`"v": 1`) and the operation (`"do": "set"`); the answer
//! contains `"ok"` or `"error"`. A client may send several requests over one connection and
//! receives the answers in order. docs/guide/control.md describes each message.

use crate::metrics::Stat;
pub use frit_client::{
    ANSWER_BYTES_MAX, CACHE_BYTES_MAX, CacheAnswer, CacheOperation, EXISTS_BLOCKS_MAX, IspAnswer,
    NAMELESS_BLOCKS_MAX, NamelessAnswer, NamelessOperation, RefusalKind, Refused, ReportedZone, VERSION,
    ZONES_MAX, ZoneState, ZonedAnswer, ZonedInfo, ZonedOperation, from_hex, to_hex,
};
use frit_core::MediumKind;
use serde::{Deserialize, Serialize};

/// Maximum length of a request, in bytes: two digits for each byte that a command of a cache writes, and
/// 4 KiB.
pub const REQUEST_BYTES_MAX: usize = 2 * CACHE_BYTES_MAX + 4096;

/// Maximum number of bytes that [`ControlOperation::Peek`] returns: 1 MiB.
pub const PEEK_BYTES_MAX: u32 = 1 << 20;
/// Maximum number of bytes that [`ControlOperation::Poke`] writes: 16 KiB.
pub const POKE_BYTES_MAX: usize = 16 * 1024;

/// Operation of a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum ControlOperation {
    /// Reads all parameters, or one.
    Get {
        /// Name of the parameter; `None`: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// Changes parameters, either all of them or none.
    Set {
        /// New values, in the order in which they are applied.
        changes: Vec<Setting>,
    },
    /// Reads the metrics.
    Stat {},
    /// Reads the hints of writes, and changes them: either all changes are made or none.
    Hint {
        /// Ranges to add, each `OFFSET+LENGTH=HINT`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        add: Vec<String>,
        /// Ranges to remove, written as they were added.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remove: Vec<String>,
        /// Switches the detector of metadata on or off; `None`: no change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detect: Option<bool>,
    },
    /// Reads bytes of the volume, or of a medium.
    Peek {
        /// Address of the first byte.
        at: u64,
        /// Number of bytes, at most [`PEEK_BYTES_MAX`].
        len: u32,
        /// Medium of which `at` is a physical address; `None`: an address of the volume.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<RawMedium>,
    },
    /// Writes bytes of the volume, or of a medium, durably.
    Poke {
        /// Address of the first byte.
        at: u64,
        /// The bytes in hexadecimal digits, at most [`POKE_BYTES_MAX`] bytes.
        data: String,
        /// Medium of which `at` is a physical address; `None`: an address of the volume.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<RawMedium>,
    },
    /// Gives a command to a solid-state cache.
    Cache {
        /// The command.
        command: CacheOperation,
    },
    /// Gives a command to a nameless-write device.
    Nameless {
        /// The command.
        command: NamelessOperation,
    },
    /// Gives a command to a zoned device.
    Zoned {
        /// The command.
        command: ZonedOperation,
    },
    /// Gives an instruction to the processing engine.
    Isp {
        /// The instruction in the form of a command file, with `extents` in place of a file.
        #[serde(deserialize_with = "unique_keys")]
        command: serde_json::Value,
    },
}

/// Reads an instruction. A key that is there twice is an error.
fn unique_keys<'de, D: serde::Deserializer<'de>>(from: D) -> Result<serde_json::Value, D::Error> {
    frit_isp::text::UniqueKeys::deserialize(from).map(|unique| unique.0)
}

/// A medium with physical addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RawMedium {
    /// NAND: reads within a page.
    Nand,
    /// PCM: reads, and writes of the area that the layer leaves free.
    Pcm,
}

impl From<RawMedium> for MediumKind {
    fn from(medium: RawMedium) -> MediumKind {
        match medium {
            RawMedium::Nand => MediumKind::Nand,
            RawMedium::Pcm => MediumKind::Pcm,
        }
    }
}

impl ControlOperation {
    /// Returns `true` if the operation can change the volume.
    #[must_use]
    pub fn changes(&self) -> bool {
        match self {
            ControlOperation::Set { .. } => true,
            ControlOperation::Hint { add, remove, detect } => {
                !add.is_empty() || !remove.is_empty() || detect.is_some()
            }
            // Bytes are data: a write of them is no change of the volume's parameters.
            ControlOperation::Get { .. }
            | ControlOperation::Stat {}
            | ControlOperation::Peek { .. }
            | ControlOperation::Poke { .. }
            | ControlOperation::Cache { .. }
            | ControlOperation::Nameless { .. }
            | ControlOperation::Zoned { .. }
            | ControlOperation::Isp { .. } => false,
        }
    }
}

/// Hints of a volume.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct HintList {
    /// Ranges in effect, in order of addresses.
    pub ranges: Vec<ListedRange>,
    /// The detector of metadata is on.
    pub detect: bool,
    /// The volume keeps that the detector is on.
    pub detect_saved: bool,
    /// File systems that the detector has found.
    pub file_systems: Vec<String>,
}

/// A range with a hint.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ListedRange {
    /// The rule, `OFFSET+LENGTH=HINT`.
    pub rule: String,
    /// The volume keeps the rule; otherwise it ends with the server.
    pub saved: bool,
}

/// A parameter and its new value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Name of the parameter.
    pub key: String,
    /// New value.
    pub value: String,
}

/// A request, as serialized.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ControlRequest {
    /// Protocol version, [`VERSION`].
    pub v: u32,
    /// Operation.
    #[serde(flatten)]
    pub what: ControlOperation,
}

/// A parameter, as shown by `get`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Param {
    /// Name.
    pub key: String,
    /// Current value.
    pub value: String,
    /// Value in the stack of the volume; `None` if the media determine it.
    pub default: Option<String>,
    /// `true` if the parameter can change while the volume is served.
    pub live: bool,
    /// Description, with unit and possible values.
    pub help: String,
}

/// A changed parameter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ParamChange {
    /// Name.
    pub key: String,
    /// Value before the change.
    pub old: String,
    /// Value after the change.
    pub new: String,
}

/// Result of a successful request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Success {
    /// Result of [`ControlOperation::Get`].
    Params(Vec<Param>),
    /// Result of [`ControlOperation::Set`]: the parameters whose values have changed. Parameters
    /// that already had the requested value are not included.
    Changed(Vec<ParamChange>),
    /// Result of [`ControlOperation::Stat`].
    Stat(Box<Stat>),
    /// Result of [`ControlOperation::Hint`], after the changes.
    Hints(HintList),
    /// Result of [`ControlOperation::Peek`]: the bytes in hexadecimal digits.
    Bytes(String),
    /// Result of [`ControlOperation::Poke`]: the number of bytes that were written.
    Written(u64),
    /// Result of [`ControlOperation::Cache`].
    Cache(CacheAnswer),
    /// Result of [`ControlOperation::Nameless`].
    Nameless(NamelessAnswer),
    /// Result of [`ControlOperation::Zoned`].
    Zoned(ZonedAnswer),
    /// Result of [`ControlOperation::Isp`].
    Isp(IspAnswer),
}

/// An answer, as serialized.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Protocol version, [`VERSION`].
    pub v: u32,
    /// Result of the request.
    #[serde(flatten)]
    pub result: ControlResult,
}

/// Result of a request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlResult {
    /// The request succeeded.
    Ok(Success),
    /// The request was refused.
    Error(Refused),
}

impl From<Result<Success, Refused>> for Answer {
    fn from(result: Result<Success, Refused>) -> Answer {
        let result = match result {
            Ok(done) => ControlResult::Ok(done),
            Err(refused) => ControlResult::Error(refused),
        };
        Answer { v: VERSION, result }
    }
}

/// Parses a request from a line without its newline.
///
/// # Errors
/// The request is invalid.
pub fn parse(line: &[u8]) -> Result<ControlOperation, Refused> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    if line.len() > REQUEST_BYTES_MAX {
        return Err(too_long(REQUEST_BYTES_MAX));
    }
    let malformed =
        |e: serde_json::Error| Refused::new(RefusalKind::Malformed, format!("invalid request: {e}"));
    let Version { v } = serde_json::from_slice(line).map_err(malformed)?;
    if v != VERSION {
        let what = format!("a request of version {v}; this server supports version {VERSION}");
        return Err(Refused::new(RefusalKind::Version, what));
    }
    serde_json::from_slice::<ControlRequest>(line).map(|r| r.what).map_err(malformed)
}

/// Returns the refusal of a request that is longer than `bytes_max`.
#[must_use]
pub fn too_long(bytes_max: usize) -> Refused {
    Refused::new(RefusalKind::TooLong, format!("a request has at most {bytes_max} bytes"))
}

/// Serializes a message as a line with its newline.
///
/// # Errors
/// The value has no JSON form. None of these messages contains such a value.
pub fn line<T: Serialize>(message: &T) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(key: &str, value: &str) -> ControlRequest {
        let changes = vec![Setting { key: key.into(), value: value.into() }];
        ControlRequest { v: VERSION, what: ControlOperation::Set { changes } }
    }

    #[test]
    fn requests_look_as_documented() {
        let text = |r: &ControlRequest| serde_json::to_string(r).unwrap();
        assert_eq!(
            text(&ControlRequest { v: 1, what: ControlOperation::Get { key: None } }),
            r#"{"v":1,"do":"get"}"#
        );
        assert_eq!(text(&set("SSW", "4K")), r#"{"v":1,"do":"set","changes":[{"key":"SSW","value":"4K"}]}"#);
        assert_eq!(parse(br#"{"v":1,"do":"stat"}"#), Ok(ControlOperation::Stat {}));
        let none = ControlOperation::Hint { add: vec![], remove: vec![], detect: None };
        assert!(parse(br#"{"v":1,"do":"hint"}"#) == Ok(none.clone()) && !none.changes());
        let add = parse(br#"{"v":1,"do":"hint","add":["0+4K=hot"],"detect":true}"#).unwrap();
        let want =
            ControlOperation::Hint { add: vec!["0+4K=hot".into()], remove: vec![], detect: Some(true) };
        assert!(add == want && add.changes());
        assert_eq!(
            parse(br#"{"do":"get","key":"gc","v":1}"#),
            Ok(ControlOperation::Get { key: Some("gc".into()) })
        );
    }

    #[test]
    fn bytes_are_hexadecimal_digits() {
        let peek = ControlOperation::Peek { at: 7, len: 3, raw: None };
        assert_eq!(parse(br#"{"v":1,"do":"peek","at":7,"len":3}"#), Ok(peek));
        let poke = ControlOperation::Poke { at: 7, data: "00ff".into(), raw: Some(RawMedium::Pcm) };
        assert_eq!(parse(br#"{"v":1,"do":"poke","at":7,"data":"00ff","raw":"pcm"}"#), Ok(poke));
        assert_eq!(to_hex(&[0, 255, 0x7a]), "00ff7a");
        assert_eq!(from_hex("00ff 7A"), Ok(vec![0, 255, 0x7a]));
        for (bad, why) in [("0", "odd"), ("0g", "hexadecimal"), ("é0", "hexadecimal"), (" ", "no bytes")] {
            assert!(from_hex(bad).unwrap_err().contains(why), "{bad}");
        }
    }

    #[test]
    fn commands_of_a_nameless_write_device_look_as_documented() {
        use frit_client::{BlockAddress, ClaimedBlock, MovedBlock, OwnedBlock};
        let nameless = |command| ControlOperation::Nameless { command };
        let block = OwnedBlock { owner: 7, page: 9, version: 4 };
        let at = BlockAddress { page: 9, version: 4 };
        for (text, command) in [
            (r#"{"info":{}}"#, NamelessOperation::Info {}),
            (
                r#"{"nameless-write":{"owners":[7,7],"data":"00ff"}}"#,
                NamelessOperation::NamelessWrite { owners: vec![7, 7], data: "00ff".into() },
            ),
            (
                r#"{"physical-read":{"blocks":[{"owner":7,"page":9,"version":4}]}}"#,
                NamelessOperation::PhysicalRead { blocks: vec![block] },
            ),
            (
                r#"{"virtual-write":{"blocks":[3],"data":"00ff"}}"#,
                NamelessOperation::VirtualWrite { blocks: vec![3], data: "00ff".into() },
            ),
            (r#"{"virtual-read":{"block":3}}"#, NamelessOperation::VirtualRead { block: 3 }),
            (
                r#"{"virtual-discard":{"blocks":[3,4]}}"#,
                NamelessOperation::VirtualDiscard { blocks: vec![3, 4] },
            ),
            (r#"{"migrations":{"most":100}}"#, NamelessOperation::Migrations { most: 100 }),
            (r#"{"acknowledge":{"count":2}}"#, NamelessOperation::Acknowledge { count: 2 }),
            (
                r#"{"claim":{"blocks":[{"owner":7,"page":9,"version":4}]}}"#,
                NamelessOperation::Claim { blocks: vec![block] },
            ),
            (r#"{"resume":{}}"#, NamelessOperation::Resume {}),
            (r#"{"flush":{}}"#, NamelessOperation::Flush {}),
        ] {
            let line = format!(r#"{{"v":1,"do":"nameless","command":{text}}}"#);
            assert_eq!(parse(line.as_bytes()), Ok(nameless(command.clone())));
            let request = ControlRequest { v: 1, what: nameless(command) };
            assert_eq!(serde_json::to_string(&request).unwrap(), line);
        }
        let answer = |a| serde_json::to_string(&Answer::from(Ok(Success::Nameless(a)))).unwrap();
        let moved = MovedBlock { owner: 7, from: 2, to: Some(at) };
        for (text, given) in [
            (r#""done""#, NamelessAnswer::Done),
            (r#"{"placed":[{"page":9,"version":4}]}"#, NamelessAnswer::Placed(vec![at])),
            (
                r#"{"migrations":[{"owner":7,"from":2,"to":{"page":9,"version":4}}]}"#,
                NamelessAnswer::Migrations(vec![moved]),
            ),
            (
                r#"{"claimed":[{"at":{"page":9,"version":4}},{"lost":"damaged"}]}"#,
                NamelessAnswer::Claimed(vec![ClaimedBlock::At(at), ClaimedBlock::Lost("damaged".into())]),
            ),
        ] {
            assert_eq!(answer(given), format!(r#"{{"v":1,"ok":{{"nameless":{text}}}}}"#));
        }
    }

    #[test]
    fn commands_of_a_cache_look_as_documented() {
        let cache = |command| ControlOperation::Cache { command };
        let requests = [
            (r#"{"info":{}}"#, CacheOperation::Info {}),
            (r#"{"read":{"block":7}}"#, CacheOperation::Read { block: 7 }),
            (
                r#"{"write-dirty":{"first":7,"data":"00ff"}}"#,
                CacheOperation::WriteDirty { first: 7, data: "00ff".into() },
            ),
            (r#"{"exists":{"from":0,"to":9}}"#, CacheOperation::Exists { from: 0, to: 9 }),
            (r#"{"flush":{}}"#, CacheOperation::Flush {}),
        ];
        for (text, command) in requests {
            let line = format!(r#"{{"v":1,"do":"cache","command":{text}}}"#);
            assert_eq!(parse(line.as_bytes()), Ok(cache(command.clone())));
            assert_eq!(serde_json::to_string(&ControlRequest { v: 1, what: cache(command) }).unwrap(), line);
        }
        let refused = parse(br#"{"v":1,"do":"cache","command":{"read":{"block":7,"len":1}}}"#).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Malformed);
        let answer = |a| serde_json::to_string(&Answer::from(Ok(Success::Cache(a)))).unwrap();
        assert_eq!(answer(CacheAnswer::Miss), r#"{"v":1,"ok":{"cache":"miss"}}"#);
        assert_eq!(answer(CacheAnswer::Data("00ff".into())), r#"{"v":1,"ok":{"cache":{"data":"00ff"}}}"#);
    }

    #[test]
    fn commands_of_a_zoned_device_look_as_documented() {
        let zoned = |command| ControlOperation::Zoned { command };
        for (text, command) in [
            (r#"{"info":{}}"#, ZonedOperation::Info {}),
            (r#"{"report":{"first":0,"most":100}}"#, ZonedOperation::Report { first: 0, most: 100 }),
            (r#"{"open":{"zone":3}}"#, ZonedOperation::Open { zone: 3 }),
            (r#"{"close":{"zone":3}}"#, ZonedOperation::Close { zone: 3 }),
            (r#"{"finish":{"zone":3}}"#, ZonedOperation::Finish { zone: 3 }),
            (r#"{"reset":{"zone":3}}"#, ZonedOperation::Reset { zone: 3 }),
            (
                r#"{"append":{"zone":3,"data":"00ff"}}"#,
                ZonedOperation::Append { zone: 3, data: "00ff".into() },
            ),
            (r#"{"read":{"at":6144,"sectors":8}}"#, ZonedOperation::Read { at: 6144, sectors: 8 }),
            (r#"{"flush":{}}"#, ZonedOperation::Flush {}),
        ] {
            let line = format!(r#"{{"v":1,"do":"zoned","command":{text}}}"#);
            assert_eq!(parse(line.as_bytes()), Ok(zoned(command.clone())));
            assert_eq!(serde_json::to_string(&ControlRequest { v: 1, what: zoned(command) }).unwrap(), line);
        }
        let answer = |a| serde_json::to_string(&Answer::from(Ok(Success::Zoned(a)))).unwrap();
        let zone = ReportedZone { zone: 3, state: ZoneState::Closed, start: 6144, write_pointer: 6152 };
        for (text, given) in [
            (r#""done""#, ZonedAnswer::Done),
            (r#"{"appended":{"at":6144}}"#, ZonedAnswer::Appended { at: 6144 }),
            (r#"{"data":"00ff"}"#, ZonedAnswer::Data("00ff".into())),
            (
                r#"{"zones":[{"zone":3,"state":"closed","start":6144,"write_pointer":6152}]}"#,
                ZonedAnswer::Zones(vec![zone]),
            ),
        ] {
            assert_eq!(answer(given), format!(r#"{{"v":1,"ok":{{"zoned":{text}}}}}"#));
        }
        let refused = Refused {
            fault: Some(frit_client::ZoneFault::TooManyOpen),
            ..Refused::new(RefusalKind::Failed, "zone 3: …")
        };
        assert_eq!(
            serde_json::to_string(&Answer::from(Err(refused))).unwrap(),
            r#"{"v":1,"error":{"kind":"failed","what":"zone 3: …","fault":"too-many-open"}}"#
        );
    }

    #[test]
    fn instructions_of_the_processing_engine_look_as_documented() {
        let command = serde_json::json!({"words": ["error"], "extents": [[4096, 512]]});
        let twice = br#"{"v":1,"do":"isp","command":{"words":["a"],"words":["b"]}}"#;
        assert!(parse(twice).unwrap_err().what.contains("has the key \"words\" twice"));
        let line = r#"{"v":1,"do":"isp","command":{"words":["error"],"extents":[[4096,512]]}}"#;
        assert_eq!(parse(line.as_bytes()), Ok(ControlOperation::Isp { command }));
        let answer = |payload: &str| {
            let result = serde_json::json!({"status": "ok"});
            let answer = IspAnswer { result, payload: payload.into() };
            serde_json::to_string(&Answer::from(Ok(Success::Isp(answer)))).unwrap()
        };
        assert_eq!(answer("00ff"), r#"{"v":1,"ok":{"isp":{"result":{"status":"ok"},"payload":"00ff"}}}"#);
        assert_eq!(answer(""), r#"{"v":1,"ok":{"isp":{"result":{"status":"ok"}}}}"#);
    }

    #[test]
    fn what_is_no_request_is_named() {
        let kind = |line: &[u8]| parse(line).unwrap_err().kind;
        assert_eq!(kind(b""), RefusalKind::Malformed);
        assert_eq!(kind(b"{}"), RefusalKind::Malformed);
        assert_eq!(kind(br#"{"v":1,"do":"format"}"#), RefusalKind::Malformed);
        assert_eq!(kind(br#"{"v":1,"do":"set","changes":[{"key":"gc"}]}"#), RefusalKind::Malformed);
        assert_eq!(kind(br#"{"v":2,"do":"format","then":{}}"#), RefusalKind::Version);
        assert_eq!(kind(&vec![b' '; REQUEST_BYTES_MAX + 1]), RefusalKind::TooLong);
        assert_eq!(kind(&[b'['; 10_000]), RefusalKind::Malformed, "nesting is bounded");
    }

    #[test]
    fn answers_come_back_as_they_were() {
        let change = ParamChange { key: "gc".into(), old: "greedy".into(), new: "fifo".into() };
        let answers = [
            Answer::from(Ok(Success::Changed(vec![change]))),
            Answer::from(Err(Refused::new(RefusalKind::TooLong, "x"))),
            Answer::from(Ok(Success::Stat(Box::default()))),
            Answer::from(Ok(Success::Hints(HintList { detect: true, ..HintList::default() }))),
        ];
        for answer in answers {
            let back: Answer = serde_json::from_slice(&line(&answer).unwrap()).unwrap();
            assert_eq!(back, answer);
        }
    }

    /// Returns a strategy for the commands of devices.
    fn device_command() -> impl Strategy<Value = ControlOperation> {
        let data = || "[0-9a-f]{0,64}";
        let zoned = prop_oneof![
            Just(ZonedOperation::Info {}),
            Just(ZonedOperation::Flush {}),
            (any::<u32>(), any::<u32>()).prop_map(|(first, most)| ZonedOperation::Report { first, most }),
            any::<u32>().prop_map(|zone| ZonedOperation::Open { zone }),
            any::<u32>().prop_map(|zone| ZonedOperation::Close { zone }),
            any::<u32>().prop_map(|zone| ZonedOperation::Finish { zone }),
            any::<u32>().prop_map(|zone| ZonedOperation::Reset { zone }),
            (any::<u32>(), data()).prop_map(|(zone, data)| ZonedOperation::Append { zone, data }),
            (any::<u64>(), any::<u32>()).prop_map(|(at, sectors)| ZonedOperation::Read { at, sectors }),
        ];
        let cache = prop_oneof![
            (any::<u32>(), data()).prop_map(|(first, data)| CacheOperation::WriteDirty { first, data }),
            (any::<u32>(), any::<u32>()).prop_map(|(from, to)| CacheOperation::Exists { from, to }),
        ];
        let nameless = prop_oneof![
            (proptest::collection::vec(any::<u32>(), 0..4), data())
                .prop_map(|(owners, data)| NamelessOperation::NamelessWrite { owners, data }),
            any::<u32>().prop_map(|most| NamelessOperation::Migrations { most }),
        ];
        let isp = (data(), any::<u64>(), any::<f64>()).prop_map(|(word, at, high)| {
            serde_json::json!({"words": [word], "extents": [[at, 512]], "histogram": {"high": high}})
        });
        prop_oneof![
            1 => isp.prop_map(|command| ControlOperation::Isp { command }),
            4 => zoned.prop_map(|command| ControlOperation::Zoned { command }),
            1 => cache.prop_map(|command| ControlOperation::Cache { command }),
            1 => nameless.prop_map(|command| ControlOperation::Nameless { command }),
        ]
    }

    proptest! {
        /// A command comes back as it was. A changed byte, or the end of a line, gives another valid
        /// request or a refusal, and never a panic.
        #[test]
        fn commands_of_devices_with_a_changed_byte(
            what in device_command(),
            at in any::<proptest::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let whole = line(&ControlRequest { v: VERSION, what: what.clone() }).unwrap();
            prop_assert_eq!(parse(&whole), Ok(what));
            let at = at.index(whole.len());
            let mut changed = whole.clone();
            changed[at] = byte;
            if let Ok(other) = parse(&changed) {
                let again = line(&ControlRequest { v: VERSION, what: other.clone() }).unwrap();
                prop_assert_eq!(parse(&again), Ok(other));
            }
            let _ = parse(&whole[..at]);
        }

        /// Any bytes must produce a request or a refusal, and never a panic.
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
