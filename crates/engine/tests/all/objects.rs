//! Times of an object store that are computed by hand, for every engine that must reproduce them.
//!
//! An object has 1 MB: 10 ms on a connection, 2.5 ms on the link. A put takes 2 ms and its transfer,
//! a get 1 ms and its transfer.

use crate::common::*;
use frit_core::{Cause, Cmd, Op, Sink, UnitId};
use frit_engine::sched::Fifo;
use frit_engine::{Event, InOrder};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn request(op: Op, connection: usize, len: u32) -> Cmd {
    Cmd { addr: 0, len, hazard: 0, unit: UnitId(connection as u16), op, cause: Cause::Host }
}

fn put(connection: usize) -> Cmd {
    request(Op::ObjectPut, connection, 1_000_000)
}

fn get(connection: usize) -> Cmd {
    request(Op::ObjectGet, connection, 1_000_000)
}

/// Returns the ends of requests that arrive at time zero, which both engines agree on.
fn ends_of(connections: usize, requests: &[Cmd]) -> Vec<u64> {
    let (hw, requests) = (objects(connections), singles(requests));
    let found = ends(&mut Sink::new(InOrder::new(&hw)), &requests);
    assert_eq!(found, ends(&mut Sink::new(Event::new(&hw, Fifo)), &requests), "in-order and event");
    found
}

#[test]
fn a_request_takes_its_latency_and_its_transfer() {
    assert_eq!(ends_of(1, &[put(0)]), [12 * MS]);
    assert_eq!(ends_of(1, &[get(0)]), [11 * MS]);
    // 4096 bytes take 40.96 us on a connection.
    assert_eq!(ends_of(1, &[request(Op::ObjectPut, 0, 4096)]), [2 * MS + 40_960]);
    assert_eq!(ends_of(1, &[request(Op::ObjectGet, 0, 4096)]), [MS + 40_960]);
    for (op, end) in [(Op::ObjectDelete, 500 * US), (Op::ObjectList, MS), (Op::ObjectFlush, MS)] {
        assert_eq!(ends_of(1, &[request(op, 0, 0)]), [end], "{op:?}");
    }
    // One connection executes one request after the other.
    assert_eq!(ends_of(1, &[put(0), get(0)]), [12 * MS, 23 * MS]);
}

#[test]
fn connections_work_in_parallel_and_take_turns_on_the_link() {
    // The k-th put waits for k transfers of 2.5 ms over the link.
    let puts: Vec<Cmd> = (0..4).map(put).collect();
    assert_eq!(ends_of(4, &puts), [12 * MS, 14_500 * US, 17 * MS, 19_500 * US]);
    // The link transfers the first byte of each get after 1 ms and the rest of a connection's time.
    let gets: Vec<Cmd> = (0..4).map(get).collect();
    assert_eq!(ends_of(4, &gets), [11 * MS, 13_500 * US, 16 * MS, 18_500 * US]);
    // Requests without bytes do not use the link.
    let deletes: Vec<Cmd> = (0..4).map(|c| request(Op::ObjectDelete, c, 0)).collect();
    assert_eq!(ends_of(4, &deletes), [500 * US; 4]);
}

#[test]
fn bandwidth_grows_with_connections_until_the_link_is_saturated() {
    let last = |connections: usize, puts: usize| {
        let puts: Vec<Cmd> = (0..puts).map(|i| put(i % connections)).collect();
        ends_of(connections, &puts).into_iter().max()
    };
    // Two connections: the second begins 2.5 ms later, and each takes 12 ms for a put.
    assert_eq!(last(2, 20), Some(2_500 * US + 10 * 12 * MS));
    // Eight connections: they would need 12 ms for 8 puts, and the link needs 20 ms.
    assert_eq!(last(8, 80), Some(79 * 2_500 * US + 12 * MS));
    // More connections do not help.
    assert_eq!(last(16, 80), last(8, 80));
}
