//! All inodes of the model, how one is found, and when one goes.

use super::access::{Want, allowed};
use super::node::Node;
use frit_fs::{Attr, Caller, Error, Ino, Kind, NAME_MAX, Result, Time};
use std::collections::BTreeMap;

/// A name as a listing has it: position, name, inode, kind.
pub(super) type Listed = (u64, Vec<u8>, Ino, Kind);

/// Everything there is.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) nodes: BTreeMap<Ino, Node>,
    /// The number of the next inode; none is used twice.
    pub(super) next: u64,
    /// Calls so far, as nanoseconds.
    pub(super) clock: i64,
}

impl Default for State {
    fn default() -> Self {
        // In 2033, so that times of the logical clock lie apart from those that tests set.
        let clock = 2_000_000_000_000_000_000;
        let root = Node::new(Kind::Directory, 0o755, (0, 0), Ino::ROOT, Time(clock));
        Self { nodes: BTreeMap::from([(Ino::ROOT, root)]), next: Ino::ROOT.0 + 1, clock }
    }
}

/// Whether a name is one that every directory has.
pub(super) fn is_dot(name: &[u8]) -> bool {
    name == b"." || name == b".."
}

impl State {
    pub(super) fn now(&self) -> Time {
        Time(self.clock)
    }

    pub(super) fn node(&self, ino: Ino) -> Result<&Node> {
        self.nodes.get(&ino).ok_or(Error::Stale)
    }

    pub(super) fn node_mut(&mut self, ino: Ino) -> Result<&mut Node> {
        self.nodes.get_mut(&ino).ok_or(Error::Stale)
    }

    /// A regular file; others have no contents to read or write.
    pub(super) fn file(&self, ino: Ino) -> Result<&Node> {
        let node = self.node(ino)?;
        match node.kind {
            Kind::File => Ok(node),
            Kind::Directory => Err(Error::IsDirectory),
            _ => Err(Error::Invalid("only regular files have contents")),
        }
    }

    pub(super) fn attr(&self, ino: Ino) -> Result<Attr> {
        Ok(self.node(ino)?.attr(ino))
    }

    /// A directory whose names the caller may look up.
    pub(super) fn search(&self, who: &Caller, dir: Ino) -> Result<&Node> {
        let node = self.node(dir)?;
        if !node.is_dir() {
            return Err(Error::NotDirectory);
        }
        if !allowed(who, node, Want::Search) {
            return Err(Error::Access);
        }
        Ok(node)
    }

    /// What a directory calls `name`, which is neither `.` nor `..`. A directory that was removed has no names
    /// and takes none, whatever they are like.
    pub(super) fn child(&self, dir: &Node, name: &[u8]) -> Result<Option<Ino>> {
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
            _ => self.child(node, name)?.ok_or(Error::NotFound),
        }
    }

    /// Whether `dir` is `above` or somewhere below it.
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
        if node.kind != Kind::Symlink {
            return Err(Error::Invalid("not a symbolic link"));
        }
        Ok(node.target.clone())
    }

    /// Names from a position on, in the order of positions. Nothing can be listed of a removed directory.
    pub(super) fn listed(&self, ino: Ino, from: u64) -> Result<Vec<Listed>> {
        let dir = self.node(ino)?;
        if !dir.is_dir() {
            return Err(Error::NotDirectory);
        }
        if dir.links == 0 {
            return Err(Error::NotFound);
        }
        let mut all =
            vec![(0, b".".to_vec(), ino, Kind::Directory), (1, b"..".to_vec(), dir.parent, Kind::Directory)];
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

    /// Takes one name of something that is no directory into account as gone.
    pub(super) fn unnamed(&mut self, ino: Ino) -> Result<()> {
        let now = self.now();
        let node = self.node_mut(ino)?;
        node.links -= 1;
        node.ctime = now;
        self.release(ino)
    }

    /// Takes a directory's only name into account as gone, also in the count of the one it was in.
    pub(super) fn dir_unnamed(&mut self, ino: Ino, parent: Ino) -> Result<()> {
        let now = self.now();
        self.node_mut(parent)?.links -= 1;
        let node = self.node_mut(ino)?;
        node.links = 0;
        node.ctime = now;
        self.release(ino)
    }

    /// Frees an inode that has neither names nor pins.
    fn release(&mut self, ino: Ino) -> Result<()> {
        let node = self.node(ino)?;
        if node.links == 0 && node.pins == 0 {
            self.nodes.remove(&ino);
        }
        Ok(())
    }

    /// Blocks of data, and inodes.
    pub(super) fn used(&self) -> (u64, u64) {
        let sectors: u64 = self.nodes.values().map(|n| n.data.sectors()).sum();
        (sectors / (super::contents::PAGE as u64 / 512), self.nodes.len() as u64)
    }
}
