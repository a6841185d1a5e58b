//! Commands of a nameless-write device by control.

use super::bytes::{failed, refused, wait};
use super::device_commands::{check_writable, contents_of, invalid};
use super::wire::{
    CACHE_BYTES_MAX, NAMELESS_BLOCKS_MAX, NamelessAnswer, NamelessOperation, RefusalKind, Refused, to_hex,
};
use crate::device::Device;
use frit_client::{BlockAddress, ClaimedBlock, MovedBlock, NamelessInfo, OwnedBlock};
use frit_core::{Claimed, Migration, NamelessCommand, PhysicalAddress};

/// Executes a command between requests of other clients.
///
/// # Errors
/// The volume is not a nameless-write device; an invalid address or number; a device that is full,
/// damaged, read-only, or waits for claims.
pub(super) fn execute(device: &Device, command: &NamelessOperation) -> Result<NamelessAnswer, Refused> {
    match command {
        NamelessOperation::Info {} => info(device).map(NamelessAnswer::Info),
        NamelessOperation::NamelessWrite { owners, data } => {
            let (data, mut placed) = (contents_of(data)?, Vec::new());
            change(device, NamelessCommand::NamelessWrite { owners, data: &data, placed: &mut placed })?;
            Ok(NamelessAnswer::Placed(placed.into_iter().map(address).collect()))
        }
        NamelessOperation::PhysicalRead { blocks } => {
            let blocks = owned(blocks)?;
            read(device, blocks.len(), |into| {
                give(device, NamelessCommand::PhysicalRead { blocks: &blocks, into })
            })
        }
        NamelessOperation::VirtualWrite { blocks, data } => {
            let data = contents_of(data)?;
            done(change(device, NamelessCommand::VirtualWrite { blocks, data: &data }))
        }
        NamelessOperation::VirtualRead { block } => {
            read(device, 1, |into| give(device, NamelessCommand::VirtualRead { block: *block, into }))
        }
        NamelessOperation::VirtualDiscard { blocks } => {
            check_number(blocks.len())?;
            done(change(device, NamelessCommand::VirtualDiscard(blocks)))
        }
        NamelessOperation::Free { blocks } => done(change(device, NamelessCommand::Free(&owned(blocks)?))),
        NamelessOperation::Migrations { most } => {
            let (most, mut all) = ((*most as usize).min(NAMELESS_BLOCKS_MAX), Vec::new());
            give(device, NamelessCommand::Migrations { most, into: &mut all })?;
            Ok(NamelessAnswer::Migrations(all.into_iter().map(moved).collect()))
        }
        NamelessOperation::Acknowledge { count } => {
            done(give(device, NamelessCommand::Acknowledge(*count as usize)))
        }
        NamelessOperation::Claim { blocks } => {
            let (blocks, mut places) = (owned(blocks)?, Vec::new());
            give(device, NamelessCommand::Claim { blocks: &blocks, into: &mut places })?;
            Ok(NamelessAnswer::Claimed(places.into_iter().map(claimed).collect()))
        }
        NamelessOperation::Resume {} => done(give(device, NamelessCommand::Resume)),
        NamelessOperation::Flush {} => flush(device),
    }
}

fn check_number(blocks: usize) -> Result<(), Refused> {
    if blocks <= NAMELESS_BLOCKS_MAX {
        return Ok(());
    }
    Err(invalid(format!("{blocks} blocks: a command has at most {NAMELESS_BLOCKS_MAX} blocks")))
}

fn owned(blocks: &[OwnedBlock]) -> Result<Vec<frit_core::OwnedBlock>, Refused> {
    check_number(blocks.len())?;
    let at = |b: &OwnedBlock| PhysicalAddress { page: b.page, version: b.version };
    Ok(blocks.iter().map(|b| frit_core::OwnedBlock { owner: b.owner, at: at(b) }).collect())
}

fn address(at: PhysicalAddress) -> BlockAddress {
    BlockAddress { page: at.page, version: at.version }
}

fn moved(m: Migration) -> MovedBlock {
    MovedBlock { owner: m.owner, from: m.from, to: m.to.map(address) }
}

fn claimed(place: Claimed) -> ClaimedBlock {
    match place {
        Claimed::At(at) => ClaimedBlock::At(address(at)),
        Claimed::Lost(why) => ClaimedBlock::Lost(why),
    }
}

fn info(device: &Device) -> Result<NamelessInfo, Refused> {
    let info = device.with(|b| b.nameless_info()).map_err(failed)?.map_err(refused)?;
    Ok(NamelessInfo {
        block_bytes: info.block_bytes,
        queue_blocks: info.queue_blocks,
        virtual_blocks: info.virtual_blocks,
        capacity: info.capacity,
        waiting: info.waiting,
        stored: info.stored,
        pending_migrations: info.pending_migrations,
        awaits_claims: info.awaits_claims,
    })
}

fn give(device: &Device, command: NamelessCommand<'_>) -> Result<(), Refused> {
    let time = device.with(|b| b.nameless_command(command)).map_err(failed)?.map_err(refused)?;
    wait(device, time);
    Ok(())
}

fn change(device: &Device, command: NamelessCommand<'_>) -> Result<(), Refused> {
    check_writable(device)?;
    let time = device
        .with_change(|b| (b.nameless_command(command), 0..u64::MAX))
        .map_err(failed)?
        .map_err(refused)?;
    wait(device, time);
    Ok(())
}

fn done(given: Result<(), Refused>) -> Result<NamelessAnswer, Refused> {
    given.map(|()| NamelessAnswer::Done)
}

/// Reads blocks, which `fill` writes into a buffer.
fn read(
    device: &Device,
    blocks: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<(), Refused>,
) -> Result<NamelessAnswer, Refused> {
    let bytes = blocks * info(device)?.block_bytes as usize;
    if bytes > CACHE_BYTES_MAX && blocks > 1 {
        return Err(invalid(format!("{bytes} bytes: a command reads at most {CACHE_BYTES_MAX} bytes")));
    }
    let mut data = vec![0; bytes];
    fill(&mut data)?;
    Ok(NamelessAnswer::Data(to_hex(&data)))
}

fn flush(device: &Device) -> Result<NamelessAnswer, Refused> {
    if info(device)?.awaits_claims {
        let what =
            "the device waits until its owner has claimed the blocks that it refers to (claim, resume)";
        return Err(Refused::new(RefusalKind::Failed, format!("read-only: {what}")));
    }
    let flushed = device.flush_for_fua().map_err(failed)?;
    wait(device, flushed);
    Ok(NamelessAnswer::Done)
}
