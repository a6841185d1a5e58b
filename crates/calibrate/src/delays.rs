//! Detection of delays that the model does not have.
//!
//! The model of a drive has no garbage collection and no other background work. Such work delays
//! requests, and never makes one shorter. If it delays many of them, a fit to all requests takes the
//! delays for times of the drive. Two signs of this are shares of the requests:
//!
//! - *too fast*: the drive served the request in less time than the fitted one needs for the request
//!   alone. No state of a drive with the fitted values allows this.
//! - *delayed*: the request took longer than the fitted drive says.
//!
//! Both mean more than noise: a factor of 1.65, the bound of the loss.

use crate::error::Result;
use crate::model::{Model, Settings};
use crate::sample::Sample;
use crate::score::{is_delayed, is_too_long};
use serde::Serialize;

/// Share of too fast or of delayed requests above which a fit to all requests is given up (assumed).
/// Simulated drives without background work have below 0.01, those that collect garbage 0.15 to 0.5. Of the
/// recordings in `docs/results/calibrate.md`, those of eMMC have below 0.07, and the RAID of disks 0.15.
const SHARE_MAX: f64 = 0.1;

/// Signs of delays in the fitted part of a trace.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Delays {
    /// Share of the requests that took less time than the fit to all requests has for them alone.
    pub too_fast: f64,
    /// Share of the requests that took more than 1.65 times the time of the fit to all requests.
    pub too_slow: f64,
    /// Share of the requests that took more than 1.65 times the time of the calibrated drive.
    pub delayed: f64,
}

impl Delays {
    /// Determines the signs for a fit to all requests. Returns `None` if there are few.
    pub(crate) fn find(model: &Model, sample: &Sample, settings: &Settings) -> Result<Option<Delays>> {
        let too_slow = share(model, sample, settings, is_delayed)?;
        // With one request outstanding, none waits for another one.
        let alone = Sample { depth: 1, ..sample.clone() };
        let too_fast = share(model, &alone, settings, is_too_long)?;
        let found = Delays { too_fast, too_slow, delayed: too_slow };
        Ok(Some(found).filter(|_| too_fast.max(too_slow) > SHARE_MAX))
    }

    /// Returns the same signs with the delays beside the calibrated drive.
    pub(crate) fn beside(self, model: &Model, sample: &Sample, settings: &Settings) -> Result<Delays> {
        Ok(Delays { delayed: share(model, sample, settings, is_delayed)?, ..self })
    }
}

/// Returns the share of the requests of the fitted part with a property of modelled and measured time.
fn share(model: &Model, sample: &Sample, settings: &Settings, of: fn(u64, u64) -> bool) -> Result<f64> {
    let times = model.service_times(settings, sample, sample.fitted)?;
    let count = times.iter().zip(&sample.measured).filter(|(modelled, m)| of(**modelled, **m)).count();
    Ok(count as f64 / sample.fitted.max(1) as f64)
}
