//! Questions about files of which the kernel has writes that it has not sent (`--writeback`).
//!
//! The kernel sends them at the last close at the latest, so only open files can have some. The server does not know
//! which ranges they are in, and must not answer for them: `cp` skips what a server takes for a hole.

use frit_fs::{Attr, Ino, InodeType};
use parking_lot::Mutex;
use std::collections::HashMap;

/// Sectors of 512 bytes that an open file has at least: one block. `tar` takes a file without any for a single hole.
const SECTORS_MIN: u64 = 8;

/// The open files of a mount with a writeback cache; of others nothing is noted.
#[derive(Debug)]
pub(super) struct UnsentWrites {
    opens: Option<Mutex<HashMap<Ino, u32>>>,
}

impl UnsentWrites {
    pub(super) fn new(writeback: bool) -> UnsentWrites {
        UnsentWrites { opens: writeback.then(Mutex::default) }
    }

    pub(super) fn opened(&self, ino: Ino) {
        if let Some(opens) = &self.opens {
            *opens.lock().entry(ino).or_default() += 1;
        }
    }

    pub(super) fn released(&self, ino: Ino) {
        let Some(opens) = &self.opens else { return };
        let mut opens = opens.lock();
        if let Some(count) = opens.get_mut(&ino) {
            *count -= 1;
            if *count == 0 {
                opens.remove(&ino);
            }
        }
    }

    /// Returns `true` if the server knows where files have data.
    pub(super) fn holes_known(&self) -> bool {
        self.opens.is_none()
    }

    /// Returns attributes that claim no hole where the kernel may have data.
    pub(super) fn shown(&self, attr: Attr) -> Attr {
        let Some(opens) = &self.opens else { return attr };
        if attr.kind != InodeType::File || !opens.lock().contains_key(&attr.ino) {
            return attr;
        }
        Attr { sectors: attr.sectors.max(SECTORS_MIN), ..attr }
    }
}
