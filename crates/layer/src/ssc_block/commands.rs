//! Commands of clients.

use super::layer::SscBlock;
use frit_core::{
    CacheAccess, CacheCommand, CacheDevice, CacheInfo, CacheRead, CacheReply, Cause, DurabilityPoint, Error,
    ReadTarget, Result, SECTOR_BYTES, Sink, WriteData,
};
use std::ops::Range;

impl<C: CacheDevice> SscBlock<C> {
    fn check_blocks(&self, blocks: &Range<u32>) -> Result<()> {
        if blocks.start <= blocks.end && blocks.end <= self.blocks {
            return Ok(());
        }
        let sectors = u64::from(self.page) / SECTOR_BYTES;
        Err(Error::OutOfRange {
            at: u64::from(blocks.start) * sectors,
            sectors: u64::from(blocks.end.saturating_sub(blocks.start)) * sectors,
            capacity: u64::from(self.blocks) * sectors,
        })
    }

    /// Checks that data are whole blocks inside the address space.
    fn check_data(&self, first: u32, bytes: usize) -> Result<()> {
        let blocks = bytes / self.page as usize;
        if bytes == 0 || !bytes.is_multiple_of(self.page as usize) {
            let why = format!("have to be whole blocks of {} bytes", self.page);
            return Err(Error::param("data", format!("{bytes} bytes"), why));
        }
        let end = u32::try_from(blocks).ok().and_then(|blocks| first.checked_add(blocks));
        self.check_blocks(&(first..end.unwrap_or(u32::MAX)))
    }

    fn read_command(&mut self, sink: &mut Sink, block: u32, into: &mut [u8]) -> Result<CacheReply> {
        self.check_data(block, into.len())?;
        if into.len() != self.page as usize {
            let why = format!("is one block of {} bytes", self.page);
            return Err(Error::param("read", format!("{} bytes", into.len()), why));
        }
        let start = sink.start();
        let read = self.ssc.read(sink, block, 0, ReadTarget::Bytes(into), Cause::Host, start)?;
        Ok(match read {
            CacheRead::Hit(read) => {
                sink.ack(read);
                CacheReply::Done
            }
            CacheRead::Miss => CacheReply::Miss,
        })
    }

    fn change(&mut self, sink: &mut Sink, command: &CacheCommand<'_>) -> Result<()> {
        let done = match command {
            CacheCommand::WriteDirty { first, data } => {
                return self.put_dirty(sink, *first, WriteData::Bytes(data), self.ready);
            }
            CacheCommand::WriteClean { first, data } => {
                self.ssc.write_clean(sink, *first, WriteData::Bytes(data), Cause::Host, self.ready)?
            }
            CacheCommand::Evict(blocks) => self.ssc.evict(sink, blocks.clone(), self.ready)?,
            CacheCommand::Clean(blocks) => self.ssc.clean(sink, blocks.clone(), self.ready)?,
            CacheCommand::Read { .. } | CacheCommand::Exists { .. } => return Ok(()),
        };
        sink.ack(done);
        Ok(())
    }
}

impl<C: CacheDevice> CacheAccess for SscBlock<C> {
    fn cache_info(&self) -> CacheInfo {
        CacheInfo {
            block_bytes: self.page,
            addresses: self.blocks,
            blocks: self.ssc.blocks(),
            dirty_limit: self.ssc.dirty_limit(),
            dirty_blocks: self.ssc.dirty_blocks(),
            durable_on_ack: self.ssc.durable_at() == DurabilityPoint::OnAck,
        }
    }

    fn execute(&mut self, sink: &mut Sink, command: CacheCommand<'_>) -> Result<CacheReply> {
        match &command {
            CacheCommand::WriteDirty { first, data } | CacheCommand::WriteClean { first, data } => {
                self.check_data(*first, data.len())?;
            }
            CacheCommand::Evict(blocks)
            | CacheCommand::Clean(blocks)
            | CacheCommand::Exists { blocks, .. } => self.check_blocks(blocks)?,
            CacheCommand::Read { .. } => {}
        }
        match command {
            CacheCommand::Read { block, into } => self.read_command(sink, block, into),
            CacheCommand::Exists { blocks, found } => {
                self.ssc.exists(blocks, &mut |block, state| found.push((block, state)));
                Ok(CacheReply::Done)
            }
            change => {
                self.begin_use(sink)?;
                self.change(sink, &change).map_err(|e| self.refuse_after(e))?;
                Ok(CacheReply::Done)
            }
        }
    }
}
