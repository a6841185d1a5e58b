//! Comparison of the trees of two file systems, and a digest of a tree.

use super::apply::{InodeAttrs, keys};
use super::op::{Path, shorten};
use frit_fs::{Attr, COMMAND_NAME, Caller, FileSystem, Ino, InodeType, Seek};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Bytes of a page.
const PAGE: usize = 4096;
static ZEROS: [u8; PAGE] = [0; PAGE];
/// Files up to this size are read completely, including holes. Of larger files only the data
/// segments are read.
const WHOLE: u64 = 1 << 20;

/// Properties of an inode that are compared.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TreeNode {
    /// Attributes.
    pub seen: InodeAttrs,
    /// First path of the inode, if this path is another hard link to it.
    pub same_as: Option<Path>,
    /// Pages that are not all zeros, by number.
    pub pages: BTreeMap<u64, Vec<u8>>,
    /// Target of a symbolic link.
    pub target: Vec<u8>,
    /// Extended attributes.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// All inodes that are reachable from the root, by path. Command files are among them, although no
/// directory lists them.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Tree(pub BTreeMap<Path, TreeNode>);

/// Returns the pages of a file that are not all zeros.
fn pages(fs: &dyn FileSystem, ino: Ino, size: u64) -> frit_fs::Result<BTreeMap<u64, Vec<u8>>> {
    let mut pages = BTreeMap::new();
    let mut at = 0;
    let mut buffer = vec![0; 32 * PAGE];
    while at < size {
        let mut end = size;
        if size > WHOLE {
            match fs.seek(ino, Seek::Data, at) {
                Ok(data) => at = data / PAGE as u64 * PAGE as u64,
                Err(frit_fs::Error::BeyondEnd) => break,
                Err(e) if e.errno() == frit_fs::Error::BeyondEnd.errno() => break,
                Err(e) => return Err(e),
            }
            end = fs.seek(ino, Seek::Hole, at.max(1))?.max(at + 1);
        }
        while at < end {
            let n = fs.read(ino, at, &mut buffer)?;
            for (i, page) in buffer[..n].chunks(PAGE).enumerate() {
                // A comparison of slices is much quicker than a loop over the bytes.
                if *page != ZEROS[..page.len()] {
                    pages.insert(at / PAGE as u64 + i as u64, page.to_vec());
                }
            }
            if n < buffer.len() {
                at = size;
                break;
            }
            at += n as u64;
        }
    }
    Ok(pages)
}

impl TreeNode {
    /// Reads the properties of one inode.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn of(fs: &dyn FileSystem, ino: Ino) -> frit_fs::Result<TreeNode> {
        let seen: InodeAttrs = fs.attr(ino)?.into();
        let pages =
            if seen.kind == InodeType::File { pages(fs, ino, seen.size)? } else { BTreeMap::default() };
        let target = if seen.kind == InodeType::Symlink { fs.read_link(ino)? } else { Vec::new() };
        let mut xattrs = BTreeMap::new();
        for key in keys(fs, ino)? {
            let value = fs.xattr(ino, &key)?;
            xattrs.insert(key, value);
        }
        Ok(TreeNode { seen, same_as: None, pages, target, xattrs })
    }

    /// Describes the first difference.
    #[must_use]
    pub fn difference(&self, other: &TreeNode) -> Option<String> {
        if self.seen != other.seen {
            return Some(format!("{:?} and {:?}", self.seen, other.seen));
        }
        if self.same_as != other.same_as {
            return Some(format!("hard link to {:?} and {:?}", self.same_as, other.same_as));
        }
        if self.target != other.target {
            return Some(format!("points to {} and {}", shorten(&self.target), shorten(&other.target)));
        }
        if self.xattrs != other.xattrs {
            return Some(format!("attributes {:?} and {:?}", self.xattrs, other.xattrs));
        }
        let empty = Vec::new();
        let numbers = self.pages.keys().chain(other.pages.keys());
        let differs = |n: &&u64| self.pages.get(n) != other.pages.get(n);
        let page = numbers.filter(differs).min()?;
        let (a, b) = (self.pages.get(page).unwrap_or(&empty), other.pages.get(page).unwrap_or(&empty));
        let byte = |of: &[u8], i: usize| of.get(i).copied().unwrap_or(0);
        let i = (0..PAGE).find(|&i| byte(a, i) != byte(b, i))?;
        let at = page * PAGE as u64 + i as u64;
        Some(format!("byte {at} is {} and {}", byte(a, i), byte(b, i)))
    }
}

/// Verifies the `.` and `..` entries of a directory, and returns its other names with their inodes.
fn entries(fs: &dyn FileSystem, dir: Ino, parent: Ino) -> Result<Vec<(Vec<u8>, Ino, InodeType)>, String> {
    let mut listed = Vec::new();
    let each = &mut |e: &frit_fs::DirEntry<'_>| {
        listed.push((e.name.to_vec(), e.ino, e.kind));
        true
    };
    fs.read_dir(dir, 0, each).map_err(|e| format!("list: {e}"))?;
    let dots: Vec<(&[u8], Ino)> = listed.iter().take(2).map(|(n, i, _)| (&n[..], *i)).collect();
    if dots != [(&b"."[..], dir), (b"..", parent)] {
        return Err(format!("begins with {dots:?}, not with . ({dir:?}) and .. ({parent:?})"));
    }
    let mut names: Vec<_> = listed.split_off(2);
    names.sort_by(|a, b| a.0.cmp(&b.0));
    match names.windows(2).find(|w| w[0].0 == w[1].0) {
        Some(w) => Err(format!("{} is listed twice", shorten(&w[0].0))),
        None => Ok(names),
    }
}

/// Returns the attributes of the command file of a directory, or `None` if it has none.
///
/// # Errors
/// Errors of the lookup.
pub fn command_of(fs: &dyn FileSystem, dir: Ino) -> frit_fs::Result<Option<Attr>> {
    match fs.lookup(&Caller::ROOT, dir, COMMAND_NAME) {
        Ok(attr) => Ok(Some(attr).filter(|attr| attr.kind == InodeType::Command)),
        Err(error) if error.errno() == frit_fs::Error::NotFound.errno() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Tree {
    /// Walks a file system as the superuser.
    ///
    /// # Errors
    /// An inconsistency of the file system, or an error that it returns.
    pub fn of(fs: &dyn FileSystem) -> Result<Tree, String> {
        let mut tree = Tree::default();
        let mut first: BTreeMap<Ino, Path> = BTreeMap::new();
        let mut left = vec![(Path::new(""), Ino::ROOT, Ino::ROOT)];
        while let Some((path, ino, parent)) = left.pop() {
            let wrong = |e: String| format!("{path}: {e}");
            let mut node = TreeNode::of(fs, ino).map_err(|e| wrong(e.to_string()))?;
            match first.entry(ino) {
                Entry::Occupied(e) => node.same_as = Some(e.get().clone()),
                Entry::Vacant(e) => _ = e.insert(path.clone()),
            }
            if node.seen.kind == InodeType::Directory {
                if node.same_as.is_some() {
                    return Err(wrong("a directory that has two names".to_string()));
                }
                // Names are pushed in reverse and popped in the order of their bytes, so hard links
                // have the same first path in all file systems.
                for (name, child, kind) in entries(fs, ino, parent).map_err(wrong)?.into_iter().rev() {
                    let below = path.join(&shorten(&name));
                    let found = fs.lookup(&Caller::ROOT, ino, &name).map_err(|e| format!("{below}: {e}"))?;
                    if (found.ino, found.kind) != (child, kind) {
                        return Err(format!(
                            "{below}: listed as {child:?} {kind:?}, found as {:?} {:?}",
                            found.ino, found.kind
                        ));
                    }
                    left.push((below, child, ino));
                }
                let command = command_of(fs, ino).map_err(|e| wrong(format!("command file: {e}")))?;
                if let Some(command) = command {
                    left.push((path.join(&shorten(COMMAND_NAME)), command.ino, ino));
                }
            }
            tree.0.insert(path, node);
        }
        tree.links()?;
        Ok(tree)
    }

    /// Verifies that the link count of each inode is its number of names.
    fn links(&self) -> Result<(), String> {
        let mut counts: BTreeMap<&Path, u32> = BTreeMap::new();
        for (path, node) in &self.0 {
            if node.seen.kind == InodeType::Directory {
                *counts.entry(path).or_default() += 2;
                let above = path.0.rsplit_once('/').map_or("", |(above, _)| above);
                if !path.0.is_empty()
                    && let Some((above, _)) = self.0.get_key_value(&Path::new(above))
                {
                    *counts.entry(above).or_default() += 1;
                }
            } else {
                *counts.entry(node.same_as.as_ref().unwrap_or(path)).or_default() += 1;
            }
        }
        let wrong = |(path, _): &(&Path, &u32)| self.0[*path].seen.links != counts[*path];
        match counts.iter().find(|(p, c)| wrong(&(**p, *c))) {
            Some((path, count)) => {
                Err(format!("{path}: link count {}, but {count} links", self.0[*path].seen.links))
            }
            None => Ok(()),
        }
    }

    /// Describes the first difference, in the order of paths.
    #[must_use]
    pub fn difference(&self, other: &Tree) -> Option<String> {
        let paths = self.0.keys().chain(other.0.keys());
        let path = paths.filter(|p| self.0.get(p) != other.0.get(p)).min()?;
        let what = match (self.0.get(path), other.0.get(path)) {
            (Some(a), Some(b)) => a.difference(b).unwrap_or_default(),
            (Some(a), None) => format!("{:?} is only in the first", a.seen.kind),
            (_, b) => format!("{:?} is only in the second", b.map(|b| b.seen.kind)),
        };
        Some(format!("{path}: {what}"))
    }

    /// Returns a digest of the tree. Different trees have equal digests with a probability of
    /// 2^-128.
    #[must_use]
    pub fn digest(&self) -> u128 {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, self).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        half(1) << 64 | half(2)
    }
}

/// Walks two file systems and compares them.
///
/// # Errors
/// The first difference, or an inconsistency of one of them.
pub fn compare(first: &dyn FileSystem, second: &dyn FileSystem) -> Result<(), String> {
    let one = Tree::of(first).map_err(|e| format!("the first: {e}"))?;
    let two = Tree::of(second).map_err(|e| format!("the second: {e}"))?;
    one.difference(&two).map_or(Ok(()), Err)
}

/// Returns the [`Tree::digest`] of a file system.
///
/// # Errors
/// An inconsistency of the file system.
pub fn digest(fs: &dyn FileSystem) -> Result<u128, String> {
    Ok(Tree::of(fs)?.digest())
}

/// Verifies that the extents of a file are in order, do not overlap, and hold all bytes that are
/// not zero.
///
/// # Errors
/// The first extent or byte that violates this.
pub fn pieces(fs: &dyn FileSystem, ino: Ino, node: &TreeNode) -> Result<(), String> {
    let mut all: Vec<frit_fs::FileExtent> = Vec::new();
    fs.pieces(ino, 0, &mut |piece| {
        all.push(*piece);
        true
    })
    .map_err(|e| e.to_string())?;
    if let Some(w) = all.windows(2).find(|w| w[0].at + w[0].len > w[1].at) {
        return Err(format!("{:?} comes before {:?}", w[0], w[1]));
    }
    for (number, bytes) in &node.pages {
        let at = |i: usize| number * PAGE as u64 + i as u64;
        let held = |at| all.iter().any(|p| p.written && p.at <= at && at < p.at + p.len);
        if let Some(i) = (0..bytes.len()).find(|&i| bytes[i] != 0 && !held(at(i))) {
            return Err(format!("byte {} lies in no piece that was written", at(i)));
        }
    }
    Ok(())
}
