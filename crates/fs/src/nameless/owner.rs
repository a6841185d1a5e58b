//! The device of a layer or of a volume, for a file system that owns its blocks.

use super::device::{ContentDevice, VirtualBlock};
use crate::format::BLOCK;
use frit_core::{
    Cause, Claimed, Error, Migration, NamelessDevice, OwnedBlock, PhysicalAddress, Progress, ReadTarget,
    Recovery, Result, Sink, Tok, WriteData,
};
use std::fmt::{self, Debug};

/// Access to a nameless-write device with its sink.
pub trait DeviceAccess: Send + Debug {
    /// Calls `f` with the device. `changes` states that `f` changes the device.
    ///
    /// # Errors
    /// The error of `f`; there is no device, or it is read-only.
    fn access(
        &mut self,
        changes: bool,
        f: &mut dyn FnMut(&mut dyn NamelessDevice, &mut Sink) -> Result<()>,
    ) -> Result<()>;

    /// Shuts the device down in order.
    ///
    /// # Errors
    /// The device fails.
    fn close(&mut self) -> Result<()>;
}

/// A nameless-write device as the file system uses it.
pub struct DeviceOwner<A> {
    device: A,
    capacity: u64,
    pages: u64,
    virtual_blocks: u32,
    queue_blocks: usize,
    /// Token of the last flush, before which no freed block may be erased.
    flushed: Tok,
}

impl<A: Debug> Debug for DeviceOwner<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceOwner").field("device", &self.device).finish_non_exhaustive()
    }
}

impl<A: DeviceAccess> DeviceOwner<A> {
    /// Creates an owner of a device.
    ///
    /// # Errors
    /// The device has blocks of another size than 4096 bytes, or no atomic flush; the errors of the access.
    pub fn new(mut device: A) -> Result<Self> {
        let (mut capacity, mut pages, mut virtual_blocks, mut queue_blocks) = (0, 0, 0, 0);
        device.access(false, &mut |device, _| {
            if u64::from(device.block_bytes()) != BLOCK {
                let why =
                    format!("a file system needs blocks of {BLOCK} bytes: create the volume with this unit");
                return Err(Error::param("mapping_unit", device.block_bytes(), why));
            }
            if !device.flushes_atomically() {
                return Err(Error::param(
                    "recovery",
                    "none",
                    "a file system needs atomic flushes: use \"scan\"",
                ));
            }
            capacity = u64::from(device.space().capacity);
            pages = u64::from(device.pages());
            virtual_blocks = device.virtual_blocks();
            queue_blocks = device.queue_blocks() as usize;
            Ok(())
        })?;
        Ok(Self { device, capacity, pages, virtual_blocks, queue_blocks, flushed: Tok::default() })
    }

    fn change(&mut self, mut f: impl FnMut(&mut dyn NamelessDevice, &mut Sink) -> Result<()>) -> Result<()> {
        self.device.access(true, &mut |device, sink| f(device, sink))
    }
}

impl<A: DeviceAccess> ContentDevice for DeviceOwner<A> {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn pages(&self) -> u64 {
        self.pages
    }

    fn virtual_blocks(&self) -> u32 {
        self.virtual_blocks
    }

    fn write(&mut self, owner: u32, data: &[u8], placed: &mut Vec<PhysicalAddress>) -> Result<()> {
        let owners = vec![owner; self.queue_blocks];
        let queue_bytes = self.queue_blocks * BLOCK as usize;
        self.change(|device, sink| {
            for queue in data.chunks(queue_bytes) {
                let owners = &owners[..queue.len() / BLOCK as usize];
                let after = sink.start();
                device.nameless_write(sink, owners, WriteData::Bytes(queue), Cause::Host, after, placed)?;
            }
            Ok(())
        })
    }

    fn read(&mut self, blocks: &[OwnedBlock], offset: u32, into: &mut [u8]) -> Result<()> {
        self.device.access(false, &mut |device, sink| {
            let read =
                device.physical_read(sink, blocks, offset, ReadTarget::Bytes(&mut *into), Cause::Host)?;
            sink.ack(read);
            Ok(())
        })
    }

    fn free(&mut self, block: OwnedBlock) -> Result<()> {
        let flushed = self.flushed;
        self.change(|device, sink| {
            device.free(sink, block, flushed);
            Ok(())
        })
    }

    fn write_virtual(&mut self, blocks: &[VirtualBlock]) -> Result<()> {
        let queue_blocks = self.queue_blocks;
        self.change(|device, sink| {
            let (mut numbers, mut bytes) = (Vec::new(), Vec::new());
            for queue in blocks.chunks(queue_blocks) {
                numbers.clear();
                bytes.clear();
                for (number, data) in queue {
                    numbers.push(*number);
                    bytes.extend_from_slice(data);
                }
                let after = sink.start();
                device.virtual_write(sink, &numbers, WriteData::Bytes(&bytes), Cause::Meta, after)?;
            }
            Ok(())
        })
    }

    fn read_virtual(&mut self, block: u32, into: &mut [u8]) -> Result<()> {
        self.device.access(false, &mut |device, sink| {
            if !device.virtual_written(block) {
                into.fill(0);
                return Ok(());
            }
            let read = device.virtual_read(sink, block, 0, ReadTarget::Bytes(&mut *into), Cause::Meta)?;
            sink.ack(read);
            Ok(())
        })
    }

    fn flush(&mut self) -> Result<()> {
        let mut flushed = self.flushed;
        self.change(|device, sink| {
            flushed = device.flush(sink)?;
            sink.ack(flushed);
            Ok(())
        })?;
        self.flushed = flushed;
        Ok(())
    }

    fn pending_migrations(&mut self) -> Result<usize> {
        let mut pending = 0;
        self.device.access(false, &mut |device, _| {
            pending = device.pending_migrations();
            Ok(())
        })?;
        Ok(pending)
    }

    fn migrations(&mut self, most: usize, into: &mut Vec<Migration>) -> Result<()> {
        self.device.access(false, &mut |device, _| {
            device.migrations(most, into);
            Ok(())
        })
    }

    fn acknowledge(&mut self, count: usize) -> Result<()> {
        self.device.access(false, &mut |device, _| {
            device.acknowledge(count);
            Ok(())
        })
    }

    fn claim(&mut self, block: OwnedBlock) -> Result<Claimed> {
        let mut claimed = Claimed::At(block.at);
        self.device.access(false, &mut |device, _| {
            if device.awaits_claims() {
                claimed = device.claim(block)?;
            }
            Ok(())
        })?;
        Ok(claimed)
    }

    fn resume(&mut self) -> Result<()> {
        self.change(|device, sink| device.resume(sink, &mut Recovery::default()))
    }

    fn step(&mut self, budget: u32) -> Result<bool> {
        let mut worked = false;
        self.change(|device, sink| {
            worked = matches!(device.step(sink, budget)?, Progress::Busy(_));
            Ok(())
        })?;
        Ok(worked)
    }

    fn close(&mut self) -> Result<()> {
        self.device.close()
    }

    fn verify(&mut self, block: OwnedBlock, data: bool) -> Result<()> {
        self.device.access(false, &mut |device, sink| device.verify(sink, block, data))
    }
}
