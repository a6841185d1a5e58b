//! Keys of a JSON object, with messages about those that are wrong.

use crate::outcome::Failure;
use serde_json::{Map, Value};

/// Keys of a JSON object. Each one that is taken is known, and others are errors.
pub(crate) struct Keys<'a> {
    place: &'static str,
    map: &'a Map<String, Value>,
    known: Vec<&'static str>,
}

impl<'a> Keys<'a> {
    /// Reads the keys of an object. `example` is one for the message about another value.
    pub(crate) fn new(place: &'static str, example: &str, value: &'a Value) -> Result<Self, Failure> {
        let map = value
            .as_object()
            .ok_or_else(|| Failure::invalid(format!("{place} is not a JSON object, such as {example}")))?;
        Ok(Self { place, map, known: Vec::new() })
    }

    /// Returns all keys of the object, quoted.
    pub(crate) fn all(&self) -> Vec<String> {
        self.map.keys().map(|key| shortened(&Value::from(key.as_str()))).collect()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Returns the value of a key.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.map.get(key)
    }

    /// Fails if the object has a key that was not taken.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.map.keys().find(|key| !self.known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                let known = self.known.join(", ");
                Err(Failure::invalid(format!(
                    "{} has the unknown key {key:?}; its keys are {known}",
                    self.place
                )))
            }
        }
    }

    fn wrong(&self, key: &str, form: &str) -> Failure {
        let value = self.map.get(key).unwrap_or(&Value::Null);
        wrong(key, value, form)
    }

    /// Returns the string of a key.
    pub(crate) fn text(&mut self, key: &'static str) -> Result<Option<String>, Failure> {
        let value = self.take(key);
        value.map(|value| self.as_text(key, value)).transpose()
    }

    pub(crate) fn as_text(&self, key: &str, value: &Value) -> Result<String, Failure> {
        value.as_str().map(str::to_owned).ok_or_else(|| wrong(key, value, "a string"))
    }

    /// Returns the whole number of a key.
    pub(crate) fn number(&mut self, key: &'static str) -> Result<Option<u64>, Failure> {
        self.number_up_to(key, u64::MAX)
    }

    /// Returns the whole number of a key, which is at most `most`.
    pub(crate) fn number_up_to(&mut self, key: &'static str, most: u64) -> Result<Option<u64>, Failure> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let number = value.as_u64().filter(|number| *number <= most);
        number.map(Some).ok_or_else(|| self.wrong(key, &format!("a whole number from 0 to {most}")))
    }

    /// Returns a number that is a size in memory.
    pub(crate) fn size(&mut self, key: &'static str) -> Result<Option<usize>, Failure> {
        let number = self.number(key)?;
        number.map(|n| usize::try_from(n).map_err(|_| self.wrong(key, "a smaller number"))).transpose()
    }

    pub(crate) fn float(&mut self, key: &'static str) -> Result<Option<f64>, Failure> {
        let value = self.take(key);
        value.map(|value| value.as_f64().ok_or_else(|| self.wrong(key, "a number"))).transpose()
    }

    /// Returns the boolean of a key, or `false` without the key.
    pub(crate) fn flag(&mut self, key: &'static str) -> Result<bool, Failure> {
        Ok(self.optional_flag(key)?.unwrap_or(false))
    }

    pub(crate) fn optional_flag(&mut self, key: &'static str) -> Result<Option<bool>, Failure> {
        let value = self.take(key);
        value.map(|value| value.as_bool().ok_or_else(|| self.wrong(key, "true or false"))).transpose()
    }

    /// Reads one of several names.
    pub(crate) fn one_of<T: Copy>(
        &self,
        key: &str,
        value: &Value,
        names: &[(&'static str, T)],
    ) -> Result<T, Failure> {
        let name = value.as_str();
        names.iter().find(|(known, _)| Some(*known) == name).map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<_> = names.iter().map(|(known, _)| *known).collect();
            wrong(key, value, &format!("one of {}", known.join(", ")))
        })
    }

    /// Reads a list of names of fields.
    pub(crate) fn names(&self, key: &str, value: &Value) -> Result<Vec<String>, Failure> {
        let names = value.as_array().map(|names| names.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
        let names = names
            .flatten()
            .ok_or_else(|| wrong(key, value, "a list of strings, such as [\"host\", \"size\"]"))?;
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    /// Reads a list of extents, each of them `[offset, length]`.
    pub(crate) fn extents(&self, key: &str, value: &Value) -> Result<Vec<(u64, u64)>, Failure> {
        let extent = |item: &Value| match item.as_array()?.as_slice() {
            [offset, length] => Some((offset.as_u64()?, length.as_u64()?)),
            _ => None,
        };
        let extents = value.as_array().map(|list| list.iter().map(extent).collect::<Option<Vec<_>>>());
        let form = "a list of extents, each with its first byte and length, such as [[4096, 512]]";
        extents.flatten().ok_or_else(|| wrong(key, value, form))
    }

    /// Reads bytes: a string, or `{"hex": "00ff"}`.
    pub(crate) fn bytes(&self, key: &str, value: &Value) -> Result<Vec<u8>, Failure> {
        as_bytes(value).ok_or_else(|| wrong(key, value, "a string, or bytes such as {\"hex\": \"00ff\"}"))
    }

    /// Reads a list of words: strings, or bytes as `{"hex": "00ff"}`.
    pub(crate) fn words(&self, key: &str, value: &Value) -> Result<Vec<Vec<u8>>, Failure> {
        let form = || {
            let form =
                "a list of strings, such as [\"error\", \"warn\"], or of bytes such as {\"hex\": \"00ff\"}";
            wrong(key, value, form)
        };
        let words = value.as_array().ok_or_else(form)?;
        words.iter().map(|item| as_bytes(item).ok_or_else(form)).collect()
    }
}

fn as_bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Object(object) if object.len() == 1 => from_hex(object.get("hex")?.as_str()?),
        _ => None,
    }
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? * 16 + digit(*low)?) as u8);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

fn wrong(key: &str, value: &Value, form: &str) -> Failure {
    Failure::invalid(format!("{key:?} is {}; it must be {form}", shortened(value)))
}

/// Value for a message, without the end of a long one.
pub(crate) fn shortened(value: &Value) -> String {
    let mut text = value.to_string();
    if text.len() > 100 {
        text.truncate(text.floor_char_boundary(100));
        text.push('…');
    }
    text
}
