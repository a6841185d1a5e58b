//! What is asked of the kernel when a file system is mounted.

use fuser::{InitFlags, KernelConfig};
use std::io;

/// The largest request: what the kernel allows without further settings (fs.fuse.max_pages_limit is 256).
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Requests nobody waits for, such as those that read ahead, that are outstanding at a time.
const BACKGROUND_MAX: u16 = 128;

/// What is asked of the kernel, each where it has it. FUSE_ATOMIC_O_TRUNC is not: the answer to OPEN has no attributes,
/// so the kernel would go on with the set-ID bits that the truncation took (`plain`). SETATTR, which it sends in its
/// place, brings the mode.
const WISHES: [InitFlags; 9] = [
    // Lookups and listings of one directory at a time from several programs.
    InitFlags::FUSE_PARALLEL_DIROPS,
    // Listings with attributes, where lookups follow.
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    // Several requests of one O_DIRECT reader or writer at a time (`pages`), and maps of files that are opened so.
    InitFlags::FUSE_ASYNC_DIO,
    InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
    // Nothing changes behind the kernel's back: neither contents nor targets of links.
    InitFlags::FUSE_EXPLICIT_INVAL_DATA,
    InitFlags::FUSE_CACHE_SYMLINKS,
    // Handles for open_by_handle_at(2), and for exporting it over NFS.
    InitFlags::FUSE_EXPORT_SUPPORT,
    // Set-ID bits and capabilities are taken away here (`plain`): a write is one request. Without it the kernel asks
    // for capabilities before each: two requests, and 23 µs of processor time in place of 17 for 4 KiB.
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
];

/// Sets the connection up.
///
/// # Errors
/// A writeback cache that this kernel has not.
pub(super) fn ask(config: &mut KernelConfig, writeback: bool) -> io::Result<()> {
    // A kernel that allows less says so, and gets that.
    let _ = config.set_max_write(REQUEST_BYTES_MAX).map_err(|most| config.set_max_write(most));
    let _ = config.set_max_background(BACKGROUND_MAX);
    for wish in WISHES {
        let _ = config.add_capabilities(wish);
    }
    if writeback {
        config.add_capabilities(InitFlags::FUSE_WRITEBACK_CACHE).map_err(|_| {
            io::Error::new(io::ErrorKind::Unsupported, "this kernel has no writeback cache for FUSE")
        })?;
    }
    Ok(())
}

/// Asks for passthrough; whether the kernel has it. Backing files may lie on file systems that are not stacked.
pub(super) fn ask_passthrough(config: &mut KernelConfig) -> bool {
    config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok() && config.set_max_stack_depth(1).is_ok()
}
