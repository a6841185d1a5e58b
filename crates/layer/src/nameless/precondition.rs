//! Preconditioned volumes: full, or in the steady state of long random overwriting, without doing the
//! writes.

use super::layer::Nameless;
use frit_core::{Lpn, NamelessDevice, Precondition, Preconditioning, Result};

impl<D: NamelessDevice> Preconditioning for Nameless<D> {
    fn precondition(&mut self, how: Precondition) -> Result<()> {
        let map = &mut self.map;
        self.device.precondition(how, self.pages, &mut |block| map.set(Lpn(block.owner), Some(block.at)))
    }
}
