//! Structures and numbers of linux/fuse.h, with its names in the types of Rust.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Numbers of requests.
pub(crate) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const SETATTR: u32 = 4;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const SYMLINK: u32 = 6;
    pub(crate) const MKNOD: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const UNLINK: u32 = 10;
    pub(crate) const RMDIR: u32 = 11;
    pub(crate) const RENAME: u32 = 12;
    pub(crate) const LINK: u32 = 13;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const SETXATTR: u32 = 21;
    pub(crate) const GETXATTR: u32 = 22;
    pub(crate) const LISTXATTR: u32 = 23;
    pub(crate) const REMOVEXATTR: u32 = 24;
    pub(crate) const FLUSH: u32 = 25;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const FSYNCDIR: u32 = 30;
    pub(crate) const ACCESS: u32 = 34;
    pub(crate) const CREATE: u32 = 35;
    pub(crate) const INTERRUPT: u32 = 36;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const IOCTL: u32 = 39;
    pub(crate) const POLL: u32 = 40;
    pub(crate) const NOTIFY_REPLY: u32 = 41;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const FALLOCATE: u32 = 43;
    pub(crate) const READDIRPLUS: u32 = 44;
    pub(crate) const RENAME2: u32 = 45;
    pub(crate) const LSEEK: u32 = 46;
    pub(crate) const COPY_FILE_RANGE: u32 = 47;
}

/// Returns the size of the structure that follows the header of a request, in bytes. Unknown
/// requests are refused before their arguments are read.
pub(crate) fn fixed_bytes(opcode: u32) -> usize {
    match opcode {
        opcode::FORGET => size_of::<ForgetIn>(),
        opcode::GETATTR => size_of::<GetattrIn>(),
        opcode::SETATTR => size_of::<SetattrIn>(),
        opcode::MKNOD => size_of::<MknodIn>(),
        opcode::MKDIR => size_of::<MkdirIn>(),
        opcode::RENAME => size_of::<RenameIn>(),
        opcode::RENAME2 => size_of::<Rename2In>(),
        opcode::LINK => size_of::<LinkIn>(),
        opcode::OPEN | opcode::OPENDIR => size_of::<OpenIn>(),
        opcode::READ | opcode::READDIR | opcode::READDIRPLUS => size_of::<ReadIn>(),
        opcode::WRITE => size_of::<WriteIn>(),
        opcode::RELEASE | opcode::RELEASEDIR => size_of::<ReleaseIn>(),
        opcode::FSYNC | opcode::FSYNCDIR => size_of::<FsyncIn>(),
        opcode::SETXATTR => size_of::<SetxattrIn>(),
        opcode::GETXATTR | opcode::LISTXATTR => size_of::<GetxattrIn>(),
        opcode::FLUSH => size_of::<FlushIn>(),
        opcode::ACCESS => size_of::<AccessIn>(),
        opcode::CREATE => size_of::<CreateIn>(),
        opcode::INTERRUPT => size_of::<InterruptIn>(),
        opcode::IOCTL => size_of::<IoctlIn>(),
        opcode::POLL => size_of::<PollIn>(),
        opcode::BATCH_FORGET => size_of::<BatchForgetIn>(),
        opcode::FALLOCATE => size_of::<FallocateIn>(),
        opcode::LSEEK => size_of::<LseekIn>(),
        opcode::COPY_FILE_RANGE => size_of::<CopyFileRangeIn>(),
        _ => 0,
    }
}

/// Bits of `valid` in [`SetattrIn`].
pub(crate) mod fattr {
    pub(crate) const MODE: u32 = 1 << 0;
    pub(crate) const UID: u32 = 1 << 1;
    pub(crate) const GID: u32 = 1 << 2;
    pub(crate) const SIZE: u32 = 1 << 3;
    pub(crate) const ATIME: u32 = 1 << 4;
    pub(crate) const MTIME: u32 = 1 << 5;
    pub(crate) const ATIME_NOW: u32 = 1 << 7;
    pub(crate) const MTIME_NOW: u32 = 1 << 8;
    pub(crate) const CTIME: u32 = 1 << 10;
}

/// Flag of READ: `lock_owner` is valid.
pub(crate) const READ_LOCKOWNER: u32 = 1 << 1;
/// Flag of POLL: a program waits for a notification.
pub(crate) const POLL_SCHEDULE_NOTIFY: u32 = 1 << 0;
/// Flag of FSYNC: only the contents.
pub(crate) const FSYNC_FDATASYNC: u32 = 1 << 0;
/// Flag of replies to OPEN: the kernel reads and writes a file of its own.
pub(crate) const FOPEN_PASSTHROUGH: u32 = 1 << 7;
/// Code of the notification that asks for pages of the kernel's cache.
pub(crate) const NOTIFY_RETRIEVE: i32 = 5;

/// Defines structures of the kernel, which consist of bytes without gaps.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Default, Debug)]
        #[repr(C)]
        pub(crate) struct $name { $(pub(crate) $field: $kind),* }
    )*};
}

structures! {
    InHeader {
        len: u32, opcode: u32, unique: u64, nodeid: u64, uid: u32, gid: u32, pid: u32, total_extlen: u16,
        padding: u16,
    }
    ForgetIn { nlookup: u64 }
    BatchForgetIn { count: u32, dummy: u32 }
    ForgetOne { nodeid: u64, nlookup: u64 }
    GetattrIn { flags: u32, dummy: u32, fh: u64 }
    SetattrIn {
        valid: u32, padding: u32, fh: u64, size: u64, lock_owner: u64, atime: u64, mtime: u64, ctime: u64,
        atimensec: u32, mtimensec: u32, ctimensec: u32, mode: u32, unused4: u32, uid: u32, gid: u32,
        unused5: u32,
    }
    MknodIn { mode: u32, rdev: u32, umask: u32, padding: u32 }
    MkdirIn { mode: u32, umask: u32 }
    RenameIn { newdir: u64 }
    Rename2In { newdir: u64, flags: u32, padding: u32 }
    LinkIn { oldnodeid: u64 }
    OpenIn { flags: u32, open_flags: u32 }
    CreateIn { flags: u32, mode: u32, umask: u32, open_flags: u32 }
    ReadIn { fh: u64, offset: u64, size: u32, read_flags: u32, lock_owner: u64, flags: u32, padding: u32 }
    WriteIn { fh: u64, offset: u64, size: u32, write_flags: u32, lock_owner: u64, flags: u32, padding: u32 }
    ReleaseIn { fh: u64, flags: u32, release_flags: u32, lock_owner: u64 }
    FlushIn { fh: u64, unused: u32, padding: u32, lock_owner: u64 }
    FsyncIn { fh: u64, fsync_flags: u32, padding: u32 }
    /// Without FUSE_SETXATTR_EXT.
    SetxattrIn { size: u32, flags: u32 }
    GetxattrIn { size: u32, padding: u32 }
    AccessIn { mask: u32, padding: u32 }
    InterruptIn { unique: u64 }
    IoctlIn { fh: u64, flags: u32, cmd: u32, arg: u64, in_size: u32, out_size: u32 }
    PollIn { fh: u64, kh: u64, flags: u32, events: u32 }
    FallocateIn { fh: u64, offset: u64, length: u64, mode: u32, padding: u32 }
    LseekIn { fh: u64, offset: u64, whence: u32, padding: u32 }
    CopyFileRangeIn {
        fh_in: u64, off_in: u64, nodeid_out: u64, fh_out: u64, off_out: u64, len: u64, flags: u64,
    }

    OutHeader { len: u32, error: i32, unique: u64 }
    Attr {
        ino: u64, size: u64, blocks: u64, atime: u64, mtime: u64, ctime: u64, atimensec: u32, mtimensec: u32,
        ctimensec: u32, mode: u32, nlink: u32, uid: u32, gid: u32, rdev: u32, blksize: u32, flags: u32,
    }
    EntryOut {
        nodeid: u64, generation: u64, entry_valid: u64, attr_valid: u64, entry_valid_nsec: u32,
        attr_valid_nsec: u32, attr: Attr,
    }
    AttrOut { attr_valid: u64, attr_valid_nsec: u32, dummy: u32, attr: Attr }
    OpenOut { fh: u64, open_flags: u32, backing_id: i32 }
    CreateOut { entry: EntryOut, open: OpenOut }
    WriteOut { size: u32, padding: u32 }
    StatfsOut {
        blocks: u64, bfree: u64, bavail: u64, files: u64, ffree: u64, bsize: u32, namelen: u32, frsize: u32,
        padding: u32, spare: [u32; 6],
    }
    GetxattrOut { size: u32, padding: u32 }
    IoctlOut { result: i32, flags: u32, in_iovs: u32, out_iovs: u32 }
    PollOut { revents: u32, padding: u32 }
    LseekOut { offset: u64 }
    /// Followed by the name, and zeros up to a multiple of 8 bytes.
    Dirent { ino: u64, off: u64, namelen: u32, kind: u32 }
    NotifyRetrieveOut { notify_unique: u64, nodeid: u64, offset: u64, size: u32, padding: u32 }

    /// `fuse_uring_ent_in_out`: what the kernel and the server tell each other about an entry.
    EntryInOut { flags: u64, commit_id: u64, payload_sz: u32, padding: u32, reserved: u64 }
    /// `fuse_uring_cmd_req`: arguments of a command of the ring.
    CommandRequest { flags: u64, commit_id: u64, qid: u16, padding: [u8; 6] }
}

/// Bytes of a header, and of the structure behind it, in an entry of a ring.
pub(crate) const RING_HEADER_BYTES: usize = 128;

/// `fuse_uring_req_header`: headers of an entry of a ring.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct RingHeaders {
    pub(crate) in_out: [u8; RING_HEADER_BYTES],
    pub(crate) op_in: [u8; RING_HEADER_BYTES],
    pub(crate) entry: EntryInOut,
}

/// Commands of an entry (`fuse_uring_cmd`).
pub(crate) mod ring_command {
    /// Makes an entry known, and waits for a request.
    pub(crate) const REGISTER: u32 = 1;
    /// Replies, and waits for the next request.
    pub(crate) const COMMIT_AND_FETCH: u32 = 2;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of linux/fuse.h, which a C compiler prints if the header is installed.
    #[test]
    fn structures_have_the_sizes_of_the_kernel() {
        let expected = [
            ("fuse_in_header", size_of::<InHeader>()),
            ("fuse_forget_in", size_of::<ForgetIn>()),
            ("fuse_batch_forget_in", size_of::<BatchForgetIn>()),
            ("fuse_forget_one", size_of::<ForgetOne>()),
            ("fuse_getattr_in", size_of::<GetattrIn>()),
            ("fuse_setattr_in", size_of::<SetattrIn>()),
            ("fuse_mknod_in", size_of::<MknodIn>()),
            ("fuse_mkdir_in", size_of::<MkdirIn>()),
            ("fuse_rename_in", size_of::<RenameIn>()),
            ("fuse_rename2_in", size_of::<Rename2In>()),
            ("fuse_link_in", size_of::<LinkIn>()),
            ("fuse_open_in", size_of::<OpenIn>()),
            ("fuse_create_in", size_of::<CreateIn>()),
            ("fuse_read_in", size_of::<ReadIn>()),
            ("fuse_write_in", size_of::<WriteIn>()),
            ("fuse_release_in", size_of::<ReleaseIn>()),
            ("fuse_flush_in", size_of::<FlushIn>()),
            ("fuse_fsync_in", size_of::<FsyncIn>()),
            ("fuse_getxattr_in", size_of::<GetxattrIn>()),
            ("fuse_access_in", size_of::<AccessIn>()),
            ("fuse_interrupt_in", size_of::<InterruptIn>()),
            ("fuse_ioctl_in", size_of::<IoctlIn>()),
            ("fuse_poll_in", size_of::<PollIn>()),
            ("fuse_fallocate_in", size_of::<FallocateIn>()),
            ("fuse_lseek_in", size_of::<LseekIn>()),
            ("fuse_copy_file_range_in", size_of::<CopyFileRangeIn>()),
            ("fuse_out_header", size_of::<OutHeader>()),
            ("fuse_attr", size_of::<Attr>()),
            ("fuse_entry_out", size_of::<EntryOut>()),
            ("fuse_attr_out", size_of::<AttrOut>()),
            ("fuse_open_out", size_of::<OpenOut>()),
            ("fuse_write_out", size_of::<WriteOut>()),
            ("fuse_statfs_out", size_of::<StatfsOut>()),
            ("fuse_getxattr_out", size_of::<GetxattrOut>()),
            ("fuse_ioctl_out", size_of::<IoctlOut>()),
            ("fuse_poll_out", size_of::<PollOut>()),
            ("fuse_lseek_out", size_of::<LseekOut>()),
            ("fuse_dirent", size_of::<Dirent>()),
            ("fuse_notify_retrieve_out", size_of::<NotifyRetrieveOut>()),
        ];
        let dir = tempfile::tempdir().unwrap();
        let (source, program) = (dir.path().join("sizes.c"), dir.path().join("sizes"));
        let print =
            |(name, _): &(&str, usize)| format!("printf(\"{name} %zu\\n\", sizeof(struct {name}));\n");
        let body: String = expected.iter().map(print).collect();
        let text =
            format!("#include <stdio.h>\n#include <linux/fuse.h>\nint main(void) {{ {body} return 0; }}\n");
        std::fs::write(&source, text).unwrap();
        let built = std::process::Command::new("cc").arg(&source).arg("-o").arg(&program).output();
        if !built.is_ok_and(|built| built.status.success()) {
            return println!("skipped: no C compiler, or no linux/fuse.h");
        }
        let printed = std::process::Command::new(&program).output().unwrap();
        let ours: String = expected.iter().map(|(name, size)| format!("{name} {size}\n")).collect();
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), ours);
    }
}
