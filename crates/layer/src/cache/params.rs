//! Parameters by name, which can be read at any time and changed while the layer runs.

use super::config::{CacheConfig, Mode};
use super::layer::Cache;
use super::streams::Streams;
use crate::Token;
use frit_core::param_value::{parse_bool, parse_name, parse_number, parse_size};
use frit_core::{Error, ParamInfo, Params, Result, size};
use frit_media::Store;
use std::fmt::Display;

fn info(key: &'static str, live: bool, value: &dyn Display, help: &'static str) -> ParamInfo {
    ParamInfo { key, help, value: value.to_string(), live }
}

impl CacheConfig {
    /// Returns all parameters, in the order of the manual.
    fn params(&self) -> Vec<ParamInfo> {
        let mode: &'static str = self.mode.into();
        let overwrite: &'static str = self.overwrite.into();
        let flush: &'static str = self.disk_flush.into();
        let mut all = vec![
            info("mode", true, &mode, "where writes go: write-back, write-through, write-around"),
            info("read_caching", true, &self.read_caching, "blocks that are read from the disk are cached"),
            info(
                "threshold",
                true,
                &self.threshold,
                "share of used slots from which writes also evict blocks",
            ),
            info(
                "dirty_low",
                true,
                &self.dirty_low,
                "share that may stay dirty in idle time; more is written back and kept clean",
            ),
            info("drain", true, &self.drain, "write back all dirty blocks and keep them; turns itself off"),
            info(
                "bypass_bytes",
                true,
                &size::format(self.bypass_bytes),
                "bytes of a sequential stream after which it bypasses the cache; 0: never",
            ),
            info("bypass_streams", true, &self.bypass_streams, "streams that are tracked, 1 to 256"),
            info("flying", true, &self.flying, "share of slots that may wait for a flush of the disk"),
            info(
                "overwrite",
                false,
                &overwrite,
                "how a cached block is overwritten: out-of-place, in-place (simulations)",
            ),
            info(
                "disk_flush",
                false,
                &flush,
                "when the disk's own cache is flushed: batch, never (simulations)",
            ),
            info(
                "record_copies",
                false,
                &self.record_copies,
                "copies of each block's record: 2 tell damage from a torn write",
            ),
            info("cache_bytes", false, &size::format(self.cache_bytes), "PCM that caches data; 0: all of it"),
        ];
        all.extend(self.policy.list());
        all.extend(self.wear.params());
        all
    }
}

impl<T: Token, P: Store, D: Store> Params for Cache<T, P, D> {
    fn list(&self) -> Vec<ParamInfo> {
        self.config.params()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let mut c = self.config.clone();
        match key {
            "mode" => c.mode = parse_name::<Mode>(key, value)?,
            "read_caching" => c.read_caching = parse_bool(key, value)?,
            "threshold" => c.threshold = parse_number(key, value)?,
            "dirty_low" => c.dirty_low = parse_number(key, value)?,
            "drain" => c.drain = parse_bool(key, value)?,
            "bypass_bytes" => c.bypass_bytes = parse_size(key, value)?,
            "bypass_streams" => c.bypass_streams = parse_number(key, value)?,
            "flying" => c.flying = parse_number(key, value)?,
            _ if self.list().iter().any(|p| p.key == key) => {
                return Err(Error::param(key, value, "is fixed once the layer runs; set it in the stack"));
            }
            // `get` returns the error that lists the valid keys.
            _ => return self.get(key).map(|_| ()),
        }
        c.validate()?;
        if key == "bypass_streams" {
            self.streams = Streams::new(c.bypass_streams);
        }
        self.config = c;
        Ok(())
    }
}
