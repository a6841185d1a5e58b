//! Power cuts of the file system on byte-addressable memory: operations run on a medium that remembers every word and
//! every fence; everything that a cut can leave is opened, checked and compared with what may be there.
//!
//! `machine` and `disk` do the same one level below, for an image in an ordinary file: a disk that remembers every
//! access, of which what was not synced is there or not.

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
