//! Parameters of the cache, and the time of an access to its DRAM.

use frit_core::convert::to_f64;
use frit_core::{Nanos, size};
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Requests whose data stay in the cache. The names of MQSim are in the comments.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CachingMode {
    /// Requests go past the cache (`TURNED_OFF`).
    Off,
    /// Data of reads; writes go to the device (`READ_CACHE`).
    Read,
    /// Data of writes, until they are in the device (`WRITE_CACHE`).
    #[default]
    Write,
    /// Both (`WRITE_READ_CACHE`).
    ReadWrite,
}

impl CachingMode {
    pub(super) fn keeps_writes(self) -> bool {
        matches!(self, CachingMode::Write | CachingMode::ReadWrite)
    }

    pub(super) fn keeps_reads(self) -> bool {
        matches!(self, CachingMode::Read | CachingMode::ReadWrite)
    }
}

frit_core::parameters! {
    /// Configuration of a cache in DRAM. The times are the defaults of MQSim (`Device_Parameter_Set.cpp`):
    /// DDR with 800 MT/s on 32 bits.
    pub struct DramCacheConfig {
        "mode" mode: CachingMode as Keyword = CachingMode::Write, fixed,
            "requests whose data stay in the cache";
        /// About a thousandth of the capacity of a drive, beside its mapping table.
        #[serde(deserialize_with = "size::deserialize")]
        "capacity" capacity: u64 as Size = 64 << 20, fixed, unit "bytes", within 512..=1u64 << 40,
            "data that the cache holds, at least one page";
        #[serde(deserialize_with = "size::deserialize")]
        "page" page: u64 as Size = 0, fixed, unit "bytes", within 0..=65_536,
            "unit of caching, a multiple of 512 bytes; 0: a page of the device, at most 64 KiB";
        /// MQSim: a page for each plane.
        #[serde(deserialize_with = "size::deserialize")]
        "write_back" write_back: u64 as Size = 1 << 20, fixed, unit "bytes",
            "data that are on their way to the device, from which writes wait; 0: no limit";
        /// MQSim: 1000 (`bloom_filter_reset_step`).
        "hot_ms" hot_ms: u64 as Number = 0, live, unit "ms", within 0..=1_000_000_000,
            "a page that is written again within such an interval stays until it is evicted or flushed; 0: all pages are written to the device at once";
        "row" row: u32 as Number = 8192, live, unit "bytes", within 1..=1 << 20,
            "row of the DRAM";
        "rate" rate: u32 as Number = 800, live, unit "MT/s", within 1..=100_000,
            "transfers of the DRAM";
        "burst" burst: u32 as Number = 4, live, unit "bytes", within 1..=512,
            "width of a transfer";
        "t_rcd" t_rcd: u64 as Number = 13, live, unit "ns", within 0..=1_000_000,
            "time from the activation of a row to an access";
        "t_cl" t_cl: u64 as Number = 13, live, unit "ns", within 0..=1_000_000,
            "time from an access to its first data";
        "t_rp" t_rp: u64 as Number = 13, live, unit "ns", within 0..=1_000_000,
            "time in which a row is closed";
        "power_loss_protection" power_loss_protection: bool as Switch = false, fixed,
            "the cache survives a power loss, so a flush writes nothing; for simulations";
    }
}

impl DramCacheConfig {
    /// Time of an access, as MQSim computes it (`estimate_dram_access_time`): two transfers take the time of
    /// one, and of several rows only each second one is counted.
    pub(super) fn access(&self, bytes: u64) -> Nanos {
        let (row, burst) = (u64::from(self.row), u64::from(self.burst));
        let transfer = 1000.0 / f64::from(self.rate);
        let whole = |ns: f64| ns as u64;
        let first = self.t_rcd + self.t_cl;
        if bytes <= row {
            return Nanos(first + whole(to_f64(bytes / burst / 2) * transfer));
        }
        let each = whole(to_f64(row / burst / 2) * transfer) + self.t_rp;
        let rest = whole(to_f64(bytes % row) / (to_f64(burst) * transfer));
        Nanos(first + each * (bytes / row / 2) + first + rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_takes_the_time_of_its_rows() {
        let c = DramCacheConfig::default();
        // 13 + 13 + 1024 · 1.25, and for more than a row 26 + 1293 for each pair of rows + 26 + the rest.
        let times = [512, 4096, 8192, 12_288, 16_384, 65_536].map(|bytes| c.access(bytes).0);
        assert_eq!(times, [26 + 80, 26 + 640, 26 + 1280, 52 + 819, 52 + 1293, 52 + 4 * 1293]);
        let slow = DramCacheConfig { rate: 333, burst: 1, t_rcd: 20, t_rp: 30, ..c };
        assert_eq!([512, 20_480].map(|bytes| slow.access(bytes).0), [33 + 768, 66 + 12_330 + 1363]);
    }
}
