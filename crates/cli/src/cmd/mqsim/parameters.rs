//! The parameters of a configuration file of MQSim, with their places in the file.

use miette::{LabeledSpan, MietteDiagnostic, NamedSource, Report, Result};
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

/// Root of a configuration.
const ROOT: &str = "Execution_Parameter_Set";
/// Elements that hold parameters.
const SETS: [&str; 3] = ["Host_Parameter_Set", "Device_Parameter_Set", "Flash_Parameter_Set"];

/// One parameter.
struct Parameter {
    name: String,
    value: String,
    span: Range<usize>,
    /// `true` once the stack or a comment has it.
    used: bool,
}

/// All parameters of a file, in its order.
pub(super) struct Parameters {
    file: String,
    text: String,
    all: Vec<Parameter>,
}

impl Parameters {
    /// Reads the parameters of a file with this name and text.
    ///
    /// # Errors
    /// The text is malformed, or is no configuration of MQSim.
    pub(super) fn parse(file: &str, text: &str) -> Result<Parameters> {
        let mut parameters = Parameters { file: file.to_owned(), text: text.to_owned(), all: Vec::new() };
        let document = roxmltree::Document::parse(text).map_err(|e| {
            let at = offset(text, e.pos());
            parameters.error(at..at, format!("malformed XML: {e}"), "close every element that is opened")
        })?;
        let root = document.root_element();
        let name = root.tag_name().name();
        if name != ROOT {
            let hint = if name.starts_with("MQSim_IO_Scenario") {
                "this is a definition of workloads: docs/guide/from-mqsim.md has their translation"
            } else {
                "give the ssdconfig.xml of MQSim"
            };
            let at = root.range().start + 1;
            return Err(parameters.error(at..at + name.len(), format!("the root is not {ROOT}"), hint));
        }
        parameters.add(root)?;
        Ok(parameters)
    }

    fn add(&mut self, set: roxmltree::Node<'_, '_>) -> Result<()> {
        for node in set.children().filter(roxmltree::Node::is_element) {
            let name = node.tag_name().name();
            if SETS.contains(&name) {
                self.add(node)?;
                continue;
            }
            if node.children().any(|c| c.is_element()) {
                let at = node.range().start + 1;
                let what = format!("'{name}' is no set of parameters of MQSim");
                return Err(self.error(at..at + name.len(), what, &format!("sets: {}", SETS.join(", "))));
            }
            if self.all.iter().any(|p| p.name == name) {
                return Err(self.error(node.range(), format!("{name} is given twice"), "remove one of them"));
            }
            let value = node.text().unwrap_or_default().trim().to_owned();
            self.all.push(Parameter { name: name.to_owned(), value, span: node.range(), used: false });
        }
        Ok(())
    }

    /// Makes an error at a place in the file.
    fn error(&self, at: Range<usize>, what: impl Display, hint: &str) -> Report {
        let diagnostic = MietteDiagnostic::new(what.to_string())
            .with_help(hint.to_owned())
            .with_label(LabeledSpan::new_with_span(Some("here".to_owned()), at));
        Report::new(diagnostic).with_source_code(NamedSource::new(&self.file, self.text.clone()))
    }

    /// Makes an error about the value of a parameter.
    pub(super) fn refuse(&self, name: &str, why: &str, hint: &str) -> Report {
        match self.all.iter().find(|p| p.name == name) {
            Some(p) => self.error(p.span.clone(), format!("{name} = {}: {why}", p.value), hint),
            None => self.error(0..0, format!("{name}: {why}"), hint),
        }
    }

    /// Takes the text of a parameter, if the file has it.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let p = self.all.iter_mut().find(|p| p.name == name)?;
        p.used = true;
        Some(p.value.clone())
    }

    /// Takes a number. Without it in the file, it is `default`, or an error if that is `None`.
    ///
    /// # Errors
    /// The number is missing, malformed or outside `within`.
    pub(super) fn number<N>(&mut self, name: &str, within: RangeInclusive<N>, default: Option<N>) -> Result<N>
    where
        N: FromStr + PartialOrd + Display,
    {
        let valid = format!("valid: {} to {}", within.start(), within.end());
        match (self.text(name), default) {
            (Some(text), _) => match text.parse::<N>() {
                Ok(n) if within.contains(&n) => Ok(n),
                Ok(_) => Err(self.refuse(name, "out of range", &valid)),
                Err(_) => Err(self.refuse(name, "not a number of its kind", &valid)),
            },
            (None, Some(default)) => Ok(default),
            (None, None) => Err(self.refuse(name, "missing", &format!("add <{name}>N</{name}>; {valid}"))),
        }
    }

    /// Takes a word, in capitals. Without it in the file, it is the first of `valid`.
    ///
    /// # Errors
    /// The word is not one of `valid`.
    pub(super) fn word(&mut self, name: &str, valid: &[&'static str]) -> Result<&'static str> {
        let Some(text) = self.text(name) else { return Ok(valid[0]) };
        let capitals = text.to_uppercase();
        valid
            .iter()
            .find(|&&v| v == capitals)
            .copied()
            .ok_or_else(|| self.refuse(name, "unknown", &format!("valid: {}", valid.join(", "))))
    }

    /// Takes a switch. Without it in the file, it is `default`.
    ///
    /// # Errors
    /// The value is neither true nor false.
    pub(super) fn flag(&mut self, name: &str, default: bool) -> Result<bool> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.to_lowercase().parse().map_err(|_| self.refuse(name, "not a switch", "valid: true, false"))
    }

    /// Takes all parameters that were not taken yet, in the order of the file.
    pub(super) fn rest(&mut self) -> Vec<(String, String)> {
        let mut rest = Vec::new();
        for p in self.all.iter_mut().filter(|p| !p.used) {
            p.used = true;
            rest.push((p.name.clone(), p.value.clone()));
        }
        rest
    }
}

/// Returns the offset in bytes of a place in a text.
fn offset(text: &str, at: roxmltree::TextPos) -> usize {
    let line: usize = text.split_inclusive('\n').take(at.row as usize - 1).map(str::len).sum();
    let columns = text[line..].chars().take(at.col as usize - 1).map(char::len_utf8);
    (line + columns.sum::<usize>()).min(text.len())
}
