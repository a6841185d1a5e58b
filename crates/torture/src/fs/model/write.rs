//! Writes and allocation.

use super::state::ModelState;
use frit_fs::{Allocate, Error, FILE_MAX, Ino, Result};

impl ModelState {
    /// Writes as many of the bytes as fit below the largest size of a file.
    pub(super) fn write(&mut self, ino: Ino, at: u64, data: &[u8]) -> Result<usize> {
        let now = self.now();
        self.file(ino)?;
        if data.is_empty() {
            return Ok(0);
        }
        if at >= FILE_MAX {
            return Err(Error::TooLarge);
        }
        let len = data.len().min(usize::try_from(FILE_MAX - at).unwrap_or(usize::MAX));
        let node = self.node_mut(ino)?;
        node.data.write(at, &data[..len]);
        node.modified(now);
        Ok(len)
    }

    pub(super) fn allocate(&mut self, ino: Ino, how: Allocate, at: u64, len: u64) -> Result<()> {
        let now = self.now();
        if len == 0 {
            return Err(Error::Invalid("a range without bytes"));
        }
        self.file(ino)?;
        let end = at.checked_add(len).filter(|&e| e <= FILE_MAX).ok_or(Error::TooLarge)?;
        let node = self.node_mut(ino)?;
        if matches!(how, Allocate::Punch | Allocate::Zero | Allocate::ZeroKeep) {
            node.data.zero(at, end);
        }
        if matches!(how, Allocate::Extend | Allocate::Zero) && end > node.data.size {
            node.data.resize(end);
        }
        node.modified(now);
        Ok(())
    }
}
