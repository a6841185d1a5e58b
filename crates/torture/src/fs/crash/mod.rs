//! Power cuts of the file system on byte-addressable memory. Operations run on a medium that
//! records every word and every fence. Each image that a cut can leave is opened, checked and
//! compared with the states that are allowed.
//!
//! `power_loss` and `simulated_disk` do the same one level lower, for an image in an ordinary file. A log holds
//! every access to the file, and a cut keeps or loses the data that was not synced.

mod content_store;
mod full;
mod images;
mod oracle;
mod power_loss;
mod recording_medium;
mod run;
mod simulated_disk;
mod stored_content;

pub use images::Density;
pub use power_loss::PowerLossCuts;
pub use run::{CutReport, CutViolation, FsCuts};
