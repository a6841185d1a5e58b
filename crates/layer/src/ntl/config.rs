//! Configuration of NTL.

use super::mapping::MappingKind;
use super::placement::ChipPlacement;
use super::rounds::{RoundFlag, RoundScope};
use frit_core::params::parse_name;
use frit_core::{Error, ParamTable, Result, SECTOR_BYTES, size};
use frit_wear::WearKeys;
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Destination of updates.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum LogKind {
    /// In place, over the old page: a dirty write.
    #[default]
    None,
    /// A log that all pages share (the paper, section IV.C): clean writes until the log is merged.
    Full,
    /// A log block of the page's own block. Only for block-level mapping (the paper, section
    /// II.B.3).
    Coarse,
    /// A small remap table for hot pages, which are written out of place on the next chip in turn.
    /// Other pages are written in place.
    Remap,
}

/// Buffer in which updates wait until there is one page for each chip.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum LogBuffer {
    /// In DRAM, whose contents a power loss destroys (the paper, section IV.C.1). Acknowledged
    /// writes are durable after a flush.
    #[default]
    Dram,
    /// No buffer: each update is written to the log at once, and is durable when it is
    /// acknowledged.
    None,
}

/// Part of the log that is merged when it is full.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum MergeUnit {
    /// The whole log (the paper, Equation 1).
    #[default]
    All,
    /// The oldest refresh unit of each chip: the log is a ring.
    Row,
}

/// Protection against power loss.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Protect {
    /// None: a power loss can tear a page that is being overwritten, and loses the tables (the
    /// paper). For simulations.
    #[default]
    None,
    /// Redo log: each page has a record, and an update is in the log before it overwrites a page.
    Redo,
}

frit_core::parameters! {
    /// Configuration of NTL, the table `[ntl]` of a stack file.
    pub struct NtlConfig {
        "mapping" mapping: String as Name<MappingKind> = "static".into(), fixed,
            "mapping of pages to chips";
        #[serde(deserialize_with = "size::deserialize")]
        "capacity" capacity: u64 as Size = 0, fixed, unit "bytes",
            "size of the volume; 0: as many bytes as fit beside the log";
        #[serde(deserialize_with = "size::deserialize")]
        "page_bytes" page_bytes: u64 as Size = 4096, fixed, unit "bytes",
            "size of a page: 512, 2K, 4K";
        "block_pages" block_pages: u32 as Number = 128, fixed, unit "pages",
            "pages of a block, for the mapping block and the log coarse: a power of two up to 65536",
            unused |c| c.mapping != "block" => "only the mapping `block` has blocks";
        "placement" placement: ChipPlacement as Keyword = ChipPlacement::RoundRobin, live,
            "chip of a first write, if the mapping does not determine it",
            unused |c| c.mapping == "static" => "static mapping fixes the chip of each page";
        "log" log: LogKind as Keyword = LogKind::None, fixed,
            "destination of updates; none: in place";
        /// Rounded up to whole refresh units on each chip. The default is that of section II.B.3:
        /// log blocks are 0.1 % of the memory.
        "log_share" log_share: f64 as Number = 0.001, fixed, unit "share of the pages", within 0.0..=0.5,
            "share of the pages that are the log",
            unused |c| c.log_kind() == LogKind::None => "there is no log";
        "log_buffer" log_buffer: LogBuffer as Keyword = LogBuffer::Dram, fixed,
            "buffer in which updates wait for a page of each chip; dram: durable once flushed",
            unused |c| c.log != LogKind::Full => "only `log` = full collects updates";
        /// Larger requests have a page for each chip already.
        "log_request_pages" log_request_pages: u32 as Number = 0, live, unit "pages",
            "largest request, in pages, whose updates go to the full log; 0: any",
            unused |c| c.log != LogKind::Full => "only `log` = full excludes large requests",
            unused |c| c.log == LogKind::Full && c.protect == Protect::Redo
                => "all protected updates go to the log";
        "merge" merge: MergeUnit as Keyword = MergeUnit::All, fixed,
            "part of a full log that is merged; row: a refresh unit of each chip",
            unused |c| matches!(c.log_kind(), LogKind::None | LogKind::Coarse)
                => "only a log that all pages share is merged by rows";
        "hot_updates" hot_updates: u32 as Number = 2, live, unit "updates", within 2..=4,
            "updates within a window that make a page hot, for the log remap",
            unused |c| c.log_kind() != LogKind::Remap
                => "only `log` = remap, unprotected, looks for hot pages";
        "protect" protect: Protect as Keyword = Protect::None, fixed,
            "redo: a power loss tears no page; none: as in the paper, for simulations";
        "rounds" rounds: RoundScope as Keyword = RoundScope::Shared, fixed,
            "requests whose pages share a counted round; shared: all; request: one";
        "round_flag" round_flag: RoundFlag as Keyword = RoundFlag::Lookup, fixed,
            "rule by which a shared round counts as dirty",
            unused |c| c.rounds == RoundScope::Request
                => "a round of one request is dirty if it has an updated page";
        include wear: WearKeys;
    }
}

impl NtlConfig {
    /// Checks the parameters as far as that is possible without the media.
    ///
    /// # Errors
    /// Returns an error that names the first invalid parameter and its valid values.
    pub fn validate(&self) -> Result<()> {
        let mapping = self.mapping_kind()?;
        self.check_ranges()?;
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
        if self.log == LogKind::Coarse && mapping != MappingKind::Block {
            let why = "a log block belongs to a block, which only the mapping `block` has (section IV.C)";
            return Err(Error::param("log", "coarse", why));
        }
        Ok(())
    }

    /// Returns the kind of the mapping.
    ///
    /// # Errors
    /// Returns an error if the name is unknown.
    pub fn mapping_kind(&self) -> Result<MappingKind> {
        parse_name("mapping", &self.mapping)
    }

    /// Rejects settings under which a power loss could tear or lose data.
    ///
    /// # Errors
    /// Returns an error that names the parameter and the right value.
    pub fn durable(&self) -> Result<()> {
        if self.protect == Protect::None {
            let why = "a power loss can tear a page and loses the tables; a volume needs redo";
            return Err(Error::param("protect", "none", why));
        }
        Ok(())
    }

    /// Returns the kind of log in effect: protection needs a log.
    #[must_use]
    pub fn log_kind(&self) -> LogKind {
        match (self.protect, self.log) {
            (Protect::Redo, LogKind::None | LogKind::Remap) => LogKind::Full,
            (_, log) => log,
        }
    }

    /// Returns `true` if updates by a request of `pages` pages go to the full log. With protection
    /// all updates do.
    #[must_use]
    pub fn logs(&self, pages: u64) -> bool {
        self.log_request_pages == 0
            || self.protect == Protect::Redo
            || pages <= u64::from(self.log_request_pages)
    }

    /// Returns `true` if updates are buffered in DRAM.
    #[must_use]
    pub fn buffers(&self) -> bool {
        self.log == LogKind::Full && self.log_buffer == LogBuffer::Dram
    }

    /// Returns `true` if log pages are refreshed before they are reused. Otherwise they are
    /// overwritten.
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
