//! Text of a drive or a profile: a parameter file of DiskSim, a drive in TOML, a profile of a medium.
//! A text that a parser accepts can be built and works; other texts are refused with a message.

#![no_main]

use frit_core::{Nanos, Sector};
use frit_media::Profile;
use frit_media::disk::{DiskProfile, DiskSpec, Drive, DriveRequest, DriveRequestKind, diskspecs};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

/// Builds a drive and reads its last sector.
fn works(spec: &DiskSpec) {
    // Tables of millions of cylinders are right, and slow.
    if spec.geometry.cylinders > 100_000 {
        return;
    }
    let mut drive = Drive::new(spec).expect("what a parser takes can be built");
    let sector = Sector(drive.sectors() - 1);
    drive.service(&DriveRequest { kind: DriveRequestKind::Read, sector, sectors: 1 }, Nanos::ZERO);
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // It sources files, of which there are none here.
    match diskspecs::parse(Path::new("/nonexistent/fuzz.diskspecs"), text) {
        Ok(loaded) => works(&loaded.spec),
        Err(e) => assert!(!e.what.is_empty()),
    }
    match DiskProfile::parse(text).and_then(|p| p.spec()) {
        Ok(spec) => works(&spec),
        Err(e) => assert!(!e.to_string().is_empty()),
    }
    if let Err(e) = Profile::parse(text) {
        assert!(!e.to_string().is_empty());
    }
});
