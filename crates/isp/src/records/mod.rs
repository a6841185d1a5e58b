//! Records of CSV files and of files with one JSON object a line, and their fields.

mod cell;
mod condition;
mod csv;
mod json;
mod table;

pub(crate) use cell::{Cell, Number};
pub use condition::{Comparison, Condition};
use condition::{Test, TestInView};
pub(crate) use table::{Decoder, Record, Table, held_bytes, is_made_quickly};

use crate::outcome::Failure;
use crate::text::Keys;

/// Format of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Fields with a delimiter between them and optional quotes (RFC 4180).
    Csv {
        /// Byte between fields.
        delimiter: u8,
        /// `true` if the first record of the range has the names of the columns. Else their names are
        /// their numbers from 1.
        header: bool,
    },
    /// One JSON object a line.
    JsonLines,
}

impl Format {
    /// Reads the keys `format`, `delimiter` and `header`.
    pub(crate) fn parse(keys: &mut Keys<'_>) -> Result<Self, Failure> {
        let Some(format) = keys.text("format")? else {
            return Err(Failure::invalid("the key \"format\" is missing; it is \"csv\" or \"jsonl\""));
        };
        let delimiter = keys.text("delimiter")?;
        let header = keys.optional_flag("header")?;
        match format.as_str() {
            "csv" => match delimiter.as_deref().unwrap_or(",").as_bytes() {
                [delimiter] if !b"\"\r\n".contains(delimiter) => {
                    Ok(Self::Csv { delimiter: *delimiter, header: header.unwrap_or(true) })
                }
                _ => Err(Failure::invalid("\"delimiter\" is one byte, and not a quote or the end of a line")),
            },
            "jsonl" if delimiter.is_some() || header.is_some() => {
                Err(Failure::invalid("\"delimiter\" and \"header\" need \"format\": \"csv\""))
            }
            "jsonl" => Ok(Self::JsonLines),
            other => Err(Failure::invalid(format!("\"format\" is {other:?}; it is \"csv\" or \"jsonl\""))),
        }
    }
}
