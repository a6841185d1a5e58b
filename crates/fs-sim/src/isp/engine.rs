//! The engine inside the device: it finds the blocks of a file and counts words in them.

use super::IspMedium;
use super::params::IspParams;
use super::walk::{BLOCK, EngineExtent, FileMap, INODE};
use super::words::{WORDS, WordCounter};
use crate::error::Result;
use frit_core::Tag;
use frit_core::{Error, Nanos, size};
use std::collections::VecDeque;

/// Tag of the engine's start and of its reads of metadata.
const STEP: Tag = 16;
/// Tag of the first unit's requests; the others follow.
const UNITS: Tag = 17;

/// State of the engine.
#[derive(Debug)]
enum Stage {
    /// No instruction.
    Idle,
    /// The instruction is decoded.
    Starts,
    /// The inode is read.
    Inode(Vec<u8>),
    /// A block of lines of extents is read.
    Lines(Vec<u8>, FileMap),
    /// Contents are read and processed.
    Contents,
    /// The status register shows completion.
    Complete(Nanos),
}

/// The engine, which processes one instruction.
#[derive(Debug)]
pub(super) struct IspEngine<'m> {
    medium: &'m IspMedium,
    params: IspParams,
    /// Position of the inode of the file.
    inode_at: u64,
    stage: Stage,
    /// Requests that were not issued: position on the medium and length, in the order of the file.
    requests: VecDeque<EngineExtent>,
    /// Position in the file behind the last issued request.
    position: u64,
    in_flight: Vec<u32>,
    counter: WordCounter,
    started: Nanos,
    pub(super) metadata_bytes: u64,
    pub(super) contents_bytes: u64,
}

impl<'m> IspEngine<'m> {
    pub(super) fn new(medium: &'m IspMedium, params: IspParams, counter: WordCounter, inode_at: u64) -> Self {
        IspEngine {
            medium,
            params,
            inode_at,
            stage: Stage::Idle,
            requests: VecDeque::new(),
            position: 0,
            in_flight: vec![0; medium.channels() as usize],
            counter,
            started: Nanos::ZERO,
            metadata_bytes: 0,
            contents_bytes: 0,
        }
    }

    /// Sets the start register.
    pub(super) fn start(&mut self) {
        self.started = self.medium.now();
        self.stage = Stage::Starts;
        self.medium.wake_after(self.params.engine_start.nanos(), STEP);
    }

    /// Returns `true` if a report is for the engine.
    pub(super) fn is_own(tag: Tag) -> bool {
        tag >= STEP
    }

    /// Returns `true` while an instruction is executed.
    pub(super) fn is_running(&self) -> bool {
        !matches!(self.stage, Stage::Idle | Stage::Complete(_))
    }

    /// Returns the time that the timer of the engine shows, if the instruction is complete.
    pub(super) fn took(&self) -> Option<Nanos> {
        match self.stage {
            Stage::Complete(at) => Some(at.since(self.started)),
            _ => None,
        }
    }

    /// Returns the counts of the words.
    pub(super) fn counts(&self) -> [u64; WORDS] {
        self.counter.counts()
    }

    /// Continues after a report.
    pub(super) fn continue_after(&mut self, tag: Tag) -> Result<()> {
        if let Some(unit) = tag.checked_sub(UNITS) {
            self.in_flight[unit as usize] -= 1;
            self.issue();
            return Ok(());
        }
        match std::mem::replace(&mut self.stage, Stage::Contents) {
            Stage::Starts => {
                let inode = self.fetch(self.inode_at, INODE);
                self.stage = Stage::Inode(inode);
            }
            Stage::Inode(inode) => self.follow(FileMap::of_inode(&inode))?,
            Stage::Lines(block, mut map) => {
                map.add_block(&block);
                self.follow(map)?;
            }
            other => self.stage = other,
        }
        Ok(())
    }

    /// Reads metadata.
    fn fetch(&mut self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.medium.engine_read(at, &mut bytes, None, STEP);
        self.metadata_bytes += len as u64;
        bytes
    }

    /// Reads the next block of lines, or begins with the contents.
    fn follow(&mut self, map: FileMap) -> Result<()> {
        if map.next != 0 {
            let at = map.next.checked_mul(BLOCK).filter(|at| at + BLOCK <= self.medium.size());
            let at = at.ok_or_else(|| {
                Error::param("file", size::format(map.size), "its chain of extents leaves the memory")
            })?;
            let block = self.fetch(at, BLOCK as usize);
            self.stage = Stage::Lines(block, map);
            return Ok(());
        }
        let request = self.params.engine_request_bytes.0;
        for extent in map.into_extents() {
            let end = extent.at + extent.len;
            let parts = (extent.at..end).step_by(request as usize);
            self.requests.extend(parts.map(|at| EngineExtent {
                at,
                len: request.min(end - at),
                medium: extent.medium + (at - extent.at),
            }));
        }
        self.issue();
        Ok(())
    }

    /// Issues requests in the order of the file, up to the first one whose unit has no free buffer.
    fn issue(&mut self) {
        let mut buffer = [0; super::params::REQUEST_MAX as usize];
        while let Some(&next) = self.requests.front() {
            let unit = self.medium.channel_of(next.medium);
            if self.in_flight[unit as usize] >= self.params.engine_buffers {
                return;
            }
            self.requests.pop_front();
            self.in_flight[unit as usize] += 1;
            let bytes = &mut buffer[..next.len as usize];
            self.medium.engine_read(next.medium, bytes, Some(unit), UNITS + unit);
            if next.at != self.position {
                // Holes and unwritten parts read as zeros, which end a word.
                self.counter.end();
            }
            self.position = next.at + next.len;
            self.counter.add(bytes);
            self.contents_bytes += next.len;
        }
        if self.in_flight.iter().all(|n| *n == 0) {
            self.counter.end();
            self.stage = Stage::Complete(self.medium.now());
        }
    }
}
