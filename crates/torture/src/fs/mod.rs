//! Tests of file systems against a model of POSIX and Linux semantics. Operations are drawn,
//! printed and parsed. A tester applies them to a subject and to the model and reports the first
//! difference.
//!
//! Everything goes through [`frit_fs::FileSystem`], so the subject may be any file system that implements it.

pub mod apply;
pub mod compare;
pub mod crash;
pub mod damage;
pub mod differential;
pub mod every;
pub mod model;
pub mod nameless;
pub mod op;
pub mod op_generator;
mod text;
pub mod times;

pub use differential::{Divergence, Rules, replay, run};
pub use model::ModelFs;
pub use op::{Act, FsOp, OpTarget, User};
pub use text::parse;
