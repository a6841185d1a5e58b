//! Results that cannot be measured here.

use super::{Measure, Present, Subject};
use crate::Result;
use crate::outcome::Outcome;
use crate::workbench::Workbench;
use serde::{Deserialize, Serialize};

/// A result that cannot be measured here.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotMeasurable {
    /// The reason.
    pub why: String,
}

/// No result.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(transparent)]
pub struct NotMeasured {
    /// The reason.
    pub why: String,
}

impl Measure for NotMeasurable {
    type Data = NotMeasured;

    fn measure(&self, _: Subject<'_>, _: &mut Workbench, _: &mut dyn FnMut(&str)) -> Result<NotMeasured> {
        Ok(NotMeasured { why: self.why.clone() })
    }
}

impl Present for NotMeasured {
    fn present(&self) -> Outcome {
        Outcome { not_measured: Some(self.why.clone()), ..Outcome::default() }
    }
}
