//! Bytes of an NBD client for the core of the protocol, over memory. The first byte selects the size of
//! the pieces in which they arrive. `frit_serve::nbd::fuzz` has the assertions.

#![no_main]

use frit_serve::testing::MemoryBackend;
use frit_serve::{Device, DeviceOptions};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};

/// One device for all sessions: none may harm the next.
static DEVICE: LazyLock<Arc<Device>> =
    LazyLock::new(|| Device::new(Box::new(MemoryBackend::new(1 << 16)), DeviceOptions::default()));

/// A larger one, whose requests find no memory to be held whole.
static LARGE: LazyLock<Arc<Device>> =
    LazyLock::new(|| Device::new(Box::new(MemoryBackend::new(1 << 20)), DeviceOptions::default()));

fuzz_target!(
    init: {
        // Sessions to start from, where run.sh wants them.
        if let Some(dir) = std::env::var_os("FRIT_SEEDS") {
            for (i, seed) in frit_serve::nbd::fuzz::seeds().iter().enumerate() {
                std::fs::write(std::path::Path::new(&dir).join(format!("seed-{i}")), seed).expect("a seed");
            }
        }
    },
    |bytes: &[u8]| {
        frit_serve::nbd::fuzz::session(&DEVICE, bytes);
        frit_serve::nbd::fuzz::limited(&LARGE, bytes);
        for device in [&DEVICE, &LARGE] {
            assert!(device.read_only().is_none(), "a client made the device refuse writes");
        }
    }
);
