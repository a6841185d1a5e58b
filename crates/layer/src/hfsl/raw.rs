//! Access by physical address, for callers named in the configuration (write protection, section
//! 2.7.4).

use super::Hfsl;
use crate::Token;
use frit_core::{Cause, Error, MediumKind, Ppn, RawAccess, ReadTarget, Result, Sink, WriteData};
use frit_media::Store;

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    fn allow(&self, who: &str) -> Result<()> {
        if self.config.raw_access.iter().any(|w| w == who) {
            return Ok(());
        }
        Err(Error::Protected { who: who.into() })
    }
}

impl<S: Sink, N: Store, P: Store> RawAccess<S> for Hfsl<S::Tok, N, P> {
    fn raw_read(
        &mut self,
        sink: &mut S,
        who: &str,
        medium: MediumKind,
        at: u64,
        into: ReadTarget<'_>,
    ) -> Result<()> {
        self.allow(who)?;
        let start = sink.start();
        let outside = |bytes: u64| Error::OutOfRange { at: at / 512, sectors: 1, capacity: bytes / 512 };
        let done = match (medium, &mut self.map.pcm) {
            (MediumKind::Nand, _) => {
                let g = *self.flash.nand().geometry();
                let page = at / u64::from(g.page_bytes);
                let offset = (at % u64::from(g.page_bytes)) as u32;
                if page >= u64::from(g.pages()) || offset + into.len() > g.page_bytes {
                    return Err(outside(g.bytes()));
                }
                self.flash.nand_mut().read(sink, Ppn(page as u32), offset, into, Cause::Host, start)?
            }
            (MediumKind::Pcm, Some(pcm)) => pcm.medium.read(sink, at, into, Cause::Host, start)?,
            _ => return Err(outside(0)),
        };
        sink.ack(done);
        Ok(())
    }

    fn raw_write(
        &mut self,
        sink: &mut S,
        who: &str,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
    ) -> Result<()> {
        self.allow(who)?;
        let Some(pcm) = &mut self.map.pcm else {
            return Err(Error::OutOfRange { at: at / 512, sectors: 1, capacity: 0 });
        };
        // Above the last slot PCM is not used by the layer.
        if at < pcm.slot_at(pcm.layout.slots) {
            return Err(Error::Protected { who: format!("{who} (that part of PCM belongs to the layer)") });
        }
        let start = sink.start();
        let done = pcm.medium.write(sink, at, data, cause, start)?;
        sink.ack(done);
        Ok(())
    }
}
