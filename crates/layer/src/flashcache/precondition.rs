//! Preconditioned volumes.

use super::layer::Flashcache;
use frit_core::{BlockDevice, Precondition, Preconditioning, Result, Sink};

impl<S: Sink, C: BlockDevice<S> + ?Sized, D: BlockDevice<S> + ?Sized> Preconditioning
    for Flashcache<S, C, D>
{
    /// Preconditions both devices. The cache is empty, as after its installation on a used SSD: a
    /// warm-up of the run fills it.
    fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.ssd.precondition(how)?;
        self.disk.precondition(how)
    }
}
