//! A disk as a medium: sectors in a store, and a drive in virtual time.
//!
//! Rules of the device:
//!
//! - Accesses are whole sectors.
//! - After a power loss each sector has its old or its new contents; of the writes since the last
//!   flush, any subset is durable.
//! - Only a flush makes writes durable.

use super::{DiskSpec, Drive, SolidStateDrive};
use crate::header::{self, HEADER_BYTES, HeaderBytes};
use crate::{AnyStore, Device, Hardware, Store, TimingModel};
use frit_core::visible::{MediumView, Wear};
use frit_core::{
    BlockDevice, BlockingMedium, Cause, Cmd, Counts, DurabilityPoint, Error, MediumKind, Op, ReadTarget,
    Result, SECTOR_BYTES, Sector, Sink, StackView, Tok, UnitId, WriteData, WriteGuarantee, size,
};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"fritDISK";
const VERSION: u32 = 1;

/// Size of an aligned range within which commands keep their order: the range is the
/// [`Cmd::hazard`] of a command, and no command crosses a multiple of this size.
pub const HAZARD_BYTES: u64 = 1 << 20;

/// The drive of a disk.
#[derive(Clone, Debug)]
pub enum DriveModel {
    /// A drive with an arm and platters.
    Mechanical(Box<DiskSpec>),
    /// A drive without a mechanism. It has any size.
    SolidState(SolidStateDrive),
}

impl DriveModel {
    /// Number of units: the arm, or the parallel parts.
    #[must_use]
    pub fn units(&self) -> u32 {
        match self {
            DriveModel::Mechanical(_) => 1,
            DriveModel::SolidState(drive) => drive.units,
        }
    }

    /// Returns the time model, and the size in bytes.
    ///
    /// # Errors
    /// Values that no drive can have.
    fn timing(&self) -> Result<(TimingModel, u64)> {
        match self {
            DriveModel::Mechanical(spec) => {
                let drive = Drive::new(spec)?;
                let bytes = drive.sectors() * SECTOR_BYTES;
                Ok((TimingModel::Disk(Box::new(drive)), bytes))
            }
            DriveModel::SolidState(drive) => {
                drive.check()?;
                Ok((TimingModel::SolidState(*drive), u64::MAX))
            }
        }
    }

    /// Size of the longest range that one command covers, if the range begins at a multiple of it.
    fn command_bytes(&self) -> u64 {
        match self {
            DriveModel::Mechanical(_) => HAZARD_BYTES,
            DriveModel::SolidState(drive) => drive.interleave_bytes.into(),
        }
    }
}

/// Configuration of a disk.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// Name of the disk in the stack.
    pub name: String,
    /// The drive.
    pub drive: DriveModel,
    /// Size of the part of the drive that is used, in bytes, from the first sector on: a multiple
    /// of the sector size.
    pub bytes: u64,
    /// Serial number, kept in the store: the store of another device is refused. 0 if the disk has
    /// none.
    pub serial: u64,
}

impl DiskConfig {
    /// Size that a store must have, in bytes: the data, followed by a header.
    #[must_use]
    pub fn store_bytes(&self) -> u64 {
        self.bytes + HEADER_BYTES as u64
    }

    /// Magic (8), version (4), zeros (4), bytes (8), zeros (24), serial number (8), zeros (4),
    /// CRC32C (4).
    fn header(&self) -> HeaderBytes {
        let mut h = [0; HEADER_BYTES];
        h[..8].copy_from_slice(MAGIC);
        h[8..12].copy_from_slice(&VERSION.to_le_bytes());
        h[16..24].copy_from_slice(&self.bytes.to_le_bytes());
        h
    }
}

/// A disk that keeps its sectors in a store.
#[derive(Debug)]
pub struct Disk {
    config: DiskConfig,
    first_unit: UnitId,
    counts: Counts,
    store: AnyStore,
}

impl Disk {
    /// Returns `true` if the store keeps the bytes that are written.
    #[inline]
    #[must_use]
    pub fn stores_bytes(&self) -> bool {
        self.store.stores_bytes()
    }

    /// Opens a disk on `store` and registers its units with `hw`: its arm, or its
    /// parallel parts, which share one channel. On a blank
    /// store the disk is new; otherwise it is the one that the store contains.
    ///
    /// # Errors
    /// An impossible drive, a size that the drive does not have, a store that is too small or
    /// contains another device, or more units than a stack can have.
    pub fn new(
        config: DiskConfig,
        store: impl Into<AnyStore>,
        hw: &mut Hardware,
    ) -> std::result::Result<Self, String> {
        Self::on(config, store.into(), hw)
    }

    fn on(config: DiskConfig, mut store: AnyStore, hw: &mut Hardware) -> std::result::Result<Self, String> {
        let (model, all) = config.drive.timing().map_err(|e| e.to_string())?;
        if config.bytes == 0 || config.bytes > all || !config.bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(format!(
                "the disk '{}' cannot have {} bytes: whole sectors are needed, and the drive has {}",
                config.name,
                config.bytes,
                size::format(all)
            ));
        }
        if store.stores_bytes() {
            let (have, need) = (store.len(), config.store_bytes());
            if have < need {
                return Err(format!(
                    "the store of the disk '{}' has {have} bytes and needs {need}",
                    config.name
                ));
            }
            let expected = config.header();
            if store.is_blank() {
                store
                    .write(config.bytes, &header::finish_header(expected, config.serial))
                    .map_err(|e| e.to_string())?;
            } else {
                header::verify_header(&store, config.bytes, expected, config.serial, "disk of this size")
                    .map_err(|e| format!("disk '{}': {e}", config.name))?;
            }
        }
        let first_unit = hw.add(Device {
            name: config.name.clone(),
            kind: MediumKind::Disk,
            model,
            unit_channel: vec![0; config.drive.units() as usize],
            nand: None,
        })?;
        Ok(Disk { config, first_unit, counts: Counts::default(), store })
    }

    /// Size in bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.config.bytes
    }

    /// Configuration of the disk.
    #[must_use]
    pub fn config(&self) -> &DiskConfig {
        &self.config
    }

    /// Id of the unit that serves an address.
    fn unit_of(&self, addr: u64) -> UnitId {
        match &self.config.drive {
            DriveModel::Mechanical(_) => self.first_unit,
            DriveModel::SolidState(drive) => UnitId(self.first_unit.0 + drive.unit_of(addr)),
        }
    }

    /// Returns the end of the command that begins at `pos`, in an access that ends at `end`.
    #[inline]
    fn command_end(&self, pos: u64, end: u64) -> u64 {
        let bytes = self.config.drive.command_bytes();
        end.min((pos / bytes + 1) * bytes)
    }

    /// Command counts by operation and cause.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The store that holds the bytes of the disk.
    #[must_use]
    pub fn store(&self) -> &AnyStore {
        &self.store
    }

    /// Mutable access to the store that bypasses the disk.
    pub fn store_mut(&mut self) -> &mut AnyStore {
        &mut self.store
    }

    /// Emits one command for each part of an access that lies in one range of [`HAZARD_BYTES`], and on
    /// one unit.
    fn emit_split(&mut self, sink: &mut Sink, op: Op, at: u64, len: u64, cause: Cause, after: Tok) -> Tok {
        let (mut pos, end) = (at, at + len);
        let mut done: Option<Tok> = None;
        while pos < end {
            let next = self.command_end(pos, end);
            let tok = self.emit_one(sink, op, pos, (next - pos) as u32, cause, after);
            done = Some(match done {
                Some(d) => sink.join(d, tok),
                None => tok,
            });
            pos = next;
        }
        done.unwrap_or(after)
    }

    #[inline]
    fn emit_one(&mut self, sink: &mut Sink, op: Op, addr: u64, len: u32, cause: Cause, after: Tok) -> Tok {
        self.counts.add(op, cause, len);
        let hazard = (addr / HAZARD_BYTES) as u32;
        let unit = self.unit_of(addr);
        sink.emit(Cmd { addr, len, hazard, unit, op, cause }, after)
    }

    /// Emits a flush on every unit, since the units keep no order among each other.
    fn emit_flush(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Tok {
        let mut done = None;
        for unit in 0..u64::from(self.config.drive.units()) {
            // Any address on the unit will do: the unit of the command is derived from it.
            let addr = unit * self.config.drive.command_bytes();
            let tok = self.emit_one(sink, Op::DiskFlush, addr, 0, cause, after);
            done = Some(done.map_or(tok, |d| sink.join(d, tok)));
        }
        done.unwrap_or(after)
    }

    #[inline]
    fn check_range(&self, at: u64, len: u64) -> Result<()> {
        let rule = |what| Err(Error::Rule { medium: MediumKind::Disk, at, what });
        if !at.is_multiple_of(SECTOR_BYTES) || !len.is_multiple_of(SECTOR_BYTES) {
            return rule("an access has to cover whole sectors");
        }
        match at.checked_add(len) {
            Some(end) if end <= self.config.bytes => Ok(()),
            _ => rule("an access reaches past the end of the disk"),
        }
    }

    /// Reads sectors.
    ///
    /// # Errors
    /// `Rule` for an access past the end or to parts of sectors, or an error of the store.
    pub fn read(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let len = u64::from(into.len());
        self.check_range(at, len)?;
        let tok = self.emit_split(sink, Op::DiskRead, at, len, cause, after);
        if let Some(into) = into.bytes() {
            self.store.read(at, into)?;
        }
        Ok(tok)
    }

    /// Writes sectors. They are durable after the next flush.
    ///
    /// # Errors
    /// `Rule` for an access past the end or to parts of sectors, or for a write without bytes if
    /// the store holds bytes; an error of the store.
    pub fn write(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let len = u64::from(data.len());
        self.check_range(at, len)?;
        let Some(bytes) = data.bytes().filter(|_| self.stores_bytes()) else {
            if self.stores_bytes() {
                let what = "a write without bytes on a disk that holds bytes";
                return Err(Error::Rule { medium: MediumKind::Disk, at, what });
            }
            return Ok(self.emit_split(sink, Op::DiskWrite, at, len, cause, after));
        };
        // A change of the store belongs to the command before it, so each part is emitted and then
        // written.
        let mut done: Option<Tok> = None;
        let (mut pos, end) = (at, at + len);
        while pos < end {
            let next = self.command_end(pos, end);
            let tok = self.emit_one(sink, Op::DiskWrite, pos, (next - pos) as u32, cause, after);
            self.store.write(pos, &bytes[(pos - at) as usize..(next - at) as usize])?;
            done = Some(match done {
                Some(d) => sink.join(d, tok),
                None => tok,
            });
            pos = next;
        }
        Ok(done.unwrap_or(after))
    }

    /// Writes zeros.
    ///
    /// # Errors
    /// The errors of [`Disk::write`].
    pub fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, cause: Cause, after: Tok) -> Result<Tok> {
        self.check_range(at, len)?;
        let (mut pos, end) = (at, at + len);
        let mut done = after;
        while pos < end {
            let next = self.command_end(pos, end);
            let tok = self.emit_one(sink, Op::DiskWrite, pos, (next - pos) as u32, cause, after);
            if self.stores_bytes() {
                self.store.zero(pos, next - pos)?;
            }
            done = sink.join(done, tok);
            pos = next;
        }
        Ok(done)
    }

    /// Emits and counts an access that the caller executes itself on the store.
    ///
    /// # Errors
    /// `Rule` for an access past the end or to parts of sectors.
    pub fn emit_deferred(
        &mut self,
        sink: &mut Sink,
        op: Op,
        at: u64,
        len: u64,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.check_range(at, len)?;
        if op == Op::DiskFlush {
            return Ok(self.emit_flush(sink, cause, after));
        }
        Ok(self.emit_split(sink, op, at, len, cause, after))
    }

    /// Returns a handle to the bytes of the disk for accesses from any thread, if the store
    /// supports it.
    pub fn shared(&self) -> Option<Arc<dyn BlockingMedium>> {
        self.store.shared()
    }

    /// Writes all dirty sectors of the drive's cache to the platters: the writes that `after` waits
    /// for are durable afterwards. The store is synced.
    ///
    /// # Errors
    /// An error of the store.
    pub fn flush(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok> {
        let tok = self.emit_flush(sink, cause, after);
        self.store.sync()?;
        Ok(tok)
    }

    /// Reads bytes from the store without a command.
    ///
    /// # Errors
    /// `Rule` for an access past the end or to parts of sectors, or an error of the store.
    pub fn peek(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.check_range(at, into.len() as u64)?;
        self.store.read(at, into)
    }

    /// Geometry and counts.
    #[must_use]
    pub fn view(&self) -> MediumView {
        let geometry = match &self.config.drive {
            DriveModel::Mechanical(spec) => vec![
                ("heads", u64::from(spec.geometry.heads)),
                ("cylinders", u64::from(spec.geometry.cylinders)),
                ("zones", spec.geometry.zones.len() as u64),
            ],
            DriveModel::SolidState(drive) => vec![("interleave_bytes", drive.interleave_bytes.into())],
        };
        MediumView {
            layer: String::new(),
            name: self.config.name.clone(),
            kind: MediumKind::Disk,
            bytes: self.config.bytes,
            channels: 1,
            first_unit: self.first_unit,
            units: self.config.drive.units(),
            geometry,
            counts: self.counts.clone(),
            wear: Wear { per: "disk".into(), ..Wear::default() },
        }
    }
}

impl BlockDevice for Disk {
    fn bytes(&self) -> u64 {
        Disk::bytes(self)
    }

    /// A disk has no tables.
    fn prefetch(&self, _next: &[(Sector, u32)]) {}

    fn read(
        &mut self,
        sink: &mut Sink,
        at: u64,
        into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        Disk::read(self, sink, at, into, cause, after)
    }

    fn write(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        Disk::write(self, sink, at, data, cause, after)
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, cause: Cause, after: Tok) -> Result<Tok> {
        Disk::zero(self, sink, at, len, cause, after)
    }

    fn flush(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok> {
        Disk::flush(self, sink, cause, after)
    }

    /// The cache of the drive is volatile, and a sector is atomic.
    fn write_guarantee(&self) -> WriteGuarantee {
        WriteGuarantee {
            durable_at: DurabilityPoint::OnFlush,
            atomic_bytes: SECTOR_BYTES as u32,
            ..WriteGuarantee::default()
        }
    }

    fn failed_sync(&self) -> bool {
        self.store.sync_gate().is_some_and(|gate| gate.failure().is_some())
    }

    fn forgive_failed_sync(&mut self) {
        if let Some(gate) = self.store.sync_gate() {
            gate.forgive();
        }
    }

    fn shared(&mut self) -> Option<Arc<dyn BlockingMedium>> {
        Disk::shared(self)
    }

    fn waits(&self) -> bool {
        Disk::shared(self).is_some()
    }

    fn emit_deferred(
        &mut self,
        sink: &mut Sink,
        op: Op,
        at: u64,
        len: u64,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        Disk::emit_deferred(self, sink, op, at, len, cause, after)
    }

    fn visible(&self, view: &mut StackView) {
        view.media.push(self.view());
    }

    fn place(&self, _: u64) -> (u64, Option<MediumKind>) {
        (Disk::bytes(self), Some(MediumKind::Disk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::testing::simple;
    use crate::store::LentStore;
    use crate::{MemoryStore, NoStore};
    use frit_core::Sink;

    fn config() -> DiskConfig {
        DiskConfig {
            name: "d".into(),
            drive: DriveModel::Mechanical(Box::new(simple())),
            bytes: 4 << 20,
            serial: 0,
        }
    }

    fn disk() -> Disk {
        let c = config();
        Disk::new(c.clone(), MemoryStore::new(c.store_bytes()), &mut Hardware::new()).unwrap()
    }

    #[test]
    fn sectors_come_back_and_long_accesses_are_cut() {
        let mut d = disk();
        let data: Vec<u8> = (0..3 << 20).map(|i: u32| (i / 512) as u8).collect();
        d.write(&mut Sink::untimed(), 512, WriteData::Bytes(&data), Cause::Host, Tok::DONE).unwrap();
        let mut back = vec![0; data.len()];
        d.read(&mut Sink::untimed(), 512, ReadTarget::Bytes(&mut back), Cause::Host, Tok::DONE).unwrap();
        assert_eq!(back, data);
        assert_eq!(d.counts().of(Op::DiskWrite).commands, 4);
        assert_eq!(d.counts().of(Op::DiskRead).bytes, 3 << 20);
    }

    #[test]
    fn parts_of_sectors_and_places_outside_are_refused() {
        let mut d = disk();
        let w = |d: &mut Disk, at, len| {
            d.write(&mut Sink::untimed(), at, WriteData::Bytes(&vec![0; len]), Cause::Host, Tok::DONE).is_ok()
        };
        assert!(w(&mut d, 0, 512) && w(&mut d, (4 << 20) - 512, 512));
        assert!(!w(&mut d, 1, 512) && !w(&mut d, 0, 100) && !w(&mut d, 4 << 20, 512));
        assert!(!w(&mut d, u64::MAX - 511, 512));
    }

    #[test]
    fn a_store_of_something_else_is_refused() {
        let store = LentStore::new(MemoryStore::new(config().store_bytes()));
        let mut hw = Hardware::new();
        Disk::new(config(), &store, &mut hw).unwrap();
        let other = DiskConfig { serial: 9, ..config() };
        assert!(Disk::new(other, &store, &mut hw).unwrap_err().contains("another device"));
        assert!(Disk::new(config(), &store, &mut hw).is_ok());
        let large = DiskConfig { bytes: 1 << 50, ..config() };
        assert!(Disk::new(large, NoStore, &mut hw).unwrap_err().contains("whole sectors"));
    }
}
