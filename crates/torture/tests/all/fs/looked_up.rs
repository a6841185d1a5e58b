//! A file system whose open files are inodes that were looked up, as those of a kernel between the
//! lookup and the open.

use frit_fs::{
    Allocate, AnyMedium, Attr, AttrChanges, Caller, DirEntry, FileExtent, FileSystem, Fs, Ino, NewInode,
    RenameMode, Result, Seek, Usage, XattrMode,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Number of lookups of each inode that were not forgotten.
type Lookups = Arc<Mutex<HashMap<Ino, u64>>>;

/// The file system, with lookups in place of pins.
pub(crate) struct LookedUp {
    fs: Fs<AnyMedium>,
    lookups: Lookups,
}

impl LookedUp {
    pub(crate) fn new(fs: Fs<AnyMedium>) -> LookedUp {
        let lookups = Lookups::default();
        let counts = Arc::clone(&lookups);
        fs.set_looked_up(Box::new(move |ino| counts.lock().unwrap().contains_key(&ino)));
        LookedUp { fs, lookups }
    }

    pub(crate) fn into_inner(self) -> Fs<AnyMedium> {
        self.fs
    }
}

/// Passes calls on to the file system.
macro_rules! same {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $result {
            self.fs.$name($($argument),*)
        })*
    };
}

impl FileSystem for LookedUp {
    fn pin(&self, ino: Ino) -> Result<()> {
        self.fs.attr(ino)?;
        *self.lookups.lock().unwrap().entry(ino).or_default() += 1;
        Ok(())
    }

    fn unpin(&self, ino: Ino) -> Result<()> {
        let mut lookups = self.lookups.lock().unwrap();
        let left = lookups.get_mut(&ino).unwrap();
        *left -= 1;
        if *left > 0 {
            return Ok(());
        }
        lookups.remove(&ino);
        drop(lookups);
        self.fs.forgotten(ino)
    }

    same! {
        usage() -> Result<Usage>;
        lookup(who: &Caller, dir: Ino, name: &[u8]) -> Result<Attr>;
        attr(ino: Ino) -> Result<Attr>;
        set_attr(who: &Caller, ino: Ino, changes: &AttrChanges) -> Result<Attr>;
        create(who: &Caller, dir: Ino, name: &[u8], new: NewInode<'_>) -> Result<Attr>;
        link(who: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr>;
        unlink(who: &Caller, dir: Ino, name: &[u8]) -> Result<()>;
        rmdir(who: &Caller, dir: Ino, name: &[u8]) -> Result<()>;
        rename(who: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), mode: RenameMode) -> Result<()>;
        read_link(ino: Ino) -> Result<Vec<u8>>;
        read(ino: Ino, at: u64, into: &mut [u8]) -> Result<usize>;
        write(ino: Ino, at: u64, data: &[u8]) -> Result<usize>;
        append(ino: Ino, data: &[u8]) -> Result<(u64, usize)>;
        allocate(ino: Ino, how: Allocate, at: u64, len: u64) -> Result<()>;
        seek(ino: Ino, what: Seek, at: u64) -> Result<u64>;
        sync_file(ino: Ino, data_only: bool) -> Result<()>;
        sync() -> Result<()>;
        read_dir(ino: Ino, from: u64, each: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()>;
        xattr(ino: Ino, name: &[u8]) -> Result<Vec<u8>>;
        xattrs(ino: Ino) -> Result<Vec<u8>>;
        set_xattr(who: &Caller, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()>;
        remove_xattr(who: &Caller, ino: Ino, name: &[u8]) -> Result<()>;
        pieces(ino: Ino, at: u64, each: &mut dyn FnMut(&FileExtent) -> bool) -> Result<()>;
    }
}
