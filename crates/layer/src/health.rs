//! Health of a layer: refused writes, and missing records.

use frit_core::planted::{PlantedBug, is_planted};
use frit_core::{Error, Finding, MediumKind, Recovery, Result, Severity};

/// State of health.
#[derive(Clone, Default, Debug)]
pub(crate) struct Health {
    /// Reason for which writes are refused. Reads continue.
    refusal: Option<String>,
    /// Description of records that are damaged in all copies. Their blocks are unknown, so any
    /// block without a record may be one of them. It is `None` in a layer that has no summary of
    /// its records.
    missing: Option<String>,
}

impl Health {
    /// Checks that writes are accepted.
    ///
    /// # Errors
    /// `ReadOnly`, with the reason, if writes are refused.
    #[inline]
    pub(crate) fn writable(&self) -> Result<()> {
        match &self.refusal {
            Some(why) => Err(Error::ReadOnly { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Returns the reason for which writes are refused, if they are.
    #[inline]
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Refuses writes from now on. The first reason is kept.
    pub(crate) fn refuse(&mut self, why: String) {
        self.refusal.get_or_insert(why);
    }

    /// Refuses writes after an unexpected error of a request, because tables and media may
    /// disagree, and returns the error.
    ///
    /// These errors are expected in every layer: `OutOfRange`, `NoSpace`, `Zone` and `ReadOnly`, which
    /// refuse the request, and `Corrupt`, which a write meets while it reads old contents, before
    /// it has changed anything. `intact` states that the layer knows of another reason for which
    /// tables and media agree. `bug` is the planted bug that continues anyway.
    #[cold]
    pub(crate) fn refuse_after(&mut self, e: Error, intact: bool, bug: impl PlantedBug) -> Error {
        let of_request = matches!(
            e,
            Error::OutOfRange { .. }
                | Error::NoSpace { .. }
                | Error::Zone { .. }
                | Error::ReadOnly { .. }
                | Error::Corrupt { .. }
        );
        if !of_request && !intact && !is_planted(bug) {
            self.refuse(format!("an earlier write failed: {e}"));
        }
        e
    }

    /// Returns `true` if records are missing.
    pub(crate) fn has_missing(&self) -> bool {
        self.missing.is_some()
    }

    /// Notes that records are missing: writes are refused, and so are reads of blocks without a
    /// record.
    pub(crate) fn note_missing(&mut self, what: String, recovery: &mut Recovery) {
        self.refusal = Some(what.clone());
        recovery.unnamed.push(what.clone());
        self.missing = Some(what);
    }

    /// Forgets the missing records, before the records are read again. Refused writes stay refused.
    pub(crate) fn forget_missing(&mut self) {
        self.missing = None;
    }

    /// Accepts that blocks with missing records have older contents, and accepts writes again.
    pub(crate) fn accept_missing(&mut self) {
        *self = Health::default();
    }

    /// Checks that a block without a record cannot be one whose record is missing. `block` returns
    /// the address of the records, and a description of the block.
    ///
    /// # Errors
    /// `Corrupt`, with a description of the missing records.
    #[inline]
    pub(crate) fn check_not_missing(&self, block: impl FnOnce() -> (u64, String)) -> Result<()> {
        let Some(missing) = &self.missing else { return Ok(()) };
        let (at, block) = block();
        let what = format!("{block}, or its record is lost: {missing}");
        Err(Error::Corrupt { medium: MediumKind::Pcm, at, what })
    }

    /// Returns the finding of a check about missing records, if there are any. `at` is the address
    /// of the records.
    pub(crate) fn missing_finding(&self, at: u64, repaired: bool) -> Option<Finding> {
        let what = self.missing.clone()?;
        let (kind, severity) = ("missing-records", Severity::Major);
        Some(Finding {
            layer: String::new(),
            kind,
            severity,
            lpn: None,
            medium: MediumKind::Pcm,
            at,
            what,
            repaired,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::HfslBug;

    fn after(e: Error, intact: bool) -> Health {
        let mut health = Health::default();
        health.refuse_after(e, intact, HfslBug::NotPoisoned);
        health
    }

    #[test]
    fn only_an_unexpected_error_refuses_writes() {
        let full = || Error::NoSpace { what: "full".into() };
        let failed = || Error::Medium { what: "it fails".into() };
        assert!(after(full(), false).writable().is_ok());
        assert!(after(failed(), true).writable().is_ok());
        let mut health = after(failed(), false);
        assert_eq!(health.refusal(), Some("an earlier write failed: it fails"));
        assert!(matches!(health.writable(), Err(Error::ReadOnly { .. })));
        health.refuse("later".into());
        assert_eq!(health.refusal(), Some("an earlier write failed: it fails"), "the first reason stays");
    }

    #[test]
    fn missing_records_refuse_writes_until_they_are_accepted() {
        let (mut health, mut recovery) = (Health::default(), Recovery::default());
        let block = || (64, "block 7".to_owned());
        assert!(health.check_not_missing(block).is_ok() && health.missing_finding(64, false).is_none());
        health.note_missing("2 records".into(), &mut recovery);
        assert_eq!(recovery.unnamed, ["2 records"]);
        assert!(health.has_missing() && health.writable().is_err());
        let why = health.check_not_missing(block).unwrap_err().to_string();
        assert!(why.contains("block 7, or its record is lost: 2 records"), "{why}");
        assert!(health.missing_finding(64, true).is_some_and(|f| f.repaired && f.at == 64));
        health.forget_missing();
        assert!(!health.has_missing() && health.writable().is_err());
        health.accept_missing();
        assert!(health.writable().is_ok());
    }
}
