//! Violations of promises, and the oracles that find them.

use frit_core::Error;
use serde::Serialize;
use strum::IntoStaticStr;

/// Oracle that found a violation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Oracle {
    /// Recovery must succeed.
    Recovers,
    /// A block holds its last acknowledged version, or a later one.
    Content,
    /// A block is never torn or mixed.
    Torn,
    /// Acknowledged data can be read.
    Reads,
    /// A check reports no finding.
    Check,
    /// A second recovery gives the same contents.
    Again,
    /// A recovery after an interrupted recovery gives the same contents.
    Converges,
    /// The volume accepts writes and returns their data.
    Alive,
    /// Commands by cause add up to the commands that the media counted.
    Accounting,
    /// A layer follows the rules of its media.
    Rule,
    /// A layer does not panic.
    Panic,
    /// An error of a store reaches the client, and no later write succeeds.
    Poisoned,
    /// A check finds damage that a client cannot detect.
    Unseen,
    /// A zone has the data of its writes in their order, without a gap.
    Zones,
}

/// A promise that does not hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Violation {
    /// Oracle that found it.
    pub oracle: Oracle,
    /// Description.
    pub what: String,
}

impl Violation {
    /// Creates a violation.
    pub fn new(oracle: Oracle, what: impl Into<String>) -> Violation {
        Violation { oracle, what: what.into() }
    }

    /// Creates the violation for an unexpected error.
    #[must_use]
    pub fn error(oracle: Oracle, doing: &str, e: &Error) -> Violation {
        let oracle = if matches!(e, Error::Rule { .. }) { Oracle::Rule } else { oracle };
        Violation::new(oracle, format!("{doing}: {e}"))
    }
}
