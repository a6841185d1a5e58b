//! Commands of a zoned device by control.

use super::bytes::{failed, refused, wait};
use super::device_commands::{check_writable, contents_of, invalid};
use super::wire::{CACHE_BYTES_MAX, Refused, ZONES_MAX, ZonedAnswer, ZonedOperation, to_hex};
use crate::backend::{Backend, ReplyTime};
use crate::device::Device;
use frit_client::{ReportedZone, ZonedInfo};
use frit_core::{SECTOR_BYTES, Sector, ZoneAction, ZoneCommand, ZoneInfo};
use std::ops::Range;

/// Executes a command between requests of other clients.
///
/// # Errors
/// The volume is not a zoned device; a zone or a sector that does not exist; data that are not whole
/// blocks; a command that the state of the zone or a limit does not permit; a device that is read-only.
pub(super) fn execute(device: &Device, command: &ZonedOperation) -> Result<ZonedAnswer, Refused> {
    match command {
        ZonedOperation::Info {} => info(device).map(ZonedAnswer::Info),
        ZonedOperation::Report { first, most } => report(device, *first, *most).map(ZonedAnswer::Zones),
        ZonedOperation::Open { zone } => manage(device, *zone, ZoneAction::Open),
        ZonedOperation::Close { zone } => manage(device, *zone, ZoneAction::Close),
        ZonedOperation::Finish { zone } => manage(device, *zone, ZoneAction::Finish),
        ZonedOperation::Reset { zone } => manage(device, *zone, ZoneAction::Reset),
        ZonedOperation::Append { zone, data } => {
            let (data, mut at) = (contents_of(data)?, Sector(0));
            change(device, |b| {
                let done = b.zone_command(ZoneCommand::Append { zone: *zone, data: &data, at: &mut at });
                let from = at.0.saturating_mul(SECTOR_BYTES);
                let changed = if done.is_ok() { from..from + data.len() as u64 } else { 0..u64::MAX };
                (done, changed)
            })?;
            Ok(ZonedAnswer::Appended { at: at.0 })
        }
        ZonedOperation::Read { at, sectors } => read(device, Sector(*at), *sectors),
        ZonedOperation::Flush {} => {
            info(device)?;
            let flushed = device.flush_for_fua().map_err(failed)?;
            wait(device, flushed);
            Ok(ZonedAnswer::Done)
        }
    }
}

fn info(device: &Device) -> Result<ZonedInfo, Refused> {
    let info = device.with(|b| b.zoned_info()).map_err(failed)?.map_err(refused)?;
    // A logical block is at most a NAND page, so an append of one block is always possible.
    let append_blocks = (CACHE_BYTES_MAX as u32 / info.block_bytes).max(1);
    Ok(ZonedInfo {
        block_bytes: info.block_bytes,
        zones: info.zones,
        zone_sectors: info.zone_sectors,
        append_bytes_max: append_blocks * info.block_bytes,
        max_open: info.max_open,
        max_active: info.max_active,
        open: info.open,
        active: info.active,
    })
}

/// Returns the sizes and the limits of a zoned device, and all its zones.
///
/// # Errors
/// The volume is not a zoned device.
pub fn zones(device: &Device) -> Result<(ZonedInfo, Vec<ReportedZone>), Refused> {
    let (info, mut all) = (info(device)?, Vec::new());
    while all.len() < info.zones as usize {
        all.extend(report(device, all.len() as u32, ZONES_MAX as u32)?);
    }
    Ok((info, all))
}

/// Returns zones from `first` on, as clients see them.
fn report(device: &Device, first: u32, most: u32) -> Result<Vec<ReportedZone>, Refused> {
    let most = (most as usize).min(ZONES_MAX);
    if most == 0 {
        return Err(invalid(format!("0 zones: a report has 1 to {ZONES_MAX} zones")));
    }
    let zones = device.with(|b| b.zones(first, most)).map_err(failed)?.map_err(refused)?;
    Ok(zones.into_iter().map(reported).collect())
}

fn reported(zone: ZoneInfo) -> ReportedZone {
    use frit_client::ZoneState;
    let state = match zone.state {
        frit_core::ZoneState::Empty => ZoneState::Empty,
        frit_core::ZoneState::ImplicitlyOpen => ZoneState::ImplicitlyOpen,
        frit_core::ZoneState::ExplicitlyOpen => ZoneState::ExplicitlyOpen,
        frit_core::ZoneState::Closed => ZoneState::Closed,
        frit_core::ZoneState::Full => ZoneState::Full,
        frit_core::ZoneState::ReadOnly => ZoneState::ReadOnly,
        frit_core::ZoneState::Offline => ZoneState::Offline,
    };
    ReportedZone { zone: zone.zone, state, start: zone.start.0, write_pointer: zone.write_pointer.0 }
}

/// Returns the reason of a conflict with a zone, as clients see it.
pub(super) fn fault(fault: frit_core::ZoneFault) -> frit_client::ZoneFault {
    use frit_client::ZoneFault;
    match fault {
        frit_core::ZoneFault::InvalidWrite => ZoneFault::InvalidWrite,
        frit_core::ZoneFault::BoundaryError => ZoneFault::BoundaryError,
        frit_core::ZoneFault::IsFull => ZoneFault::IsFull,
        frit_core::ZoneFault::IsReadOnly => ZoneFault::IsReadOnly,
        frit_core::ZoneFault::IsOffline => ZoneFault::IsOffline,
        frit_core::ZoneFault::TooManyActive => ZoneFault::TooManyActive,
        frit_core::ZoneFault::TooManyOpen => ZoneFault::TooManyOpen,
        frit_core::ZoneFault::InvalidTransition => ZoneFault::InvalidTransition,
        frit_core::ZoneFault::Unwritten => ZoneFault::Unwritten,
    }
}

fn give(device: &Device, command: ZoneCommand<'_>) -> Result<(), Refused> {
    let time = device.with(|b| b.zone_command(command)).map_err(failed)?.map_err(refused)?;
    wait(device, time);
    Ok(())
}

fn change(
    device: &Device,
    command: impl FnOnce(&mut dyn Backend) -> (frit_core::Result<ReplyTime>, Range<u64>),
) -> Result<(), Refused> {
    info(device)?;
    check_writable(device)?;
    let time = device.with_change(command).map_err(failed)?.map_err(refused)?;
    wait(device, time);
    Ok(())
}

fn manage(device: &Device, zone: u32, action: ZoneAction) -> Result<ZonedAnswer, Refused> {
    let zone_bytes = info(device)?.zone_sectors * SECTOR_BYTES;
    let range = u64::from(zone) * zone_bytes..u64::from(zone).saturating_add(1) * zone_bytes;
    // Only a reset changes bytes: they read as zeros.
    let range = if action == ZoneAction::Reset { range } else { 0..0 };
    change(device, |b| (b.zone_command(ZoneCommand::Manage { zone, action }), range))?;
    Ok(ZonedAnswer::Done)
}

fn read(device: &Device, at: Sector, sectors: u32) -> Result<ZonedAnswer, Refused> {
    let bytes = u64::from(sectors) * SECTOR_BYTES;
    if bytes > CACHE_BYTES_MAX as u64 {
        return Err(invalid(format!("{bytes} bytes: a command reads at most {CACHE_BYTES_MAX} bytes")));
    }
    let mut data = vec![0; bytes as usize];
    give(device, ZoneCommand::Read { at, into: &mut data })?;
    Ok(ZonedAnswer::Data(to_hex(&data)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::IntoEnumIterator;

    #[test]
    fn states_and_faults_have_the_names_of_the_core() {
        for state in frit_core::ZoneState::iter() {
            let zone = ZoneInfo { zone: 7, state, start: Sector(8), write_pointer: Sector(9) };
            let shown = reported(zone);
            assert_eq!((shown.zone, shown.start, shown.write_pointer), (7, 8, 9));
            assert_eq!(shown.state.name(), state.name());
            assert_eq!(serde_json::to_value(shown.state).unwrap(), state.name());
        }
        for of_core in frit_core::ZoneFault::iter() {
            assert_eq!(serde_json::to_value(fault(of_core)).unwrap(), of_core.name());
        }
        let later: frit_client::ZoneFault = serde_json::from_str(r#""is-lost""#).unwrap();
        assert_eq!(later, frit_client::ZoneFault::Other);
    }
}
