//! Tests of refreshed cells, of clean writes over them, and of their state after a restart.

use super::*;

#[test]
fn clean_writes_need_a_refresh() {
    let mut p = in_memory(config(2, true));
    let clean = |p: &mut Pcm, at, log: &mut Sink| {
        p.write_clean(log, at, WriteData::Bytes(&[5; 32]), Cause::Host, Tok::DONE).is_ok()
    };
    let mut log = recording_sink();
    // New cells are equivalent to refreshed ones; cells that were written are not.
    assert!(clean(&mut p, 512, &mut log) && !clean(&mut p, 512, &mut log) && clean(&mut p, 544, &mut log));
    p.write(&mut log, 600, WriteData::Bytes(&[6; 1]), Cause::Host, Tok::DONE).unwrap();
    assert!(!clean(&mut p, 592, &mut log), "a plain write dirties, too");
    assert!(p.refresh(&mut log, 100, Cause::Gc, Tok::DONE).is_err());
    forget(&mut log);
    p.refresh(&mut log, 512, Cause::Gc, Tok::DONE).unwrap();
    let on: Vec<_> = recorded(&log).iter().map(|(c, _)| (c.op, c.unit.0, c.len)).collect();
    assert_eq!(on, [(Op::PcmRefresh, 0, 256), (Op::PcmRefresh, 1, 256)]);
    let mut out = [1; 32];
    p.read(&mut log, 512, ReadTarget::Bytes(&mut out), Cause::Host, Tok::DONE).unwrap();
    assert_eq!(out, [0; 32], "a refresh empties");
    assert!(p.is_clean(512, 512) && !p.is_clean(0, 8192 + 1));
    assert!(clean(&mut p, 592, &mut log));
    assert_eq!(p.counts().of(Op::PcmWriteClean).commands, 3);
    // Line 576: one clean write at 544 reaches 575, the write at 600, the refresh, the clean write.
    assert_eq!(p.wear_of(576), 3);
}

#[test]
fn a_fresh_write_is_clean_where_all_of_it_can_be() {
    let mut p = in_memory(config(1, true));
    let mut log = recording_sink();
    for (at, op) in [(0, Op::PcmWriteClean), (0, Op::PcmWrite), (24, Op::PcmWrite), (64, Op::PcmWriteClean)] {
        forget(&mut log);
        p.write_fresh(&mut log, at, WriteData::Bytes(&[1; 32]), Cause::Host, Tok::DONE).unwrap();
        assert_eq!(recorded(&log)[0].0.op, op, "at {at}");
    }
    assert!(p.write_fresh(&mut log, 8190, WriteData::Bytes(&[1; 32]), Cause::Host, Tok::DONE).is_err());
    assert!(p.write_fresh(&mut log, 512, WriteData::Len(32), Cause::Host, Tok::DONE).is_err());
    assert!(p.is_clean(512, 32), "a write that was refused dirties nothing");
    let mut without = in_memory(config(1, false));
    without.write_fresh(&mut log, 512, WriteData::Bytes(&[1; 32]), Cause::Host, Tok::DONE).unwrap();
    assert_eq!(without.counts().of(Op::PcmWriteClean).commands, 0, "no clean writes without refresh");
}

#[test]
fn a_torn_write_is_judged_by_what_it_left() {
    let mut p = in_memory(config(1, true));
    p.write(&mut Sink::untimed(), 1024, WriteData::Bytes(&[7; 64]), Cause::Host, Tok::DONE).unwrap();
    let mut store = p.into_store();
    // Of a write of four units at 2048, one word of the third unit was durable when the power was
    // lost.
    store.write(2048 + 40, &[9; 8]).unwrap();
    let mut back = on(config(1, true), store);
    let clean: Vec<bool> = (0..4).map(|unit| back.is_clean(2048 + 16 * unit, 16)).collect();
    assert_eq!(clean, [true, true, false, true]);
    assert!(!back.is_clean(1008, 32) && back.is_clean(0, 1024) && back.is_clean(1088, 960));
    // A unit that was examined is known: writing zeros to it is no refresh.
    back.write(&mut Sink::untimed(), 1024, WriteData::Bytes(&[0; 64]), Cause::Host, Tok::DONE).unwrap();
    assert!(!back.is_clean(1024, 64));
    back.refresh(&mut Sink::untimed(), 2048, Cause::Gc, Tok::DONE).unwrap();
    assert!(back.is_clean(2048, 512));
}

#[test]
fn copies_of_clean_cells_are_clean() {
    let mut p = in_memory(config(2, true));
    p.write(&mut Sink::untimed(), 16, WriteData::Bytes(&[7; 16]), Cause::Host, Tok::DONE).unwrap();
    p.preset(4096, &[5; 64]).unwrap();
    let mut copied = [0; 64];
    p.peek(0, &mut copied).unwrap();
    p.write(&mut Sink::untimed(), 4096, WriteData::Bytes(&copied), Cause::WearLevel, Tok::DONE).unwrap();
    assert!(!p.is_clean(4096, 16));
    p.copy_clean_state(0, 4096, 64).unwrap();
    assert!(p.is_clean(4096, 16) && !p.is_clean(4112, 16) && p.is_clean(4128, 32));
    assert!(p.copy_clean_state(8, 4096, 64).is_err() && p.copy_clean_state(0, 8192 - 32, 64).is_err());
}

proptest! {
    #[test]
    fn clean_cells_are_those_of_a_plain_model(
        ops in prop::collection::vec((0u8..9, 0u64..8192, 0u32..700, 0u8..4), 1..80)
    ) {
        let mut p = in_memory(config(2, true));
        // Bytes, and for each unit of 16 bytes the clean state, which is unknown after a restart.
        let mut bytes = vec![0u8; 8192];
        let mut clean = vec![Some(true); 512];
        for (what, at, len, byte) in ops {
            let len = len.min(8192 - at as u32);
            let range = at as usize..at as usize + len as usize;
            let units = range.start / 16..if len == 0 { range.start / 16 } else { range.end.div_ceil(16) };
            let mut look = |units: std::ops::Range<usize>, bytes: &[u8]| {
                let zeros = |u: usize| bytes[16 * u..16 * u + 16].iter().all(|&b| b == 0);
                let unclean = units.filter(|&u| !*clean[u].get_or_insert_with(|| zeros(u))).count();
                unclean == 0
            };
            match what {
                0..=3 => {
                    let data = vec![byte; len as usize];
                    let before = p.counts().of(Op::PcmWriteClean).commands;
                    let fresh = what > 0 && look(units.clone(), &bytes);
                    if what == 0 {
                        p.write(&mut Sink::untimed(), at, WriteData::Bytes(&data), Cause::Host, Tok::DONE).unwrap();
                    } else {
                        p.write_fresh(&mut Sink::untimed(), at, WriteData::Bytes(&data), Cause::Host, Tok::DONE).unwrap();
                    }
                    let after = p.counts().of(Op::PcmWriteClean).commands;
                    prop_assert_eq!(after > before, fresh && len > 0);
                    bytes[range].copy_from_slice(&data);
                    if len > 0 {
                        clean[units].fill(Some(false));
                    }
                }
                4 => {
                    let unit = at as usize / 512 * 512;
                    p.refresh(&mut Sink::untimed(), unit as u64, Cause::Gc, Tok::DONE).unwrap();
                    bytes[unit..unit + 512].fill(0);
                    clean[unit / 16..unit / 16 + 32].fill(Some(true));
                }
                5 => {
                    let blank = p.store().is_blank();
                    p = on(config(2, true), p.into_store());
                    prop_assert!(!blank);
                    clean.fill(None);
                }
                6 => {
                    // A copy of at most a refresh unit to the other half of the device.
                    let (n, to) = (units.len().min(32), (units.start + 256) % 512);
                    let (n, from) = (n.min(512 - units.start.max(to)), units.start);
                    let copied = bytes[16 * from..16 * (from + n)].to_vec();
                    let dest = 16 * to as u64;
                    p.write(&mut Sink::untimed(), dest, WriteData::Bytes(&copied), Cause::WearLevel, Tok::DONE).unwrap();
                    p.copy_clean_state(16 * from as u64, dest, 16 * n as u32).unwrap();
                    bytes[16 * to..16 * (to + n)].copy_from_slice(&copied);
                    clean.copy_within(from..from + n, to);
                }
                _ => prop_assert_eq!(p.is_clean(at, len), look(units, &bytes)),
            }
        }
        let mut all = vec![1; 8192];
        p.peek(0, &mut all).unwrap();
        prop_assert!(all == bytes);
    }
}
