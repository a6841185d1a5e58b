//! Creation of names.

use super::adapter::FsAdapter;
use super::convert::{caller, ino, permissions};
use frit_fs::{Attr, DirectFiles, Error, FileSystem, NewInode, Result};
use frit_fuse::{INodeNo, OpenFlags, Request};
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

impl<F: FileSystem + DirectFiles + 'static> FsAdapter<F> {
    pub(super) fn make(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        new: NewInode<'_>,
    ) -> Result<Attr> {
        let attr = self.files.create(&caller(request), ino(dir), name.as_bytes(), new)?;
        self.killpriv.forget(attr.ino);
        Ok(attr)
    }

    /// Creates a file and opens it. If another program has just created it, it is opened, unless
    /// the flags contain O_EXCL.
    pub(super) fn make_open(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        mode: u32,
        flags: OpenFlags,
    ) -> Result<Attr> {
        let old = flags.0 as u32 & OFlags::EXCL.bits() == 0;
        let (attr, created) = match self.make(request, dir, name, NewInode::file(permissions(mode))) {
            Err(Error::Exists) if old => {
                (self.files.lookup(&caller(request), ino(dir), name.as_bytes())?, false)
            }
            other => (other?, true),
        };
        if let Err(e) = self.open_file(request, attr.ino, flags) {
            if created {
                // A failed call must not leave a new file.
                self.files.unlink(&caller(request), ino(dir), name.as_bytes())?;
            }
            return Err(e);
        }
        // Opening may have truncated the file, and moved its contents to an external file.
        let opened = self.files.attr(attr.ino);
        if opened.is_err() {
            self.files.unpin(attr.ino)?;
        }
        opened
    }
}
