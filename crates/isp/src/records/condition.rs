//! Conditions on the fields of a record.

use super::{Cell, Number};
use crate::matcher::{Check, Expressions, Matcher, Pattern, Searches};
use crate::outcome::Failure;
use crate::text::shortened;
use serde_json::Value;
use std::cmp::Ordering;

/// Comparison of a field with a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `contains`: the text of the field contains the value.
    Contains,
    /// `matches`: the value is a regular expression that matches the text of the field.
    Matches,
    /// `exists`: the record has the field. There is no value.
    Exists,
    /// `missing`: the record does not have the field. There is no value.
    Missing,
}

impl Comparison {
    const NAMES: [(&'static str, Self); 10] = [
        ("=", Self::Equal),
        ("!=", Self::NotEqual),
        ("<", Self::Less),
        ("<=", Self::LessOrEqual),
        (">", Self::Greater),
        (">=", Self::GreaterOrEqual),
        ("contains", Self::Contains),
        ("matches", Self::Matches),
        ("exists", Self::Exists),
        ("missing", Self::Missing),
    ];

    /// Name in an instruction.
    fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Contains | Self::Matches | Self::Exists | Self::Missing => false,
        }
    }
}

/// Condition on a field. A number is compared with fields that are numbers, a boolean with those that are
/// `true` or `false`, and a string with the text of fields. A condition with a value is false for a field
/// that the record does not have, or that is of another kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// Name of the field.
    pub field: String,
    /// Comparison.
    pub comparison: Comparison,
    /// Value: a number, a string, a boolean, or null if the comparison has none.
    pub value: Value,
}

impl Condition {
    /// Reads `[["field", ">", 5], …]`.
    pub(crate) fn parse_all(value: &Value) -> Result<Vec<Self>, Failure> {
        let form = || {
            let names = Comparison::NAMES.map(|(name, _)| name).join(" ");
            Failure::invalid(format!(
                "\"where\" is a list of conditions [field, comparison, value], such as [[\"size\", \">\", 100]]; the \
                 comparisons are {names}, and the last two have no value"
            ))
        };
        let conditions = value.as_array().ok_or_else(form)?;
        let parse = |condition: &Value| {
            let (field, comparison, value) = match condition.as_array().map(Vec::as_slice) {
                Some([field, comparison]) => (field, comparison, &Value::Null),
                Some([field, comparison, value]) => (field, comparison, value),
                _ => return Err(form()),
            };
            let (Some(field), Some(name)) = (field.as_str(), comparison.as_str()) else { return Err(form()) };
            let (_, comparison) =
                Comparison::NAMES.into_iter().find(|(known, _)| *known == name).ok_or_else(form)?;
            let parsed = Self { field: field.into(), comparison, value: value.clone() };
            parsed.check().map(|()| parsed)
        };
        conditions.iter().map(parse).collect()
    }

    /// Regular expression of the condition.
    pub(crate) fn regex(&self) -> Option<&str> {
        self.value.as_str().filter(|_| self.comparison == Comparison::Matches)
    }

    /// Fails if the comparison does not take the value.
    fn check(&self) -> Result<(), Failure> {
        let needs = match (self.comparison, &self.value) {
            (Comparison::Exists | Comparison::Missing, Value::Null) => return Ok(()),
            (Comparison::Exists | Comparison::Missing, _) => "has no value",
            (_, Value::String(_)) => return Ok(()),
            (Comparison::Contains | Comparison::Matches, _) => "needs a string",
            (_, Value::Number(_)) | (Comparison::Equal | Comparison::NotEqual, Value::Bool(_)) => {
                return Ok(());
            }
            (_, Value::Bool(_)) => {
                "needs a number or a string; only \"=\" and \"!=\" compare with true and false"
            }
            (Comparison::Equal | Comparison::NotEqual, _) => "needs a number, a string, true or false",
            _ => "needs a number or a string",
        };
        let name = self.comparison.name();
        let condition = if self.value.is_null() {
            serde_json::json!([self.field, name])
        } else {
            serde_json::json!([self.field, name, self.value])
        };
        Err(Failure::invalid(format!("{name:?} in {} {needs}", shortened(&condition))))
    }
}

/// Condition in the form in which records are tested.
pub(crate) struct Test {
    /// Number of the field in the list of fields that the instruction reads.
    field: usize,
    comparison: Comparison,
    value: TestValue,
}

enum TestValue {
    None,
    Number(Number),
    Boolean(bool),
    Text(Vec<u8>),
    Pattern(Box<Matcher>),
}

impl Test {
    /// Compiles a condition. The field is added to the list of fields that the instruction reads.
    pub(crate) fn new(
        condition: &Condition,
        fields: &mut Vec<String>,
        expressions: Expressions<'_>,
    ) -> Result<Self, Failure> {
        condition.check()?;
        let value = match (condition.comparison, &condition.value) {
            (Comparison::Matches, Value::String(text)) => {
                let pattern = Pattern::Regex(text.clone());
                TestValue::Pattern(Box::new(Matcher::of_texts(&pattern, expressions)?))
            }
            (_, Value::String(text)) => TestValue::Text(text.clone().into_bytes()),
            (_, Value::Bool(value)) => TestValue::Boolean(*value),
            (_, Value::Number(number)) => {
                TestValue::Number(Number::from_json(number).ok_or_else(|| {
                    Failure::invalid(format!("{number} is not a number that can be compared"))
                })?)
            }
            _ => TestValue::None,
        };
        let field = field_index(fields, &condition.field);
        Ok(Self { field, comparison: condition.comparison, value })
    }

    /// Returns the condition for the records of a view.
    pub(crate) fn in_view(&self) -> TestInView<'_> {
        let searches = match &self.value {
            TestValue::Pattern(matcher) => Some(matcher.searches()),
            _ => None,
        };
        TestInView { test: self, searches }
    }

    /// Returns `true` if an expression takes long.
    pub(crate) fn is_expensive(&self) -> bool {
        matches!(&self.value, TestValue::Pattern(matcher) if matcher.is_complex())
    }

    /// Returns the largest range that the caller's thread scans itself.
    pub(crate) fn inline_bytes(&self, usual: u64) -> u64 {
        match &self.value {
            TestValue::Pattern(matcher) => matcher.inline_bytes(usual),
            _ => usual,
        }
    }

    /// Compares a value with that of the condition, if it is no expression.
    fn compares(&self, cell: &Cell<'_>) -> bool {
        match &self.value {
            TestValue::None => matches!(cell, Cell::Missing) == (self.comparison == Comparison::Missing),
            TestValue::Number(value) => {
                cell.number().is_some_and(|number| self.comparison.accepts(number.compare(*value)))
            }
            TestValue::Boolean(value) => {
                cell.boolean().is_some_and(|boolean| self.comparison.accepts(boolean.cmp(value)))
            }
            TestValue::Pattern(_) => false,
            TestValue::Text(value) => cell.text().is_some_and(|text| {
                if self.comparison == Comparison::Contains {
                    memchr::memmem::find(&text, value).is_some()
                } else {
                    self.comparison.accepts((*text).cmp(value.as_slice()))
                }
            }),
        }
    }
}

/// Condition for the records of a view.
pub(crate) struct TestInView<'t> {
    test: &'t Test,
    /// Searches for an expression.
    searches: Option<Searches<'t>>,
}

impl TestInView<'_> {
    /// Returns `true` if a record with these values of the fields meets the condition.
    pub(crate) fn accepts(&mut self, cells: &[Cell<'_>], check: Check<'_>) -> Result<bool, Failure> {
        let Some(cell) = cells.get(self.test.field) else { return Ok(false) };
        match &mut self.searches {
            Some(searches) => cell.text().map_or(Ok(false), |text| searches.is_match(&text, check)),
            None => Ok(self.test.compares(cell)),
        }
    }
}

/// Number of a field in a list, to which it is added if necessary.
pub(crate) fn field_index(fields: &mut Vec<String>, field: &str) -> usize {
    fields.iter().position(|known| known == field).unwrap_or_else(|| {
        fields.push(field.into());
        fields.len() - 1
    })
}
