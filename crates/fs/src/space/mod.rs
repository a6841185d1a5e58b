//! Where the blocks of files, directories and attributes come from, and where they go back to.
//!
//! Everything above asks an [`Allocator`]; which blocks a request gets is the business of the one behind it, a file of
//! its own. Blocks also move while they are in use: [`relocate`](crate::fs::Fs::relocate) puts a part of a file where
//! an allocator said, in one transaction.

mod bitmap;
pub(crate) mod line;
mod search;

pub(crate) use bitmap::Bitmap;

use crate::error::Result;
use crate::journal::Run;
use crate::types::Ino;
use std::fmt;

/// Blocks that somebody asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Want {
    /// How many, at least one.
    pub(crate) blocks: u64,
    /// Where they are wanted: behind what the file has already.
    pub(crate) goal: Option<u64>,
    /// All of them in one piece, or none. Else fewer may come.
    pub(crate) whole: bool,
    /// A file that will likely grow by so many more soon: they are kept for it as long as nobody needs them.
    pub(crate) ahead: Option<(Ino, u64)>,
}

impl Want {
    /// Up to so many blocks, anywhere.
    pub(crate) fn blocks(blocks: u64) -> Self {
        Self { blocks: blocks.max(1), goal: None, whole: false, ahead: None }
    }

    /// The same, from `goal` on if that is free.
    pub(crate) fn at(self, goal: Option<u64>) -> Self {
        Self { goal, ..self }
    }

    /// The same, in one piece or not at all.
    pub(crate) fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// The same at the end of a file that grows, and `more` behind them.
    pub(crate) fn ahead(self, ino: Ino, more: u64) -> Self {
        Self { ahead: Some((ino, more)), ..self }
    }
}

/// Hands out the blocks of a medium `M`. It keeps what it needs to know in DRAM: the bitmap on the medium is changed by
/// transactions, so that what is handed out and never committed is free again at the next start.
pub(crate) trait Allocator<M>: fmt::Debug + Send + Sync {
    /// Free blocks, with those that are kept ahead of files.
    fn free(&self) -> u64;

    /// Hands blocks out.
    ///
    /// # Errors
    /// None is free; of those wanted whole, no such run is.
    fn reserve(&self, medium: &M, want: Want) -> Result<Run>;

    /// Takes blocks back: handed out and not used, or given up by a durable transaction.
    fn release(&self, run: Run);

    /// A transaction is about to give blocks up, and changes the bitmap; [`Allocator::release`] follows it.
    fn expect(&self, medium: &M, run: Run);

    /// A file will not grow for now.
    fn forget_ahead(&self, ino: Ino);
}
