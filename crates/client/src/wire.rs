//! Messages that all operations share: refusals, and bytes as hexadecimal digits.

use crate::zoned::ZoneFault;
use serde::{Deserialize, Serialize};

/// Version of the protocol. A server refuses other versions and reports its own.
pub const VERSION: u32 = 1;
/// Maximum length of an answer that a client accepts, in bytes. The view of a large volume has a
/// few thousand slices of residence.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum number of bytes that one command of a device reads or writes: 64 KiB, the largest NAND page.
pub const CACHE_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of blocks in the answer to one listing of a cache.
pub const EXISTS_BLOCKS_MAX: usize = 65_536;

/// Reason of a refusal, for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// The line is not a request of this protocol.
    Malformed,
    /// The request has another protocol version.
    Version,
    /// The request is longer than the server permits.
    TooLong,
    /// The caller lacks the access right.
    Denied,
    /// A parameter cannot have this value. Nothing was changed.
    Invalid,
    /// The volume failed to execute the request.
    Failed,
    /// The maximum number of clients is connected.
    Busy,
}

/// A refusal, with a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{what}")]
pub struct Refused {
    /// Reason of the refusal.
    pub kind: RefusalKind,
    /// Message for the user.
    pub what: String,
    /// Conflict with the state of a zone, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<ZoneFault>,
}

impl Refused {
    /// Creates a refusal with a message.
    pub fn new(kind: RefusalKind, what: impl Into<String>) -> Refused {
        Refused { kind, what: what.into(), fault: None }
    }
}

/// Formats bytes as hexadecimal digits.
#[must_use]
pub fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 * bytes.len());
    for b in bytes {
        let _ = write!(text, "{b:02x}");
    }
    text
}

/// Parses hexadecimal digits, two for each byte. Blanks between bytes are allowed.
///
/// # Errors
/// A sentence about the first part that is invalid.
pub fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |c: char| c.to_digit(16).map(|d| d as u8);
    let mut bytes = Vec::with_capacity(text.len() / 2);
    for word in text.split_ascii_whitespace() {
        let digits: Option<Vec<u8>> = word.chars().map(digit).collect();
        match digits {
            Some(d) if d.len() % 2 == 0 => bytes.extend(d.chunks_exact(2).map(|d| d[0] << 4 | d[1])),
            Some(_) => return Err(format!("'{word}' has an odd number of hexadecimal digits")),
            None => return Err(format!("'{word}' is not in hexadecimal digits, such as 00ff7a")),
        }
    }
    if bytes.is_empty() { Err("there are no bytes".into()) } else { Ok(bytes) }
}
