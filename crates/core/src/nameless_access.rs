//! Commands of a nameless-write device for clients of a complete stack, beside its block interface.

use crate::{
    Cause, Claimed, Error, Migration, NamelessDevice, OwnedBlock, PhysicalAddress, ReadTarget, Recovery,
    Result, Sink, WriteData,
};

/// Sizes and state of a nameless-write device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// `true` until the owner has claimed its blocks after a recovery, and resumed.
    pub awaits_claims: bool,
}

/// A command. [`NamelessDevice`] states the guarantees.
#[derive(Debug)]
pub enum NamelessCommand<'a> {
    /// Writes a request queue of blocks without addresses.
    NamelessWrite {
        /// Owners of the blocks.
        owners: &'a [u32],
        /// Contents, a block for each owner.
        data: &'a [u8],
        /// Receives the addresses.
        placed: &'a mut Vec<PhysicalAddress>,
    },
    /// Reads whole blocks by their addresses.
    PhysicalRead {
        /// The blocks.
        blocks: &'a [OwnedBlock],
        /// Buffer of as many blocks.
        into: &'a mut [u8],
    },
    /// Writes a request queue of virtual blocks.
    VirtualWrite {
        /// The blocks.
        blocks: &'a [u32],
        /// Contents, those of all blocks.
        data: &'a [u8],
    },
    /// Reads a whole virtual block.
    VirtualRead {
        /// The block.
        block: u32,
        /// Buffer of one block.
        into: &'a mut [u8],
    },
    /// Forgets the contents of virtual blocks.
    VirtualDiscard(&'a [u32]),
    /// Frees blocks that no durable metadata refers to.
    Free(&'a [OwnedBlock]),
    /// Lists the oldest migrations.
    Migrations {
        /// Largest number of them.
        most: usize,
        /// Receives them.
        into: &'a mut Vec<Migration>,
    },
    /// Acknowledges the oldest migrations.
    Acknowledge(usize),
    /// Claims blocks that the metadata of the owner refers to.
    Claim {
        /// The blocks.
        blocks: &'a [OwnedBlock],
        /// Receives the places of the blocks.
        into: &'a mut Vec<Claimed>,
    },
    /// Ends a recovery.
    Resume,
}

impl NamelessCommand<'_> {
    /// Returns `true` if the command changes the device.
    #[must_use]
    pub fn changes(&self) -> bool {
        !matches!(
            self,
            NamelessCommand::PhysicalRead { .. }
                | NamelessCommand::VirtualRead { .. }
                | NamelessCommand::Migrations { .. }
        )
    }
}

/// Returns the sizes and the state of a device.
pub fn nameless_info(device: &dyn NamelessDevice) -> NamelessInfo {
    let space = device.space();
    NamelessInfo {
        block_bytes: device.block_bytes(),
        queue_blocks: device.queue_blocks(),
        virtual_blocks: device.virtual_blocks(),
        capacity: space.capacity,
        waiting: space.waiting,
        stored: space.stored,
        pending_migrations: crate::convert::to_u64(device.pending_migrations()),
        awaits_claims: device.awaits_claims(),
    }
}

/// Checks that a buffer has the size of a number of blocks.
fn check_buffer(device: &dyn NamelessDevice, blocks: usize, bytes: usize) -> Result<()> {
    let expected = blocks * crate::convert::to_usize(device.block_bytes());
    if blocks > 0 && bytes == expected {
        return Ok(());
    }
    let why = format!("{blocks} blocks have {expected} bytes; a read has at least one block");
    Err(Error::param("read", format!("{bytes} bytes"), why))
}

/// Gives a command to a device.
///
/// # Errors
/// Those of the method of [`NamelessDevice`] that the command stands for.
pub fn execute_nameless(
    device: &mut dyn NamelessDevice,
    sink: &mut Sink,
    command: NamelessCommand<'_>,
) -> Result<()> {
    let start = sink.start();
    match command {
        NamelessCommand::NamelessWrite { owners, data, placed } => {
            let data = WriteData::Bytes(data);
            let done = device.nameless_write(sink, owners, data, Cause::Host, start, placed)?;
            sink.ack(done);
        }
        NamelessCommand::PhysicalRead { blocks, into } => {
            check_buffer(device, blocks.len(), into.len())?;
            let done = device.physical_read(sink, blocks, 0, ReadTarget::Bytes(into), Cause::Host)?;
            sink.ack(done);
        }
        NamelessCommand::VirtualWrite { blocks, data } => {
            let done = device.virtual_write(sink, blocks, WriteData::Bytes(data), Cause::Host, start)?;
            sink.ack(done);
        }
        NamelessCommand::VirtualRead { block, into } => {
            check_buffer(device, 1, into.len())?;
            let done = device.virtual_read(sink, block, 0, ReadTarget::Bytes(into), Cause::Host)?;
            sink.ack(done);
        }
        NamelessCommand::VirtualDiscard(blocks) => {
            blocks.iter().try_for_each(|&block| device.virtual_discard(sink, block))?;
        }
        NamelessCommand::Free(blocks) => {
            device.writable()?;
            blocks.iter().for_each(|&block| device.free(sink, block, start));
        }
        NamelessCommand::Migrations { most, into } => device.migrations(most, into),
        NamelessCommand::Acknowledge(n) => device.acknowledge(n),
        NamelessCommand::Claim { blocks, into } => {
            for &block in blocks {
                into.push(device.claim(block)?);
            }
        }
        NamelessCommand::Resume => device.resume(sink, &mut Recovery::default())?,
    }
    Ok(())
}
