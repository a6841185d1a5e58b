//! What a file system is tested against: a model that is right by POSIX and Linux, operations that are drawn,
//! printed and read again, and a tester that applies them to both and says where they part.
//!
//! Everything goes through [`frit_fs::Files`], so the subject may be any file system that implements it.

pub mod apply;
pub mod compare;
pub mod crash;
pub mod damage;
pub mod differential;
pub mod draw;
pub mod every;
pub mod model;
pub mod op;
mod text;
pub mod times;

pub use differential::{Divergence, Rules, replay, run};
pub use model::Model;
pub use op::{Act, Op, Target, Who};
pub use text::parse;
