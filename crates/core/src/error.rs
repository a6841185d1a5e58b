//! Errors below the command line, worded so that a user can act on them.

use crate::{MediumKind, ZoneFault};

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a medium or a layer. The doc comment of a variant states its meaning; the message is
/// the text that the user sees.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request reaches past the end of the volume.
    #[error(
        "request at sector {at} of {sectors} sectors ends past the volume of {capacity} sectors; \
         use a larger volume, or --wrap or --compact for a trace"
    )]
    OutOfRange {
        /// First sector of the request.
        at: u64,
        /// Length in sectors.
        sectors: u64,
        /// Size of the volume, in sectors.
        capacity: u64,
    },
    /// A layer violated a rule of the medium. This is a bug of the layer, never a mistake of the
    /// user.
    #[error("{medium:?} rule violated at {at}: {what}")]
    Rule {
        /// The medium.
        medium: MediumKind,
        /// The address, in the medium's own terms.
        at: u64,
        /// The violated rule.
        what: &'static str,
    },
    /// A NAND program reported failure; the page is lost and the block should be retired.
    #[error("program of physical page {ppn} failed")]
    ProgramFailed {
        /// The page.
        ppn: u32,
    },
    /// A NAND erase reported failure; the block must be retired.
    #[error("erase of block {block} failed")]
    EraseFailed {
        /// The block.
        block: u32,
    },
    /// Data that was read differs from the data that was written.
    #[error("{medium:?} data at {at} is damaged: {what}")]
    Corrupt {
        /// The medium.
        medium: MediumKind,
        /// The address, in the medium's own terms.
        at: u64,
        /// Description of the damage.
        what: String,
    },
    /// No free space is left for the data.
    #[error("no space: {what}")]
    NoSpace {
        /// The exhausted resource, and a remedy.
        what: String,
    },
    /// The volume refuses writes.
    #[error("read-only: {why}")]
    ReadOnly {
        /// Reason.
        why: String,
    },
    /// A request does not fit the state of a zone.
    #[error("zone {zone}: {what}")]
    Zone {
        /// The zone.
        zone: u32,
        /// Kind of conflict.
        fault: ZoneFault,
        /// Description: the state of the zone, its write pointer, and a remedy.
        what: String,
    },
    /// A caller without the right to address media directly.
    #[error("'{who}' may not address media directly; name it in raw_access of the layer")]
    Protected {
        /// The caller.
        who: String,
    },
    /// A parameter has an invalid value.
    #[error("{key}{}{value}: {why}", if value.is_empty() { "" } else { " = " })]
    Param {
        /// The parameter.
        key: String,
        /// The value that was given. Empty: there is none.
        value: String,
        /// Reason, and the valid values.
        why: String,
    },
    /// A medium that cannot be used: its shape is impossible, or its backing bytes belong to
    /// another use.
    #[error("{what}")]
    Medium {
        /// Name of the medium, description of the problem, and a remedy.
        what: String,
    },
    /// The request conflicts with accesses in flight (see [`crate::deferred`]). The caller must
    /// repeat it after the next of them is completed. Users never see this error.
    #[error("accesses to a slow medium are in flight")]
    WouldBlock,
    /// The host failed to read or write a backing file.
    #[error("{what}: {source}")]
    Io {
        /// Operation that failed, and its object.
        what: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

impl Error {
    /// Returns the same error, with the layer below another one in which it occurred.
    #[must_use]
    pub fn in_layer(self, layer: &str) -> Error {
        let named = |what: String| format!("layer '{layer}': {what}");
        match self {
            Error::Corrupt { medium, at, what } => Error::Corrupt { medium, at, what: named(what) },
            Error::NoSpace { what } => Error::NoSpace { what: named(what) },
            Error::ReadOnly { why } => Error::ReadOnly { why: named(why) },
            Error::Medium { what } => Error::Medium { what: named(what) },
            Error::Io { what, source } => Error::Io { what: named(what), source },
            Error::Param { key, value, why } => Error::Param { key: format!("{layer}.{key}"), value, why },
            other => other,
        }
    }

    /// Creates a parameter error.
    pub fn param(key: &str, value: impl std::fmt::Display, why: impl Into<String>) -> Error {
        Error::Param { key: key.into(), value: format!("{value}"), why: why.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_without_a_value_has_no_equals_sign() {
        assert_eq!(Error::param("size", 5, "is too small").to_string(), "size = 5: is too small");
        assert_eq!(Error::param("store", "", "is needed").to_string(), "store: is needed");
    }
}
