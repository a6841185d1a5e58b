//! Power cuts of the file system on byte-addressable memory: operations run on a medium that remembers every word and
//! every fence; everything that a cut can leave is opened, checked and compared with what may be there.

mod bodies;
mod images;
mod oracle;
mod recorded;
mod run;

pub use images::Density;
pub use run::{Cuts, Found, Violation};
