//! The objects with which writers claim a bucket.
//!
//! The writer of epoch *n* creates `writer-n`, which fails for the second of two writers that claim at
//! the same time, and `writer-n.closed` when it releases the bucket.

use crate::bucket::{Bucket, BucketError};
use crate::{names, process};
use std::sync::Arc;
use std::time::Duration;

const FIRST_LINE: &str = "frit writer 1";
/// Largest object of a writer that is read.
const RECORD_BYTES_MAX: u64 = 4096;

/// Contents of the object of a writer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WriterRecord {
    /// Identity of its process.
    pub(crate) process: String,
    /// Time for which the next writer waits, if this one does not release the bucket.
    pub(crate) wait: Duration,
    /// Serial number of the medium; 0 if it has none.
    pub(crate) serial: u64,
    /// A random number, by which a writer recognizes its own object.
    pub(crate) nonce: u64,
}

impl WriterRecord {
    pub(crate) fn new(wait: Duration, serial: u64) -> WriterRecord {
        let mut nonce = [0; 8];
        // Without random bytes, the process and its start time still differ from those of others.
        let _ = rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty());
        WriterRecord { process: process::identity(), wait, serial, nonce: u64::from_le_bytes(nonce) }
    }

    pub(crate) fn encode(&self) -> Arc<[u8]> {
        let text = format!(
            "{FIRST_LINE}\nprocess={}\nwait_ms={}\nserial={:016x}\nnonce={:016x}\n",
            self.process,
            self.wait.as_millis(),
            self.serial,
            self.nonce
        );
        text.into_bytes().into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<WriterRecord> {
        let mut lines = std::str::from_utf8(bytes).ok()?.lines();
        if lines.next() != Some(FIRST_LINE) {
            return None;
        }
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix('=').map(str::to_owned);
        Some(WriterRecord {
            process: value("process")?,
            wait: Duration::from_millis(value("wait_ms")?.parse().ok()?),
            serial: u64::from_str_radix(&value("serial")?, 16).ok()?,
            nonce: u64::from_str_radix(&value("nonce")?, 16).ok()?,
        })
    }

    /// Reads the record of an epoch; `None` if its object is missing or has another form.
    pub(crate) fn read(bucket: &dyn Bucket, epoch: u32) -> Result<Option<WriterRecord>, BucketError> {
        let name = names::writer(epoch);
        let size = match bucket.size(&name) {
            Err(BucketError::Missing) => return Ok(None),
            size => size?.min(RECORD_BYTES_MAX),
        };
        let mut bytes = vec![0; size as usize];
        match bucket.read(&name, 0, &mut bytes) {
            Err(BucketError::Missing) => Ok(None),
            read => read.map(|()| WriterRecord::decode(&bytes)),
        }
    }
}

/// The writers of a bucket.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Writers {
    /// The epochs, and `true` for those that released the bucket.
    epochs: Vec<(u32, bool)>,
}

impl Writers {
    /// Lists the writers of a bucket.
    pub(crate) fn list(bucket: &dyn Bucket) -> Result<Writers, BucketError> {
        let found = bucket.list(names::WRITER)?;
        let parsed: Vec<(u32, bool)> = found.iter().filter_map(|(n, _)| names::parse_writer(n)).collect();
        let closed = |epoch| parsed.contains(&(epoch, true));
        let epochs = parsed.iter().filter(|(_, is_closed)| !is_closed);
        Ok(Writers { epochs: epochs.map(|&(epoch, _)| (epoch, closed(epoch))).collect() })
    }

    /// Returns the highest epoch, and `true` if it released the bucket.
    pub(crate) fn last(&self) -> Option<(u32, bool)> {
        self.epochs.iter().max().copied()
    }

    pub(crate) fn has(&self, epoch: u32) -> bool {
        self.epochs.iter().any(|&(e, _)| e == epoch)
    }

    /// Returns the epochs below this one.
    pub(crate) fn before(&self, epoch: u32) -> impl Iterator<Item = u32> + '_ {
        self.epochs.iter().map(|&(e, _)| e).filter(move |&e| e < epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryBucket;

    #[test]
    fn a_record_is_read_back_and_another_text_is_not_one() {
        let record = WriterRecord::new(Duration::from_millis(2500), 0xabc);
        assert_eq!(WriterRecord::decode(&record.encode()), Some(record.clone()));
        assert_ne!(record.nonce, WriterRecord::new(Duration::ZERO, 0).nonce);
        for text in ["", "frit writer 2\n", "frit writer 1\nprocess=a\nwait_ms=x\n"] {
            assert_eq!(WriterRecord::decode(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn writers_are_listed_with_their_releases() {
        let bucket = MemoryBucket::default();
        let empty: Arc<[u8]> = Arc::new([]);
        for name in ["seg-9-1", "writer-2", "writer-10", "writer-2.closed", "writer-x"] {
            bucket.create(name, &empty).unwrap();
        }
        let writers = Writers::list(&bucket).unwrap();
        assert_eq!(writers.last(), Some((10, false)));
        assert!(writers.has(2) && !writers.has(3));
        assert_eq!(writers.before(10).collect::<Vec<_>>(), [2]);
        assert_eq!(WriterRecord::read(&bucket, 2), Ok(None));
        assert_eq!(WriterRecord::read(&bucket, 7), Ok(None));
    }
}
