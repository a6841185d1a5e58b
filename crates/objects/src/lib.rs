//! Live stores of objects: directories, memory, and services such as S3.
//!
//! [`open`] returns the [`RemoteObjects`] of a medium. A [`Bucket`] is the place of the objects, and
//! knows only names and bytes. [`LiveObjects`] is the use of a bucket by one writer at a time: a
//! queue of uploads, repetition of failed requests, and the claims that keep two writers apart.
//! `docs/reference/objects.md` is the manual.

mod bucket;
#[cfg(feature = "cloud")]
mod cloud;
mod directory;
mod live;
mod memory;
mod names;
mod process;
mod read_only;
mod reader;
mod retry;
mod uploads;
mod writer;

pub use bucket::{Bucket, BucketError};
pub use directory::DirectoryBucket;
pub use live::{LiveObjects, LiveSettings};
pub use memory::MemoryBucket;
pub use read_only::ReadOnlyObjects;

use frit_core::{Error, Result};
use frit_media::object::{CloudService, ObjectUrl, RemoteObjects, StorePlace};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The way in which a store is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// For reading and writing.
    ReadWrite,
    /// For reading: changes stay in memory.
    ReadOnly,
    /// For a new volume. The store may belong to another one, whose objects are replaced.
    Replace,
}

/// Opens the store of a URL. Relative directories begin at `dir`. `connections` is the number of
/// uploads at a time, `serial` the serial number of the medium.
///
/// # Errors
/// A service for which this program was not built; settings or credentials that are missing; a
/// directory that cannot be used.
pub fn open(
    url: &ObjectUrl,
    dir: &Path,
    connections: u32,
    serial: u64,
    mode: OpenMode,
) -> Result<Box<dyn RemoteObjects>> {
    let settings = LiveSettings {
        timeout: url.timeout,
        connections: connections as usize,
        takeover_waits: url.takeover_waits,
        serial,
        replaces: mode == OpenMode::Replace,
    };
    let live = LiveObjects::new(&url.name, bucket_of(url, dir, mode)?, settings);
    Ok(match mode {
        OpenMode::ReadOnly => Box::new(ReadOnlyObjects::new(live)),
        OpenMode::ReadWrite | OpenMode::Replace => Box::new(live),
    })
}

/// Returns `true` if this program can use the store of a URL.
#[must_use]
pub fn supports(url: &ObjectUrl) -> bool {
    match url.place {
        StorePlace::Directory(_) | StorePlace::Memory(_) => true,
        StorePlace::Cloud { service: CloudService::S3, .. } => cfg!(feature = "s3"),
        StorePlace::Cloud { service: CloudService::Gs, .. } => cfg!(feature = "gs"),
        StorePlace::Cloud { service: CloudService::Az, .. } => cfg!(feature = "az"),
    }
}

/// Returns the number of objects in the store of a URL, those of writers included. A directory that
/// does not exist has none.
///
/// # Errors
/// As for [`open`]; the store does not answer.
pub fn count(url: &ObjectUrl, dir: &Path) -> Result<usize> {
    if let StorePlace::Directory(path) = &url.place
        && !dir.join(path).exists()
    {
        return Ok(0);
    }
    let bucket = bucket_of(url, dir, OpenMode::ReadOnly)?;
    let listed = retry::retry(Instant::now(), url.timeout, &retry::Stop::default(), || bucket.list(""));
    let names = listed.map_err(|e| Error::Medium {
        what: format!("the object store {} cannot be listed: {e}", url.name),
    })?;
    let own = |name: &str| names::parse_segment(name).is_some() || names::parse_writer(name).is_some();
    Ok(names.iter().filter(|(name, _)| own(name)).count())
}

/// Returns the bucket of a URL. Relative directories begin at `dir`. A directory is created unless
/// `mode` is that of a reader.
///
/// # Errors
/// As for [`open`].
pub fn bucket_of(url: &ObjectUrl, dir: &Path, mode: OpenMode) -> Result<Arc<dyn Bucket>> {
    if !supports(url) {
        let what = format!(
            "this frit was built without the service of {}; build it with the feature of that name, such as \
             `cargo build --features s3`",
            url.name
        );
        return Err(Error::Medium { what });
    }
    let failed =
        |e: BucketError| Error::Medium { what: format!("the object store {} cannot be used: {e}", url.name) };
    Ok(match &url.place {
        StorePlace::Directory(path) => {
            let creates = mode != OpenMode::ReadOnly;
            Arc::new(DirectoryBucket::open(&dir.join(path), creates).map_err(failed)?)
        }
        StorePlace::Memory(name) => MemoryBucket::named(name),
        #[cfg(feature = "cloud")]
        StorePlace::Cloud { .. } => Arc::new(cloud::CloudBucket::open(url).map_err(failed)?),
        #[cfg(not(feature = "cloud"))]
        StorePlace::Cloud { .. } => {
            return Err(failed(BucketError::Lasting("no service is built in".into())));
        }
    })
}
