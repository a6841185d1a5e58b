//! The engine on a file in an image in memory, instructed through a command file.

use super::live::{EngineRun, ThreadTimes};
use crate::{Error, Result};
use frit_fs::{Caller, FileContents, FormatOptions, Fs, InStorage, Ino, Mapped, Paths};
use frit_isp::{Channel, Destination, Engine, ResolveError, Resolver, Source, SourceError, Target};
use serde::Deserialize;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Name of the file.
const FILE: &str = "text";
/// Length of a read of the command file, as of `frit isp query`.
const READ_BYTES: usize = 64 << 10;

/// An image in memory with one file.
pub(super) struct ImageWithFile {
    fs: Arc<Fs<Mapped>>,
}

/// Contents of the file as data of the engine.
struct ImageContents(Arc<dyn FileContents>);

impl Source for ImageContents {
    fn len(&self) -> u64 {
        self.0.bytes().unwrap_or(0)
    }

    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> std::result::Result<(), SourceError> {
        self.0.scan(at, len, each).map_err(|e| SourceError(e.to_string()))
    }

    fn version(&self) -> u64 {
        self.0.version().unwrap_or(0)
    }
}

impl Resolver for ImageWithFile {
    fn source(&self, target: &Target) -> std::result::Result<Arc<dyn Source>, ResolveError> {
        let Target::Name(path) = target else { return Err(ResolveError::NotFound) };
        let other = |e: frit_fs::Error| ResolveError::Other(e.to_string());
        let attr = self.fs.resolve_below(&Caller::ROOT, Ino::ROOT, path.as_os_str().as_bytes(), &[]);
        let ino = attr.map_err(other)?.ino;
        let contents = Arc::clone(&self.fs).open_contents(&Caller::ROOT, ino, false).map_err(other)?;
        Ok(Arc::new(ImageContents(contents)))
    }

    fn destination(&self, _: &Target) -> std::result::Result<Arc<dyn Destination>, ResolveError> {
        Err(ResolveError::Denied)
    }
}

/// Line of a result.
#[derive(Deserialize)]
struct Reply {
    status: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    words: Vec<WordCount>,
    wall_ns: u64,
    cpu_ns: u64,
}

#[derive(Deserialize)]
struct WordCount {
    count: u64,
}

impl ImageWithFile {
    /// Creates an image with a file that has these contents.
    pub(super) fn new(contents: &[u8]) -> Result<ImageWithFile> {
        let medium = Mapped::anonymous((contents.len() as u64 * 5 / 4 + (16 << 20)) / 4096 * 4096)?;
        let fs = Fs::format(medium, FormatOptions { force: true, ..FormatOptions::default() })?;
        fs.store(&Caller::ROOT, FILE, contents)?;
        Ok(ImageWithFile { fs: Arc::new(fs) })
    }

    /// Opens the command file, writes an instruction, reads its result, and closes the file. Returns
    /// the counts with the times.
    pub(super) fn query(&self, engine: &Arc<Engine>, words: &[String]) -> Result<(EngineRun, Vec<u64>)> {
        let instruction = serde_json::json!({ "words": words, "positions": 1, "file": FILE });
        let instruction = format!("{instruction}\n");
        let failed = |why: String| Error::ThisMachine(format!("the command file: {why}"));
        let began = ThreadTimes::now();
        let channel = Channel::new(Arc::clone(engine));
        let mut requests = 1;
        let mut rest = instruction.as_bytes();
        while !rest.is_empty() {
            let written = channel.write(rest, self).map_err(|e| failed(e.to_string()))?;
            rest = &rest[written..];
            requests += 1;
        }
        let mut reply = Vec::new();
        while reply.last() != Some(&b'\n') {
            let read = channel.read(READ_BYTES);
            requests += 1;
            if read.is_empty() {
                return Err(failed("no result".into()));
            }
            reply.extend_from_slice(&read);
        }
        drop(channel);
        requests += 1;
        let (total_ns, caller_cpu_ns, waited_ns) = began.elapsed();
        let reply: Reply = serde_json::from_slice(&reply).map_err(|e| failed(e.to_string()))?;
        if reply.status != "ok" {
            return Err(failed(reply.error));
        }
        let (engine_ns, engine_cpu_ns) = (reply.wall_ns, reply.cpu_ns);
        let run = EngineRun { engine_ns, total_ns, waited_ns, caller_cpu_ns, engine_cpu_ns, requests };
        Ok((run, reply.words.into_iter().map(|word| word.count).collect()))
    }
}
