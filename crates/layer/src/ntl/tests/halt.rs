//! Guarantees of a clean shutdown: afterwards all data is durable, and damage is reported as an
//! error.

use super::*;
use frit_core::Error;
use frit_core::Lpn;

/// Pages 3 to 12 with data, 5 discarded, some of them in the log, after a clean shutdown.
fn halted(config: &NtlConfig) -> (Held, Vec<u8>) {
    let mut ntl = held(config);
    ntl.format(&mut Sink::untimed()).unwrap();
    let mut all = vec![0; 16 * 4096];
    for round in 1..4_u8 {
        for lpn in 3..13_u64 {
            let data = content(lpn * 8, 8, round);
            all[lpn as usize * 4096..][..4096].copy_from_slice(&data);
            ntl.write(&mut Sink::untimed(), Sector(lpn * 8), WriteData::Bytes(&data), Hints::NONE).unwrap();
        }
    }
    ntl.discard(&mut Sink::untimed(), Sector(40), 8).unwrap();
    all[5 * 4096..6 * 4096].fill(0);
    ntl.halt(&mut Sink::untimed()).unwrap();
    (ntl, all)
}

fn protected() -> Vec<NtlConfig> {
    variants().into_iter().filter(|c| c.page_bytes == 4096 && c.protect == Protect::Redo).collect()
}

/// Damages both copies of a page's record at home.
fn lose_record(ntl: &mut Held, lpn: Lpn) {
    let place = ntl.mapping.home(lpn).unwrap();
    for copy in ntl.space.layout.places(place) {
        let at = ntl.space.layout.record(copy) + 8 + u64::from(lpn);
        let mut byte = [0];
        ntl.space.pcm.peek(at, &mut byte).unwrap();
        ntl.space.pcm.store_mut().write(at, &[byte[0] ^ 1]).unwrap();
    }
}

fn read_page(ntl: &mut Held, lpn: u64) -> frit_core::Result<Vec<u8>> {
    let mut out = vec![0xEE; 4096];
    ntl.read(&mut Sink::untimed(), Sector(lpn * 8), ReadTarget::Bytes(&mut out), Hints::NONE).map(|()| out)
}

/// Regression test: a page without a record used to read as zeros.
#[test]
fn a_record_that_is_lost_in_both_copies_is_restored_from_the_others() {
    assert!(!protected().is_empty());
    for config in protected() {
        for lpn in 3..13 {
            let (mut ntl, all) = halted(&config);
            lose_record(&mut ntl, Lpn(lpn));
            let found = ntl.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
            assert!(found.clean && !found.lost_any() && found.pages == 9, "{config:?}: {found:?}");
            for (lpn, want) in all.chunks(4096).enumerate() {
                assert!(read_page(&mut ntl, lpn as u64).unwrap() == want, "{config:?}: page {lpn}");
            }
        }
    }
}

#[test]
fn several_lost_records_make_every_page_without_one_an_error() {
    for config in protected() {
        let (mut ntl, all) = halted(&config);
        lose_record(&mut ntl, Lpn(4));
        lose_record(&mut ntl, Lpn(9));
        for _ in 0..2 {
            let found = ntl.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
            assert!(found.clean && found.lost_any(), "{config:?}: {found:?}");
            assert!(found.unnamed[0].contains("the records of 2 or more pages"), "{:?}", found.unnamed);
            for (lpn, want) in all.chunks(4096).enumerate() {
                match read_page(&mut ntl, lpn as u64) {
                    Ok(got) => assert!(got == want, "{config:?}: page {lpn}"),
                    Err(Error::Corrupt { .. }) => {
                        assert!([0, 1, 2, 4, 9, 13, 14, 15].contains(&lpn), "{lpn}");
                    }
                    Err(e) => panic!("{e}"),
                }
            }
            assert!(read_page(&mut ntl, 4).is_err() && read_page(&mut ntl, 9).is_err());
            let mut hole = false;
            Durable::extents(&ntl, Sector(0), 128, &mut |e| hole |= e.place.is_none()).unwrap();
            assert!(!hole, "a copy by extents has to get the error");
            assert!(
                ntl.write(&mut Sink::untimed(), Sector(0), WriteData::Bytes(&[1; 4096]), Hints::NONE)
                    .is_err()
            );
        }
        let mut told = Vec::new();
        for older in [false, true] {
            let scope = CheckScope { repair: true, older, ..CheckScope::default() };
            ntl.check(&mut Sink::untimed(), scope, &mut |f| told.push((f.kind, f.repaired))).unwrap();
        }
        assert_eq!(told, [("missing-records", false), ("missing-records", true)]);
        assert_eq!(read_page(&mut ntl, 4).unwrap(), [0; 4096]);
        ntl.halt(&mut Sink::untimed()).unwrap();
        assert!(!ntl.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap().lost_any());
    }
}
