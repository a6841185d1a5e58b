//! How a trace was read: format, units and conventions, and how each became known. Never silent.

use serde::Serialize;
use std::fmt;

/// How a fact about a trace became known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "how", content = "why")]
pub enum How {
    /// The format fixes it.
    Fixed,
    /// The user said so.
    Stated,
    /// It was inferred from the content, for this reason.
    Recognised(String),
    /// The content does not tell; the default was taken, for this reason.
    Assumed(String),
}

/// One fact about how a trace was read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// What it is about ("time unit").
    pub what: &'static str,
    /// What was taken.
    pub value: String,
    /// How it became known.
    #[serde(flatten)]
    pub how: How,
}

/// How a trace was read.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Reading {
    /// The format's name.
    pub format: String,
    /// The format in words.
    pub about: String,
    /// What the text was wrapped in, outermost first ("zstd", "tar: member").
    pub container: Vec<String>,
    /// Units and conventions.
    pub facts: Vec<Fact>,
}

impl Reading {
    /// Adds a fact.
    pub(crate) fn fact(&mut self, what: &'static str, value: impl Into<String>, how: How) {
        self.facts.push(Fact { what, value: value.into(), how });
    }

    /// A fact's value, by what it is about.
    #[must_use]
    pub fn get(&self, what: &str) -> Option<&Fact> {
        self.facts.iter().find(|f| f.what == what)
    }
}

impl Reading {
    /// One line for the format, and one for each fact.
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
            How::Fixed => Ok(()),
            How::Stated => f.write_str(" (stated)"),
            How::Recognised(why) => write!(f, " (recognised: {why})"),
            How::Assumed(why) => write!(f, " (ASSUMED: {why})"),
        }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("; "))
    }
}
