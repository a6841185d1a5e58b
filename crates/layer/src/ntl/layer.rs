//! The layer [`Ntl`]: its state, and its block interface.

use super::buffer::UpdateBuffer;
use super::config::{LogKind, NtlConfig};
use super::log::Log;
use super::mapping::{Mapping, MappingSetup, Mappings};
use super::page_bitmap::PageBitmap;
use super::rounds::Rounds;
use super::space::NtlMemory;
use super::stats::NtlStats;
use crate::Token;
use crate::planted::NtlBug;
use frit_core::planted::is;
use frit_core::{
    BlockLayer, Error, Hints, Info, Params, Progress, Result, SECTOR_BYTES, Sector, Sink, Source, StackView,
    Target,
};
use frit_media::{Pcm, Store};

/// An SSD of byte-addressable memory with address mapping. `T` is the token of the sinks that the
/// layer works with; `P` is the store.
#[derive(Debug)]
pub struct Ntl<T, P: Store> {
    pub(super) config: NtlConfig,
    pub(super) space: NtlMemory<T, P>,
    pub(super) mapping: Mappings,
    /// Pages whose home location was written. The next write there is an update.
    pub(super) used: PageBitmap,
    /// Pages that hold data. All others read as zeros.
    pub(super) live: PageBitmap,
    /// Pages whose newest version, or whose note of a discard, lies in the log.
    pub(super) logged: PageBitmap,
    /// Two-bit update counters of pages in the current window, see [`super::write`]. Empty without
    /// a remap table.
    pub(super) warm: [PageBitmap; 2],
    /// `true` if updates by this request go to the full log.
    pub(super) logs: bool,
    /// Number of updates until the counters are reset.
    pub(super) warm_left: u32,
    pub(super) log: Option<Log>,
    pub(super) buffer: UpdateBuffer<T>,
    /// Completion after which the free slots of the log may be written.
    pub(super) reuse_barrier: T,
    pub(super) rounds: Rounds,
    pub(super) stats: NtlStats,
    /// The chip after that of the last first write.
    pub(super) turn: u32,
    pub(super) costs: Vec<u64>,
    /// Number of pages that a merge writes to each chip.
    pub(super) pages_by_chip: Vec<u32>,
    /// `true` if the header states that the layer is in use.
    pub(super) noted: bool,
    /// Reason for which writes are refused.
    pub(super) refusal: Option<String>,
    /// Description of the records that are damaged in both copies. A page without a record may be
    /// one of theirs.
    pub(super) missing: Option<String>,
    /// Buffers: a page that is assembled, and a page that is copied. Empty if the store holds no
    /// bytes.
    pub(super) page: Vec<u8>,
    pub(super) copy: Vec<u8>,
}

impl<T: Token, P: Store> Ntl<T, P> {
    /// Creates the layer over new memory.
    ///
    /// # Errors
    /// Returns an error that names a parameter that is invalid with this memory, and its valid
    /// values.
    pub fn new(config: NtlConfig, pcm: Pcm<P>) -> Result<Ntl<T, P>> {
        config.validate()?;
        let space = NtlMemory::new(&config, pcm)?;
        let layout = &space.layout;
        let setup =
            MappingSetup { chips: layout.chips, chip_pages: layout.homes, block_pages: config.block_pages };
        let pages = layout.home_places();
        let log = (config.log_kind() != LogKind::None).then(|| Log::new(&config, layout));
        let warm = if config.log_kind() == LogKind::Remap { pages } else { 0 };
        let held = if P::HOLDS { layout.page_bytes as usize } else { 0 };
        let buffered = if config.buffers() { layout.chips } else { 0 };
        Ok(Ntl {
            mapping: Mappings::new(config.mapping_kind()?, &setup),
            used: PageBitmap::new(pages),
            live: PageBitmap::new(pages),
            logged: PageBitmap::new(if log.is_some() { pages } else { 0 }),
            warm: [PageBitmap::new(warm), PageBitmap::new(warm)],
            logs: true,
            warm_left: 0,
            log,
            buffer: UpdateBuffer::new(buffered, layout.page_bytes, P::HOLDS),
            reuse_barrier: T::default(),
            rounds: Rounds::new(layout.chips),
            stats: NtlStats::default(),
            turn: 0,
            costs: Vec::new(),
            pages_by_chip: vec![0; layout.chips as usize],
            noted: false,
            refusal: None,
            missing: None,
            page: vec![0; held],
            copy: vec![0; held],
            config,
            space,
        })
    }

    /// Returns the current configuration.
    #[must_use]
    pub fn config(&self) -> &NtlConfig {
        &self.config
    }

    /// Returns the number of pages of the volume.
    pub(super) fn pages(&self) -> u32 {
        self.space.layout.home_places()
    }

    pub(super) fn page_bytes(&self) -> u32 {
        self.space.layout.page_bytes
    }

    /// Returns the capacity in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let all = u64::from(self.pages()) * u64::from(self.page_bytes());
        if self.config.capacity == 0 { all } else { self.config.capacity.min(all) }
    }

    pub(super) fn check_range(&self, at: Sector, bytes: u64) -> Result<u64> {
        let first = at.0.saturating_mul(SECTOR_BYTES);
        if first.checked_add(bytes).is_some_and(|end| end <= self.bytes()) {
            return Ok(first);
        }
        Err(Error::OutOfRange {
            at: at.0,
            sectors: bytes.div_ceil(SECTOR_BYTES),
            capacity: self.bytes() / SECTOR_BYTES,
        })
    }

    pub(super) fn writable(&self) -> Result<()> {
        match &self.refusal {
            Some(why) => Err(Error::ReadOnly { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Returns `true` if the newest version of a page lies in the log.
    #[inline]
    pub(super) fn is_logged(&self, lpn: u32) -> bool {
        self.log.is_some() && self.logged.has(lpn)
    }

    /// Refuses writes after an unexpected error, because tables and memory may disagree. Reads go
    /// on.
    #[cold]
    pub(super) fn poisoned(&mut self, e: Error) -> Error {
        let expected = matches!(
            e,
            Error::NoSpace { .. } | Error::ReadOnly { .. } | Error::OutOfRange { .. } | Error::Corrupt { .. }
        );
        if !expected && !is(NtlBug::NotPoisoned) && self.refusal.is_none() {
            self.refusal = Some(format!("an earlier write failed: {e}"));
        }
        e
    }

    /// Returns the DRAM of the layer, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        let bits = [&self.used, &self.live, &self.logged, &self.warm[0], &self.warm[1]];
        bits.iter().map(|b| b.bytes()).sum::<u64>()
            + self.mapping.table_bytes()
            + self.log.as_ref().map_or(0, Log::bytes)
            + self.buffer.dram_bytes()
    }
}

/// A part of one page that a request covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PageSpan {
    pub(super) lpn: u32,
    /// Offset in bytes from the start of the page.
    pub(super) first: u32,
    pub(super) len: u32,
    /// Offset in bytes from the start of the request.
    pub(super) from: u32,
}

/// Splits `len` bytes from byte `at` at the boundaries of pages of `1 << shift` bytes.
#[inline]
pub(super) fn spans(at: u64, len: u64, shift: u32) -> impl Iterator<Item = PageSpan> {
    let mut from = 0;
    std::iter::from_fn(move || {
        if from >= len {
            return None;
        }
        let pos = at + from;
        let first = pos & ((1 << shift) - 1);
        let n = ((1 << shift) - first).min(len - from);
        let span =
            PageSpan { lpn: (pos >> shift) as u32, first: first as u32, len: n as u32, from: from as u32 };
        from += n;
        Some(span)
    })
}

impl<S: Sink, P: Store> BlockLayer<S> for Ntl<S::Tok, P> {
    fn info(&self) -> Info {
        Info {
            name: "ntl",
            sectors: self.bytes() / SECTOR_BYTES,
            page_bytes: self.page_bytes(),
            dram_bytes: self.dram_bytes(),
            durable_map_bytes: self.space.layout.meta_bytes(),
        }
    }

    fn expect(&self, next: &[(Sector, u32)]) {
        let page = u64::from(self.page_bytes());
        for (at, _) in next {
            let lpn = (at.0.saturating_mul(SECTOR_BYTES) / page).min(u64::from(self.pages()) - 1) as u32;
            if let Some(place) = self.mapping.home(lpn) {
                self.space.prefetch(place);
            }
        }
    }

    fn read(&mut self, sink: &mut S, at: Sector, into: Target<'_>, _: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(into.len()))?;
        self.read_range(sink, at, into)
    }

    fn write(&mut self, sink: &mut S, at: Sector, data: Source<'_>, _: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(data.len()))?;
        self.begin_use(sink).map_err(|e| self.poisoned(e))?;
        self.write_range(sink, at, data).map_err(|e| self.poisoned(e))
    }

    fn flush(&mut self, sink: &mut S) -> Result<()> {
        self.flush_all(sink).map_err(|e| self.poisoned(e))
    }

    fn discard(&mut self, sink: &mut S, at: Sector, sectors: u64) -> Result<()> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let at = self.check_range(at, bytes)?;
        self.begin_use(sink).map_err(|e| self.poisoned(e))?;
        self.discard_range(sink, at, bytes).map_err(|e| self.poisoned(e))
    }

    fn step(&mut self, _: &mut S, _: u32) -> Result<Progress<S::Tok>> {
        Ok(Progress::Idle)
    }

    fn visible(&self, view: &mut StackView) {
        self.show(view);
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_cut_at_pages() {
        let cut: Vec<_> = spans(4096 * 3 + 3584, 6144, 12).map(|s| (s.lpn, s.first, s.len, s.from)).collect();
        assert_eq!(cut, [(3, 3584, 512, 0), (4, 0, 4096, 512), (5, 0, 1536, 4608)]);
        assert_eq!(spans(0, 0, 9).count(), 0);
    }
}
