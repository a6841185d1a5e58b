//! Access rights of files that hold user data: their modes at creation, and a warning if other
//! users have access.

use crate::error::{Result, io};
use frit_core::paths::{self, OpenOptions};
use rustix::fs::{Gid, Mode, OFlags, Uid};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Mode of a file that holds user data or can damage it.
pub const FILE_MODE: u32 = 0o600;
/// Mode of a directory of such files.
pub const DIR_MODE: u32 = 0o700;

/// Search (execute) permission for the group and for others.
const SEARCH: u32 = 0o011;
/// Read and write permission for the group and for others.
const READ_WRITE: u32 = 0o066;
const WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Returns options that create a file accessible to its owner alone from the first moment, and fail
/// if the file exists.
#[must_use]
pub fn new_private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(FILE_MODE);
    options
}

/// Creates a directory accessible to its owner alone. With `parents`, missing ones are created with the
/// default mode.
///
/// # Errors
/// The host refuses it, or the directory exists.
pub fn make_private_dir(dir: &Path, parents: bool) -> std::io::Result<()> {
    if let Some(parent) = dir.parent().filter(|parent| parents && !parent.as_os_str().is_empty()) {
        paths::create_dir_all(parent, 0o777)?;
    }
    paths::create_dir(dir, DIR_MODE)
}

/// Returns the owner of a file or directory, unless it is the user of this process or the
/// superuser. A foreign owner keeps control of a path at which a file is to be created.
#[must_use]
pub fn foreign_owner(path: &Path) -> Option<u32> {
    let owner = path.symlink_metadata().ok()?.uid();
    (![0, rustix::process::geteuid().as_raw()].contains(&owner)).then_some(owner)
}

/// Returns the owner of a volume, unless it is the user of this process or the superuser. Its
/// superblock says where its media are.
pub(crate) fn foreign_volume(dir: &Path) -> Option<u32> {
    foreign_owner(dir).or_else(|| foreign_owner(&dir.join(crate::superblock::FILE_NAME)))
}

/// Returns the reason for which a volume of another user must not lead to a file of a third one.
pub(crate) fn foreign_medium(user: u32, owner: u32) -> String {
    format!(
        "is outside of the volume and belongs to user {owner}, and the volume, which names it, belongs to user {user}: \
         open it as that user, or give both to one user (chown)"
    )
}

/// Gives `to` the owner, group and mode of `from`. Both are opened, and examined while they are open:
/// by their paths, the owner of a directory above could have the superuser give away any file. A file
/// keeps no set-user-ID bit, since what it would run is data.
pub(crate) fn copy_permissions(from: &Path, to: &Path) -> Result<()> {
    let failed = |e| io(format!("cannot give {} the access rights of {}", to.display(), from.display()))(e);
    // The new file is no link. The old one may be a link of the volume's owner.
    let open = |path: &Path, flags: OFlags| {
        let mut options = OpenOptions::new();
        options.read(true).any_user(true).flags(flags | OFlags::NONBLOCK).open(path)
    };
    let from = open(from, OFlags::empty()).map_err(failed)?;
    let to = open(to, OFlags::NOFOLLOW).map_err(failed)?;
    let (from, to_meta) = (from.metadata().map_err(failed)?, to.metadata().map_err(failed)?);
    if from.is_dir() != to_meta.is_dir() || !(to_meta.is_dir() || to_meta.is_file()) {
        return Err(failed(std::io::ErrorKind::InvalidInput.into()));
    }
    if (from.uid(), from.gid()) != (to_meta.uid(), to_meta.gid()) {
        let (user, group) = (Uid::from_raw(from.uid()), Gid::from_raw(from.gid()));
        rustix::fs::fchown(&to, Some(user), Some(group)).map_err(|e| failed(e.into()))?;
    }
    let bits = if from.is_dir() { 0o7777 } else { 0o777 };
    rustix::fs::fchmod(&to, Mode::from_raw_mode(from.mode() & bits)).map_err(|e| failed(e.into()))
}

/// Returns a message that names the files and directories that other users of this machine can read
/// or change, with the command that prevents it; `None` if there are none. Missing files and
/// devices are ignored.
#[must_use]
pub fn exposed<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Option<String> {
    let found: Vec<(&Path, u32)> =
        paths.into_iter().filter_map(|path| Some((path, exposed_mode(path)?))).collect();
    let shown: Vec<String> =
        found.iter().map(|(path, mode)| format!("{} (mode {mode:04o})", path.display())).collect();
    let names: Vec<String> = found.iter().map(|(path, _)| quoted(path)).collect();
    (!found.is_empty()).then(|| {
        format!(
            "other users of this machine can read or change {}; chmod go-rwx {} keeps them out",
            shown.join(", "),
            names.join(" ")
        )
    })
}

/// Returns the path quoted as a shell word.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Returns the mode of a file that others can read or write, or of a directory in which they can
/// replace files.
fn exposed_mode(path: &Path) -> Option<u32> {
    let meta = path.metadata().ok()?;
    let mode = meta.mode() & 0o7777;
    let bits = match &meta {
        m if m.is_file() => mode & READ_WRITE,
        m if m.is_dir() && mode & STICKY == 0 => mode & WRITE,
        _ => 0,
    };
    (bits & class_permissions(searchable(path)) != 0).then_some(mode)
}

/// Returns `true` if every user can traverse all directories above a path.
#[must_use]
pub fn is_reachable(path: &Path) -> bool {
    searchable(path) & 0o001 != 0
}

/// Returns the search bits (of the group and of others) that all directories above a path have.
fn searchable(path: &Path) -> u32 {
    let whole = path.canonicalize().unwrap_or_else(|_| path.into());
    let above = whole.ancestors().skip(1);
    above.filter_map(|dir| dir.metadata().ok()).fold(SEARCH, |bits, dir| bits & search_of(&dir))
}

/// Returns the search bits of a directory. A right of others counts for the file's group as well:
/// members of that group need not be members of the directory's group.
fn search_of(dir: &Metadata) -> u32 {
    let others = dir.mode() & 0o001;
    (dir.mode() & 0o010) | (others << 3) | others
}

/// Returns all permission bits of the classes whose search bit is set.
fn class_permissions(search: u32) -> u32 {
    ((search & 0o010) * 7) | ((search & 0o001) * 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    fn chmod(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_missing_parent_is_made_only_where_it_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("a/b/c");
        assert_eq!(make_private_dir(&at, false).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        assert!(!dir.path().join("a").exists());
        make_private_dir(&at, true).unwrap();
        assert!(at.is_dir());
    }

    #[test]
    fn others_need_rights_to_the_file_and_to_all_directories_above() {
        let root = tempfile::tempdir().unwrap();
        let (dir, file) = (root.path().join("a b"), root.path().join("a b/f"));
        make_private_dir(&dir, true).unwrap();
        drop(new_private().open(&file).unwrap());
        assert_eq!(
            (dir.metadata().unwrap().mode() & 0o7777, file.metadata().unwrap().mode() & 0o7777),
            (0o700, 0o600)
        );
        let paths = || exposed([&dir, &file].map(PathBuf::as_path));
        chmod(&file, 0o644);
        assert_eq!(paths(), None, "the directories are closed");
        chmod(root.path(), 0o755);
        assert_eq!(paths(), None, "one of them is");
        chmod(&dir, 0o711);
        let said = paths().unwrap();
        assert!(
            said.contains("f (mode 0644)") && said.contains("chmod go-rwx '/") && !said.contains("0711"),
            "{said}"
        );
        chmod(&file, 0o600);
        assert_eq!(paths(), None);
        chmod(&dir, 0o777);
        assert!(paths().unwrap().contains("(mode 0777)"));
        // In a directory with the sticky bit, others cannot replace files.
        chmod(&dir, 0o1777);
        assert_eq!(paths(), None);
        assert!(new_private().open(&file).is_err(), "one that is there is never taken");
    }
}
