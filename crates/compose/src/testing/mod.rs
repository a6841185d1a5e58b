//! Devices with a volatile cache, and a shadow of the contents of a layer above them.

mod disk;
mod objects;
mod requests;
mod shadow;

pub(crate) use disk::TestDisk;
pub(crate) use objects::TestObjects;
pub(crate) use requests::{findings, metric, read, write, write_bytes};
pub(crate) use shadow::{Step, exercise, step};

/// A device whose power fails.
pub(crate) trait LosesPower {
    /// Loses power: of what was not flushed, `keep` decides about each part.
    fn lose_power(&self, keep: &mut dyn FnMut() -> bool);
}

impl<A: LosesPower, B: LosesPower> LosesPower for (A, B) {
    fn lose_power(&self, keep: &mut dyn FnMut() -> bool) {
        self.0.lose_power(keep);
        self.1.lose_power(keep);
    }
}
