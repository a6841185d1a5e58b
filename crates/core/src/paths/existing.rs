//! Which existing files are written in a directory in which other users can change names.

use super::place::Place;
use super::refused;
use super::trust::{DirFacts, Judge};
use crate::text::shown;
use rustix::fs::{FileType, Stat, fstat};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// Returns an error unless an existing file may be opened for writing. `any_user`: the user named
/// the file as it is, whoever owns it.
pub(super) fn check(place: &Place, found: &Stat, any_user: bool) -> io::Result<()> {
    let (path, dir) = (place.path(), fstat(place.dir())?);
    let kind = FileType::from_raw_mode(found.st_mode);
    if kind == FileType::Symlink {
        return Err(link_refused(place.shown_dir(), place.name(), place.dir()));
    }
    let why = place.why_untrusted();
    if kind != FileType::Directory && found.st_nlink > 1 {
        return Err(refused(format!(
            "{} is one of {} names of a file (a hard link) in {why}, and the others may be of another user: name the \
             file elsewhere, or use a directory that only you can write to",
            shown(&path),
            found.st_nlink
        )));
    }
    let is_own = place.judge().trusts(found.st_uid);
    // The owner of a directory without the sticky bit can do to the file whatever is done here.
    let is_of_dir_owner = found.st_uid == dir.st_uid && dir.st_mode & 0o1000 == 0;
    let accepted = match kind {
        FileType::RegularFile => is_own || any_user || is_of_dir_owner,
        // It is opened for writing to no effect: the caller gets the error of the kernel.
        FileType::Directory => true,
        _ => is_own,
    };
    if accepted {
        return Ok(());
    }
    let what = if kind == FileType::RegularFile { "" } else { "is not a regular file, " };
    Err(refused(format!(
        "{} {what}belongs to user {} and is in {why}: that user could read and change what is written; remove it, or \
         name another file",
        shown(&path),
        found.st_uid
    )))
}

/// Returns the error for a symbolic link that is not followed.
pub(super) fn link_refused(dir: &Path, name: &OsStr, open_dir: BorrowedFd<'_>) -> io::Error {
    let why = why_untrusted(dir, open_dir);
    refused(format!(
        "{} is a symbolic link in {why}, and is not followed: name its target itself, or use a directory that only \
         you can write to",
        shown(&dir.join(name))
    ))
}

/// Describes a directory in which others can change names.
pub(super) fn why_untrusted(dir: &Path, open_dir: BorrowedFd<'_>) -> String {
    let name = shown(dir);
    let (Ok(judge), Ok(facts)) = (Judge::here(), DirFacts::of(open_dir.as_fd())) else { return name };
    match facts {
        DirFacts { owner, .. } if !judge.trusts(owner) => format!("{name}, which belongs to user {owner}"),
        DirFacts { mode, .. } if mode & 0o002 != 0 => format!("{name}, which every user can write to"),
        DirFacts { mode, group, .. } if mode & 0o020 != 0 => {
            format!("{name}, which group {group} can write to")
        }
        _ => format!("{name}, which is below a directory that other users can write to"),
    }
}
