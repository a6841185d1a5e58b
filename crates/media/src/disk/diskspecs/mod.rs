//! Drives as DiskSim describes them: a `.diskspecs` file, the `.model` and `.seek` files that it names.
//!
//! Source of the grammar and of the parameters' meaning: the DiskSim 4.0 reference manual (Bucy et al.,
//! CMU-PDL-08-101) and the diskmodel manual. Parameters that do not change what the model does are listed
//! in [`Loaded::notes`], and so is what a file leaves open.

mod drive;
mod model;
mod text;

use super::spec::DiskSpec;
use std::fmt;
use std::path::{Path, PathBuf};

/// What is wrong with a parameter file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 when it is about the whole file.
    pub line: usize,
    /// What is wrong, and how to mend it.
    pub what: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.what),
            n => write!(f, "{}:{n}: {}", self.file.display(), self.what),
        }
    }
}

impl std::error::Error for ReadError {}

/// A drive that was read, and what is to be said about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The drive.
    pub spec: DiskSpec,
    /// Parameters that are ignored, values that are assumed, things that do not agree.
    pub notes: Vec<String>,
}

/// Reads the first drive of a `.diskspecs` (or `.parv`) file. When a `.parv` file lies beside a
/// `.diskspecs` file, the transfer times of its buses count for a drive that leaves them open.
///
/// # Errors
/// What is wrong, with file and line.
pub fn load(file: &Path) -> Result<Loaded, ReadError> {
    let mut loaded = from_blocks(file, &text::blocks(file)?)?;
    let parv = file.with_extension("parv");
    if loaded.spec.bus.read_ps == 0 && parv != file && parv.is_file() {
        drive::bus(&text::blocks(&parv)?, &mut loaded)?;
    }
    Ok(loaded)
}

/// Reads a drive from a text that stands for `file`: what it names is looked for beside that.
///
/// # Errors
/// What is wrong, with file and line.
pub fn parse(file: &Path, text: &str) -> Result<Loaded, ReadError> {
    from_blocks(file, &text::blocks_of(file, text, 0)?)
}

fn from_blocks(file: &Path, blocks: &[text::Block]) -> Result<Loaded, ReadError> {
    let whole = |what: &str| ReadError { file: file.to_path_buf(), line: 0, what: what.into() };
    let mut loaded = if let Some(b) = blocks.iter().find(|b| b.kind == "disksim_disk") {
        drive::disk(b)?
    } else if let Some(b) = blocks.iter().find(|b| b.kind == "dm_disk") {
        drive::bare(b)?
    } else {
        return Err(whole("has no disksim_disk block; name a .diskspecs file of DiskSim"));
    };
    drive::bus(blocks, &mut loaded)?;
    loaded.spec.check_whole().map_err(|e| whole(&e.to_string()))?;
    Ok(loaded)
}

#[cfg(test)]
mod tests;
