//! From the bytes of a request to a call of the server.

use crate::answer::Answer;
use crate::kernel::PollToken;
use crate::protocol::abi::{self, fattr, opcode};
use crate::protocol::{Arguments, Malformed, Timestamp};
use crate::reply::{
    ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyIoctl, ReplyLseek, ReplyOpen, ReplyPoll, ReplyRead, ReplyStatfs, ReplyWrite, ReplyXattr,
};
use crate::request::Request;
use crate::server::{CopyRange, Fallocate, NewTime, Read, Server, SetAttr, Write};
use fuser::{Errno, FileHandle, INodeNo, LockOwner, OpenFlags, RenameFlags, WriteFlags};

/// Requests are refused that no kernel sends, so the error is EIO, as for damage.
type Parsed<T> = Result<T, Malformed>;

/// Calls the function of the server for a request. One that cannot be read is answered with EIO, and
/// an unknown one with ENOSYS.
pub(crate) fn dispatch(server: &impl Server, request: &Request, arguments: Arguments<'_>, answer: Answer) {
    // An answer that is dropped by a function below answers with EIO.
    let _ = match request.opcode() {
        opcode::READ | opcode::WRITE | opcode::FSYNC | opcode::FALLOCATE | opcode::LSEEK => {
            contents(server, request, arguments, answer)
        }
        opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT => {
            without_reply(server, request, arguments, answer)
        }
        opcode::GETATTR | opcode::SETATTR | opcode::STATFS | opcode::ACCESS => {
            attributes(server, request, arguments, answer)
        }
        opcode::LOOKUP..=opcode::LINK | opcode::RENAME2 | opcode::CREATE => {
            names(server, request, arguments, answer)
        }
        opcode::OPEN
        | opcode::RELEASE
        | opcode::FLUSH
        | opcode::POLL
        | opcode::IOCTL
        | opcode::COPY_FILE_RANGE => open_files(server, request, arguments, answer),
        opcode::OPENDIR..=opcode::FSYNCDIR | opcode::READDIRPLUS => {
            directories(server, request, arguments, answer)
        }
        opcode::SETXATTR..=opcode::REMOVEXATTR => xattrs(server, request, arguments, answer),
        opcode::DESTROY => {
            answer.bytes(&[]);
            Ok(())
        }
        opcode::NOTIFY_REPLY => {
            answer.none();
            Ok(())
        }
        _ => {
            answer.error(Errno::ENOSYS);
            Ok(())
        }
    };
}

fn owner(is_valid: bool, owner: u64) -> Option<LockOwner> {
    is_valid.then_some(LockOwner(owner))
}

fn contents(
    server: &impl Server,
    request: &Request,
    mut arguments: Arguments<'_>,
    answer: Answer,
) -> Parsed<()> {
    let node = request.node();
    match request.opcode() {
        opcode::READ => {
            let of: abi::ReadIn = arguments.structure()?;
            let owner = owner(of.read_flags & abi::READ_LOCKOWNER != 0, of.lock_owner);
            let read = Read { handle: FileHandle(of.fh), at: of.offset, len: of.size, owner };
            server.read(request, node, &read, ReplyRead::new(answer, of.size));
        }
        opcode::WRITE => {
            let of: abi::WriteIn = arguments.structure()?;
            let flags = WriteFlags::from_bits_retain(of.write_flags);
            let owner = owner(flags.contains(WriteFlags::FUSE_WRITE_LOCKOWNER), of.lock_owner);
            let data = arguments.bytes(of.size)?;
            let write = Write { handle: FileHandle(of.fh), at: of.offset, data, flags, owner };
            server.write(request, node, &write, ReplyWrite(answer));
        }
        opcode::FSYNC => {
            let of: abi::FsyncIn = arguments.structure()?;
            server.fsync(request, node, of.fsync_flags & abi::FSYNC_FDATASYNC != 0, ReplyEmpty(answer));
        }
        opcode::FALLOCATE => {
            let of: abi::FallocateIn = arguments.structure()?;
            let range = Fallocate { at: of.offset, len: of.length, mode: of.mode as i32 };
            server.fallocate(request, node, &range, ReplyEmpty(answer));
        }
        _ => {
            let of: abi::LseekIn = arguments.structure()?;
            server.lseek(request, node, of.offset as i64, of.whence as i32, ReplyLseek(answer));
        }
    }
    Ok(())
}

fn without_reply(
    server: &impl Server,
    request: &Request,
    mut arguments: Arguments<'_>,
    answer: Answer,
) -> Parsed<()> {
    answer.none();
    match request.opcode() {
        opcode::FORGET => server.forget(request.node(), arguments.structure::<abi::ForgetIn>()?.nlookup),
        opcode::INTERRUPT => server.interrupt(arguments.structure::<abi::InterruptIn>()?.unique),
        _ => {
            for _ in 0..arguments.structure::<abi::BatchForgetIn>()?.count {
                let of: abi::ForgetOne = arguments.next()?;
                server.forget(INodeNo(of.nodeid), of.nlookup);
            }
        }
    }
    Ok(())
}

fn attributes(
    server: &impl Server,
    request: &Request,
    arguments: Arguments<'_>,
    answer: Answer,
) -> Parsed<()> {
    let node = request.node();
    match request.opcode() {
        opcode::GETATTR => server.getattr(request, node, ReplyAttr(answer)),
        opcode::SETATTR => {
            let changes = changes(&arguments.structure()?);
            server.setattr(request, node, &changes, ReplyAttr(answer));
        }
        opcode::STATFS => server.statfs(request, node, ReplyStatfs(answer)),
        _ => {
            let mask = arguments.structure::<abi::AccessIn>()?.mask;
            server.access(request, node, mask, ReplyEmpty(answer));
        }
    }
    Ok(())
}

fn changes(of: &abi::SetattrIn) -> SetAttr {
    let has = |bit: u32| of.valid & bit != 0;
    let at = |seconds: u64, nanoseconds: u32| Timestamp { seconds: seconds as i64, nanoseconds };
    let time = |bit: u32, now: u32, time: Timestamp| {
        let to = if has(now) { NewTime::Now } else { NewTime::At(time) };
        has(bit).then_some(to)
    };
    SetAttr {
        mode: has(fattr::MODE).then_some(of.mode),
        uid: has(fattr::UID).then_some(of.uid),
        gid: has(fattr::GID).then_some(of.gid),
        size: has(fattr::SIZE).then_some(of.size),
        atime: time(fattr::ATIME, fattr::ATIME_NOW, at(of.atime, of.atimensec)),
        mtime: time(fattr::MTIME, fattr::MTIME_NOW, at(of.mtime, of.mtimensec)),
        ctime: has(fattr::CTIME).then_some(at(of.ctime, of.ctimensec)),
    }
}

fn names(
    server: &impl Server,
    request: &Request,
    mut arguments: Arguments<'_>,
    answer: Answer,
) -> Parsed<()> {
    let node = request.node();
    match request.opcode() {
        opcode::LOOKUP => server.lookup(request, node, arguments.name()?, ReplyEntry(answer)),
        opcode::READLINK => server.readlink(request, node, ReplyData(answer)),
        opcode::SYMLINK => {
            let (name, target) = (arguments.name()?, arguments.name()?);
            server.symlink(request, node, name, target, ReplyEntry(answer));
        }
        opcode::MKNOD => {
            let of: abi::MknodIn = arguments.structure()?;
            server.mknod(request, node, arguments.name()?, of.mode, of.rdev, ReplyEntry(answer));
        }
        opcode::MKDIR => {
            let of: abi::MkdirIn = arguments.structure()?;
            server.mkdir(request, node, arguments.name()?, of.mode, ReplyEntry(answer));
        }
        opcode::UNLINK => server.unlink(request, node, arguments.name()?, ReplyEmpty(answer)),
        opcode::RMDIR => server.rmdir(request, node, arguments.name()?, ReplyEmpty(answer)),
        opcode::RENAME | opcode::RENAME2 => {
            let (newdir, flags) = if request.opcode() == opcode::RENAME {
                (arguments.structure::<abi::RenameIn>()?.newdir, 0)
            } else {
                let of: abi::Rename2In = arguments.structure()?;
                (of.newdir, of.flags)
            };
            let (from, to) = ((node, arguments.name()?), (INodeNo(newdir), arguments.name()?));
            server.rename(request, from, to, RenameFlags::from_bits_retain(flags), ReplyEmpty(answer));
        }
        opcode::LINK => {
            let of: abi::LinkIn = arguments.structure()?;
            server.link(request, INodeNo(of.oldnodeid), node, arguments.name()?, ReplyEntry(answer));
        }
        opcode::CREATE => {
            let of: abi::CreateIn = arguments.structure()?;
            let flags = OpenFlags(of.flags as i32);
            server.create(request, node, arguments.name()?, of.mode, flags, ReplyCreate(answer));
        }
        _ => answer.error(Errno::ENOSYS),
    }
    Ok(())
}

fn open_files(
    server: &impl Server,
    request: &Request,
    mut arguments: Arguments<'_>,
    answer: Answer,
) -> Parsed<()> {
    let node = request.node();
    match request.opcode() {
        opcode::OPEN => {
            let of: abi::OpenIn = arguments.structure()?;
            server.open(request, node, OpenFlags(of.flags as i32), ReplyOpen(answer));
        }
        opcode::RELEASE => {
            let of: abi::ReleaseIn = arguments.structure()?;
            server.release(request, node, FileHandle(of.fh), ReplyEmpty(answer));
        }
        opcode::FLUSH => server.flush(request, node, ReplyEmpty(answer)),
        opcode::POLL => {
            let of: abi::PollIn = arguments.structure()?;
            let is_waiting = of.flags & abi::POLL_SCHEDULE_NOTIFY != 0;
            let token = is_waiting.then_some(PollToken(of.kh));
            server.poll(request, FileHandle(of.fh), token, ReplyPoll(answer));
        }
        opcode::IOCTL => {
            let of: abi::IoctlIn = arguments.structure()?;
            let argument = arguments.bytes(of.in_size)?;
            server.ioctl(request, (node, FileHandle(of.fh)), of.cmd, argument, ReplyIoctl(answer));
        }
        _ => {
            let of: abi::CopyFileRangeIn = arguments.structure()?;
            let to = (INodeNo(of.nodeid_out), of.off_out);
            let range = CopyRange { from: (node, of.off_in), to, len: of.len };
            server.copy_file_range(request, &range, ReplyWrite(answer));
        }
    }
    Ok(())
}

fn directories(
    server: &impl Server,
    request: &Request,
    arguments: Arguments<'_>,
    answer: Answer,
) -> Parsed<()> {
    let node = request.node();
    match request.opcode() {
        opcode::OPENDIR => server.opendir(request, node, ReplyOpen(answer)),
        opcode::READDIR => {
            let of: abi::ReadIn = arguments.structure()?;
            server.readdir(request, node, of.offset, ReplyDirectory::new(answer, of.size));
        }
        opcode::READDIRPLUS => {
            let of: abi::ReadIn = arguments.structure()?;
            server.readdirplus(request, node, of.offset, ReplyDirectoryPlus::new(answer, of.size));
        }
        opcode::RELEASEDIR => server.releasedir(request, node, ReplyEmpty(answer)),
        _ => {
            let of: abi::FsyncIn = arguments.structure()?;
            server.fsyncdir(request, node, of.fsync_flags & abi::FSYNC_FDATASYNC != 0, ReplyEmpty(answer));
        }
    }
    Ok(())
}

fn xattrs(
    server: &impl Server,
    request: &Request,
    mut arguments: Arguments<'_>,
    answer: Answer,
) -> Parsed<()> {
    let node = request.node();
    match request.opcode() {
        opcode::SETXATTR => {
            let of: abi::SetxattrIn = arguments.structure()?;
            let (name, value) = (arguments.name()?, arguments.bytes(of.size)?);
            server.setxattr(request, node, name, value, of.flags as i32, ReplyEmpty(answer));
        }
        opcode::GETXATTR => {
            let room = arguments.structure::<abi::GetxattrIn>()?.size;
            server.getxattr(request, node, arguments.name()?, room, ReplyXattr(answer));
        }
        opcode::LISTXATTR => {
            let room = arguments.structure::<abi::GetxattrIn>()?.size;
            server.listxattr(request, node, room, ReplyXattr(answer));
        }
        _ => server.removexattr(request, node, arguments.name()?, ReplyEmpty(answer)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Route;
    use crate::protocol::abi::{InHeader, OutHeader};
    use crate::transport::DeviceFd;
    use fuser::KernelConfig;
    use proptest::prelude::*;
    use std::os::unix::net::UnixDatagram;
    use std::sync::Arc;
    use zerocopy::FromBytes;

    /// Answers with ENOSYS.
    struct Unimplemented;

    impl Server for Unimplemented {
        fn negotiate(&self, _: &mut KernelConfig) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Returns the error of the one reply to a request, or `None` if there is none.
    fn error_of(opcode: u32, arguments: &[u8]) -> Option<i32> {
        let (ours, device) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let header = InHeader { opcode, unique: 42, nodeid: 1, ..InHeader::default() };
        let answer = Answer::new(42, Route::Device(DeviceFd(Arc::new(device.into()))));
        let arguments = Arguments::contiguous(opcode, arguments);
        dispatch(&Unimplemented, &Request::new(header), arguments, answer);
        let mut reply = [0; 4096];
        let len = ours.recv(&mut reply).ok()?;
        let (reply, _) = OutHeader::read_from_prefix(&reply[..len]).unwrap();
        assert_eq!((reply.unique, reply.len as usize), (42, len));
        assert!(ours.recv(&mut [0]).is_err(), "one reply");
        Some(-reply.error)
    }

    #[test]
    fn requests_are_answered_once() {
        let (eio, enosys) = (Errno::EIO.code(), Errno::ENOSYS.code());
        assert_eq!(error_of(opcode::LOOKUP, b"name\0"), Some(enosys));
        assert_eq!(error_of(opcode::LOOKUP, b"name"), Some(eio), "no end of the name");
        assert_eq!(error_of(opcode::WRITE, &[1; 40]), Some(eio), "fewer bytes than its size");
        assert_eq!(error_of(opcode::MKDIR, &[0; 7]), Some(eio), "a short structure");
        assert_eq!(error_of(opcode::RELEASE, &[0; 24]), Some(0));
        assert_eq!(error_of(opcode::DESTROY, &[]), Some(0));
        assert_eq!(error_of(999, &[]), Some(enosys));
        assert_eq!(error_of(opcode::FORGET, &[0; 8]), None);
        assert_eq!(error_of(opcode::BATCH_FORGET, &[255; 24]), None, "fewer inodes than its count");
        assert_eq!(error_of(opcode::INTERRUPT, &[]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_get_one_answer(opcode in 0u32..60, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let silent = [opcode::FORGET, opcode::BATCH_FORGET, opcode::INTERRUPT, opcode::NOTIFY_REPLY];
            prop_assert_eq!(error_of(opcode, &bytes).is_none(), silent.contains(&opcode));
        }
    }

    #[test]
    fn changes_of_attributes_are_those_with_a_bit() {
        let of = abi::SetattrIn {
            valid: fattr::SIZE | fattr::ATIME | fattr::MTIME | fattr::MTIME_NOW,
            size: 7,
            mode: 0o644,
            atime: -2i64 as u64,
            atimensec: 5,
            ..abi::SetattrIn::default()
        };
        let expected = SetAttr {
            size: Some(7),
            atime: Some(NewTime::At(Timestamp { seconds: -2, nanoseconds: 5 })),
            mtime: Some(NewTime::Now),
            ..SetAttr::default()
        };
        assert_eq!(changes(&of), expected);
    }
}
