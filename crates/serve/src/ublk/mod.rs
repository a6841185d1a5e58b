//! A device as a block device of the kernel, through ublk (Linux 6.0 and newer with
//! `CONFIG_BLK_DEV_UBLK`).
//!
//! **Experimental: never run on a kernel.** It compiles, and its requests are tested without one.
//!
//! This module requires the feature `ublk`. The kernel passes requests through shared memory. One
//! thread serves the single queue, since the device executes one request at a time. When the
//! process ends, the kernel fails the requests in flight and removes the disk.

mod request;

use crate::device::Device;
use libublk::ctrl::{UblkCtrl, UblkCtrlBuilder};
use libublk::helpers::IoBuf;
use libublk::io::{BufDescList, UblkDev, UblkIOCtx, UblkQueue};
use libublk::{BufDesc, UblkError, UblkFlags, UblkIORes, sys};
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

/// Control device of the driver.
const CONTROL: &str = "/dev/ublk-control";
/// Queue depth.
const DEPTH: u16 = 64;
/// Maximum size of a request, in bytes.
const REQUEST_BYTES_MAX: u32 = 512 << 10;

/// A block device of the kernel. Experimental: never run on a kernel.
#[derive(Debug)]
pub struct UblkDisk {
    number: i32,
    path: PathBuf,
    thread: Option<JoinHandle<Result<(), UblkError>>>,
    device: Arc<Device>,
}

impl UblkDisk {
    /// Creates a block device for a device.
    ///
    /// # Errors
    /// The kernel does not support ublk, or the user lacks the permission.
    pub fn start(device: &Arc<Device>) -> io::Result<UblkDisk> {
        if !Path::new(CONTROL).exists() {
            let what = format!(
                "{CONTROL} is missing: this kernel has no ublk, or its module is not loaded (modprobe ublk_drv; Linux 6.0 \
                 and newer). `frit attach` makes a block device through FUSE instead"
            );
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        if device.paced() {
            let what = "ublk answers requests in order and cannot delay them; use --fuse or --nbd with --pace model, or with a \
                 layer `delay` in the stack";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        let (ready, started) = mpsc::channel();
        let served = Arc::clone(device);
        let run = move || serve(&served, &ready);
        let thread = std::thread::Builder::new().name("ublk".into()).spawn(run)?;
        match started.recv() {
            Ok((number, path)) => {
                device.clients().count_accepted();
                Ok(UblkDisk { number, path, thread: Some(thread), device: Arc::clone(device) })
            }
            Err(_) => Err(ended(thread)),
        }
    }

    /// Returns the path of the block device.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the block device after the requests in flight have completed.
    ///
    /// # Errors
    /// The error of the driver.
    pub fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        self.device.clients().count_closed();
        let ctrl = UblkCtrl::new_simple(self.number).map_err(|e| io_error(&e))?;
        ctrl.kill_dev().map_err(|e| io_error(&e))?;
        match thread.join() {
            Ok(result) => result.map_err(|e| io_error(&e))?,
            Err(_) => return Err(io::Error::other("the thread that serves the disk panicked")),
        }
        ctrl.del_dev().map_err(|e| io_error(&e))?;
        Ok(())
    }
}

impl Drop for UblkDisk {
    fn drop(&mut self) {
        // `stop` has reported an error already, or the caller has dropped the value and gets no
        // result.
        let _ = self.end();
    }
}

fn io_error(e: &UblkError) -> io::Error {
    io::Error::other(format!("ublk: {e}"))
}

/// Returns the reason why the thread ended before the block device existed.
fn ended(thread: JoinHandle<Result<(), UblkError>>) -> io::Error {
    match thread.join() {
        Ok(Err(e)) => io_error(&e),
        Ok(Ok(())) | Err(_) => io::Error::other("ublk: the driver created no block device"),
    }
}

/// Creates the block device, sends its path, and serves it until it is removed.
fn serve(device: &Arc<Device>, ready: &Sender<(i32, PathBuf)>) -> Result<(), UblkError> {
    let ctrl = UblkCtrlBuilder::default()
        .name("frit")
        .id(-1)
        .nr_queues(1)
        .depth(DEPTH)
        .io_buf_bytes(REQUEST_BYTES_MAX)
        .dev_flags(UblkFlags::UBLK_DEV_F_ADD_DEV)
        .build()?;
    let (bytes, page_bytes) = (device.bytes(), device.page_bytes());
    let read_only = device.read_only().is_some();
    let served = Arc::clone(device);
    let ready = ready.clone();
    ctrl.run_target(
        move |dev: &mut UblkDev| {
            dev.tgt.dev_size = bytes;
            dev.tgt.params = params(bytes, page_bytes, read_only);
            Ok(())
        },
        move |queue, dev: &UblkDev| {
            if let Err(e) = handle(queue, dev, &served) {
                served.log().write_line(format_args!("ublk: the queue ended: {e}"));
            }
        },
        move |ctrl: &UblkCtrl| {
            let path = PathBuf::from(ctrl.get_bdev_path());
            // The receiver may have given up, which is harmless.
            let _ = ready.send((ctrl.dev_info().dev_id as i32, path));
        },
    )?;
    Ok(())
}

/// Returns the parameters of the block device: a volatile cache, so that the kernel sends flushes,
/// and discards of whole pages.
fn params(bytes: u64, page_bytes: u32, read_only: bool) -> sys::ublk_params {
    let mut attrs = sys::UBLK_ATTR_VOLATILE_CACHE;
    if read_only {
        attrs |= sys::UBLK_ATTR_READ_ONLY;
    }
    sys::ublk_params {
        types: sys::UBLK_PARAM_TYPE_BASIC | sys::UBLK_PARAM_TYPE_DISCARD,
        basic: sys::ublk_param_basic {
            attrs,
            logical_bs_shift: 9,
            physical_bs_shift: page_bytes.ilog2() as u8,
            io_opt_shift: page_bytes.ilog2() as u8,
            io_min_shift: 9,
            max_sectors: REQUEST_BYTES_MAX >> 9,
            dev_sectors: bytes >> 9,
            ..Default::default()
        },
        discard: sys::ublk_param_discard {
            discard_granularity: page_bytes,
            max_discard_sectors: u32::MAX >> 9,
            max_write_zeroes_sectors: u32::MAX >> 9,
            max_discard_segments: 1,
            ..Default::default()
        },
        ..Default::default()
    }
}

/// Serves the queue.
fn handle(queue: u16, dev: &UblkDev, device: &Device) -> Result<(), UblkError> {
    let buffers = dev.alloc_queue_io_bufs();
    let queue =
        UblkQueue::new(queue, dev)?.submit_fetch_commands_unified(BufDescList::Slices(Some(&buffers)))?;
    let buffers: RefCell<Vec<IoBuf<u8>>> = RefCell::new(buffers);
    let failed = RefCell::new(None);
    queue.wait_and_handle_io(|q: &UblkQueue<'_>, tag: u16, _: &UblkIOCtx<'_>| {
        let mut buffers = buffers.borrow_mut();
        let buffer = &mut buffers[usize::from(tag)];
        let result = request::serve(device, q.get_iod(tag), buffer.as_mut_slice());
        let desc = BufDesc::Slice(buffer.as_slice());
        if let Err(e) = q.complete_io_cmd_unified(tag, desc, Ok(UblkIORes::Result(result))) {
            failed.borrow_mut().get_or_insert(e);
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceOptions;
    use crate::testing::MemoryBackend;

    #[test]
    fn a_kernel_without_ublk_is_told_from_a_failure() {
        if Path::new(CONTROL).exists() {
            return;
        }
        let device = Device::new(Box::new(MemoryBackend::new(1 << 20)), DeviceOptions::default());
        let said = UblkDisk::start(&device).unwrap_err().to_string();
        assert!(said.contains("no ublk") && said.contains("frit attach"), "{said}");
    }
}
