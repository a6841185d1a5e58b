//! What a user sets.

use super::mapping::MappingKind;
use super::placement::Placement;
use crate::named::named;
use crate::wear::WearKeys;
use frit_core::{Error, Result, SECTOR_BYTES, size};
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Where updates go.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum LogKind {
    /// Over the page where it lies: a dirty write.
    #[default]
    None,
    /// To a log that all pages share (the paper, section IV.C): clean writes, until the log is merged.
    Full,
    /// To a log block of the page's own block; with block-level mapping only (the paper, section II.B.3).
    Coarse,
    /// Hot pages to a small remap table, out of place on the next chip in turn; others where they lie.
    Remap,
}

/// Where updates wait until a page for each chip is there.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum LogBuffer {
    /// In DRAM, which a power cut empties (the paper, section IV.C.1): what was acknowledged is certain once
    /// flushed.
    #[default]
    Dram,
    /// Nowhere: each goes to the log at once, and is certain when acknowledged.
    None,
}

/// How much of the log is merged when it is full.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum MergeUnit {
    /// All of it (the paper, Equation 1).
    #[default]
    All,
    /// The oldest refresh unit of each chip: the log is a ring.
    Row,
}

/// What a power cut may do.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Protect {
    /// Tear a page that is being overwritten, and make the tables be forgotten (the paper). For simulations.
    #[default]
    None,
    /// Nothing: each page has a record, and what overwrites a page is in the log before.
    Redo,
}

/// Configuration of the layer, as a stack file has it under `[ntl]`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NtlConfig {
    /// How the wear of the memory is leveled: keys of the same table.
    #[serde(skip)]
    pub wear: WearKeys,
    /// On which chip a page lies: static, dynamic, block.
    pub mapping: String,
    /// Bytes of the volume; 0: as many as there is room for.
    #[serde(deserialize_with = "size::deserialize")]
    pub capacity: u64,
    /// Bytes of a page: 512, 2048 or 4096.
    #[serde(deserialize_with = "size::deserialize")]
    pub page_bytes: u64,
    /// Pages of a block, for block-level mapping and the coarse log.
    pub block_pages: u32,
    /// Which chip the first write of a page or block goes to, where the mapping leaves it open.
    pub placement: Placement,
    /// Where updates go.
    pub log: LogKind,
    /// Share of the pages that are the log, rounded up to whole refresh units on each chip.
    pub log_share: f64,
    /// Where updates wait for others.
    pub log_buffer: LogBuffer,
    /// The full log takes updates by requests of at most so many pages; 0: of any. Larger requests have a page for
    /// each chip already.
    pub log_request_pages: u32,
    /// How much of the log is merged when it is full.
    pub merge: MergeUnit,
    /// Updates of a page within a window from which on it is hot: 2 to 4, for the remap table.
    pub hot_updates: u32,
    /// What a power cut may do.
    pub protect: Protect,
}

impl Default for NtlConfig {
    fn default() -> Self {
        NtlConfig {
            wear: WearKeys::default(),
            mapping: "static".into(),
            capacity: 0,
            page_bytes: 4096,
            block_pages: 128,
            placement: Placement::RoundRobin,
            log: LogKind::None,
            // Section II.B.3: log blocks are 0.1 % of the memory.
            log_share: 0.001,
            log_buffer: LogBuffer::Dram,
            log_request_pages: 0,
            merge: MergeUnit::All,
            hot_updates: 2,
            protect: Protect::None,
        }
    }
}

impl NtlConfig {
    /// Checks what can be checked without knowing the media.
    ///
    /// # Errors
    /// The first parameter that cannot be, with what it may be.
    pub fn validate(&self) -> Result<()> {
        let mapping = self.mapping_kind()?;
        self.wear.config()?;
        if ![512, 2048, 4096].contains(&self.page_bytes) {
            return Err(Error::param("page_bytes", self.page_bytes, "has to be 512, 2048 or 4096"));
        }
        if !self.capacity.is_multiple_of(SECTOR_BYTES) {
            return Err(Error::param("capacity", self.capacity, "has to be whole sectors of 512 bytes"));
        }
        if !self.block_pages.is_power_of_two() || self.block_pages > 1 << 16 {
            return Err(Error::param(
                "block_pages",
                self.block_pages,
                "has to be a power of two up to 65536",
            ));
        }
        if !(0.0..=0.5).contains(&self.log_share) {
            return Err(Error::param("log_share", self.log_share, "has to be from 0 to 0.5"));
        }
        if !(2..=4).contains(&self.hot_updates) {
            return Err(Error::param("hot_updates", self.hot_updates, "has to be 2 to 4"));
        }
        if self.log == LogKind::Coarse && mapping != MappingKind::Block {
            let why = "a log block belongs to a block, which only the mapping `block` has (section IV.C)";
            return Err(Error::param("log", "coarse", why));
        }
        Ok(())
    }

    /// Which mapping.
    ///
    /// # Errors
    /// A name that none has.
    pub fn mapping_kind(&self) -> Result<MappingKind> {
        named("mapping", &self.mapping)
    }

    /// Refuses what a stop could tear or lose.
    ///
    /// # Errors
    /// The parameter, and what would be right.
    pub fn durable(&self) -> Result<()> {
        if self.protect == Protect::None {
            let why = "a stop can tear a page that is overwritten, and loses the tables; a volume needs redo";
            return Err(Error::param("protect", "none", why));
        }
        Ok(())
    }

    /// The log as it works: what is protected needs one.
    #[must_use]
    pub fn log_kind(&self) -> LogKind {
        match (self.protect, self.log) {
            (Protect::Redo, LogKind::None | LogKind::Remap) => LogKind::Full,
            (_, log) => log,
        }
    }

    /// Whether updates by a request of so many pages go to the full log. What is protected needs all of them there.
    #[must_use]
    pub fn logs(&self, pages: u64) -> bool {
        self.log_request_pages == 0
            || self.protect == Protect::Redo
            || pages <= u64::from(self.log_request_pages)
    }

    /// Whether updates wait for others in DRAM.
    #[must_use]
    pub fn buffers(&self) -> bool {
        self.log == LogKind::Full && self.log_buffer == LogBuffer::Dram
    }

    /// Whether log pages are refreshed before they are used again; else they are overwritten.
    #[must_use]
    pub fn refreshes(&self) -> bool {
        matches!(self.log, LogKind::Full | LogKind::Coarse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_nonsense_is_refused_by_key() {
        NtlConfig::default().validate().unwrap();
        let bad = |f: fn(&mut NtlConfig)| {
            let mut c = NtlConfig::default();
            f(&mut c);
            c.validate().unwrap_err().to_string()
        };
        assert!(bad(|c| c.mapping = "zoned".into()).contains("static, dynamic, block"));
        assert!(bad(|c| c.page_bytes = 1024).starts_with("page_bytes = 1024"));
        assert!(bad(|c| c.capacity = 1000).starts_with("capacity = 1000"));
        assert!(bad(|c| c.block_pages = 100).starts_with("block_pages = 100"));
        assert!(bad(|c| c.log_share = f64::NAN).starts_with("log_share"));
        assert!(bad(|c| c.hot_updates = 1).starts_with("hot_updates"));
        assert!(bad(|c| c.log = LogKind::Coarse).contains("only the mapping `block`"));
        assert!(NtlConfig::default().durable().unwrap_err().to_string().contains("redo"));
    }

    #[test]
    fn what_is_protected_has_a_log() {
        let of = |log, protect| NtlConfig { log, protect, ..NtlConfig::default() };
        assert_eq!(of(LogKind::None, Protect::None).log_kind(), LogKind::None);
        for log in [LogKind::None, LogKind::Remap, LogKind::Full] {
            assert_eq!(of(log, Protect::Redo).log_kind(), LogKind::Full);
        }
        assert!(!of(LogKind::None, Protect::Redo).refreshes() && !of(LogKind::None, Protect::Redo).buffers());
        assert!(of(LogKind::Full, Protect::Redo).refreshes() && of(LogKind::Full, Protect::Redo).buffers());
    }
}
