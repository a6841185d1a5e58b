//! Evaluation of points: the loss of a replay, with a memory and a limit.

use crate::error::Result;
use crate::model::{Model, Settings};
use crate::parameters::Point;
use crate::sample::Sample;
use crate::score::Loss;
use std::collections::HashMap;

/// Number of blocks of consecutive requests whose means are compared. About 20 is usual for batch means
/// (Schmeiser, Operations Research 30, 1982: 10 to 30).
pub(crate) const BLOCKS: usize = 20;

/// Losses of a point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Evaluation {
    /// Mean loss of all requests of the fitted part.
    pub(crate) loss: f64,
    /// Mean loss of each block of consecutive requests.
    pub(crate) blocks: [f64; BLOCKS],
}

/// Replays the fitted part of a sample, at most a number of times.
pub(crate) struct Evaluator<'a> {
    pub(crate) model: &'a Model,
    sample: &'a Sample,
    loss: Loss,
    known: HashMap<Settings, Evaluation>,
    /// Replays so far, and the limit.
    pub(crate) done: u64,
    limit: u64,
    watch: &'a mut dyn FnMut(u64),
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(
        model: &'a Model,
        sample: &'a Sample,
        limit: u64,
        watch: &'a mut dyn FnMut(u64),
    ) -> Evaluator<'a> {
        Evaluator { model, sample, loss: Loss::Symmetric, known: HashMap::new(), done: 0, limit, watch }
    }

    /// Returns the loss that is minimized.
    pub(crate) fn loss(&self) -> Loss {
        self.loss
    }

    /// Changes the loss. Earlier evaluations are forgotten.
    pub(crate) fn set_loss(&mut self, loss: Loss) {
        self.loss = loss;
        self.known.clear();
    }

    /// Sets the limit of replays.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Returns the number of replays that are left.
    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.done)
    }

    /// Evaluates a point. Equal settings are replayed once. Returns `None` at the limit.
    pub(crate) fn evaluate(&mut self, point: &Point) -> Result<Option<Evaluation>> {
        let settings = self.model.settings(point);
        if let Some(known) = self.known.get(&settings) {
            return Ok(Some(*known));
        }
        if self.left() == 0 {
            return Ok(None);
        }
        self.replay(settings).map(|(_, evaluation)| Some(evaluation))
    }

    /// Returns the modelled times at a point, in nanoseconds. Returns `None` at the limit.
    pub(crate) fn times(&mut self, point: &Point) -> Result<Option<Vec<u64>>> {
        if self.left() == 0 {
            return Ok(None);
        }
        self.replay(self.model.settings(point)).map(|(times, _)| Some(times))
    }

    /// Returns the measured times of the fitted part, in nanoseconds.
    pub(crate) fn measured(&self) -> &'a [u64] {
        &self.sample.measured[..self.sample.fitted]
    }

    fn replay(&mut self, settings: Settings) -> Result<(Vec<u64>, Evaluation)> {
        let times = self.model.service_times(&settings, self.sample, self.sample.fitted)?;
        let evaluation = blocks(self.loss, &times, self.measured());
        self.known.insert(settings, evaluation);
        self.done += 1;
        (self.watch)(self.done);
        Ok((times, evaluation))
    }
}

/// Returns the losses of modelled times by block.
fn blocks(loss: Loss, times: &[u64], measured: &[u64]) -> Evaluation {
    let n = times.len().max(1);
    let (mut sums, mut counts) = ([0.0; BLOCKS], [0u32; BLOCKS]);
    for (i, (modelled, measured)) in times.iter().zip(measured).enumerate() {
        let block = i * BLOCKS / n;
        sums[block] += loss.of(*modelled, *measured);
        counts[block] += 1;
    }
    let total: f64 = sums.iter().sum();
    let mut means = [0.0; BLOCKS];
    for ((mean, sum), count) in means.iter_mut().zip(sums).zip(counts) {
        *mean = sum / f64::from(count.max(1));
    }
    Evaluation { loss: total / n as f64, blocks: means }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::loss;

    #[test]
    fn blocks_are_consecutive_and_cover_all_requests() {
        let measured = vec![10_000; 205];
        let mut times = measured.clone();
        times[204] = 20_000;
        let e = blocks(Loss::Symmetric, &times, &measured);
        assert!(e.blocks[..BLOCKS - 1].iter().all(|b| *b == 0.0) && e.blocks[BLOCKS - 1] > 0.0);
        assert!((e.loss - loss(20_000, 10_000) / 205.0).abs() < 1e-12);
    }
}
