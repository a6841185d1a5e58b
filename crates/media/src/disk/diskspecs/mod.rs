//! Import of DiskSim's drive descriptions: a `.diskspecs` file with the `.model` and `.seek` files
//! that it names.
//!
//! Source of the grammar and of the parameters' meaning: the DiskSim 4.0 reference manual (Bucy et
//! al., CMU-PDL-08-101) and the diskmodel manual. [`LoadedDrive::notes`] lists the parameters that have
//! no effect on the model, and the values that a file does not state.

mod block_reader;
mod drive;
mod model;
mod text;

use super::spec::DiskSpec;
use std::fmt;
use std::path::{Path, PathBuf};

/// A problem in a parameter file, with its location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskspecsError {
    /// Path of the file.
    pub file: PathBuf,
    /// Line number from 1 on; 0 for a problem of the whole file.
    pub line: usize,
    /// Description of the problem, and how to correct it.
    pub what: String,
}

impl fmt::Display for DiskspecsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.what),
            n => write!(f, "{}:{n}: {}", self.file.display(), self.what),
        }
    }
}

impl std::error::Error for DiskspecsError {}

/// A drive that was read, with remarks about the file.
#[derive(Clone, Debug)]
pub struct LoadedDrive {
    /// Parameters of the drive.
    pub spec: DiskSpec,
    /// Remarks: parameters that are ignored, values that are assumed, contradictions.
    pub notes: Vec<String>,
}

/// Reads the first drive of a `.diskspecs` (or `.parv`) file. If a `.parv` file is in the same
/// folder as a `.diskspecs` file, the transfer times of its buses apply to a drive that does not
/// state them.
///
/// # Errors
/// A problem, with file and line.
pub fn load(file: &Path) -> Result<LoadedDrive, DiskspecsError> {
    let mut loaded = from_blocks(file, &text::blocks(file)?)?;
    let parv = file.with_extension("parv");
    if loaded.spec.bus.read_ps == 0 && parv != file && parv.is_file() {
        drive::bus(&text::blocks(&parv)?, &mut loaded)?;
    }
    Ok(loaded)
}

/// Parses a drive from the text of `file`. Other files that it names are searched in the folder of
/// `file`.
///
/// # Errors
/// A problem, with file and line.
pub fn parse(file: &Path, text: &str) -> Result<LoadedDrive, DiskspecsError> {
    from_blocks(file, &text::blocks_of(file, text, 0)?)
}

fn from_blocks(file: &Path, blocks: &[text::ParameterBlock]) -> Result<LoadedDrive, DiskspecsError> {
    let whole = |what: &str| DiskspecsError { file: file.to_path_buf(), line: 0, what: what.into() };
    let mut loaded = if let Some(b) = blocks.iter().find(|b| b.kind == "disksim_disk") {
        drive::disk(b)?
    } else if let Some(b) = blocks.iter().find(|b| b.kind == "dm_disk") {
        drive::from_model_only(b)?
    } else {
        return Err(whole("has no disksim_disk block; name a .diskspecs file of DiskSim"));
    };
    drive::bus(blocks, &mut loaded)?;
    loaded.spec.check_buildable().map_err(|e| whole(&e.to_string()))?;
    Ok(loaded)
}

#[cfg(test)]
mod tests;
