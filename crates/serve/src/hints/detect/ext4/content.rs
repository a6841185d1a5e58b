//! Blocks of ext4 that are recognized by their content.

use crate::hints::detect::bytes::{be32, byte, le16, le32};

const JOURNAL_MAGIC: u32 = 0xc03b_3998;
const EXTENTS_MAGIC: u16 = 0xf30a;
const ATTRIBUTES_MAGIC: u32 = 0xea02_0000;
/// File type of the entry that holds the checksum of a directory block.
const CHECKSUM_ENTRY: u8 = 0xde;
/// Largest file type of an entry of a directory.
const FILE_TYPE_MAX: u8 = 7;

/// Returns `true` if a block is a block of the journal, a node of extents, a block of extended
/// attributes, or a block of a directory, by its content. `inodes` is the number of inodes.
pub(super) fn is_metadata(b: &[u8], inodes: u32) -> bool {
    is_journal(b) || is_extents(b) || is_attributes(b) || is_directory(b, inodes) || is_empty_directory(b)
}

/// Returns `true` for a block with the header of the journal: a descriptor, a commit, a superblock
/// of version 1 or 2, or revocations.
fn is_journal(b: &[u8]) -> bool {
    be32(b, 0) == JOURNAL_MAGIC && (1..=5).contains(&be32(b, 4))
}

fn is_extents(b: &[u8]) -> bool {
    let (entries, max, depth) = (le16(b, 2), le16(b, 4), le16(b, 6));
    le16(b, 0) == EXTENTS_MAGIC && usize::from(max) == (b.len() - 12) / 12 && entries <= max && depth <= 5
}

fn is_attributes(b: &[u8]) -> bool {
    le32(b, 0) == ATTRIBUTES_MAGIC && (1..=1024).contains(&le32(b, 4)) && le32(b, 8) == 1
}

/// Returns `true` if entries of a directory fill the block exactly, and one of them names a file or
/// holds the checksum of the block.
fn is_directory(b: &[u8], inodes: u32) -> bool {
    let (mut at, mut named) = (0, false);
    while at < b.len() {
        let (inode, name, kind) = (le32(b, at), usize::from(byte(b, at + 6)), byte(b, at + 7));
        // The length of an entry of 64 KiB does not fit into its field.
        let len = match le16(b, at + 4) {
            0 | u16::MAX if b.len() == 65_536 && at == 0 => b.len(),
            len => usize::from(len),
        };
        let checksum = inode == 0 && name == 0 && kind == CHECKSUM_ENTRY && len == 12 && at + 12 == b.len();
        let valid = len >= 12
            && len.is_multiple_of(4)
            && at + len <= b.len()
            && inode <= inodes
            && name + 8 <= len
            && (kind <= FILE_TYPE_MAX || checksum);
        if !valid {
            return false;
        }
        named |= checksum || (inode > 0 && name > 0);
        at += len;
    }
    named
}

/// Returns `true` for a block with one empty entry, in an unused block of a directory or in an
/// inner node of its hash tree. The entry alone is too short a signature: a table of offsets can
/// begin so.
fn is_empty_directory(b: &[u8]) -> bool {
    let empty = le32(b, 0) == 0 && usize::from(le16(b, 4)) == b.len() && le16(b, 6) == 0;
    empty && (is_hash_node(b) || b[8..].iter().all(|byte| *byte == 0))
}

/// Returns `true` if the numbers of an inner node of a hash tree follow the empty entry: the
/// largest possible number of entries, with or without a checksum, and the present one.
fn is_hash_node(b: &[u8]) -> bool {
    let (limit, count) = (usize::from(le16(b, 8)), le16(b, 10));
    let whole = (b.len() - 8) / 8;
    (limit == whole || limit + 1 == whole) && (1..=limit).contains(&usize::from(count))
}
