//! The cases that find planted bugs, in a file beside each test.
//!
//! A search for a bug runs workloads until one of them shows it, and its length is what the draw of the workloads
//! makes it. A test therefore records the case that found a bug, and tries that case first. If the case no longer
//! finds the bug, because the code before the bug has changed, the test searches again.

#![expect(clippy::panic, clippy::print_stdout, reason = "code of tests, which print and fail by panics")]

use super::{PlantedBug, set};
use crate::files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The first line of a file.
const HEADER: &str = "bug,case,found_by,searched";
/// A test fails if it had to search for more than this share of its bugs: one in four. Searches take most of the
/// time of such a test.
const SEARCHED_MOST: usize = 4;

/// A case that finds a bug.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Find {
    /// Name of the case, in words of the test, without commas.
    pub case: String,
    /// Name of the check that found the bug.
    pub found_by: String,
    /// Number of cases that a search tried until it found the bug.
    pub searched: u32,
}

/// The cases of one test.
pub struct Found {
    path: PathBuf,
    recorded: BTreeMap<String, Find>,
    now: Mutex<BTreeMap<String, Find>>,
    missed: Mutex<Vec<String>>,
}

impl Found {
    /// Reads the file of a test. All bugs are searched for if the variable `RECORD` is set.
    ///
    /// # Panics
    ///
    /// If a line is not of four fields.
    #[must_use]
    pub fn of(path: impl AsRef<Path>) -> Found {
        let path = path.as_ref().to_owned();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        Found::parsed(path, &text)
    }

    fn parsed(path: PathBuf, text: &str) -> Found {
        let find = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            let [bug, case, found_by, searched] = fields[..] else { panic!("{}: '{line}'", path.display()) };
            let searched = searched.parse().unwrap_or_else(|_| panic!("{}: '{line}'", path.display()));
            (bug.to_owned(), Find { case: case.to_owned(), found_by: found_by.to_owned(), searched })
        };
        let recorded = text.lines().skip(1).map(find).collect();
        Found { path, recorded, now: Mutex::default(), missed: Mutex::default() }
    }

    /// Returns the recorded case of a bug, or `None` if it has to be searched for.
    #[must_use]
    pub fn recorded(&self, bug: &str) -> Option<&Find> {
        self.recorded.get(bug).filter(|_| !is_recording())
    }

    /// Notes the case that found a bug, or that none did.
    pub fn note(&self, bug: &str, find: Option<Find>) {
        println!("{bug}: {find:?}");
        match find {
            Some(find) => {
                self.now.lock().unwrap_or_else(PoisonError::into_inner).insert(bug.to_owned(), find);
            }
            None => self.missed.lock().unwrap_or_else(PoisonError::into_inner).push(bug.to_owned()),
        }
    }

    /// Plants a bug in this thread and tries cases, the recorded one first, until one finds it. Notes the result.
    ///
    /// `cases` are all cases with their names, in the order of a search. `finds` tries a case, and returns the name of
    /// the check that found something.
    ///
    /// # Panics
    ///
    /// If the case also finds something without the bug.
    pub fn search<C>(
        &self,
        bug: impl PlantedBug,
        cases: impl IntoIterator<Item = (String, C)>,
        finds: impl Fn(&C) -> Option<&'static str>,
    ) {
        let cases: Vec<_> = cases.into_iter().collect();
        let tried = |(name, case): &(String, C)| {
            set(Some(bug.id()));
            let found = finds(case);
            set(None);
            let found_by = found?;
            assert_eq!(finds(case), None, "{name} without {}", bug.name());
            Some(Find { case: name.clone(), found_by: found_by.to_owned(), searched: 0 })
        };
        let recorded = self.recorded(bug.name()).and_then(|known| {
            let case = cases.iter().find(|(name, _)| *name == known.case)?;
            Some(Find { searched: known.searched, ..tried(case)? })
        });
        let search =
            || cases.iter().zip(1..).find_map(|(case, searched)| Some(Find { searched, ..tried(case)? }));
        self.note(bug.name(), recorded.or_else(search));
    }

    /// Checks that no bug was missed, in a test of a part of the bugs.
    ///
    /// # Panics
    ///
    /// If a bug was missed.
    pub fn check(&self) {
        let missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(missed.is_empty(), "not found: {missed:?}");
    }

    /// Ends the test. Writes the file if the variable `RECORD` is set.
    ///
    /// # Panics
    ///
    /// If a bug was missed, if the bugs are not those of the file, or if many of its cases no longer find theirs.
    pub fn finish(self) {
        self.check();
        let now = self.now.into_inner().unwrap_or_else(PoisonError::into_inner);
        if is_recording() {
            let row =
                |(bug, f): (&String, &Find)| format!("{bug},{},{},{}\n", f.case, f.found_by, f.searched);
            let rows: String = now.iter().map(row).collect();
            let text = format!("{HEADER}\n{rows}");
            files::write(&self.path, text.as_bytes())
                .unwrap_or_else(|e| panic!("{}: {e}", self.path.display()));
            return;
        }
        let gone: Vec<_> = self.recorded.keys().filter(|bug| !now.contains_key(*bug)).collect();
        let searched: Vec<_> =
            now.iter().filter(|(bug, find)| self.recorded.get(*bug) != Some(*find)).map(|(b, _)| b).collect();
        let remedy = format!("write {} again: run this test with RECORD=1", self.path.display());
        assert!(
            gone.is_empty(),
            "bugs of the file that this test did not find: {gone:?}; if meant, {remedy}"
        );
        assert!(
            searched.len() * SEARCHED_MOST <= now.len(),
            "the recorded cases of {} of {} bugs do not find them any more: {searched:?}; {remedy}",
            searched.len(),
            now.len()
        );
    }
}

fn is_recording() -> bool {
    std::env::var_os("RECORD").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Bug;

    impl From<Bug> for &'static str {
        fn from(_: Bug) -> Self {
            "bug"
        }
    }

    impl PlantedBug for Bug {
        const GROUP: crate::planted::Group = crate::planted::Group::Media;

        fn discriminant(self) -> u16 {
            u16::MAX
        }
    }

    fn recorded(rows: &str) -> Found {
        Found::parsed("recorded.csv".into(), &format!("{HEADER}\n{rows}"))
    }

    fn cases() -> impl Iterator<Item = (String, u32)> {
        (0..5).map(|n| (format!("case {n}"), n))
    }

    /// Returns the cases that were tried with the bug, when those from 2 on find it.
    fn tried(found: &Found) -> Vec<u32> {
        let tried = std::cell::RefCell::new(Vec::new());
        found.search(Bug, cases(), |case| {
            let is_there = crate::planted::current().is_some();
            is_there.then(|| tried.borrow_mut().push(*case));
            (is_there && *case >= 2).then_some("check")
        });
        tried.into_inner()
    }

    #[test]
    fn a_recorded_case_is_tried_first_and_alone() {
        let found = recorded("bug,case 4,check,9\n");
        assert_eq!(tried(&found), [4]);
        found.finish();
    }

    #[test]
    #[should_panic(expected = "do not find them any more")]
    fn bugs_that_are_searched_for_are_told() {
        let found = recorded("bug,case 1,check,1\n");
        assert_eq!(tried(&found), [1, 0, 1, 2]);
        found.finish();
    }

    #[test]
    #[should_panic(expected = "not found")]
    fn a_bug_that_no_case_finds_is_missed() {
        let found = recorded("bug,case 1,check,1\n");
        found.search(Bug, cases(), |_| None);
        found.finish();
    }

    #[test]
    #[should_panic(expected = "did not find")]
    fn a_recorded_bug_that_is_left_out_is_told() {
        let found = recorded("bug,case 4,check,9\nother,case 4,check,9\n");
        tried(&found);
        found.finish();
    }

    #[test]
    #[should_panic(expected = "without bug")]
    fn a_case_that_also_finds_something_without_the_bug_is_no_find() {
        recorded("").search(Bug, cases(), |_| Some("check"));
    }
}
