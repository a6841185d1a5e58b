//! Detection of lost data: opening a volume reads only the metadata, this reads the data as well.

use crate::planted::Bug;
use crate::volume::Volume;
use frit_core::planted::is_planted;
use frit_core::{CheckScope, LostPage, Result, Severity};

impl Volume {
    /// Returns the number of mapped bytes.
    ///
    /// # Errors
    /// None for an open volume.
    pub fn mapped_bytes(&self) -> Result<u64> {
        let mut mapped = 0;
        self.extents(0, self.bytes(), &mut |len, place| mapped += if place.is_some() { len } else { 0 })?;
        Ok(mapped)
    }

    /// Reads all mapped data, and adds pages that cannot be read to the losses of the recovery.
    ///
    /// # Errors
    /// A store fails.
    pub fn find_lost_pages(&mut self) -> Result<()> {
        let mut found = Vec::new();
        let scope = CheckScope { data: true, ..CheckScope::default() };
        self.check(scope, &mut |f| found.push(f))?;
        for f in
            found.into_iter().filter(|f| f.severity == Severity::Major && !is_planted(Bug::LossesNotTold))
        {
            let Some(recovery) = self.recovered.recovery.layer_mut(&f.layer) else { continue };
            match f.lpn {
                Some(lpn) if recovery.lost.iter().all(|l| l.lpn != lpn) => {
                    recovery.lost.push(LostPage { lpn, why: f.what });
                }
                None if !recovery.unnamed.contains(&f.what) => recovery.unnamed.push(f.what),
                _ => {}
            }
            recovery.lost.sort_by_key(|l| l.lpn);
        }
        Ok(())
    }
}
