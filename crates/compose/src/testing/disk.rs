//! A device in memory, whose unflushed writes a power loss drops in part.

use super::LosesPower;
use frit_core::{
    BlockDevice, BlockingMedium, Cause, DurabilityPoint, Error, MediumKind, Op, ReadTarget, Result,
    SECTOR_BYTES, Sector, Sink, StackView, Tok, WriteData, WriteGuarantee,
};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

const SECTOR: usize = SECTOR_BYTES as usize;

/// State of a [`TestDisk`].
pub(crate) struct DiskState {
    /// What a read returns.
    pub(crate) bytes: Vec<u8>,
    durable: Vec<u8>,
    /// Writes since the last flush: sector, and contents.
    unflushed: Vec<(usize, Vec<u8>)>,
    /// Number of writes that succeed before one fails.
    pub(crate) writes_left: Option<u32>,
    /// Flushes fail.
    pub(crate) flushes_fail: bool,
    /// Number of deferred accesses that succeed before one fails.
    pub(crate) deferred_left: Option<u32>,
    /// Reads of the medium need not wait.
    pub(crate) in_memory: bool,
    /// Number of deferred accesses so far.
    pub(crate) deferred: u64,
    /// Number of writes so far.
    pub(crate) writes: u64,
    /// Writes are dropped, and reads return nothing: a medium of a simulation.
    pub(crate) without_bytes: bool,
}

/// A device whose state outlives the layer above it.
#[derive(Clone)]
pub(crate) struct TestDisk(Arc<Mutex<DiskState>>);

impl TestDisk {
    pub(crate) fn new(bytes: usize) -> TestDisk {
        TestDisk(Arc::new(Mutex::new(DiskState {
            // Former contents, which no layer may show.
            bytes: vec![0xa5; bytes],
            durable: vec![0xa5; bytes],
            unflushed: Vec::new(),
            writes_left: None,
            flushes_fail: false,
            deferred_left: None,
            in_memory: false,
            deferred: 0,
            writes: 0,
            without_bytes: false,
        })))
    }

    /// A device of zeros, for layers that show the contents of a new device.
    pub(crate) fn zeroed(bytes: usize) -> TestDisk {
        let disk = TestDisk::new(bytes);
        let mut state = disk.lock();
        state.bytes.fill(0);
        state.durable.fill(0);
        drop(state);
        disk
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap()
    }
}

impl LosesPower for TestDisk {
    fn lose_power(&self, keep: &mut dyn FnMut() -> bool) {
        let mut d = self.lock();
        for (sector, contents) in std::mem::take(&mut d.unflushed) {
            if keep() {
                d.durable[sector * SECTOR..][..SECTOR].copy_from_slice(&contents);
            }
        }
        d.bytes = d.durable.clone();
    }
}

impl fmt::Debug for TestDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestDisk")
    }
}

impl BlockingMedium for TestDisk {
    fn read_now(&self, at: u64, into: &mut [u8]) -> bool {
        let d = self.lock();
        if d.in_memory {
            into.copy_from_slice(&d.bytes[at as usize..at as usize + into.len()]);
        } else {
            // A read that stopped at a page that is not in memory.
            into[..SECTOR].fill(0xdd);
        }
        d.in_memory
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let mut d = self.lock();
        d.count_deferred()?;
        into.copy_from_slice(&d.bytes[at as usize..at as usize + into.len()]);
        Ok(())
    }

    fn write(&self, at: u64, data: &[u8]) -> Result<()> {
        let mut d = self.lock();
        let failed = d.count_deferred();
        // A write that fails may have written a part.
        let n = if failed.is_err() { SECTOR.min(data.len()) } else { data.len() };
        d.put(at, &data[..n])?;
        failed
    }

    fn zero(&self, at: u64, len: u64) -> Result<()> {
        BlockingMedium::write(self, at, &vec![0; len as usize])
    }

    fn sync(&self) -> Result<()> {
        BlockDevice::flush(&mut self.clone(), &mut Sink::untimed(), Cause::Host, Tok::DONE).map(drop)
    }
}

impl DiskState {
    fn count_deferred(&mut self) -> Result<()> {
        self.deferred += 1;
        match &mut self.deferred_left {
            Some(0) => {
                self.deferred_left = None;
                Err(Error::Medium { what: "planned failure of a deferred access".into() })
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn put(&mut self, at: u64, data: &[u8]) -> Result<()> {
        self.writes += 1;
        if let Some(left) = &mut self.writes_left {
            if *left == 0 {
                return Err(Error::Medium { what: "planned failure of a write".into() });
            }
            *left -= 1;
        }
        let at = at as usize;
        self.bytes[at..at + data.len()].copy_from_slice(data);
        for (i, sector) in data.chunks_exact(SECTOR).enumerate() {
            self.unflushed.push((at / SECTOR + i, sector.to_vec()));
        }
        Ok(())
    }
}

impl BlockDevice for TestDisk {
    fn bytes(&self) -> u64 {
        self.lock().bytes.len() as u64
    }

    fn prefetch(&self, _next: &[(Sector, u32)]) {}

    fn read(&mut self, _: &mut Sink, at: u64, mut to: ReadTarget<'_>, _: Cause, after: Tok) -> Result<Tok> {
        let d = self.lock();
        if let Some(to) = to.bytes().filter(|_| !d.without_bytes) {
            let n = to.len();
            to.copy_from_slice(&d.bytes[at as usize..at as usize + n]);
        }
        Ok(after)
    }

    fn write(&mut self, _: &mut Sink, at: u64, data: WriteData<'_>, _: Cause, after: Tok) -> Result<Tok> {
        let mut d = self.lock();
        if d.without_bytes {
            return Ok(after);
        }
        d.put(at, data.bytes().expect("a device with bytes"))?;
        Ok(after)
    }

    fn zero(&mut self, _: &mut Sink, at: u64, len: u64, _: Cause, after: Tok) -> Result<Tok> {
        self.lock().put(at, &vec![0; len as usize])?;
        Ok(after)
    }

    fn flush(&mut self, _: &mut Sink, _: Cause, after: Tok) -> Result<Tok> {
        let mut d = self.lock();
        if d.flushes_fail {
            return Err(Error::Medium { what: "planned failure of a flush".into() });
        }
        d.durable = d.bytes.clone();
        d.unflushed.clear();
        Ok(after)
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        WriteGuarantee {
            durable_at: DurabilityPoint::OnFlush,
            atomic_bytes: SECTOR as u32,
            ..WriteGuarantee::default()
        }
    }

    fn shared(&mut self) -> Option<Arc<dyn BlockingMedium>> {
        Some(Arc::new(self.clone()))
    }

    fn emit_deferred(&mut self, _: &mut Sink, _: Op, at: u64, len: u64, _: Cause, after: Tok) -> Result<Tok> {
        assert!(at + len <= self.lock().bytes.len() as u64);
        Ok(after)
    }

    fn visible(&self, _: &mut StackView) {}

    fn place(&self, _: u64) -> (u64, Option<MediumKind>) {
        (self.lock().bytes.len() as u64, Some(MediumKind::Disk))
    }
}
