//! Parameters by name: read at any time, changed while the layer runs.

use super::config::NtlConfig;
use super::layer::Ntl;
use super::placement::Placement;
use crate::Token;
use crate::named::{named, number};
use frit_core::{Error, ParamInfo, Params, Result, size};
use frit_media::Store;
use std::fmt::Display;

fn info(key: &'static str, live: bool, value: &dyn Display, help: &'static str) -> ParamInfo {
    ParamInfo { key, help, value: value.to_string(), live }
}

impl NtlConfig {
    /// All parameters, in the order of the manual.
    fn params(&self) -> Vec<ParamInfo> {
        let placement: &'static str = self.placement.into();
        let log: &'static str = self.log.into();
        let buffer: &'static str = self.log_buffer.into();
        let merge: &'static str = self.merge.into();
        let protect: &'static str = self.protect.into();
        let mut all = vec![
            info("mapping", false, &self.mapping, "on which chip a page lies: static, dynamic, block"),
            info(
                "capacity",
                false,
                &size::show(self.capacity),
                "bytes of the volume; 0: all there is room for",
            ),
            info("page_bytes", false, &size::show(self.page_bytes), "bytes of a page: 512, 2K, 4K"),
            info(
                "block_pages",
                false,
                &self.block_pages,
                "pages of a block: block-level mapping, coarse log",
            ),
            info(
                "placement",
                true,
                &placement,
                "chip of a first write, where the mapping leaves it open: round-robin, least-loaded, idle",
            ),
            info("log", false, &log, "where updates go: none (in place), full, coarse, remap"),
            info("log_share", false, &self.log_share, "share of the pages that are the log"),
            info(
                "log_buffer",
                false,
                &buffer,
                "where updates wait for a page of each chip: dram (certain once flushed), none",
            ),
            info(
                "log_request_pages",
                true,
                &self.log_request_pages,
                "the full log takes updates by requests of at most so many pages; 0: of any",
            ),
            info(
                "merge",
                false,
                &merge,
                "how much of a full log is merged: all, row (a refresh unit a chip)",
            ),
            info("hot_updates", true, &self.hot_updates, "updates that make a page hot for remap, 2 to 4"),
            info(
                "protect",
                false,
                &protect,
                "redo: a stop tears nothing; none: the paper's, for simulations",
            ),
        ];
        all.extend(self.wear.params());
        all
    }
}

impl<T: Token, P: Store> Params for Ntl<T, P> {
    fn list(&self) -> Vec<ParamInfo> {
        self.config.params()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let mut c = self.config.clone();
        match key {
            "placement" => c.placement = named::<Placement>(key, value)?,
            "log_request_pages" => c.log_request_pages = number(key, value)?,
            "hot_updates" => c.hot_updates = number(key, value)?,
            _ if self.list().iter().any(|p| p.key == key) => {
                return Err(Error::param(key, value, "is fixed once the layer runs; set it in the stack"));
            }
            // `get` has the error that lists what there is.
            _ => return self.get(key).map(|_| ()),
        }
        c.validate()?;
        self.config = c;
        Ok(())
    }
}
