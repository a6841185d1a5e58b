//! Sessions with wrong bytes: a short, deterministic form of the fuzz target `nbd`.

use super::*;
use crate::nbd::fuzz;

/// How many sessions are tried.
const SESSIONS: u64 = 20_000;

#[test]
fn wrong_bytes_never_do_harm() {
    let device = Device::new(Box::new(Memory::new(1 << 16)), DeviceOptions::default());
    let seeds = fuzz::seeds();
    let mut x = 0x5eed_u64;
    let mut next = |below: u64| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % below
    };
    let mut transmitting = 0u64;
    for i in 0..SESSIONS {
        let mut bytes = seeds[i as usize % seeds.len()].clone();
        for _ in 0..next(4) {
            let at = next(bytes.len() as u64) as usize;
            match next(6) {
                0 => bytes[at] ^= 1 << next(8),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][next(5) as usize],
                2 => bytes.truncate(at.max(1)),
                3 => {
                    let n = (next(64) as usize).min(bytes.len() - at);
                    let part = bytes[at..at + n].to_vec();
                    bytes.splice(at..at, part);
                }
                4 => drop(bytes.drain(at..(at + next(40) as usize).min(bytes.len()))),
                _ => bytes.insert(at, next(256) as u8),
            }
            if bytes.is_empty() {
                bytes.push(0);
            }
        }
        transmitting += u64::from(fuzz::session(&device, &bytes));
    }
    // Otherwise only the handshake was tried.
    assert!(transmitting > SESSIONS / 4, "{transmitting} sessions of {SESSIONS} came to requests");
}
