//! Commands of a served solid-state cache.

use crate::command::{self, DeviceKind, unexpected};
use crate::connection::{ClientError, Connection};
use crate::wire::{CACHE_BYTES_MAX, from_hex, to_hex};
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::Range;
use std::path::Path;

/// A command, as serialized. Blocks are numbers of blocks of the disk that the program caches.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CacheOperation {
    /// Returns the sizes and the state of the cache.
    Info {},
    /// Reads a block.
    Read {
        /// The block.
        block: u32,
    },
    /// Writes whole blocks that the disk does not have.
    WriteDirty {
        /// First block.
        first: u32,
        /// Contents in hexadecimal digits.
        data: String,
    },
    /// Writes whole blocks that the disk has as well.
    WriteClean {
        /// First block.
        first: u32,
        /// Contents in hexadecimal digits.
        data: String,
    },
    /// Removes blocks.
    Evict {
        /// First block.
        from: u32,
        /// Block after the last one.
        to: u32,
    },
    /// Makes blocks clean: the disk durably has their contents.
    Clean {
        /// First block.
        from: u32,
        /// Block after the last one.
        to: u32,
    },
    /// Lists the blocks that are present.
    Exists {
        /// First block.
        from: u32,
        /// Block after the last one.
        to: u32,
    },
    /// Makes all earlier commands durable.
    Flush {},
}

/// Sizes and state of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CacheInfo {
    /// Size of a block, in bytes.
    pub block_bytes: u32,
    /// Number of addresses: blocks have the numbers below it.
    pub addresses: u32,
    /// Largest number of blocks that are present together.
    pub blocks: u64,
    /// Number of dirty blocks up to which dirty writes find space.
    pub dirty_limit: u64,
    /// Number of dirty blocks.
    pub dirty_blocks: u64,
    /// `true` if dirty writes and evictions are durable when they are acknowledged, and not only after
    /// a flush.
    pub durable_on_ack: bool,
}

/// State of a block that is present.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheState {
    /// The disk has the same data. The device may drop the block at any time.
    Clean,
    /// Only the device has the data.
    Dirty,
}

/// A block that is present.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PresentBlock {
    /// The block.
    pub block: u32,
    /// Its state.
    pub state: CacheState,
}

/// Answer to a command, as serialized.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheAnswer {
    /// The command was executed.
    Done,
    /// The block of a read is not present.
    Miss,
    /// Contents of a block, in hexadecimal digits.
    Data(String),
    /// Sizes and state.
    Info(CacheInfo),
    /// Blocks that are present.
    Present {
        /// The blocks, in ascending order.
        blocks: Vec<PresentBlock>,
        /// Block after the last one that was examined: the begin of the next listing.
        end: u32,
    },
}

/// A served solid-state cache.
///
/// The guarantees are those of FlashTier (EuroSys 2012, section 3.2), for commands that are durable
/// (after a [`CacheClient::flush`], or at once where [`CacheInfo::durable_on_ack`] says so):
///
/// 1. A read after a dirty write returns that data, until the block is cleaned, evicted or overwritten.
/// 2. A read after a clean write returns that data or a miss, never older data.
/// 3. A read after an eviction is a miss.
#[derive(Debug)]
pub struct CacheClient {
    connection: Connection,
    info: CacheInfo,
}

impl CacheClient {
    /// Connects to the control socket of a served cache: `ctl.sock` in the directory of the volume.
    ///
    /// # Errors
    /// No server listens there, or its volume is not a solid-state cache.
    pub fn open(socket: &Path) -> Result<CacheClient, ClientError> {
        let mut connection = Connection::open(socket)?;
        match execute(&mut connection, &CacheOperation::Info {})? {
            CacheAnswer::Info(info) => Ok(CacheClient { connection, info }),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns the size of a block, in bytes.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.info.block_bytes as usize
    }

    /// Returns the number of addresses: blocks have the numbers below it.
    #[must_use]
    pub fn addresses(&self) -> u32 {
        self.info.addresses
    }

    /// Returns the sizes and the current state.
    ///
    /// # Errors
    /// The server did not answer.
    pub fn info(&mut self) -> Result<CacheInfo, ClientError> {
        match execute(&mut self.connection, &CacheOperation::Info {})? {
            CacheAnswer::Info(info) => Ok(info),
            other => Err(unexpected(&other)),
        }
    }

    /// Reads a block; `None` if it is not present.
    ///
    /// # Errors
    /// A dirty block that is damaged; the server did not answer.
    pub fn read(&mut self, block: u32) -> Result<Option<Vec<u8>>, ClientError> {
        match execute(&mut self.connection, &CacheOperation::Read { block })? {
            CacheAnswer::Miss => Ok(None),
            CacheAnswer::Data(hex) => from_hex(&hex).map(Some).map_err(ClientError::Answer),
            other => Err(unexpected(&other)),
        }
    }

    /// Writes whole blocks, from `first` on, that the disk does not have.
    ///
    /// # Errors
    /// The cache is full of dirty blocks: some have to be cleaned first. The device refuses writes.
    pub fn write_dirty(&mut self, first: u32, data: &[u8]) -> Result<(), ClientError> {
        self.write(first, data, |first, data| CacheOperation::WriteDirty { first, data })
    }

    /// Writes whole blocks, from `first` on, that the disk has as well.
    ///
    /// # Errors
    /// As for [`CacheClient::write_dirty`].
    pub fn write_clean(&mut self, first: u32, data: &[u8]) -> Result<(), ClientError> {
        self.write(first, data, |first, data| CacheOperation::WriteClean { first, data })
    }

    fn write(
        &mut self,
        first: u32,
        data: &[u8],
        operation: impl Fn(u32, String) -> CacheOperation,
    ) -> Result<(), ClientError> {
        let block = self.block_bytes();
        if data.is_empty() || !data.len().is_multiple_of(block) {
            let why = format!("{} bytes are not whole blocks of {block} bytes", data.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why).into());
        }
        let blocks = (CACHE_BYTES_MAX / block).max(1);
        let mut at = first;
        for part in data.chunks(blocks * block) {
            self.done(&operation(at, to_hex(part)))?;
            at = at.saturating_add((part.len() / block) as u32);
        }
        Ok(())
    }

    /// Removes blocks.
    ///
    /// # Errors
    /// The device refuses writes.
    pub fn evict(&mut self, blocks: Range<u32>) -> Result<(), ClientError> {
        self.done(&CacheOperation::Evict { from: blocks.start, to: blocks.end })
    }

    /// Makes blocks clean. The disk must durably have their contents.
    ///
    /// # Errors
    /// The device refuses writes.
    pub fn clean(&mut self, blocks: Range<u32>) -> Result<(), ClientError> {
        self.done(&CacheOperation::Clean { from: blocks.start, to: blocks.end })
    }

    /// Returns the blocks of a range that are present, in ascending order.
    ///
    /// # Errors
    /// A range outside the addresses of the cache.
    pub fn exists(&mut self, blocks: Range<u32>) -> Result<Vec<PresentBlock>, ClientError> {
        let mut all = Vec::new();
        let mut from = blocks.start;
        loop {
            match execute(&mut self.connection, &CacheOperation::Exists { from, to: blocks.end })? {
                CacheAnswer::Present { blocks: found, end } if end > from || end >= blocks.end => {
                    all.extend(found);
                    from = end;
                }
                other => return Err(unexpected(&other)),
            }
            if from >= blocks.end {
                return Ok(all);
            }
        }
    }

    /// Makes all earlier commands durable.
    ///
    /// # Errors
    /// A medium fails.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.done(&CacheOperation::Flush {})
    }

    fn done(&mut self, operation: &CacheOperation) -> Result<(), ClientError> {
        match execute(&mut self.connection, operation)? {
            CacheAnswer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }
}

fn execute(connection: &mut Connection, command: &CacheOperation) -> Result<CacheAnswer, ClientError> {
    command::execute(connection, DeviceKind::Cache, command)
}
