//! Tests of sessions with invalid bytes: a short, deterministic version of the fuzz target `nbd`.

use super::*;
use crate::nbd::fuzz;

/// Number of sessions.
const SESSIONS: u64 = 20_000;

#[test]
fn wrong_bytes_never_do_harm() {
    let device = Device::new(Box::new(MemoryBackend::new(1 << 16)), DeviceOptions::default());
    let seeds = fuzz::seeds();
    let mut x = 0x5eed_u64;
    let mut next = |below: u64| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % below
    };
    let mut transmitting = 0u64;
    let large = Device::new(Box::new(MemoryBackend::new(1 << 20)), DeviceOptions::default());
    for seed in &seeds {
        fuzz::limited(&large, seed);
    }
    for i in 0..SESSIONS {
        let mut bytes = seeds[i as usize % seeds.len()].clone();
        fuzz::mutate(&mut bytes, &mut next);
        transmitting += u64::from(fuzz::session(&device, &bytes));
        if i % 4 == 0 {
            fuzz::limited(&large, &bytes);
        }
    }
    // Ensures that the test does not only exercise the handshake.
    assert!(transmitting > SESSIONS / 4, "{transmitting} sessions of {SESSIONS} completed the handshake");
}
