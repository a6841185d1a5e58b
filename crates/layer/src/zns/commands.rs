//! Commands of clients.

use super::layer::Zns;
use frit_core::convert::to_usize;
use frit_core::{
    Result, SECTOR_BYTES, Sector, Sink, WriteData, ZoneAccess, ZoneAction, ZoneFault, ZoneInfo, ZoneState,
    ZonedInfo,
};

impl Zns {
    /// Returns a zone; `None` if there is no zone with this number.
    pub(super) fn info_of(&self, number: u32) -> Option<ZoneInfo> {
        let zone = self.zones.get(to_usize(number))?;
        let page = u64::from(self.sizes.page_bytes) / SECTOR_BYTES;
        let start = u64::from(number) * u64::from(self.sizes.zone_pages) * page;
        let write_pointer = Sector(start + u64::from(zone.written) * page);
        Some(ZoneInfo { zone: number, state: zone.state, start: Sector(start), write_pointer })
    }

    /// Checks that there is a zone with this number.
    fn check_zone(&self, number: u32) -> Result<()> {
        match self.info_of(number) {
            Some(_) => Ok(()),
            None => Err(self.zone_error(number, ZoneFault::InvalidTransition, "")),
        }
    }

    fn manage_zone(&mut self, sink: &mut Sink, zone: u32, action: ZoneAction) -> Result<()> {
        match action {
            ZoneAction::Open => self.open_explicitly(sink, zone),
            ZoneAction::Close => self.close_explicitly(sink, zone),
            ZoneAction::Finish => self.finish(sink, zone),
            ZoneAction::Reset => match self.zones[to_usize(zone)].state {
                ZoneState::ReadOnly | ZoneState::Offline => self.check_writable(zone),
                _ => self.reset_zones(sink, &[zone]),
            },
        }
    }
}

impl ZoneAccess for Zns {
    fn zoned_info(&self) -> ZonedInfo {
        ZonedInfo {
            block_bytes: self.sizes.page_bytes,
            zones: self.sizes.zones,
            zone_sectors: self.sizes.zone_bytes() / SECTOR_BYTES,
            max_open: self.config.max_open,
            max_active: self.config.max_active,
            open: self.open,
            active: self.active,
        }
    }

    fn zone(&self, zone: u32) -> Option<ZoneInfo> {
        self.info_of(zone)
    }

    fn manage(&mut self, sink: &mut Sink, zone: u32, action: ZoneAction) -> Result<()> {
        self.check_zone(zone)?;
        self.health.writable()?;
        self.manage_zone(sink, zone, action).map_err(|e| self.refuse_after(e))
    }

    fn append(&mut self, sink: &mut Sink, zone: u32, data: WriteData<'_>) -> Result<Sector> {
        self.check_zone(zone)?;
        self.health.writable()?;
        self.check_writable(zone)?;
        self.check_blocks(zone, u64::from(data.len()))?;
        let room = u64::from(self.sizes.zone_pages - self.zones[to_usize(zone)].written)
            * u64::from(self.sizes.page_bytes);
        if u64::from(data.len()) > room {
            let what = format!("has {room} bytes left, and {} are to be appended; divide them", data.len());
            return Err(self.zone_error(zone, ZoneFault::BoundaryError, &what));
        }
        let at = self.info_of(zone).map_or(Sector(0), |z| z.write_pointer);
        self.write_at_pointer(sink, zone, data).map_err(|e| self.refuse_after(e))?;
        Ok(at)
    }
}
