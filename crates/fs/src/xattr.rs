//! Extended attributes. All attributes of an inode are in one run of blocks; each change writes all
//! of them to a new run.
//!
//! Format of the run: a word with the checksum (low half) and the number of bytes after the first
//! two words (high half), a word with the number of attributes, and then for each attribute a word
//! with the length of its name (low byte) and of its value (from bit 32), the name, the value, and
//! zeros up to a multiple of 8.

use crate::error::{Error, Result};
use crate::format::{BLOCK, Geometry, crc_words, read_words};
use crate::fs::Fs;
use crate::inode::{Inode, NodeState};
use crate::journal::{BlockRun, Txn};
use crate::medium::Medium;
use crate::permissions::{self, STICKY, WRITE};
use crate::planted::Bug;
use crate::space::AllocRequest;
use crate::types::{Caller, Ino, InodeType, NAME_MAX, XATTR_MAX, XattrMode};
use frit_core::planted::is_planted;

/// Maximum number of blocks for the attributes of one inode: 1 MiB.
const BLOCKS_MAX: u64 = 256;
/// Number of words before the attributes.
const HEADER: usize = 2;

/// Name and value.
type Pair = (Vec<u8>, Vec<u8>);

/// Fails for names outside the supported namespaces, and for callers without the right to access
/// them.
fn permitted(caller: &Caller, inode: &Inode, name: &[u8], writes: bool) -> Result<()> {
    let is = |prefix: &[u8]| name.starts_with(prefix) && name.len() > prefix.len();
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(Error::AttributeName);
    }
    if name.contains(&0) {
        return Err(Error::Invalid("the name of an extended attribute contains a zero byte"));
    }
    if is(b"user.") {
        // In a sticky directory, only the owner may change user attributes, see xattr(7).
        let shared = inode.kind == InodeType::Directory && inode.mode & STICKY != 0;
        return match inode.kind {
            InodeType::File | InodeType::Directory if !writes => Ok(()),
            InodeType::File | InodeType::Directory if shared => permissions::check_owner(caller, inode)
                .and_then(|()| permissions::check_access(caller, inode, WRITE)),
            InodeType::File | InodeType::Directory => permissions::check_access(caller, inode, WRITE),
            _ if writes => Err(Error::NotPermitted),
            _ => Err(Error::NoAttribute),
        };
    }
    if is(b"trusted.") || is(b"security.") {
        return if writes && caller.checked && caller.uid != 0 { Err(Error::NotPermitted) } else { Ok(()) };
    }
    Err(Error::Unsupported("extended attributes other than user., trusted. and security."))
}

fn encode(pairs: &[Pair]) -> Vec<u64> {
    let mut bytes = Vec::new();
    for (name, value) in pairs {
        bytes.extend_from_slice(&(name.len() as u64 | (value.len() as u64) << 32).to_le_bytes());
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    let mut words = vec![(bytes.len() as u64) << 32, pairs.len() as u64];
    words.extend(bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned::<u64>));
    words
}

fn decode(words: &[u64]) -> Option<Vec<Pair>> {
    let mut bytes: &[u8] = bytemuck::cast_slice(words.get(HEADER..)?);
    let mut pairs = Vec::new();
    for _ in 0..*words.get(1)? {
        let lengths = bytemuck::pod_read_unaligned::<u64>(bytes.get(..8)?);
        let (name, value) = ((lengths & 0xFF) as usize, (lengths >> 32) as usize);
        let all = bytes.get(8..8 + name + value)?;
        pairs.push((all[..name].to_vec(), all[name..].to_vec()));
        bytes = bytes.get((8 + name + value).next_multiple_of(8)..)?;
    }
    Some(pairs)
}

/// Computes the checksum of a run: over all words except the low half of the first.
fn check(salt: u32, ino: Ino, run: BlockRun, words: &[u64]) -> u32 {
    crc_words(crc_words(salt, &[ino.0, run.start, words[0] >> 32]), &words[1..])
}

/// Returns `true` if the inode has no attribute run, or one that lies within the data space.
pub(crate) fn run_is_valid(geometry: &Geometry, inode: &Inode) -> bool {
    let BlockRun { start, len } = inode.xattrs;
    len == 0 || (len <= BLOCKS_MAX && geometry.holds(start, len))
}

/// Reads all attributes of an inode.
///
/// # Errors
/// The run fails its checksum or lies outside the data space.
pub(crate) fn read<M: Medium>(
    medium: &M,
    geometry: &Geometry,
    salt: u32,
    ino: Ino,
    inode: &Inode,
) -> Result<Vec<Pair>> {
    let run = inode.xattrs;
    if run.len == 0 {
        return Ok(Vec::new());
    }
    let damaged = || Error::Damaged { what: "extended attributes", at: run.at() };
    if !run_is_valid(geometry, inode) {
        return Err(damaged());
    }
    let [first] = read_words(medium, run.at());
    let len = (first >> 32) as usize / 8 + HEADER;
    // The length is not verified yet, so it is limited by the size of the run.
    if len as u64 > run.len * BLOCK / 8 {
        return Err(damaged());
    }
    let mut words = vec![0; len];
    medium.read(run.at(), bytemuck::cast_slice_mut(&mut words));
    if first as u32 != check(salt, ino, run, &words) {
        return Err(damaged());
    }
    decode(&words).ok_or_else(damaged)
}

impl<M: Medium> Fs<M> {
    /// Fails if the attribute run of an inode lies outside the data space, so that it must not be
    /// freed.
    pub(crate) fn check_xattr_run(&self, ino: Ino, inode: &Inode) -> Result<()> {
        let at = self.geometry.inode_at(ino.0);
        if run_is_valid(&self.geometry, inode) {
            Ok(())
        } else {
            Err(Error::Damaged { what: "an inode", at })
        }
    }

    /// Returns all attributes of an inode.
    fn pairs(&self, ino: Ino, inode: &Inode) -> Result<Vec<Pair>> {
        read(&self.medium, &self.geometry, self.salt, ino, inode)
    }

    /// Returns the value of one attribute.
    pub(crate) fn value_of(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        let node = self.node(ino)?;
        let state = node.state.read();
        state.check_alive()?;
        permitted(&Caller::ROOT, &state.inode, name, false)?;
        let found = self.pairs(ino, &state.inode)?.into_iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value).ok_or(Error::NoAttribute)
    }

    /// Returns the current attributes of an inode.
    pub(crate) fn pairs_of(&self, ino: Ino) -> Result<Vec<Pair>> {
        let node = self.node(ino)?;
        let state = node.state.read();
        state.check_alive()?;
        self.pairs(ino, &state.inode)
    }

    pub(crate) fn change_xattr(
        &self,
        caller: &Caller,
        ino: Ino,
        name: &[u8],
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<()> {
        self.check_writable()?;
        let node = self.node(ino)?;
        let mut state = node.state.write();
        state.check_alive()?;
        permitted(caller, &state.inode, name, true)?;
        if state.inode.kind == InodeType::Command {
            return Err(Error::Unsupported("extended attributes of command files"));
        }
        let mut pairs = self.pairs(ino, &state.inode)?;
        let existing = pairs.iter().position(|(known, _)| known == name);
        match (existing, mode) {
            (Some(_), XattrMode::Create) => return Err(Error::Exists),
            (None, XattrMode::Replace) => return Err(Error::NoAttribute),
            _ => {}
        }
        if value.is_some_and(|value| value.len() > XATTR_MAX) {
            return Err(Error::AttributeTooLarge);
        }
        match (existing, value) {
            (Some(i), Some(value)) => pairs[i].1 = value.to_vec(),
            (None, Some(value)) => pairs.push((name.to_vec(), value.to_vec())),
            (Some(i), None) => drop(pairs.remove(i)),
            (None, None) => return Err(Error::NoAttribute),
        }
        let mut txn = Txn::new();
        self.put_pairs(ino, &mut state, &mut txn, &pairs)?;
        state.inode.ctime = self.clock.now();
        self.put_inode(&mut txn, &node, &mut state);
        self.commit(txn);
        Ok(())
    }

    /// Writes all attributes to a new run and frees the old one.
    fn put_pairs(&self, ino: Ino, state: &mut NodeState, txn: &mut Txn, pairs: &[Pair]) -> Result<()> {
        // The old run stays intact until the transaction is durable, so a power loss finds either
        // the old or the new attributes.
        let old = state.inode.xattrs;
        let mut new = BlockRun::default();
        if !pairs.is_empty() {
            let mut words = encode(pairs);
            let blocks = (words.len() as u64 * 8).div_ceil(BLOCK);
            if blocks > BLOCKS_MAX {
                return Err(Error::AttributeTooLarge);
            }
            new = if is_planted(Bug::XattrInPlace) && old.len == blocks {
                old
            } else {
                self.reserve_blocks(AllocRequest::blocks(blocks).contiguous())?
            };
            words[0] |= u64::from(check(self.salt, ino, new, &words));
            self.medium.write(new.at(), bytemuck::cast_slice(&words));
            // The new run must be durable before the inode refers to it.
            txn.data = true;
            if new != old {
                txn.alloc(new);
            }
        }
        if old.len > 0 && new != old {
            txn.free(old);
        }
        state.inode.blocks = state.inode.blocks.saturating_add(new.len).saturating_sub(old.len);
        state.inode.xattrs = new;
        Ok(())
    }
}
