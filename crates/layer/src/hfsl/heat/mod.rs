//! What tells hot pages from cold ones. A policy is one file, and one line in [`Heat`].

mod bloom;
mod counter;
mod off;

use bloom::Bloom;
use counter::Counter;
use enum_dispatch::enum_dispatch;
use frit_core::Lpn;
use off::Off;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Judges heat from writes.
#[enum_dispatch]
pub trait HeatPolicy {
    /// Takes note of a write and says whether it makes the page hot. `counter` is the page's
    /// write counter in the map.
    fn wrote(&mut self, lpn: Lpn, counter: u8) -> bool;

    /// Whether a page is hot now.
    fn is_hot(&self, lpn: Lpn, counter: u8) -> bool;

    /// Sets the window, in writes.
    fn set_window(&mut self, _writes: u64) {}

    /// DRAM that it uses, in bytes.
    fn dram_bytes(&self) -> u64 {
        0
    }
}

/// All heat policies.
#[enum_dispatch(HeatPolicy)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Heat {
    /// Bloom filters of the pages written, and written again, lately (the paper, section 2.6.1).
    Bloom,
    /// The write counter of the map entry.
    Counter,
    /// Nothing is hot: the module is switched off.
    Off,
}
