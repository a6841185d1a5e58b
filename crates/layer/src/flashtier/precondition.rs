//! Preconditioned volumes.

use super::layer::Flashtier;
use frit_core::{BlockDevice, CacheDevice, Precondition, Preconditioning, Result};

impl<C: CacheDevice, D: BlockDevice + ?Sized> Preconditioning for Flashtier<C, D> {
    /// Preconditions the disk. The cache is empty, as after its installation: a warm-up of the run fills
    /// it.
    fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.disk.precondition(how)
    }
}
