//! Keys of groups: the texts of the fields that define a group.

use crate::records::Cell;
use serde_json::Value;

/// Appends a field of a key: its length plus one, or zero if it is missing, and its text.
pub(super) fn encode(key: &mut Vec<u8>, cell: &Cell<'_>) {
    let text = cell.text();
    let len = text.as_ref().map_or(0, |text| text.len() as u64 + 1);
    key.extend_from_slice(&len.to_le_bytes());
    key.extend_from_slice(&text.unwrap_or_default());
}

/// Fields of a key.
pub(super) fn decode(mut key: &[u8]) -> Vec<Value> {
    let mut fields = Vec::new();
    while let Some((len, rest)) = key.split_first_chunk() {
        let len = u64::from_le_bytes(*len) as usize;
        let (text, rest) = rest.split_at(len.saturating_sub(1).min(rest.len()));
        fields.push(if len == 0 { Value::Null } else { String::from_utf8_lossy(text).into() });
        key = rest;
    }
    fields
}
