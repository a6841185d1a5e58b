//! The rank of in-storage processing: cases by hand, and no waiting command of it delays another one.

use crate::common::*;
use frit_core::{Cause, Cmd, Op, Sink};
use frit_engine::sched::{Fifo, HostFirst, ReadFirst};
use frit_engine::{Event, LoopMode, Scheduler};
use proptest::prelude::*;

/// Times of `pcm`: a read of 512 B, a write of 128 B.
const PCM_READ: u64 = 5_000;
const PCM_WRITE: u64 = 20_700;

fn cmd(op: Op, line: u32, cause: Cause) -> Cmd {
    let len = if op == Op::PcmWrite { 128 } else { 512 };
    Cmd { op, len, cause, ..read(0, line) }
}

fn isp(line: u32) -> Cmd {
    cmd(Op::PcmRead, line, Cause::Isp)
}

fn host_read(line: u32) -> Cmd {
    cmd(Op::PcmRead, line, Cause::Host)
}

fn host_write(line: u32) -> Cmd {
    cmd(Op::PcmWrite, line, Cause::Host)
}

fn ranked<P: Scheduler + Default + 'static>(requests: &[Request]) -> Vec<u64> {
    ends(&mut Sink::new(Event::new(&pcm(&[0]), P::default())), requests)
}

#[test]
fn waiting_isp_commands_let_all_others_pass() {
    let r = singles(&[isp(1), isp(2), host_write(3), host_read(4)]);
    assert_eq!(
        ranked::<Fifo>(&r),
        [PCM_READ, 2 * PCM_READ, 2 * PCM_READ + PCM_WRITE, 3 * PCM_READ + PCM_WRITE]
    );
    // All are there at time zero, so the host goes first.
    let host = PCM_WRITE + PCM_READ;
    assert_eq!(ranked::<HostFirst>(&r), [host + PCM_READ, host + 2 * PCM_READ, PCM_WRITE, host]);
    // With read-first, the read of the host precedes its write, and both precede the engine.
    assert_eq!(ranked::<ReadFirst>(&r), [host + PCM_READ, host + 2 * PCM_READ, host, PCM_READ]);
}

#[test]
fn a_host_command_waits_for_the_isp_command_in_service_only() {
    let engine: Vec<Request> = (0..100).map(|line| Request::at(0, &[isp(line)])).collect();
    for at in [1, PCM_READ / 2, PCM_READ - 1, PCM_READ + 1, 7 * PCM_READ + 1] {
        let mut r = engine.clone();
        r.push(Request::at(at, &[host_read(1000)]));
        let mut e = Sink::new(Event::new(&pcm(&[0]), HostFirst::default()));
        let (times, _) = run(&mut e, LoopMode::Open { speed: 1.0, depth: None }, &r);
        let waited = times[100].response().0 - PCM_READ;
        assert_eq!(waited, at.next_multiple_of(PCM_READ) - at, "arrives at {at}");
    }
}

#[test]
fn an_isp_command_that_blocks_the_host_has_the_rank_of_the_host() {
    // The write waits for the first read of its line, and must not wait for the host's other reads
    // and for the engine's others as well.
    let r = singles(&[isp(7), isp(1), host_write(7), host_read(2), host_read(3)]);
    let after = PCM_READ + PCM_WRITE;
    assert_eq!(
        ranked::<HostFirst>(&r),
        [PCM_READ, after + 3 * PCM_READ, after, after + PCM_READ, after + 2 * PCM_READ]
    );
}

proptest! {
    /// The host's commands are done at the same times as without waiting commands of the engine, as no
    /// command of the engine is in service when they arrive.
    #[test]
    fn waiting_isp_commands_change_no_time_of_the_host(
        host in prop::collection::vec((prop::bool::ANY, 0u32..50), 1..40),
        places in prop::collection::vec(0usize..40, 0..40),
    ) {
        let host: Vec<Cmd> =
            host.iter().map(|&(w, line)| if w { host_write(line) } else { host_read(line) }).collect();
        let mut mixed: Vec<(Cmd, bool)> = host.iter().map(|&c| (c, true)).collect();
        for (i, place) in places.iter().enumerate() {
            // Lines of their own: a hazard with the host would give the engine the host's rank.
            mixed.insert(place % (mixed.len() + 1), (isp(1000 + i as u32), false));
        }
        let alone = ranked::<HostFirst>(&singles(&host));
        let all = ranked::<HostFirst>(&singles(&mixed.iter().map(|m| m.0).collect::<Vec<_>>()));
        let of_host: Vec<u64> =
            all.iter().zip(&mixed).filter(|(_, m)| m.1).map(|(end, _)| *end).collect();
        prop_assert_eq!(of_host, alone);
    }
}
