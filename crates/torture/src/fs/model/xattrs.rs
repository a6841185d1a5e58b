//! Extended attributes of the model, with the rules of their namespaces.

use super::access::{AccessMode, allowed, is_owner, is_super};
use super::node::ModelInode;
use super::state::ModelState;
use frit_fs::{Caller, Error, Ino, InodeType, Result, XATTR_MAX, XattrMode};

/// Namespace of an extended attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum XattrNamespace {
    /// `user.`: for all users, on files and directories.
    User,
    /// `trusted.` and `security.`: for the superuser.
    Super,
}

/// ERANGE of errno-base.h, which Linux returns for a name of more than 255 bytes.
const ERANGE: i32 = 34;
/// XATTR_NAME_MAX of linux/limits.h.
const XATTR_NAME_MAX: usize = 255;

fn space(name: &[u8]) -> Result<XattrNamespace> {
    if name.is_empty() || name.len() > XATTR_NAME_MAX {
        let error = std::io::Error::from_raw_os_error(ERANGE);
        return Err(Error::Os { what: "the name of an extended attribute", path: "".into(), error });
    }
    for (prefix, space) in [
        (&b"user."[..], XattrNamespace::User),
        (b"trusted.", XattrNamespace::Super),
        (b"security.", XattrNamespace::Super),
    ] {
        match name.strip_prefix(prefix) {
            Some(b"") => return Err(Error::Invalid("an extended attribute without a name")),
            Some(_) => return Ok(space),
            None => {}
        }
    }
    Err(Error::Unsupported("this namespace of extended attributes"))
}

/// Returns `true` if the inode can have `user.` attributes. Modes of links and devices do not
/// protect data of users, so these have none.
fn holds_user(node: &ModelInode) -> bool {
    matches!(node.kind, InodeType::File | InodeType::Directory)
}

fn may_change(who: &Caller, node: &ModelInode, name: &[u8]) -> Result<()> {
    match space(name)? {
        XattrNamespace::Super if is_super(who) => Ok(()),
        XattrNamespace::Super => Err(Error::NotPermitted),
        XattrNamespace::User if !holds_user(node) => Err(Error::NotPermitted),
        // In a sticky directory only the owner changes `user.` attributes.
        XattrNamespace::User if node.is_dir() && node.mode & 0o1000 != 0 && !is_owner(who, node) => {
            Err(Error::NotPermitted)
        }
        XattrNamespace::User if !allowed(who, node, AccessMode::Write) => Err(Error::Access),
        XattrNamespace::User => Ok(()),
    }
}

/// Fails for a command file, which has no attributes of any namespace.
fn may_hold(node: &ModelInode) -> Result<()> {
    if node.kind == InodeType::Command {
        return Err(Error::Unsupported("extended attributes of command files"));
    }
    Ok(())
}

impl ModelState {
    pub(super) fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        let node = self.node(ino)?;
        space(name)?;
        node.xattrs.get(name).cloned().ok_or(Error::NoAttribute)
    }

    pub(super) fn xattrs(&self, ino: Ino) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        for name in self.node(ino)?.xattrs.keys() {
            all.extend_from_slice(name);
            all.push(0);
        }
        Ok(all)
    }

    pub(super) fn set_xattr(
        &mut self,
        who: &Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
    ) -> Result<()> {
        let now = self.now();
        let node = self.node_mut(ino)?;
        if value.len() > XATTR_MAX {
            return Err(Error::AttributeTooLarge);
        }
        may_change(who, node, name)?;
        may_hold(node)?;
        match (mode, node.xattrs.contains_key(name)) {
            (XattrMode::Create, true) => return Err(Error::Exists),
            (XattrMode::Replace, false) => return Err(Error::NoAttribute),
            _ => {}
        }
        node.xattrs.insert(name.to_vec(), value.to_vec());
        node.ctime = now;
        Ok(())
    }

    pub(super) fn remove_xattr(&mut self, who: &Caller, ino: Ino, name: &[u8]) -> Result<()> {
        let now = self.now();
        let node = self.node_mut(ino)?;
        may_change(who, node, name)?;
        may_hold(node)?;
        node.xattrs.remove(name).ok_or(Error::NoAttribute)?;
        node.ctime = now;
        Ok(())
    }
}
