//! Encoding of replies: simple replies, and chunks of structured replies.

use super::output::Output;
use super::wire::{CHUNK_MAGIC, Errno, SIMPLE_MAGIC, STRING_MAX, chunk};

/// Appends a reply of success without data. It is a simple reply even if structured replies were
/// negotiated: the protocol allows this, and it is the shortest form.
pub(super) fn success(out: &mut Output, cookie: u64) {
    let head = out.space(16);
    head[..4].copy_from_slice(&SIMPLE_MAGIC.to_be_bytes());
    head[4..8].fill(0);
    head[8..].copy_from_slice(&cookie.to_be_bytes());
}

/// Appends an error reply. Structured replies contain the message.
pub(super) fn error(out: &mut Output, structured: bool, cookie: u64, errno: Errno, message: &str) {
    if structured {
        let message = cut(message);
        chunk(out, chunk::ERROR, cookie, 6 + message.len() as u32);
        out.u32(errno as u32);
        out.u16(message.len() as u16);
        out.put(message.as_bytes());
    } else {
        out.u32(SIMPLE_MAGIC);
        out.u32(errno as u32);
        out.u64(cookie);
    }
}

/// Appends the header of the reply to a read, and returns the space for its data.
pub(super) fn data(out: &mut Output, structured: bool, cookie: u64, at: u64, len: u32) -> &mut [u8] {
    data_head(out, structured, cookie, at, len);
    out.space(len as usize)
}

/// Appends the header of the reply to a read. The data must follow.
pub(super) fn data_head(out: &mut Output, structured: bool, cookie: u64, at: u64, len: u32) {
    if structured {
        chunk(out, chunk::OFFSET_DATA, cookie, 8 + len);
        out.u64(at);
    } else {
        success(out, cookie);
    }
}

/// Appends a chunk of the reply to a read, and returns the space for its data. `last` is `true` if
/// no chunk follows.
pub(super) fn chunk_of_data(out: &mut Output, cookie: u64, at: u64, len: u32, last: bool) -> &mut [u8] {
    chunk_head(out, if last { chunk::DONE } else { 0 }, chunk::OFFSET_DATA, cookie, 8 + len);
    out.u64(at);
    out.space(len as usize)
}

/// Appends a chunk with the extents of a context. `last` is `true` if no chunk follows.
pub(super) fn extents(out: &mut Output, cookie: u64, context: u32, extents: &[(u32, u32)], last: bool) {
    out.u32(CHUNK_MAGIC);
    out.u16(if last { chunk::DONE } else { 0 });
    out.u16(chunk::BLOCK_STATUS);
    out.u64(cookie);
    out.u32(4 + 8 * extents.len() as u32);
    out.u32(context);
    for &(len, flags) in extents {
        out.u32(len);
        out.u32(flags);
    }
}

/// Appends the header of a chunk that is its whole reply.
fn chunk(out: &mut Output, kind: u16, cookie: u64, len: u32) {
    chunk_head(out, chunk::DONE, kind, cookie, len);
}

fn chunk_head(out: &mut Output, flags: u16, kind: u16, cookie: u64, len: u32) {
    let head = out.space(20);
    head[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
    head[4..6].copy_from_slice(&flags.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..].copy_from_slice(&len.to_be_bytes());
}

/// Truncates a message to the maximum length of a string of the protocol.
fn cut(message: &str) -> &str {
    let mut end = message.len().min(STRING_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}
