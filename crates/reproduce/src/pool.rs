//! Jobs that run once each, on all processors.

use crate::Result;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Results of jobs, by their keys.
#[derive(Debug)]
pub(crate) struct JobPool<F> {
    found: BTreeMap<String, F>,
    /// Keys and descriptions of the jobs of the current experiment.
    asked: Vec<(String, String)>,
}

/// A job. Jobs with the same key have the same result.
pub(crate) struct PoolJob<'a, F> {
    pub(crate) key: String,
    /// Description for the progress display.
    pub(crate) about: String,
    pub(crate) run: Box<dyn Fn() -> Result<F> + Send + Sync + 'a>,
}

impl<F> Default for JobPool<F> {
    fn default() -> Self {
        JobPool { found: BTreeMap::new(), asked: Vec::new() }
    }
}

impl<F: Send> JobPool<F> {
    /// Runs the jobs that have no result yet. `note` is called with the description of each job
    /// that starts.
    ///
    /// # Errors
    /// The error of the first failed job, in the order of the jobs.
    pub(crate) fn run(&mut self, jobs: Vec<PoolJob<'_, F>>, note: &mut dyn FnMut(&str)) -> Result<()> {
        let mut new: Vec<PoolJob<'_, F>> = Vec::new();
        for job in jobs {
            if self.asked.iter().all(|(key, _)| *key != job.key) {
                self.asked.push((job.key.clone(), job.about.clone()));
            }
            if !self.found.contains_key(&job.key) && new.iter().all(|n| n.key != job.key) {
                new.push(job);
            }
        }
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(new.len());
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..workers {
                let (tell, next, done, new) = (tell.clone(), &next, &done, &new);
                scope.spawn(move || {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(job) = new.get(i) else { break };
                        // The receiver is gone only when the whole program ends.
                        tell.send(job.about.clone()).ok();
                        let found = (job.run)();
                        done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((i, found));
                    }
                });
            }
            drop(tell);
            for what in told {
                note(&what);
            }
        });
        let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Workers finish in any order; sorting makes the reported error independent of it.
        done.sort_by_key(|(i, _)| *i);
        for (i, found) in done {
            self.found.insert(new[i].key.clone(), found?);
        }
        Ok(())
    }

    /// Returns the descriptions and the results of the jobs since the last call, whether they were
    /// run for it or before.
    pub(crate) fn take_asked(&mut self) -> impl Iterator<Item = (String, &F)> {
        let asked = std::mem::take(&mut self.asked);
        asked.into_iter().filter_map(|(key, about)| Some((about, self.found.get(&key)?)))
    }

    /// Returns the result of a job.
    pub(crate) fn get(&self, key: &str) -> Option<&F> {
        self.found.get(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn job<'a>(key: &str, ran: &'a AtomicUsize, found: Option<u32>) -> PoolJob<'a, u32> {
        let run = move || {
            ran.fetch_add(1, Ordering::Relaxed);
            found.ok_or_else(|| Error::Recovery("none".into()))
        };
        PoolJob { key: key.into(), about: key.into(), run: Box::new(run) }
    }

    #[test]
    fn each_key_runs_once_and_the_first_failure_is_told() {
        let (ran, mut pool) = (AtomicUsize::new(0), JobPool::default());
        pool.run(
            vec![job("a", &ran, Some(1)), job("b", &ran, Some(2)), job("a", &ran, Some(3))],
            &mut |_| {},
        )
        .unwrap();
        pool.run(vec![job("b", &ran, Some(4))], &mut |_| {}).unwrap();
        assert_eq!((ran.into_inner(), pool.get("a"), pool.get("b")), (2, Some(&1), Some(&2)));
        let ran = AtomicUsize::new(0);
        assert!(pool.run(vec![job("c", &ran, None)], &mut |_| {}).is_err());
        assert_eq!(pool.get("c"), None);
    }
}
