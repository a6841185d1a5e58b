//! Text form of operations: printing and parsing.

use super::op::{Act, FsOp, OpTarget, Path, User};
use frit_fs::{Allocate, InodeType, RenameMode, Seek, SetTime, Time, XattrMode};
use std::fmt;
use std::str::{FromStr, SplitWhitespace};

/// Names of the values of an enum of `frit_fs`, which has no text form of its own.
type ValueNames<T> = &'static [(&'static str, T)];

const KINDS: ValueNames<InodeType> = &[
    ("file", InodeType::File),
    ("dir", InodeType::Directory),
    ("symlink", InodeType::Symlink),
    ("fifo", InodeType::Fifo),
    ("socket", InodeType::Socket),
    ("char", InodeType::Char),
    ("block", InodeType::Block),
];
const RENAMES: ValueNames<RenameMode> = &[
    ("replace", RenameMode::Replace),
    ("noreplace", RenameMode::NoReplace),
    ("exchange", RenameMode::Exchange),
];
const ALLOCATES: ValueNames<Allocate> = &[
    ("extend", Allocate::Extend),
    ("keep", Allocate::Keep),
    ("punch", Allocate::Punch),
    ("zero", Allocate::Zero),
    ("zero-keep", Allocate::ZeroKeep),
];
const SEEKS: ValueNames<Seek> = &[("data", Seek::Data), ("hole", Seek::Hole)];
const XATTRS: ValueNames<XattrMode> =
    &[("any", XattrMode::Any), ("create", XattrMode::Create), ("replace", XattrMode::Replace)];
const SYNCS: ValueNames<bool> = &[("data", true), ("all", false)];

fn word<T: PartialEq>(words: ValueNames<T>, value: &T) -> &'static str {
    words.iter().find(|(_, v)| v == value).map_or("?", |(w, _)| w)
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "/" } else { &self.0 })
    }
}

impl fmt::Display for OpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpTarget::Path(path) => path.fmt(f),
            OpTarget::Slot(slot) => write!(f, "#{slot}"),
        }
    }
}

fn number(value: Option<u32>) -> String {
    value.map_or_else(|| "-".to_string(), |v| v.to_string())
}

fn time(value: Option<SetTime>) -> String {
    match value {
        None => "-".to_string(),
        Some(SetTime::Now) => "now".to_string(),
        Some(SetTime::To(t)) => t.0.to_string(),
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Stat(what) => write!(f, "stat {what}"),
            Act::Create { path, kind, mode, rdev } => {
                write!(f, "create {} {path} {mode:o} {rdev}", word(KINDS, kind))
            }
            Act::Symlink { path, to } => write!(f, "symlink {path} {to}"),
            Act::Link { what, path } => write!(f, "link {what} {path}"),
            Act::Unlink(path) => write!(f, "unlink {path}"),
            Act::Rmdir(path) => write!(f, "rmdir {path}"),
            Act::Rename { from, to, mode } => write!(f, "rename {from} {to} {}", word(RENAMES, mode)),
            Act::ReadLink(what) => write!(f, "read-link {what}"),
            Act::Chmod { what, mode } => write!(f, "chmod {what} {mode:o}"),
            Act::Chown { what, uid, gid } => write!(f, "chown {what} {} {}", number(*uid), number(*gid)),
            Act::Times { what, atime, mtime } => write!(f, "times {what} {} {}", time(*atime), time(*mtime)),
            Act::Truncate { what, size } => write!(f, "truncate {what} {size}"),
            Act::Read { what, at, len } => write!(f, "read {what} {at} {len}"),
            Act::Write { what, at, len, stamp } => write!(f, "write {what} {at} {len} {stamp}"),
            Act::Append { what, len, stamp } => write!(f, "append {what} {len} {stamp}"),
            Act::Allocate { what, how, at, len } => {
                write!(f, "allocate {what} {} {at} {len}", word(ALLOCATES, how))
            }
            Act::Seek { what, kind, at } => write!(f, "seek {what} {} {at}", word(SEEKS, kind)),
            Act::SyncFile { what, data_only } => write!(f, "sync-file {what} {}", word(SYNCS, data_only)),
            Act::Sync => write!(f, "sync"),
            Act::Gather(what) => write!(f, "gather {what}"),
            Act::List(what) => write!(f, "list {what}"),
            Act::Xattr { what, name } => write!(f, "xattr {what} {name}"),
            Act::Xattrs(what) => write!(f, "xattrs {what}"),
            Act::SetXattr { what, name, len, stamp, mode } => {
                write!(f, "set-xattr {what} {name} {len} {stamp} {}", word(XATTRS, mode))
            }
            Act::RemoveXattr { what, name } => write!(f, "remove-xattr {what} {name}"),
            Act::Open { slot, path } => write!(f, "open #{slot} {path}"),
            Act::Close(slot) => write!(f, "close #{slot}"),
        }
    }
}

impl fmt::Display for FsOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", <&str>::from(self.who), self.act)
    }
}

/// Parser of one line.
struct OpParser<'a> {
    whole: &'a str,
    words: SplitWhitespace<'a>,
}

impl<'a> OpParser<'a> {
    fn wrong(&self) -> String {
        format!("'{}' is not an operation; an example is: alice write a/f 4095 100 7", self.whole)
    }

    fn next(&mut self) -> Result<&'a str, String> {
        self.words.next().ok_or_else(|| self.wrong())
    }

    fn number<T: FromStr>(&mut self) -> Result<T, String> {
        self.next()?.parse().map_err(|_| self.wrong())
    }

    fn octal(&mut self) -> Result<u16, String> {
        u16::from_str_radix(self.next()?, 8).map_err(|_| self.wrong())
    }

    fn of<T: Copy>(&mut self, words: ValueNames<T>) -> Result<T, String> {
        let next = self.next()?;
        words.iter().find(|(w, _)| *w == next).map(|(_, v)| *v).ok_or_else(|| self.wrong())
    }

    fn path(&mut self) -> Result<Path, String> {
        Ok(Path::new(self.next()?))
    }

    fn slot(&mut self) -> Result<u8, String> {
        let slot = self.next()?.strip_prefix('#').and_then(|s| s.parse().ok());
        slot.filter(|&s| s < super::op::SLOTS).ok_or_else(|| self.wrong())
    }

    fn target(&mut self) -> Result<OpTarget, String> {
        if self.words.clone().next().is_some_and(|w| w.starts_with('#')) {
            return Ok(OpTarget::Slot(self.slot()?));
        }
        Ok(OpTarget::Path(self.path()?))
    }

    fn maybe(&mut self) -> Result<Option<u32>, String> {
        match self.next()? {
            "-" => Ok(None),
            n => n.parse().map(Some).map_err(|_| self.wrong()),
        }
    }

    fn time(&mut self) -> Result<Option<SetTime>, String> {
        match self.next()? {
            "-" => Ok(None),
            "now" => Ok(Some(SetTime::Now)),
            n => n.parse().map(|t| Some(SetTime::To(Time(t)))).map_err(|_| self.wrong()),
        }
    }

    /// Parses an operation on names; other operations go to `act_on`.
    fn act(&mut self) -> Result<Act, String> {
        Ok(match self.next()? {
            "create" => {
                let kind = self.of(KINDS)?;
                Act::Create { path: self.path()?, kind, mode: self.octal()?, rdev: self.number()? }
            }
            "symlink" => Act::Symlink { path: self.path()?, to: self.next()?.to_string() },
            "link" => Act::Link { what: self.target()?, path: self.path()? },
            "unlink" => Act::Unlink(self.path()?),
            "rmdir" => Act::Rmdir(self.path()?),
            "rename" => Act::Rename { from: self.path()?, to: self.path()?, mode: self.of(RENAMES)? },
            "open" => Act::Open { slot: self.slot()?, path: self.path()? },
            "close" => Act::Close(self.slot()?),
            "sync" => Act::Sync,
            other => {
                let what = self.target()?;
                self.act_on(other, what)?
            }
        })
    }

    /// Parses an operation on an inode.
    fn act_on(&mut self, verb: &str, what: OpTarget) -> Result<Act, String> {
        Ok(match verb {
            "stat" => Act::Stat(what),
            "read-link" => Act::ReadLink(what),
            "list" => Act::List(what),
            "xattrs" => Act::Xattrs(what),
            "chmod" => Act::Chmod { what, mode: self.octal()? },
            "chown" => Act::Chown { what, uid: self.maybe()?, gid: self.maybe()? },
            "times" => Act::Times { what, atime: self.time()?, mtime: self.time()? },
            "truncate" => Act::Truncate { what, size: self.number()? },
            "read" => Act::Read { what, at: self.number()?, len: self.number()? },
            "write" => Act::Write { what, at: self.number()?, len: self.number()?, stamp: self.number()? },
            "append" => Act::Append { what, len: self.number()?, stamp: self.number()? },
            "allocate" => {
                Act::Allocate { what, how: self.of(ALLOCATES)?, at: self.number()?, len: self.number()? }
            }
            "seek" => Act::Seek { what, kind: self.of(SEEKS)?, at: self.number()? },
            "gather" => Act::Gather(what),
            "sync-file" => Act::SyncFile { what, data_only: self.of(SYNCS)? },
            "xattr" => Act::Xattr { what, name: self.next()?.to_string() },
            "set-xattr" => {
                let name = self.next()?.to_string();
                let (len, stamp) = (self.number()?, self.number()?);
                Act::SetXattr { what, name, len, stamp, mode: self.of(XATTRS)? }
            }
            "remove-xattr" => Act::RemoveXattr { what, name: self.next()?.to_string() },
            _ => return Err(self.wrong()),
        })
    }
}

impl FromStr for FsOp {
    type Err = String;

    fn from_str(whole: &str) -> Result<FsOp, String> {
        let mut line = OpParser { whole, words: whole.split_whitespace() };
        let who = line.next()?.parse::<User>().map_err(|_| line.wrong())?;
        let act = line.act()?;
        if line.words.next().is_some() {
            return Err(line.wrong());
        }
        Ok(FsOp { who, act })
    }
}

/// Parses operations, one per line. Empty lines, and text after `//`, are ignored.
///
/// # Errors
/// The first line that is not an operation.
pub fn parse(text: &str) -> Result<Vec<FsOp>, String> {
    let lines = text.lines().map(|l| l.split("//").next().unwrap_or_default().trim());
    lines.filter(|l| !l.is_empty()).map(str::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::every::every;
    use crate::fs::op_generator::OpGenerator;

    #[test]
    fn operations_are_printed_and_read() {
        let mut drawer = OpGenerator::new(5);
        drawer.command_files = true;
        let drawn = (0..3000).map(|_| drawer.draw(&[Path::new("a/b"), Path::new("")]));
        for op in drawn.chain(every()) {
            assert_eq!(op.to_string().parse::<FsOp>(), Ok(op));
        }
    }

    #[test]
    fn what_is_no_operation_is_refused() {
        for text in ["", "root", "root write", "eve stat a", "root stat a b", "root open 1 a", "root stat #9"]
        {
            assert!(text.parse::<FsOp>().is_err(), "{text}");
        }
    }
}
