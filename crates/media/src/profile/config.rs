//! The keys of a medium in a stack file or a profile.

use super::cells::PageLatency;
use super::drive::DriveRef;
use super::time::Picos;
use crate::disk::{Background, DriveScheduler};
use crate::nand::{CellKind, PageOrder, PlaneOps, SuspendOps};
use frit_core::{MediumKind, size};
use serde::{Deserialize, Serialize};

/// A size in bytes, written as a number or as `2K`, `16 MiB`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(transparent)]
pub struct ByteSize(pub u64);

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<ByteSize, D::Error> {
        size::deserialize(d).map(ByteSize)
    }
}

/// A latency curve: pairs of size and time.
pub type CurvePoints = Vec<(ByteSize, Picos)>;

/// Formatting of a value for tables.
trait Show {
    fn show(&self) -> String;
}

macro_rules! show {
    ($($t:ty),*) => {$(
        impl Show for $t {
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
show!(u32, u64, f64, bool, String, Picos, PageLatency, DriveRef);

impl Show for ByteSize {
    fn show(&self) -> String {
        size::format(self.0)
    }
}

macro_rules! show_name {
    ($($t:ty),*) => {$(
        impl Show for $t {
            fn show(&self) -> String {
                <&str>::from(self).into()
            }
        }
    )*};
}
show_name!(PlaneOps, CellKind, PageOrder, SuspendOps, DriveScheduler, Background, MediumKind);

impl Show for CurvePoints {
    fn show(&self) -> String {
        self.iter().map(|(s, t)| format!("{}: {t}", size::format(s.0))).collect::<Vec<_>>().join(", ")
    }
}

/// A key of [`MediumConfig`], with its meaning and the kinds of media that have it.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Kinds of media that have the key.
    pub media: &'static [MediumKind],
    /// Meaning and unit of the value.
    pub help: &'static str,
}

macro_rules! medium_config {
    ($($(#[doc = $help:literal])+ [$($kind:ident)*] $name:ident: $t:ty;)*) => {
        /// A medium as a stack file or a profile describes it: a profile and the values that differ
        /// from it, or all values. Unknown keys are refused.
        #[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct MediumConfig {
            $(
                $(#[doc = $help])+
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $name: Option<$t>,
            )*
        }

        /// All keys, in the order in which tables show them.
        pub const KEYS: &[Key] = &[$(Key {
            name: stringify!($name),
            media: &[$(MediumKind::$kind),*],
            help: concat!($($help),+).trim_ascii(),
        }),*];

        impl MediumConfig {
            /// Returns these values, completed with those of `base`.
            #[must_use]
            pub fn completed_by(self, base: MediumConfig) -> MediumConfig {
                MediumConfig { $($name: self.$name.or(base.$name),)* }
            }

            /// Returns the keys that have a value, with their values as text.
            #[must_use]
            pub fn given_keys(&self) -> Vec<(&'static Key, String)> {
                let values = [$(self.$name.as_ref().map(|v| Show::show(v)),)*];
                KEYS.iter().zip(values).filter_map(|(k, v)| Some((k, v?))).collect()
            }
        }
    };
}

medium_config! {
    /// The profile that provides the values not given here: a name, or a path to a TOML file.
    [Nand Pcm Dram Disk Object] profile: String;
    /// Kind of medium if no profile states it: nand, pcm, dram, disk or object.
    [Nand Pcm Dram Disk Object] medium: MediumKind;
    /// Number of channels.
    [Nand Pcm Dram] channels: u32;
    /// Chips per channel.
    [Nand Pcm] chips_per_channel: u32;
    /// Groups of chips per channel, with chip selects of their own on one bus; the groups work
    /// independently (default 1).
    [Pcm] groups_per_channel: u32;
    /// Dies per chip.
    [Nand] dies_per_chip: u32;
    /// Planes per die.
    [Nand] planes_per_die: u32;
    /// Blocks per plane.
    [Nand] blocks_per_plane: u32;
    /// Pages per block.
    [Nand] pages_per_block: u32;
    /// Bytes per page: a multiple of 512, up to 64K.
    [Nand] page_bytes: ByteSize;
    /// Bytes in the spare area of a page, at least 24.
    [Nand] spare_bytes: ByteSize;
    /// Part that executes one command at a time: `single` (the die, default), `independent` (each
    /// plane) or `multi` (the die, which executes equal commands to several planes together).
    [Nand] plane_ops: PlaneOps;
    /// tR of NAND: transfer of a page from the cells to the page register; a list has one time for
    /// each type of page of `cell`, LSB first. Of a solid-state drive: time of a read on its unit,
    /// without its transfer.
    [Nand Disk] t_read: PageLatency;
    /// tPROG: transfer of a page from the page register to the cells; or a list as for `t_read`.
    [Nand] t_prog: PageLatency;
    /// tBERS: the erase of a block.
    [Nand] t_erase: Picos;
    /// Bits of a cell, which are the types of pages: slc, mlc, tlc or qlc (default: all pages are
    /// equal).
    [Nand] cell: CellKind;
    /// tR of a block that is used with one bit a cell, for write caches (default: no such mode).
    [Nand] t_read_slc: Picos;
    /// tPROG of a block that is used with one bit a cell.
    [Nand] t_prog_slc: Picos;
    /// Type of a page from its index in the block: `staggered` (default) or `word-line`.
    [Nand] page_order: PageOrder;
    /// Operations that a read suspends: `none` (default), `erase` or `program-erase`.
    [Nand] suspend: SuspendOps;
    /// Time from the suspension of a program until the unit can start a read.
    [Nand] t_suspend_program: Picos;
    /// Time from the suspension of an erase until the unit can start a read.
    [Nand] t_suspend_erase: Picos;
    /// Time that each resumption adds to a program or an erase (default 0).
    [Nand] t_resume: Picos;
    /// Smallest remaining time at which a program is suspended (default 0).
    [Nand] suspend_min_program: Picos;
    /// Smallest remaining time at which an erase is suspended (default 0).
    [Nand] suspend_min_erase: Picos;
    /// Maximum number of suspensions of one program or erase (default 16).
    [Nand] max_suspends: u32;
    /// Maximum number of reads in the suspensions of one program or erase (default 64).
    [Nand] max_suspend_reads: u32;
    /// Time of the channel for the command and address cycles of a command (default 0: the other
    /// times include it).
    [Nand] t_command: Picos;
    /// The same of a program (default: as `t_command`).
    [Nand] t_command_program: Picos;
    /// The same of an erase (default: as `t_command`).
    [Nand] t_command_erase: Picos;
    /// Time of the channel for the cycles of each further plane of a multi-plane read (default: as
    /// those of the first).
    [Nand] t_plane_read: Picos;
    /// The same of a multi-plane program.
    [Nand] t_plane_program: Picos;
    /// The same of a multi-plane erase.
    [Nand] t_plane_erase: Picos;
    /// tCBSY: time from the start of the cells of a program until the data of the next page of its block can
    /// be transferred: a cache program (default: no cache programs).
    [Nand] t_cache_busy: Picos;
    /// Transfer time of one byte on the channel; for PCM, in addition to its latencies (default 0).
    [Nand Pcm] bus_per_byte: Picos;
    /// Bytes per chip.
    [Pcm] chip_bytes: ByteSize;
    /// Smallest write of a channel: a power of two from 2 to 512 bytes.
    [Pcm] write_unit: ByteSize;
    /// Bytes that share one wear counter: a power of two.
    [Pcm] line_bytes: ByteSize;
    /// Size in bytes; for a disk, the part of it that is used, from its first sector on (default:
    /// all).
    [Dram Disk] bytes: ByteSize;
    /// Consecutive bytes on one channel, or on one unit of a solid-state drive: a power of two.
    [Pcm Dram Disk] interleave_bytes: ByteSize;
    /// Read latency by size: pairs such as `[128, "12.8 us"]`.
    [Pcm] read: CurvePoints;
    /// Write latency by size.
    [Pcm] write: CurvePoints;
    /// Write latency by size over refreshed cells (default: as `write`).
    [Pcm] write_clean: CurvePoints;
    /// Smallest access that the part makes; a smaller one costs as much (default: the write unit).
    [Pcm] floor_bytes: ByteSize;
    /// Bytes that one refresh cleans; without it there are no clean writes.
    [Pcm] refresh_bytes: ByteSize;
    /// Duration of one refresh.
    [Pcm] t_refresh: Picos;
    /// Duration of a fence (default 0).
    [Pcm] t_fence: Picos;
    /// Latency of any access.
    [Dram] latency: Picos;
    /// Transfer time of one byte.
    [Dram] per_byte: Picos;
    /// Specified endurance: erases of a block (NAND), or writes of a cell (PCM).
    [Nand Pcm] endurance: u64;
    /// Specified endurance of a block that is used with one bit a cell (default: `endurance`).
    [Nand] endurance_slc: u64;
    /// Fraction of blocks that are bad from the factory (default 0).
    [Nand] factory_bad: f64;
    /// Fraction of programs that fail (default 0).
    [Nand] program_fail: f64;
    /// Fraction of erases that fail (default 0).
    [Nand] erase_fail: f64;
    /// Seed that selects the blocks, programs and erases that fail (default 0).
    [Nand] seed: u64;
    /// Units of a solid-state drive, which work in parallel, 1 to 1024.
    [Disk] units: u32;
    /// Time of a write on its unit, without its transfer.
    [Disk] t_write: Picos;
    /// Time of a flush on each unit.
    [Disk] t_flush: Picos;
    /// Bandwidth of reads over the link that all units share, in MB/s.
    [Disk] read_mb_per_s: f64;
    /// Bandwidth of writes over the link that all units share, in MB/s.
    [Disk] write_mb_per_s: f64;
    /// The drive: its values as `frit disk show` prints them, or the path of a .diskspecs file.
    [Disk] drive: DriveRef;
    /// `true` if the drive acknowledges writes from its cache (default: as the drive does).
    [Disk] write_back: bool;
    /// Maximum number of requests that the drive accepts at a time (default: as the drive does).
    [Disk] queue_depth: u32;
    /// Order in which the drive serves requests: fifo, sstf, scan, c-look, sptf (default: as the
    /// drive does).
    [Disk] order: DriveScheduler;
    /// Longest time for which the drive passes over a request that it could serve (default 1 s).
    [Disk] max_wait: Picos;
    /// `yield`: destaging, wear leveling and metadata give way to requests of the host, for
    /// `max_wait` at most (default); `equal`: they do not.
    [Disk] background: Background;
    /// Largest size of an object: a multiple of 4K, up to 1G (default 4M).
    [Object] object_bytes: ByteSize;
    /// Number of objects that the store can hold, up to 16 777 216.
    [Object] objects: u32;
    /// Number of requests that are executed at a time, 1 to 1024.
    [Object] connections: u32;
    /// Time of a put, without the transfer of its bytes.
    [Object] t_put: Picos;
    /// Time to the first byte of a get; also the time of a list and of a flush.
    [Object] t_get: Picos;
    /// Time of a delete.
    [Object] t_delete: Picos;
    /// Bandwidth of one connection, in MB/s; at most that of the link.
    [Object] connection_mb_per_s: f64;
    /// Bandwidth of the link that all connections share, in MB/s.
    [Object] link_mb_per_s: f64;
}
