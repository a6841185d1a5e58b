//! Faults of a store in use: errors of the host, and media that return wrong results.

use crate::block::nand_layout::NandLayout;
use frit_core::{Error, Result};
use std::collections::HashMap;
use std::io::ErrorKind;

/// A fault and its time.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Medium that it strikes.
    pub medium: u8,
    /// Number of accesses of its kind that succeed before it.
    pub after: u32,
    /// `true` if it also strikes every later access.
    pub sticky: bool,
    /// Kind of the fault.
    pub what: FaultKind,
    /// Number of times that it struck.
    pub struck: u32,
    /// Address and length of the access that it struck last.
    pub place: (u64, usize),
    /// Bytes before each write, for stale reads.
    former: HashMap<u64, Vec<u8>>,
    /// Spare record that is to be dropped or misplaced with its page.
    follow: Option<Follow>,
}

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// A read fails with an error of the host.
    ReadError(ErrorKind),
    /// A write fails with an error of the host, after about this many 256ths of its bytes; only
    /// whole sectors are written.
    WriteError(ErrorKind, u8),
    /// A sync fails.
    SyncError(ErrorKind),
    /// A sync by another caller, just before one of the layer, fails. The kernel reports it to that caller.
    SyncErrorToAnother(ErrorKind),
    /// A read returns one wrong bit.
    FlipOnRead {
        /// Number of the bit within the read.
        bit: u32,
    },
    /// A write is reported as complete but is lost.
    Lost,
    /// A write goes to a wrong address. NAND pages (with their records) are displaced by pages,
    /// other media by bytes.
    Misplaced {
        /// Distance from the correct address.
        by: u64,
    },
    /// A read returns the contents before the last write.
    Stale,
}

impl FaultKind {
    /// Returns `true` if the fault strikes syncs.
    #[must_use]
    pub fn is_of_syncs(self) -> bool {
        matches!(self, FaultKind::SyncError(_) | FaultKind::SyncErrorToAnother(_))
    }
}

#[derive(Clone, Copy, Debug)]
enum Follow {
    Dropped(u64),
    Moved(u64, u64),
}

/// Effect of a fault on a write.
#[derive(Debug)]
pub struct WriteEffect {
    /// Bytes that are written, with their addresses.
    pub lands: Vec<(u64, Vec<u8>)>,
    /// Result that the caller receives.
    pub result: Result<()>,
}

impl Fault {
    /// Creates a fault that strikes once.
    #[must_use]
    pub fn new(medium: u8, after: u32, what: FaultKind) -> Fault {
        Fault {
            medium,
            after,
            sticky: false,
            what,
            struck: 0,
            place: (0, 0),
            former: HashMap::new(),
            follow: None,
        }
    }

    /// Returns the same fault, made persistent.
    #[must_use]
    pub fn sticky(self) -> Fault {
        Fault { sticky: true, ..self }
    }

    /// Returns `true` if the fault strikes this access.
    fn strikes(&mut self, at: u64, len: usize) -> bool {
        if self.after > 0 {
            self.after -= 1;
            return false;
        }
        let now = self.sticky || self.struck == 0;
        if now {
            self.struck += 1;
            self.place = (at, len);
        }
        now
    }

    fn error(&self, what: &str, kind: ErrorKind) -> Error {
        Error::Io {
            what: format!("injected failure of a {what} on medium {}", self.medium),
            source: kind.into(),
        }
    }

    /// Applies the fault to a read of these bytes.
    ///
    /// # Errors
    /// The planned error.
    pub fn read(&mut self, medium: u8, at: u64, into: &mut [u8]) -> Result<()> {
        if medium != self.medium || into.is_empty() {
            return Ok(());
        }
        let what = self.what;
        match what {
            FaultKind::ReadError(kind) if self.strikes(at, into.len()) => Err(self.error("read", kind)),
            FaultKind::FlipOnRead { bit } if self.strikes(at, into.len()) => {
                let bit = bit as usize % (into.len() * 8);
                into[bit / 8] ^= 1 << (bit % 8);
                Ok(())
            }
            FaultKind::Stale => {
                if let Some(old) = self.former.get(&at).filter(|o| o.len() == into.len()).cloned()
                    && old != into
                    && self.strikes(at, into.len())
                {
                    into.copy_from_slice(&old);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Applies the fault to a write, and returns the bytes to write.
    #[must_use]
    pub fn write(&mut self, medium: u8, nand: Option<&NandLayout>, at: u64, data: &[u8]) -> WriteEffect {
        let whole = || WriteEffect { lands: vec![(at, data.to_vec())], result: Ok(()) };
        if medium != self.medium {
            return whole();
        }
        let page = nand.filter(|p| at < p.records_at()).map(|p| at / p.page_bytes);
        // The spare record follows its page: both belong to one program command.
        if let (Some(plan), Some(follow)) = (nand, self.follow) {
            let (Follow::Dropped(page) | Follow::Moved(page, _)) = follow;
            if let Some(copy) = plan.copy_at(page, at) {
                if copy + 1 == plan.record_copies {
                    self.follow = None;
                }
                let lands = match follow {
                    Follow::Dropped(_) => Vec::new(),
                    Follow::Moved(_, to) => vec![(plan.record_at(to, copy), data.to_vec())],
                };
                return WriteEffect { lands, result: Ok(()) };
            }
        }
        let what = self.what;
        match what {
            FaultKind::WriteError(kind, part) if self.strikes(at, data.len()) => {
                // A short write ends at a sector boundary of the file.
                let want = at + data.len() as u64 * u64::from(part) / 256;
                let n = (want / 512 * 512).saturating_sub(at) as usize;
                WriteEffect { lands: vec![(at, data[..n].to_vec())], result: Err(self.error("write", kind)) }
            }
            FaultKind::Lost if Self::eligible(nand, page) && self.strikes(at, data.len()) => {
                self.follow = page.map(Follow::Dropped);
                WriteEffect { lands: Vec::new(), result: Ok(()) }
            }
            FaultKind::Misplaced { by } if Self::eligible(nand, page) && self.strikes(at, data.len()) => {
                match (nand, page) {
                    (Some(plan), Some(page)) => {
                        let to = (page + by) % plan.pages;
                        self.follow = Some(Follow::Moved(page, to));
                        WriteEffect { lands: vec![(to * plan.page_bytes, data.to_vec())], result: Ok(()) }
                    }
                    _ => WriteEffect { lands: vec![(at + by, data.to_vec())], result: Ok(()) },
                }
            }
            _ => whole(),
        }
    }

    /// Returns `true` if a write can be lost or misplaced: programs of pages and writes to PCM, but
    /// not the device's own metadata.
    fn eligible(nand: Option<&NandLayout>, page: Option<u64>) -> bool {
        nand.is_none() || page.is_some()
    }

    /// Applies the fault to a sync.
    ///
    /// # Errors
    /// The planned error.
    pub fn sync(&mut self, medium: u8) -> Result<()> {
        let what = self.what;
        match what {
            FaultKind::SyncError(kind) | FaultKind::SyncErrorToAnother(kind)
                if medium == self.medium && self.strikes(0, 0) =>
            {
                Err(self.error("sync", kind))
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if another caller gets the error of the next sync.
    #[must_use]
    pub fn tells_another(&self, medium: u8) -> bool {
        let another = matches!(self.what, FaultKind::SyncErrorToAnother(_));
        another && medium == self.medium && self.after == 0 && (self.sticky || self.struck == 0)
    }

    /// Records the bytes that a write will replace, for [`FaultKind::Stale`].
    pub fn remember(&mut self, at: u64, old: &[u8]) {
        if self.what == FaultKind::Stale {
            self.former.insert(at, old.to_vec());
        }
    }
}
