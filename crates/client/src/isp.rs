//! Instructions to the processing engine of a served volume.

use crate::command::{self, DeviceKind};
use crate::connection::{ClientError, Connection};
use crate::wire::{RefusalKind, Refused, from_hex, to_hex};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// Result of an instruction, as serialized.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IspAnswer {
    /// Keys of the result, as in a command file.
    pub result: Value,
    /// Payload in hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub payload: String,
}

/// Result of an instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct IspResult {
    /// Keys of the result, as in a command file (docs/reference/isp.md).
    pub result: Value,
    /// Lines or records that the instruction returns.
    pub payload: Vec<u8>,
}

/// Extents of a volume.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VolumeExtents {
    /// Name space that the addresses belong to; `None`: they are those of the volume.
    pub namespace: Option<String>,
    /// First byte and length of each extent; `None`: all bytes.
    pub list: Option<Vec<(u64, u64)>>,
}

/// Query for words.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct WordQuery {
    /// Words: 1 to 64 of 1 to 256 bytes.
    pub words: Vec<Vec<u8>>,
    /// Bytes to search: the extents, one after the other.
    pub extents: VolumeExtents,
    /// Number of positions to return of each word.
    pub positions: usize,
    /// The query fails if the bytes change during the scan.
    pub fail_if_changed: bool,
}

/// Occurrences of words.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct WordsFound {
    /// Occurrences of each word, in the order of the query.
    pub words: Vec<WordCount>,
    /// Bytes changed during the scan: the counts are of a mixture of their states.
    pub changed: bool,
    /// Positions were cut at the limit of memory. Counts never are.
    pub truncated: bool,
    /// Number of bytes that the engine has read.
    pub bytes_scanned: u64,
}

/// Occurrences of a word.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct WordCount {
    /// Number of occurrences.
    pub count: u64,
    /// Positions of the first ones in the data: the extents, one after the other.
    pub positions: Vec<u64>,
    /// Addresses of these positions in the volume or the name space. Empty if no extents were given: a
    /// position is an address then.
    #[serde(default)]
    pub addresses: Vec<u64>,
}

impl WordQuery {
    /// Returns the query as an instruction.
    #[must_use]
    pub fn instruction(&self) -> Value {
        let word = |word: &Vec<u8>| match std::str::from_utf8(word) {
            Ok(text) => json!(text),
            Err(_) => json!({ "hex": to_hex(word) }),
        };
        let mut instruction = json!({
            "words": self.words.iter().map(word).collect::<Vec<_>>(),
            "positions": self.positions,
            "fail_if_changed": self.fail_if_changed,
        });
        if let Some(list) = &self.extents.list {
            instruction["extents"] = json!(list);
        }
        if let Some(namespace) = &self.extents.namespace {
            instruction["namespace"] = json!(namespace);
        }
        instruction
    }
}

impl IspAnswer {
    /// Decodes the payload.
    ///
    /// # Errors
    /// The payload is not in hexadecimal digits.
    pub fn decode(self) -> Result<IspResult, ClientError> {
        let payload = match self.payload.as_str() {
            "" => Vec::new(),
            digits => from_hex(digits).map_err(ClientError::Answer)?,
        };
        Ok(IspResult { result: self.result, payload })
    }
}

impl IspResult {
    /// Returns the typed results of an instruction that succeeded.
    ///
    /// # Errors
    /// The instruction failed, for example because bytes changed; the result has another form.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        if self.result["status"] == "ok" {
            return T::deserialize(&self.result).map_err(|e| ClientError::Answer(e.to_string()));
        }
        let what = self.result["error"].as_str().unwrap_or("the instruction failed");
        Err(Refused::new(RefusalKind::Failed, what).into())
    }
}

/// A client of the processing engine of a served volume.
#[derive(Debug)]
pub struct IspClient {
    connection: Connection,
}

impl IspClient {
    /// Connects to the control socket of a volume.
    ///
    /// # Errors
    /// `NotFound` or `ConnectionRefused` if no server listens there.
    pub fn connect(socket: &Path) -> io::Result<IspClient> {
        let mut connection = Connection::open(socket)?;
        // A scan takes its time. A server that ends closes the connection.
        connection.limit_wait(None)?;
        Ok(IspClient { connection })
    }

    /// Executes an instruction, whose form is that of a command file, with `extents` in place of a file.
    ///
    /// # Errors
    /// The server refuses the instruction, or ends. A failure during the scan is a status of the result.
    pub fn execute(&mut self, instruction: &Value) -> Result<IspResult, ClientError> {
        let answer: IspAnswer = command::execute(&mut self.connection, DeviceKind::Isp, instruction)?;
        answer.decode()
    }

    /// Counts words, and locates the first ones.
    ///
    /// # Errors
    /// As for [`IspClient::execute`]; a failure during the scan.
    pub fn words(&mut self, query: &WordQuery) -> Result<WordsFound, ClientError> {
        self.execute(&query.instruction())?.parse()
    }
}
