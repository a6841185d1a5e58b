//! Fields of a JSON object in a line.

mod scanner;

pub(super) use scanner::decode;

use scanner::Scanner;
use std::ops::Range;

/// Fields that are read of each object. Other values are checked as well, so that the validity of a line
/// does not depend on the fields.
#[derive(Clone, Debug)]
pub(crate) struct JsonFields {
    /// Keys of the object.
    keys: Vec<String>,
    /// Fields: the number of a key, and the keys in the values below it.
    paths: Vec<(usize, Vec<String>)>,
}

/// Places of the values of an object in its line. It is reused for the next line.
#[derive(Default)]
pub(crate) struct JsonValues {
    /// Bytes of the value of each key, or none.
    places: Vec<Range<usize>>,
    /// Buffer of the scanner.
    open: Vec<u8>,
}

impl JsonFields {
    /// Selects fields by their names: keys with dots between them.
    pub(crate) fn new(fields: &[String]) -> Self {
        let mut keys = Vec::new();
        let path = |field: &String| {
            let mut parts = field.split('.');
            let key = super::condition::field_index(&mut keys, parts.next().unwrap_or_default());
            (key, parts.map(str::to_owned).collect())
        };
        let paths = fields.iter().map(path).collect();
        Self { keys, paths }
    }

    /// Finds the values of the keys. Returns `false` if the line is not an object in JSON.
    pub(crate) fn read(&self, line: &[u8], values: &mut JsonValues) -> bool {
        let JsonValues { places, open } = values;
        places.clear();
        places.resize(self.keys.len(), 0..0);
        let mut scanner = Scanner::new(line);
        let object = scanner.object(open, |key, value| {
            if let Some(at) = self.keys.iter().position(|known| is_key(key, known)) {
                places[at] = value;
            }
        });
        object.is_some() && scanner.end().is_some() && std::str::from_utf8(line).is_ok()
    }

    /// Text of the value of a field in the line that was read.
    pub(crate) fn field<'a>(
        &self,
        field: usize,
        line: &'a [u8],
        values: &mut JsonValues,
    ) -> Option<&'a [u8]> {
        let (key, path) = self.paths.get(field)?;
        let JsonValues { places, open } = values;
        let mut value = line.get(places.get(*key)?.clone())?;
        for key in path {
            value = member(value, key, open)?;
        }
        (!value.is_empty() && value != b"null").then_some(value)
    }
}

/// Text of the value of a key, if a value is an object that has it. The last one counts.
fn member<'a>(object: &'a [u8], wanted: &str, open: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut found = None;
    Scanner::new(object).object(open, |key, value| {
        if is_key(key, wanted) {
            found = object.get(value);
        }
    })?;
    found
}

fn is_key(key: &[u8], wanted: &str) -> bool {
    key == wanted.as_bytes() || key.contains(&b'\\') && *decode(key) == *wanted.as_bytes()
}
