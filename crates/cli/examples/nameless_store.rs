//! A store of small files, written against a served nameless-write device.
//!
//! The index is in virtual blocks, one for each file, and the contents are blocks whose addresses the index
//! has. A write of contents and of the index, and one flush, are a transaction: after a crash of the program,
//! of the server or of both, each file is as it was before the write or after it.
//!
//! ```text
//! frit create vol --stack nameless-files --size 64M && frit serve vol --nbd tcp:127.0.0.1:0 &
//! cargo run -p frit-cli --example nameless_store -- vol/ctl.sock put notes "a line of text"
//! cargo run -p frit-cli --example nameless_store -- vol/ctl.sock get notes
//! cargo run -p frit-cli --example nameless_store -- vol/ctl.sock list
//! ```

use frit_client::{BlockAddress, ClaimedBlock, ClientError, NamelessClient, OwnedBlock};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// Largest number of files.
const FILES_MAX: u32 = 256;

/// A file: its name, its length, and the addresses of its blocks.
#[derive(Clone, PartialEq, Default)]
struct File {
    name: String,
    bytes: usize,
    blocks: Vec<BlockAddress>,
}

impl File {
    /// Encodes the file into a virtual block: the lengths of the name, of the contents and of the list of
    /// blocks, 4 bytes each; the name; and the addresses, 8 bytes each.
    fn encode(&self, block: usize) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        for n in [self.name.len(), self.bytes, self.blocks.len()] {
            out.extend((n as u32).to_le_bytes());
        }
        out.extend(self.name.as_bytes());
        self.blocks
            .iter()
            .for_each(|at| out.extend([at.page.to_le_bytes(), at.version.to_le_bytes()].concat()));
        if out.len() > block {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file has too many blocks"));
        }
        out.resize(block, 0);
        Ok(out)
    }

    /// Decodes a file; `None` if the virtual block has none.
    fn decode(block: &[u8]) -> Option<File> {
        let word = |at: usize| Some(u32::from_le_bytes(block.get(at..at + 4)?.try_into().ok()?));
        let [name, bytes, blocks] = [word(0)? as usize, word(4)? as usize, word(8)? as usize];
        let at = 12 + name;
        let address =
            |i: usize| Some(BlockAddress { page: word(at + 8 * i)?, version: word(at + 8 * i + 4)? });
        let file = File {
            name: String::from_utf8(block.get(12..at)?.to_vec()).ok()?,
            bytes,
            blocks: (0..blocks).map(address).collect::<Option<_>>()?,
        };
        (name > 0).then_some(file)
    }

    fn owned(&self, owner: u32) -> Vec<OwnedBlock> {
        self.blocks.iter().map(|&at| OwnedBlock::new(owner, at)).collect()
    }
}

struct Store {
    device: NamelessClient,
    /// Files by their virtual blocks, which are the owners of their contents.
    files: BTreeMap<u32, File>,
}

impl Store {
    fn open(socket: &Path) -> Result<Store, ClientError> {
        let mut device = NamelessClient::open(socket)?;
        let mut files = BTreeMap::new();
        for slot in 0..FILES_MAX.min(device.virtual_blocks()) {
            if let Some(file) = File::decode(&device.virtual_read(slot)?) {
                files.insert(slot, file);
            }
        }
        let mut store = Store { device, files };
        if store.device.info()?.awaits_claims {
            store.claim()?;
        }
        store.take_migrations()?;
        Ok(store)
    }

    /// Claims the blocks of all files after a start of the server. The index may have old addresses.
    fn claim(&mut self) -> Result<(), ClientError> {
        let before = self.files.clone();
        for (&slot, file) in &mut self.files {
            let places = self.device.claim(&file.owned(slot))?;
            for (at, place) in file.blocks.iter_mut().zip(places) {
                match place {
                    ClaimedBlock::At(now) => *at = now,
                    ClaimedBlock::Lost(why) => writeln!(io::stderr(), "{}: {why}", file.name)?,
                }
            }
        }
        self.device.resume()?;
        self.save_changes(&before)
    }

    /// Takes the new addresses of blocks that the device has moved. The old ones are good until they are
    /// acknowledged, so the index is saved first: this program may end before the server.
    fn take_migrations(&mut self) -> Result<(), ClientError> {
        loop {
            let moved = self.device.migrations()?;
            if moved.is_empty() {
                return Ok(());
            }
            let before = self.files.clone();
            for m in &moved {
                // A block that was freed, or is lost, has no place in the index.
                let (Some(file), Some(to)) = (self.files.get_mut(&m.owner), m.to) else { continue };
                let old = BlockAddress { page: m.from, version: to.version };
                file.blocks.iter_mut().filter(|at| **at == old).for_each(|at| *at = to);
            }
            self.save_changes(&before)?;
            self.device.acknowledge(moved.len())?;
        }
    }

    fn save_changes(&mut self, before: &BTreeMap<u32, File>) -> Result<(), ClientError> {
        let changed: Vec<u32> =
            self.files.keys().copied().filter(|s| self.files.get(s) != before.get(s)).collect();
        changed.into_iter().try_for_each(|slot| self.save(slot))?;
        self.device.flush()
    }

    fn save(&mut self, slot: u32) -> Result<(), ClientError> {
        let block = self.files[&slot].encode(self.device.block_bytes())?;
        self.device.virtual_write(&[slot], &block)
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.files.iter().find(|(_, file)| file.name == name).map(|(&slot, _)| slot)
    }

    fn get(&mut self, name: &str) -> Result<Vec<u8>, ClientError> {
        let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("there is no file {name}"));
        let slot = self.find(name).ok_or_else(unknown)?;
        let mut data = self.device.physical_read(&self.files[&slot].owned(slot))?;
        data.truncate(self.files[&slot].bytes);
        Ok(data)
    }

    /// Writes a file. The blocks that it had are freed when the new index is durable. If the program is
    /// killed in between, they are free after the next start of the server: nobody claims them.
    fn put(&mut self, name: &str, data: &[u8]) -> Result<(), ClientError> {
        let full = || io::Error::new(io::ErrorKind::StorageFull, "there is no free virtual block");
        let mut free =
            (0..FILES_MAX.min(self.device.virtual_blocks())).filter(|s| !self.files.contains_key(s));
        let slot = self.find(name).or_else(|| free.next()).ok_or_else(full)?;
        let block = self.device.block_bytes();
        let mut contents = data.to_vec();
        contents.resize(data.len().max(1).next_multiple_of(block), 0);
        let owners = vec![slot; contents.len() / block];
        let blocks = self.device.nameless_write(&owners, &contents)?;
        let file = File { name: name.to_owned(), bytes: data.len(), blocks };
        let old = self.files.insert(slot, file).map_or_else(Vec::new, |old| old.owned(slot));
        self.save(slot)?;
        self.device.flush()?;
        self.device.free(&old)
    }

    fn remove(&mut self, name: &str) -> Result<(), ClientError> {
        let Some(slot) = self.find(name) else { return Ok(()) };
        self.device.virtual_discard(&[slot])?;
        self.device.flush()?;
        let old = self.files.remove(&slot).map_or_else(Vec::new, |old| old.owned(slot));
        self.device.free(&old)
    }
}

fn run(arguments: &[String]) -> Result<(), ClientError> {
    let usage = "nameless_store SOCKET put NAME TEXT | get NAME | remove NAME | list";
    let [socket, command @ ..] = arguments else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, usage).into());
    };
    let mut store = Store::open(Path::new(socket))?;
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    match command[..] {
        ["put", name, text] if !name.is_empty() => store.put(name, text.as_bytes())?,
        ["get", name] => io::stdout().write_all(&store.get(name)?)?,
        ["remove", name] => store.remove(name)?,
        ["list"] => {
            store.files.values().try_for_each(|f| writeln!(io::stdout(), "{} {}", f.name, f.bytes))?;
        }
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, usage).into()),
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
