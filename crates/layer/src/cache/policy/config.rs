//! The parameters of all policies.

use super::Policy;
use crate::cache::BLOCK_BYTES;
use frit_core::{Error, ParamInfo, ParamTable, Params, Result, size};

frit_core::parameters! {
    /// Name and parameters of the eviction policy, as a stack file has them. Parameters of other
    /// policies have no effect.
    ///
    /// HALO's constants are not published. The defaults were best, on the mean, among those that
    /// `frit reproduce halo.sweep` shows. `docs/design/cache-own-policy.md` has the same for
    /// Sweep's parameters.
    pub struct PolicyConfig {
        "policy" policy: String as Name<Policy> = "halo".into(), fixed,
            "eviction policy";
        "TH_BCOUNTS" th_bcounts: i32 as Number = 64, fixed, unit "blocks", within -256..=256,
            "HALO: blocks by which a bucket has to exceed the average to be evicted early",
            unused |c| c.policy != "halo" => "the policy is not halo";
        "TH_RECENCY" th_recency: f64 as Number = 0.05, fixed, unit "cache's blocks", within 0.0..=1000.0,
            "HALO: requests without an access before a bucket may be evicted, in blocks of the cache",
            unused |c| c.policy != "halo" => "the policy is not halo";
        "OUTDATE_RECENCY" outdate_recency: f64 as Number = 16.0, fixed, unit "cache's blocks",
            within 0.0..=1000.0,
            "HALO: requests without an access after which any bucket is evicted, in blocks of the cache",
            unused |c| c.policy != "halo" => "the policy is not halo";
        "halo_scan" halo_scan: u32 as Number = 1024, fixed, unit "buckets",
            "HALO: buckets scanned until both thresholds are zero",
            unused |c| c.policy != "halo" => "the policy is not halo";
        "two_q_in" two_q_in: f64 as Number = 0.25, fixed, unit "share of the cache", within 0.0..=1.0,
            "2Q: share of the cache for blocks accessed once (Kin)",
            unused |c| c.policy != "2q" => "the policy is not 2q";
        "two_q_out" two_q_out: f64 as Number = 0.5, fixed, unit "share of the cache", within 0.0..=4.0,
            "2Q: evicted blocks remembered, a share of the cache (Kout)",
            unused |c| c.policy != "2q" => "the policy is not 2q";
        "s3_small" s3_small: f64 as Number = 0.1, fixed, unit "share of the cache", within 0.0..=1.0,
            "S3-FIFO: share of the cache for the small FIFO",
            unused |c| c.policy != "s3-fifo" => "the policy is not s3-fifo";
        "s3_ghost" s3_ghost: f64 as Number = 0.9, fixed, unit "share of the cache", within 0.0..=4.0,
            "S3-FIFO: evicted blocks remembered, a share of the cache",
            unused |c| c.policy != "s3-fifo" => "the policy is not s3-fifo";
        "s3_threshold" s3_threshold: u8 as Number = 2, fixed, unit "accesses", within 1..=3,
            "S3-FIFO: accesses that move a block to the main FIFO, 1 to 3",
            unused |c| c.policy != "s3-fifo" => "the policy is not s3-fifo";
        #[serde(deserialize_with = "size::deserialize")]
        "wow_group" wow_group: u64 as Bytes = 64 << 10, fixed, unit "bytes",
            "WOW: bytes of a write group",
            unused |c| c.policy != "wow" => "the policy is not wow";
        "sweep_batch" sweep_batch: u32 as Number = 128, fixed, unit "blocks",
            "sweep: least number of blocks evicted together",
            unused |c| c.policy != "sweep" => "the policy is not sweep";
        #[serde(deserialize_with = "size::deserialize")]
        "sweep_gap" sweep_gap: u64 as Size = 32 << 10, fixed, unit "bytes",
            "sweep: least distance in bytes between runs written consecutively",
            unused |c| c.policy != "sweep" => "the policy is not sweep";
        "sweep_age" sweep_age: f64 as Number = 0.5, fixed, unit "mean age", within 0.0..=1000.0,
            "sweep: age below which a bucket's blocks have a lower weight, by the mean over buckets",
            unused |c| c.policy != "sweep" => "the policy is not sweep";
        "sweep_dense" sweep_dense: f64 as Number = 1.5, fixed, unit "average bucket", within 0.0..=256.0,
            "sweep: blocks that a bucket needs to be evicted, by the average bucket's blocks",
            unused |c| c.policy != "sweep" => "the policy is not sweep";
        "sweep_scan" sweep_scan: u32 as Number = 256, fixed, unit "buckets",
            "sweep: buckets passed until that threshold is zero",
            unused |c| c.policy != "sweep" => "the policy is not sweep";
    }
}

impl PolicyConfig {
    /// Returns the defaults for a policy by name.
    #[must_use]
    pub fn named(policy: &str) -> PolicyConfig {
        PolicyConfig { policy: policy.into(), ..PolicyConfig::default() }
    }

    /// Checks the parameters as far as that is possible without the cache.
    ///
    /// # Errors
    /// Returns an error that names the first invalid parameter and its valid values.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        if self.sweep_gap > 1 << 20 {
            return Err(Error::param(
                "sweep_gap",
                size::format(self.sweep_gap),
                "has to be at most 1 MiB, a bucket",
            ));
        }
        if self.sweep_scan == 0 {
            return Err(Error::param("sweep_scan", 0, "has to be above 0"));
        }
        if self.outdate_recency < self.th_recency {
            let why = format!("has to be at least TH_RECENCY, which is {}", self.th_recency);
            return Err(Error::param("OUTDATE_RECENCY", self.outdate_recency, why));
        }
        if self.halo_scan == 0 {
            return Err(Error::param("halo_scan", 0, "has to be above 0"));
        }
        if !(BLOCK_BYTES..=1 << 30).contains(&self.wow_group) || !self.wow_group.is_multiple_of(BLOCK_BYTES) {
            return Err(Error::param(
                "wow_group",
                self.wow_group,
                "has to be a multiple of 4 KiB, at most 1 GiB",
            ));
        }
        Ok(())
    }
}

impl Params for PolicyConfig {
    fn list(&self) -> Vec<ParamInfo> {
        ParamTable::list(self)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let mut changed = self.clone();
        if !changed.assign(key, value)? {
            // `get` returns the error that lists the valid keys.
            return self.get(key).map(|_| ());
        }
        changed.validate()?;
        *self = changed;
        Ok(())
    }
}
