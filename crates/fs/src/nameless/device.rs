//! The device as the file system uses it.

use frit_core::{Claimed, Migration, OwnedBlock, PhysicalAddress, Result};
use std::fmt::Debug;

/// A virtual block and its contents.
pub type VirtualBlock = (u32, Box<[u8]>);

/// A nameless-write device whose blocks belong to this file system. The owner of a block is the number of
/// the inode. [`frit_core::NamelessDevice`] states the guarantees.
///
/// Blocks have 4096 bytes. Errors are those of the device.
pub trait ContentDevice: Send + Debug {
    /// Returns the number of blocks of contents that always fit.
    fn capacity(&self) -> u64;

    /// Returns the number of pages that addresses can refer to.
    fn pages(&self) -> u64;

    /// Returns the number of virtual blocks.
    fn virtual_blocks(&self) -> u32;

    /// Writes blocks of one owner, and adds their addresses to `placed`.
    fn write(&mut self, owner: u32, data: &[u8], placed: &mut Vec<PhysicalAddress>) -> Result<()>;

    /// Reads consecutive blocks from byte `offset` of the first one on.
    fn read(&mut self, blocks: &[OwnedBlock], offset: u32, into: &mut [u8]) -> Result<()>;

    /// Frees a block that no durable metadata refers to.
    fn free(&mut self, block: OwnedBlock) -> Result<()>;

    /// Writes virtual blocks. They are durable with the next flush.
    fn write_virtual(&mut self, blocks: &[VirtualBlock]) -> Result<()>;

    /// Reads a virtual block. A block that was never written reads as zeros.
    fn read_virtual(&mut self, block: u32, into: &mut [u8]) -> Result<()>;

    /// Makes all contents and all virtual blocks durable, all virtual blocks together.
    fn flush(&mut self) -> Result<()>;

    /// Returns the number of blocks that the device has moved, and whose owners have not acknowledged it.
    fn pending_migrations(&mut self) -> Result<usize>;

    /// Adds up to `most` of the oldest moves that are not acknowledged.
    fn migrations(&mut self, most: usize, into: &mut Vec<Migration>) -> Result<()>;

    /// Acknowledges the oldest `count` moves: the owners know the new addresses.
    fn acknowledge(&mut self, count: usize) -> Result<()>;

    /// Claims a block that the metadata refers to, in a recovery.
    fn claim(&mut self, block: OwnedBlock) -> Result<Claimed>;

    /// Ends a recovery. Blocks that were not claimed are free.
    fn resume(&mut self) -> Result<()>;

    /// Does background work: garbage collection and wear leveling. Returns `false` if there is none.
    fn step(&mut self, budget: u32) -> Result<bool>;

    /// Shuts the device down in order. No other access follows.
    fn close(&mut self) -> Result<()>;

    /// Verifies the record of a block, and with `data` its contents.
    fn verify(&mut self, block: OwnedBlock, data: bool) -> Result<()>;
}
