//! Tests of clients that disconnect after any byte of their session.

use super::*;
use crate::nbd::wire::flag;

/// Returns a session with every command: its bytes, and for each write the number of bytes after
/// which it is complete.
fn session() -> (Vec<u8>, Vec<(usize, u64, u8)>) {
    let mut bytes = 3u32.to_be_bytes().to_vec();
    bytes.extend(option_bytes(option::STRUCTURED_REPLY, &[]));
    bytes.extend(option_bytes(option::SET_META_CONTEXT, &contexts("", &["base:allocation"])));
    bytes.extend(option_bytes(option::GO, &go("scratch", &[3])));
    let mut writes = Vec::new();
    for i in 0..4u64 {
        let r = Req::new(NbdCommand::Write, i * 512, 512).flags(if i == 2 { flag::FUA } else { 0 });
        bytes.extend(r.bytes(&[i as u8 + 1; 512]));
        writes.push((bytes.len(), i * 512, i as u8 + 1));
        bytes.extend(Req::new(NbdCommand::Read, 0, 512).bytes(&[]));
        bytes.extend(Req::new(NbdCommand::BlockStatus, 0, 4096).bytes(&[]));
    }
    bytes.extend(Req::new(NbdCommand::Flush, 0, 0).bytes(&[]));
    bytes.extend(Req { number: 200, ..Req::new(NbdCommand::Read, 0, 1) }.bytes(&[]));
    bytes.extend(Req::new(NbdCommand::Disc, 0, 0).bytes(&[]));
    (bytes, writes)
}

#[test]
fn hanging_up_at_any_byte_leaves_whole_writes_and_nothing_else() {
    let (bytes, writes) = session();
    for end in 0..=bytes.len() {
        let (device, _) = device(DeviceOptions::default());
        let mut c = Client::connect(&device);
        c.send(&bytes[..end]);
        assert_eq!(c.closed, end == bytes.len(), "at {end}");
        drop(c);
        let mut other = Client::ready(&device, true);
        let mut expected = vec![0; 2048];
        for &(whole, at, byte) in writes.iter().filter(|w| w.0 <= end) {
            assert!(whole <= end);
            expected[at as usize..at as usize + 512].fill(byte);
        }
        assert_eq!(other.read(0, 2048), expected, "at {end}");
    }
}

#[test]
fn it_does_not_matter_how_the_bytes_are_cut() {
    let (bytes, _) = session();
    let (device, _) = device(DeviceOptions::default());
    let mut whole = Client::connect(&device);
    whole.send(&bytes);
    for step in [1, 2, 3, 5, 7, 27, 28, 29, 100, 511, 1000] {
        let (device, _) = super::device(DeviceOptions::default());
        let mut c = Client::connect(&device);
        bytes.chunks(step).for_each(|part| c.send(part));
        assert!(c.closed);
        assert_eq!(c.received.len(), whole.received.len(), "in steps of {step}");
    }
}

#[test]
fn what_was_sent_before_disc_is_done_and_answered() {
    let (device, knobs) = device(DeviceOptions::default());
    let mut c = Client::ready(&device, false);
    let mut bytes = Req::new(NbdCommand::Write, 0, 512).flags(flag::FUA).cookie(5).bytes(&[9; 512]);
    bytes.extend(Req::new(NbdCommand::Disc, 0, 0).bytes(&[]));
    bytes.extend(Req::new(NbdCommand::Write, 512, 512).bytes(&[9; 512]));
    c.send(&bytes);
    assert!(c.closed);
    assert_eq!(c.reply(5).error, 0);
    assert!(c.received.is_empty());
    assert_eq!(
        knobs.writes_flushed.load(std::sync::atomic::Ordering::Relaxed),
        1,
        "nothing after DISC is executed"
    );
}
