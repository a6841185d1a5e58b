//! Mount options of a file system.

use frit_fuse::{Config, ConnectionOptions, MountOption, Rings, SessionACL};
use std::fmt;

/// Maximum number of threads.
pub const THREADS_MAX: usize = 64;

/// File system type that `df -T` and `findmnt` show, after `fuse.`.
pub(in crate::fuse) const SUBTYPE: &str = "ispfs";

/// Mount options of a file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountOptions {
    /// Source in the kernel's list of mounts.
    pub source: String,
    /// Nothing is changed, not even access times.
    pub read_only: bool,
    /// Number of threads that answer requests.
    pub threads: usize,
    /// Use of io_uring for requests.
    pub rings: Rings,
    /// The kernel collects writes in its page cache, and keeps sizes and times of what it has not
    /// written back yet.
    pub writeback: bool,
    /// The contents are in separate files (a pool), which the kernel reads and writes itself if it
    /// can. Excludes `writeback`.
    pub passthrough: bool,
    /// Budget of memory for in-storage processing in bytes. `None`: a quarter of the memory of the machine, or of the
    /// smallest limit of the control groups of the process.
    pub isp_memory: Option<u64>,
    /// Users other than the one who mounts may access the file system.
    pub allow_other: bool,
    /// Users that may give instructions to the processing engine.
    pub isp: IspAccess,
    /// The directory may have entries, which the mount hides.
    pub nonempty: bool,
    /// Generic options of mount(8).
    flags: Vec<MountOption>,
}

/// Users that may give instructions to the processing engine of a mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum IspAccess {
    /// None.
    Off,
    /// The user that mounts, and root.
    #[default]
    Owner,
    /// All users that may use the mount.
    All,
}

/// An unknown word after `-o`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a mount option; known options: ro, rw, suid, nosuid, dev, nodev, exec, noexec, atime, \
     noatime, sync, async, dirsync, allow_other, nonempty, fsname=NAME"
)]
pub struct UnknownOption(String);

impl MountOptions {
    /// Returns the default options: root mounts for all users, any other user only for itself.
    /// Programs with set-ID bits and device files are ignored, since an image may come from any
    /// source, unless the options `suid` and `dev` allow them.
    #[must_use]
    pub fn new(source: impl fmt::Display) -> MountOptions {
        MountOptions {
            source: source.to_string(),
            read_only: false,
            threads: default_threads(),
            rings: Rings::Auto,
            writeback: false,
            passthrough: false,
            isp_memory: None,
            allow_other: rustix::process::geteuid().is_root(),
            isp: IspAccess::Owner,
            nonempty: false,
            flags: Vec::new(),
        }
    }

    /// Adds the argument of `-o`: words separated by commas. Later words override earlier ones.
    ///
    /// # Errors
    /// A word is unknown.
    pub fn add(&mut self, words: &str) -> Result<(), UnknownOption> {
        for word in words.split(',').filter(|w| !w.is_empty()) {
            match word {
                "ro" => self.read_only = true,
                "rw" => self.read_only = false,
                "allow_other" => self.allow_other = true,
                "nonempty" => self.nonempty = true,
                // These options are always in effect, or concern only the callers of mount(8).
                "defaults"
                | "default_permissions"
                | "auto"
                | "noauto"
                | "user"
                | "nouser"
                | "_netdev"
                | "nofail" => {}
                _ => match word.split_once('=') {
                    Some(("fsname", name)) => self.source = name.into(),
                    _ => self.flag(word)?,
                },
            }
        }
        Ok(())
    }

    fn flag(&mut self, word: &str) -> Result<(), UnknownOption> {
        let (flag, opposite) = PAIRS
            .iter()
            .flat_map(|(a, b)| [(a, b), (b, a)])
            .find(|((name, _), _)| *name == word)
            .ok_or_else(|| UnknownOption(word.into()))?;
        self.flags.retain(|f| *f != opposite.1);
        if !self.flags.contains(&flag.1) {
            self.flags.push(flag.1.clone());
        }
        Ok(())
    }

    /// Returns the options of mount(8).
    fn config(&self) -> Config {
        let has = |f: &MountOption| self.flags.contains(f);
        let mut config = Config::default();
        let options = &mut config.mount_options;
        options.push(MountOption::FSName(self.source.clone()));
        options.push(if rustix::process::geteuid().is_root() {
            // fuser passes a subtype only to fusermount3.
            MountOption::CUSTOM(format!("subtype={SUBTYPE}"))
        } else {
            MountOption::Subtype(SUBTYPE.into())
        });
        options.push(MountOption::DefaultPermissions);
        options.push(if self.read_only { MountOption::RO } else { MountOption::RW });
        options.extend(self.flags.iter().cloned());
        for (unless, safe) in
            [(MountOption::Suid, MountOption::NoSuid), (MountOption::Dev, MountOption::NoDev)]
        {
            if !has(&unless) && !has(&safe) {
                options.push(safe);
            }
        }
        config.acl = if self.allow_other { SessionACL::All } else { SessionACL::Owner };
        config
    }

    /// Returns the options of the connection.
    pub(super) fn connection(&self) -> ConnectionOptions {
        ConnectionOptions {
            config: self.config(),
            threads: self.threads.clamp(1, THREADS_MAX),
            rings: self.rings,
        }
    }
}

/// A word and its option.
type Word = (&'static str, MountOption);

/// Words and their opposites.
const PAIRS: [(Word, Word); 6] = [
    (("suid", MountOption::Suid), ("nosuid", MountOption::NoSuid)),
    (("dev", MountOption::Dev), ("nodev", MountOption::NoDev)),
    (("exec", MountOption::Exec), ("noexec", MountOption::NoExec)),
    (("atime", MountOption::Atime), ("noatime", MountOption::NoAtime)),
    (("sync", MountOption::Sync), ("async", MountOption::Async)),
    (("dirsync", MountOption::DirSync), ("nodirsync", MountOption::Async)),
];

/// Returns one thread per processor, but at least two: one copies data while the other waits for a
/// lock.
fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_and_later_ones_count() {
        let mut o = MountOptions::new("image");
        o.add("ro,nodev,fsname=other,nodev,dev").unwrap();
        assert!(o.read_only);
        assert_eq!(o.source, "other");
        o.add("rw").unwrap();
        let config = o.config();
        let has = |m: &MountOption| config.mount_options.contains(m);
        assert!(has(&MountOption::Dev) && !has(&MountOption::NoDev), "{config:?}");
        assert!(has(&MountOption::NoSuid) && has(&MountOption::RW), "safe by default: {config:?}");
        assert_eq!(o.add("suid,colour").unwrap_err(), UnknownOption("colour".into()));
        assert!(o.add("fsnam=x").unwrap_err().to_string().contains("'fsnam=x'"));
    }
}
