//! A bit that flips once, in the transfer from the medium.

use super::*;
use frit_core::{Cause, ReadTarget, Result, Sink, Tok, WriteData};
use frit_media::CustomStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Store that, when armed, flips a bit in the next read with the length of a stripe.
#[derive(Debug)]
struct Flips {
    store: MemoryStore,
    armed: Arc<AtomicBool>,
}

impl CustomStore for Flips {
    fn len(&self) -> u64 {
        self.store.len()
    }
    fn is_blank(&self) -> bool {
        self.store.is_blank()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.store.read(at, into)?;
        if into.len() == 256 && self.armed.swap(false, Ordering::Relaxed) {
            into[100] ^= 4;
        }
        Ok(())
    }
    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        self.store.write(at, data)
    }
    fn sync(&mut self) -> Result<()> {
        self.store.sync()
    }
}

#[test]
fn a_bit_that_flips_while_a_stripe_moves_does_not_stay() {
    let config = pcm_config(16 << 10, 64);
    let armed = Arc::new(AtomicBool::new(false));
    let store = Flips { store: MemoryStore::new(config.geometry.store_bytes()), armed: armed.clone() };
    let pcm = Pcm::new(config, store, &mut Hardware::new()).unwrap();
    let mut leveled = Leveled::new(pcm, small(LevelerKind::StartGap)).unwrap();
    leveled.format(&mut Sink::untimed()).unwrap();
    let bytes = leveled.bytes();
    for at in (0..bytes).step_by(64) {
        leveled
            .write(&mut Sink::untimed(), at, WriteData::Bytes(&[at as u8 | 1; 64]), Cause::Host, Tok::DONE)
            .unwrap();
    }
    let moves = leveled.moves();
    armed.store(true, Ordering::Relaxed);
    let mut at = 0;
    while leveled.moves() == moves {
        leveled
            .write(&mut Sink::untimed(), at, WriteData::Bytes(&[at as u8 | 1; 64]), Cause::Host, Tok::DONE)
            .unwrap();
        at = (at + 64) % 256;
    }
    assert!(!armed.load(Ordering::Relaxed), "the move read a stripe");
    for at in (0..bytes).step_by(64) {
        let mut out = [0; 64];
        leveled.read(&mut Sink::untimed(), at, ReadTarget::Bytes(&mut out), Cause::Host, Tok::DONE).unwrap();
        assert_eq!(out, [at as u8 | 1; 64], "at {at}");
    }
}
