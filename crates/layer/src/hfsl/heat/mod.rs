//! Detectors of hot and cold pages. A policy is one file, and one line in [`Heat`].

mod bloom;
mod counter;
mod off;

use bloom::Bloom;
use counter::Counter;
use enum_dispatch::enum_dispatch;
use frit_core::Lpn;
use off::Off;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Classifies pages as hot or cold by their writes.
#[enum_dispatch]
pub trait HeatPolicy {
    /// Records a write. Returns `true` if it makes the page hot. `counter` is the page's write
    /// counter in the map.
    fn record_write(&mut self, lpn: Lpn, counter: u8) -> bool;

    /// Returns `true` if a page is hot now.
    fn is_hot(&self, lpn: Lpn, counter: u8) -> bool;

    /// Returns the number of times that hot pages may have become cold. Between two of them a hot
    /// page stays hot.
    fn cooldowns(&self) -> u64 {
        0
    }

    /// Sets the window, in writes.
    fn set_window(&mut self, _writes: u64) {}

    /// DRAM used by the detector, in bytes.
    fn dram_bytes(&self) -> u64 {
        0
    }
}

/// All heat detectors.
#[enum_dispatch(HeatPolicy)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Heat {
    /// Bloom filters of recently written, and recently rewritten, pages (the paper, section 2.6.1).
    Bloom,
    /// Write counter of the map entry.
    Counter,
    /// No page is hot: detection is switched off.
    Off,
}
