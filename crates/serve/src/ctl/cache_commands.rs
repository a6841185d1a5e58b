//! Commands of a solid-state cache by control.

use super::bytes::{failed, refused, wait};
use super::device_commands::{check_writable, contents_of};
use super::wire::{CacheAnswer, CacheOperation, EXISTS_BLOCKS_MAX, Refused, to_hex};
use crate::device::Device;
use frit_client::{CacheInfo, CacheState, PresentBlock};
use frit_core::{BlockState, CacheCommand, CacheReply};
use std::ops::Range;

/// Executes a command between requests of other clients.
///
/// # Errors
/// The volume is not a solid-state cache; a block outside; data that are not whole blocks; a cache that
/// is full of dirty blocks, damaged, or read-only.
pub(super) fn execute(device: &Device, command: &CacheOperation) -> Result<CacheAnswer, Refused> {
    match command {
        CacheOperation::Info {} => info(device).map(CacheAnswer::Info),
        CacheOperation::Read { block } => {
            let mut data = vec![0; info(device)?.block_bytes as usize];
            Ok(match give(device, CacheCommand::Read { block: *block, into: &mut data })? {
                CacheReply::Miss => CacheAnswer::Miss,
                CacheReply::Done => CacheAnswer::Data(to_hex(&data)),
            })
        }
        CacheOperation::WriteDirty { first, data } => {
            change(device, CacheCommand::WriteDirty { first: *first, data: &contents_of(data)? })
        }
        CacheOperation::WriteClean { first, data } => {
            change(device, CacheCommand::WriteClean { first: *first, data: &contents_of(data)? })
        }
        CacheOperation::Evict { from, to } => change(device, CacheCommand::Evict(*from..*to)),
        CacheOperation::Clean { from, to } => change(device, CacheCommand::Clean(*from..*to)),
        CacheOperation::Exists { from, to } => list(device, *from..*to),
        CacheOperation::Flush {} => {
            info(device)?;
            let flushed = device.flush_for_fua().map_err(failed)?;
            wait(device, flushed);
            Ok(CacheAnswer::Done)
        }
    }
}

fn info(device: &Device) -> Result<CacheInfo, Refused> {
    let info = device.with(|b| b.cache_info()).map_err(failed)?.map_err(refused)?;
    Ok(CacheInfo {
        block_bytes: info.block_bytes,
        addresses: info.addresses,
        blocks: info.blocks,
        dirty_limit: info.dirty_limit,
        dirty_blocks: info.dirty_blocks,
        durable_on_ack: info.durable_on_ack,
    })
}

fn give(device: &Device, command: CacheCommand<'_>) -> Result<CacheReply, Refused> {
    let (reply, time) = device.with(|b| b.cache_command(command)).map_err(failed)?.map_err(refused)?;
    wait(device, time);
    Ok(reply)
}

fn change(device: &Device, command: CacheCommand<'_>) -> Result<CacheAnswer, Refused> {
    check_writable(device)?;
    let (_, time) =
        device.with_change(|b| (b.cache_command(command), 0..u64::MAX)).map_err(failed)?.map_err(refused)?;
    wait(device, time);
    Ok(CacheAnswer::Done)
}

/// Leaves at most `most` blocks of a list up to block `end`. Returns the block up to which the rest is
/// complete.
fn truncate(found: &mut Vec<(u32, BlockState)>, most: usize, end: u32) -> u32 {
    let next = found.get(most).map_or(end, |&(block, _)| block);
    found.truncate(most);
    next
}

fn list(device: &Device, blocks: Range<u32>) -> Result<CacheAnswer, Refused> {
    let mut found = Vec::new();
    let all = blocks.end;
    give(device, CacheCommand::Exists { blocks, found: &mut found })?;
    let end = truncate(&mut found, EXISTS_BLOCKS_MAX, all);
    let state = |state| match state {
        BlockState::Clean => CacheState::Clean,
        BlockState::Dirty => CacheState::Dirty,
    };
    let blocks = found.into_iter().map(|(block, s)| PresentBlock { block, state: state(s) }).collect();
    Ok(CacheAnswer::Present { blocks, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_ends_before_the_first_block_that_it_lacks() {
        let all: Vec<_> = [3, 7, 8, 20].map(|block| (block, BlockState::Clean)).into();
        for (most, left, end) in [(0, 0, 3), (2, 2, 8), (3, 3, 20), (4, 4, 100), (9, 4, 100)] {
            let mut found = all.clone();
            assert_eq!((truncate(&mut found, most, 100), found.len()), (end, left));
        }
    }
}
