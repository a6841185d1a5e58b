//! Commands of a served nameless-write device.

use crate::command::{self, DeviceKind, unexpected};
use crate::connection::{ClientError, Connection};
use crate::wire::{CACHE_BYTES_MAX, from_hex, to_hex};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Maximum number of blocks in a message that has no contents.
pub const NAMELESS_BLOCKS_MAX: usize = 1024;

/// Address of a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockAddress {
    /// Page of the device.
    pub page: u32,
    /// Version that was written there. No other block of the device has it.
    pub version: u32,
}

/// A block of contents: its owner, and its address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnedBlock {
    /// Number by which the program finds its reference to the block, below 2³¹.
    pub owner: u32,
    /// Page of the device.
    pub page: u32,
    /// Version that was written there.
    pub version: u32,
}

impl OwnedBlock {
    /// Returns the block of an owner at an address.
    #[must_use]
    pub fn new(owner: u32, at: BlockAddress) -> OwnedBlock {
        OwnedBlock { owner, page: at.page, version: at.version }
    }
}

/// A block that the device has moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MovedBlock {
    /// Owner of the block.
    pub owner: u32,
    /// Page at which it was. Its version there is that of `to`.
    pub from: u32,
    /// Its new address; `None` if it was unreadable, and is lost.
    pub to: Option<BlockAddress>,
}

/// Place of a block after a recovery.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimedBlock {
    /// The block is at this address.
    At(BlockAddress),
    /// The block is lost, with the reason.
    Lost(String),
}

/// Sizes and state of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NamelessInfo {
    /// Size of a block, in bytes.
    pub block_bytes: u32,
    /// Largest number of blocks of a request queue.
    pub queue_blocks: u32,
    /// Number of virtual blocks.
    pub virtual_blocks: u32,
    /// Number of blocks of contents that can be stored.
    pub capacity: u32,
    /// Number of further ones that may wait to be freed.
    pub waiting: u32,
    /// Number of blocks of contents that are stored.
    pub stored: u32,
    /// Number of migrations that were not acknowledged.
    pub pending_migrations: u64,
    /// `true` until the program has claimed its blocks after a recovery, and resumed.
    pub awaits_claims: bool,
}

/// A command, as serialized.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum NamelessOperation {
    /// Returns the sizes and the state of the device.
    Info {},
    /// Writes a request queue of blocks without addresses.
    NamelessWrite {
        /// Owners of the blocks.
        owners: Vec<u32>,
        /// Contents in hexadecimal digits, a block for each owner.
        data: String,
    },
    /// Reads blocks by their addresses.
    PhysicalRead {
        /// The blocks.
        blocks: Vec<OwnedBlock>,
    },
    /// Writes a request queue of virtual blocks.
    VirtualWrite {
        /// The blocks.
        blocks: Vec<u32>,
        /// Contents in hexadecimal digits, those of all blocks.
        data: String,
    },
    /// Reads a virtual block.
    VirtualRead {
        /// The block.
        block: u32,
    },
    /// Forgets the contents of virtual blocks, which read as zeros then.
    VirtualDiscard {
        /// The blocks.
        blocks: Vec<u32>,
    },
    /// Frees blocks that no durable metadata refers to.
    Free {
        /// The blocks.
        blocks: Vec<OwnedBlock>,
    },
    /// Lists the oldest migrations.
    Migrations {
        /// Largest number of them.
        most: u32,
    },
    /// Acknowledges the oldest migrations.
    Acknowledge {
        /// Number of them.
        count: u32,
    },
    /// Claims blocks that the metadata of the program refers to, after a recovery.
    Claim {
        /// The blocks.
        blocks: Vec<OwnedBlock>,
    },
    /// Ends a recovery: blocks that were not claimed are free.
    Resume {},
    /// Makes all earlier commands durable: virtual writes all or none.
    Flush {},
}

/// Answer to a command, as serialized.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamelessAnswer {
    /// The command was executed.
    Done,
    /// Addresses of the blocks of a nameless write.
    Placed(Vec<BlockAddress>),
    /// Contents, in hexadecimal digits.
    Data(String),
    /// Sizes and state.
    Info(NamelessInfo),
    /// Migrations, the oldest first.
    Migrations(Vec<MovedBlock>),
    /// Places of claimed blocks.
    Claimed(Vec<ClaimedBlock>),
}

/// A served nameless-write device (Zhang et al., FAST 2012). The program is the owner of its blocks.
///
/// 1. Contents and virtual blocks are durable after a [`NamelessClient::flush`]. Virtual writes become
///    durable together: after a crash, all virtual blocks are as of the last flush.
/// 2. A block that the device has moved is found at its old address until the program has acknowledged
///    the move, and after a crash for ever.
/// 3. A block that was replaced is freed after the flush that makes the new metadata durable.
/// 4. After each start of the server, the program claims its blocks if [`NamelessInfo::awaits_claims`],
///    and resumes. Until then nothing can be written.
#[derive(Debug)]
pub struct NamelessClient {
    connection: Connection,
    info: NamelessInfo,
}

impl NamelessClient {
    /// Connects to the control socket of a served device: `ctl.sock` in the directory of the volume.
    ///
    /// # Errors
    /// No server listens there, or its volume is not a nameless-write device.
    pub fn open(socket: &Path) -> Result<NamelessClient, ClientError> {
        let mut connection = Connection::open(socket)?;
        match execute(&mut connection, &NamelessOperation::Info {})? {
            NamelessAnswer::Info(info) => Ok(NamelessClient { connection, info }),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns the size of a block, in bytes.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.info.block_bytes as usize
    }

    /// Returns the number of virtual blocks.
    #[must_use]
    pub fn virtual_blocks(&self) -> u32 {
        self.info.virtual_blocks
    }

    /// Returns the sizes and the current state.
    ///
    /// # Errors
    /// The server did not answer.
    pub fn info(&mut self) -> Result<NamelessInfo, ClientError> {
        match execute(&mut self.connection, &NamelessOperation::Info {})? {
            NamelessAnswer::Info(info) => Ok(info),
            other => Err(unexpected(&other)),
        }
    }

    /// Writes blocks without addresses, one for each owner, and returns their addresses. They are
    /// divided into request queues.
    ///
    /// # Errors
    /// The device is full; it waits for claims, or refuses writes.
    pub fn nameless_write(&mut self, owners: &[u32], data: &[u8]) -> Result<Vec<BlockAddress>, ClientError> {
        self.check_data(owners.len(), data)?;
        let (queue, block) = (self.queue(), self.block_bytes());
        let mut placed = Vec::with_capacity(owners.len());
        for (owners, data) in owners.chunks(queue).zip(data.chunks(queue * block)) {
            let operation = NamelessOperation::NamelessWrite { owners: owners.to_vec(), data: to_hex(data) };
            match execute(&mut self.connection, &operation)? {
                NamelessAnswer::Placed(at) if at.len() == owners.len() => placed.extend(at),
                other => return Err(unexpected(&other)),
            }
        }
        Ok(placed)
    }

    /// Reads blocks by their addresses.
    ///
    /// # Errors
    /// A block that is damaged, or not at its address.
    pub fn physical_read(&mut self, blocks: &[OwnedBlock]) -> Result<Vec<u8>, ClientError> {
        let mut all = Vec::with_capacity(blocks.len() * self.block_bytes());
        let most = (CACHE_BYTES_MAX / self.block_bytes()).max(1);
        for blocks in blocks.chunks(most) {
            all.extend(self.data(&NamelessOperation::PhysicalRead { blocks: blocks.to_vec() })?);
        }
        Ok(all)
    }

    /// Writes virtual blocks. They are divided into request queues, and durable together after the next
    /// flush.
    ///
    /// # Errors
    /// A block past the end; the device waits for claims, or refuses writes.
    pub fn virtual_write(&mut self, blocks: &[u32], data: &[u8]) -> Result<(), ClientError> {
        self.check_data(blocks.len(), data)?;
        let (queue, block) = (self.queue(), self.block_bytes());
        for (blocks, data) in blocks.chunks(queue).zip(data.chunks(queue * block)) {
            self.done(&NamelessOperation::VirtualWrite { blocks: blocks.to_vec(), data: to_hex(data) })?;
        }
        Ok(())
    }

    /// Reads a virtual block: zeros if it was never written.
    ///
    /// # Errors
    /// A block past the end, or a damaged one.
    pub fn virtual_read(&mut self, block: u32) -> Result<Vec<u8>, ClientError> {
        self.data(&NamelessOperation::VirtualRead { block })
    }

    /// Forgets the contents of virtual blocks, which read as zeros then.
    ///
    /// # Errors
    /// As for [`NamelessClient::virtual_write`].
    pub fn virtual_discard(&mut self, blocks: &[u32]) -> Result<(), ClientError> {
        let mut parts = blocks.chunks(NAMELESS_BLOCKS_MAX);
        parts.try_for_each(|part| self.done(&NamelessOperation::VirtualDiscard { blocks: part.to_vec() }))
    }

    /// Frees blocks that no durable metadata refers to.
    ///
    /// # Errors
    /// The device refuses writes.
    pub fn free(&mut self, blocks: &[OwnedBlock]) -> Result<(), ClientError> {
        let mut parts = blocks.chunks(NAMELESS_BLOCKS_MAX);
        parts.try_for_each(|part| self.done(&NamelessOperation::Free { blocks: part.to_vec() }))
    }

    /// Returns the oldest migrations that were not acknowledged, at most [`NAMELESS_BLOCKS_MAX`].
    ///
    /// # Errors
    /// The server did not answer.
    pub fn migrations(&mut self) -> Result<Vec<MovedBlock>, ClientError> {
        let most = NAMELESS_BLOCKS_MAX as u32;
        match execute(&mut self.connection, &NamelessOperation::Migrations { most })? {
            NamelessAnswer::Migrations(all) => Ok(all),
            other => Err(unexpected(&other)),
        }
    }

    /// Acknowledges the oldest migrations: the program knows the new addresses.
    ///
    /// # Errors
    /// The server did not answer.
    pub fn acknowledge(&mut self, count: usize) -> Result<(), ClientError> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.done(&NamelessOperation::Acknowledge { count })
    }

    /// Claims blocks after a recovery, and returns their places.
    ///
    /// # Errors
    /// The recovery has ended.
    pub fn claim(&mut self, blocks: &[OwnedBlock]) -> Result<Vec<ClaimedBlock>, ClientError> {
        let mut all = Vec::with_capacity(blocks.len());
        for blocks in blocks.chunks(NAMELESS_BLOCKS_MAX) {
            match execute(&mut self.connection, &NamelessOperation::Claim { blocks: blocks.to_vec() })? {
                NamelessAnswer::Claimed(places) if places.len() == blocks.len() => all.extend(places),
                other => return Err(unexpected(&other)),
            }
        }
        Ok(all)
    }

    /// Ends a recovery: blocks that were not claimed are free.
    ///
    /// # Errors
    /// A medium fails.
    pub fn resume(&mut self) -> Result<(), ClientError> {
        self.done(&NamelessOperation::Resume {})
    }

    /// Makes all earlier commands durable.
    ///
    /// # Errors
    /// A medium fails; the device waits for claims.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.done(&NamelessOperation::Flush {})
    }

    /// Blocks of a request queue that fit into a message.
    fn queue(&self) -> usize {
        (self.info.queue_blocks as usize).min(CACHE_BYTES_MAX / self.block_bytes()).max(1)
    }

    fn check_data(&self, blocks: usize, data: &[u8]) -> Result<(), ClientError> {
        let block = self.block_bytes();
        if blocks > 0 && data.len() == blocks * block {
            return Ok(());
        }
        let why = format!("{} bytes are not the contents of {blocks} blocks of {block} bytes", data.len());
        Err(io::Error::new(io::ErrorKind::InvalidInput, why).into())
    }

    fn data(&mut self, operation: &NamelessOperation) -> Result<Vec<u8>, ClientError> {
        match execute(&mut self.connection, operation)? {
            NamelessAnswer::Data(hex) => from_hex(&hex).map_err(ClientError::Answer),
            other => Err(unexpected(&other)),
        }
    }

    fn done(&mut self, operation: &NamelessOperation) -> Result<(), ClientError> {
        match execute(&mut self.connection, operation)? {
            NamelessAnswer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }
}

fn execute(connection: &mut Connection, command: &NamelessOperation) -> Result<NamelessAnswer, ClientError> {
    command::execute(connection, DeviceKind::Nameless, command)
}
