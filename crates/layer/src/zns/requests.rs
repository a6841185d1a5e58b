//! Block requests: writes at the write pointers, and discards of whole zones.

use super::layer::Zns;
use frit_core::convert::{bounded_u32, low_u32, to_usize};
use frit_core::{Result, SECTOR_BYTES, Sink, WriteData, ZoneFault, ZoneState};

impl Zns {
    /// Zone of a byte, and the byte within it.
    fn zone_of(&self, at: u64) -> (u32, u64) {
        let bytes = self.sizes.zone_bytes();
        (bounded_u32(at / bytes), at % bytes)
    }

    /// Checks that data consist of whole logical blocks.
    pub(super) fn check_blocks(&self, zone: u32, bytes: u64) -> Result<()> {
        let block = u64::from(self.sizes.page_bytes);
        if bytes > 0 && bytes.is_multiple_of(block) {
            return Ok(());
        }
        let what = format!(
            "a write of {bytes} bytes does not consist of whole blocks of {block}; align writes to blocks"
        );
        Err(self.zone_error(zone, ZoneFault::InvalidWrite, &what))
    }

    /// Writes a range of bytes.
    pub(super) fn write_range(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        let (mut at, mut from) = (at, 0);
        loop {
            let (zone, within) = self.zone_of(at);
            let room = self.sizes.zone_bytes() - within;
            let len = low_u32(u64::from(data.len() - from).min(room));
            if len < data.len() - from && !self.config.reset_on_rewrite {
                let what = "a write reaches past its end; divide the write at the boundary";
                return Err(self.zone_error(zone, ZoneFault::BoundaryError, what));
            }
            self.write_in_zone(sink, zone, within, data.part(from, len))?;
            from += len;
            at += u64::from(len);
            if from == data.len() {
                return Ok(());
            }
        }
    }

    /// Writes a range of bytes in a zone.
    fn write_in_zone(
        &mut self,
        sink: &mut Sink,
        number: u32,
        within: u64,
        data: WriteData<'_>,
    ) -> Result<()> {
        if within == 0 && self.config.reset_on_rewrite && self.zones[to_usize(number)].written > 0 {
            self.reset_zones(sink, &[number])?;
        }
        self.check_writable(number)?;
        let pointer = u64::from(self.zones[to_usize(number)].written) * u64::from(self.sizes.page_bytes);
        if within != pointer {
            let start = u64::from(number) * self.sizes.zone_bytes() / SECTOR_BYTES;
            let what = format!(
                "a write begins at sector {}, and not at the write pointer; write there, append, or reset \
                 the zone",
                start + within / SECTOR_BYTES
            );
            return Err(self.zone_error(number, ZoneFault::InvalidWrite, &what));
        }
        self.check_blocks(number, u64::from(data.len()))?;
        self.write_at_pointer(sink, number, data)
    }

    /// Makes a range read as zeros: resets each zone whose data lie inside it.
    pub(super) fn discard_range(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let end = at + bytes;
        let (first, last) = (self.zone_of(at).0, self.zone_of(end - 1).0);
        let mut whole = Vec::new();
        for number in first..=last {
            let zone = &self.zones[to_usize(number)];
            let start = u64::from(number) * self.sizes.zone_bytes();
            let data_end = start + u64::from(zone.written) * u64::from(self.sizes.page_bytes);
            if zone.written == 0 && zone.state != ZoneState::Full || at >= data_end {
                continue;
            }
            if at > start || end < data_end {
                let what = "a discard covers a part of its data; discard the whole zone, which resets it";
                return Err(self.zone_error(number, ZoneFault::InvalidTransition, what));
            }
            if zone.state == ZoneState::ReadOnly {
                return self.check_writable(number);
            }
            whole.push(number);
        }
        self.reset_zones(sink, &whole)
    }
}
