//! Fields of a JSON object in a line.

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// Fields that are read of each object. Other values are skipped without being stored.
#[derive(Clone, Debug)]
pub(crate) struct JsonFields {
    /// Keys of the object.
    keys: Vec<String>,
    /// Fields: the number of a key, and the keys in the values below it.
    paths: Vec<(usize, Vec<String>)>,
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

    /// Reads the values of the keys. Returns `false` if the line is not an object.
    pub(crate) fn read(&self, line: &[u8], values: &mut Vec<Value>) -> bool {
        values.clear();
        values.resize(self.keys.len(), Value::Null);
        let mut deserializer = serde_json::Deserializer::from_slice(line);
        let read = ObjectSeed { keys: &self.keys, values }.deserialize(&mut deserializer);
        read.is_ok() && deserializer.end().is_ok()
    }

    /// Value of a field, of the values of the keys.
    pub(crate) fn field<'a>(&self, field: usize, values: &'a [Value]) -> Option<&'a Value> {
        let (key, path) = self.paths.get(field)?;
        let value = path.iter().try_fold(values.get(*key)?, |value, key| value.get(key))?;
        (!value.is_null()).then_some(value)
    }
}

struct ObjectSeed<'a> {
    keys: &'a [String],
    values: &'a mut [Value],
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(KeySeed(self.keys))? {
            match key.and_then(|key| self.values.get_mut(key)) {
                Some(value) => *value = map.next_value()?,
                None => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

/// Reads a key as its number in the list, without storing it.
struct KeySeed<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|known| known == key))
    }
}
