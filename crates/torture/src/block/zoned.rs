//! Clients of zoned devices: requests are moved to the write pointers of their zones, and an oracle of
//! zones.

use crate::block::self_describing::{PER_BLOCK, Versions};
use crate::block::violation::{Oracle, Violation};
use crate::block::workload::{ClientRequest, ClientRequestKind};
use frit_core::{Error, Hints, Sink, StackDevice, ZoneAction, ZoneInfo, ZoneState, ZonedInfo};

/// A request as a host of zones gives it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ZonedRequest {
    /// Zone that needs space among the active zones: others are finished before.
    pub activate: Option<u32>,
    /// Zone to be closed before, because all open zones were opened by commands.
    pub close_before: Option<u32>,
    /// Zone to be reset.
    pub reset: Option<u32>,
    /// Zone to be opened before the write.
    pub open: Option<u32>,
    /// First sector and number of sectors of the write.
    pub write: Option<(u64, u64)>,
    /// Management of the zone after the write.
    pub after: Option<(u32, ZoneAction)>,
}

/// Returns a write or a discard as a host of zones gives it; `None` for other requests and devices.
///
/// A write goes to the write pointer of the zone in which it begins. If it begins at the start of the
/// zone, or the zone is full, the zone is reset first. A discard resets the zone.
pub fn zoned(layer: &mut dyn StackDevice, request: &ClientRequest) -> Option<ZonedRequest> {
    let access = layer.zone_access()?;
    let info = access.zoned_info();
    let zone = access.zone((request.first / info.zone_sectors) as u32)?;
    let unusable = matches!(zone.state, ZoneState::ReadOnly | ZoneState::Offline);
    match request.kind {
        ClientRequestKind::Write(_) | ClientRequestKind::Discard if unusable => Some(ZonedRequest::default()),
        ClientRequestKind::Discard => {
            Some(ZonedRequest { reset: Some(zone.zone), ..ZonedRequest::default() })
        }
        ClientRequestKind::Write(hints) => {
            let explicit = |z: &ZoneInfo| z.state == ZoneState::ExplicitlyOpen && z.zone != zone.zone;
            let close = (0..info.zones).filter_map(|z| access.zone(z)).find(explicit).map(|z| z.zone);
            let close = close.filter(|_| info.max_open > 0 && info.open >= info.max_open);
            Some(ZonedRequest { close_before: close, ..write_to(&info, &zone, request, hints) })
        }
        _ => None,
    }
}

fn write_to(info: &ZonedInfo, zone: &ZoneInfo, request: &ClientRequest, hints: Hints) -> ZonedRequest {
    let rewrites = request.first == zone.start.0 && zone.write_pointer != zone.start;
    let reset = rewrites || zone.state == ZoneState::Full;
    let at = if reset { zone.start.0 } else { zone.write_pointer.0 };
    let block = u64::from(info.block_bytes) / frit_core::SECTOR_BYTES;
    let room = zone.start.0 + info.zone_sectors - at;
    let after = match (hints.has(Hints::COLD), hints.has(Hints::METADATA)) {
        (true, true) => Some((zone.zone, ZoneAction::Finish)),
        (true, false) => Some((zone.zone, ZoneAction::Close)),
        _ => None,
    };
    ZonedRequest {
        activate: (reset || !zone.state.is_active()).then_some(zone.zone),
        close_before: None,
        reset: reset.then_some(zone.zone),
        open: hints.has(Hints::HOT).then_some(zone.zone),
        write: Some((at, request.sectors.next_multiple_of(block).min(room))),
        after,
    }
}

/// Finishes active zones until another one can be active. A crash can leave more active zones than the limit:
/// a zone that was full is closed again without its last data.
///
/// # Errors
/// Errors of the layer.
pub fn finish_others(layer: &mut dyn StackDevice, sink: &mut Sink, zone: u32) -> Result<(), Error> {
    let Some(access) = layer.zone_access() else { return Ok(()) };
    let info = access.zoned_info();
    let all = (0..info.zones).filter_map(|z| access.zone(z));
    let active: Vec<u32> = all.filter(|z| z.state.is_active() && z.zone != zone).map(|z| z.zone).collect();
    let excess = (active.len() + 1).saturating_sub(info.max_active as usize);
    for &other in active.iter().take(if info.max_active == 0 { 0 } else { excess }) {
        manage(layer, sink, other, ZoneAction::Finish)?;
    }
    Ok(())
}

/// Returns `true` if a zone can be written.
pub fn is_usable(layer: &mut dyn StackDevice, sector: u64) -> bool {
    let Some(access) = layer.zone_access() else { return false };
    let zone = access.zone((sector / access.zoned_info().zone_sectors) as u32);
    zone.is_some_and(|z| !matches!(z.state, ZoneState::ReadOnly | ZoneState::Offline))
}

/// Returns the number of sectors from a sector on to the write pointer of its zone.
pub fn sectors_from(layer: &mut dyn StackDevice, sector: u64) -> u64 {
    let Some(access) = layer.zone_access() else { return 0 };
    let zone = access.zone((sector / access.zoned_info().zone_sectors) as u32);
    zone.map_or(0, |z| z.write_pointer.0.saturating_sub(sector))
}

/// Manages a zone. Its state, or a limit, need not permit it.
///
/// # Errors
/// Other errors of the layer.
pub fn manage(
    layer: &mut dyn StackDevice,
    sink: &mut Sink,
    zone: u32,
    action: ZoneAction,
) -> Result<(), Error> {
    match layer.zone_access().map(|access| access.manage(sink, zone, action)) {
        Some(Err(Error::Zone { .. })) | None => Ok(()),
        Some(done) => done,
    }
}

/// Verifies the zones of a recovered device: the data of a zone are those of writes in their order, without
/// a gap, up to the write pointer. Data of before a reset never follow newer data.
///
/// # Errors
/// The first zone that is different.
pub fn verify(layer: &mut dyn StackDevice, versions: &[Versions]) -> Result<(), Violation> {
    let Some(access) = layer.zone_access() else { return Ok(()) };
    let info = access.zoned_info();
    for zone in (0..info.zones).filter_map(|z| access.zone(z)) {
        let mut last = 0;
        for sector in zone.start.0..zone.start.0 + info.zone_sectors {
            let Some(block) = versions.get(sector as usize / PER_BLOCK) else { break };
            let version = block[sector as usize % PER_BLOCK];
            let written = sector < zone.write_pointer.0;
            if written != (version > 0) || written && version < last {
                let what = format!("{zone:?}: sector {sector} holds version {version} behind version {last}");
                return Err(Violation::new(Oracle::Zones, what));
            }
            last = version;
        }
    }
    Ok(())
}
