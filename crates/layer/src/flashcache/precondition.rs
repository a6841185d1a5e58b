//! Preconditioned volumes.

use super::layer::Flashcache;
use frit_core::{BlockDevice, Precondition, Preconditioning, Result};

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Preconditioning for Flashcache<C, D> {
    /// Preconditions both devices. The cache is empty, as after its installation on a used SSD: a
    /// warm-up of the run fills it.
    fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.ssd.precondition(how)?;
        self.disk.precondition(how)
    }
}
