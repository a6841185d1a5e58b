//! A cache manager for a file, written against a served solid-state cache.
//!
//! The file is the disk. The manager keeps no state: after a crash of the program, of the server or of
//! both, the device knows which blocks are present and which of them are dirty.
//!
//! ```text
//! frit create vol --stack ssc-small && frit serve vol --nbd tcp:127.0.0.1:0 &
//! cargo run -p frit-cli --example ssc_cache -- vol/ctl.sock disk.img put 7 "a line of text"
//! cargo run -p frit-cli --example ssc_cache -- vol/ctl.sock disk.img get 7
//! cargo run -p frit-cli --example ssc_cache -- vol/ctl.sock disk.img clean
//! ```

use frit_client::{CacheClient, CacheState, ClientError};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Dirty blocks that are written to the file together, in the order of their addresses.
const BATCH: usize = 64;

struct Manager {
    cache: CacheClient,
    disk: File,
}

impl Manager {
    fn open(socket: &Path, disk: &Path) -> Result<Manager, ClientError> {
        let disk = File::options().read(true).write(true).create(true).truncate(false).open(disk)?;
        Ok(Manager { cache: CacheClient::open(socket)?, disk })
    }

    fn offset(&self, block: u32) -> u64 {
        u64::from(block) * self.cache.block_bytes() as u64
    }

    /// Reads a block from the cache, or from the file: then the cache gets it as a clean block.
    fn get(&mut self, block: u32) -> Result<Vec<u8>, ClientError> {
        if let Some(data) = self.cache.read(block)? {
            return Ok(data);
        }
        let mut data = vec![0; self.cache.block_bytes()];
        let at = self.offset(block);
        let mut filled = 0;
        while filled < data.len() {
            match self.disk.read_at(&mut data[filled..], at + filled as u64)? {
                0 => break,
                n => filled += n,
            }
        }
        self.cache.write_clean(block, &data)?;
        Ok(data)
    }

    /// Writes a block to the cache. Above half of the limit of dirty blocks, some are cleaned first.
    fn put(&mut self, block: u32, data: &[u8]) -> Result<(), ClientError> {
        let info = self.cache.info()?;
        if info.dirty_blocks * 2 > info.dirty_limit {
            self.clean(BATCH)?;
        }
        self.cache.write_dirty(block, data)
    }

    /// Writes dirty blocks to the file. They are clean once the file has them durably.
    fn clean(&mut self, most: usize) -> Result<usize, ClientError> {
        let addresses = self.cache.addresses();
        let all = self.cache.exists(0..addresses)?;
        let dirty: Vec<u32> =
            all.iter().filter(|b| b.state == CacheState::Dirty).map(|b| b.block).take(most).collect();
        for &block in &dirty {
            if let Some(data) = self.cache.read(block)? {
                self.disk.write_all_at(&data, self.offset(block))?;
            }
        }
        self.disk.sync_data()?;
        dirty.iter().try_for_each(|&block| self.cache.clean(block..block + 1))?;
        Ok(dirty.len())
    }
}

fn run(arguments: &[String]) -> Result<(), ClientError> {
    let usage = "ssc_cache SOCKET FILE put BLOCK TEXT | get BLOCK | clean";
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, usage);
    let [socket, disk, command @ ..] = arguments else { return Err(usage().into()) };
    let mut manager = Manager::open(Path::new(socket), Path::new(disk))?;
    let number = |text: &String| text.parse::<u32>().map_err(|_| usage());
    match command {
        [put, block, text] if put == "put" => {
            let mut data = vec![0; manager.cache.block_bytes()];
            let text = text.as_bytes();
            data.get_mut(..text.len()).ok_or_else(usage)?.copy_from_slice(text);
            manager.put(number(block)?, &data)?;
            // The text is durable when the program ends.
            manager.cache.flush()?;
        }
        [get, block] if get == "get" => {
            let data = manager.get(number(block)?)?;
            let end = data.iter().position(|&b| b == 0).unwrap_or(data.len());
            io::stdout().write_all(&data[..end])?;
        }
        [clean] if clean == "clean" => while manager.clean(BATCH)? > 0 {},
        _ => return Err(usage().into()),
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(io::stderr(), "{e}");
            std::process::ExitCode::FAILURE
        }
    }
}
