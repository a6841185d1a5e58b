//! The parameters of all policies.

use crate::cache::BLOCK_BYTES;
use frit_core::{Error, ParamInfo, Params, Result, size};
use serde::Deserialize;
use std::fmt::Display;
use std::str::FromStr;

/// Name and parameters of the eviction policy, as a stack file has them. Parameters of other
/// policies have no effect.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyConfig {
    /// Name of the policy.
    pub policy: String,
    /// HALO: number of blocks by which a bucket must exceed the average to be evicted before it is
    /// outdated.
    #[serde(rename = "TH_BCOUNTS")]
    pub th_bcounts: i32,
    /// HALO: requests without an access before a bucket may be evicted, as a multiple of the
    /// cache's blocks.
    #[serde(rename = "TH_RECENCY")]
    pub th_recency: f64,
    /// HALO: requests without an access after which any bucket is evicted, as a multiple of the
    /// cache's blocks.
    #[serde(rename = "OUTDATE_RECENCY")]
    pub outdate_recency: f64,
    /// HALO: number of buckets scanned in one search until both thresholds are zero.
    pub halo_scan: u32,
    /// 2Q: share of the cache for blocks that were accessed once (Kin).
    pub two_q_in: f64,
    /// 2Q: number of evicted blocks that are remembered, as a share of the cache's blocks (Kout).
    pub two_q_out: f64,
    /// S3-FIFO: share of the cache for the small FIFO.
    pub s3_small: f64,
    /// S3-FIFO: number of evicted blocks that are remembered, as a share of the cache's blocks.
    pub s3_ghost: f64,
    /// S3-FIFO: number of accesses in the small FIFO from which on a block moves to the main one, 1
    /// to 3.
    pub s3_threshold: u8,
    /// WOW: bytes of a write group.
    #[serde(deserialize_with = "size::deserialize")]
    pub wow_group: u64,
    /// Sweep: smallest number of blocks that are evicted together.
    pub sweep_batch: u32,
    /// Sweep: smallest distance, in bytes, between consecutively written runs of a bucket.
    #[serde(deserialize_with = "size::deserialize")]
    pub sweep_gap: u64,
    /// Sweep: age below which the blocks of a bucket have a lower weight, as a multiple of the mean
    /// over buckets.
    pub sweep_age: f64,
    /// Sweep: number of blocks that a bucket needs to be evicted, as a multiple of the average
    /// bucket's blocks.
    pub sweep_dense: f64,
    /// Sweep: number of buckets passed until that threshold is zero.
    pub sweep_scan: u32,
}

impl Default for PolicyConfig {
    /// HALO's constants are not published. These were best, on the mean, among those that
    /// `frit reproduce halo.sweep` shows. `docs/design/cache-own-policy.md` has the same for
    /// Sweep's parameters.
    fn default() -> Self {
        PolicyConfig {
            policy: "halo".into(),
            th_bcounts: 64,
            th_recency: 0.05,
            outdate_recency: 16.0,
            halo_scan: 1024,
            two_q_in: 0.25,
            two_q_out: 0.5,
            s3_small: 0.1,
            s3_ghost: 0.9,
            s3_threshold: 2,
            wow_group: 64 << 10,
            sweep_batch: 128,
            sweep_gap: 32 << 10,
            sweep_age: 0.5,
            sweep_dense: 1.5,
            sweep_scan: 256,
        }
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
        let within = |key: &str, v: f64, low: f64, high: f64| {
            let why = || Error::param(key, v, format!("has to be from {low} to {high}"));
            (low..=high).contains(&v).then_some(()).ok_or_else(why)
        };
        if !(-256..=256).contains(&self.th_bcounts) {
            return Err(Error::param("TH_BCOUNTS", self.th_bcounts, "has to be from -256 to 256"));
        }
        within("TH_RECENCY", self.th_recency, 0.0, 1000.0)?;
        within("sweep_age", self.sweep_age, 0.0, 1000.0)?;
        within("sweep_dense", self.sweep_dense, 0.0, 256.0)?;
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
        within("OUTDATE_RECENCY", self.outdate_recency, 0.0, 1000.0)?;
        if self.outdate_recency < self.th_recency {
            let why = format!("has to be at least TH_RECENCY, which is {}", self.th_recency);
            return Err(Error::param("OUTDATE_RECENCY", self.outdate_recency, why));
        }
        if self.halo_scan == 0 {
            return Err(Error::param("halo_scan", 0, "has to be above 0"));
        }
        within("two_q_in", self.two_q_in, 0.0, 1.0)?;
        within("two_q_out", self.two_q_out, 0.0, 4.0)?;
        within("s3_small", self.s3_small, 0.0, 1.0)?;
        within("s3_ghost", self.s3_ghost, 0.0, 4.0)?;
        if !(1..=3).contains(&self.s3_threshold) {
            return Err(Error::param("s3_threshold", self.s3_threshold, "has to be from 1 to 3"));
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

fn number<V: FromStr>(key: &str, value: &str) -> Result<V> {
    let why = "is not a number, or is out of range";
    value.trim().parse().map_err(|_| Error::param(key, value, why))
}

impl Params for PolicyConfig {
    fn list(&self) -> Vec<ParamInfo> {
        let info =
            |key, value: &dyn Display, help| ParamInfo { key, help, value: value.to_string(), live: false };
        vec![
            info("policy", &self.policy, "eviction policy"),
            info(
                "TH_BCOUNTS",
                &self.th_bcounts,
                "HALO: blocks by which a bucket has to exceed the average to be evicted early",
            ),
            info(
                "TH_RECENCY",
                &self.th_recency,
                "HALO: requests without an access before a bucket may be evicted, in blocks of the cache",
            ),
            info(
                "OUTDATE_RECENCY",
                &self.outdate_recency,
                "HALO: requests without an access after which any bucket is evicted, in blocks of the cache",
            ),
            info("halo_scan", &self.halo_scan, "HALO: buckets scanned until both thresholds are zero"),
            info("two_q_in", &self.two_q_in, "2Q: share of the cache for blocks accessed once (Kin)"),
            info("two_q_out", &self.two_q_out, "2Q: evicted blocks remembered, a share of the cache (Kout)"),
            info("s3_small", &self.s3_small, "S3-FIFO: share of the cache for the small FIFO"),
            info("s3_ghost", &self.s3_ghost, "S3-FIFO: evicted blocks remembered, a share of the cache"),
            info(
                "s3_threshold",
                &self.s3_threshold,
                "S3-FIFO: accesses that move a block to the main FIFO, 1 to 3",
            ),
            info("wow_group", &self.wow_group, "WOW: bytes of a write group"),
            info("sweep_batch", &self.sweep_batch, "sweep: least number of blocks evicted together"),
            info(
                "sweep_gap",
                &size::format(self.sweep_gap),
                "sweep: least distance in bytes between runs written consecutively",
            ),
            info(
                "sweep_age",
                &self.sweep_age,
                "sweep: age below which a bucket's blocks have a lower weight, by the mean over buckets",
            ),
            info(
                "sweep_dense",
                &self.sweep_dense,
                "sweep: blocks that a bucket needs to be evicted, by the average bucket's blocks",
            ),
            info("sweep_scan", &self.sweep_scan, "sweep: buckets passed until that threshold is zero"),
        ]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let mut c = self.clone();
        match key {
            "policy" => c.policy = value.into(),
            "TH_BCOUNTS" => c.th_bcounts = number(key, value)?,
            "TH_RECENCY" => c.th_recency = number(key, value)?,
            "OUTDATE_RECENCY" => c.outdate_recency = number(key, value)?,
            "halo_scan" => c.halo_scan = number(key, value)?,
            "two_q_in" => c.two_q_in = number(key, value)?,
            "two_q_out" => c.two_q_out = number(key, value)?,
            "s3_small" => c.s3_small = number(key, value)?,
            "s3_ghost" => c.s3_ghost = number(key, value)?,
            "s3_threshold" => c.s3_threshold = number(key, value)?,
            "wow_group" => c.wow_group = size::parse(value).map_err(|why| Error::param(key, value, why))?,
            "sweep_batch" => c.sweep_batch = number(key, value)?,
            "sweep_gap" => c.sweep_gap = size::parse(value).map_err(|why| Error::param(key, value, why))?,
            "sweep_dense" => c.sweep_dense = number(key, value)?,
            "sweep_age" => c.sweep_age = number(key, value)?,
            "sweep_scan" => c.sweep_scan = number(key, value)?,
            // `get` returns the error that lists the valid keys.
            _ => return self.get(key).map(|_| ()),
        }
        c.validate()?;
        *self = c;
        Ok(())
    }
}
