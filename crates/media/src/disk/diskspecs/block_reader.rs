//! Typed access to the parameters of a block.

use super::DiskspecsError;
use super::text::{ParameterBlock, ParameterValue, ValueKind};
use crate::disk::spec::OverheadAfter;
use frit_core::Nanos;

/// A block whose parameters are consumed one by one. Those that remain are reported.
pub(super) struct BlockReader<'a> {
    pub block: &'a ParameterBlock,
    consumed: Vec<&'a str>,
}

impl<'a> BlockReader<'a> {
    pub(super) fn new(block: &'a ParameterBlock) -> BlockReader<'a> {
        BlockReader { block, consumed: Vec::new() }
    }

    pub(super) fn value(&mut self, key: &'static str) -> Option<&'a ParameterValue> {
        self.consumed.push(key);
        self.block.find(key)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Result<Option<&'a str>, DiskspecsError> {
        match self.value(key) {
            None => Ok(None),
            Some(ParameterValue { kind: ValueKind::Text(t), .. }) => Ok(Some(t)),
            Some(v) => Err(v.at.error(format!("'{key}' should be a word or a number"))),
        }
    }

    pub(super) fn number(&mut self, key: &'static str) -> Result<Option<f64>, DiskspecsError> {
        self.value(key).map(|v| number(key, v)).transpose()
    }

    pub(super) fn required(&mut self, key: &'static str) -> Result<f64, DiskspecsError> {
        let missing = || self.block.at.error(format!("'{key}' is missing in this block"));
        let value = self.block.find(key).ok_or_else(missing)?;
        self.consumed.push(key);
        number(key, value)
    }

    /// Consumes a whole number from 0 to `max`.
    pub(super) fn whole_number(
        &mut self,
        key: &'static str,
        max: u64,
    ) -> Result<Option<u64>, DiskspecsError> {
        let Some(x) = self.number(key)? else { return Ok(None) };
        if x < 0.0 || x > max as f64 || x.fract() != 0.0 {
            let at = self.block.find(key).map_or(&self.block.at, |v| &v.at);
            return Err(at.error(format!("'{key}' is {x}; it should be a whole number from 0 to {max}")));
        }
        Ok(Some(x as u64))
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Result<bool, DiskspecsError> {
        Ok(self.whole_number(key, 9)?.is_some_and(|x| x != 0))
    }

    /// Consumes a time of 0 to 60 000 milliseconds.
    pub(super) fn time(&mut self, key: &'static str) -> Result<Option<Nanos>, DiskspecsError> {
        let Some(ms) = self.number(key)? else { return Ok(None) };
        if !(0.0..=60_000.0).contains(&ms) {
            let at = self.block.find(key).map_or(&self.block.at, |v| &v.at);
            return Err(at.error(format!("'{key}' is {ms}; it should be a time from 0 to 60000 ms")));
        }
        Ok(Some(Nanos::from_us(ms * 1e3)))
    }

    pub(super) fn time_or_zero(&mut self, key: &'static str) -> Result<Nanos, DiskspecsError> {
        Ok(self.time(key)?.unwrap_or(Nanos::ZERO))
    }

    pub(super) fn after(
        &mut self,
        read: &'static str,
        write: &'static str,
    ) -> Result<OverheadAfter, DiskspecsError> {
        Ok(OverheadAfter { read: self.time_or_zero(read)?, write: self.time_or_zero(write)? })
    }

    /// Adds a note for each parameter that was not consumed. None is an error, since DiskSim's
    /// dialects differ.
    pub(super) fn note_unknown(self, notes: &mut Vec<String>) {
        for (key, v) in &self.block.entries {
            if !self.consumed.contains(&key.as_str()) {
                notes.push(format!(
                    "{}:{}: '{key}' is not known and is ignored",
                    v.at.file.display(),
                    v.at.line
                ));
            }
        }
    }
}

/// Parses a number, decimal or with the prefix `0x`.
pub(super) fn number(key: &str, v: &ParameterValue) -> Result<f64, DiskspecsError> {
    let ValueKind::Text(t) = &v.kind else { return Err(v.at.error(format!("'{key}' should be a number"))) };
    let parsed: Option<f64> = match t.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|x| x as f64),
        None => t.parse().ok(),
    };
    parsed
        .filter(|x| x.is_finite())
        .ok_or_else(|| v.at.error(format!("'{key}' is '{t}'; it should be a number")))
}
