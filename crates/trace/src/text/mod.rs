//! Fast parsing of text: numbers, fields, lines.

pub(crate) mod cursor;
pub(crate) mod lines;

pub(crate) use cursor::Cursor;
pub(crate) use lines::{LineDecoder, LineParser};
