//! The personalities of filebench, run on a model of a file system.
//!
//! From filebench are the files, their sizes, the loops of operations, the threads, and the order in
//! which files are picked. The model turns the operations into block requests: allocation, metadata,
//! a journal, and a page cache. `docs/reference/filebench.md` states which part is which.
//!
//! | file | subject |
//! |---|---|
//! | `personality` | defaults and loops of filebench |
//! | `file_set` | sizes of files, and the rotation in which they are picked |
//! | `run` | threads that execute the loops |
//! | `layout`, `extents` | places on the disk; free space |
//! | `page_cache` | cached blocks in LRU order, and dirty ones by age |
//! | `file_system`, `writeback` | operations on files; writeback and journal |

mod extents;
mod file_set;
mod file_system;
mod layout;
mod page_cache;
mod personality;
mod run;
#[cfg(test)]
mod tests;
mod writeback;

pub use personality::{PERSONALITIES, Personality};
pub(super) use run::FilebenchRun;

use super::spec::{GeneratorSpec, common, count, finish, share};
use super::{Generator, RequestModel};
use crate::Result;
use crate::reading::FactSource;
use file_system::{FileSystem, FsOptions};
use frit_core::size;
use layout::{BLOCK_BYTES, Layout};
use run::FilebenchSetup;

/// Parses a size in bytes and returns it in blocks of 4 KiB.
fn blocks(text: &str) -> std::result::Result<u32, String> {
    match size::parse(text)? {
        bytes if bytes > 0 && bytes % BLOCK_BYTES == 0 => {
            u32::try_from(bytes / BLOCK_BYTES).map_err(|_| "use less than 16 TiB".into())
        }
        _ => Err("use a multiple of 4 KiB".into()),
    }
}

/// Parses a size in bytes below 4 GiB.
fn bytes(text: &str) -> std::result::Result<u32, String> {
    match u32::try_from(size::parse(text)?) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("use a size above 0 and below 4 GiB".into()),
    }
}

/// Parses a number of items.
fn items(text: &str) -> std::result::Result<u32, String> {
    u32::try_from(count(text)?).ok().filter(|&n| n < u32::MAX).ok_or_else(|| "use fewer than 2^32".into())
}

/// Parses a time in seconds and returns it in nanoseconds.
fn seconds(text: &str) -> std::result::Result<u64, String> {
    match text.parse::<f64>() {
        Ok(s) if s > 0.0 && s <= 1e9 => Ok((s * 1e9) as u64),
        _ => Err("use a time in seconds".into()),
    }
}

/// Builds the generator of a personality.
pub(super) fn build(p: &'static Personality, mut spec: GeneratorSpec) -> Result<Generator> {
    let common = common(&mut spec)?;
    let setup = FilebenchSetup {
        personality: p,
        files: spec.take("files", &p.files.to_string(), items)?,
        mean_file_bytes: spec.take("filesize", &p.mean_file_bytes.to_string(), bytes)?,
        dir_width: spec.take("dirwidth", &p.dir_width.to_string(), items)?,
        preallocated: spec.take("prealloc", &p.preallocated.to_string(), share)?,
        threads: spec.take("threads", &p.threads.to_string(), items)?,
        append_bytes: spec.take("append", &p.append_bytes.to_string(), bytes)?,
        seed: common.seed,
    };
    let disk = spec.take("span", "4G", blocks)?;
    let cached_blocks = spec.take("cache", "1G", blocks)?.max(64);
    let dirty = spec.take("dirty", "0.1", share)?;
    let options = FsOptions {
        cached_blocks,
        dirty_blocks: (f64::from(cached_blocks) * dirty) as usize,
        age_ns: spec.take("age", "30", seconds)?,
        commit_ns: spec.take("commit", "5", seconds)?,
        read_blocks: spec.take("readahead", "128K", blocks)?,
        write_blocks: spec.take("request", "512K", blocks)?,
    };
    // The log of the webserver is one more file.
    let Some(layout) = Layout::new(disk, setup.files.saturating_add(1), setup.dir_width) else {
        return Err(spec.bad("the span is too small for the metadata of the files"));
    };
    let fs = FileSystem::new(options, layout, setup.files + 1);
    let Some(run) = FilebenchRun::new(&setup, fs) else {
        return Err(spec.bad("the files fill more than nine tenths of the span; use fewer or smaller files"));
    };
    let mut g = finish(&spec, &common, RequestModel::Filebench(Box::new(run)), p.about)?;
    let published = "files, sizes, directories, threads, append size and loop of filebench 1.5";
    g.reading.fact("published", published.to_owned(), FactSource::Fixed);
    let model = "blocks, metadata, journal, page cache and rate of operations";
    g.reading.fact("model", model.to_owned(), FactSource::Assumed("see docs/reference/filebench.md".into()));
    Ok(g)
}
