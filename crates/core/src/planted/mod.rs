//! Switch for bugs that are planted on purpose, so that tests can prove that they find such bugs.
//!
//! A crate lists its bugs in its own module `planted`, as enums that implement [`PlantedBug`]. The
//! place that a bug breaks has a condition with [`is_planted`].
//!
//! The feature `planted` is for tests only. Without it [`is_planted`] is constant, and no code of a planted
//! bug is compiled in.

#[cfg(feature = "planted")]
mod found;

#[cfg(feature = "planted")]
pub use found::{Find, Found};

/// Groups of planted bugs, one for each enum of bugs.
///
/// A group is a part of the numbers of its bugs, which therefore differ between enums. The first
/// group is 1, because the number 0 means that no bug is planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Group {
    /// `frit_media::planted::Bug`.
    Media = 1,
    /// `frit_layer::planted::FlashBug`.
    Flash,
    /// `frit_layer::planted::HfslBug`.
    Hfsl,
    /// `frit_layer::planted::CacheBug`.
    Cache,
    /// `frit_layer::planted::NtlBug`.
    Ntl,
    /// `frit_wear::planted::WearBug`.
    Wear,
    /// `frit_fs::planted::Bug`.
    Fs,
    /// `frit_fs::planted::DamageBug`.
    FsDamage,
    /// `frit_fs::planted::ImageFileBug`.
    ImageFile,
    /// `frit_fs::planted::NamelessBug`.
    FsNameless,
    /// `frit_volume::planted::Bug`.
    Volume,
    /// `frit_compose::planted::NestBug`.
    Nest,
    /// `frit_compose::planted::MirrorBug`.
    Mirror,
    /// `frit_compose::planted::TableBug`.
    ComposedTable,
    /// `frit_compose::planted::ThinBug`.
    Thin,
    /// `frit_compose::planted::CompressBug`.
    Compress,
    /// `frit_compose::planted::SegmentsBug`.
    Segments,
    /// `frit_layer::planted::FtlBug`.
    Ftl,
    /// `frit_layer::planted::SscBug`.
    Ssc,
    /// `frit_layer::planted::FlashtierBug`.
    Flashtier,
    /// `frit_layer::planted::FlashcacheBug`.
    Flashcache,
    /// `frit_layer::planted::NamelessBug`.
    Nameless,
    /// `frit_layer::planted::ZnsBug`.
    Zns,
    /// `frit_fs::planted::DirectBug`.
    Direct,
    /// [`SyncBug`].
    Sync,
}

/// A bug of the syncs of a file, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[repr(u16)]
pub enum SyncBug {
    /// A failed sync is told to one caller, as the kernel does; the next sync succeeds.
    FailureToldOnce,
}

impl PlantedBug for SyncBug {
    const GROUP: Group = Group::Sync;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// An enum of bugs, each named by its effect.
pub trait PlantedBug: Copy + Into<&'static str> + 'static {
    /// Group of the enum, which no other enum uses.
    const GROUP: Group;

    /// Returns the discriminant of the variant.
    fn discriminant(self) -> u16;

    /// Returns the name that tests print.
    #[must_use]
    fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the bug without its type.
    #[inline]
    #[must_use]
    fn id(self) -> BugId {
        BugId((Self::GROUP as u32) << 16 | u32::from(self.discriminant()))
    }
}

/// A bug of any enum, by a number that is unique in the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BugId(u32);

#[cfg(feature = "planted")]
mod on {
    use super::{BugId, PlantedBug};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Number of threads with a planted bug, for each remainder of the number of the bug. Hot paths
    /// read one of these before they call the function behind [`PLANTED`].
    static THREADS: [AtomicU32; REMAINDERS] = [const { AtomicU32::new(0) }; REMAINDERS];

    const REMAINDERS: usize = 251;

    thread_local! {
        /// Number of the planted bug, or 0. It is local to a thread, so that tests with different bugs,
        /// and tests without one, run side by side.
        static PLANTED: Cell<u32> = const { Cell::new(0) };
    }

    /// Returns the number of threads with bugs of this remainder.
    #[inline]
    fn threads(bug: BugId) -> &'static AtomicU32 {
        &THREADS[bug.0 as usize % REMAINDERS]
    }

    /// Plants a bug in the calling thread, or removes it. Threads that the code under test starts do
    /// not have it.
    pub fn set(bug: Option<BugId>) {
        if let Some(before) = current() {
            threads(before).fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(bug) = bug {
            threads(bug).fetch_add(1, Ordering::Relaxed);
        }
        PLANTED.set(bug.map_or(0, |b| b.0));
    }

    /// Returns the bug that is planted in the calling thread.
    #[must_use]
    pub fn current() -> Option<BugId> {
        let number = PLANTED.get();
        (number != 0).then_some(BugId(number))
    }

    /// Silences panic messages of threads with a planted bug, because a panic is one way to find it.
    /// Other panics are printed.
    pub fn silence_panics() {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if current().is_none() {
                print(info);
            }
        }));
    }

    /// Returns `true` if this bug is planted in the calling thread.
    #[inline]
    #[must_use]
    pub fn is_planted(bug: impl PlantedBug) -> bool {
        let bug = bug.id();
        threads(bug).load(Ordering::Relaxed) != 0 && current() == Some(bug)
    }
}

#[cfg(feature = "planted")]
pub use on::{current, is_planted, set, silence_panics};

/// Returns `false`: without the feature no bug is planted.
#[cfg(not(feature = "planted"))]
#[inline(always)]
#[must_use]
pub fn is_planted(_: impl PlantedBug) -> bool {
    false
}
