//! Operations of the file, independent of FUSE.

use crate::backend::ReplyTime;
use crate::device::{Device, Failure, FailureKind};
use crate::fuse::linux::{mode, whence};
use frit_core::Hints;
use frit_fuse::Errno;

/// Number of bytes of the map that one search for data or a hole reads under one hold of the device
/// lock.
const SEEK_SLICE_BYTES: u64 = 1 << 30;

/// Returns the error number of a failure.
pub(super) fn errno(failure: &Failure) -> Errno {
    match failure.kind() {
        FailureKind::ReadOnly => Errno::EROFS,
        FailureKind::NoSpace => Errno::ENOSPC,
        FailureKind::Invalid => Errno::EINVAL,
        FailureKind::Media | FailureKind::Stopping => Errno::EIO,
    }
}

/// Returns the number of bytes of a range that lie inside the file. The end of the file behaves
/// like that of a block device: reads end there, and writes fail for lack of space.
fn inside(device: &Device, at: u64, len: u64) -> u64 {
    len.min(device.bytes().saturating_sub(at))
}

/// Reads from the file. At its end, fewer bytes are returned, or none.
pub(super) fn read<'a>(device: &Device, at: u64, into: &'a mut [u8]) -> Result<(&'a [u8], ReplyTime), Errno> {
    let len = inside(device, at, into.len() as u64) as usize;
    let into = &mut into[..len];
    if into.is_empty() {
        return Ok((into, ReplyTime::NOW));
    }
    let done = device.lock().read(at, into).map_err(|e| errno(&e))?;
    Ok((into, done))
}

/// Writes to the file for a process. Returns the number of bytes written.
pub(super) fn write(device: &Device, at: u64, data: &[u8], pid: u32) -> Result<(u32, ReplyTime), Errno> {
    let len = inside(device, at, data.len() as u64) as usize;
    if len == 0 && !data.is_empty() {
        return Err(Errno::ENOSPC);
    }
    if data.is_empty() {
        return Ok((0, ReplyTime::NOW));
    }
    let process = device.process_hints(pid);
    let written = device.lock().write_of_process(at, &data[..len], Hints::NONE, process);
    let done = written.map_err(|e| errno(&e))?;
    Ok((len as u32, done))
}

/// Makes all completed writes durable.
pub(super) fn sync(device: &Device) -> Result<ReplyTime, Errno> {
    device.flush().map_err(|e| errno(&e))
}

/// Punches holes or writes zeros. Other allocation has no effect, since the file always has its
/// full size.
pub(super) fn allocate(device: &Device, at: u64, len: u64, how: i32) -> Result<ReplyTime, Errno> {
    let end = at.checked_add(len).ok_or(Errno::EINVAL)?;
    if end > device.bytes() {
        return Err(Errno::ENOSPC);
    }
    let mut access = device.lock();
    let done = match how & !mode::KEEP_SIZE {
        0 => return Ok(ReplyTime::NOW),
        // A hole reads as zeros to the byte. Sectors that the range covers only in part are
        // overwritten with zeros.
        mode::PUNCH_HOLE if how & mode::KEEP_SIZE != 0 => access.write_zeroes(at, len, false),
        mode::ZERO_RANGE => access.write_zeroes(at, len, true),
        _ => return Err(Errno::EOPNOTSUPP),
    };
    done.map_err(|e| errno(&e))
}

/// Returns the next position from `at` on where data or a hole starts. The end of the file counts
/// as a hole.
pub(super) fn seek(device: &Device, at: i64, whence: i32) -> Result<i64, Errno> {
    let data = match whence {
        whence::SEEK_DATA => true,
        whence::SEEK_HOLE => false,
        _ => return Err(Errno::EINVAL),
    };
    let bytes = device.bytes();
    let mut at = u64::try_from(at).ok().filter(|&at| at < bytes).ok_or(Errno::ENXIO)?;
    while at < bytes {
        let len = SEEK_SLICE_BYTES.min(bytes - at);
        let (mut pos, mut found) = (at, None);
        let look = &mut |len: u64, place: Option<_>| {
            if found.is_none() && place.is_some() == data {
                found = Some(pos);
            }
            pos += len;
        };
        device.lock().extents(at, len, look).map_err(|e| errno(&e))?;
        if let Some(found) = found {
            return Ok(found as i64);
        }
        at += len;
    }
    if data { Err(Errno::ENXIO) } else { Ok(bytes as i64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceOptions;
    use crate::testing::MemoryBackend;
    use frit_core::Error;
    use std::sync::Arc;

    fn device(options: DeviceOptions) -> Arc<Device> {
        Device::new(Box::new(MemoryBackend::new(1 << 16)), options)
    }

    #[test]
    fn the_file_ends_like_a_block_device() {
        let d = device(DeviceOptions::default());
        assert_eq!(write(&d, (1 << 16) - 10, &[7; 20], 0).unwrap().0, 10);
        assert_eq!(write(&d, 1 << 16, &[7], 0).unwrap_err(), Errno::ENOSPC);
        assert_eq!(write(&d, 1 << 16, &[], 0).unwrap().0, 0);
        let mut buffer = [0; 20];
        assert_eq!(read(&d, (1 << 16) - 10, &mut buffer).unwrap().0, [7; 10]);
        assert_eq!(read(&d, 1 << 20, &mut buffer).unwrap().0, [0; 0]);
        assert_eq!(allocate(&d, 1 << 15, 1 << 16, 0).unwrap_err(), Errno::ENOSPC);
        assert_eq!(allocate(&d, u64::MAX, 2, 0).unwrap_err(), Errno::EINVAL);
    }

    #[test]
    fn holes_are_punched_and_found() {
        let d = device(DeviceOptions::default());
        assert_eq!(seek(&d, 0, whence::SEEK_DATA).unwrap_err(), Errno::ENXIO);
        assert_eq!(seek(&d, 5, whence::SEEK_HOLE).unwrap(), 5);
        assert_eq!(write(&d, 0, &[1; 3 * 4096], 0).unwrap(), (3 * 4096, ReplyTime::NOW));
        assert_eq!(seek(&d, 0, whence::SEEK_HOLE).unwrap(), 3 * 4096);
        let hole = mode::PUNCH_HOLE | mode::KEEP_SIZE;
        assert_eq!(allocate(&d, 4096, 4096, hole).unwrap(), ReplyTime::NOW);
        assert_eq!(seek(&d, 0, whence::SEEK_HOLE).unwrap(), 4096);
        assert_eq!(seek(&d, 4096, whence::SEEK_DATA).unwrap(), 2 * 4096);
        assert_eq!(seek(&d, -1, whence::SEEK_DATA).unwrap_err(), Errno::ENXIO);
        assert_eq!(seek(&d, 0, 17).unwrap_err(), Errno::EINVAL);
        // Ranges that are not aligned to sectors, and zeros that stay allocated.
        assert_eq!(allocate(&d, 10, 3, hole).unwrap(), ReplyTime::NOW);
        assert_eq!(allocate(&d, 100, 4, mode::ZERO_RANGE).unwrap(), ReplyTime::NOW);
        let mut buffer = [0; 104];
        let mut expected = [1; 104];
        expected[10..13].fill(0);
        expected[100..].fill(0);
        assert_eq!(read(&d, 0, &mut buffer).unwrap().0, expected);
        assert_eq!(allocate(&d, 0, 4096, 0x08).unwrap_err(), Errno::EOPNOTSUPP, "collapse");
        assert_eq!(allocate(&d, 0, 4096, mode::PUNCH_HOLE).unwrap_err(), Errno::EOPNOTSUPP);
    }

    #[test]
    fn failures_have_their_numbers() {
        let d = device(DeviceOptions { read_only: true, ..DeviceOptions::default() });
        assert_eq!(write(&d, 0, &[1], 0).unwrap_err(), Errno::EROFS);
        assert_eq!(allocate(&d, 0, 512, mode::ZERO_RANGE).unwrap_err(), Errno::EROFS);
        let full = Failure::Backend(Error::NoSpace { what: "x".into() });
        assert_eq!(errno(&full), Errno::ENOSPC);
        assert_eq!(errno(&Failure::Stopping), Errno::EIO);
        let memory = MemoryBackend::new(4096);
        memory.knobs().broken.store(true, std::sync::atomic::Ordering::Relaxed);
        let d = Device::new(Box::new(memory), DeviceOptions::default());
        assert_eq!(write(&d, 0, &[1; 512], 0).unwrap_err(), Errno::EIO);
        assert_eq!(read(&d, 0, &mut [0; 512]).unwrap_err(), Errno::EIO);
        assert_eq!(sync(&d).unwrap_err(), Errno::EIO);
    }
}
