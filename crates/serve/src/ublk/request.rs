//! Execution of one request of the kernel.

use crate::device::{Device, Failure, FailureKind};
use frit_core::Hints;
use libublk::sys;
use rustix::io::Errno;

/// Executes a request with the data in `buffer`. Returns the number of bytes moved, or a negative
/// error number.
pub(super) fn serve(device: &Device, request: &sys::ublksrv_io_desc, buffer: &mut [u8]) -> i32 {
    let op = request.op_flags & 0xff;
    let flag = |flag| request.op_flags & flag != 0;
    let fua = flag(sys::UBLK_IO_F_FUA);
    let (at, len) = (request.start_sector << 9, u64::from(request.nr_sectors) << 9);
    // Requests that move no data may be longer than the buffer.
    let moves = matches!(op, sys::UBLK_IO_OP_READ | sys::UBLK_IO_OP_WRITE);
    let Some(part) = buffer.get_mut(..if moves { len as usize } else { 0 }) else {
        return -Errno::INVAL.raw_os_error();
    };
    // `lock` holds the device lock only within its match arm, so that `flush` can take it.
    let done = match op {
        sys::UBLK_IO_OP_READ => device.lock().read(at, part),
        sys::UBLK_IO_OP_WRITE => {
            // The kernel's file systems mark their metadata (REQ_META).
            let metadata = if flag(sys::UBLK_IO_F_META) { Hints::METADATA } else { Hints::NONE };
            device.lock().write(at, part, if fua { metadata.with(Hints::FUA) } else { metadata })
        }
        sys::UBLK_IO_OP_FLUSH => device.flush(),
        sys::UBLK_IO_OP_DISCARD => device.lock().discard(at, len),
        sys::UBLK_IO_OP_WRITE_ZEROES => device.lock().write_zeroes(at, len, true),
        _ => return -Errno::OPNOTSUPP.raw_os_error(),
    };
    let done = match (done, op) {
        (Ok(_), sys::UBLK_IO_OP_WRITE) if fua => device.flush(),
        (done, _) => done,
    };
    match done {
        Ok(_) => part.len() as i32,
        Err(e) => -errno(&e).raw_os_error(),
    }
}

fn errno(failure: &Failure) -> Errno {
    match failure.kind() {
        FailureKind::NoSpace => Errno::NOSPC,
        FailureKind::ReadOnly => Errno::PERM,
        FailureKind::Invalid => Errno::INVAL,
        FailureKind::Media | FailureKind::Stopping => Errno::IO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceOptions;
    use crate::hints::HintSource;
    use crate::testing::MemoryBackend;
    use frit_core::HintKind;
    use std::sync::atomic::Ordering;

    fn request(op: u32, sector: u64, sectors: u32) -> sys::ublksrv_io_desc {
        sys::ublksrv_io_desc { op_flags: op, nr_sectors: sectors, start_sector: sector, ..Default::default() }
    }

    #[test]
    fn requests_are_served() {
        let memory = MemoryBackend::new(1 << 20);
        let knobs = memory.knobs();
        let device = Device::new(Box::new(memory), DeviceOptions::default());
        let mut buffer = [7; 8192];
        let ask =
            |op, sector, sectors, buffer: &mut [u8]| serve(&device, &request(op, sector, sectors), buffer);
        assert_eq!(ask(sys::UBLK_IO_OP_WRITE | sys::UBLK_IO_F_FUA, 8, 16, &mut buffer), 8192);
        assert_eq!(knobs.flushes.load(Ordering::Relaxed), 1, "FUA flushes");
        assert_eq!(ask(sys::UBLK_IO_OP_WRITE | sys::UBLK_IO_F_META, 64, 8, &mut buffer), 4096);
        let marked = device.counters().hints.get(HintSource::Protocol, HintKind::Metadata);
        assert_eq!((marked.requests, marked.bytes), (1, 4096), "metadata of the kernel's file systems");
        assert_eq!(ask(sys::UBLK_IO_OP_DISCARD, 8, 8, &mut buffer), 0);
        buffer.fill(9);
        assert_eq!(ask(sys::UBLK_IO_OP_READ, 8, 16, &mut buffer), 8192);
        assert_eq!((buffer[0], buffer[4096]), (0, 7));
        assert_eq!(ask(sys::UBLK_IO_OP_FLUSH, 0, 0, &mut buffer), 0);
        assert_eq!(ask(sys::UBLK_IO_OP_WRITE_ZEROES, 0, 1024, &mut buffer), 0, "longer than a buffer");
        assert_eq!(
            ask(sys::UBLK_IO_OP_READ, 0, 1024, &mut buffer),
            -22,
            "no request is longer than its buffer"
        );
        assert_eq!(ask(sys::UBLK_IO_OP_READ, 1 << 40, 1, &mut buffer), -22);
        assert_eq!(ask(99, 0, 1, &mut buffer), -95);
        knobs.broken.store(true, Ordering::Relaxed);
        assert_eq!(ask(sys::UBLK_IO_OP_WRITE, 0, 8, &mut buffer), -5);
    }
}
