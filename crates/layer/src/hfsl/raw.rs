//! Access by physical address, for callers named in the configuration (write protection, section
//! 2.7.4).

use super::Hfsl;
use frit_core::{Cause, Error, MediumKind, Ppn, RawAccess, ReadTarget, Result, Sink, WriteData};
use std::ops::Range;

impl Hfsl {
    fn allow(&self, who: &str) -> Result<()> {
        if self.config.raw_access.iter().any(|w| w == who) {
            return Ok(());
        }
        Err(Error::Protected { who: who.into() })
    }

    /// Returns the addresses of the last `raw_bytes` bytes of PCM, which the layer does not use.
    fn area(&self) -> Range<u64> {
        let end = self.map.pcm.as_ref().map_or(0, |pcm| pcm.medium.bytes());
        end.saturating_sub(self.config.raw_bytes)..end
    }
}

/// Returns the physical address of byte `at` of the area for direct writes.
fn in_area(area: &Range<u64>, at: u64, len: u32) -> Result<u64> {
    let size = area.end - area.start;
    if at.checked_add(u64::from(len)).is_some_and(|end| end <= size) {
        return Ok(area.start + at);
    }
    Err(Error::param("raw_bytes", size, format!("bytes {at}+{len} are outside this area")))
}

/// Checks that a range of physical bytes lies inside a medium of `size` bytes.
fn check(medium: MediumKind, at: u64, len: u32, size: u64) -> Result<()> {
    if at.checked_add(u64::from(len)).is_some_and(|end| end <= size) {
        return Ok(());
    }
    Err(Error::param("address", format!("{at}+{len}"), format!("{medium:?} has {size} bytes")))
}

fn no_medium(medium: MediumKind) -> Error {
    let why = format!("the stack has no {medium:?} with physical addresses");
    Error::param("medium", format!("{medium:?}"), why)
}

impl RawAccess for Hfsl {
    fn raw_read(
        &mut self,
        sink: &mut Sink,
        who: &str,
        medium: MediumKind,
        at: u64,
        into: ReadTarget<'_>,
    ) -> Result<()> {
        self.allow(who)?;
        let start = sink.start();
        let len = into.len();
        let done = match (medium, &mut self.map.pcm) {
            (MediumKind::Nand, _) => {
                let g = *self.flash.nand().geometry();
                check(medium, at, len, g.bytes())?;
                let page = at / u64::from(g.page_bytes);
                let offset = (at % u64::from(g.page_bytes)) as u32;
                if offset + len > g.page_bytes {
                    let why = format!("a read of NAND stays in one page of {} bytes", g.page_bytes);
                    return Err(Error::param("address", format!("{at}+{len}"), why));
                }
                let ppn = Ppn(page as u32);
                if g.page_in_block(ppn) >= self.flash.nand().next_page(g.block_of(ppn)) {
                    return Err(Error::param("address", at, "this page of NAND is erased"));
                }
                self.flash.nand_mut().read(sink, ppn, offset, into, Cause::Host, start)?
            }
            (MediumKind::Pcm, Some(pcm)) => {
                check(medium, at, len, pcm.medium.bytes())?;
                pcm.medium.read(sink, at, into, Cause::Host, start)?
            }
            _ => return Err(no_medium(medium)),
        };
        sink.ack(done);
        Ok(())
    }

    fn raw_write(
        &mut self,
        sink: &mut Sink,
        who: &str,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
    ) -> Result<()> {
        self.allow(who)?;
        let area = self.area();
        let Some(pcm) = &mut self.map.pcm else { return Err(no_medium(MediumKind::Pcm)) };
        check(MediumKind::Pcm, at, data.len(), pcm.medium.bytes())?;
        if at < area.start {
            let (free, end) = (area.start, area.end);
            let why = format!(
                "this part of PCM belongs to the layer; direct writes go to {free} up to {end} (see raw_bytes)"
            );
            return Err(Error::param("address", at, why));
        }
        let start = sink.start();
        let done = pcm.medium.write(sink, at, data, cause, start)?;
        sink.ack(done);
        Ok(())
    }

    fn raw_area(&self) -> Range<u64> {
        self.area()
    }

    fn read_raw_area(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>) -> Result<()> {
        let at = in_area(&self.area(), at, into.len())?;
        let Some(pcm) = &mut self.map.pcm else { return Err(no_medium(MediumKind::Pcm)) };
        let start = sink.start();
        let done = pcm.medium.read(sink, at, into, Cause::Host, start)?;
        sink.ack(done);
        Ok(())
    }

    fn write_raw_area(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        let at = in_area(&self.area(), at, data.len())?;
        let Some(pcm) = &mut self.map.pcm else { return Err(no_medium(MediumKind::Pcm)) };
        let start = sink.start();
        let done = pcm.medium.write(sink, at, data, Cause::Host, start)?;
        sink.ack(done);
        Ok(())
    }
}
