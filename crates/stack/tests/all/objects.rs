//! Object stores of a stack: their keys, and their opening over stores of the caller.

use crate::errors::told;
use frit_core::{Cause, ObjectId, Op, ReadTarget, Sink, StackView, Tok, WriteData};
use frit_engine::InOrder;
use frit_stack::{Bytes, Stack};

const STACK: &str = r#"[media.disk]
profile = "st3500320as-2008"
[media.pcm]
profile = "pcm-halo-2012"
chip_bytes = "1M"
[media.remote]
profile = "s3-standard-2019"
object_bytes = "64K"
objects = 10
[cache]
"#;

fn stack(text: &str) -> frit_stack::Result<Stack> {
    Stack::parse("text", text, &[])
}

fn id(number: u32) -> ObjectId {
    ObjectId { epoch: 1, number }
}

#[test]
fn an_object_store_opens_over_memory_and_files() {
    let stack = stack(STACK).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for bytes in [Bytes::Memory, Bytes::files(dir.path())] {
        let sink = &mut Sink::untimed();
        let (mut d, hw) = stack.open_objects("remote", &bytes).unwrap();
        assert_eq!((d.object_bytes(), d.objects(), hw.units(), hw.channels()), (64 << 10, 10, 15, 1));
        assert_eq!(d.claim(sink, 0).unwrap(), 1);
        d.put(sink, id(4), WriteData::Bytes(&[7; 5000]), Cause::Host, Tok::DONE).unwrap();
        d.flush(sink, Cause::Host, Tok::DONE).unwrap();
        let mut into = [0; 10];
        d.get(sink, id(4), 4990, ReadTarget::Bytes(&mut into), Cause::Host, Tok::DONE).unwrap();
        assert_eq!(into, [7; 10]);
    }
    let (mut d, _) = stack.open_objects("remote", &Bytes::files(dir.path())).unwrap();
    assert_eq!(d.list(&mut Sink::untimed()).unwrap(), [(id(4), 5000)]);
    let e = stack.open_objects("disk", &Bytes::Memory).err().unwrap();
    assert!(e.to_string().contains("not the name of an object store"), "{e}");
}

#[test]
fn requests_take_idle_connections_in_virtual_time() {
    let stack = stack(STACK).unwrap();
    let hw = stack.open_objects("remote", &Bytes::None).unwrap().1;
    let (mut d, sink) =
        (stack.open_objects("remote", &Bytes::None).unwrap().0, &mut Sink::new(InOrder::new(&hw)));
    d.claim(sink, 0).unwrap();
    while sink.next_done(frit_core::Nanos::MAX).is_some() {}
    let begin = sink.now();
    // A list of 30 ms, a put of 60 ms and 64 bytes, and a flush of 30 ms.
    assert_eq!(begin.0 / 1_000, 120_000);
    let toks: Vec<_> = (0..10)
        .map(|n| d.put(sink, id(n), WriteData::Len(65536), Cause::Host, Default::default()).unwrap())
        .collect();
    // 65536 bytes take 0.75 ms on a connection, and 52 us on the link, which they use in turn.
    let engine: &InOrder = sink.engine().unwrap();
    let ends: Vec<u64> = toks.into_iter().map(|t| (engine.predict(t) - begin).0 / 1_000).collect();
    let expected: Vec<u64> = (0..10).map(|k| 60_000 + 749 + (k * 52_429) / 1000).collect();
    assert_eq!(ends, expected);
    let mut view = StackView::default();
    d.visible(&mut view);
    assert_eq!(view.counts().get(Op::ObjectPut, Cause::Host).commands, 10);
}

#[test]
fn wrong_keys_are_reported_at_their_lines() {
    for (from, to, message) in [
        ("objects = 10", "objects = 0", "text:9:11 `media.remote.objects` = 0: has to be 1 to 16777216"),
        (
            "\"64K\"",
            "\"5000\"",
            "text:8:16 `media.remote.object_bytes` = 4.9 KiB: has to be a multiple of 4K, from 4K to 1G",
        ),
        (
            "objects = 10",
            "connection_mb_per_s = 2000",
            "text:9:23 `media.remote.connection_mb_per_s` = 2000: has to be at most link_mb_per_s: a connection cannot be faster than the link",
        ),
        (
            "objects = 10",
            "t_read = \"1 us\"",
            "text:9:1 `media.remote` is an object medium and has no key `t_read`",
        ),
    ] {
        let error = stack(&STACK.replace(from, to)).unwrap_err();
        let all = told(&error);
        assert!(all[0].starts_with(message), "{all:?}");
    }
}

#[test]
fn the_url_of_a_store_is_checked_at_its_line() {
    let with = |line: &str| stack(&STACK.replace("objects = 10", &format!("objects = 10\n{line}")));
    let found = with("url = 's3://bucket/prefix?timeout_s=5'").unwrap();
    let medium = |s: &Stack| s.media().iter().find(|m| m.name == "remote").unwrap().url.clone();
    assert_eq!(medium(&found).as_deref(), Some("s3://bucket/prefix?timeout_s=5"));
    for (line, message) in [
        (
            "url = 'ftp://x'",
            "text:10:7 `media.remote.url`: 'ftp' is not a kind of store; there are file, memory, s3, gs, az",
        ),
        ("url = 5", "text:10:7 `media.remote.url`: has to be a string"),
        ("url = 'a'\npath = 'b'", "text:10:7 `media.remote` has a `path` and a `url`"),
    ] {
        let all = told(&with(line).unwrap_err());
        assert!(all[0].starts_with(message), "{all:?}");
    }
    let error = stack(&STACK.replace("chip_bytes", "url = 'a'\nchip_bytes")).unwrap_err();
    assert!(told(&error)[0].contains("`media.pcm` has no key `url`"), "{:?}", told(&error));
}
