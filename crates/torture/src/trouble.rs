//! What goes wrong in a store while it is used: errors of the host, and media that lie.

use crate::medium::NandPlan;
use frit_core::{Error, Result};
use std::collections::HashMap;
use std::io::ErrorKind;

/// A fault, and when it strikes.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// The medium that it strikes.
    pub medium: u8,
    /// Accesses of its kind that go well before it.
    pub after: u32,
    /// Whether it stays: every later access meets it too.
    pub sticky: bool,
    /// What it does.
    pub what: What,
    /// How often it struck.
    pub struck: u32,
    /// Where it struck last: address and length.
    pub place: (u64, usize),
    /// What stood where something was written, for reads that are late.
    former: HashMap<u64, Vec<u8>>,
    /// A record that follows its page to a wrong place, or nowhere.
    follow: Option<Follow>,
}

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A read fails with an error of the host.
    ReadError(ErrorKind),
    /// A write fails with an error of the host; about this many 256ths of its bytes land, whole sectors.
    WriteError(ErrorKind, u8),
    /// A sync fails.
    SyncError(ErrorKind),
    /// A read gives one bit wrong.
    FlipOnRead {
        /// Which, of the bits that are read.
        bit: u32,
    },
    /// A write is lost: reported as done, and not done.
    Lost,
    /// A write lands elsewhere: NAND pages (with their record) this many pages on, others so many bytes on.
    Misplaced {
        /// How far.
        by: u64,
    },
    /// A read gives what stood there before the last write.
    Stale,
}

#[derive(Clone, Copy, Debug)]
enum Follow {
    Dropped(u64),
    Moved(u64, u64),
}

/// What becomes of a write.
#[derive(Debug)]
pub struct Verdict {
    /// What lands, and where.
    pub lands: Vec<(u64, Vec<u8>)>,
    /// What the caller is told.
    pub result: Result<()>,
}

impl Trouble {
    /// A fault that strikes once.
    #[must_use]
    pub fn new(medium: u8, after: u32, what: What) -> Trouble {
        Trouble {
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

    /// The same, that stays.
    #[must_use]
    pub fn sticky(self) -> Trouble {
        Trouble { sticky: true, ..self }
    }

    /// Whether the fault strikes now.
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
            what: format!("planned failure of a {what} on medium {}", self.medium),
            source: kind.into(),
        }
    }

    /// A read gave these bytes.
    ///
    /// # Errors
    /// The planned one.
    pub fn read(&mut self, medium: u8, at: u64, into: &mut [u8]) -> Result<()> {
        if medium != self.medium || into.is_empty() {
            return Ok(());
        }
        let what = self.what;
        match what {
            What::ReadError(kind) if self.strikes(at, into.len()) => Err(self.error("read", kind)),
            What::FlipOnRead { bit } if self.strikes(at, into.len()) => {
                let bit = bit as usize % (into.len() * 8);
                into[bit / 8] ^= 1 << (bit % 8);
                Ok(())
            }
            What::Stale => {
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

    /// What becomes of a write; `old` is asked by the medium for stale reads.
    #[must_use]
    pub fn write(&mut self, medium: u8, nand: Option<&NandPlan>, at: u64, data: &[u8]) -> Verdict {
        let whole = || Verdict { lands: vec![(at, data.to_vec())], result: Ok(()) };
        if medium != self.medium {
            return whole();
        }
        let page = nand.filter(|p| at < p.records_at()).map(|p| at / p.page_bytes);
        // The record goes where its page went: together they are one program.
        if let (Some(plan), Some(follow)) = (nand, self.follow) {
            match follow {
                Follow::Dropped(page) if at == plan.record_at(page) => {
                    self.follow = None;
                    return Verdict { lands: Vec::new(), result: Ok(()) };
                }
                Follow::Moved(page, to) if at == plan.record_at(page) => {
                    self.follow = None;
                    return Verdict { lands: vec![(plan.record_at(to), data.to_vec())], result: Ok(()) };
                }
                _ => {}
            }
        }
        let what = self.what;
        match what {
            What::WriteError(kind, part) if self.strikes(at, data.len()) => {
                // A write that comes short ends where a sector of the file does.
                let want = at + data.len() as u64 * u64::from(part) / 256;
                let n = (want / 512 * 512).saturating_sub(at) as usize;
                Verdict { lands: vec![(at, data[..n].to_vec())], result: Err(self.error("write", kind)) }
            }
            What::Lost if Self::eligible(nand, page) && self.strikes(at, data.len()) => {
                self.follow = page.map(Follow::Dropped);
                Verdict { lands: Vec::new(), result: Ok(()) }
            }
            What::Misplaced { by } if Self::eligible(nand, page) && self.strikes(at, data.len()) => {
                match (nand, page) {
                    (Some(plan), Some(page)) => {
                        let to = (page + by) % plan.pages;
                        self.follow = Some(Follow::Moved(page, to));
                        Verdict { lands: vec![(to * plan.page_bytes, data.to_vec())], result: Ok(()) }
                    }
                    _ => Verdict { lands: vec![(at + by, data.to_vec())], result: Ok(()) },
                }
            }
            _ => whole(),
        }
    }

    /// Lost and misplaced are programs of pages and writes of PCM, not the device's own notes.
    fn eligible(nand: Option<&NandPlan>, page: Option<u64>) -> bool {
        nand.is_none() || page.is_some()
    }

    /// A sync.
    ///
    /// # Errors
    /// The planned one.
    pub fn sync(&mut self, medium: u8) -> Result<()> {
        let what = self.what;
        match what {
            What::SyncError(kind) if medium == self.medium && self.strikes(0, 0) => {
                Err(self.error("sync", kind))
            }
            _ => Ok(()),
        }
    }

    /// What stands where something will be written, for [`What::Stale`].
    pub fn remember(&mut self, at: u64, old: &[u8]) {
        if self.what == What::Stale {
            self.former.insert(at, old.to_vec());
        }
    }
}
