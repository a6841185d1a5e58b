//! Clean writes and refreshes under levelers, compared with a simple model of bytes and clean
//! cells.

use super::content::all;
use super::*;
use frit_core::{Cause, CrashKind, Op, Sink, Tok, WriteData};
use proptest::prelude::*;

const STRIPE: usize = 256;
const REFRESH: usize = 128;
/// Write unit of the device, in bytes.
const UNIT: usize = 8;

fn refreshing(size: u64, refresh_bytes: u32) -> PcmConfig {
    PcmConfig { refresh_bytes: Some(refresh_bytes), ..pcm_config(size, 64) }
}

fn on(config: PcmConfig, store: impl Into<AnyStore>) -> Pcm {
    Pcm::new(config, store, &mut Hardware::new()).unwrap()
}

/// Device and its expected state.
struct ModelPair {
    d: Leveled,
    config: WearConfig,
    size: u64,
    bytes: Vec<u8>,
    /// For each write unit: `true` if it accepts a clean write.
    clean: Vec<bool>,
}

impl ModelPair {
    fn new(config: WearConfig, size: u64) -> ModelPair {
        let pcm = refreshing(size, REFRESH as u32);
        let store = MemoryStore::new(pcm.geometry.store_bytes());
        let mut d = Leveled::new(on(pcm, store), config.clone()).unwrap();
        d.format(&mut Sink::untimed()).unwrap();
        let bytes = d.bytes() as usize;
        ModelPair { d, config, size, bytes: vec![0; bytes], clean: vec![true; bytes / UNIT] }
    }

    fn units(at: usize, len: usize) -> std::ops::Range<usize> {
        at / UNIT..if len == 0 { at / UNIT } else { (at + len).div_ceil(UNIT) }
    }

    fn is_clean(&self, at: usize, len: usize) -> bool {
        self.clean[ModelPair::units(at, len)].iter().all(|&c| c)
    }

    /// Bytes of clean writes that `write_fresh` makes: for each stripe all of the bytes or none.
    fn clean_bytes(&self, at: usize, len: usize) -> u64 {
        let (mut bytes, mut from) = (0, at);
        while from < at + len {
            let stripe = if self.d.passthrough { usize::MAX } else { STRIPE - from % STRIPE };
            let part = (at + len - from).min(stripe);
            if self.is_clean(from, part) {
                bytes += (ModelPair::units(from, part).len() * UNIT) as u64;
            }
            from += part;
        }
        bytes
    }

    fn write(&mut self, at: usize, data: &[u8], fresh: bool) {
        let count = |d: &Leveled| d.counts().of(Op::PcmWriteClean).bytes;
        let (before, expected) = (count(&self.d), if fresh { self.clean_bytes(at, data.len()) } else { 0 });
        let source = WriteData::Bytes(data);
        if fresh {
            self.d.write_fresh(&mut Sink::untimed(), at as u64, source, Cause::Host, Tok::DONE).unwrap();
        } else {
            self.d.write(&mut Sink::untimed(), at as u64, source, Cause::Host, Tok::DONE).unwrap();
        }
        assert_eq!(count(&self.d) - before, expected, "{:?}", self.config.leveler);
        self.bytes[at..at + data.len()].copy_from_slice(data);
        if !data.is_empty() {
            self.clean[ModelPair::units(at, data.len())].fill(false);
        }
    }

    fn refresh(&mut self, at: usize) {
        let at = at / REFRESH * REFRESH;
        self.d.refresh(&mut Sink::untimed(), at as u64, Cause::Gc, Tok::DONE).unwrap();
        self.bytes[at..at + REFRESH].fill(0);
        self.clean[ModelPair::units(at, REFRESH)].fill(true);
    }

    /// Restarts the device. Zeros then count as refreshed.
    fn restart(mut self) -> ModelPair {
        let pcm = on(refreshing(self.size, REFRESH as u32), self.d.into_store());
        self.d = Leveled::new(pcm, self.config.clone()).unwrap();
        self.d.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
        let zeros = |unit: &[u8]| unit.iter().all(|&b| b == 0);
        self.clean = self.bytes.chunks(UNIT).map(zeros).collect();
        self
    }

    fn check(&mut self) {
        assert!(all(&self.d) == self.bytes, "{:?}", self.config.leveler);
        let found: Vec<bool> =
            (0..self.clean.len()).map(|u| self.d.is_clean((u * UNIT) as u64, UNIT as u32)).collect();
        assert_eq!(found, self.clean, "{:?}", self.config.leveler);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn clean_cells_move_with_their_stripes_and_come_back(
        over_files: bool,
        extra in 0u64..3,
        ops in prop::collection::vec((any::<usize>(), 0usize..1500, any::<u8>(), 0u8..12), 1..120),
    ) {
        for kind in kinds() {
            let mut t = ModelPair::new(WearConfig { over_files, ..small(kind) }, (24 << 10) + extra * 1024);
            for &(at, len, byte, what) in &ops {
                let at = at % t.bytes.len();
                let len = len.min(t.bytes.len() - at);
                let data: Vec<u8> = (0..len).map(|i| byte.wrapping_add((i / 50) as u8)).collect();
                match what {
                    0 => t = t.restart(),
                    1 => t.d.flush(&mut Sink::untimed()).unwrap(),
                    2 => t.write(at, &data, false),
                    3 => t.check(),
                    4..=6 => t.refresh(at),
                    7 => prop_assert_eq!(t.d.is_clean(at as u64, len as u32), t.is_clean(at, len)),
                    _ => t.write(at, &data, true),
                }
            }
            t.check();
        }
    }
}

#[test]
fn an_empty_range_is_clean_wherever_it_lies() {
    for kind in kinds() {
        let mut t = ModelPair::new(small(kind), 24 << 10);
        t.write(512, &[7; 64], true);
        assert!(t.d.is_clean(516, 0) && t.d.is_clean(t.d.bytes(), 0), "{kind:?}");
        assert!(!t.d.is_clean(516, 1) && !t.d.is_clean(t.d.bytes() + 1, 0), "{kind:?}");
    }
}

#[test]
fn refreshes_count_towards_moves_and_clean_writes_towards_a_life() {
    for kind in kinds() {
        let mut d: Leveled = Leveled::new(on(refreshing(24 << 10, 128), NoStore), small(kind)).unwrap();
        assert_eq!(d.refresh_bytes(), Some(128));
        // Each refresh counts 128 bytes, so every 32nd makes a move.
        for _ in 0..320 {
            d.refresh(&mut Sink::untimed(), 256, Cause::Gc, Tok::DONE).unwrap();
        }
        assert_eq!(d.moves(), if d.passthrough { 0 } else { 10 }, "{kind:?}");
        assert_eq!(d.life().host_until_worn, Some(0.0), "nothing was written by the host");
        d.write_fresh(&mut Sink::untimed(), 256, WriteData::Len(128), Cause::Host, Tok::DONE).unwrap();
        assert_eq!(d.counts().get(Op::PcmWriteClean, Cause::Host).bytes, 128);
        assert!(d.life().host_until_worn.unwrap() > 0.0, "{kind:?}");
        assert!(!d.is_clean(256, 8) && d.is_clean(384, 8) && !d.is_clean(d.bytes(), 8));
        assert!(d.refresh(&mut Sink::untimed(), 64, Cause::Gc, Tok::DONE).is_err(), "no unit starts there");
        assert!(d.refresh(&mut Sink::untimed(), d.bytes(), Cause::Gc, Tok::DONE).is_err());
    }
}

#[test]
fn stripes_smaller_than_a_refresh_unit_are_not_refreshed() {
    let made = |refresh: Option<u32>, kind| -> Leveled {
        let config = PcmConfig { refresh_bytes: refresh, ..pcm_config(24 << 10, 64) };
        Leveled::new(on(config, NoStore), small(kind)).unwrap()
    };
    let mut d = made(Some(512), LevelerKind::StartGap);
    assert_eq!(d.refresh_bytes(), None);
    let refused = d.refresh(&mut Sink::untimed(), 0, Cause::Gc, Tok::DONE).unwrap_err().to_string();
    assert!(refused.contains("smaller than a refresh unit"), "{refused}");
    assert!(d.is_clean(0, 512), "new cells take clean writes all the same");
    let mut passthrough = made(Some(512), LevelerKind::NoLeveling);
    assert_eq!(passthrough.refresh_bytes(), Some(512));
    passthrough.refresh(&mut Sink::untimed(), 512, Cause::Gc, Tok::DONE).unwrap();
    let mut without = made(None, LevelerKind::StartGap);
    assert!(without.refresh_bytes().is_none() && !without.is_clean(0, 8) && !without.is_clean(0, 0));
    without.write_fresh(&mut Sink::untimed(), 0, WriteData::Len(64), Cause::Host, Tok::DONE).unwrap();
    assert_eq!(without.counts().of(Op::PcmWrite).bytes, 64);
}
