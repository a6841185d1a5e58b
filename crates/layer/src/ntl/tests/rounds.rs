//! Rounds that requests share: shutdowns, and the second parallel write of a full buffer.

use super::*;

/// Requests share a round until a page comes whose chip is in it, and a shutdown ends it.
#[test]
fn a_shutdown_closes_the_open_round_and_counts_go_on() {
    let rounds = |ntl: &Held| {
        let see = layer(ntl);
        (see("parallel_clean_writes"), see("parallel_dirty_writes"))
    };
    for protect in [Protect::None, Protect::Redo] {
        for flag in [RoundFlag::Lookup, RoundFlag::Any, RoundFlag::Most] {
            let config = NtlConfig { protect, round_flag: flag, ..NtlConfig::default() };
            let write = |ntl: &mut Held, lpn: u64, pages: u64| {
                let data = content(lpn * 8, pages * 8, 1);
                ntl.write(&mut Sink::untimed(), Sector(lpn * 8), WriteData::Bytes(&data), Hints::NONE)
            };
            let halted = |halt: bool| {
                let mut ntl = held(&config);
                if protect == Protect::Redo {
                    ntl.format(&mut Sink::untimed()).unwrap();
                }
                write(&mut ntl, 0, 2).unwrap();
                if halt {
                    let before = rounds(&ntl);
                    ntl.halt(&mut Sink::untimed()).unwrap();
                    assert_eq!(rounds(&ntl), before, "the open round was counted before");
                    ntl.boot(&mut Sink::untimed()).unwrap();
                }
                write(&mut ntl, 6, 2).unwrap();
                rounds(&ntl)
            };
            assert_eq!(halted(false), (1, 0), "{flag:?}: pages 0, 1, 6 and 7 share a round");
            assert_eq!(halted(true), (2, 0), "{flag:?}: no round is shared over a shutdown");
        }
    }
}

/// Section IV.C.2.b: a full buffer takes a second parallel write if chips are busy.
#[test]
fn a_full_buffer_closes_the_round_of_the_requests_before() {
    let clean = |ntl: &Ntl| layer(ntl)("parallel_clean_writes");
    for (busy, writes) in [(false, 1), (true, 2)] {
        let mut ntl = counted(&NtlConfig { log: LogKind::Full, log_share: 0.05, ..NtlConfig::default() });
        write_pages(&mut ntl, 0, 8);
        for lpn in 0..3 {
            write_pages(&mut ntl, lpn, 1);
        }
        if busy {
            write_pages(&mut ntl, 8, 4);
            write_pages(&mut ntl, 12, 2);
        }
        let before = clean(&ntl) - u64::from(busy);
        write_pages(&mut ntl, 3, 1);
        assert_eq!(clean(&ntl) - before, writes, "chips 0 and 1 are busy: {busy}");
    }
}
