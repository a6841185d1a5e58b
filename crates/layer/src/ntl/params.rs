//! Parameters by name, which can be read at any time and changed while the layer runs.

use super::config::NtlConfig;
use super::layer::Ntl;
use super::placement::ChipPlacement;
use crate::Token;
use frit_core::param_value::{parse_name, parse_number};
use frit_core::{Error, ParamInfo, Params, Result, size};
use frit_media::Store;
use std::fmt::Display;

fn info(key: &'static str, live: bool, value: &dyn Display, help: &'static str) -> ParamInfo {
    ParamInfo { key, help, value: value.to_string(), live }
}

impl NtlConfig {
    /// Returns all parameters, in the order of the manual.
    fn params(&self) -> Vec<ParamInfo> {
        let placement: &'static str = self.placement.into();
        let log: &'static str = self.log.into();
        let buffer: &'static str = self.log_buffer.into();
        let merge: &'static str = self.merge.into();
        let protect: &'static str = self.protect.into();
        let mut all = vec![
            info("mapping", false, &self.mapping, "mapping of pages to chips: static, dynamic, block"),
            info(
                "capacity",
                false,
                &size::format(self.capacity),
                "bytes of the volume; 0: as many as fit beside the log",
            ),
            info("page_bytes", false, &size::format(self.page_bytes), "bytes of a page: 512, 2K, 4K"),
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
                "chip of a first write, if the mapping does not determine it: round-robin, least-loaded, idle",
            ),
            info("log", false, &log, "where updates go: none (in place), full, coarse, remap"),
            info("log_share", false, &self.log_share, "share of the pages that are the log"),
            info(
                "log_buffer",
                false,
                &buffer,
                "where updates wait for a page of each chip: dram (durable once flushed), none",
            ),
            info(
                "log_request_pages",
                true,
                &self.log_request_pages,
                "largest request, in pages, whose updates go to the full log; 0: any",
            ),
            info(
                "merge",
                false,
                &merge,
                "part of a full log that is merged: all, row (a refresh unit of each chip)",
            ),
            info("hot_updates", true, &self.hot_updates, "updates that make a page hot for remap, 2 to 4"),
            info(
                "protect",
                false,
                &protect,
                "redo: a power loss tears no page; none: as in the paper, for simulations",
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
            "placement" => c.placement = parse_name::<ChipPlacement>(key, value)?,
            "log_request_pages" => c.log_request_pages = parse_number(key, value)?,
            "hot_updates" => c.hot_updates = parse_number(key, value)?,
            _ if self.list().iter().any(|p| p.key == key) => {
                return Err(Error::param(key, value, "is fixed once the layer runs; set it in the stack"));
            }
            // `get` returns the error that lists the valid keys.
            _ => return self.get(key).map(|_| ()),
        }
        c.validate()?;
        self.config = c;
        Ok(())
    }
}
