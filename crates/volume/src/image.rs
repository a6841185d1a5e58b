//! Raw images: export and import of a volume's bytes as one file.

use crate::error::{Error, Result, io};
use crate::planted::Bug;
use crate::volume::Volume;
use frit_core::Hints;
use frit_core::planted::is_planted;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;

/// Size of a copied chunk, in bytes.
const CHUNK: usize = 1 << 20;
/// Granularity at which zeros are detected, in bytes: the block size of most file systems.
const ZERO_GRANULARITY: usize = 4096;

/// Destination of an exported image.
pub enum ImageSink<'a> {
    /// An empty file: zeros become holes.
    Sparse(&'a File),
    /// A sequential stream.
    Stream(&'a mut dyn Write),
}

/// Source of an imported image.
pub enum ImageSource<'a> {
    /// A file: its holes are discarded.
    File(&'a File),
    /// A sequential stream.
    Stream(&'a mut dyn Read),
}

/// Result of an export or import.
#[derive(Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct TransferReport {
    /// Size of the image, in bytes.
    pub bytes: u64,
    /// Bytes of the image that hold data.
    pub data_bytes: u64,
    /// Ranges that could not be read and are zeros in the image: start, length, reason.
    pub damaged: Vec<(u64, u64, String)>,
}

/// Callback for progress; its argument is the number of bytes that were transferred.
pub type ProgressFn<'a> = &'a mut dyn FnMut(u64);

/// Exports the volume's bytes. With `rescue`, ranges that cannot be read become zeros and are
/// listed; without it, they are errors.
///
/// # Errors
/// Damaged data without `rescue`; an image that cannot be written.
pub fn export(
    v: &mut Volume,
    out: &mut ImageSink<'_>,
    rescue: bool,
    progress: ProgressFn<'_>,
) -> Result<TransferReport> {
    let mut report = TransferReport { bytes: v.bytes(), ..TransferReport::default() };
    let failed = || io("cannot write the image");
    if let ImageSink::Sparse(file) = out {
        // Sets the full size first, so that zeros at the end become a hole as well.
        file.set_len(v.bytes()).map_err(failed())?;
    }
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    for (len, mapped) in mapped_ranges(v)? {
        let end = at + len;
        while at < end {
            let n = CHUNK.min((end - at) as usize);
            let chunk = &mut buffer[..n];
            if mapped {
                read_chunk(v, at, chunk, rescue, &mut report)?;
                report.data_bytes += n as u64;
            } else {
                chunk.fill(0);
            }
            match out {
                ImageSink::Sparse(file) if mapped => write_sparse(file, at, chunk).map_err(failed())?,
                ImageSink::Sparse(_) => {}
                ImageSink::Stream(w) => w.write_all(chunk).map_err(failed())?,
            }
            at += n as u64;
            progress(at);
        }
    }
    match out {
        ImageSink::Sparse(file) => file.sync_all().map_err(failed())?,
        ImageSink::Stream(w) => w.flush().map_err(failed())?,
    }
    Ok(report)
}

/// Returns the lengths of the volume's alternating ranges, each with `true` if it is mapped.
pub(crate) fn mapped_ranges(v: &Volume) -> Result<Vec<(u64, bool)>> {
    let mut all: Vec<(u64, bool)> = Vec::new();
    v.extents(0, v.bytes(), &mut |len, place| match all.last_mut() {
        Some((l, mapped)) if *mapped == place.is_some() => *l += len,
        _ => all.push((len, place.is_some())),
    })?;
    Ok(all)
}

/// Returns `true` if every byte of the volume reads as zero. Ranges that cannot be read count as
/// data.
pub fn is_blank(v: &mut Volume) -> bool {
    let Ok(all) = mapped_ranges(v) else { return false };
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    for (len, mapped) in all {
        let end = at + len;
        while mapped && at < end {
            let chunk = &mut buffer[..CHUNK.min((end - at) as usize)];
            if v.read(at, chunk).is_err() || chunk.iter().any(|&b| b != 0) {
                return false;
            }
            at += chunk.len() as u64;
        }
        at = end;
    }
    true
}

/// Reads a chunk. If that fails, reads it page by page.
fn read_chunk(
    v: &mut Volume,
    at: u64,
    chunk: &mut [u8],
    rescue: bool,
    report: &mut TransferReport,
) -> Result<()> {
    match v.read(at, chunk) {
        Ok(()) => return Ok(()),
        Err(e) if !rescue && !is_planted(Bug::ExportWritesZeros) => return Err(e.into()),
        Err(_) => {}
    }
    let page = v.page_bytes() as usize;
    let mut from = at;
    for part in chunk.chunks_mut(page) {
        if let Err(e) = v.read(from, part) {
            part.fill(0);
            if rescue {
                report.damaged.push((from, part.len() as u64, e.to_string()));
            }
        }
        from += part.len() as u64;
    }
    Ok(())
}

fn write_sparse(file: &File, at: u64, chunk: &[u8]) -> std::io::Result<()> {
    let mut from = at;
    for piece in chunk.chunks(ZERO_GRANULARITY) {
        if piece.iter().any(|&b| b != 0) {
            file.write_all_at(piece, from)?;
        }
        from += piece.len() as u64;
    }
    Ok(())
}

/// Replaces the volume's contents by the image, followed by zeros. Zeros and holes are discarded.
///
/// # Errors
/// The image is larger than the volume or cannot be read; the volume cannot store it. Data that
/// was read before the error is in the volume.
pub fn import(
    v: &mut Volume,
    from: &mut ImageSource<'_>,
    progress: ProgressFn<'_>,
) -> Result<TransferReport> {
    let failed = || io("cannot read the image");
    let mut report = TransferReport::default();
    let mut buffer = vec![0; CHUNK];
    if let ImageSource::File(file) = from {
        let size = size_of_file(file).map_err(failed())?;
        if size > v.bytes() {
            return Err(too_large(v, Some(size)));
        }
    }
    loop {
        let at = report.bytes;
        if let ImageSource::File(file) = from {
            let hole = hole_at(file, at).min(v.bytes() - at);
            if hole > 0 {
                v.discard(at, hole / 512 * 512)?;
                report.bytes += hole / 512 * 512;
                progress(report.bytes);
                if hole >= 512 {
                    continue;
                }
            }
        }
        let n = match from {
            ImageSource::File(file) => fill(&mut buffer, |b, done| file.read_at(b, at + done as u64)),
            ImageSource::Stream(r) => fill(&mut buffer, |b, _| r.read(b)),
        }
        .map_err(failed())?;
        if n == 0 {
            break;
        }
        // The last sector of an image of odd length is padded with zeros.
        let whole = n.next_multiple_of(512);
        buffer[n..whole].fill(0);
        if at + whole as u64 > v.bytes() {
            return Err(too_large(v, None));
        }
        write_or_discard(v, at, &buffer[..whole], &mut report)?;
        report.bytes += whole as u64;
        progress(report.bytes);
        if n < buffer.len() {
            break;
        }
    }
    // The rest of the volume has to read as zeros; its old contents are discarded.
    v.discard(report.bytes, v.bytes() - report.bytes)?;
    v.flush()?;
    Ok(report)
}

/// Writes the data, and discards ranges of zeros.
fn write_or_discard(v: &mut Volume, at: u64, data: &[u8], report: &mut TransferReport) -> Result<()> {
    let mut from = 0;
    while from < data.len() {
        let zero = is_zero(data, from);
        let mut to = from;
        while to < data.len() && is_zero(data, to) == zero {
            to = (to + ZERO_GRANULARITY).min(data.len());
        }
        if zero {
            v.discard(at + from as u64, (to - from) as u64)?;
        } else {
            v.write(at + from as u64, &data[from..to], Hints::NONE)?;
            report.data_bytes += (to - from) as u64;
        }
        from = to;
    }
    Ok(())
}

fn is_zero(data: &[u8], from: usize) -> bool {
    data[from..(from + ZERO_GRANULARITY).min(data.len())].iter().all(|&b| b == 0)
}

fn too_large(v: &Volume, size: Option<u64>) -> Error {
    let has = size.map_or("more than that".to_owned(), |n| format!("{n}"));
    Error::Exists {
        dir: v.dir().into(),
        why: format!(
            "the volume has {} bytes, and the image {has}; frit grow makes a volume larger",
            v.bytes()
        ),
    }
}

/// Reads until the buffer is full or the input ends.
fn fill(
    buffer: &mut [u8],
    mut read: impl FnMut(&mut [u8], usize) -> std::io::Result<usize>,
) -> std::io::Result<usize> {
    let mut n = 0;
    while n < buffer.len() {
        match read(&mut buffer[n..], n) {
            Ok(0) => break,
            Ok(k) => n += k,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(n)
}

/// Returns the size of a file, or of a block device, whose metadata report 0.
fn size_of_file(file: &File) -> std::io::Result<u64> {
    Ok(rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))?)
}

/// Returns the length of the hole that starts at `at`; 0 if there is none, or if the file system
/// does not report holes.
fn hole_at(file: &File, at: u64) -> u64 {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
        Ok(data) => data.saturating_sub(at),
        // `ENXIO`: no data up to the end of the file.
        Err(rustix::io::Errno::NXIO) => size_of_file(file).unwrap_or(at).saturating_sub(at),
        Err(_) => 0,
    }
}
