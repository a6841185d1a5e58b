//! Parameters by name, which `--set`, stack files and management software change.

use crate::{Error, Result};

/// One parameter, as documentation and `frit layers` show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamInfo {
    /// Name.
    pub key: &'static str,
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
        all.iter().find(|p| p.key == key).map(|p| p.value.clone()).ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(|p| p.key).collect();
            Error::param(key, "", format!("no such parameter; there are {}", known.join(", ")))
        })
    }
}
