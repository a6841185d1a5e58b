//! Tables of parameters: one declaration for each parameter.

use super::{ParamInfo, unknown};
use crate::{Error, Result};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Period in which a parameter can change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The parameter can change while the layer runs.
    Live,
    /// The parameter is fixed once the layer runs.
    Fixed,
    /// Fixed, and derived from the media unless the stack gives it.
    Derived,
}

impl Phase {
    // The words of the tables, which read as attributes of a parameter.
    #![expect(non_upper_case_globals, reason = "words of the macro `parameters!`")]
    #[doc(hidden)]
    pub const live: Phase = Phase::Live;
    #[doc(hidden)]
    pub const fixed: Phase = Phase::Fixed;
    #[doc(hidden)]
    pub const derived: Phase = Phase::Derived;
}

/// One parameter as its table declares it.
#[derive(Clone, PartialEq, Debug)]
pub struct ParamDef {
    /// Name.
    pub key: &'static str,
    /// Unit of the value; empty if it has none.
    pub unit: &'static str,
    /// Period in which it can change.
    pub phase: Phase,
    /// Names that the value may have, if it is a name from a list.
    pub names: &'static [&'static str],
    /// `true` if a new source file can add a name to the list.
    pub open: bool,
    /// Least and largest value, if the table limits them.
    pub range: Option<[String; 2]>,
    /// Description with the valid values.
    pub help: &'static str,
}

/// A configuration that is declared as a table, see [`parameters!`](crate::parameters).
pub trait ParamTable: Clone + Default {
    /// Returns the parameters in the order of the table; included tables come last.
    fn defs() -> Vec<ParamDef>;

    /// Returns the value of a parameter, or `None` if the table does not have it.
    fn value(&self, key: &str) -> Option<String>;

    /// Assigns a value; returns `false` if the table does not have the parameter. Ranges are not
    /// checked.
    ///
    /// # Errors
    /// The text is not a value of the parameter.
    fn assign(&mut self, key: &str, text: &str) -> Result<bool>;

    /// Checks the ranges of all values.
    ///
    /// # Errors
    /// The first value that is out of its range, and the range.
    fn check_ranges(&self) -> Result<()>;

    /// Returns the parameters that have no effect under this configuration, each with the reason.
    fn unused(&self) -> Vec<(&'static str, &'static str)>;

    /// Returns all parameters with their values.
    fn list(&self) -> Vec<ParamInfo> {
        let info = |def: ParamDef| ParamInfo {
            key: def.key.into(),
            help: def.help,
            value: self.value(def.key).unwrap_or_default(),
            live: def.phase == Phase::Live,
        };
        Self::defs().into_iter().map(info).collect()
    }

    /// Returns a copy in which a parameter has another value, for a change while the layer runs.
    ///
    /// # Errors
    /// The key is unknown, the parameter is fixed, or the text is not a value of the parameter.
    fn with_live(&self, key: &str, text: &str) -> Result<Self> {
        let all = Self::defs();
        let Some(def) = all.iter().find(|def| def.key == key) else {
            return Err(unknown(key, all.iter().map(|def| def.key)));
        };
        if def.phase != Phase::Live {
            return Err(Error::param(key, text, "is fixed once the layer runs; set it in the stack"));
        }
        let mut changed = self.clone();
        changed.assign(key, text)?;
        Ok(changed)
    }
}

/// Fails if a value is not in its range.
///
/// # Errors
/// The value is out of range; the error names the range.
pub fn require_within<T: PartialOrd + Display>(
    key: &str,
    value: &T,
    range: &RangeInclusive<T>,
) -> Result<()> {
    let why = || Error::param(key, value, format!("has to be from {} to {}", range.start(), range.end()));
    range.contains(value).then_some(()).ok_or_else(why)
}

/// Declares a configuration as a table of parameters, and implements [`ParamTable`], [`Default`]
/// and `serde::Deserialize` for it.
///
/// ```
/// frit_core::parameters! {
///     /// Configuration of a buffer.
///     pub struct BufferConfig {
///         "pages" pages: u32 as Number = 64, fixed, unit "pages", within 1..=4096,
///             "pages that the buffer holds";
///         "write_back" write_back: bool as Switch = true, live,
///             "writes are acknowledged from the buffer",
///             unused |c| c.pages == 1 => "a buffer of one page always writes through";
///     }
/// }
///
/// use frit_core::params::ParamTable;
/// let config = BufferConfig::default();
/// assert_eq!(config.value("pages").unwrap(), "64");
/// assert!(config.with_live("pages", "8").is_err());
/// assert!(!config.with_live("write_back", "false").unwrap().write_back);
/// ```
///
/// Each parameter has a key, a field, the field's type and its text form
/// ([`Format`](super::Format)), the default, a [`Phase`], optionally a unit and a range, the help
/// text, and optionally the conditions under which it has no effect. Doc comments and serde
/// attributes before the key belong to the field. `include field: Type;` adds the parameters of
/// another table, which are keys of the same table in a stack file.
#[macro_export]
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[$field_meta:meta])*
                $key:literal $field:ident: $type:ty as $format:ty = $default:expr, $phase:ident,
                    $(unit $unit:literal,)?
                    $(within $range:expr,)?
                    $help:literal
                    $(, unused |$config:ident| $condition:expr => $reason:literal)*;
            )*
            $(include $part:ident: $part_type:ty;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        $vis struct $name {
            $(
                #[doc = $help]
                $(#[$field_meta])*
                #[serde(rename = $key)]
                pub $field: $type,
            )*
            $(
                /// Parameters whose keys are in the same table of a stack file.
                #[serde(skip)]
                pub $part: $part_type,
            )*
        }

        impl ::std::default::Default for $name {
            fn default() -> Self {
                $name {
                    $($field: $default,)*
                    $($part: <$part_type as ::std::default::Default>::default(),)*
                }
            }
        }

        const _: () = {
            #[allow(unused_imports, reason = "a table uses some of the forms")]
            use $crate::params::{
                Bytes, Format, Keyword, List, Name, Number, ParamDef, ParamTable, Phase, Size, Switch, Text,
            };

            impl ParamTable for $name {
                fn defs() -> Vec<ParamDef> {
                    #[allow(unused_mut, reason = "a table may include no other")]
                    let mut all = vec![$(ParamDef {
                        key: $key,
                        unit: concat!($($unit)?),
                        phase: Phase::$phase,
                        names: <$format as Format<$type>>::NAMES,
                        open: <$format as Format<$type>>::OPEN,
                        range: None$(.or_else(|| {
                            let range = $range;
                            Some([range.start().to_string(), range.end().to_string()])
                        }))?,
                        help: $help,
                    }),*];
                    $(all.extend(<$part_type as ParamTable>::defs());)*
                    all
                }

                fn value(&self, key: &str) -> Option<String> {
                    match key {
                        $($key => Some(<$format as Format<$type>>::print(&self.$field)),)*
                        _ => {
                            $(if let Some(value) = ParamTable::value(&self.$part, key) {
                                return Some(value);
                            })*
                            None
                        }
                    }
                }

                fn assign(&mut self, key: &str, text: &str) -> $crate::Result<bool> {
                    match key {
                        $($key => self.$field = <$format as Format<$type>>::parse(key, text)?,)*
                        _ => {
                            $(if ParamTable::assign(&mut self.$part, key, text)? {
                                return Ok(true);
                            })*
                            return Ok(false);
                        }
                    }
                    #[allow(unreachable_code, reason = "a table may have only included parameters")]
                    Ok(true)
                }

                fn check_ranges(&self) -> $crate::Result<()> {
                    $($($crate::params::require_within($key, &self.$field, &$range)?;)?)*
                    $(ParamTable::check_ranges(&self.$part)?;)*
                    Ok(())
                }

                fn unused(&self) -> Vec<(&'static str, &'static str)> {
                    #[allow(unused_mut, reason = "a table may have no such parameter")]
                    let mut all: Vec<(&'static str, &'static str)> = Vec::new();
                    $($({
                        let $config = self;
                        if $condition {
                            all.push(($key, $reason));
                        }
                    })*)*
                    $(all.extend(ParamTable::unused(&self.$part));)*
                    all
                }
            }
        };
    };
}
