//! Wear of PCM: the lines of redo records, and slots that are updated in place.

use super::*;
use crate::hfsl::redo::RedoArea;

fn wear_of(layer: &Layer, at: u64, bytes: u64) -> Vec<u32> {
    let medium = &layer.map.pcm.as_ref().unwrap().medium;
    (at..at + bytes).step_by(512).map(|at| medium.wear_of(at)).collect()
}

#[test]
fn redo_records_wear_the_lines_of_their_ring_alike() {
    for lines in [1, 2, 16] {
        let config = HfslConfig { map_persist: MapPersist::Each, redo_lines: lines, ..HfslConfig::default() };
        let mut m = Model::new(layer(config, true, NandFaults::default()));
        for i in 0..800 {
            m.act(&Action::Write { at: i * 8 % 320, sectors: 8, metadata: false }).unwrap();
        }
        let RedoArea::Ring(ring) = m.layer.map.pcm.as_ref().unwrap().layout.redo else { panic!("a ring") };
        let wear = wear_of(&m.layer, ring.at, ring.bytes());
        // One write for each commit, and one more where garbage collection moved a page of the last.
        let (min, max) = (*wear.iter().min().unwrap(), *wear.iter().max().unwrap());
        assert_eq!(wear.len() as u32, lines);
        assert!(max <= min + 1 && min >= 800 / lines && max < 900 / lines, "{lines} lines: {min} to {max}");
        assert!(wear_of(&m.layer, 0, 512)[0] < 10, "the header");
    }
}

#[test]
fn a_sector_that_is_written_again_and_again_leaves_worn_slots() {
    for (spread, most) in [(0, 5_000), (50, 110), (1000, 1000)] {
        let config = HfslConfig { pcm_slot_spread: spread, ..HfslConfig::default() };
        let mut m = Model::new(layer(config, true, NandFaults::default()));
        // The quota is half full of other pages.
        for at in (8..72).step_by(4) {
            m.act(&Action::Write { at, sectors: 1, metadata: false }).unwrap();
        }
        for i in 0..5_000 {
            if i % 3 == 0 {
                m.act(&Action::WriteBytes { at: 100, len: 20 }).unwrap();
            } else {
                m.act(&Action::Write { at: 0, sectors: 1, metadata: false }).unwrap();
            }
            if i % 100 == 0 {
                m.layer.audit();
            }
        }
        let pcm = m.layer.map.pcm.as_ref().unwrap();
        let data = u64::from(pcm.layout.slots) * 512;
        let worn = wear_of(&m.layer, pcm.layout.data_at, data).into_iter().max().unwrap();
        assert!(worn <= most && (spread > 0 || worn == most), "{spread}: {worn}");
        assert_eq!(m.layer.stats.slots_moved > 0, spread > 0);
        m.act(&Action::Reboot).unwrap();
        m.layer.audit();
        m.check_all();
    }
}
