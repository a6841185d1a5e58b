//! Results in generic parts, and their renderers.
//!
//! Every kind of experiment presents its results as an [`Outcome`]: sections, tables of typed
//! cells, lists, plots, and sections that experiments share. The renderers of text and plots know
//! these parts, and no kind of experiment.

mod cell;
mod format;
mod judgement;
mod part;
mod plot;
mod shared;
mod text;

pub use cell::Cell;
pub(crate) use format::{change, count, generated, seconds};
pub(crate) use judgement::claim_text;
pub use judgement::{Deviation, JudgedAspect, Judgement};
pub use part::{Outcome, OutcomePart, OutcomeTable};
pub use plot::LogPlot;
pub use shared::{SharedEntry, SharedPlace, SharedSection};
pub(crate) use text::{outcome_text, shared_text};
