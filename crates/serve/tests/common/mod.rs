//! A small NBD client over real sockets, and servers for it.

// Each test program uses only a part of this module. Clippy does not treat helper functions of
// tests as tests.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

pub(crate) mod gate;

use frit_serve::nbd::{Address, Export, NbdServer, ServerOptions, wire};
use frit_serve::{Backend, Device, DeviceOptions};
use frit_stack::Stack;
use frit_volume::{CreateOptions, OpenOptions, Volume};
use std::io::{Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) fn options(path: &Path) -> ServerOptions {
    ServerOptions { addresses: vec![Address::Unix(path.into())], ..ServerOptions::default() }
}

pub(crate) fn start(device: &Arc<Device>, path: &Path) -> NbdServer {
    let export = Arc::new(Export::new(Arc::clone(device), "scratch", "a test"));
    NbdServer::start(export, options(path)).unwrap()
}

pub(crate) fn device(backend: impl Backend + 'static) -> Arc<Device> {
    Device::new(Box::new(backend), DeviceOptions::default())
}

/// Creates a small HFSL volume of PCM and NAND in a directory.
pub(crate) fn volume(dir: &Path) -> Volume {
    let stack = Stack::builtin("hfsl-small", &[]).unwrap();
    Volume::create(dir, &CreateOptions { stack, force: false }).unwrap().close().unwrap();
    reopen(dir)
}

/// Opens a volume that was just closed. A child process started by another test may hold the lock
/// for a short time, until it executes its program.
pub(crate) fn reopen(dir: &Path) -> Volume {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        match Volume::open(dir, &OpenOptions::default()) {
            Err(frit_volume::Error::InUse { .. }) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other.unwrap(),
        }
    }
}

/// A server of a new volume, in a temporary directory.
pub(crate) struct Served {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) device: Arc<Device>,
    pub(crate) server: Option<NbdServer>,
    pub(crate) socket: PathBuf,
}

impl Served {
    pub(crate) fn new() -> Served {
        let dir = tempfile::tempdir().unwrap();
        let device = device(volume(&dir.path().join("volume")));
        let socket = dir.path().join("nbd.sock");
        let server = Some(start(&device, &socket));
        Served { dir, device, server, socket }
    }

    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    /// Shuts down in order.
    pub(crate) fn end(mut self) {
        let cut_off = self.server.take().unwrap().stop(Duration::from_secs(5));
        assert_eq!(cut_off, 0);
        self.device.close().unwrap();
        let volume = reopen(&self.dir.path().join("volume"));
        assert!(volume.recovery().recovery.clean, "the volume was closed in order");
    }
}

/// A client that waits for each reply and does not negotiate structured replies.
pub(crate) struct Client<S = UnixStream> {
    pub(crate) socket: S,
}

pub(crate) fn request(number: u16, flags: u16, cookie: u64, at: u64, len: u32) -> Vec<u8> {
    let mut b = wire::REQUEST_MAGIC.to_be_bytes().to_vec();
    b.extend_from_slice(&flags.to_be_bytes());
    b.extend_from_slice(&number.to_be_bytes());
    b.extend_from_slice(&cookie.to_be_bytes());
    b.extend_from_slice(&at.to_be_bytes());
    b.extend_from_slice(&len.to_be_bytes());
    b
}

impl Client {
    pub(crate) fn connect(path: &Path) -> Result<Client> {
        Client::over(UnixStream::connect(path)?)
    }
}

impl<S: Read + Write> Client<S> {
    /// Selects the export on a connected socket.
    pub(crate) fn over(socket: S) -> Result<Client<S>> {
        let mut c = Client { socket };
        let mut greeting = [0; 18];
        c.socket.read_exact(&mut greeting)?;
        c.socket.write_all(&3u32.to_be_bytes())?;
        c.socket.write_all(&wire::OPTION_MAGIC.to_be_bytes())?;
        c.socket.write_all(&[0, 0, 0, 1, 0, 0, 0, 0])?;
        let mut export = [0; 10];
        c.socket.read_exact(&mut export)?;
        Ok(c)
    }

    /// Receives the next reply, and returns its cookie and error.
    pub(crate) fn reply(&mut self) -> Result<(u64, u32)> {
        let mut head = [0; 16];
        self.socket.read_exact(&mut head)?;
        assert_eq!(head[..4], wire::SIMPLE_MAGIC.to_be_bytes());
        let error = u32::from_be_bytes(head[4..8].try_into().unwrap());
        Ok((u64::from_be_bytes(head[8..].try_into().unwrap()), error))
    }

    fn done(&mut self) -> Result<()> {
        match self.reply()?.1 {
            0 => Ok(()),
            e => Err(std::io::Error::from_raw_os_error(e as i32)),
        }
    }

    pub(crate) fn write(&mut self, at: u64, data: &[u8], flags: u16) -> Result<()> {
        self.socket.write_all(&request(1, flags, 1, at, data.len() as u32))?;
        self.socket.write_all(data)?;
        self.done()
    }

    pub(crate) fn read(&mut self, at: u64, len: usize) -> Result<Vec<u8>> {
        self.socket.write_all(&request(0, 0, 2, at, len as u32))?;
        self.done()?;
        let mut data = vec![0; len];
        self.socket.read_exact(&mut data)?;
        Ok(data)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.socket.write_all(&request(3, 0, 3, 0, 0))?;
        self.done()
    }

    pub(crate) fn trim(&mut self, at: u64, len: u32) -> Result<()> {
        self.socket.write_all(&request(4, 0, 4, at, len))?;
        self.done()
    }

    pub(crate) fn bye(mut self) {
        self.socket.write_all(&request(2, 0, 5, 0, 0)).unwrap();
        assert_eq!(self.socket.read(&mut [0]).unwrap(), 0, "the server closes the connection after DISC");
    }
}

/// Returns a self-describing block of 4 KiB, which contains its number and version.
pub(crate) fn stamped(block: u64, version: u64) -> Vec<u8> {
    let words = [block, version, block ^ version.rotate_left(32) ^ 0x5eed];
    words.iter().flat_map(|w| w.to_be_bytes()).cycle().take(4096).collect()
}

/// Returns the version of a block, and checks that the block is not a mixture.
pub(crate) fn version(block: u64, bytes: &[u8]) -> u64 {
    if bytes.iter().all(|&b| b == 0) {
        return 0;
    }
    let version = u64::from_be_bytes(bytes[8..16].try_into().unwrap());
    assert_eq!(bytes, stamped(block, version), "block {block} is mixed");
    version
}
