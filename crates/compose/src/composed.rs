//! The interfaces of a layer for a composer.

use crate::deferral::{Deferral, DeferredRequest, RequestKind, addresses, addresses_of_read};
use crate::devices::Devices;
use frit_core::bounds::check_sectors;
use frit_core::visible::{LayerView, Metric};
use frit_core::{
    BlockDevice, BlockLayer, BlockingMedium, Buffer, Cause, CheckCounts, CheckScope, CrashKind, Deferred,
    DeferredPart, DurabilityPoint, Durable, Error, Extent, Finding, Hints, Info, MediumKind, ParamInfo,
    ParamTable, Params, Precondition, Preconditioning, Progress, Quiesce, ReadTarget, Recovery,
    RequestIntent, Result, SECTOR_BYTES, Sector, Sink, StackView, Tok, WriteData, WriteGuarantee,
};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// What every composer has: its parameters, and the devices below it.
pub struct Base<C> {
    /// Parameters of the layer.
    pub config: C,
    /// Devices below the layer.
    pub devices: Devices,
}

impl<C> Base<C> {
    /// Joins parameters and devices.
    pub fn new(config: C, devices: Devices) -> Base<C> {
        Base { config, devices }
    }
}

/// A small layer over devices, which [`Composed`] makes a layer of a stack.
///
/// Addresses are in bytes, and requests cover whole sectors within [`Composer::bytes`]. A request
/// starts when `after` is done; the token that it returns is done at its acknowledgement.
pub trait Composer: Send {
    /// Name of the kind of layer in a stack file.
    const NAME: &'static str;

    /// `true` if the devices get the hints of the requests of the host. The writes of the composer
    /// with [`Cause::Host`] are then data of the current request.
    const PASSES_HINTS: bool = false;

    /// `true` if a read that goes straight into the buffer of a request may be deferred
    /// ([`frit_core::deferred`]): the composer looks at the bytes only in [`Composer::verify`], and an
    /// unchanged range stays at its place or is found at its new one by a repeated read.
    const DEFERS_READS: bool = false;

    /// `true` if a write or zeroing of the buffer of a request may be deferred: the composer keeps no
    /// state about the written range.
    const DEFERS_WRITES: bool = false;

    /// `true` if the layer above can forgive a failed sync ([`BlockDevice::forgive_failed_sync`]): the composer writes
    /// nothing of its own to the devices, and holds no data of its upper layer back.
    const FORGIVES_SYNCS: bool = false;

    /// Parameters of the layer.
    type Config: ParamTable + Send;

    /// Returns the parameters and the devices.
    fn base(&self) -> &Base<Self::Config>;

    /// Returns the parameters and the devices.
    fn base_mut(&mut self) -> &mut Base<Self::Config>;

    /// Takes changed parameters.
    ///
    /// # Errors
    /// Parameters that do not fit the devices; nothing changes then.
    fn configure(&mut self, config: Self::Config) -> Result<()> {
        self.base_mut().config = config;
        Ok(())
    }

    /// Returns the capacity, in bytes: that of the only device, unless the layer computes it. It
    /// changes only when the composer is configured, formatted or loaded.
    fn bytes(&self) -> u64 {
        self.base().devices.only().bytes()
    }

    /// Returns the size of the unit of mapping, in bytes; the largest one of the devices if the layer
    /// has none.
    fn page_bytes(&self) -> u32 {
        self.base().devices.iter().map(BlockDevice::page_bytes).max().unwrap_or(SECTOR_BYTES as u32)
    }

    /// Returns the DRAM that the layer uses for its mapping, in bytes.
    fn dram_bytes(&self) -> u64 {
        0
    }

    /// Returns the bytes of its device that the layer reserves for its mapping.
    fn durable_map_bytes(&self) -> u64 {
        0
    }

    /// Announces the next requests: see [`BlockLayer::prefetch`]. A composer whose addresses
    /// follow from a table does nothing.
    fn prefetch(&self, _next: &[(Sector, u32)]) {}

    /// Reads sectors.
    ///
    /// # Errors
    /// A failure of a device.
    fn read(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>, after: Tok) -> Result<Tok>;

    /// Writes sectors.
    ///
    /// # Errors
    /// A failure of a device.
    fn write(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok>;

    /// Makes sectors read as zeros.
    ///
    /// # Errors
    /// A failure of a device.
    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok>;

    /// Makes all acknowledged writes durable.
    ///
    /// # Errors
    /// A failure of a device.
    fn flush(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        self.base_mut().devices.flush(sink, Cause::Host, after)
    }

    /// Returns the end of the run of bytes from `at` on that lies on one medium, and this medium: that
    /// of the only device, unless the layer changes addresses.
    fn place(&self, at: u64) -> (u64, Option<MediumKind>) {
        self.base().devices.only().place(at)
    }

    /// Returns the guarantees of an acknowledged write.
    fn write_guarantee(&self) -> WriteGuarantee {
        self.base().devices.weakest_guarantee()
    }

    /// Writes the metadata of the layer to its devices, which are formatted.
    ///
    /// # Errors
    /// A failure of a device.
    fn format(&mut self, _sink: &mut Sink) -> Result<()> {
        Ok(())
    }

    /// Reads the state of the layer from its devices, which are recovered. It may be repeated or
    /// interrupted.
    ///
    /// # Errors
    /// A failure of a device, or metadata that is damaged or belongs to another layer.
    fn load(&mut self, _sink: &mut Sink, _crash: CrashKind) -> Result<Recovery> {
        Ok(Recovery { clean: true, ..Recovery::default() })
    }

    /// Makes the data and the state of the layer durable, before its devices are shut down. A disk
    /// has no state to write, but what it was given has to be durable.
    ///
    /// # Errors
    /// A failure of a device.
    fn save(&mut self, sink: &mut Sink) -> Result<()> {
        let start = sink.start();
        let done = self.flush(sink, start)?;
        sink.ack(done);
        Ok(())
    }

    /// Brings a new layer into a state as after long use.
    ///
    /// # Errors
    /// The errors of [`Preconditioning::precondition`].
    fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.base_mut().devices.precondition(how)
    }

    /// Checks the state of the layer.
    ///
    /// # Errors
    /// A failure of a device.
    fn check(
        &mut self,
        _sink: &mut Sink,
        _scope: CheckScope,
        _found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        Ok(CheckCounts::default())
    }

    /// Prepares the deferral of accesses. Returns `true` if some can be deferred.
    fn share(&mut self) -> bool {
        self.base_mut().devices.share()
    }

    /// Defers the accesses from or to the buffer of a request, until [`Composer::end_deferral`].
    /// `buffer` has its addresses in memory.
    fn begin_deferral(&mut self, buffer: Range<usize>) {
        self.base_mut().devices.begin_deferral(&buffer);
    }

    /// Returns the accesses that were deferred.
    fn end_deferral(&mut self) -> Vec<DeferredPart> {
        self.base_mut().devices.end_deferral()
    }

    /// Verifies the bytes of a deferred read. Returns `false` if they have to be read again.
    fn verify(&self, _at: u64, _bytes: &[u8]) -> bool {
        true
    }

    /// Returns `true` if requests may have to wait for a slow medium.
    fn waits(&self) -> bool {
        self.base().devices.wait()
    }

    /// Does background work of the layer. The devices have their turn when it has none.
    ///
    /// # Errors
    /// A failure of a device.
    fn step(&mut self, _sink: &mut Sink, _budget: u32) -> Result<Progress> {
        Ok(Progress::Idle)
    }

    /// Returns the reason for which the layer refuses writes.
    fn refuses(&self) -> Option<String> {
        self.base().devices.refuses()
    }

    /// Adds the media and layers below the layer to the view.
    fn visible(&self, view: &mut StackView) {
        self.base().devices.visible(view);
    }

    /// Returns the metrics of the layer.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }
}

/// A composer as a layer of a stack.
pub struct Composed<C> {
    composer: C,
    /// Capacity of the composer. To ask it for each request would ask all layers below.
    sectors: u64,
    /// Reason for which an upper layer or the volume has stopped writes.
    refused: Option<String>,
    /// Reason for which a failed flush has stopped writes and flushes.
    flush_failed: Option<String>,
    serves_clients: bool,
    deferral: Deferral,
    sink: PhantomData<fn(&mut Sink)>,
}

impl<C: Composer> Composed<C> {
    /// Gives a composer the interfaces of a layer.
    pub fn new(composer: C) -> Composed<C> {
        let sectors = composer.bytes() / SECTOR_BYTES;
        Composed {
            composer,
            sectors,
            refused: None,
            flush_failed: None,
            serves_clients: false,
            deferral: Deferral::default(),
            sink: PhantomData,
        }
    }

    /// Takes the capacity of the composer, which may depend on its state and parameters.
    fn update_capacity(&mut self) {
        self.sectors = self.composer.bytes() / SECTOR_BYTES;
    }

    fn check_range(&self, at: Sector, bytes: u64) -> Result<u64> {
        let capacity = self.sectors * SECTOR_BYTES;
        if !bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(Error::OutOfRange {
                at: at.0,
                sectors: bytes.div_ceil(SECTOR_BYTES),
                capacity: self.sectors,
            });
        }
        check_sectors(at, bytes, capacity)
    }

    fn writable(&self) -> Result<()> {
        match self.refused.as_ref().or(self.flush_failed.as_ref()) {
            Some(why) => Err(Error::ReadOnly { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Begins the deferral of the accesses of a request, if its kind is deferred. `buffer` has the
    /// addresses of its buffer in memory.
    #[inline]
    fn begin_deferral(&mut self, kind: RequestKind, buffer: Option<Range<usize>>) -> bool {
        let defers = match kind {
            RequestKind::Read => C::DEFERS_READS,
            RequestKind::Write | RequestKind::Zero => C::DEFERS_WRITES,
        };
        match buffer {
            Some(buffer) if defers && self.deferral.on => {
                self.composer.begin_deferral(buffer);
                true
            }
            _ => false,
        }
    }

    /// Ends the deferral of the accesses of a request. A request that failed makes none.
    fn end_deferral(&mut self, kind: RequestKind, range: Range<u64>, succeeded: bool) {
        let parts = self.composer.end_deferral();
        if succeeded {
            self.deferral.begin(DeferredRequest { kind, range }, parts);
        }
    }

    /// Makes a request again, in place, whose deferred accesses failed.
    #[cold]
    fn repeat(&mut self, sink: &mut Sink, request: &DeferredRequest, buffer: &mut Buffer<'_>) -> Result<()> {
        let (at, start) = (request.range.start, sink.start());
        let done = match (request.kind, buffer) {
            (RequestKind::Read, Buffer::In(bytes)) => {
                self.composer.read(sink, at, ReadTarget::Bytes(bytes), start)
            }
            (RequestKind::Write, Buffer::Out(bytes)) => {
                self.composer.write(sink, at, WriteData::Bytes(bytes), start)
            }
            (RequestKind::Zero, _) => {
                self.composer.zero(sink, at, request.range.end - request.range.start, start)
            }
            // The buffer is that of the request.
            (RequestKind::Read | RequestKind::Write, _) => Ok(start),
        }?;
        sink.ack(done);
        Ok(())
    }

    /// Handles a failed flush. The writes since the last flush may be lost even if a later flush
    /// succeeds (an operating system drops pages that it could not write), and a client does not
    /// write them again.
    #[cold]
    fn note_failed_flush(&mut self, e: &Error) {
        let late = self.composer.write_guarantee().durable_at == DurabilityPoint::OnFlush;
        if self.serves_clients && late {
            let why = format!("writes before a failed flush may be lost: {e}; open the volume again");
            self.flush_failed.get_or_insert(why);
        }
    }
}

impl<C: Composer> BlockLayer for Composed<C> {
    fn prefetch(&self, next: &[(Sector, u32)]) {
        self.composer.prefetch(next);
    }

    fn info(&self) -> Info {
        Info {
            name: C::NAME,
            sectors: self.composer.bytes() / SECTOR_BYTES,
            page_bytes: self.composer.page_bytes(),
            dram_bytes: self.composer.dram_bytes(),
            durable_map_bytes: self.composer.durable_map_bytes(),
        }
    }

    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, _: Hints) -> Result<()> {
        let len = u64::from(into.len());
        let at = self.check_range(at, len)?;
        self.deferral.check(at, len, RequestKind::Read)?;
        let deferring = self.begin_deferral(RequestKind::Read, addresses_of_read(&into));
        let start = sink.start();
        let done = self.composer.read(sink, at, into, start);
        if deferring {
            self.end_deferral(RequestKind::Read, at..at + len, done.is_ok());
        }
        sink.ack(done?);
        Ok(())
    }

    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, hints: Hints) -> Result<()> {
        let len = u64::from(data.len());
        let at = self.check_range(at, len)?;
        self.writable()?;
        self.deferral.check(at, len, RequestKind::Write)?;
        let start = sink.start();
        let hints = if C::PASSES_HINTS { hints.only(Hints::PLACEMENT) } else { Hints::NONE };
        let done = if hints == Hints::NONE {
            let deferring = self.begin_deferral(RequestKind::Write, data.bytes().map(addresses));
            let done = self.composer.write(sink, at, data, start);
            if deferring {
                self.end_deferral(RequestKind::Write, at..at + len, done.is_ok());
            }
            done
        } else {
            // A deferred access has no hints.
            self.composer.base_mut().devices.set_hints(hints);
            let done = self.composer.write(sink, at, data, start);
            self.composer.base_mut().devices.set_hints(Hints::NONE);
            done
        }?;
        sink.ack(done);
        Ok(())
    }

    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        if let Some(why) = &self.flush_failed {
            return Err(Error::ReadOnly { why: why.clone() });
        }
        let start = sink.start();
        let done = self.composer.flush(sink, start).inspect_err(|e| self.note_failed_flush(e))?;
        sink.ack(done);
        Ok(())
    }

    fn serve_clients(&mut self) {
        self.serves_clients = true;
    }

    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let at = self.check_range(at, bytes)?;
        self.writable()?;
        self.deferral.check(at, bytes, RequestKind::Zero)?;
        let deferring = self.begin_deferral(RequestKind::Zero, Some(0..0));
        let start = sink.start();
        let done = self.composer.zero(sink, at, bytes, start);
        if deferring {
            self.end_deferral(RequestKind::Zero, at..at + bytes, done.is_ok());
        }
        sink.ack(done?);
        Ok(())
    }

    fn defer(&mut self, on: bool) -> bool {
        self.deferral.on = on && (C::DEFERS_READS || C::DEFERS_WRITES) && self.composer.share();
        self.deferral.on
    }

    fn would_block(&self, what: RequestIntent, _: Sector, _: u64) -> bool {
        self.deferral.on
            && match what {
                RequestIntent::Read => C::DEFERS_READS && self.deferral.reads_wait(),
                RequestIntent::Write | RequestIntent::Discard => {
                    C::DEFERS_WRITES && self.composer.base().devices.writes_wait()
                }
                RequestIntent::Flush => true,
            }
    }

    fn deferred(&mut self) -> Option<Deferred> {
        self.deferral.take()
    }

    fn settle(
        &mut self,
        sink: &mut Sink,
        of: &Deferred,
        outcome: Result<()>,
        buffer: &mut Buffer<'_>,
    ) -> Result<()> {
        let Some(request) = self.deferral.end(of.id) else { return outcome };
        // The caller does not wait, and makes the request again.
        if matches!(outcome, Err(Error::WouldBlock)) {
            return outcome;
        }
        let valid = outcome.is_ok()
            && match buffer {
                Buffer::In(bytes) => self.composer.verify(request.range.start, bytes),
                _ => true,
            };
        if valid { Ok(()) } else { self.repeat(sink, &request, buffer) }
    }

    fn waits(&self) -> bool {
        self.composer.waits()
    }

    fn failed_sync(&self) -> bool {
        C::FORGIVES_SYNCS && self.composer.base().devices.iter().any(BlockDevice::failed_sync)
    }

    fn forgive_failed_sync(&mut self) {
        if C::FORGIVES_SYNCS {
            self.composer.base_mut().devices.iter_mut().for_each(BlockDevice::forgive_failed_sync);
        }
    }

    fn each_shared(&mut self, each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {
        self.composer.base_mut().devices.each_shared(each);
    }

    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        match self.composer.step(sink, budget)? {
            Progress::Busy(tok) => Ok(Progress::Busy(tok)),
            waiting => Ok(waiting.or(self.composer.base_mut().devices.step(sink, budget)?)),
        }
    }

    fn visible(&self, view: &mut StackView) {
        let metrics = self.composer.metrics();
        view.layers.push(LayerView { name: C::NAME.into(), metrics, ..LayerView::default() });
        self.composer.visible(view);
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }

    fn each_layer_below(&mut self, each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {
        self.composer.base_mut().devices.each_layer(each);
    }
}

impl<C: Composer> Params for Composed<C> {
    fn list(&self) -> Vec<ParamInfo> {
        self.composer.base().config.list()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let changed = self.composer.base().config.with_live(key, value)?;
        changed.check_ranges()?;
        self.composer.configure(changed)?;
        self.update_capacity();
        Ok(())
    }
}

impl<C: Composer> Preconditioning for Composed<C> {
    fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.composer.precondition(how)
    }
}

impl<C: Composer> Quiesce for Composed<C> {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.writable()?;
        self.composer.save(sink)?;
        self.composer.base_mut().devices.halt(sink)
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.composer.base_mut().devices.boot(sink)?;
        self.composer.load(sink, CrashKind::Process)?;
        self.update_capacity();
        Ok(())
    }
}

impl<C: Composer> Durable for Composed<C> {
    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.composer.base_mut().devices.format(sink)?;
        self.composer.format(sink)?;
        self.update_capacity();
        Ok(())
    }

    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        (self.refused, self.flush_failed) = (None, None);
        let below = self.composer.base_mut().devices.recover(sink, crash)?;
        let mut own = self.composer.load(sink, crash)?;
        self.update_capacity();
        own.clean &= below.iter().all(|b| b.recovery.clean);
        own.below.extend(below);
        Ok(own)
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        self.composer.write_guarantee()
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let below = self.composer.base_mut().devices.check(sink, scope, found)?;
        Ok(self.composer.check(sink, scope, found)? + below)
    }

    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()> {
        let from = self.check_range(at, sectors.saturating_mul(SECTOR_BYTES))?;
        frit_core::extents::merge_runs(from..from + sectors * SECTOR_BYTES, each, |byte| {
            self.composer.place(byte)
        });
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        let own = self.refused.as_ref().or(self.flush_failed.as_ref());
        own.cloned().or_else(|| self.composer.refuses())
    }

    fn refuse(&mut self, why: String) {
        self.composer.base_mut().devices.refuse(&why);
        self.refused.get_or_insert(why);
    }
}
