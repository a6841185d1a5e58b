//! Entries: memory that the kernel and this process use in turn.

use super::mailbox::{Completion, Contents, Mailbox};
use crate::answer::ReplyBytes;
use crate::protocol::Arguments;
use crate::protocol::abi::{EntryInOut, InHeader, OutHeader, RING_HEADER_BYTES, RingHeaders};
use crate::transport::REQUEST_BYTES_MAX;
use fuser::Errno;
use memmap2::{MmapMut, MmapRaw};
use std::io;
use std::mem::offset_of;
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of the contents of an entry: the kernel refuses fewer than its largest request has.
const PAYLOAD_BYTES: usize = REQUEST_BYTES_MAX as usize;
/// Bytes before the contents, which start at a page.
const HEADERS_BYTES: usize = 4096;
const _: () = assert!(size_of::<RingHeaders>() == 288 && size_of::<RingHeaders>() <= HEADERS_BYTES);

/// An entry of a queue.
///
/// Its memory belongs to the kernel while the kernel has the entry, to the thread that owns the
/// entry while that thread reads the request, and to the [`Ticket`] until the reply is complete.
/// Pages that no request has used take no memory.
#[derive(Debug)]
pub(super) struct Entry {
    memory: MmapRaw,
    mailbox: Arc<Mailbox>,
    /// Number of the entry within its thread.
    number: usize,
    /// Queue of the kernel.
    pub(super) queue: u16,
}

/// `struct iovec`: an address and a length, as the kernel takes them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Vector {
    start: *mut u8,
    len: usize,
}

impl Entry {
    /// Creates an entry.
    ///
    /// # Errors
    /// There is no address space left.
    pub(super) fn new(mailbox: &Arc<Mailbox>, number: usize, queue: u16) -> io::Result<Arc<Entry>> {
        let memory = MmapMut::map_anon(HEADERS_BYTES + PAYLOAD_BYTES)?.into();
        Ok(Arc::new(Entry { memory, mailbox: Arc::clone(mailbox), number, queue }))
    }

    /// Returns the addresses of the headers and of the contents, as long as the entry lives.
    pub(super) fn vectors(&self) -> [Vector; 2] {
        let start = self.memory.as_mut_ptr();
        let payload = start.wrapping_add(HEADERS_BYTES);
        [Vector { start, len: size_of::<RingHeaders>() }, Vector { start: payload, len: PAYLOAD_BYTES }]
    }

    /// Calls a function with the request in the entry. Only the owner may do so, after the kernel
    /// has given the entry back, and before a reply is complete.
    #[expect(unsafe_code)]
    pub(super) fn request<R>(&self, read: impl FnOnce(InHeader, Arguments<'_>) -> R) -> R {
        let start = self.memory.as_mut_ptr().cast_const();
        // SAFETY: the headers are inside the map and consist of bytes. The kernel does not write to
        // them now. A reply is put there by this thread, after `read` has returned.
        let headers = unsafe { std::slice::from_raw_parts(start, size_of::<RingHeaders>()) };
        let in_header = InHeader::read_from_prefix(headers).map(|(header, _)| header).unwrap_or_default();
        let op_at = offset_of!(RingHeaders, op_in);
        let entry = EntryInOut::read_from_prefix(&headers[offset_of!(RingHeaders, entry)..]);
        let entry = entry.map(|(entry, _)| entry).unwrap_or_default();
        let len = (entry.payload_sz as usize).min(PAYLOAD_BYTES);
        // SAFETY: as above. Only requests without contents let the reply change them before `read`
        // has returned (`Ticket::fill`): READ has a payload of 0 bytes.
        let payload = unsafe { std::slice::from_raw_parts(start.add(HEADERS_BYTES), len) };
        let arguments = Arguments::new(&headers[op_at..op_at + RING_HEADER_BYTES], payload);
        read(in_header, arguments)
    }

    /// Writes a reply to the entry, and returns the number that the kernel knows the request by.
    #[expect(unsafe_code)]
    pub(super) fn put_reply(&self, unique: u64, error: i32, contents: &Contents) -> u64 {
        let len = match contents {
            Contents::Bytes(bytes) => bytes.len(),
            Contents::Filled(len) => *len,
        };
        let header = OutHeader { len: (size_of::<OutHeader>() + len) as u32, error, unique };
        let start = self.memory.as_mut_ptr();
        // SAFETY: all ranges are inside the map: contents are at most PAYLOAD_BYTES long, since
        // the kernel requests no more, and longer ones are cut. Nobody else uses the memory now.
        unsafe {
            let entry_at = start.add(offset_of!(RingHeaders, entry));
            std::ptr::copy_nonoverlapping(header.as_bytes().as_ptr(), start, size_of::<OutHeader>());
            if let Contents::Bytes(bytes) = contents {
                let len = bytes.len().min(PAYLOAD_BYTES);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.add(HEADERS_BYTES), len);
            }
            let mut entry = entry_at.cast::<EntryInOut>().read_unaligned();
            entry.payload_sz = len.min(PAYLOAD_BYTES) as u32;
            entry_at.cast::<EntryInOut>().write_unaligned(entry);
            entry.commit_id
        }
    }
}

/// The right to reply to the request of an entry. [`crate::answer::Answer`] uses it once.
#[derive(Debug)]
pub(crate) struct Ticket(Arc<Entry>);

impl Ticket {
    pub(super) fn new(entry: &Arc<Entry>) -> Ticket {
        Ticket(Arc::clone(entry))
    }

    /// Replies with bytes.
    pub(crate) fn complete(self, unique: u64, error: i32, bytes: ReplyBytes) {
        self.put(unique, error, Contents::Bytes(bytes));
    }

    /// Replies to a request that has no contents with what `fill` puts into the entry, up to `len`
    /// bytes. Returns the ticket if `fill` returns `None`.
    #[expect(unsafe_code)]
    pub(crate) fn fill(
        self,
        unique: u64,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<Option<usize>, Errno>,
    ) -> Option<Ticket> {
        let len = len.min(PAYLOAD_BYTES);
        // SAFETY: the range is inside the map. The ticket is the only one of the request, the
        // request has no contents that somebody reads there, and the kernel has not got the entry.
        let buffer =
            unsafe { std::slice::from_raw_parts_mut(self.0.memory.as_mut_ptr().add(HEADERS_BYTES), len) };
        match fill(buffer) {
            Ok(Some(bytes)) => self.put(unique, 0, Contents::Filled(bytes.min(len))),
            Ok(None) => return Some(self),
            Err(error) => self.put(unique, -error.code(), Contents::Filled(0)),
        }
        None
    }

    fn put(self, unique: u64, error: i32, contents: Contents) {
        let completion = Completion { entry: self.0.number, unique, error, contents };
        self.0.mailbox.put(completion);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts a request into an entry, as the kernel does.
    fn request(entry: &Entry, unique: u64, payload: &[u8]) {
        let header = InHeader { opcode: 16, unique, nodeid: 9, ..InHeader::default() };
        let in_out =
            EntryInOut { commit_id: unique + 1, payload_sz: payload.len() as u32, ..EntryInOut::default() };
        let mut headers = RingHeaders { in_out: [0; 128], op_in: [3; 128], entry: in_out };
        headers.in_out[..size_of::<InHeader>()].copy_from_slice(header.as_bytes());
        let [to, contents] = entry.vectors();
        assert_eq!((to.len, contents.len), (288, 1 << 20));
        #[expect(unsafe_code)]
        // SAFETY: both ranges are inside the map, and nobody else uses it.
        unsafe {
            std::ptr::copy_nonoverlapping(headers.as_bytes().as_ptr(), to.start, to.len);
            std::ptr::copy_nonoverlapping(payload.as_ptr(), contents.start, payload.len());
        }
    }

    /// Returns the header and the contents of the reply in an entry.
    fn reply(entry: &Entry) -> (OutHeader, Vec<u8>) {
        let [from, contents] = entry.vectors();
        #[expect(unsafe_code)]
        // SAFETY: as above.
        let (headers, contents) = unsafe {
            let headers = std::slice::from_raw_parts(from.start, from.len);
            (headers, std::slice::from_raw_parts(contents.start, contents.len))
        };
        let headers = RingHeaders::read_from_bytes(headers).unwrap();
        let (header, _) = OutHeader::read_from_prefix(&headers.in_out).unwrap();
        (header, contents[..headers.entry.payload_sz as usize].to_vec())
    }

    #[test]
    fn an_entry_takes_a_request_and_a_reply() {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let entry = Entry::new(&mailbox, 5, 1).unwrap();
        request(&entry, 40, b"contents");
        entry.request(|header, mut arguments| {
            assert_eq!((header.unique, header.nodeid), (40, 9));
            assert_eq!(arguments.structure::<u64>().unwrap(), 0x0303_0303_0303_0303);
            assert_eq!(arguments.bytes(8).unwrap(), b"contents");
            assert!(arguments.bytes(1).is_err());
            Ticket::new(&entry).complete(40, -5, ReplyBytes::from_slice(b"reply"));
        });
        let completion = mailbox.take().unwrap();
        assert_eq!((completion.entry, completion.unique, completion.error), (5, 40, -5));
        assert_eq!(entry.put_reply(40, -5, &completion.contents), 41, "the number for the kernel");
        let (header, contents) = reply(&entry);
        assert_eq!((header.len, header.error, header.unique), (16 + 5, -5, 40));
        assert_eq!(contents, b"reply");
        assert!(mailbox.take().is_none());
    }

    #[test]
    fn contents_are_put_into_the_entry_now_or_later() {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let entry = Entry::new(&mailbox, 0, 0).unwrap();
        request(&entry, 2, &[]);
        let ticket = Ticket::new(&entry).fill(2, 100, |buffer| {
            assert_eq!(buffer.len(), 100);
            Ok(None)
        });
        assert!(mailbox.take().is_none(), "later");
        let rest = ticket.unwrap().fill(2, usize::MAX, |buffer| {
            buffer[..3].copy_from_slice(b"abc");
            Ok(Some(3))
        });
        assert!(rest.is_none());
        let completion = mailbox.take().unwrap();
        entry.put_reply(2, 0, &completion.contents);
        assert_eq!(reply(&entry).1, b"abc");
        assert!(Ticket::new(&entry).fill(2, 10, |_| Err(Errno::EIO)).is_none());
        assert_eq!(mailbox.take().unwrap().error, -Errno::EIO.code());
    }
}
