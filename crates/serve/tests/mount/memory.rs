//! A file system in memory, plain and without checks of permissions: enough to see what a mount makes of its answers.

use frit_fs::{
    Allocate, Attr, Caller, Changes, Entry, Error, FILE_MAX, Files, Ino, Kind, NAME_MAX, New, Piece,
    RenameMode, Result, Seek, SetTime, Time, Usage, XattrMode,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

const BLOCK: u64 = 4096;
/// Blocks that it says it has.
pub(crate) const BLOCKS: u64 = 1 << 20;

struct Node {
    attr: Attr,
    pages: BTreeMap<u64, Box<[u8]>>,
    target: Vec<u8>,
    names: BTreeMap<Vec<u8>, u64>,
    parent: u64,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    pins: u32,
}

struct State {
    nodes: HashMap<u64, Node>,
    next: u64,
    free: Vec<u64>,
    made: u32,
    /// Names in the order of their making, so that positions stay where they are.
    order: HashMap<u64, BTreeMap<u64, Vec<u8>>>,
    stamp: u64,
    syncs: u64,
}

/// The file system.
pub(crate) struct Memory(Mutex<State>);

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Time::new(since.as_secs() as i64, since.subsec_nanos())
}

impl State {
    fn node(&mut self, ino: Ino) -> Result<&mut Node> {
        self.nodes.get_mut(&ino.0).ok_or(Error::Stale)
    }

    fn dir(&mut self, ino: Ino) -> Result<&mut Node> {
        self.node(ino)
            .and_then(|n| if n.attr.kind == Kind::Directory { Ok(n) } else { Err(Error::NotDirectory) })
    }

    fn find(&mut self, dir: Ino, name: &[u8]) -> Result<Ino> {
        if name.len() > NAME_MAX {
            return Err(Error::NameTooLong);
        }
        let node = self.dir(dir)?;
        match name {
            b"." => Ok(dir),
            b".." => Ok(Ino(node.parent)),
            _ => node.names.get(name).map(|&ino| Ino(ino)).ok_or(Error::NotFound),
        }
    }

    fn add(&mut self, dir: Ino, name: &[u8], ino: Ino) {
        self.stamp += 1;
        let stamp = self.stamp;
        self.order.entry(dir.0).or_default().insert(stamp, name.to_vec());
        let sub = self.nodes[&ino.0].attr.kind == Kind::Directory;
        let node = self.nodes.get_mut(&dir.0).unwrap();
        node.names.insert(name.to_vec(), ino.0);
        node.attr.links += u32::from(sub);
        (node.attr.mtime, node.attr.ctime) = (now(), now());
        if sub {
            self.nodes.get_mut(&ino.0).unwrap().parent = dir.0;
        }
    }

    fn take(&mut self, dir: Ino, name: &[u8]) -> Ino {
        self.order.get_mut(&dir.0).unwrap().retain(|_, n| n != name);
        let node = self.nodes.get_mut(&dir.0).unwrap();
        let ino = node.names.remove(name).unwrap();
        (node.attr.mtime, node.attr.ctime) = (now(), now());
        if self.nodes[&ino].attr.kind == Kind::Directory {
            self.nodes.get_mut(&dir.0).unwrap().attr.links -= 1;
        }
        Ino(ino)
    }

    fn lose(&mut self, ino: Ino) {
        let node = self.nodes.get_mut(&ino.0).unwrap();
        node.attr.links = if node.attr.kind == Kind::Directory { 0 } else { node.attr.links - 1 };
        node.attr.ctime = now();
        self.reap(ino);
    }

    fn reap(&mut self, ino: Ino) {
        let node = &self.nodes[&ino.0];
        if node.attr.links == 0 && node.pins == 0 {
            self.nodes.remove(&ino.0);
            self.order.remove(&ino.0);
            self.free.push(ino.0);
        }
    }
}

impl Node {
    fn write(&mut self, at: u64, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let pos = at + done as u64;
            let (page, within) = (pos / BLOCK, (pos % BLOCK) as usize);
            let part = (BLOCK as usize - within).min(data.len() - done);
            let bytes = self.pages.entry(page).or_insert_with(|| vec![0; BLOCK as usize].into());
            bytes[within..within + part].copy_from_slice(&data[done..done + part]);
            done += part;
        }
        self.attr.size = self.attr.size.max(at + data.len() as u64);
        self.touch();
    }

    fn touch(&mut self) {
        (self.attr.mtime, self.attr.ctime) = (now(), now());
        self.attr.sectors = self.pages.len() as u64 * (BLOCK / 512);
    }

    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let len = (into.len() as u64).min(self.attr.size.saturating_sub(at)) as usize;
        let mut done = 0;
        while done < len {
            let pos = at + done as u64;
            let within = (pos % BLOCK) as usize;
            let part = (BLOCK as usize - within).min(len - done);
            match self.pages.get(&(pos / BLOCK)) {
                Some(bytes) => into[done..done + part].copy_from_slice(&bytes[within..within + part]),
                None => into[done..done + part].fill(0),
            }
            done += part;
        }
        len
    }

    fn zero(&mut self, at: u64, end: u64) {
        let (first, last) = (at.div_ceil(BLOCK), end / BLOCK);
        self.pages.retain(|&page, _| page < first || page >= last);
        for (&page, bytes) in &mut self.pages {
            let start = page * BLOCK;
            let (a, b) = (at.clamp(start, start + BLOCK) - start, end.clamp(start, start + BLOCK) - start);
            if a < b {
                bytes[a as usize..b as usize].fill(0);
            }
        }
        self.touch();
    }

    fn resize(&mut self, size: u64) {
        if size < self.attr.size {
            self.zero(size, u64::MAX / BLOCK * BLOCK);
        }
        self.attr.size = size;
        self.touch();
    }
}

impl Memory {
    pub(crate) fn new() -> Memory {
        let mut state = State {
            nodes: HashMap::new(),
            next: 1,
            free: Vec::new(),
            made: 0,
            order: HashMap::new(),
            stamp: 2,
            syncs: 0,
        };
        make(&mut state, &Caller::ROOT, New::directory(0o755));
        state.nodes.get_mut(&1).unwrap().parent = 1;
        Memory(Mutex::new(state))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inodes that there are, and how many pins they have.
    pub(crate) fn inodes_and_pins(&self) -> (usize, u32) {
        let state = self.state();
        (state.nodes.len(), state.nodes.values().map(|n| n.pins).sum())
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.state().syncs
    }
}

fn make(state: &mut State, who: &Caller, new: New<'_>) -> Ino {
    let ino = state.free.pop().unwrap_or_else(|| {
        state.next += 1;
        state.next - 1
    });
    state.made += 1;
    let attr = Attr {
        ino: Ino(ino),
        generation: state.made,
        kind: new.kind,
        mode: new.mode,
        links: if new.kind == Kind::Directory { 2 } else { 1 },
        uid: who.uid,
        gid: who.gid,
        rdev: new.rdev,
        size: new.target.len() as u64,
        sectors: 0,
        atime: now(),
        mtime: now(),
        ctime: now(),
        btime: now(),
    };
    let node = Node {
        attr,
        pages: BTreeMap::new(),
        target: new.target.to_vec(),
        names: BTreeMap::new(),
        parent: 0,
        xattrs: BTreeMap::new(),
        pins: 0,
    };
    state.nodes.insert(ino, node);
    Ino(ino)
}

impl Files for Memory {
    fn usage(&self) -> Result<Usage> {
        let used: usize = self.state().nodes.values().map(|n| n.pages.len()).sum();
        Ok(Usage {
            block_bytes: BLOCK as u32,
            blocks: BLOCKS,
            blocks_free: BLOCKS - used as u64,
            inodes: 1 << 20,
            inodes_free: (1 << 20) - self.state().nodes.len() as u64,
            name_max: NAME_MAX as u32,
        })
    }

    fn lookup(&self, _: &Caller, dir: Ino, name: &[u8]) -> Result<Attr> {
        let mut state = self.state();
        let ino = state.find(dir, name)?;
        state.node(ino).map(|n| n.attr)
    }

    fn attr(&self, ino: Ino) -> Result<Attr> {
        self.state().node(ino).map(|n| n.attr)
    }

    fn set_attr(&self, _: &Caller, ino: Ino, changes: &Changes) -> Result<Attr> {
        let mut state = self.state();
        let node = state.node(ino)?;
        if changes.size.is_some_and(|s| s > FILE_MAX) {
            return Err(Error::TooLarge);
        }
        let time = |t| match t {
            SetTime::Now => now(),
            SetTime::To(time) => time,
        };
        if let Some(size) = changes.size {
            node.resize(size);
        }
        let a = &mut node.attr;
        (a.mode, a.uid) = (changes.mode.unwrap_or(a.mode), changes.uid.unwrap_or(a.uid));
        a.gid = changes.gid.unwrap_or(a.gid);
        (a.atime, a.mtime) = (changes.atime.map_or(a.atime, time), changes.mtime.map_or(a.mtime, time));
        a.ctime = changes.ctime.unwrap_or_else(now);
        Ok(*a)
    }

    fn create(&self, who: &Caller, dir: Ino, name: &[u8], new: New<'_>) -> Result<Attr> {
        let mut state = self.state();
        match state.find(dir, name) {
            Err(Error::NotFound) => {}
            Ok(_) => return Err(Error::Exists),
            Err(e) => return Err(e),
        }
        let ino = make(&mut state, who, new);
        state.add(dir, name, ino);
        state.node(ino).map(|n| n.attr)
    }

    fn link(&self, _: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let mut state = self.state();
        if state.find(dir, name).is_ok() {
            return Err(Error::Exists);
        }
        state.node(ino)?.attr.links += 1;
        state.add(dir, name, ino);
        state.node(ino).map(|n| n.attr)
    }

    fn unlink(&self, _: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        let mut state = self.state();
        let ino = state.find(dir, name)?;
        if state.node(ino)?.attr.kind == Kind::Directory {
            return Err(Error::IsDirectory);
        }
        state.take(dir, name);
        state.lose(ino);
        Ok(())
    }

    fn rmdir(&self, _: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        let mut state = self.state();
        let ino = state.find(dir, name)?;
        if !state.dir(ino)?.names.is_empty() {
            return Err(Error::NotEmpty);
        }
        state.take(dir, name);
        state.lose(ino);
        Ok(())
    }

    fn rename(&self, _: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), mode: RenameMode) -> Result<()> {
        let mut state = self.state();
        let ino = state.find(from.0, from.1)?;
        let victim = state.find(to.0, to.1).ok();
        match (mode, victim) {
            (RenameMode::NoReplace, Some(_)) => return Err(Error::Exists),
            (RenameMode::Exchange, None) => return Err(Error::NotFound),
            (_, Some(victim)) if victim == ino => return Ok(()),
            (RenameMode::Replace, Some(victim)) if !state.node(victim)?.names.is_empty() => {
                return Err(Error::NotEmpty);
            }
            _ => {}
        }
        state.take(from.0, from.1);
        if let Some(victim) = victim {
            state.take(to.0, to.1);
            match mode {
                RenameMode::Exchange => state.add(from.0, from.1, victim),
                _ => state.lose(victim),
            }
        }
        state.add(to.0, to.1, ino);
        Ok(())
    }

    fn read_link(&self, ino: Ino) -> Result<Vec<u8>> {
        self.state().node(ino).map(|n| n.target.clone())
    }

    fn pin(&self, ino: Ino) -> Result<()> {
        self.state().node(ino).map(|n| n.pins += 1)
    }

    fn unpin(&self, ino: Ino) -> Result<()> {
        let mut state = self.state();
        state.node(ino)?.pins -= 1;
        state.reap(ino);
        Ok(())
    }

    fn read(&self, ino: Ino, at: u64, into: &mut [u8]) -> Result<usize> {
        self.state().node(ino).map(|n| n.read(at, into))
    }

    fn write(&self, ino: Ino, at: u64, data: &[u8]) -> Result<usize> {
        if at + data.len() as u64 > FILE_MAX {
            return Err(Error::TooLarge);
        }
        self.state().node(ino)?.write(at, data);
        Ok(data.len())
    }

    fn append(&self, ino: Ino, data: &[u8]) -> Result<(u64, usize)> {
        let mut state = self.state();
        let node = state.node(ino)?;
        node.write(node.attr.size, data);
        Ok((node.attr.size, data.len()))
    }

    fn allocate(&self, ino: Ino, how: Allocate, at: u64, len: u64) -> Result<()> {
        let mut state = self.state();
        let node = state.node(ino)?;
        if matches!(how, Allocate::Punch | Allocate::Zero | Allocate::ZeroKeep) {
            node.zero(at, at + len);
        }
        if matches!(how, Allocate::Extend | Allocate::Zero) {
            node.resize(node.attr.size.max(at + len));
        }
        Ok(())
    }

    fn seek(&self, ino: Ino, what: Seek, at: u64) -> Result<u64> {
        let mut state = self.state();
        let node = state.node(ino)?;
        if at >= node.attr.size {
            return Err(Error::BeyondEnd);
        }
        let data = |page: u64| node.pages.contains_key(&page);
        let mut page = at / BLOCK;
        while page * BLOCK < node.attr.size {
            if data(page) == (what == Seek::Data) {
                return Ok(at.max(page * BLOCK));
            }
            page += 1;
        }
        if what == Seek::Hole { Ok(node.attr.size) } else { Err(Error::BeyondEnd) }
    }

    fn sync_file(&self, _: Ino, _: bool) -> Result<()> {
        self.state().syncs += 1;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn read_dir(&self, ino: Ino, from: u64, each: &mut dyn FnMut(&Entry<'_>) -> bool) -> Result<()> {
        let mut state = self.state();
        let parent = Ino(state.dir(ino)?.parent);
        for (next, name, ino) in [(1, &b"."[..], ino), (2, b"..", parent)] {
            if from < next && !each(&Entry { name, ino, kind: Kind::Directory, next }) {
                return Ok(());
            }
        }
        let names = &state.nodes[&ino.0].names;
        let Some(order) = state.order.get(&ino.0) else { return Ok(()) };
        for (&next, name) in order.range(from + 1..) {
            let ino = Ino(names[name]);
            let kind = state.nodes[&ino.0].attr.kind;
            if !each(&Entry { name, ino, kind, next }) {
                break;
            }
        }
        Ok(())
    }

    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.state().node(ino)?.xattrs.get(name).cloned().ok_or(Error::NoAttribute)
    }

    fn xattrs(&self, ino: Ino) -> Result<Vec<u8>> {
        let mut state = self.state();
        let names = state.node(ino)?.xattrs.keys();
        Ok(names.flat_map(|n| n.iter().copied().chain([0])).collect())
    }

    fn set_xattr(&self, _: &Caller, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        let mut state = self.state();
        let xattrs = &mut state.node(ino)?.xattrs;
        match (mode, xattrs.contains_key(name)) {
            (XattrMode::Create, true) => Err(Error::Exists),
            (XattrMode::Replace, false) => Err(Error::NoAttribute),
            _ => {
                xattrs.insert(name.to_vec(), value.to_vec());
                Ok(())
            }
        }
    }

    fn remove_xattr(&self, _: &Caller, ino: Ino, name: &[u8]) -> Result<()> {
        self.state().node(ino)?.xattrs.remove(name).map(drop).ok_or(Error::NoAttribute)
    }

    fn pieces(&self, _: Ino, _: u64, _: &mut dyn FnMut(&Piece) -> bool) -> Result<()> {
        Err(Error::Unsupported("pieces"))
    }
}
