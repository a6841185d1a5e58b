//! Access paths ("doors") of a volume: every way to read its bytes or a report on them.

use super::test_volume::{BLOCK, Files, TestVolume, write_files};
use frit_core::{CheckScope, Finding};
use frit_volume::{ImageSink, OpenOptions, Volume, export, grow};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// An access path to the data of a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AccessPath {
    /// `check --data`.
    Check,
    /// Opening for reading.
    ReadOnly,
    /// Opening for writing, followed by a second opening.
    ReadWrite,
    /// The same with recovery from power loss, as the caller requests.
    Machine,
    /// `recover`.
    Recover,
    /// `check --data --repair`.
    Repair,
    /// `check --data --repair --older`.
    Older,
    /// `grow`.
    Grow,
    /// `export`.
    Export,
    /// `export --rescue`.
    Rescue,
}

/// All access paths.
pub(crate) const ACCESS_PATHS: [AccessPath; 10] = [
    AccessPath::Check,
    AccessPath::ReadOnly,
    AccessPath::ReadWrite,
    AccessPath::Machine,
    AccessPath::Recover,
    AccessPath::Repair,
    AccessPath::Older,
    AccessPath::Grow,
    AccessPath::Export,
    AccessPath::Rescue,
];

/// Result of an access path.
#[derive(Default)]
pub(crate) struct AccessResult {
    /// The contents of the blocks that could be read; empty if the volume was refused.
    pub blocks: Vec<Option<Vec<u8>>>,
    /// Blocks that were reported as lost, or ranges that were listed.
    pub named: Vec<u64>,
    /// A loss or damage was reported: a command would exit with 1.
    pub told: bool,
    /// Reason why the volume was refused, if it was.
    pub refused: Option<String>,
    /// A violation found by the access path itself.
    pub wrong: Option<String>,
}

impl AccessResult {
    fn refused(e: &dyn std::fmt::Display) -> AccessResult {
        AccessResult { refused: Some(e.to_string()), told: true, ..AccessResult::default() }
    }
}

/// Reads each block separately; a hole has to read as zeros.
fn read(v: &mut Volume, out: &mut AccessResult) {
    let mut hole = vec![false; (v.bytes() as usize) / BLOCK];
    let mut at = 0;
    let told = v.extents(0, v.bytes(), &mut |len, place| {
        let (first, end) = ((at as usize).div_ceil(BLOCK), (at + len) as usize / BLOCK);
        if place.is_none() && first < end {
            hole[first..end].fill(true);
        }
        at += len;
    });
    if let Err(e) = told {
        out.wrong = Some(format!("extents: {e}"));
    }
    out.blocks.clear();
    for (i, hole) in hole.into_iter().enumerate() {
        let mut bytes = vec![0xEE; BLOCK];
        let read = v.read((i * BLOCK) as u64, &mut bytes).ok().map(|()| bytes);
        if hole && read.as_ref().is_none_or(|b| b.iter().any(|&b| b != 0)) {
            out.wrong = Some(format!("block {i} is told to be a hole, and does not read as zeros"));
        }
        out.blocks.push(read);
    }
}

fn options(read_only: bool, stop: Option<frit_core::CrashKind>) -> OpenOptions {
    OpenOptions { read_only, crash: stop }
}

/// Opens the volume, calls `act`, and closes the volume.
fn opened(
    dir: &Path,
    options: &OpenOptions,
    act: impl FnOnce(&mut Volume, &mut AccessResult),
) -> AccessResult {
    let mut v = match Volume::open(dir, options) {
        Ok(v) => v,
        Err(e) => return AccessResult::refused(&e),
    };
    let mut out = AccessResult { told: v.recovery().recovery.lost_any(), ..AccessResult::default() };
    act(&mut v, &mut out);
    // A volume that refuses writes stays dirty, and closing it reports that.
    out.told |= v.close().is_err();
    out
}

fn check(dir: &Path, scope: CheckScope) -> AccessResult {
    opened(dir, &options(!scope.repair, None), |v, out| {
        let mut left: Vec<Finding> = Vec::new();
        let checked = v.check(scope, &mut |f| left.push(f));
        let page = u64::from(v.page_bytes());
        out.named = left.iter().filter_map(|f| f.lpn).map(|l| u64::from(l) * page).collect();
        out.told |= checked.is_err() || left.iter().any(|f| !f.repaired);
        if !scope.repair {
            read(v, out);
        }
    })
}

/// Reads a volume after an access path that changed it.
fn then_read(dir: &Path, mut out: AccessResult) -> AccessResult {
    if out.refused.is_none() {
        let again = opened(dir, &options(true, None), read);
        out.wrong = out.wrong.or(again.wrong);
        out.refused = again.refused;
        out.blocks = again.blocks;
    }
    out
}

fn exported(dir: &Path, rescue: bool) -> AccessResult {
    opened(dir, &options(true, None), |v, out| {
        let mut image = Vec::new();
        match export(v, &mut ImageSink::Stream(&mut image), rescue, &mut |_| {}) {
            Err(_) => out.told = true,
            Ok(moved) => {
                out.told |= !moved.damaged.is_empty();
                out.blocks = image.chunks(BLOCK).map(|b| Some(b.to_vec())).collect();
                for (at, len, _) in moved.damaged {
                    let range = at as usize / BLOCK..((at + len) as usize).div_ceil(BLOCK);
                    out.blocks[range].fill(None);
                }
            }
        }
    })
}

fn grown(dir: &Path, subject: &TestVolume) -> AccessResult {
    let larger = subject.kind.stack(subject.kind.larger);
    let grown = catch_unwind(AssertUnwindSafe(|| grow(dir, &larger, &mut |_, _, _| {})));
    let mut out = match grown {
        Ok(Ok(_)) => AccessResult::default(),
        Ok(Err(_)) => AccessResult { told: true, ..AccessResult::default() },
        Err(_) => return AccessResult { wrong: Some("grow panicked".into()), ..AccessResult::default() },
    };
    let beside: PathBuf = dir.with_file_name("vol.growing");
    if beside.exists() {
        // The remains of a failed copy are removed by the next call.
        std::fs::remove_dir_all(beside).unwrap();
    }
    let failed = out.told;
    out = then_read(dir, out);
    out.told |= failed;
    out.blocks.truncate(subject.blocks());
    if !failed && out.blocks.iter().any(Option::is_none) {
        out.wrong = Some("grow said that it is done, and the volume has pages that cannot be read".into());
    }
    out
}

/// Creates a volume from these files and runs an access path on it.
pub(crate) fn enter(door: AccessPath, subject: &TestVolume, files: &Files, dir: &Path) -> AccessResult {
    write_files(dir, files);
    let data = CheckScope { data: true, ..CheckScope::default() };
    let out = catch_unwind(AssertUnwindSafe(|| match door {
        AccessPath::Check => check(dir, data),
        AccessPath::ReadOnly => opened(dir, &options(true, None), read),
        AccessPath::ReadWrite => then_read(dir, opened(dir, &options(false, None), read)),
        AccessPath::Machine => {
            then_read(dir, opened(dir, &options(false, Some(frit_core::CrashKind::PowerLoss)), read))
        }
        AccessPath::Recover => {
            let out = opened(dir, &options(false, None), |v, out| {
                out.told |= v.find_lost_pages().is_err() || v.recovery().recovery.lost_any();
            });
            then_read(dir, out)
        }
        AccessPath::Repair => then_read(dir, check(dir, CheckScope { repair: true, ..data })),
        AccessPath::Older => then_read(dir, check(dir, CheckScope { repair: true, older: true, ..data })),
        AccessPath::Grow => grown(dir, subject),
        AccessPath::Export => exported(dir, false),
        AccessPath::Rescue => exported(dir, true),
    }));
    std::fs::remove_dir_all(dir).unwrap();
    out.unwrap_or_else(|_| AccessResult { wrong: Some("a panic".into()), ..AccessResult::default() })
}
