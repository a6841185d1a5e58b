//! What a layer owes to a volume: to come up after any stop, to say what it found, to be checked.

use crate::{MediumKind, Result, Sector, Sink};
use serde::Serialize;

/// What ended before a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The program, or power on modelled media: what the stores took is there.
    Process,
    /// The machine under backing files: only what was synced is sure to be there.
    Machine,
}

/// When an acknowledged write is certain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lasting {
    /// At once.
    OnAck,
    /// Once a flush is done that was asked for after the acknowledgement.
    OnFlush,
}

/// What an acknowledgement promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// When what was acknowledged is certain.
    pub lasting: Lasting,
    /// Aligned parts of a volume of so many bytes are old or new as a whole, whatever stops a write: a
    /// multiple of a sector.
    pub atomic_bytes: u32,
}

impl Default for Promise {
    /// Certain at once, by blocks of 4 KiB.
    fn default() -> Promise {
        Promise { lasting: Lasting::OnAck, atomic_bytes: 4096 }
    }
}

/// What a recovery found and did.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Recovery {
    /// The layer had been halted in order: nothing had to be mended.
    pub clean: bool,
    /// The map as of the last flush was taken, since the machine had stopped.
    pub from_flush: bool,
    /// Pages that are mapped.
    pub pages: u64,
    /// Of these, pages in durable memory.
    pub pages_in_pcm: u64,
    /// Map entries of a commit that the stop had cut in two, completed.
    pub redone: u32,
    /// Pages programmed without content where a program may have been cut off.
    pub padded: u32,
    /// Free blocks that are erased again before use, since an erase may have been cut off.
    pub suspect_blocks: u32,
    /// Pages that cannot be given back: reading them is an error that names them.
    pub lost: Vec<LostPage>,
    /// Losses of pages that nothing names any more: every page that may be one of them is an error when it is read.
    pub unnamed: Vec<String>,
    /// Bytes of media that recovery read.
    pub bytes_read: u64,
}

impl Recovery {
    /// Returns `true` if a page cannot be given back.
    #[must_use]
    pub fn lost_any(&self) -> bool {
        !self.lost.is_empty() || !self.unnamed.is_empty()
    }
}

/// A logical page that cannot be given back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LostPage {
    /// Its number.
    pub lpn: u32,
    /// What is wrong with it, and where.
    pub why: String,
}

/// How far a check goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CheckScope {
    /// Reads all data that is mapped and verifies its checksums (a scrub).
    pub data: bool,
    /// Mends what can be mended: stale entries point to the newest page again, lost pages that were
    /// found are mapped.
    pub repair: bool,
    /// With `repair`: also maps versions that are, or may be, older than those that cannot be given back.
    pub older: bool,
}

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Costs space or speed, no data.
    Minor,
    /// Data is stale or lost.
    Major,
}

/// Something that is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// A word for scripts: `bad-entry`, `bad-data`, `stale-entry`, `bad-descriptor`, `double-use` …
    pub kind: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The logical page, when it is about one.
    pub lpn: Option<u32>,
    /// The medium.
    pub medium: MediumKind,
    /// The address there, in the medium's own terms.
    pub at: u64,
    /// What was found and what should be there.
    pub what: String,
    /// It was mended.
    pub repaired: bool,
}

/// What a check looked at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Checked {
    /// Map entries.
    pub entries: u64,
    /// Pages whose data was read.
    pub pages_read: u64,
    /// Bytes of data verified.
    pub bytes_verified: u64,
    /// Spare areas and descriptors.
    pub records: u64,
}

/// A stretch of a volume that lies in one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Its length.
    pub sectors: u64,
    /// Where it lies; nowhere when it was never written or was discarded, and reads as zeros.
    pub place: Option<MediumKind>,
}

/// A layer that a volume can stand on. Every request that was acknowledged is found again by
/// [`Durable::recover`], whatever stopped the layer and wherever.
pub trait Durable<S: Sink> {
    /// Writes down that the media belong to this layer. Media that are blank need it once.
    ///
    /// # Errors
    /// A configuration that cannot be durable (no durable memory for the map), a medium that fails.
    fn format(&mut self, sink: &mut S) -> Result<()>;

    /// Comes up from what the media hold. Repeating it, or being stopped in it, changes nothing.
    ///
    /// # Errors
    /// Media that were never formatted, or belong to another configuration; a store that fails.
    fn recover(&mut self, sink: &mut S, stop: Stop) -> Result<Recovery>;

    /// What an acknowledgement promises with the parameters as they are. Of a layer that takes some requests
    /// past its durable memory it is the weakest: what it did not take past it keeps the default.
    fn promise(&self) -> Promise {
        Promise::default()
    }

    /// Compares map, spare areas and descriptors, and data when asked to.
    ///
    /// # Errors
    /// A store that fails. What is wrong with the contents is a [`Finding`].
    fn check(&mut self, sink: &mut S, scope: CheckScope, found: &mut dyn FnMut(Finding)) -> Result<Checked>;

    /// Where a range lies, in order.
    ///
    /// # Errors
    /// A range outside the layer.
    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()>;

    /// Why writes are refused, when they are.
    fn refuses(&self) -> Option<String>;

    /// Refuses writes from now on; reads go on. For what a volume finds out and its layer cannot.
    fn refuse(&mut self, why: String);
}
