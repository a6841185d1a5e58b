//! Counters in a file that a program maps and changes in place: `cargo run -p frit-fs --example mapped`.

use frit_fs::{Caller, Error as FsError, FormatOptions, Fs, FsOptions, Mapped, OpenFile, Paths};
use std::error::Error;

/// Number of counters of 8 bytes.
const COUNTERS: u64 = 100_000;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let me = Caller::ROOT;
    // The medium has to be memory: anonymous, or a file on tmpfs or DAX (`Image::open`).
    let fs = Fs::format(Mapped::anonymous(16 << 20)?, FormatOptions::default())?;
    let file = fs.open_file(&me, "counters", OpenFile::CREATE)?;
    file.set_len(COUNTERS * 8)?;

    let map = file.map(0..COUNTERS * 8)?;
    for _ in 0..3 {
        // The bytes of the medium: no copy, and no transaction. An aligned word is old or new after a
        // power loss.
        map.update(|_, piece| {
            for counter in piece.as_chunks_mut::<8>().0 {
                *counter = (u64::from_le_bytes(*counter) + 1).to_le_bytes();
            }
        })?;
    }
    let mut sum = 0;
    map.view(|_, piece| {
        sum += piece.as_chunks::<8>().0.iter().map(|counter| u64::from_le_bytes(*counter)).sum::<u64>();
    });
    assert_eq!(sum, 3 * COUNTERS);

    // The blocks keep their places while they are mapped.
    assert!(matches!(file.set_len(0), Err(FsError::Busy)));
    drop(map);
    file.sync(true)?;
    drop(file);

    let fs = Fs::open(fs.close()?, FsOptions::default())?;
    assert!(
        fs.contents(&me, "counters")?
            .as_chunks::<8>()
            .0
            .iter()
            .all(|counter| *counter == [3, 0, 0, 0, 0, 0, 0, 0])
    );
    fs.close()?;
    Ok(())
}
