//! Recovery with a ring of redo records: which record it applies, and damage of records.

use super::*;
use crate::header::LayerHeader;
use crate::hfsl::redo::{RedoArea, RedoRing};

const LINES: u32 = 4;

/// Creates a volume whose last commits are known: blocks of 4 KiB are written in turn.
fn volume(redo_lines: u32) -> Model {
    let config = HfslConfig {
        map_persist: MapPersist::Each,
        redo_lines,
        over_provisioning: 0.1,
        ..HfslConfig::default()
    };
    let mut m = Model::new(layer(config, true, NandFaults::default()));
    m.layer.format(&mut Sink::untimed()).unwrap();
    for i in 0..10 {
        write(&mut m, i % 3);
    }
    m
}

/// Writes a block of 4 KiB.
fn write(m: &mut Model, block: u64) {
    m.act(&Action::Write { at: block * 8, sectors: 8, metadata: false }).unwrap();
}

fn ring(m: &Model) -> RedoRing {
    match m.layer.map.pcm.as_ref().unwrap().layout.redo {
        RedoArea::Ring(ring) => ring,
        RedoArea::Fixed => panic!("the volume has no ring"),
    }
}

fn bytes(m: &mut Model, at: u64, len: usize) -> Vec<u8> {
    let mut b = vec![0; len];
    m.layer.map.pcm.as_mut().unwrap().medium.store_mut().read(at, &mut b).unwrap();
    b
}

fn poke(m: &mut Model, at: u64, bytes: &[u8]) {
    m.layer.map.pcm.as_mut().unwrap().medium.store_mut().write(at, bytes).unwrap();
}

fn line_at(m: &Model, line: u32) -> u64 {
    let ring = ring(m);
    ring.at + u64::from(line % ring.lines) * u64::from(ring.line_bytes)
}

/// Line of the last record: each commit wrote one record.
fn last_line(commits: u32) -> u32 {
    commits - 1
}

fn entries_at(m: &Model, block: u64) -> u64 {
    m.layer.map.pcm.as_ref().unwrap().layout.map_at + block * 16
}

fn recover(m: &mut Model) -> u32 {
    let found = m.layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    assert_eq!(found.lost, []);
    m.layer.audit();
    found.redone
}

/// A power loss between the first entry and the last.
#[test]
fn a_commit_is_completed_wherever_its_record_lies() {
    for commits in 0..2 * LINES {
        let mut m = volume(LINES);
        for i in 0..commits {
            write(&mut m, u64::from(i) % 3);
        }
        let at = entries_at(&m, 1);
        let before = bytes(&mut m, at, 16);
        write(&mut m, 1);
        poke(&mut m, at + 8, &before[8..]);
        assert_eq!(recover(&mut m), 1);
        assert_eq!(recover(&mut m), 0, "a second recovery has nothing to do");
        m.check_all();
    }
}

#[test]
fn a_change_of_one_entry_retires_the_record() {
    let mut m = volume(LINES);
    write(&mut m, 1);
    // A page of the block alone, then the other block: neither is reverted.
    m.act(&Action::Write { at: 8, sectors: 4, metadata: false }).unwrap();
    assert_eq!(recover(&mut m), 0);
    m.check_all();
    // A discard leaves no version of the page that recovery could compare.
    for boot in [false, true] {
        write(&mut m, 1);
        if boot {
            m.act(&Action::Reboot).unwrap();
        }
        m.act(&Action::Discard { at: 12, sectors: 4 }).unwrap();
        assert_eq!(recover(&mut m), 0);
        m.check_all();
    }
    // After a clean shutdown the last record is known too.
    write(&mut m, 1);
    m.act(&Action::Reboot).unwrap();
    m.act(&Action::Write { at: 8, sectors: 4, metadata: false }).unwrap();
    assert_eq!(recover(&mut m), 0);
    m.check_all();
}

/// The record before a damaged one is older than the map.
#[test]
fn damage_of_the_latest_record_reverts_nothing() {
    for bit in (0..40 * 8).step_by(7) {
        let mut m = volume(LINES);
        write(&mut m, 2);
        write(&mut m, 2);
        let at = line_at(&m, last_line(12));
        let mut line = bytes(&mut m, at, 40);
        assert_ne!(line, [0; 40]);
        line[bit / 8] ^= 1 << (bit % 8);
        poke(&mut m, at, &line);
        assert_eq!(recover(&mut m), 0);
        let number = u64::from_le_bytes(bytes(&mut m, at, 8).try_into().unwrap());
        assert!(number & 1 == 1, "the line is free, or has a retirement");
        m.check_all();
        write(&mut m, 2);
        assert_eq!(recover(&mut m), 0);
        m.check_all();
    }
}

#[test]
fn a_check_finds_and_repairs_damaged_records() {
    let scope = |repair| CheckScope { data: true, repair, older: false };
    for line in 0..LINES {
        let mut m = volume(LINES);
        write(&mut m, 1);
        let at = line_at(&m, line);
        let mut record = bytes(&mut m, at, 40);
        record[20] ^= 4;
        poke(&mut m, at, &record);
        for (repair, count) in [(false, 1), (true, 1), (false, 0)] {
            let mut found = Vec::new();
            m.layer.check(&mut Sink::untimed(), scope(repair), &mut |f| found.push(f)).unwrap();
            assert_eq!(found.len(), count, "line {line}: {found:?}");
            assert!(found.iter().all(|f| (f.kind, f.at, f.repaired) == ("bad-redo-record", at, repair)));
        }
        m.act(&Action::Discard { at: 12, sectors: 4 }).unwrap();
        assert_eq!(recover(&mut m), 0);
        m.check_all();
    }
}

/// A discard leaves no version that recovery could compare, so the damaged retirement itself
/// counts.
#[test]
fn damage_of_a_retirement_reverts_nothing() {
    for bit in (0..40 * 8).step_by(5) {
        let mut m = volume(LINES);
        write(&mut m, 1);
        m.act(&Action::Discard { at: 12, sectors: 4 }).unwrap();
        let at = line_at(&m, last_line(12));
        let mut line = bytes(&mut m, at, 40);
        assert_eq!(line[0] & 1, 1, "a retirement");
        line[bit / 8] ^= 1 << (bit % 8);
        // The first damage is a sector of zeros.
        poke(&mut m, at, if bit == 0 { &[0; 512] } else { &line });
        assert_eq!(recover(&mut m), 0);
        m.check_all();
    }
}

/// After a clean shutdown, the ring has its contents of an earlier time.
#[test]
fn an_older_ring_reverts_nothing_after_a_clean_shutdown() {
    let mut m = volume(LINES);
    let (at, len) = (ring(&m).at, ring(&m).bytes() as usize);
    let before = bytes(&mut m, at, len);
    m.act(&Action::Discard { at: 0, sectors: 24 }).unwrap();
    m.layer.halt(&mut Sink::untimed()).unwrap();
    poke(&mut m, at, &before);
    assert_eq!(recover(&mut m), 0);
    m.check_all();
    assert_eq!(recover(&mut m), 0, "nor after a crash in the next session");
    m.check_all();
}

/// The write of a record was lost, so that an older record lies in its line.
#[test]
fn a_lost_record_reverts_nothing() {
    for lines in [1, 2, LINES] {
        let mut m = volume(lines);
        write(&mut m, 2);
        let at = line_at(&m, last_line(12));
        let before = bytes(&mut m, at, 40);
        write(&mut m, 2);
        poke(&mut m, at, &before);
        assert_eq!(recover(&mut m), 0, "{lines}");
        m.check_all();
    }
}

/// A torn record, then a torn record of the same pages that has the words which the first one
/// lacks.
#[test]
fn words_of_two_torn_records_do_not_form_one() {
    let mut m = volume(1);
    let at = line_at(&m, 0);
    let before = bytes(&mut m, at, 40);
    let place = entries_at(&m, 1);
    let map = bytes(&mut m, place, 16);
    write(&mut m, 1);
    let whole = bytes(&mut m, at, 40);
    assert_ne!(before[8..16], whole[8..16], "another block");
    // The first record lacks its word of pages, and no entry was written.
    let mut torn = whole.clone();
    torn[8..16].fill(0);
    poke(&mut m, at, &torn);
    poke(&mut m, place, &map);
    m.shadow[4096..8192].copy_from_slice(&{
        let mut old = vec![0; 4096];
        m.layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
        m.layer.read(&mut Sink::untimed(), Sector(8), ReadTarget::Bytes(&mut old), Hints::NONE).unwrap();
        old
    });
    m.check_all();
    // Of the second record only that word is written.
    poke(&mut m, at + 8, &whole[8..16]);
    assert_eq!(recover(&mut m), 0);
    m.check_all();
}

/// Creates a layer on a PCM that a version without rings formatted.
fn version_1() -> Layer {
    let config =
        HfslConfig { map_persist: MapPersist::Each, over_provisioning: 0.1, ..HfslConfig::default() };
    let pages = layer(config.clone(), true, NandFaults::default()).pages;
    let mut hw = Hardware::new();
    let nand = Nand::new(nand_config(GEOMETRY, NandFaults::default()), MemoryStore::new(64 << 20), &mut hw);
    let mut pcm = Pcm::new(pcm_config(4096), MemoryStore::new(64 << 20), &mut hw).unwrap();
    let header = LayerHeader::new(b"fritHFSL", &[1, 2048, 512, pages, 0, 64, 0, 1]);
    pcm.store_mut().write(0, header.bytes()).unwrap();
    Hfsl::new(config, nand.unwrap(), Some(pcm)).unwrap()
}

proptest! {
    /// Volumes of version 1 have no ring, and keep the record in the header.
    #[test]
    fn a_volume_of_version_1_keeps_its_record_in_the_header(actions in actions()) {
        let mut m = Model::new(version_1());
        m.layer.format(&mut Sink::untimed()).unwrap();
        m.run(&actions);
        assert_eq!(m.layer.map.pcm.as_ref().unwrap().layout.redo, RedoArea::Fixed);
        assert_eq!(bytes(&mut m, 8, 4), [1, 0, 0, 0]);
        let before = bytes(&mut m, 128, 80);
        write(&mut m, 3);
        assert_eq!(bytes(&mut m, 128, 8), [0; 8]);
        assert_ne!(bytes(&mut m, 136, 16), before[8..24]);
        assert_eq!(recover(&mut m), 0);
        m.check_all();
    }
}
