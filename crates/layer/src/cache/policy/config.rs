//! The parameters of all policies.

use crate::cache::BLOCK_BYTES;
use frit_core::{Error, ParamInfo, Params, Result, size};
use serde::Deserialize;
use std::fmt::Display;
use std::str::FromStr;

/// Which policy, and its parameters, as a stack file has them. Those of other policies are of no effect.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyConfig {
    /// The policy by name.
    pub policy: String,
    /// HALO: blocks by which a bucket has to exceed the average to leave before it is outdated.
    #[serde(rename = "TH_BCOUNTS")]
    pub th_bcounts: i32,
    /// HALO: requests without an access before a bucket may leave, as a multiple of the cache's blocks.
    #[serde(rename = "TH_RECENCY")]
    pub th_recency: f64,
    /// HALO: requests without an access after which any bucket leaves, as a multiple of the cache's blocks.
    #[serde(rename = "OUTDATE_RECENCY")]
    pub outdate_recency: f64,
    /// HALO: buckets scanned in one search until both thresholds are down.
    pub halo_scan: u32,
    /// 2Q: the share of the cache for blocks that came once (Kin).
    pub two_q_in: f64,
    /// 2Q: blocks remembered after they left, as a share of the cache's (Kout).
    pub two_q_out: f64,
    /// S3-FIFO: the share of the cache for the small FIFO.
    pub s3_small: f64,
    /// S3-FIFO: blocks remembered after they left, as a share of the cache's.
    pub s3_ghost: f64,
    /// S3-FIFO: accesses in the small FIFO from which on a block moves to the main one, 1 to 3.
    pub s3_threshold: u8,
    /// WOW: bytes of a write group.
    #[serde(deserialize_with = "size::deserialize")]
    pub wow_group: u64,
    /// Sweep: blocks that leave together, at least.
    pub sweep_batch: u32,
    /// Sweep: bytes between the runs of a bucket that are written one after the other, at least.
    #[serde(deserialize_with = "size::deserialize")]
    pub sweep_gap: u64,
    /// Sweep: age below which a bucket's blocks count for less, as a multiple of the mean over buckets.
    pub sweep_age: f64,
    /// Sweep: blocks that a bucket needs to leave, as a multiple of the average bucket's blocks.
    pub sweep_dense: f64,
    /// Sweep: buckets passed until that is down.
    pub sweep_scan: u32,
}

impl Default for PolicyConfig {
    /// HALO's constants are not published. These did best, on the mean, of those that `frit reproduce halo.sweep`
    /// shows; `docs/cache-own-policy.md` says the same of Sweep's.
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
    /// The defaults of a policy by name.
    #[must_use]
    pub fn named(policy: &str) -> PolicyConfig {
        PolicyConfig { policy: policy.into(), ..PolicyConfig::default() }
    }

    /// Checks what can be checked without knowing the cache.
    ///
    /// # Errors
    /// The first parameter that cannot be, with what it may be.
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
                size::show(self.sweep_gap),
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
    let why = "is no number, or too large or too small for it";
    value.trim().parse().map_err(|_| Error::param(key, value, why))
}

impl Params for PolicyConfig {
    fn list(&self) -> Vec<ParamInfo> {
        let info =
            |key, value: &dyn Display, help| ParamInfo { key, help, value: value.to_string(), live: false };
        vec![
            info("policy", &self.policy, "what leaves the cache next"),
            info(
                "TH_BCOUNTS",
                &self.th_bcounts,
                "HALO: blocks by which a bucket has to exceed the average to leave early",
            ),
            info(
                "TH_RECENCY",
                &self.th_recency,
                "HALO: requests without an access before a bucket may leave, in blocks of the cache",
            ),
            info(
                "OUTDATE_RECENCY",
                &self.outdate_recency,
                "HALO: requests without an access after which any bucket leaves, in blocks of the cache",
            ),
            info("halo_scan", &self.halo_scan, "HALO: buckets scanned until both thresholds are down"),
            info("two_q_in", &self.two_q_in, "2Q: share of the cache for blocks that came once (Kin)"),
            info("two_q_out", &self.two_q_out, "2Q: blocks remembered, as a share of the cache's (Kout)"),
            info("s3_small", &self.s3_small, "S3-FIFO: share of the cache for the small FIFO"),
            info("s3_ghost", &self.s3_ghost, "S3-FIFO: blocks remembered, as a share of the cache's"),
            info(
                "s3_threshold",
                &self.s3_threshold,
                "S3-FIFO: accesses that move a block to the main FIFO, 1 to 3",
            ),
            info("wow_group", &self.wow_group, "WOW: bytes of a write group"),
            info("sweep_batch", &self.sweep_batch, "sweep: blocks that leave together, at least"),
            info(
                "sweep_gap",
                &size::show(self.sweep_gap),
                "sweep: bytes between runs that are written one after the other, at least",
            ),
            info(
                "sweep_age",
                &self.sweep_age,
                "sweep: age below which a bucket's blocks count for less, by the mean over buckets",
            ),
            info(
                "sweep_dense",
                &self.sweep_dense,
                "sweep: blocks that a bucket needs to leave, by the average bucket's blocks",
            ),
            info("sweep_scan", &self.sweep_scan, "sweep: buckets passed until that is down"),
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
            // `get` has the error that lists what there is.
            _ => return self.get(key).map(|_| ()),
        }
        c.validate()?;
        *self = c;
        Ok(())
    }
}
