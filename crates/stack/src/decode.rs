//! Decoding of a table to a configuration. Unknown keys and wrong types are all reported at once.

use crate::error::Problem;
use crate::tree::{Entry, Table};
pub(crate) use frit_core::text::nearest;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor, value};
use serde_path_to_error::{Segment, Track};

/// What a configuration is decoded from: its code is compiled for this type only, and not again for each
/// source of values.
type AnyDeserializer<'a> = dyn erased_serde::Deserializer<'a> + 'a;

/// Returns the keys of a configuration, as serde knows them.
pub(crate) fn keys_of<T: DeserializeOwned>() -> &'static [&'static str] {
    struct Fields<'a>(&'a mut &'static [&'static str]);
    impl<'de> Deserializer<'de> for Fields<'_> {
        type Error = value::Error;
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, value::Error> {
            Err(value::Error::custom("no value"))
        }
        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            v: V,
        ) -> Result<V::Value, value::Error> {
            *self.0 = fields;
            self.deserialize_any(v)
        }
        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    let mut keys: &'static [&'static str] = &[];
    // The deserializer fails by design, after it has recorded the keys.
    let mut fields = <AnyDeserializer<'_>>::erase(Fields(&mut keys));
    drop(T::deserialize(&mut fields as &mut AnyDeserializer<'_>));
    keys
}

/// Decodes the keys of a table that belong to `T`. The table was decoded without errors before.
pub(crate) fn decode_checked<T: DeserializeOwned>(table: &toml::Table) -> Option<T> {
    decode_values(only(keys_of::<T>(), table)).ok()
}

/// Returns the entries of a table whose keys are known.
fn only(known: &[&str], table: &toml::Table) -> toml::Table {
    let known = table.iter().filter(|(k, _)| known.contains(&k.as_str()));
    known.map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// Returns the entries of a table of a file whose keys are known.
fn values_of(known: &[&str], table: &Table) -> toml::Table {
    let known = table.entries.iter().filter(|e| known.contains(&e.key.as_str()));
    known.map(|e| (e.key.clone(), e.value.to_toml())).collect()
}

/// Decodes values. An error has the key of the value at fault, and a message.
fn decode_values<T: DeserializeOwned>(values: toml::Table) -> Result<T, (Option<String>, String)> {
    let mut decoded = None;
    decode_tracked(values, &mut |deserializer| {
        decoded = Some(T::deserialize(deserializer)?);
        Ok(())
    })?;
    decoded.ok_or((None, String::new()))
}

fn decode_tracked(
    values: toml::Table,
    decode: &mut dyn FnMut(&mut AnyDeserializer<'_>) -> Result<(), erased_serde::Error>,
) -> Result<(), (Option<String>, String)> {
    let mut track = Track::new();
    let tracked = serde_path_to_error::Deserializer::new(toml::Value::Table(values), &mut track);
    let Err(error) = decode(&mut <AnyDeserializer<'_>>::erase(tracked)) else { return Ok(()) };
    let key = track.path().iter().find_map(|s| match s {
        Segment::Map { key } => Some(key.clone()),
        _ => None,
    });
    // The text of an error of TOML ends with a line about its place.
    Err((key, error.to_string().lines().next().unwrap_or_default().to_owned()))
}

/// Returns "did you mean …" if a known word is similar, else a list of the known words.
pub(crate) fn suggest(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(k) => format!("did you mean `{k}`?"),
        None if known.is_empty() => String::new(),
        None => format!("known names: {}", known.join(", ")),
    }
}

/// Reports a key that the table cannot have.
pub(crate) fn unknown_key(path: &str, entry: &Entry, known: &[&str]) -> Problem {
    Problem::new(format!("`{path}` has no key `{}`", entry.key))
        .at(Some(entry.span.clone()), "unknown key")
        .help(suggest(&entry.key, known))
}

/// Decodes the `known` keys of `table` as a `T`; the caller checks the other keys. Each value of a
/// wrong type is reported and removed, and decoding is repeated, so that all of them are found.
pub(crate) fn decode<T: DeserializeOwned>(
    path: &str,
    table: &Table,
    known: &[&str],
    problems: &mut Vec<Problem>,
) -> Option<T> {
    let mut map = values_of(known, table);
    let before = problems.len();
    // serde stops at the first error. Each round removes the value at fault, so the loop ends.
    loop {
        let (key, why) = match decode_values(map.clone()) {
            Ok(decoded) => return (problems.len() == before).then_some(decoded),
            Err(error) => error,
        };
        let entry = key.as_deref().and_then(|k| table.get(k));
        problems.push(wrong_value(path, table, entry, &why));
        match key {
            Some(k) if map.remove(&k).is_some() => {}
            _ => return None,
        }
    }
}

fn wrong_value(path: &str, table: &Table, entry: Option<&Entry>, why: &str) -> Problem {
    let Some(entry) = entry else {
        return Problem::new(format!("`{path}`: {why}")).at(Some(table.span.clone()), "in this table");
    };
    let span = Some(entry.value.span.clone());
    let Some(rest) = why.strip_prefix("unknown variant ") else {
        return Problem::new(format!("`{path}.{}`: {}", entry.key, plain_words(why)))
            .at(span, "wrong kind of value");
    };
    let mut words = rest.split('`').skip(1).step_by(2);
    let given = words.next().unwrap_or_default();
    unknown_name(path, entry, given, &words.collect::<Vec<_>>())
}

/// Reports a name that is not one of the known names.
pub(crate) fn unknown_name(path: &str, entry: &Entry, given: &str, known: &[&str]) -> Problem {
    let near = nearest(given, known.iter().copied()).map(|k| format!("did you mean `{k}`?"));
    Problem::new(format!("`{path}.{}` cannot be '{given}'; there are {}", entry.key, known.join(", ")))
        .at(Some(entry.value.span.clone()), "unknown name")
        .help(near.unwrap_or_default())
}

/// Replaces Rust types in a message by words that a user knows.
fn plain_words(why: &str) -> String {
    [
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected u64", "expected a whole number of at least 0"),
        ("expected f64", "expected a number"),
        ("expected a boolean", "expected true or false"),
    ]
    .iter()
    .fold(why.to_owned(), |text, (from, to)| text.replace(from, to))
}
