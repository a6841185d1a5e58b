//! A volume, used by a program without a server: `cargo run -p frit-volume --example embedded`.
//!
//! It prints the media on which the data lies, and the media commands that the writes cost.

#![allow(clippy::print_stdout, reason = "an example prints its results")]

use frit_core::{Counts, Hints};
use frit_stack::Stack;
use frit_volume::{CreateOptions, OpenOptions, Volume, sized_stack};
use std::error::Error;

/// Number of small writes.
const SMALL_WRITES: usize = 64;
/// Bytes of a small write.
const SMALL_BYTES: usize = 512;
/// Bytes of the large write that follows them.
const LARGE_BYTES: usize = 256 << 10;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // A volume is a directory. Its stack is a builtin one (or a file: `Stack::load`), with as much
    // NAND as a volume of 8 MiB needs.
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("volume");
    let stack = sized_stack(8 << 20, |sets| Stack::builtin("hfsl-small", sets))?;
    let mut volume = Volume::create(&path, &CreateOptions { stack, force: false })?;

    // Ranges are in bytes, in multiples of 512. This stack places small writes in PCM (parameter
    // SSW), and large ones in NAND.
    let data = contents(SMALL_WRITES * SMALL_BYTES + LARGE_BYTES);
    let (small, large) = data.split_at(SMALL_WRITES * SMALL_BYTES);
    let before = volume.visible().counts();
    let mut at = 0;
    for record in small.chunks(SMALL_BYTES) {
        volume.write(at, record, Hints::NONE)?;
        at += record.len() as u64;
    }
    volume.write(at, large, Hints::NONE)?;

    // A write survives a crash of this program at once, and a power loss after a flush.
    volume.flush()?;
    println!("places:");
    print_places(&volume, data.len() as u64)?;
    println!("media commands:");
    print_commands(&volume.visible().counts().since(&before));

    // A volume that is dropped instead is recovered when it is opened again.
    volume.close()?;
    let mut volume = Volume::open(&path, &OpenOptions::default())?;
    let mut back = vec![0; data.len()];
    volume.read(0, &mut back)?;
    if back != data {
        return Err("the volume returns other data".into());
    }
    println!("{} bytes were written and read back", back.len());
    volume.close()?;
    Ok(())
}

/// Returns bytes with a period of 251, so that neighbouring sectors differ.
fn contents(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

/// Prints the medium of each extent of the first `bytes` of a volume.
fn print_places(volume: &Volume, bytes: u64) -> Result<(), Box<dyn Error>> {
    let mut at = 0u64;
    volume.extents(0, bytes, &mut |len, place| {
        let medium: &str = place.map_or("no medium (zeros)", Into::into);
        println!("  {at:>7} .. {:>7}  {medium}", at + len);
        at += len;
    })?;
    Ok(())
}

/// Prints the number of commands by operation and cause.
fn print_commands(counts: &Counts) {
    for (op, cause, count) in counts.iter() {
        let (op, cause): (&str, &str) = (op.into(), cause.into());
        println!("  {op:<12} for {cause:<10} {:>6}, {:>8} bytes", count.commands, count.bytes);
    }
}
