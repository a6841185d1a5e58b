//! All inodes of the model, with lookup and removal.

use super::access::{AccessMode, allowed};
use super::node::ModelInode;
use frit_fs::{Attr, COMMAND_NAME, Caller, Error, Ino, InodeType, NAME_MAX, Result, Time};
use std::collections::BTreeMap;

/// An entry of a listing: position, name, inode, kind.
pub(super) type ListedName = (u64, Vec<u8>, Ino, InodeType);

/// Permission bits of a new command file.
const COMMAND_MODE: u16 = 0o666;

/// State of the model.
#[derive(Clone, Debug)]
pub(super) struct ModelState {
    pub(super) nodes: BTreeMap<Ino, ModelInode>,
    /// Number of the next inode. Numbers are never reused.
    pub(super) next: u64,
    /// Time of the logical clock in nanoseconds: it advances by one at each call that may change
    /// the state.
    pub(super) clock: i64,
    /// `true` if each directory has a command file.
    pub(super) command_files: bool,
}

impl Default for ModelState {
    fn default() -> Self {
        // The clock starts in 2033, so its times differ from those that tests set.
        let clock = 2_000_000_000_000_000_000;
        let root = ModelInode::new(InodeType::Directory, 0o755, (0, 0), Ino::ROOT, Time(clock));
        Self {
            nodes: BTreeMap::from([(Ino::ROOT, root)]),
            next: Ino::ROOT.0 + 1,
            clock,
            command_files: false,
        }
    }
}

/// Returns `true` for `.` and `..`, which every directory has.
pub(super) fn is_dot(name: &[u8]) -> bool {
    name == b"." || name == b".."
}

impl ModelState {
    /// Creates an empty file system with command files.
    pub(super) fn with_command_files() -> Self {
        let mut state = Self { command_files: true, ..Self::default() };
        state.add_command(Ino::ROOT);
        state
    }

    /// Returns `true` if a name is that of the command file of each directory.
    pub(super) fn is_command(&self, name: &[u8]) -> bool {
        self.command_files && name == COMMAND_NAME
    }

    /// Creates the command file of a new directory, which has the owner of the directory.
    pub(super) fn add_command(&mut self, dir: Ino) {
        let (now, ino) = (self.now(), Ino(self.next));
        if let Some(node) = self.nodes.get_mut(&dir) {
            node.command = Some(ino);
            let owner = (node.uid, node.gid);
            self.nodes.insert(ino, ModelInode::new(InodeType::Command, COMMAND_MODE, owner, dir, now));
            self.next += 1;
        }
    }

    pub(super) fn now(&self) -> Time {
        Time(self.clock)
    }

    pub(super) fn node(&self, ino: Ino) -> Result<&ModelInode> {
        self.nodes.get(&ino).ok_or(Error::Stale)
    }

    pub(super) fn node_mut(&mut self, ino: Ino) -> Result<&mut ModelInode> {
        self.nodes.get_mut(&ino).ok_or(Error::Stale)
    }

    /// Returns a regular file; other inodes have no contents.
    pub(super) fn file(&self, ino: Ino) -> Result<&ModelInode> {
        let node = self.node(ino)?;
        match node.kind {
            InodeType::File => Ok(node),
            InodeType::Directory => Err(Error::IsDirectory),
            _ => Err(Error::Invalid("only regular files have contents")),
        }
    }

    pub(super) fn attr(&self, ino: Ino) -> Result<Attr> {
        Ok(self.node(ino)?.attr(ino))
    }

    /// Returns a directory if the caller may look up names in it.
    pub(super) fn search(&self, who: &Caller, dir: Ino) -> Result<&ModelInode> {
        let node = self.node(dir)?;
        if !node.is_dir() {
            return Err(Error::NotDirectory);
        }
        if !allowed(who, node, AccessMode::Search) {
            return Err(Error::Access);
        }
        Ok(node)
    }

    /// Returns the inode of `name` in a directory; `name` is not `.` or `..`. A removed directory
    /// has no names and accepts none, so it gives the same error for every name.
    pub(super) fn child(&self, dir: &ModelInode, name: &[u8]) -> Result<Option<Ino>> {
        if name.is_empty() || dir.links == 0 {
            return Err(Error::NotFound);
        }
        if name.contains(&b'/') || name.contains(&0) {
            return Err(Error::Invalid("a name with a slash or a zero"));
        }
        if name.len() > NAME_MAX {
            return Err(Error::NameTooLong);
        }
        Ok(dir.names.get(name).map(|n| n.ino))
    }

    pub(super) fn lookup(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<Ino> {
        let node = self.search(who, dir)?;
        match name {
            b"." => Ok(dir),
            b".." => Ok(node.parent),
            _ if self.is_command(name) => node.command.ok_or(Error::NotFound),
            _ => self.child(node, name)?.ok_or(Error::NotFound),
        }
    }

    /// Returns `true` if `dir` is `above` or is below it.
    pub(super) fn is_below(&self, mut dir: Ino, above: Ino) -> Result<bool> {
        while dir != above {
            if dir == Ino::ROOT {
                return Ok(false);
            }
            dir = self.node(dir)?.parent;
        }
        Ok(true)
    }

    pub(super) fn read_link(&self, ino: Ino) -> Result<Vec<u8>> {
        let node = self.node(ino)?;
        if node.kind != InodeType::Symlink {
            return Err(Error::Invalid("not a symbolic link"));
        }
        Ok(node.target.clone())
    }

    /// Returns the names from a position on, sorted by position. A removed directory cannot be
    /// listed.
    pub(super) fn listed(&self, ino: Ino, from: u64) -> Result<Vec<ListedName>> {
        let dir = self.node(ino)?;
        if !dir.is_dir() {
            return Err(Error::NotDirectory);
        }
        if dir.links == 0 {
            return Err(Error::NotFound);
        }
        let mut all = vec![
            (0, b".".to_vec(), ino, InodeType::Directory),
            (1, b"..".to_vec(), dir.parent, InodeType::Directory),
        ];
        for (name, named) in &dir.names {
            all.push((named.position, name.clone(), named.ino, self.node(named.ino)?.kind));
        }
        all.retain(|(position, ..)| *position >= from);
        all.sort_by_key(|(position, ..)| *position);
        Ok(all)
    }

    pub(super) fn pin(&mut self, ino: Ino) -> Result<()> {
        self.node_mut(ino)?.pins += 1;
        Ok(())
    }

    pub(super) fn unpin(&mut self, ino: Ino) -> Result<()> {
        let node = self.node_mut(ino)?;
        node.pins = node.pins.checked_sub(1).ok_or(Error::Invalid("the inode is not pinned"))?;
        self.release(ino)
    }

    /// Removes one link of an inode that is not a directory.
    pub(super) fn drop_link(&mut self, ino: Ino) -> Result<()> {
        let now = self.now();
        let node = self.node_mut(ino)?;
        node.links -= 1;
        node.ctime = now;
        self.release(ino)
    }

    /// Removes the only link of a directory with its command file, and its `..` from the link count of its
    /// parent.
    pub(super) fn drop_directory(&mut self, ino: Ino, parent: Ino) -> Result<()> {
        let now = self.now();
        self.node_mut(parent)?.links -= 1;
        let node = self.node_mut(ino)?;
        node.links = 0;
        node.ctime = now;
        if let Some(command) = node.command.take() {
            self.node_mut(command)?.links = 0;
            self.release(command)?;
        }
        self.release(ino)
    }

    /// Frees an inode that has neither links nor pins.
    fn release(&mut self, ino: Ino) -> Result<()> {
        let node = self.node(ino)?;
        if node.links == 0 && node.pins == 0 {
            self.nodes.remove(&ino);
        }
        Ok(())
    }

    /// Returns the number of data blocks and of inodes.
    pub(super) fn used(&self) -> (u64, u64) {
        let sectors: u64 = self.nodes.values().map(|n| n.data.sectors()).sum();
        (sectors / (super::contents::PAGE as u64 / 512), self.nodes.len() as u64)
    }
}
