//! Parameters by name, which `--set`, stack files and management software change.
//!
//! A configuration is declared once, as a table ([`parameters!`](crate::parameters)). From the
//! table come the struct, its defaults and ranges, [`Params::list`], changes at run time, the names
//! of policies, `frit layers` and the tables of the documentation.

mod format;
mod table;

pub use format::{Bytes, Format, Keyword, List, Name, Number, Size, Switch, Text, parse_name};
pub use table::{ParamDef, ParamTable, Phase, require_within};

use crate::{Error, Result};
use std::borrow::Cow;

/// One parameter, as documentation and `frit layers` show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamInfo {
    /// Name; in a stack of several layers, the layer's name, a dot, and the name in the layer.
    pub key: Cow<'static, str>,
    /// Description with unit and valid values.
    pub help: &'static str,
    /// Current value.
    pub value: String,
    /// `true` if the parameter can change while the layer runs.
    pub live: bool,
}

/// An object with parameters.
pub trait Params {
    /// Returns all parameters with their values.
    fn list(&self) -> Vec<ParamInfo>;

    /// Changes a parameter. The change takes effect with the next request.
    ///
    /// # Errors
    /// Returns an error if the key is unknown, the value is invalid, or the parameter is fixed once
    /// the layer runs.
    fn set(&mut self, key: &str, value: &str) -> Result<()>;

    /// Returns the value of a parameter.
    ///
    /// # Errors
    /// Returns an error if the key is unknown.
    fn get(&self, key: &str) -> Result<String> {
        let all = self.list();
        let found = all.iter().find(|p| p.key == key).map(|p| p.value.clone());
        found.ok_or_else(|| unknown(key, all.iter().map(|p| &*p.key)))
    }
}

/// Returns the error for an unknown key, which lists the known ones.
fn unknown<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let known: Vec<&str> = known.collect();
    Error::param(key, "", format!("no such parameter; there are {}", known.join(", ")))
}
