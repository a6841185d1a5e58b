//! What the hardware is: rules, wear, bytes, data sheets, and the cost of a command.

pub mod hardware;
pub mod timing;

pub use hardware::{Device, Hardware};
pub use timing::{Curve, DramTiming, Model, NandTiming, PcmTiming, Phases};
