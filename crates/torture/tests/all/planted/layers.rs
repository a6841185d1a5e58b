//! Proof of the oracles: bugs are planted, and each must be found. `layers.csv` has the oracle, and the case that
//! finds each bug: one cut. If it does not any more, workloads are searched for another one; with `RECORD=1`, all are.
//!
//! Bugs of the first kind are made in the sink, which deletes edges, fences and acknowledgements.
//! Bugs of the second kind are hooks in the layer and the media, behind the feature `planted`.

use super::on_all_processors;
use crate::common;
use frit_compose::planted::MirrorBug;
use frit_compose::planted::NestBug;
use frit_compose::planted::{CompressBug, SegmentsBug, TableBug, ThinBug};
use frit_core::planted::{self, BugId, Find, Found, PlantedBug, SyncBug};
use frit_layer::planted::{
    CacheBug, FlashBug, FlashcacheBug, FlashtierBug, FtlBug, HfslBug, NamelessBug, NtlBug, SscBug, ZnsBug,
};
use frit_media::planted::Bug as MediaBug;
use frit_torture::block::campaign::run;
use frit_torture::block::case::{TortureCase, TortureMode};
use frit_torture::block::options::CampaignOptions;
use frit_torture::block::recording_sink::{CommandClass, Mutation};
use frit_torture::block::replay::replay;
use frit_torture::block::report::FailedCase;
use frit_wear::planted::WearBug;
use std::collections::HashMap;
use strum::IntoEnumIterator;

/// Number of workloads after which a bug counts as missed.
const MOST: u32 = 40;

/// A planted bug.
#[derive(Clone, Copy)]
enum Plant {
    Sink(Mutation),
    Hook(BugId),
}

fn plant(what: Option<Plant>) -> Option<Mutation> {
    planted::set(match what {
        Some(Plant::Hook(bug)) => Some(bug),
        _ => None,
    });
    match what {
        Some(Plant::Sink(m)) => Some(m),
        _ => None,
    }
}

/// For each workload, `true` if it has no violations without a planted bug.
type Sound = HashMap<(TortureMode, &'static str, u64, u32), bool>;

/// Returns the options of a workload with a bug.
fn options(mode: TortureMode, seed: u64, mutation: Option<Mutation>) -> CampaignOptions {
    CampaignOptions {
        seed,
        modes: vec![mode],
        items: Some(2),
        cuts_most: Some(500),
        first_only: true,
        threads: 1,
        mutation,
        ..CampaignOptions::default()
    }
}

/// Returns the name of a case: its stack, the seed and the case of torture.
fn name_of(stack: &str, seed: u64, case: &TortureCase) -> String {
    format!("{stack} {seed} {case}")
}

fn parsed(name: &str) -> Option<(&str, u64, TortureCase)> {
    let mut words = name.split(' ');
    Some((words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Tries a recorded case, with the bug and without it. Returns what finds the bug.
fn again(what: Plant, recorded: &Find) -> Option<Find> {
    let (stack, seed, case) = parsed(&recorded.case)?;
    let target = common::target(stack);
    let with = replay(&target, &options(case.mode, seed, plant(Some(what))), case.clone());
    let without = plant(None);
    let found = with.violations.first()?;
    let is_sound = replay(&target, &options(case.mode, seed, without), case).violations.is_empty();
    is_sound.then(|| Find { found_by: <&str>::from(found.violation.oracle).into(), ..recorded.clone() })
}

fn hunt(what: Plant, modes: &[TortureMode], stacks: &[&'static str], sound: &mut Sound) -> Option<Find> {
    let mut searched = 0;
    let mut seed = 1;
    while searched < MOST {
        for &mode in modes {
            for &stack in stacks {
                let target = common::target(stack);
                let r = run(&target, &options(mode, seed, plant(Some(what))), &|_| {});
                let mutation = plant(None);
                searched += r.workloads;
                // A violation that also occurs without the bug does not count.
                let mut own = |f: &&FailedCase| {
                    *sound.entry((mode, stack, seed, f.case.number)).or_insert_with(|| {
                        let case = TortureCase::workload(mode, f.case.number);
                        replay(&target, &options(mode, seed, mutation), case).violations.is_empty()
                    })
                };
                if let Some(f) = r.violations.iter().find(|f| own(f)) {
                    let found_by = <&str>::from(f.violation.oracle).to_owned();
                    return Some(Find { case: name_of(stack, seed, &f.case), found_by, searched });
                }
            }
        }
        seed += 1;
    }
    None
}

fn mutations() -> Vec<(String, Mutation)> {
    let mut all: Vec<(String, Mutation)> = vec![
        ("no fences at all".into(), Mutation::DropFences),
        ("every third fence left out".into(), Mutation::DropEvery(3)),
        ("acknowledged at once".into(), Mutation::AckAtOnce),
        ("acknowledged before metadata".into(), Mutation::AckBeforeMeta),
        ("FUA ignored".into(), Mutation::IgnoreFua),
    ];
    for class in CommandClass::iter() {
        let name: &str = class.into();
        all.push((format!("no `after` of {name}"), Mutation::DropAfter(class)));
        // Data is followed by its descriptor, and an erase by no write, so no fence directly
        // follows either.
        if !matches!(class, CommandClass::Erase | CommandClass::PcmData) {
            all.push((format!("no fence behind {name}"), Mutation::DropFence(class)));
        }
    }
    all
}

const ANY: &[&str] = &["both-4k", "none-4k", "level-2k"];
/// Stacks of several NAND devices below one HFSL.
const ARRAYS: &[&str] = &["array-4k"];
const GROUPS: &[&str] = &["level-2k", "none-512"];
/// HFSL stacks with rings of several redo records.
const RINGS: &[&str] = &["redo-2-none", "redo-64-start-gap"];
const PCM: &[&str] = &["cache-4k"];
/// NTL stacks.
const MAPPINGS: &[&str] = &["ntl-full-row", "ntl-static", "ntl-coarse"];
/// HFSL stacks with a wear leveler below PCM.
const LEVELERS: &[&str] = &["hfsl-start-gap", "hfsl-security-refresh"];
/// FTLs.
const FTLS: &[&str] = &["ftl-4k", "ftl-merge"];
/// FTLs that map blocks.
const BLOCK_MAPS: &[&str] = &["ftl-block", "ftl-fast", "ftl-bast"];
/// Stacks of disks behind a cache.
const CACHES: &[&str] = &["halo-half", "cleaning"];
/// Composers with a table.
const COMPOSERS: &[&str] = &["thin", "thin-cache", "compress"];

/// Stacks of mirrors.
const MIRRORS: &[&str] = &["mirror"];

/// Hooks that do not count, since another mechanism covers each of them.
///
/// - Versions of NAND pages are compared again at each read.
/// - A descriptor's slots, page and version have checks of their own.
/// - A descriptor is reused after the slots that were released with it, and their tokens order both
///   (not found in more than a hundred workloads of a PCM that is always full).
/// - The remains of an NTL record do kind only if a second power loss completes them with words of
///   the next record: one cut in some ten thousand. A test of the layer makes this cut by hand.
/// - Bugs of an FTL: an older discard map stays in NAND until its block is erased, so a newer one
///   that is programmed too early hides nothing; and a page that an interrupted program left is listed
///   in the marks as well as superseded. A third one needs a lost program of a page that garbage
///   collection then moves, which a test of the layer makes by hand.
/// - A block that is begun before earlier erases leaves no page for a recovery only if all blocks are full by
///   chance. A test has such a workload (`a_block_begun_before_erases_can_leave_no_page_for_a_recovery`).
/// - Two bugs of a summary, and one of a repair, concern both copies of a record. The harness of
///   whole volumes finds them (`crates/volume/tests/all/damage/planted.rs`).
/// - The two bugs of wear leveling need damage of one register, and a recovery cut between two
///   registers and repeated after a crash. Both are rare below a layer. The tests of the device
///   damage every register and make every cut (`wear`).
/// - Two bugs of a mirror need a side that fails for a while and a crash. A read error that is
///   returned is no loss. The property test of the mirror finds all three.
/// - The device below the manager of a solid-state cache refuses writes after an error by itself. A
///   block that is cached too early needs a write past the cache, a read of it, a power loss that
///   the disk forgets it in, and an eviction: a test of the layer reads before and after the flush
///   (`a_block_that_the_disk_can_still_lose_is_not_cached`).
/// - A repair of a solid-state cache drops a damaged dirty block: a test of the layer repairs one, and so
///   does the harness of whole volumes.
/// - Two bugs of a solid-state cache need media that have no block left for the log at one moment. Tests of
///   the layer make it by hand.
/// - A virtual block that a crash interrupted stays damaged, so every later recovery leaves it out as well,
///   and the next flush writes the checkpoint that a recovery did not.
fn masked() -> [BugId; 22] {
    [
        FlashBug::AdoptAnyVersion.id(),
        HfslBug::DescCheckIgnored.id(),
        HfslBug::DescReuseEarly.id(),
        NtlBug::RemainsKept.id(),
        FtlBug::DiscardsBeforeData.id(),
        FtlBug::TornKept.id(),
        FtlBug::LostForgotten.id(),
        FtlBug::BegunBeforeErases.id(),
        CacheBug::SummaryIgnored.id(),
        NtlBug::SummaryIgnored.id(),
        CacheBug::RepairDiscards.id(),
        WearBug::DamageUnseen.id(),
        WearBug::RestoreUnmarked.id(),
        MirrorBug::ClearedDegraded.id(),
        MirrorBug::StaleBitmapIgnored.id(),
        MirrorBug::ReadErrorReturned.id(),
        FlashtierBug::NotPoisoned.id(),
        FlashtierBug::VolatileCached.id(),
        NamelessBug::NoCheckpointAtStart.id(),
        SscBug::RepairDiscards.id(),
        SscBug::EvictNotUndone.id(),
        FlashtierBug::WornTrusted.id(),
    ]
}

/// Modes and stacks that reveal a bug.
type Grounds = (&'static [TortureMode], &'static [&'static str]);

/// Returns where a bug of syncs is looked for.
fn grounds_of_syncs(bug: SyncBug) -> Grounds {
    match bug {
        SyncBug::FailureToldOnce => (&[TortureMode::Errors], CACHES),
    }
}

fn grounds_of_media(bug: MediaBug) -> Grounds {
    match bug {
        MediaBug::NandDataUnchecked => (&[TortureMode::Damage], ANY),
        MediaBug::NandSecondCopyIgnored => (&[TortureMode::Damage], FTLS),
        MediaBug::ArrayRotatedAtOpen => (&[TortureMode::Cuts], ARRAYS),
        MediaBug::ArraySyncsFirst => (&[TortureMode::Files], ARRAYS),
    }
}

fn grounds_of_flash(bug: FlashBug) -> Grounds {
    match bug {
        FlashBug::FlushOneMedium | FlashBug::EraseBeforeFlush => (&[TortureMode::Files], ANY),
        FlashBug::OwnerUnchecked => (&[TortureMode::Damage], ANY),
        FlashBug::ProgramFailureIgnored => (&[TortureMode::Wear], ANY),
        FlashBug::ModeForgotten => (&[TortureMode::Cuts], common::DYNAMIC_FTLS),
        FlashBug::FoldedErasedEarly | FlashBug::CacheForgotten => (&[TortureMode::Cuts], common::CACHED_FTLS),
        _ => (&[TortureMode::Cuts], ANY),
    }
}

fn grounds_of_hfsl(bug: HfslBug) -> Grounds {
    match bug {
        HfslBug::FlushIgnored
        | HfslBug::FlushMapFirst
        | HfslBug::ReuseBeforeFlush
        | HfslBug::FlushedMapIgnored => (&[TortureMode::Files], ANY),
        HfslBug::EntryCheckIgnored
        | HfslBug::PcmDataUnchecked
        | HfslBug::SeqRestarts
        | HfslBug::StaleEntryUnseen => (&[TortureMode::Damage], ANY),
        HfslBug::NotPoisoned => (&[TortureMode::Errors], ANY),
        HfslBug::NoRedo
        | HfslBug::RedoNotFenced
        | HfslBug::RedoNotCleared
        | HfslBug::RedoGateOpen
        | HfslBug::RedoForgotten => (&[TortureMode::Cuts], GROUPS),
        // Smaller rings have one line, which is always the last.
        HfslBug::RedoByPosition => (&[TortureMode::Cuts], RINGS),
        HfslBug::SlotReuseEarly => (&[TortureMode::Cuts], PCM),
        _ => (&[TortureMode::Cuts], ANY),
    }
}

fn grounds_of_ftl(bug: FtlBug) -> Grounds {
    match bug {
        FtlBug::NotPoisoned => (&[TortureMode::Errors], FTLS),
        FtlBug::BlankComplete => (&[TortureMode::Cuts], &["ftl-merge", "ftl-units"]),
        FtlBug::StreamNotFlushed => (&[TortureMode::Cuts], &["ftl-streams"]),
        FtlBug::RestNotCopied => (&[TortureMode::Cuts], BLOCK_MAPS),
        FtlBug::MergedErasedEarly => (&[TortureMode::Cuts], &["ftl-fast", "ftl-bast"]),
        FtlBug::EntryNotWritten | FtlBug::MovedNotTranslated => (&[TortureMode::Cuts], &["ftl-dftl"]),
        _ => (&[TortureMode::Cuts, TortureMode::Files], FTLS),
    }
}

fn grounds_of_cache(bug: CacheBug) -> Grounds {
    match bug {
        CacheBug::CleanLeavesEarly => (&[TortureMode::Cuts], &["cleaning", "write-through"]),
        CacheBug::GoneForgotten => (&[TortureMode::Files], CACHES),
        CacheBug::LostDirectIgnored => (&[TortureMode::Errors], &["write-around"]),
        CacheBug::HaltIgnored => (&[TortureMode::Damage], CACHES),
        CacheBug::SlotReuseEarly | CacheBug::TrimNotAcked => (&[TortureMode::Cuts], &["halo-half"]),
        CacheBug::ReuseBeforeFlush => (&[TortureMode::Files], &["policy-lru"]),
        CacheBug::FlushIgnored => (&[TortureMode::Cuts], &["write-around"]),
        CacheBug::FlushOneMedium => (&[TortureMode::Files], &["halo-half"]),
        CacheBug::PcmDataUnchecked => (&[TortureMode::Damage], &["halo-half"]),
        CacheBug::NotPoisoned => (&[TortureMode::Errors], &["halo-half"]),
        _ => (&[TortureMode::Cuts], CACHES),
    }
}

fn grounds_of_ntl(bug: NtlBug) -> Grounds {
    match bug {
        NtlBug::DataUnchecked => (&[TortureMode::Damage], MAPPINGS),
        NtlBug::HomeBeforeSync | NtlBug::ReuseBeforeSync => (&[TortureMode::Files], MAPPINGS),
        NtlBug::NotPoisoned => (&[TortureMode::Errors], MAPPINGS),
        _ => (&[TortureMode::Cuts], MAPPINGS),
    }
}

fn grounds_of_mirror(bug: MirrorBug) -> Grounds {
    match bug {
        MirrorBug::FailureNotNoted | MirrorBug::ReadErrorReturned | MirrorBug::StaleSideServes => {
            (&[TortureMode::Errors], MIRRORS)
        }
        MirrorBug::MarkNotFlushed => (&[TortureMode::Cuts, TortureMode::Files], MIRRORS),
        _ => (&[TortureMode::Cuts], MIRRORS),
    }
}

fn grounds_of_wear(bug: WearBug) -> Grounds {
    match bug {
        WearBug::MovedTwice
        | WearBug::SyncedFirst
        | WearBug::SyncedIgnored
        | WearBug::VoidKept
        | WearBug::RestoreUnmarked => (&[TortureMode::Files], LEVELERS),
        WearBug::DamageUnseen => (&[TortureMode::Damage], LEVELERS),
        // Only the exchange of two stripes has intermediate steps.
        WearBug::SwapNotNoted => (&[TortureMode::Cuts], &["hfsl-security-refresh"]),
        _ => (&[TortureMode::Cuts], LEVELERS),
    }
}

/// Trees whose layers below can lose data in each way.
const TREES: &[&str] = &["tree-halo-hfsl", "tree-halo-stripe", "tree-stripe"];

fn grounds_of_nest(bug: NestBug) -> Grounds {
    match bug {
        NestBug::WriteErrorDropped => (&[TortureMode::Errors], &["tree-halo-hfsl", "tree-stripe"]),
        NestBug::FlushNotPassed | NestBug::FlushFirstDevice | NestBug::FlushEarly => {
            (&[TortureMode::Files, TortureMode::Cuts], TREES)
        }
        // The disk is durable after a flush, and HFSL at the acknowledgement.
        NestBug::StrongestGuarantee => (&[TortureMode::Cuts], &["tree-concat"]),
        NestBug::FindingsDropped => (&[TortureMode::Damage], &["tree-stripe"]),
        _ => (&[TortureMode::Cuts], TREES),
    }
}

fn grounds_of_table(bug: TableBug) -> Grounds {
    match bug {
        // Only a lost write leaves a first copy that is older after a commit.
        TableBug::CrcIgnored | TableBug::SequenceIgnored => (&[TortureMode::Damage], &["compress"]),
        _ => (&[TortureMode::Cuts], COMPOSERS),
    }
}

fn grounds_of_thin(bug: ThinBug) -> Grounds {
    match bug {
        // A disk orders two writes to one place by itself.
        ThinBug::ReuseOrderedOnce => (&[TortureMode::Cuts], &["thin-cache"]),
        _ => (&[TortureMode::Cuts], &["thin"]),
    }
}

fn grounds_of_compress(bug: CompressBug) -> Grounds {
    match bug {
        CompressBug::ChecksumIgnored => (&[TortureMode::Damage], &["compress"]),
        _ => (&[TortureMode::Cuts], &["compress"]),
    }
}

fn grounds_of_segments(bug: SegmentsBug) -> Grounds {
    match bug {
        SegmentsBug::ChecksumIgnored => (&[TortureMode::Damage], &["segments"]),
        _ => (&[TortureMode::Cuts], &["segments"]),
    }
}

/// Solid-state caches: deferred and synchronous durability, write-through, and streams past the cache.
const SSCS: &[&str] = &["ssc-4k", "ssc-sync", "ssc-through", "ssc-bypass"];

fn grounds_of_ssc(bug: SscBug) -> Grounds {
    match bug {
        SscBug::AckBeforeProgram
        | SscBug::SparesIgnored
        | SscBug::EvictNotDurable
        | SscBug::EmptiedForgotten => (&[TortureMode::Cuts], &["ssc-sync"]),
        // Blocks wait in the write buffer only if several fill a page.
        SscBug::BufferIgnored | SscBug::UseNotNoted => (&[TortureMode::Cuts], &["ssc-through"]),
        // It shows where checkpoints fill their blocks: at flushes.
        SscBug::NewestCheckpointErased => (&[TortureMode::Cuts], &["ssc-alone"]),
        SscBug::NotPoisoned => (&[TortureMode::Errors], SSCS),
        SscBug::SecondCopyIgnored | SscBug::SyncedIgnored => (&[TortureMode::Damage], SSCS),
        SscBug::EraseNotSynced | SscBug::CheckpointNotSynced | SscBug::SyncedEarly => {
            (&[TortureMode::Files], SSCS)
        }
        _ => (&[TortureMode::Cuts], SSCS),
    }
}

fn grounds_of_flashtier(bug: FlashtierBug) -> Grounds {
    match bug {
        // Clean blocks survive a crash, and the disk is written past the cache.
        FlashtierBug::EvictNotOrdered | FlashtierBug::DirtyBypassed => {
            (&[TortureMode::Cuts], &["ssc-bypass"])
        }
        // A read waits for the program of its page. Only a page cache has the program and can lose it.
        FlashtierBug::CleanedEarly => (&[TortureMode::Files], &["ssc-sync"]),
        // Clean blocks survive a crash.
        FlashtierBug::ZeroedEarly => (&[TortureMode::Cuts], &["ssc-sync"]),
        _ => (&[TortureMode::Cuts], SSCS),
    }
}

/// Managers of an ordinary SSD as a cache: over a disk, an FTL, and a hybrid.
const FLASHCACHES: &[&str] = &["flashcache-disk", "flashcache-ftl", "flashcache-through"];

fn grounds_of_flashcache(bug: FlashcacheBug) -> Grounds {
    match bug {
        FlashcacheBug::NotPoisoned => (&[TortureMode::Errors], FLASHCACHES),
        FlashcacheBug::DirtyBypassed => (&[TortureMode::Cuts], &["flashcache-ftl", "flashcache-disk"]),
        FlashcacheBug::CleanTrusted | FlashcacheBug::UseNotNoted | FlashcacheBug::DiskNotFlushed => {
            (&[TortureMode::Cuts], FLASHCACHES)
        }
        _ => (&[TortureMode::Cuts], &["flashcache-disk", "flashcache-ftl"]),
    }
}

/// Nameless-write devices.
const NAMELESS: &[&str] = &["nameless-4k", "nameless-queues", "nameless-units"];

/// Nameless-write devices without a volume.
const NAMELESS_DEVICES: &[&str] = &["nameless-device", "nameless-device-4k"];

fn grounds_of_nameless(bug: NamelessBug) -> Grounds {
    match bug {
        NamelessBug::NotPoisoned => (&[TortureMode::Errors], NAMELESS),
        NamelessBug::MapBeforeSync => (&[TortureMode::Files], NAMELESS),
        NamelessBug::NewerCounts | NamelessBug::SavedFreedEarly | NamelessBug::CheckpointUnordered => {
            (&[TortureMode::Cuts], NAMELESS_DEVICES)
        }
        NamelessBug::MovedCountsAsNew => (&[TortureMode::Cuts], &["nameless-4k"]),
        NamelessBug::SecondCopyIgnored => (&[TortureMode::Damage], NAMELESS_DEVICES),
        NamelessBug::CheckpointBeforeSync => (&[TortureMode::Files], NAMELESS_DEVICES),
        _ => (&[TortureMode::Cuts, TortureMode::Files], NAMELESS),
    }
}

/// Zoned devices.
const ZONED: &[&str] = &["zns-units", "zns-4k", "zns-narrow"];

fn grounds_of_zns(bug: ZnsBug) -> Grounds {
    match bug {
        ZnsBug::NotPoisoned => (&[TortureMode::Errors], ZONED),
        ZnsBug::TableBeforeSync => (&[TortureMode::Files], ZONED),
        _ => (&[TortureMode::Cuts, TortureMode::Files], ZONED),
    }
}

/// A bug to find: its name, the bug, and the modes and stacks that reveal it.
type Hunted = (String, Plant, &'static [TortureMode], &'static [&'static str]);

/// Returns the hooks of an enum that count.
fn hooks<B: PlantedBug + IntoEnumIterator>(grounds: fn(B) -> Grounds) -> Vec<Hunted> {
    let masked = masked();
    B::iter()
        .filter(|bug| !masked.contains(&bug.id()))
        .map(|bug| {
            let (modes, stacks) = grounds(bug);
            (bug.name().to_owned(), Plant::Hook(bug.id()), modes, stacks)
        })
        .collect()
}

/// Bugs of the sink that are also tried on a cache.
const SHARED_IN_SINK: [(&str, Mutation, &[TortureMode]); 4] = [
    ("no fences at all", Mutation::DropFences, &[TortureMode::Cuts]),
    ("every third fence left out", Mutation::DropEvery(3), &[TortureMode::Cuts]),
    ("acknowledged at once", Mutation::AckAtOnce, &[TortureMode::Cuts]),
    ("FUA ignored", Mutation::IgnoreFua, &[TortureMode::Files]),
];

#[test]
fn every_planted_bug_is_found() {
    // Planted bugs may make the layer panic, which counts as found.
    planted::silence_panics();
    let only = std::env::var("BUG").ok();
    let mut all: Vec<Hunted> = Vec::new();
    for (name, m) in mutations() {
        let modes: &[TortureMode] =
            if m == Mutation::IgnoreFua { &[TortureMode::Files] } else { &[TortureMode::Cuts] };
        let stacks = if name.ends_with("head") { GROUPS } else { ANY };
        all.push((name, Plant::Sink(m), modes, stacks));
    }
    all.extend(hooks(grounds_of_flash));
    all.extend(hooks(grounds_of_hfsl));
    all.extend(hooks(grounds_of_ftl));
    all.extend(hooks(grounds_of_media));
    all.extend(hooks(grounds_of_syncs));
    for (mut name, what, modes, stacks) in hooks(grounds_of_cache) {
        // The cache shares some names with HFSL.
        if all.iter().any(|(other, ..)| *other == name) {
            name.push_str(" (disk)");
        }
        all.push((name, what, modes, stacks));
    }
    all.extend(hooks(grounds_of_ntl));
    all.extend(hooks(grounds_of_wear));
    all.extend(hooks(grounds_of_ssc));
    all.extend(hooks(grounds_of_flashtier));
    all.extend(hooks(grounds_of_flashcache));
    all.extend(hooks(grounds_of_nameless));
    all.extend(hooks(grounds_of_zns));
    all.extend(hooks(grounds_of_nest));
    all.extend(hooks(grounds_of_mirror));
    all.extend(hooks(grounds_of_table));
    all.extend(hooks(grounds_of_thin));
    all.extend(hooks(grounds_of_compress));
    all.extend(hooks(grounds_of_segments));
    for (name, mutation, modes) in SHARED_IN_SINK {
        all.push((format!("{name} (disk)"), Plant::Sink(mutation), modes, CACHES));
    }
    all.retain(|(name, ..)| only.as_ref().is_none_or(|o| name.starts_with(o.as_str())));
    let found = Found::of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/planted/layers.csv"));
    // Bugs are planted for a thread, and this test takes longer than most.
    on_all_processors(&all, |(name, what, modes, stacks), sound: &mut Sound| {
        let known = found.recorded(name).and_then(|recorded| again(*what, recorded));
        found.note(name, known.or_else(|| hunt(*what, modes, stacks, sound)));
    });
    if only.is_some() { found.check() } else { found.finish() }
}
