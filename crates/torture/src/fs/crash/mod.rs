//! Power cuts of the file system on byte-addressable memory. Operations run on a medium that
//! records every word and every fence. Each image that a cut can leave is opened, checked and
//! compared with the states that are allowed.
//!
//! `machine` and `disk` do the same one level lower, for an image in an ordinary file. A log holds
//! every access to the file, and a cut keeps or loses the data that was not synced.

mod bodies;
mod disk;
mod full;
mod images;
mod machine;
mod oracle;
mod recorded;
mod run;

pub use images::Density;
pub use machine::MachineCuts;
pub use run::{Cuts, Found, Violation};
