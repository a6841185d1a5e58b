//! Files whose reads and writes are measured.

use super::ext4;
use super::live::{EXT4, LIBRARY, LIBRARY_ON_TMPFS, TMPFS};
use crate::kinds::this_machine::new_file;
use crate::{Error, Result};
use frit_fs::{Caller, FormatOptions, Fs, Mapped, OpenFile};
use std::os::unix::fs::FileExt;

/// Access to a file. The error is a message.
pub(super) trait Target {
    fn read(&self, at: u64, into: &mut [u8]) -> std::result::Result<(), String>;
    fn write(&self, at: u64, data: &[u8]) -> std::result::Result<(), String>;
}

impl Target for std::fs::File {
    fn read(&self, at: u64, into: &mut [u8]) -> std::result::Result<(), String> {
        self.read_exact_at(into, at).map_err(|e| e.to_string())
    }

    fn write(&self, at: u64, data: &[u8]) -> std::result::Result<(), String> {
        self.write_all_at(data, at).map_err(|e| e.to_string())
    }
}

/// Returns an error if an access was cut.
fn whole(done: std::result::Result<usize, frit_fs::Error>, len: usize) -> std::result::Result<(), String> {
    match done {
        Ok(n) if n == len => Ok(()),
        Ok(n) => Err(format!("{n} of {len} bytes")),
        Err(e) => Err(e.to_string()),
    }
}

impl Target for frit_fs::File<'_, Mapped> {
    fn read(&self, at: u64, into: &mut [u8]) -> std::result::Result<(), String> {
        whole(self.read_at(at, into), into.len())
    }

    fn write(&self, at: u64, data: &[u8]) -> std::result::Result<(), String> {
        whole(self.write_at(at, data), data.len())
    }
}

/// The file systems of a measurement.
pub(super) struct Places {
    library: Fs<Mapped>,
    on_tmpfs: Fs<Mapped>,
    tmpfs: std::fs::File,
    ext4: std::result::Result<std::fs::File, String>,
}

/// The files of the library.
pub(super) struct LibraryFiles<'p> {
    memory: frit_fs::File<'p, Mapped>,
    on_tmpfs: frit_fs::File<'p, Mapped>,
}

impl Places {
    /// Creates images in memory and on tmpfs, a file on tmpfs, and EXT4 if there is no reason against it.
    pub(super) fn new(bytes: u64, without_ext4: Option<&str>) -> Result<Places> {
        let failed = Error::ThisMachine;
        let image_bytes = (bytes + bytes / 4 + (16 << 20)) / 4096 * 4096;
        let options = || FormatOptions { force: true, ..FormatOptions::default() };
        let library = Fs::format(Mapped::anonymous(image_bytes)?, options())?;
        let image = new_file(image_bytes).map_err(failed)?;
        let on_tmpfs = Fs::format(Mapped::file(image.path())?, options())?;
        // It loses its name at once, so that a killed program leaves nothing.
        let tmpfs = new_file(bytes).map_err(failed)?.into_file();
        let ext4 = without_ext4.map_or_else(|| ext4::file(bytes), |why| Err(why.to_owned()));
        Ok(Places { library, on_tmpfs, tmpfs, ext4 })
    }

    /// Returns the reason why EXT4 is missing.
    pub(super) fn ext4_missing(&self) -> Option<String> {
        self.ext4.as_ref().err().cloned()
    }

    /// Creates the files of the library.
    pub(super) fn library_files(&self) -> Result<LibraryFiles<'_>> {
        let (caller, options) = (Caller::ROOT, OpenFile::CREATE);
        let memory = self.library.open_file(&caller, "file", options)?;
        let on_tmpfs = self.on_tmpfs.open_file(&caller, "file", options)?;
        Ok(LibraryFiles { memory, on_tmpfs })
    }

    /// Returns all files with their names.
    pub(super) fn targets<'t>(
        &'t self,
        library: &'t LibraryFiles<'t>,
    ) -> Vec<(&'static str, &'t dyn Target)> {
        let mut all: Vec<(&'static str, &dyn Target)> =
            vec![(LIBRARY, &library.memory), (LIBRARY_ON_TMPFS, &library.on_tmpfs), (TMPFS, &self.tmpfs)];
        if let Ok(file) = &self.ext4 {
            all.push((EXT4, file));
        }
        all
    }
}
