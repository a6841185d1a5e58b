//! What can go wrong below the command line, in words a user can act on.

use crate::MediumKind;

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a medium or a layer. The doc comment of each variant is what it means; its message is
/// what the user sees.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request reaches past the end of the volume.
    #[error(
        "request at sector {at} of {sectors} sectors ends past the volume of {capacity} sectors; \
         use a larger volume, or --wrap or --compact for a trace"
    )]
    OutOfRange {
        /// First sector asked for.
        at: u64,
        /// Length in sectors.
        sectors: u64,
        /// The volume's size in sectors.
        capacity: u64,
    },
    /// A layer broke a rule of the medium: a bug of the layer, never of the user.
    #[error("{medium:?} rule broken at {at}: {what}")]
    Rule {
        /// The medium.
        medium: MediumKind,
        /// The address, in the medium's own terms.
        at: u64,
        /// Which rule.
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
    /// Bytes that were read are not those that were written.
    #[error("{medium:?} data at {at} is damaged: {what}")]
    Corrupt {
        /// The medium.
        medium: MediumKind,
        /// The address, in the medium's own terms.
        at: u64,
        /// What was found.
        what: String,
    },
    /// No free space is left where data has to go.
    #[error("no space: {what}")]
    NoSpace {
        /// What ran out, and what would help.
        what: String,
    },
    /// The volume refuses writes.
    #[error("read-only: {why}")]
    ReadOnly {
        /// Why it does.
        why: String,
    },
    /// A caller without the right to address media directly.
    #[error("'{who}' may not address media directly; name it in raw_access of the layer")]
    Protected {
        /// The caller.
        who: String,
    },
    /// A parameter has a value that cannot be.
    #[error("{key} = {value}: {why}")]
    Param {
        /// The parameter.
        key: String,
        /// The value that was given.
        value: String,
        /// Why it cannot be, and what can.
        why: String,
    },
    /// A medium that cannot be used: of an impossible shape, or over bytes that are not its own.
    #[error("{what}")]
    Medium {
        /// Which one, what is wrong, and what would help.
        what: String,
    },
    /// What is asked for meets accesses that are under way (see [`crate::deferred`]): it is to be asked for again
    /// once the next of them is settled. No user sees it.
    #[error("accesses to a slow medium are under way")]
    Later,
    /// The host failed to read or write a backing file.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, and to what.
        what: String,
        /// What the operating system said.
        source: std::io::Error,
    },
}

impl Error {
    /// A parameter error.
    pub fn param(key: &str, value: impl std::fmt::Display, why: impl Into<String>) -> Error {
        Error::Param { key: key.into(), value: format!("{value}"), why: why.into() }
    }
}
