//! Decompression and unpacking: gzip, zstd, xz, bzip2 and tar, recognised by magic bytes and nested
//! in any order.

use super::archive;
use super::state::{InputState, lock};
use sha2::Digest;
use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::{Arc, Mutex};

type InputReader = Box<dyn Read + Send>;

/// Maximum nesting of containers (a `.tar.gz` that contains `.gz` files has three).
const DEPTH: usize = 5;

/// Counts, and optionally hashes, the bytes that pass.
struct Meter {
    inner: InputReader,
    shared: Arc<Mutex<InputState>>,
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

/// Reads the first bytes and returns them with a reader that delivers them again.
fn peek(mut reader: InputReader) -> io::Result<(Vec<u8>, InputReader)> {
    let mut first = vec![0; archive::BLOCK];
    let mut n = 0;
    while n < first.len() {
        match reader.read(&mut first[n..]) {
            Ok(0) => break,
            Ok(m) => n += m,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // The bytes before a truncation are kept; the error is reported again when the rest is
            // read.
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

/// Limits the size of reads: the xz decoder loses the data that it decoded in a call that ends in a
/// truncation.
struct SmallReads<R>(R);

impl<R: Read> Read for SmallReads<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(512);
        self.0.read(&mut into[..most])
    }
}

/// Removes one layer of compression, if there is one.
fn decompress_layer(
    first: &[u8],
    reader: InputReader,
) -> io::Result<Result<(&'static str, InputReader), InputReader>> {
    Ok(match first {
        [0x1f, 0x8b, ..] => Ok(("gzip", Box::new(flate2::read::MultiGzDecoder::new(reader)) as InputReader)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(("zstd", Box::new(zstd::Decoder::new(reader)?) as InputReader)),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            Ok(("xz", Box::new(SmallReads(lzma_rust2::XzReader::new(reader, true))) as InputReader))
        }
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
            Ok(("bzip2", Box::new(bzip2::read::MultiBzDecoder::new(reader)) as InputReader))
        }
        _ => Err(reader),
    })
}

/// Removes all layers of compression and archives around a trace.
pub(super) fn decompress(
    raw: InputReader,
    member: Option<&str>,
    shared: &Arc<Mutex<InputState>>,
) -> io::Result<InputReader> {
    let meter =
        |inner, plain| -> InputReader { Box::new(Meter { inner, shared: Arc::clone(shared), plain }) };
    let mut reader = meter(raw, false);
    let mut metered = false;
    let mut in_tar = false;
    for _ in 0..DEPTH {
        let (first, rest) = peek(reader)?;
        reader = match decompress_layer(&first, rest)? {
            Ok((name, inner)) => {
                lock(shared).layers.push(name.into());
                // Only the outermost decompression is metered: the identity of a trace is the hash
                // of those bytes.
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
