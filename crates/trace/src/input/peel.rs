//! Taking the wrapping off: gzip, zstd, xz, bzip2 and tar, by magic bytes, one inside another.

use super::archive;
use sha2::{Digest, Sha256};
use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Reader = Box<dyn Read + Send>;

/// How many wrappings may lie inside each other (`.tar.gz` with `.gz` files in it has three).
const DEPTH: usize = 5;

/// What the layers of an input have in common.
#[derive(Default)]
pub(crate) struct Shared {
    /// What was taken off, outermost first.
    pub(super) layers: Vec<String>,
    /// Bytes of the file that were read.
    pub(super) compressed: u64,
    /// Bytes after the outermost decompression.
    pub(super) plain: u64,
    /// Their hash.
    pub(super) hash: Option<Sha256>,
    /// Whether a tar archive is read to its end, for the hash.
    pub(super) drain: bool,
    /// Set when a tar archive ends inside a file.
    pub(super) tar_cut: Option<String>,
    /// Remarks.
    pub(super) notes: Vec<String>,
}

impl Shared {
    /// Whether an error means that the compressed input ends too early.
    pub(super) fn cut_off(&self, e: &io::Error) -> bool {
        e.kind() == ErrorKind::UnexpectedEof
    }
}

/// The shared state; no holder can panic, so a poisoned lock cannot be.
pub(crate) fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts (and hashes) what passes.
struct Meter {
    inner: Reader,
    shared: Arc<Mutex<Shared>>,
    plain: bool,
}

impl Read for Meter {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(into)?;
        let mut shared = lock(&self.shared);
        if self.plain {
            shared.plain += n as u64;
            if let Some(hash) = &mut shared.hash {
                hash.update(&into[..n]);
            }
        } else {
            shared.compressed += n as u64;
        }
        Ok(n)
    }
}

/// Reads the first bytes and puts them back.
fn peek(mut reader: Reader) -> io::Result<(Vec<u8>, Reader)> {
    let mut first = vec![0; archive::BLOCK];
    let mut n = 0;
    while n < first.len() {
        match reader.read(&mut first[n..]) {
            Ok(0) => break,
            Ok(m) => n += m,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // What was read stands; the error comes again when the rest is read.
            Err(e) if n > 0 && e.kind() == ErrorKind::UnexpectedEof => {
                first.truncate(n);
                let rest = Cursor::new(first.clone()).chain(Failing(Some(e)));
                return Ok((first, Box::new(rest)));
            }
            Err(e) => return Err(e),
        }
    }
    first.truncate(n);
    let rest = Cursor::new(first.clone()).chain(reader);
    Ok((first, Box::new(rest)))
}

/// A reader that fails once and is then at its end.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Reads little at a time: the xz decoder loses what it decoded in a call that then runs into a cut.
struct Sips<R>(R);

impl<R: Read> Read for Sips<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(512);
        self.0.read(&mut into[..most])
    }
}

/// Unwraps one layer of compression.
fn decompress(first: &[u8], reader: Reader) -> io::Result<Result<(&'static str, Reader), Reader>> {
    Ok(match first {
        [0x1f, 0x8b, ..] => Ok(("gzip", Box::new(flate2::read::MultiGzDecoder::new(reader)) as Reader)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(("zstd", Box::new(zstd::Decoder::new(reader)?) as Reader)),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            Ok(("xz", Box::new(Sips(lzma_rust2::XzReader::new(reader, true))) as Reader))
        }
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
            Ok(("bzip2", Box::new(bzip2::read::MultiBzDecoder::new(reader)) as Reader))
        }
        _ => Err(reader),
    })
}

/// Takes everything off that a trace is wrapped in.
pub(super) fn peel(raw: Reader, member: Option<&str>, shared: &Arc<Mutex<Shared>>) -> io::Result<Reader> {
    let meter = |inner, plain| -> Reader { Box::new(Meter { inner, shared: Arc::clone(shared), plain }) };
    let mut reader = meter(raw, false);
    let mut metered = false;
    let mut in_tar = false;
    for _ in 0..DEPTH {
        let (first, rest) = peek(reader)?;
        reader = match decompress(&first, rest)? {
            Ok((name, inner)) => {
                lock(shared).layers.push(name.into());
                if std::mem::replace(&mut metered, true) { inner } else { meter(inner, true) }
            }
            Err(plain) => {
                let plain = if std::mem::replace(&mut metered, true) { plain } else { meter(plain, true) };
                if in_tar || !archive::is_tar(&first) {
                    return Ok(plain);
                }
                in_tar = true;
                Box::new(archive::Member::open(plain, member, Arc::clone(shared))?)
            }
        };
    }
    Ok(reader)
}
