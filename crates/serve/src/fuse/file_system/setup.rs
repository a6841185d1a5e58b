//! Negotiation of capabilities with the kernel at mounting.

use frit_fuse::{InitFlags, KernelConfig, request_capabilities};
use std::io;

/// Capabilities requested from the kernel; each is used if the kernel has it. FUSE_ATOMIC_O_TRUNC
/// is not requested: the reply to OPEN has no attributes, so the kernel would continue with the
/// set-ID bits that the truncation removed (`killpriv`). The reply to SETATTR, which it sends
/// instead, contains the mode.
const CAPABILITIES: [InitFlags; 9] = [
    // Concurrent lookups and listings of one directory by several programs.
    InitFlags::FUSE_PARALLEL_DIROPS,
    // Listings with attributes if lookups follow.
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    // Concurrent requests of one O_DIRECT reader or writer (`page_invalidation`), and memory maps
    // of files opened in this way.
    InitFlags::FUSE_ASYNC_DIO,
    InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
    // Neither contents nor targets of links change without the kernel's knowledge.
    InitFlags::FUSE_EXPLICIT_INVAL_DATA,
    InitFlags::FUSE_CACHE_SYMLINKS,
    // Handles for open_by_handle_at(2), and for export over NFS.
    InitFlags::FUSE_EXPORT_SUPPORT,
    // Set-ID bits and capabilities are removed here (`killpriv`), so that a write is one request.
    // Otherwise the kernel requests the capabilities before each write: two requests, and 23 µs of
    // processor time instead of 17 µs for 4 KiB.
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
];

/// Sets up the connection to the kernel.
///
/// # Errors
/// A writeback cache was requested, but this kernel has none.
pub(super) fn negotiate(config: &mut KernelConfig, writeback: bool) -> io::Result<()> {
    request_capabilities(config, CAPABILITIES);
    if writeback {
        config.add_capabilities(InitFlags::FUSE_WRITEBACK_CACHE).map_err(|_| {
            io::Error::new(io::ErrorKind::Unsupported, "this kernel has no writeback cache for FUSE")
        })?;
    }
    Ok(())
}

/// Requests passthrough, and returns `true` if the kernel has it. Backing files may be on file
/// systems that are not stacked.
pub(super) fn negotiate_passthrough(config: &mut KernelConfig) -> bool {
    config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok() && config.set_max_stack_depth(1).is_ok()
}
