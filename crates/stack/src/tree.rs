//! A stack file as a tree of keys and values with their source locations.

use crate::error::{Problem, SourceText, TextSpan};
use frit_core::text::Escaped;
use miette::NamedSource;
use std::ops::Range;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Maximum number of syntax errors to report. Further ones are mostly consequences of the first.
const SYNTAX_ERRORS_MAX: usize = 8;

/// A value with its source location.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) span: TextSpan,
    pub(crate) data: Data,
}

#[derive(Clone, Debug)]
pub(crate) enum Data {
    Table(Table),
    /// Any other value, arrays included.
    Plain(toml::Value),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) span: TextSpan,
    pub(crate) value: Value,
}

/// A table: its entries in the order in which they were written.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Location of the header, or of the inline table.
    pub(crate) span: TextSpan,
    pub(crate) entries: Vec<Entry>,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|e| e.key == key)
    }

    /// Returns the table at a key.
    pub(crate) fn table(&self, key: &str) -> Option<&Table> {
        self.get(key)?.value.as_table()
    }

    /// Returns the string at a key.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.value.as_str()
    }
}

impl Value {
    pub(crate) fn as_table(&self) -> Option<&Table> {
        if let Data::Table(t) = &self.data { Some(t) } else { None }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        if let Data::Plain(v) = &self.data { v.as_str() } else { None }
    }

    /// Converts the value for serde.
    pub(crate) fn to_toml(&self) -> toml::Value {
        match &self.data {
            Data::Plain(v) => v.clone(),
            Data::Table(t) => {
                toml::Value::Table(t.entries.iter().map(|e| (e.key.clone(), e.value.to_toml())).collect())
            }
        }
    }
}

/// Creates a named source text.
pub(crate) fn text(name: &str, content: &str) -> SourceText {
    Arc::new(NamedSource::new(Escaped(name).to_string(), content.to_owned()))
}

/// Reports the first control character in the text that would act upon a terminal which shows it.
pub(crate) fn control_character(text: &SourceText) -> Option<Problem> {
    let content = text.inner();
    let (at, c) = content.char_indices().find(|(_, c)| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))?;
    let line = content[..at].matches('\n').count() + 1;
    let help = "a stack file is text; in a string, write the character as \\uXXXX";
    let what =
        format!("not a stack file: line {line} of {} contains the control character {c:?}", text.name());
    Some(Problem::new(what).help(help))
}

/// Returns a range of bytes of a text, for the location of an error.
fn text_span(text: &SourceText, span: Range<usize>) -> TextSpan {
    TextSpan { text: Arc::clone(text), start: span.start, end: span.end }
}

/// Parses TOML into a tree and reports syntax errors.
pub(crate) fn parse(text: &SourceText, problems: &mut Vec<Problem>) -> Table {
    let (table, errors) = DeTable::parse_recoverable(text.inner());
    for e in errors.iter().take(SYNTAX_ERRORS_MAX) {
        let at = e.span().map(|s| text_span(text, s));
        problems.push(Problem::new(format!("invalid TOML: {}", e.message())).at(at, "here"));
    }
    let span = table.span();
    convert_table(text, table.get_ref(), span, problems)
}

fn convert_table(
    text: &SourceText,
    table: &DeTable<'_>,
    span: Range<usize>,
    problems: &mut Vec<Problem>,
) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(k, v)| Entry {
            key: k.get_ref().to_string(),
            span: text_span(text, k.span()),
            value: convert(text, v.get_ref(), v.span(), problems),
        })
        .collect();
    // The parser sorts keys by name; messages and media follow the order of the file.
    entries.sort_by_key(|e| e.span.start);
    Table { span: text_span(text, span), entries }
}

fn convert(text: &SourceText, value: &DeValue<'_>, span: Range<usize>, problems: &mut Vec<Problem>) -> Value {
    let location = text_span(text, span.clone());
    let data = match value {
        DeValue::Table(t) => Data::Table(convert_table(text, t, span, problems)),
        plain => Data::Plain(convert_plain(plain).unwrap_or_else(|| {
            let why = "is not a number of 64 bits".to_owned();
            problems.push(Problem::new(format!("a value {why}")).at(Some(location.clone()), why));
            toml::Value::Integer(0)
        })),
    };
    Value { span: location, data }
}

/// Converts a value that is not a table; `None` for a number that does not fit in 64 bits.
fn convert_plain(value: &DeValue<'_>) -> Option<toml::Value> {
    Some(match value {
        DeValue::String(s) => toml::Value::String(s.to_string()),
        DeValue::Integer(i) => toml::Value::Integer(i64::from_str_radix(i.as_str(), i.radix()).ok()?),
        DeValue::Float(f) => toml::Value::Float(f.as_str().parse().ok()?),
        DeValue::Boolean(b) => toml::Value::Boolean(*b),
        DeValue::Datetime(d) => toml::Value::Datetime(*d),
        DeValue::Array(a) => {
            toml::Value::Array(a.iter().map(|v| convert_plain(v.get_ref())).collect::<Option<_>>()?)
        }
        DeValue::Table(t) => toml::Value::Table(
            t.iter()
                .map(|(k, v)| Some((k.get_ref().to_string(), convert_plain(v.get_ref())?)))
                .collect::<Option<_>>()?,
        ),
    })
}

/// Parses the value of a `--set`: TOML if it is valid, else the text itself, so that strings need
/// no quotes.
pub(crate) fn parse_value(text: &SourceText, from: usize) -> Value {
    let given = &text.inner()[from..];
    let data = match DeValue::parse(given) {
        Ok(v) if !v.get_ref().is_table() => convert_plain(v.get_ref()),
        _ => None,
    };
    let data = match data {
        Some(toml::Value::Datetime(_)) | None => toml::Value::String(given.to_owned()),
        Some(v) => v,
    };
    Value { span: text_span(text, from..text.inner().len()), data: Data::Plain(data) }
}
