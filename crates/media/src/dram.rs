//! Timed, volatile DRAM buffer.

use crate::stripe::Stripe;
use crate::{AnyStore, Device, DramTiming, Hardware, Store, TimingModel};
use frit_core::visible::{MediumView, Wear};
use frit_core::{
    Cause, Cmd, Counts, Error, MediumKind, Op, ReadTarget, Result, Sink, Tok, UnitId, WriteData,
};

/// Configuration of a DRAM buffer.
#[derive(Clone, Debug)]
pub struct DramConfig {
    /// Name of the buffer in the stack.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of channels. Each channel is a unit.
    pub channels: u32,
    /// Consecutive bytes on one channel; a power of two.
    pub interleave_bytes: u32,
    /// Timing of its commands.
    pub timing: DramTiming,
}

impl DramConfig {
    /// Checks that the values are possible.
    ///
    /// # Errors
    /// The first value that is wrong, and the values that are allowed.
    pub fn check(&self) -> Result<()> {
        if self.channels == 0 || self.channels > 4096 {
            return Err(Error::param("channels", self.channels, "has to be 1 to 4096"));
        }
        if !self.interleave_bytes.is_power_of_two() {
            return Err(Error::param("interleave_bytes", self.interleave_bytes, "has to be a power of two"));
        }
        if self.bytes == 0 || self.bytes > 1 << 48 {
            return Err(Error::param("bytes", self.bytes, "has to be 1 byte to 256 TiB"));
        }
        Ok(())
    }
}

/// A DRAM buffer that keeps its bytes in a store.
#[derive(Debug)]
pub struct Dram {
    config: DramConfig,
    stripe: Stripe,
    first_unit: UnitId,
    counts: Counts,
    store: AnyStore,
}

impl Dram {
    /// Returns `true` if the store keeps the bytes that are written.
    #[inline]
    #[must_use]
    pub fn stores_bytes(&self) -> bool {
        self.store.stores_bytes()
    }

    /// Creates a buffer on `store` and registers its channels with `hw`.
    ///
    /// # Errors
    /// An impossible geometry, a store that is too small, or more units than a stack can have.
    pub fn new(
        config: DramConfig,
        store: impl Into<AnyStore>,
        hw: &mut Hardware,
    ) -> std::result::Result<Self, String> {
        Self::on(config, store.into(), hw)
    }

    fn on(config: DramConfig, store: AnyStore, hw: &mut Hardware) -> std::result::Result<Self, String> {
        config.check().map_err(|e| e.to_string())?;
        if store.stores_bytes() && store.len() < config.bytes {
            return Err(format!(
                "the store of DRAM '{}' has {} bytes and needs {}",
                config.name,
                store.len(),
                config.bytes
            ));
        }
        let first_unit = hw.add(Device {
            name: config.name.clone(),
            kind: MediumKind::Dram,
            model: TimingModel::Dram(config.timing),
            unit_channel: (0..config.channels as u16).collect(),
            nand: None,
        })?;
        let stripe = Stripe::new(config.channels, config.interleave_bytes);
        Ok(Dram { stripe, first_unit, counts: Counts::default(), store, config })
    }

    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.config.bytes
    }

    /// Returns the unit (channel) that holds an address.
    #[must_use]
    pub fn unit_of(&self, at: u64) -> UnitId {
        UnitId(self.first_unit.0 + self.stripe.channel(at) as u16)
    }

    fn emit_split(
        &mut self,
        sink: &mut Sink,
        op: Op,
        at: u64,
        len: u32,
        why: Cause,
        after: Tok,
    ) -> Result<Tok> {
        if at.checked_add(u64::from(len)).is_none_or(|end| end > self.config.bytes) {
            let what = "an access reaches past the end of the buffer";
            return Err(Error::Rule { medium: MediumKind::Dram, at, what });
        }
        let (mut at, mut left) = (at, len);
        let mut done: Option<Tok> = None;
        while left > 0 {
            let n = self.stripe.contiguous_len(at, left);
            self.counts.add(op, why, n);
            let hazard = (at / u64::from(self.config.interleave_bytes)) as u32;
            let cmd = Cmd { addr: at, len: n, hazard, unit: self.unit_of(at), op, cause: why };
            let tok = sink.emit(cmd, after);
            done = Some(match done {
                Some(d) => sink.join(d, tok),
                None => tok,
            });
            at += u64::from(n);
            left -= n;
        }
        Ok(done.unwrap_or(after))
    }

    /// Reads bytes. Emits one command for each contiguous part on one channel.
    ///
    /// # Errors
    /// `Rule` for an access past the end, or an error of the store.
    pub fn read(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let tok = self.emit_split(sink, Op::DramRead, at, into.len(), cause, after)?;
        if let Some(into) = into.bytes() {
            self.store.read(at, into)?;
        }
        Ok(tok)
    }

    /// Writes bytes. Emits one command for each contiguous part on one channel.
    ///
    /// # Errors
    /// `Rule` for an access past the end, or an error of the store.
    pub fn write(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let tok = self.emit_split(sink, Op::DramWrite, at, data.len(), cause, after)?;
        if let Some(bytes) = data.bytes() {
            self.store.write(at, bytes)?;
        }
        Ok(tok)
    }

    /// Discards all bytes, as a power loss does: they read as zeros afterwards.
    ///
    /// # Errors
    /// An error of the store.
    pub fn power_loss(&mut self) -> Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut part = ZEROS;
        let mut at = 0;
        while self.stores_bytes() && at < self.config.bytes {
            let n = (self.config.bytes - at).min(4096) as usize;
            self.store.read(at, &mut part[..n])?;
            // Parts that are already zero are not written, so that a sparse store stays sparse.
            if part[..n] != ZEROS[..n] {
                self.store.write(at, &ZEROS[..n])?;
            }
            at += n as u64;
        }
        Ok(())
    }

    /// Command counts by operation and cause.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Geometry and command counts.
    #[must_use]
    pub fn view(&self) -> MediumView {
        let c = &self.config;
        MediumView {
            layer: String::new(),
            name: c.name.clone(),
            kind: MediumKind::Dram,
            bytes: c.bytes,
            channels: c.channels,
            first_unit: self.first_unit,
            units: c.channels,
            geometry: vec![
                ("channels", u64::from(c.channels)),
                ("interleave_bytes", u64::from(c.interleave_bytes)),
            ],
            counts: self.counts.clone(),
            wear: Wear::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;
    use crate::testing::{recorded, recording_sink};
    use frit_core::{Nanos, Sink};

    fn config() -> DramConfig {
        DramConfig {
            name: "buffer".into(),
            bytes: 4096,
            channels: 2,
            interleave_bytes: 64,
            timing: DramTiming { latency: Nanos(100), ps_per_byte: 500 },
        }
    }

    #[test]
    fn it_holds_its_bytes_until_it_loses_power() {
        let mut d = Dram::new(config(), MemoryStore::new(4096), &mut Hardware::new()).unwrap();
        d.write(&mut Sink::untimed(), 60, WriteData::Bytes(&[7; 8]), Cause::Host, Tok::DONE).unwrap();
        let mut out = [0; 10];
        d.read(&mut Sink::untimed(), 59, ReadTarget::Bytes(&mut out), Cause::Host, Tok::DONE).unwrap();
        assert_eq!(out, [0, 7, 7, 7, 7, 7, 7, 7, 7, 0]);
        d.power_loss().unwrap();
        d.read(&mut Sink::untimed(), 59, ReadTarget::Bytes(&mut out), Cause::Host, Tok::DONE).unwrap();
        assert_eq!(out, [0; 10]);
    }

    #[test]
    fn accesses_split_over_channels_and_stay_inside() {
        let mut d = Dram::new(config(), MemoryStore::new(4096), &mut Hardware::new()).unwrap();
        let mut log = recording_sink();
        let tok = d.write(&mut log, 32, WriteData::Bytes(&[1; 100]), Cause::Host, Tok::DONE).unwrap();
        let seen: Vec<_> = recorded(&log).iter().map(|(c, _)| (c.addr, c.len, c.unit.0)).collect();
        assert_eq!((seen, tok), (vec![(32, 32, 0), (64, 64, 1), (128, 4, 0)], Tok::new(0b111)));
        assert!(d.read(&mut log, 4000, ReadTarget::Len(97), Cause::Host, Tok::DONE).is_err());
        assert_eq!(d.counts().of(Op::DramWrite).bytes, 100);
        assert_eq!(d.view().units, 2);
        assert!(Dram::new(config(), MemoryStore::new(10), &mut Hardware::new()).is_err());
    }
}
