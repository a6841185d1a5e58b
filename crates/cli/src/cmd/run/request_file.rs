//! The file of `frit run --requests`.

use frit_core::files::OutputFile;
use frit_replay::RequestLog;
use miette::{IntoDiagnostic, Result};
use std::cell::RefCell;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;

/// A log of requests, whose file replaces an existing one when the log is complete.
pub(super) struct RequestFile {
    pub(super) log: RequestLog,
    file: Rc<RefCell<OutputFile>>,
}

/// The part of the file that the log writes to.
struct SharedFile(Rc<RefCell<OutputFile>>);

impl Write for SharedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

impl RequestFile {
    /// Creates the file.
    ///
    /// # Errors
    /// No file can be written at the path.
    pub(super) fn create(path: &Path) -> Result<RequestFile> {
        let file = Rc::new(RefCell::new(OutputFile::create(path).into_diagnostic()?));
        Ok(RequestFile { log: RequestLog::new(SharedFile(Rc::clone(&file))), file })
    }

    /// Writes the rest, and gives the file its name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn commit(self) -> Result<()> {
        self.log.finish().into_diagnostic()?;
        match Rc::into_inner(self.file) {
            Some(file) => file.into_inner().commit().into_diagnostic(),
            None => Ok(()),
        }
    }
}
