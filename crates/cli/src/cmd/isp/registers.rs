//! `frit isp registers`.

use crate::output::{print, print_json, right, table, text};
use frit_fs::{Medium, RegisterStatus, read_registers};
use frit_isp::{Command, Status};
use miette::{Result, miette};
use serde::Serialize;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of the command.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Image of a file system, or directory of a pool. It may be mounted.
    image: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct SetJson {
    number: u64,
    status: &'static str,
    command: &'static str,
    inode: u64,
    offset: u64,
    /// Length of the range; `null`: up to the end of the file.
    length: Option<u64>,
    error: u64,
    /// Status of the result, if the instruction failed.
    reason: Option<&'static str>,
    bytes_scanned: u64,
    wall_ns: u64,
    /// The first four words of a query, with their counts and first positions.
    words: Vec<RegisterWordJson>,
}

#[derive(Serialize)]
struct RegisterWordJson {
    word: String,
    count: u64,
    first: Option<u64>,
}

/// The blocks of an image that hold superblocks and registers, read once.
struct ImageHead {
    bytes: u64,
    file: File,
}

impl Medium for ImageHead {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        // Bytes that cannot be read are zeros, which are not a superblock.
        if self.file.read_exact_at(into, at).is_err() {
            into.fill(0);
        }
    }

    fn write(&self, _: u64, _: &[u8]) {}
    fn write_data(&self, _: u64, _: &[u8]) {}
    fn zero(&self, _: u64, _: u64) {}
    fn fence(&self) {}

    fn sync(&self) -> frit_fs::Result<()> {
        Ok(())
    }
}

/// Prints the sets of registers that were used since the last mount.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let image = super::super::image::image_path(&args.image);
    if args.image.is_dir() && !image.is_file() {
        return Err(miette!(
            help = "name the image that frit mkfs made, or the directory of a pool; `findmnt -t fuse.ispfs` shows the \
                    images that are mounted",
            "{} is a directory, and not a pool: it has no file `image`",
            args.image.display()
        ));
    }
    let opened = File::open(&image).and_then(|file| Ok((file.metadata()?.len() / 4096 * 4096, file)));
    let (bytes, file) = opened.map_err(|e| miette!("{}: {e}", image.display()))?;
    let sets = read_registers(&ImageHead { bytes, file }).map_err(|e| miette!("{}: {e}", image.display()))?;
    let mut used: Vec<SetJson> = sets
        .into_iter()
        .filter(|set| set.status != RegisterStatus::Unused)
        .map(|set| SetJson {
            number: set.number,
            status: set.status.into(),
            command: Command::NAMES.get((set.command as usize).wrapping_sub(1)).copied().unwrap_or("unknown"),
            inode: set.ino,
            offset: set.offset,
            length: Some(set.len).filter(|len| *len != u64::MAX),
            error: set.error,
            reason: (set.status == RegisterStatus::Failed).then(|| reason(set.error)),
            bytes_scanned: set.scanned,
            wall_ns: set.time_ns,
            words: set
                .queries
                .iter()
                .zip(set.counts.iter().zip(&set.firsts))
                .map(|(word, (count, first))| RegisterWordJson {
                    word: String::from_utf8_lossy(word).into_owned(),
                    count: *count,
                    first: Some(*first).filter(|first| *first != u64::MAX),
                })
                .collect(),
        })
        .collect();
    used.sort_by_key(|set| set.number);
    if args.json {
        print_json(&used)?;
        return Ok(ExitCode::SUCCESS);
    }
    if used.is_empty() {
        print(&format!("{}: no instruction since the last mount\n", image.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut shown = table(&["number", "status", "command", "inode", "bytes scanned", "time", "words"]);
    for set in &used {
        let words: Vec<String> = set.words.iter().map(|w| format!("{} {}", w.word, w.count)).collect();
        let time = format!("{:.3} ms", set.wall_ns as f64 / 1e6);
        shown.add_row([
            set.number.to_string(),
            set.reason.map_or_else(|| set.status.to_owned(), |reason| format!("{}: {reason}", set.status)),
            set.command.to_owned(),
            set.inode.to_string(),
            set.bytes_scanned.to_string(),
            time,
            words.join(", "),
        ]);
    }
    [0, 3, 4, 5].into_iter().for_each(|column| right(&mut shown, column));
    print(&text(&shown))?;
    Ok(ExitCode::SUCCESS)
}

/// Name of the status of a result by its code.
fn reason(code: u64) -> &'static str {
    let status = u32::try_from(code).ok().and_then(Status::from_repr);
    status.map_or("unknown", Into::into)
}
