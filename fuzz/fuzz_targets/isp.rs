//! Bytes written to a command file, in pieces: instructions in JSON and in the binary form, with mistakes.
//! Each is executed on a small file. Writes and reads end without a panic, every JSON result is a line with
//! its payload, and a read never waits for an instruction that is not complete.

#![no_main]

use frit_isp::{
    Channel, Destination, Engine, EngineOptions, ResolveError, Resolver, Source, SourceError, Status, Target, text,
};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock, Mutex};

static ENGINE: LazyLock<Arc<Engine>> = LazyLock::new(|| {
    let options = EngineOptions { threads: 1, chunk_bytes: 64, part_bytes: 256, ..EngineOptions::default() };
    Arc::new(Engine::new(options))
});

/// Contents of every file.
const TEXT: &[u8] = b"name,size\nerror,12\n\"a, b\",-3.5\n{\"size\": 7, \"a\": {\"b\": null}}\nwarn \xff\0 error\n";

struct Files;

#[derive(Default)]
struct Written(Mutex<Vec<u8>>);

impl Destination for Written {
    fn write(&self, at: u64, data: &[u8]) -> Result<(), SourceError> {
        if at > 1 << 20 {
            return Err(SourceError("too far".into()));
        }
        let mut all = self.0.lock().unwrap();
        let end = at as usize + data.len();
        if all.len() < end {
            all.resize(end, 0);
        }
        all[at as usize..end].copy_from_slice(data);
        Ok(())
    }
}

impl Resolver for Files {
    fn source(&self, target: &Target) -> Result<Arc<dyn Source>, ResolveError> {
        match target {
            Target::Inode(0) => Err(ResolveError::NotFound),
            _ => Ok(Arc::new(TEXT.repeat(20))),
        }
    }

    fn destination(&self, _: &Target) -> Result<Arc<dyn Destination>, ResolveError> {
        Ok(Arc::new(Written::default()))
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&piece, bytes)) = bytes.split_first() else { return };
    let channel = Channel::new(Arc::clone(&ENGINE));
    for mut part in bytes.chunks(usize::from(piece) * 16 + 1) {
        while !part.is_empty() {
            match channel.write(part, &Files) {
                Ok(accepted) => part = &part[accepted..],
                // Results have to be read first.
                Err(_) => {
                    while channel.readiness().readable {
                        let _ = channel.read(4096);
                    }
                }
            }
        }
    }
    while !channel.read(4096).is_empty() {}
    if let Err(failure) = text::parse(bytes) {
        assert!(failure.status != Status::Ok && !failure.message.is_empty());
    }
});
