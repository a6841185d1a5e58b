//! Names: making what they name, and what is about to lose one.

use super::adapter::Adapter;
use super::convert::permissions;
use frit_fs::{Attr, Caller, Error, Files, Ino, New, Result};
use fuser::{INodeNo, OpenFlags, Request};
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

impl<F: Files + 'static> Adapter<F> {
    pub(super) fn make(&self, request: &Request, dir: INodeNo, name: &OsStr, new: New<'_>) -> Result<Attr> {
        let attr = self.files.create(&caller(request), ino(dir), name.as_bytes(), new)?;
        self.plain.forget(attr.ino);
        Ok(attr)
    }

    /// Makes a file and opens it; one that somebody else has just made is opened, unless it has to be new.
    pub(super) fn make_open(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        mode: u32,
        flags: i32,
    ) -> Result<Attr> {
        let old = flags as u32 & OFlags::EXCL.bits() == 0;
        let (attr, made) = match self.make(request, dir, name, New::file(permissions(mode))) {
            Err(Error::Exists) if old => {
                (self.files.lookup(&caller(request), ino(dir), name.as_bytes())?, false)
            }
            other => (other?, true),
        };
        if let Err(e) = self.open_file(request, attr.ino, OpenFlags(flags)) {
            if made {
                // A call that fails makes nothing.
                self.files.unlink(&caller(request), ino(dir), name.as_bytes())?;
            }
            return Err(e);
        }
        // Opening may have cut it, and given it a body.
        let opened = self.files.attr(attr.ino);
        if opened.is_err() {
            self.files.unpin(attr.ino)?;
        }
        opened
    }

    /// Looks at what has a name that is about to be taken away.
    pub(super) fn victim(&self, request: &Request, dir: INodeNo, name: &OsStr) -> Result<Attr> {
        self.files.lookup(&caller(request), ino(dir), name.as_bytes())
    }
}

pub(super) fn ino(number: INodeNo) -> Ino {
    Ino(number.0)
}

/// The names of extended attributes that a user may see: `trusted.` is root's (xattr(7)).
pub(super) fn visible(request: &Request, names: Vec<u8>) -> Vec<u8> {
    if request.uid() == 0 {
        return names;
    }
    let seen = names.split_inclusive(|&b| b == 0).filter(|name| !name.starts_with(b"trusted."));
    seen.flatten().copied().collect()
}

/// Whose request it is. The kernel has checked permissions (default_permissions).
pub(super) fn caller(request: &Request) -> Caller {
    Caller::trusted(request.uid(), request.gid())
}
