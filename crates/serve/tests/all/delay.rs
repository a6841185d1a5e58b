//! Tests of delays of served volumes. Lower bounds of times are exact: a busy machine is late, but
//! never early.

use crate::common::{Client, device, reopen, request, start};
use frit_core::Hints;
use frit_serve::{Device, ReplyTime};
use frit_stack::Stack;
use frit_volume::{CreateOptions, Volume};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const READ: u16 = 0;
const MS: Duration = Duration::from_millis(1);

/// Creates a volume of one or two small disks with these layers.
fn volume(dir: &Path, layers: &str) -> Volume {
    let disk = |name: &str| format!("[media.{name}]\nprofile = \"st3500320as-2008\"\nbytes = \"1M\"\n");
    let second = if layers.contains("\"b\"") { disk("b") } else { String::new() };
    let stack = Stack::parse("delays", &format!("{}{second}{layers}", disk("a")), &[]).unwrap();
    Volume::create(dir, &CreateOptions { stack, force: false }).unwrap().close().unwrap();
    reopen(dir)
}

fn delay(name: &str, device: &str, read: Duration, write: Duration, flush: Duration) -> String {
    let (read, write, flush) = (read.as_micros(), write.as_micros(), flush.as_micros());
    format!(
        "[{name}]\nkind = \"delay\"\ndevice = \"{device}\"\nread_us = {read}\nwrite_us = {write}\nflush_us = {flush}\n"
    )
}

fn served(layers: &str) -> (Arc<Device>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (device(volume(&dir.path().join("volume"), layers)), dir)
}

/// Makes a request. Returns the time that its reply has to wait, between the bounds from before and
/// after the request.
fn waits(request: impl FnOnce() -> ReplyTime) -> (Duration, Duration) {
    let before = Instant::now();
    let due = request().not_before.unwrap();
    (due.saturating_duration_since(Instant::now()), due - before)
}

fn assert_waits(request: impl FnOnce() -> ReplyTime, expected: Duration) {
    let (least, most) = waits(request);
    assert!(least <= expected && expected <= most, "{expected:?} is not in {least:?}..={most:?}");
}

#[test]
fn each_kind_of_request_has_its_delay() {
    let (d, _dir) = served(&delay("top", "a", 2 * MS, 30 * MS, 500 * MS));
    assert!(d.paced());
    assert_waits(|| d.lock().write(0, &[1; 4096], Hints::NONE).unwrap(), 30 * MS);
    assert_waits(|| d.lock().discard(0, 4096).unwrap(), 30 * MS);
    assert_waits(|| d.lock().read(0, &mut [0; 4096]).unwrap(), 2 * MS);
    assert_waits(|| d.flush().unwrap(), 500 * MS);
    // A new value counts from the next request on.
    d.with(|b| b.set_params(&[("read_us", "7000")])).unwrap().unwrap();
    assert_waits(|| d.lock().read(0, &mut [0; 4096]).unwrap(), 7 * MS);
    d.with(|b| b.set_params(&[("read_us", "0")])).unwrap().unwrap();
    assert_eq!(d.lock().read(0, &mut [0; 4096]).unwrap(), ReplyTime::NOW);
    d.close().unwrap();
}

#[test]
fn nested_delays_add_up_and_of_parallel_ones_the_longest_counts() {
    let layers = [
        delay("top", "raid", MS, MS, MS),
        "[raid]\nkind = \"stripe\"\ndevices = [\"far\", \"near\"]\nchunk = \"4K\"\n".into(),
        delay("far", "a", 40 * MS, Duration::ZERO, Duration::ZERO),
        delay("near", "b", 10 * MS, Duration::ZERO, Duration::ZERO),
    ];
    let (d, _dir) = served(&layers.concat());
    // One chunk on one device, one on the other, and two on both.
    assert_waits(|| d.lock().read(0, &mut [0; 4096]).unwrap(), 41 * MS);
    assert_waits(|| d.lock().read(4096, &mut [0; 4096]).unwrap(), 11 * MS);
    assert_waits(|| d.lock().read(0, &mut [0; 4 * 4096]).unwrap(), 41 * MS);
    d.close().unwrap();
}

#[test]
fn a_volume_without_delays_answers_at_once() {
    let (d, _dir) = served("[top]\nkind = \"flaky\"\ndevice = \"a\"\n");
    assert!(!d.paced());
    assert_eq!(d.lock().write(0, &[1; 4096], Hints::NONE).unwrap(), ReplyTime::NOW);
    assert_eq!(d.flush().unwrap(), ReplyTime::NOW);
    d.close().unwrap();
}

#[test]
fn delayed_requests_of_clients_wait_beside_each_other() {
    let delayed = 1000 * MS;
    let (d, dir) = served(&delay("top", "a", delayed, Duration::ZERO, Duration::ZERO));
    let socket = dir.path().join("nbd.sock");
    let server = start(&d, &socket);
    let mut client = Client::connect(&socket).unwrap();
    let start = Instant::now();
    client.read(0, 4096).unwrap();
    assert!(start.elapsed() >= delayed);
    // Eight reads of a connection, four of another, and a write that is not delayed.
    let mut other = Client::connect(&socket).unwrap();
    let start = Instant::now();
    for cookie in 0..8 {
        client.socket.write_all(&request(READ, 0, cookie, 0, 512)).unwrap();
    }
    for cookie in 0..4 {
        other.socket.write_all(&request(READ, 0, cookie, 0, 512)).unwrap();
    }
    let mut third = Client::connect(&socket).unwrap();
    third.write(0, &[7; 512], 0).unwrap();
    let write = start.elapsed();
    let mut data = [0; 512];
    for _ in 0..8 {
        client.reply().unwrap();
        std::io::Read::read_exact(&mut client.socket, &mut data).unwrap();
    }
    for _ in 0..4 {
        other.reply().unwrap();
        std::io::Read::read_exact(&mut other.socket, &mut data).unwrap();
    }
    let all = start.elapsed();
    assert!(all >= delayed, "{all:?}");
    // One after the other they would take twelve delays.
    assert!(all < 6 * delayed, "{all:?}");
    assert!(write < delayed, "the write waited for the reads: {write:?}");
    server.stop(Duration::from_secs(5));
    d.close().unwrap();
}

/// A program that uses a volume as a library does not wait.
#[test]
fn library_users_do_not_wait() {
    let dir = tempfile::tempdir().unwrap();
    let mut v = volume(&dir.path().join("volume"), &delay("top", "a", 60_000 * MS, 60_000 * MS, MS));
    let start = Instant::now();
    v.write(0, &[1; 4096], Hints::NONE).unwrap();
    v.read(0, &mut [0; 4096]).unwrap();
    v.close().unwrap();
    assert!(start.elapsed() < 30_000 * MS);
}
