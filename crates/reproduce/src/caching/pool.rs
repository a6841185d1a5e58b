//! Runs cells, each once, on all processors.

use super::cell::{Cell, Found};
use crate::Result;
use crate::sweep::Input;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What was found, by workload and cell.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    found: BTreeMap<String, Found>,
}

/// A cell with its workload, by name.
pub(crate) type Job<'a> = (&'a str, &'a Input, Cell);

fn key(name: &str, cell: &Cell) -> String {
    format!("{name} {cell:?}")
}

impl Cells {
    /// Runs what was not run yet. `note` is told of each as it is taken up.
    ///
    /// # Errors
    /// The first that failed, in the order of the jobs.
    pub(crate) fn run(&mut self, jobs: &[Job<'_>], note: &mut dyn FnMut(&str)) -> Result<()> {
        let mut new: Vec<(String, &Job<'_>)> = Vec::new();
        for job in jobs {
            let key = key(job.0, &job.2);
            if !self.found.contains_key(&key) && new.iter().all(|(k, _)| *k != key) {
                new.push((key, job));
            }
        }
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(new.len());
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..workers {
                let (tell, next, done, new) = (tell.clone(), &next, &done, &new);
                scope.spawn(move || {
                    while let Some((key, job)) = new.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // Nobody listens any more only when the whole program ends.
                        tell.send(format!("{}, {}", job.0, job.2.set.join(" "))).ok();
                        let found = job.2.run(job.1);
                        done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((key, found));
                    }
                });
            }
            drop(tell);
            for what in told {
                note(&what);
            }
        });
        let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        done.sort_by_key(|(key, _)| new.iter().position(|(k, _)| k == *key));
        for (key, found) in done {
            self.found.insert(key.clone(), found?);
        }
        Ok(())
    }

    /// What a cell found.
    pub(crate) fn get(&self, name: &str, cell: &Cell) -> Option<&Found> {
        self.found.get(&key(name, cell))
    }
}
