//! Ways to the engine: the command file of a mounted directory, or an engine over an image that is not
//! mounted.

use super::command_file;
use crate::cmd::image::{self, LockedImage, OverlayArgs};
use frit_core::size;
use frit_fs::{Caller, Ino, InodeType, Paths};
use frit_isp::{Channel, Destination, Engine, ResolveError, Resolver, Source, Target};
use frit_serve::fuse::file_system::{EngineContents, resolve_error};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Number of bytes of a read of results.
const READ_BYTES: usize = 1 << 20;

/// Image with the file, if it is not on a mounted file system.
#[derive(clap::Args, Debug)]
pub(super) struct ImageArgs {
    /// The file is in this image, pool or volume, which is not mounted.
    #[arg(long, value_name = "IMAGE")]
    pub(super) image: Option<PathBuf>,
    #[command(flatten)]
    pub(super) changes: OverlayArgs,
}

/// Range of the file of an instruction.
#[derive(clap::Args, Debug)]
pub(super) struct RangeArgs {
    /// First byte of the range.
    #[arg(long, value_name = "BYTES", value_parser = size::parse, default_value = "0")]
    offset: u64,
    /// Length of the range. [default: up to the end of the file]
    #[arg(long, value_name = "BYTES", value_parser = size::parse)]
    length: Option<u64>,
}

impl RangeArgs {
    /// Adds the range to an instruction.
    pub(super) fn add_to(&self, instruction: &mut Map<String, Value>) {
        instruction.insert("offset".into(), json!(self.offset));
        instruction.extend(self.length.map(|length| ("length".into(), json!(length))));
    }
}

/// Result of an instruction, and the work of this program for it.
pub(super) struct Answered {
    /// Line of the result, and its payload.
    pub(super) bytes: Vec<u8>,
    /// System calls on the command file: open, begin, write, reads, close.
    pub(super) requests: u64,
    /// Processor time of this program.
    pub(super) cpu: Duration,
}

impl Answered {
    /// Returns the line of the result without its end, and the payload.
    pub(super) fn parts(&self) -> (&[u8], &[u8]) {
        let end = self.bytes.iter().position(|byte| *byte == b'\n').unwrap_or(self.bytes.len());
        (&self.bytes[..end], self.bytes.get(end + 1..).unwrap_or_default())
    }
}

/// Gives an instruction to the command file of a directory, or to an engine over an image.
///
/// # Errors
/// The instruction is empty; the directory has no command file; the image cannot be opened.
pub(super) fn ask(directory: &Path, instruction: &str, image: &ImageArgs) -> Result<Answered> {
    if instruction.trim().is_empty() {
        return Err(miette!(
            help = "for example: frit isp run DIRECTORY '{\"words\": [\"error\"], \"file\": \"log.txt\"}'",
            "the instruction is empty"
        ));
    }
    match &image.image {
        Some(place) => in_image(place, directory, instruction, &image.changes),
        None => in_directory(directory, instruction),
    }
}

fn in_directory(directory: &Path, instruction: &str) -> Result<Answered> {
    let began = cpu_time();
    let mut file = command_file::open(directory)?;
    let failed = || format!("cannot use the command file of {}", directory.display());
    file.write_all(format!("{instruction}\n").as_bytes()).into_diagnostic().wrap_err_with(failed)?;
    let mut requests = 3;
    let mut part = vec![0; READ_BYTES];
    let bytes = collect(|| {
        requests += 1;
        let len = file.read(&mut part).into_diagnostic().wrap_err_with(failed)?;
        Ok(part[..len].to_vec())
    })?;
    drop(file);
    Ok(Answered { bytes, requests: requests + 1, cpu: cpu_time().saturating_sub(began) })
}

/// Reads the line of a result and its payload. A read without bytes is the end.
fn collect(mut read: impl FnMut() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut whole = None;
    while whole.is_none_or(|whole| bytes.len() < whole) {
        let part = read()?;
        if part.is_empty() {
            break;
        }
        let ends = part.iter().position(|byte| *byte == b'\n').map(|end| bytes.len() + end);
        bytes.extend(part);
        if let (None, Some(end)) = (whole, ends) {
            let line: Value = serde_json::from_slice(&bytes[..end]).unwrap_or_default();
            whole = Some(end + 1 + line["payload_bytes"].as_u64().unwrap_or(0) as usize);
        }
    }
    Ok(bytes)
}

fn in_image(place: &Path, directory: &Path, instruction: &str, changes: &OverlayArgs) -> Result<Answered> {
    let began = cpu_time();
    // The lock is held until the file system is closed.
    let (files, _locked) = if image::is_volume(place) {
        (Arc::new(image::open_on_volume(place, false)?), None)
    } else {
        let pool = image::open_pool(place).map_err(|e| miette!("{}: {e}", place.display()))?;
        let locked = LockedImage::open(&image::image_path(place))?;
        (Arc::new(image::open(&image::image_path(place), pool, false, changes)?), Some(locked))
    };
    if let Err(reason) = check_directory(&files, directory) {
        image::close(files)?;
        return Err(miette!("{}: there is no directory {}: {reason}", place.display(), directory.display()));
    }
    let engine = Arc::new(Engine::default());
    let channel = Channel::new(Arc::clone(&engine));
    let directory = directory.to_owned();
    let resolver = ImageFiles { files: Arc::clone(&files), directory, reads: Cell::default() };
    // The first instruction of a channel is always accepted.
    let _ = channel.write(format!("{instruction}\n").as_bytes(), &resolver);
    let bytes = collect(|| Ok(channel.read(READ_BYTES)))?;
    drop((channel, engine, resolver));
    image::close(files)?;
    Ok(Answered { bytes, requests: 0, cpu: cpu_time().saturating_sub(began) })
}

/// Fails if a path of an image does not lead to a directory. Otherwise a file below would be reported as
/// missing.
fn check_directory(files: &frit_fs::Fs<frit_fs::Image>, path: &Path) -> frit_fs::Result<()> {
    // Names that are not UTF-8 are refused with the file.
    let Some(path) = path.to_str() else { return Ok(()) };
    match files.resolve(&Caller::ROOT, path, true)?.kind {
        InodeType::Directory => Ok(()),
        _ => Err(frit_fs::Error::NotDirectory),
    }
}

/// Files of an image that is not mounted, with the rights of the superuser of the image.
struct ImageFiles {
    files: Arc<frit_fs::Fs<frit_fs::Image>>,
    directory: PathBuf,
    /// File that the instruction reads.
    reads: Cell<Option<Ino>>,
}

impl ImageFiles {
    fn open(&self, target: &Target, writes: bool) -> Result<(Ino, Arc<EngineContents>), ResolveError> {
        let ino = match target {
            Target::Inode(number) => Ino(*number),
            Target::Extents(_) => return Err(ResolveError::NotFile),
            Target::Name(path) => {
                let path = self.directory.join(path);
                let path =
                    path.to_str().ok_or_else(|| ResolveError::Invalid("the path is not UTF-8".into()))?;
                self.files.resolve(&Caller::ROOT, path, true).map_err(resolve_error)?.ino
            }
        };
        let opened = frit_fs::InStorage::open_contents(Arc::clone(&self.files), &Caller::ROOT, ino, writes);
        opened.map(|contents| (ino, Arc::new(EngineContents::new(contents)))).map_err(resolve_error)
    }
}

impl Resolver for ImageFiles {
    fn source(&self, target: &Target) -> Result<Arc<dyn Source>, ResolveError> {
        let (ino, contents) = self.open(target, false)?;
        self.reads.set(Some(ino));
        Ok(contents)
    }

    fn destination(&self, target: &Target) -> Result<Arc<dyn Destination>, ResolveError> {
        let (ino, contents) = self.open(target, true)?;
        if self.reads.get() == Some(ino) {
            return Err(ResolveError::Invalid(
                "the file is the one that the instruction reads; name another".into(),
            ));
        }
        Ok(contents)
    }
}

/// Returns the processor time of this process.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
