//! Copies between memory of the program and the medium, which end at an address that is not mapped
//! instead of killing the program: read(2) and write(2) return EFAULT for such a buffer.

// Both return the number of bytes that were not copied. A fault continues at the label behind the
// copy, where rcx has the rest.
std::arch::global_asm!(
    ".text",
    ".globl frit_direct_copy, frit_direct_copy_start, frit_direct_copy_end",
    ".globl frit_direct_stream, frit_direct_stream_start, frit_direct_stream_end",
    ".hidden frit_direct_copy, frit_direct_copy_start, frit_direct_copy_end",
    ".hidden frit_direct_stream, frit_direct_stream_start, frit_direct_stream_end",
    ".p2align 4",
    "frit_direct_copy:",
    "mov rcx, rdx",
    "frit_direct_copy_start:",
    "rep movsb",
    "frit_direct_copy_end:",
    "mov rax, rcx",
    "ret",
    ".p2align 4",
    "frit_direct_stream:",
    "mov rcx, rdx",
    "frit_direct_stream_start:",
    "2:",
    "movdqu xmm0, [rsi]",
    "movdqu xmm1, [rsi + 16]",
    "movdqu xmm2, [rsi + 32]",
    "movdqu xmm3, [rsi + 48]",
    "movntdq [rdi], xmm0",
    "movntdq [rdi + 16], xmm1",
    "movntdq [rdi + 32], xmm2",
    "movntdq [rdi + 48], xmm3",
    "add rsi, 64",
    "add rdi, 64",
    "sub rcx, 64",
    "jnz 2b",
    "frit_direct_stream_end:",
    "sfence",
    "mov rax, rcx",
    "ret",
);

unsafe extern "C" {
    fn frit_direct_copy(to: *mut u8, from: *const u8, len: usize) -> usize;
    fn frit_direct_copy_start();
    fn frit_direct_copy_end();
    fn frit_direct_stream(to: *mut u8, from: *const u8, len: usize) -> usize;
    fn frit_direct_stream_start();
    fn frit_direct_stream_end();
}

/// Minimum length of writes with streaming stores, as in the library (`fs/src/medium/memory.rs`).
const STREAM_FROM: usize = 32 << 10;
/// Minimum length of reads with streaming stores: that of memcpy(3) of the GNU C library on the processor of
/// `docs/results/speed.md`, where `rep movsb` into a buffer that is not aligned has half the speed.
const STREAM_READS_FROM: usize = 1 << 20;

/// Copies bytes; returns the number of bytes copied, which is lower if an address is not mapped.
///
/// # Safety
/// One of the ranges is memory of this library, or of the medium, and valid.
#[inline]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) -> usize {
    // SAFETY: a fault at the other address ends the copy.
    len - unsafe { frit_direct_copy(to, from, len) }
}

/// Copies bytes from the medium to the program; long copies bypass the caches. Returns the number of bytes copied.
///
/// # Safety
/// `from` is valid for reads of `len` bytes.
#[inline]
pub(super) unsafe fn copy_from_medium(to: *mut u8, from: *const u8, len: usize) -> usize {
    // SAFETY: the caller's; a fault at the other address ends the copy.
    unsafe { copy_streamed(to, from, len, STREAM_READS_FROM) }
}

/// Copies bytes to the medium; long copies bypass the caches. Returns the number of bytes copied.
///
/// # Safety
/// `to` is valid for writes of `len` bytes.
#[inline]
pub(super) unsafe fn copy_to_medium(to: *mut u8, from: *const u8, len: usize) -> usize {
    // SAFETY: the caller's; a fault at the other address ends the copy.
    unsafe { copy_streamed(to, from, len, STREAM_FROM) }
}

/// Copies bytes, from `stream_from` bytes on with streaming stores.
///
/// # Safety
/// One of the ranges is in the medium, and valid.
#[inline]
unsafe fn copy_streamed(to: *mut u8, from: *const u8, len: usize, stream_from: usize) -> usize {
    if len < stream_from {
        // SAFETY: the caller's.
        return unsafe { copy(to, from, len) };
    }
    let head = to.align_offset(64);
    let body = (len - head) / 64 * 64;
    // SAFETY: the parts are within the range of the caller; the streamed one is aligned.
    unsafe {
        let mut done = copy(to, from, head);
        if done < head {
            return done;
        }
        done += body - frit_direct_stream(to.add(head), from.add(head), body);
        // A fault in the middle of 64 bytes ends the stream before them, and this copy at the byte.
        done + copy(to.add(done), from.add(done), len - done)
    }
}

/// Returns the address at which a thread goes on after a fault, if the instruction is one of a copy.
pub(super) fn after_fault(instruction: usize) -> Option<usize> {
    let (copy, copy_end) =
        (frit_direct_copy_start as *const () as usize, frit_direct_copy_end as *const () as usize);
    let (stream, stream_end) =
        (frit_direct_stream_start as *const () as usize, frit_direct_stream_end as *const () as usize);
    [(copy, copy_end), (stream, stream_end)]
        .into_iter()
        .find(|(start, end)| (*start..*end).contains(&instruction))
        .map(|(_, end)| end)
}
