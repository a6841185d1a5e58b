//! Several versions of a block after a crash: recovery merges them in PCM, also if the disk cannot be
//! written.

use super::*;
use crate::cache::fragments::{digest_of, runs};
use crate::numbers::{CacheSlot, Lbn};
use crate::record::Record;
use frit_core::{Error, Result, Sink, Tok};

/// The block with several versions.
const BLOCK: u64 = 12;

/// A store whose writes can stop: PCM that loses power, or a disk that has worn out.
#[derive(Clone, Debug)]
struct Stopping {
    bytes: Vec<u8>,
    /// Number of writes that are still complete. Of the next one, only `words` words of 8 bytes are
    /// written. All later ones are lost.
    writes: Option<u64>,
    words: usize,
    /// Writes return an error.
    read_only: bool,
    volatile: bool,
}

impl Stopping {
    fn new(len: u64) -> Stopping {
        let bytes = vec![0; len as usize];
        Stopping { bytes, writes: None, words: 0, read_only: false, volatile: false }
    }
}

impl Store for Stopping {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn is_blank(&self) -> bool {
        self.bytes.iter().all(|&b| b == 0)
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        into.copy_from_slice(&self.bytes[at as usize..][..into.len()]);
        Ok(())
    }
    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly { why: "worn out".into() });
        }
        let n = match &mut self.writes {
            None => data.len(),
            Some(0) => data.len().min(8 * std::mem::take(&mut self.words)),
            Some(left) => {
                *left -= 1;
                data.len()
            }
        };
        self.bytes[at as usize..][..n].copy_from_slice(&data[..n]);
        Ok(())
    }
    fn sync(&mut self) -> Result<()> {
        if self.read_only { Err(Error::ReadOnly { why: "worn out".into() }) } else { Ok(()) }
    }
    fn volatile(&self) -> bool {
        self.volatile
    }
}

fn config() -> CacheConfig {
    CacheConfig { record_copies: 2, threshold: 1.0, ..named("halo") }
}

fn recover(layer: &mut Layer) -> Result<frit_core::Recovery> {
    layer.recover(&mut Sink::untimed(), CrashKind::Process)
}

fn free_slot(layer: &Layer) -> CacheSlot {
    CacheSlot::first(layer.space.layout.slots)
        .find(|slot| layer.space.record(*slot).unwrap().is_none())
        .unwrap()
}

/// Writes sectors of [`BLOCK`] as a new version in a slot of its own, as after an eviction of the
/// earlier version whose end is lost in a power loss.
fn write_version(layer: &mut Layer, model: &mut Model, valid: u8) {
    let slot = free_slot(layer);
    model.stamp = model.stamp.wrapping_add(101);
    let mut data = vec![0; 4096];
    for run in runs(valid) {
        data[run.range()].fill(model.stamp | 1);
        let at = (BLOCK * 4096) as usize + run.range().start;
        model.bytes[at..at + run.range().len()].copy_from_slice(&data[run.range()]);
        let at = layer.space.layout.data(slot) + u64::from(run.offset());
        layer.space.pcm.store_mut().write(at, &data[run.range()]).unwrap();
    }
    layer.space.seq += 1;
    let digest = digest_of(&data, valid);
    let record = Record { lbn: BLOCK as u32, valid, seq: layer.space.seq, digest };
    layer.space.put_record(&mut Sink::untimed(), slot, &record, Tok::DONE).unwrap();
}

/// Returns a cache whose disk has outdated versions of all its blocks, with `blocks` cached blocks,
/// and three versions of [`BLOCK`] in PCM.
fn crashed(blocks: u64) -> (LentStore<Stopping>, LentStore<Stopping>, Model) {
    let store = |len| LentStore::new(Stopping::new(len));
    let (pcm, disk) = (store(4 << 20), store(disk_config().store_bytes()));
    let mut model = Model::new();
    let mut layer = open(&config(), &pcm, &disk);
    layer.format(&mut Sink::untimed()).unwrap();
    model.write(&mut layer, BLOCK * 8, 8);
    layer.set("drain", "true").unwrap();
    while layer.step(&mut Sink::untimed(), 8).unwrap() != frit_core::Progress::Idle {}
    for lbn in BLOCK..BLOCK + blocks {
        model.write(&mut layer, lbn * 8, 8);
    }
    layer.flush(&mut Sink::untimed()).unwrap();
    write_version(&mut layer, &mut model, 0b0001_1100);
    write_version(&mut layer, &mut model, 0b0100_0101);
    drop(layer);
    (pcm, disk, model)
}

/// Regression test. A start used to write the rest of the earlier version to the disk, and was refused
/// if the disk could not be written.
#[test]
fn several_versions_are_merged_before_a_disk_that_cannot_be_written() {
    for volatile in [false, true] {
        let (pcm, disk, model) = crashed(20);
        pcm.get().volatile = volatile;
        disk.get().read_only = true;
        for _ in 0..2 {
            let mut layer = open(&config(), &pcm, &disk);
            let found = recover(&mut layer).unwrap();
            assert!(!found.clean && found.pages == 20, "{found:?}");
            layer.audit();
            model.all(&mut layer);
        }
        let mut layer = open(&config(), &pcm, &disk);
        recover(&mut layer).unwrap();
        layer.halt(&mut Sink::untimed()).unwrap();
        let found = recover(&mut layer).unwrap();
        assert!(found.clean && !found.lost_any(), "{found:?}");
        model.all(&mut layer);
        drop(layer);
        disk.get().read_only = false;
        let mut layer = open(&config(), &pcm, &disk);
        recover(&mut layer).unwrap();
        layer.set("drain", "true").unwrap();
        while layer.step(&mut Sink::untimed(), 8).unwrap() != frit_core::Progress::Idle {}
        assert_eq!(metric(&layer, "dirty_blocks"), 0.0);
        model.all(&mut layer);
        drop(layer);
        assert_eq!(
            disk.get().bytes[..model.bytes.len()],
            model.bytes[..],
            "the disk has the newest versions"
        );
    }
}

/// All slots hold blocks that are not on the disk, so there is no slot for another version.
#[test]
fn a_merge_needs_no_free_slot() {
    let (pcm, disk, model) = crashed(94);
    disk.get().read_only = true;
    let mut layer = open(&config(), &pcm, &disk);
    assert_eq!(layer.space.layout.slots, 96);
    assert!(CacheSlot::first(96).all(|slot| layer.space.record(slot).unwrap().is_some()));
    let found = recover(&mut layer).unwrap();
    assert_eq!((found.pages, found.padded), (94, 2));
    layer.audit();
    model.all(&mut layer);
}

/// A power loss during the merge, in each write of it, leaves either the versions or their merge.
#[test]
fn a_merge_can_be_interrupted_everywhere() {
    let (pcm, disk, model) = crashed(3);
    disk.get().read_only = true;
    let mut cuts = 0;
    for writes in 0.. {
        let mut complete = false;
        for words in 0..4 {
            let cut = LentStore::new(Stopping { writes: Some(writes), words, ..pcm.get().clone() });
            recover(&mut open(&config(), &cut, &disk)).unwrap();
            complete = cut.get().writes != Some(0);
            cut.get().writes = None;
            for _ in 0..2 {
                let mut layer = open(&config(), &cut, &disk);
                let found = recover(&mut layer).unwrap();
                assert!(!found.lost_any(), "{writes} {words}: {found:?}");
                model.all(&mut layer);
                layer.audit();
            }
            cuts += 1;
        }
        if complete {
            break;
        }
    }
    assert!(cuts > 40, "{cuts}");
}

/// A damaged last version is never completed to a valid block, and the earlier ones do not replace
/// it.
#[test]
fn a_merge_keeps_damage_known() {
    let (pcm, disk, model) = crashed(20);
    disk.get().read_only = true;
    let mut layer = open(&config(), &pcm, &disk);
    let record = |slot| layer.space.record(slot).unwrap().filter(|r| r.lbn() == Lbn(BLOCK as u32));
    let (highest, last) = CacheSlot::first(96).filter_map(|s| Some((record(s)?.seq, s))).max().unwrap();
    // Below the mark, data that does not match its record is damaged, and not torn.
    layer.space.load_marks(highest).unwrap();
    layer.space.set_mark(&mut Sink::untimed()).unwrap();
    let at = layer.space.layout.data(last) as usize;
    drop(layer);
    pcm.get().bytes[at] ^= 4;
    for halted in [false, true, false] {
        let mut layer = open(&config(), &pcm, &disk);
        recover(&mut layer).unwrap();
        layer.audit();
        for sector in 0..8 {
            let mut back = vec![0; 512];
            let at = Sector(BLOCK * 8 + sector);
            let read = layer.read(&mut Sink::untimed(), at, ReadTarget::Bytes(&mut back), Hints::NONE);
            assert!(matches!(read, Err(Error::Corrupt { .. })), "{sector}: {read:?}");
        }
        model.read(&mut layer, (BLOCK + 1) * 8, 8);
        if halted {
            layer.halt(&mut Sink::untimed()).unwrap();
        }
    }
}
