//! Record of how a trace was read: format, units and conventions, and the source of each.

use serde::Serialize;
use std::fmt;

/// Source of a fact about a trace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "how", content = "why")]
pub enum FactSource {
    /// The format fixes it.
    Fixed,
    /// The user gave it.
    Stated,
    /// It was inferred from the content, for the given reason.
    Recognised(String),
    /// The content does not determine it; the default was used, for the given reason.
    Assumed(String),
}

/// A fact about how a trace was read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// Subject of the fact ("time unit").
    pub what: &'static str,
    /// Value that was used.
    pub value: String,
    /// Source of the value.
    #[serde(flatten)]
    pub how: FactSource,
}

/// Record of how a trace was read.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Reading {
    /// Name of the format.
    pub format: String,
    /// Description of the format.
    pub about: String,
    /// Containers around the text, outermost first ("zstd", "tar: member").
    pub container: Vec<String>,
    /// Units and conventions.
    pub facts: Vec<Fact>,
}

impl Reading {
    /// Adds a fact.
    pub(crate) fn fact(&mut self, what: &'static str, value: impl Into<String>, how: FactSource) {
        self.facts.push(Fact { what, value: value.into(), how });
    }

    /// Returns the fact about a subject.
    #[must_use]
    pub fn get(&self, what: &str) -> Option<&Fact> {
        self.facts.iter().find(|f| f.what == what)
    }
}

impl Reading {
    /// Returns one line for the format, and one for each fact.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut first = self.about.clone();
        if !self.container.is_empty() {
            first = format!("{first} in {}", self.container.join(", "));
        }
        [first].into_iter().chain(self.facts.iter().map(ToString::to_string)).collect()
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.value)?;
        match &self.how {
            FactSource::Fixed => Ok(()),
            FactSource::Stated => f.write_str(" (stated)"),
            FactSource::Recognised(why) => write!(f, " (recognised: {why})"),
            FactSource::Assumed(why) => write!(f, " (ASSUMED: {why})"),
        }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("; "))
    }
}
