//! Parameters by name: what `--set`, a stack file and management software change.

use crate::{Error, Result};

/// One parameter as documentation and `frit layers` show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamInfo {
    /// Its name.
    pub key: &'static str,
    /// What it does, its unit and its values.
    pub help: &'static str,
    /// Its value now.
    pub value: String,
    /// Whether it can change while the layer runs.
    pub live: bool,
}

/// Something with parameters.
pub trait Params {
    /// All parameters with their values.
    fn list(&self) -> Vec<ParamInfo>;

    /// Changes one; it takes effect with the next request.
    ///
    /// # Errors
    /// An unknown key, a value that cannot be, or a parameter that is fixed once the layer runs.
    fn set(&mut self, key: &str, value: &str) -> Result<()>;

    /// The value of one.
    ///
    /// # Errors
    /// An unknown key.
    fn get(&self, key: &str) -> Result<String> {
        let all = self.list();
        all.iter().find(|p| p.key == key).map(|p| p.value.clone()).ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(|p| p.key).collect();
            Error::param(key, "", format!("no such parameter; there are {}", known.join(", ")))
        })
    }
}
