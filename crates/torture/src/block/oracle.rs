//! Promises that an image must keep: it recovers, holds all acknowledged data, gives the same
//! contents at a second recovery, passes a check, and accepts further writes.

use crate::block::command_set::CommandSet;
use crate::block::history::{BeforeCrash, History};
use crate::block::medium::SharedMedium;
use crate::block::mirror_sources::MirrorSources;
use crate::block::recording::add_divisible;
use crate::block::self_describing::{self, BadSector, PER_BLOCK, SECTOR, Versions};
use crate::block::target::TortureTarget;
use crate::block::violation::{Oracle, Violation};
use crate::block::workload::{
    ClientRequest, ClientRequestKind, Clients, RequestFailure, WorkloadMix, fill_requests, forget_unflushed,
};
use crate::block::zoned;
use frit_core::split_mix::mix;
use frit_core::{
    CheckScope, CrashKind, DurabilityPoint, Error, Finding, Hints, ReadTarget, Sector, Severity, Sink,
    StackDevice,
};
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// Extent of the examination of an image.
#[derive(Clone, Copy, Debug)]
pub struct ExamineOptions {
    /// Recover a second time.
    pub twice: bool,
    /// Rewrite the volume in full afterwards.
    pub alive: bool,
    /// The volume may be out of usable blocks and therefore refuse writes.
    pub worn: bool,
    /// The kind of stop before the recovery.
    pub stop: CrashKind,
    /// Seed of the random choices.
    pub seed: u64,
}

/// Result of the examination of an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageState {
    /// Hash of all bytes that recovery read.
    pub image: u64,
    /// Hash of all contents.
    pub state: u64,
    /// Number of bytes that recovery read.
    pub read_bytes: u64,
    /// Contents of the blocks.
    pub versions: Vec<Versions>,
}

/// An image after recovery.
pub struct RecoveredVolume {
    /// The recovered layer.
    pub layer: Box<dyn StackDevice>,
    /// Contents and hashes of the image.
    pub seen: ImageState,
}

impl std::fmt::Debug for RecoveredVolume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecoveredVolume").field("seen", &self.seen).finish_non_exhaustive()
    }
}

/// Recovers an image, checks it and reads all its contents.
///
/// # Errors
/// A promise that does not hold.
pub fn recover_and_read(
    target: &dyn TortureTarget,
    stores: &[SharedMedium],
    blocks: usize,
    stop: CrashKind,
) -> Result<RecoveredVolume, Violation> {
    for s in stores {
        s.lock().start_hash();
    }
    let recovers = |doing: &'static str| move |e: Error| Violation::error(Oracle::Recovers, doing, &e);
    let mut layer = target.build(stores).map_err(recovers("opening"))?;
    let found = layer.recover(&mut Sink::untimed(), stop).map_err(recovers("recovery"))?;
    let (mut image, mut read_bytes) = (0, 0);
    for s in stores {
        let (hash, bytes) = s.lock().stop_hash();
        image = mix(image ^ hash);
        read_bytes += bytes;
    }
    if let Some(lost) = found.lost.first() {
        return Err(Violation::new(Oracle::Reads, format!("recovery lost page {}: {}", lost.lpn, lost.why)));
    }
    if let Some(what) = found.unnamed.first() {
        return Err(Violation::new(Oracle::Reads, format!("recovery lost pages: {what}")));
    }
    check(layer.as_mut(), "after recovery")?;
    let versions = read_all(layer.as_mut(), &mut Sink::untimed(), blocks)?;
    zoned::verify(layer.as_mut(), &versions)?;
    let state = hash_of(&versions);
    Ok(RecoveredVolume { layer, seen: ImageState { image, state, read_bytes, versions } })
}

/// Runs a check with data, which must report nothing of importance.
///
/// # Errors
/// The first finding.
pub fn check(layer: &mut dyn StackDevice, when: &str) -> Result<(), Violation> {
    check_except(layer, when, |_| false)
}

/// Runs a check with data, which must report nothing of importance except some findings.
fn check_except(
    layer: &mut dyn StackDevice,
    when: &str,
    excepted: impl Fn(&Finding) -> bool,
) -> Result<(), Violation> {
    let mut first = None;
    let scope = CheckScope { data: true, ..CheckScope::default() };
    let done = layer.check(&mut Sink::untimed(), scope, &mut |f| {
        // A finding that only costs space is allowed: a later recovery, or garbage collection,
        // repairs it.
        if f.severity > Severity::Minor && !excepted(&f) {
            first.get_or_insert(f);
        }
    });
    done.map_err(|e| Violation::error(Oracle::Check, "check", &e))?;
    match first {
        None => Ok(()),
        Some(f) => Err(Violation::new(
            Oracle::Check,
            format!("check {when}: {} (page {:?}, {:?} at {}): {}", f.kind, f.lpn, f.medium, f.at, f.what),
        )),
    }
}

/// Number of blocks of one read: 64 KiB.
const READ_BLOCKS: usize = 16;

/// Reads all blocks.
///
/// # Errors
/// A block that cannot be read, or that holds data that was never written there.
pub fn read_all(
    layer: &mut dyn StackDevice,
    sink: &mut Sink,
    blocks: usize,
) -> Result<Vec<Versions>, Violation> {
    let mut versions = Vec::with_capacity(blocks);
    while versions.len() < blocks {
        let n = (blocks - versions.len()).min(READ_BLOCKS);
        let read = read_blocks(layer, sink, versions.len(), n)?;
        versions.extend(read.map_err(|e| unreadable(versions.len(), &e))?);
    }
    Ok(versions)
}

/// Reads all blocks one by one after a failed flush. `None` stands for a block that is reported as lost.
fn read_after_failed_flush(
    layer: &mut dyn StackDevice,
    sink: &mut Sink,
    blocks: usize,
) -> Result<Vec<Option<Versions>>, Violation> {
    (0..blocks)
        .map(|block| match read_blocks(layer, sink, block, 1)? {
            Ok(versions) => Ok(versions.first().copied()),
            Err(Error::Corrupt { .. } | Error::Medium { .. }) => Ok(None),
            Err(e) => Err(unreadable(block, &e)),
        })
        .collect()
}

fn unreadable(block: usize, e: &Error) -> Violation {
    Violation::error(Oracle::Reads, &format!("reading at sector {}", block * PER_BLOCK), e)
}

/// Reads `n` blocks from `block` on with one request. The inner error is that of the request.
fn read_blocks(
    layer: &mut dyn StackDevice,
    sink: &mut Sink,
    block: usize,
    n: usize,
) -> Result<Result<Vec<Versions>, Error>, Violation> {
    let first = block * PER_BLOCK;
    let mut bytes = vec![0u8; n * self_describing::BLOCK];
    if let Err(e) = layer.read(sink, Sector(first as u64), ReadTarget::Bytes(&mut bytes), Hints::NONE) {
        return Ok(Err(e));
    }
    let mut versions = Vec::with_capacity(n);
    for (i, block) in bytes.chunks_exact(self_describing::BLOCK).enumerate() {
        let mut v: Versions = [0; PER_BLOCK];
        for (j, s) in block.chunks_exact(SECTOR).enumerate() {
            let sector = (first + i * PER_BLOCK + j) as u64;
            v[j] = self_describing::version(sector, s).map_err(|bad| bad_sector(sector, bad))?;
        }
        versions.push(v);
    }
    Ok(Ok(versions))
}

fn bad_sector(sector: u64, bad: BadSector) -> Violation {
    let what = match bad {
        BadSector::Torn => format!("sector {sector} is torn, mixed or damaged"),
        BadSector::Other { sector: other, version } => {
            format!("sector {sector} holds sector {other}, version {version}")
        }
    };
    Violation::new(Oracle::Torn, what)
}

/// Returns a hash of contents.
#[must_use]
pub fn hash_of(versions: &[Versions]) -> u64 {
    versions.iter().flatten().fold(0, |h, &v| mix(h ^ u64::from(v)))
}

/// Verifies that every block holds the data of all certain requests, and of the others only whole
/// requests. `now` are the sides from which mirrors are read.
///
/// # Errors
/// The first block that does not.
pub fn verify_contents(
    history: &History,
    lasted: &CommandSet,
    found: &[Versions],
    now: &MirrorSources,
) -> Result<(), Violation> {
    for (b, v) in found.iter().enumerate() {
        if history.allows(b, lasted, v, now) {
            continue;
        }
        let (oracle, why) = if history.allows(b, &CommandSet::new(lasted.limit()), v, now) {
            (Oracle::Content, "an earlier state: later acknowledged requests are lost")
        } else {
            (Oracle::Torn, "which was never its state")
        };
        let sure = history.after(b, |r| lasted.has(r as usize));
        let by: Vec<String> = history
            .changes(b)
            .iter()
            .map(|c| {
                let sign = if lasted.has(c.request as usize) { "" } else { "?" };
                format!("{}{sign} {}..{} v{}", c.request, c.from, c.to, c.version)
            })
            .collect();
        let what = format!(
            "block {b} (sector {}) holds versions {v:?}, {why}; acknowledged: {sure:?}; requests: {}",
            b * PER_BLOCK,
            by.join(", ")
        );
        return Err(Violation::new(oracle, what));
    }
    if !history.is_of_a_flush(found) {
        let what = "the blocks are not as of one flush, and a flush is atomic";
        return Err(Violation::new(Oracle::Torn, what.to_owned()));
    }
    Ok(())
}

/// Examines an image with all oracles.
///
/// # Errors
/// A promise that does not hold.
pub fn examine(
    target: &dyn TortureTarget,
    stores: &[SharedMedium],
    history: &History,
    lasted: &CommandSet,
    depth: ExamineOptions,
) -> Result<ImageState, Violation> {
    let up = recover_and_read(target, stores, history.len(), depth.stop)?;
    verify_contents(history, lasted, &up.seen.versions, &history.sources_now(up.layer.as_ref()))?;
    let RecoveredVolume { layer, seen } = up;
    drop(layer);
    if depth.twice || depth.alive {
        // The machine runs again, so the second recovery follows a crash of the process.
        let again = recover_and_read(target, stores, history.len(), CrashKind::Process)
            .map_err(|v| Violation { what: format!("at the second recovery: {}", v.what), ..v })?;
        if again.seen.versions != seen.versions {
            return Err(Violation::new(
                Oracle::Again,
                describe_difference(&seen.versions, &again.seen.versions),
            ));
        }
        if depth.alive {
            let sources = MirrorSources::of(again.layer.as_ref());
            let before = BeforeCrash { history: history.clone(), lasted: lasted.clone(), sources };
            alive(target, stores, again, before, depth)?;
        }
    }
    Ok(seen)
}

/// Describes the first difference between two states.
#[must_use]
pub fn describe_difference(first: &[Versions], second: &[Versions]) -> String {
    match first.iter().zip(second).position(|(a, b)| a != b) {
        Some(b) => format!("block {b} held {:?} and then {:?}", first[b], second[b]),
        None => "nothing".into(),
    }
}

/// Returns `true` if the volume may report blocks as lost because a flush failed: its table can name places
/// whose writes the flush lost, until the volume is opened again.
fn may_report_lost(
    target: &dyn TortureTarget,
    layer: &dyn StackDevice,
    requests: &[ClientRequest],
    failed: &CommandSet,
) -> bool {
    let flushes = |r: &ClientRequest| r.kind.makes_certain() || r.is_fua();
    failed.iter().any(|i| flushes(&requests[i])) && target.commits_at_flush() && layer.refuses().is_some()
}

/// Rewrites the whole volume, with discards and a flush, and verifies the data before and after a
/// restart.
fn alive(
    target: &dyn TortureTarget,
    stores: &[SharedMedium],
    up: RecoveredVolume,
    before: BeforeCrash,
    depth: ExamineOptions,
) -> Result<(), Violation> {
    let blocks = up.seen.versions.len();
    // New versions are above all versions in the image, so that none repeats.
    let version = 1 + up.seen.versions.iter().flatten().copied().max().unwrap_or(0) + (1 << 24);
    let mut clients = Clients::new(History::after_crash(&up.seen.versions, before), version);
    let mut layer = up.layer;
    let mut rng = SmallRng::seed_from_u64(depth.seed);
    let mut requests = fill_requests(blocks as u64);
    let mix = WorkloadMix { requests: 24, clients: 2, hot_blocks: 4, most_sectors: 24, discards: 60 };
    requests.extend(mix.requests(&mut rng, blocks as u64));
    requests.push(ClientRequestKind::Flush.without_range());
    let mut lasted = CommandSet::below(requests.len(), requests.len());
    let (mut flushed, mut failed) = (0, CommandSet::new(requests.len()));
    for (i, r) in requests.iter().enumerate() {
        let done = clients.perform(layer.as_mut(), &mut Sink::untimed(), r, i as u32);
        // Without commits, layers run out of space as well.
        let refused =
            matches!(done, Err(RequestFailure::Error(Error::ReadOnly { .. } | Error::NoSpace { .. })));
        // After a failed flush, blocks that it may have lost are reported as such (`may_report_lost`).
        let lost = matches!(done, Err(RequestFailure::Error(Error::Corrupt { .. } | Error::Medium { .. })))
            && may_report_lost(target, layer.as_ref(), &requests, &failed);
        if (refused || lost) && depth.worn {
            lasted.remove(i);
            failed.add(i);
            continue;
        }
        if done.is_ok() && r.kind.makes_certain() {
            flushed = i;
        }
        done.map_err(|f| match f {
            RequestFailure::Error(e) => Violation::error(Oracle::Alive, &format!("after recovery, {r}"), &e),
            RequestFailure::Violation(v) => Violation { what: format!("after recovery, {}", v.what), ..v },
        })?;
    }
    // A request that failed leaves each sector old or new (docs/reference/composition.md, failure), and one
    // that no flush made durable may be durable in parts.
    let mut divisible = failed.clone();
    if depth.worn {
        add_divisible(&mut divisible, layer.write_guarantee(), &requests);
    }
    clients.history.split(&divisible);
    let mut reports_lost = false;
    let found = if may_report_lost(target, layer.as_ref(), &requests, &failed) {
        let found = read_after_failed_flush(layer.as_mut(), &mut Sink::untimed(), blocks)?;
        reports_lost = found.contains(&None);
        let known = |b: usize| clients.history.after(b, |r| lasted.has(r as usize));
        found.into_iter().enumerate().map(|(b, v)| v.unwrap_or_else(|| known(b))).collect()
    } else {
        read_all(layer.as_mut(), &mut Sink::untimed(), blocks)?
    };
    let now = clients.history.sources_now(layer.as_ref());
    verify_contents(&clients.history, &lasted, &found, &now)?;
    // The check cannot read what the reads reported as lost. After a restart it has to find nothing.
    check_except(layer.as_mut(), "after a full rewrite", |f| reports_lost && f.kind == "bad-data")?;
    if layer.write_guarantee().durable_at == DurabilityPoint::OnFlush {
        forget_unflushed(&mut lasted, &requests, flushed);
    }
    drop(layer);
    let again = recover_and_read(target, stores, blocks, CrashKind::Process)
        .map_err(|v| Violation { what: format!("after a full rewrite and a restart: {}", v.what), ..v })?;
    let now = clients.history.sources_now(again.layer.as_ref());
    verify_contents(&clients.history, &lasted, &again.seen.versions, &now)
}
