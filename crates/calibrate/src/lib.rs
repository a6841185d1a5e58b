//! Fits the latencies, the parallelism and the write cache of a NAND drive to a trace with measured
//! service times.
//!
//! The model of the drive is a stack: a NAND of a profile, the layer `ftl`, and a layer `delay` for the
//! time of a command outside the NAND. [`Calibration::run`] replays the trace over the stack in virtual
//! time for each set of values, and searches for the values whose service times are nearest to the
//! measured ones. It then determines which values the trace tells: see [`identify`].
//!
//! The crate has no model of its own and no random numbers. `docs/reference/calibrate.md` is the manual.

mod delays;
mod error;
mod evaluate;
mod fit;
pub mod identify;
mod model;
mod newton;
mod output;
mod parameters;
mod replay;
mod sample;
mod score;
mod search;

pub use delays::Delays;
pub use error::{Error, Result};
pub use fit::{Calibration, FitOptions, FittedParameter};
pub use identify::Verdict;
pub use model::{Model, Settings};
pub use output::{profile_text, stack_text};
pub use parameters::Parameter;
pub use sample::{REQUESTS_MIN, Sample};
pub use score::{PartScores, Predictor, QuantileRow, Score, SizeRow};
