//! Workloads under power cuts: each is recorded once, cut at every command, and cut again during
//! recovery.

use crate::block::case::{TortureCase, TortureMode};
use crate::block::crash_image::{ImageBuilder, first_uncertain};
use crate::block::cut::{Cut, CutOptions, PersistedWords, choose_cuts};
use crate::block::graph::Graph;
use crate::block::medium::SharedMedium;
use crate::block::oracle::{ExamineOptions, describe_difference, examine, recover_and_read};
use crate::block::recording::{RecordedRun, RecordingSession, record_recovery};
use crate::block::violation::{Oracle, Violation};
use crate::block::work_item::{WorkItem, copy, guarded};
use crate::block::workload::{ClientRequest, WorkloadMix, fill_requests};
use frit_core::CrashKind;
use frit_core::split_mix::mix;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashSet;

/// Number of epochs of a workload. Each later epoch starts from a crash of the one before.
const EPOCHS: u32 = 2;
/// Largest number of cuts of a workload.
const CUTS: usize = 2_000;
/// Largest number of cuts of one recovery.
const NESTED: usize = 40;

impl WorkItem<'_> {
    /// Runs the workload and its power cuts.
    pub(crate) fn cuts(&mut self) {
        let mut session = match guarded(|| self.prepared()) {
            Ok(s) => s,
            Err(v) => return self.found(self.case.clone(), v),
        };
        let last =
            if self.case.cut.is_some() || !self.case.keep.is_empty() { self.case.epoch } else { EPOCHS - 1 };
        for epoch in 0..=last {
            let requests = self.requests(epoch, session.blocks);
            let (run, stores) = match guarded(|| session.record(&requests)) {
                Ok(r) => r,
                Err(v) => return self.found(TortureCase { epoch, cut: None, ..self.case.clone() }, v),
            };
            self.tally.requests += requests.len() as u64;
            self.tally.commands += run.commands;
            let wanted = (self.case.cut.is_none() && self.case.keep.is_empty()) || epoch == self.case.epoch;
            if wanted {
                self.epoch(&run, &requests, &stores, epoch);
            }
            if epoch == last || self.done() {
                break;
            }
            match guarded(|| self.next(&run, stores, epoch)) {
                Ok(s) => session = s,
                Err(v) => return self.found(self.case.at(epoch + 1, 0), v),
            }
        }
    }

    /// Creates a session over a volume that is unused, filled once, or used for a while.
    fn prepared(&self) -> Result<RecordingSession<'_>, Violation> {
        let mut rng = SmallRng::seed_from_u64(self.seed(1));
        let mut session = RecordingSession::new(self.target, false, self.options.mutation)?;
        if self.case.mode == TortureMode::Wear {
            session.tolerate_read_only();
        }
        let mut before = Vec::new();
        let used = rng.random_range(0..4u8);
        if used >= 1 {
            before.extend(fill_requests(session.blocks));
        }
        if used >= 2 {
            let requests = rng.random_range(10..150);
            let mix = WorkloadMix { requests, clients: 1, hot_blocks: 8, most_sectors: 16, discards: 30 };
            before.extend(mix.requests(&mut rng, session.blocks));
        }
        session.prepare(&before)?;
        if rng.random_bool(0.5) {
            session.restart()?;
        }
        Ok(session)
    }

    /// Continues from a crash of this epoch.
    fn next<'s>(
        &'s self,
        run: &RecordedRun,
        stores: Vec<SharedMedium>,
        epoch: u32,
    ) -> Result<RecordingSession<'s>, Violation> {
        let mut rng = SmallRng::seed_from_u64(self.seed(200 + u64::from(epoch)));
        let cuts = choose_cuts(&run.graph, rng.random(), CutOptions { most: 400, exhaustive: false });
        let cut = &cuts[rng.random_range(0..cuts.len())];
        // The base of the media may have advanced by now, so the epochs are run again from blank
        // media.
        let fresh = self.replayed(epoch)?;
        ImageBuilder::new(&run.graph, &fresh, self.tearing()).apply(cut, 0);
        drop(stores);
        // New versions start well above those of the run, so that none repeats.
        let before = (run.history.clone(), run.lasting(&cut.set));
        let version = run.version + 1000;
        let mut s = RecordingSession::resume(self.target, fresh, version, before, self.options.mutation)?;
        if self.case.mode == TortureMode::Wear {
            s.tolerate_read_only();
        }
        Ok(s)
    }

    /// Returns the media with their contents before an epoch.
    fn replayed(&self, epoch: u32) -> Result<Vec<SharedMedium>, Violation> {
        let mut session = self.prepared()?;
        for e in 0..=epoch {
            let requests = self.requests(e, session.blocks);
            let (run, stores) = session.record(&requests)?;
            if e == epoch {
                for s in &stores {
                    s.lock().undo();
                }
                return Ok(stores);
            }
            session = self.next(&run, stores, e)?;
        }
        Ok(Vec::new())
    }

    /// Examines all cuts of a recorded run.
    fn epoch(&mut self, run: &RecordedRun, requests: &[ClientRequest], stores: &[SharedMedium], epoch: u32) {
        let most = self.options.cuts_most.unwrap_or(CUTS);
        let cutting = CutOptions { most, exhaustive: self.case.mode == TortureMode::Exhaustive };
        let cuts = choose_cuts(&run.graph, self.seed(300 + u64::from(epoch)), cutting);
        self.tally.cuts += cuts.len() as u64;
        // The applier's base only advances, so the cuts are sorted by their first open command.
        let mut order: Vec<(usize, usize)> =
            cuts.iter().enumerate().map(|(i, c)| (first_uncertain(&run.graph, c), i)).collect();
        order.sort_unstable();
        let mut applier = ImageBuilder::new(&run.graph, stores, self.tearing());
        let mut seen = HashSet::new();
        let every = self.options.nested_every.max(1) as usize;
        for (open, i) in order {
            let case = self.case.at(epoch, i as u32);
            if self.case.cut.is_some_and(|c| c != i as u32) {
                continue;
            }
            let lasted = run.lasting(&cuts[i].set);
            let hash = applier.apply(&cuts[i], open);
            // Equal images with equal acknowledgements have equal results.
            if !seen.insert(mix(hash ^ lasted.hash())) {
                self.tally.repeated += 1;
                continue;
            }
            let depth = self.depth(i);
            let state = guarded(|| examine(self.target, stores, &run.history, &lasted, depth));
            let nested = i % every == 0 || !self.case.nested.is_empty();
            match state {
                Ok(s) => {
                    let versions = s.versions.clone();
                    self.tally.image(&s);
                    if nested {
                        // The examination recovered the image; it is built again for the recording
                        // of its recovery.
                        applier.apply(&cuts[i], open);
                        let wanted = self.case.nested.clone();
                        self.nested(&case, stores, &versions, 1, &wanted);
                    }
                }
                Err(v) => {
                    self.found(case, describe(&v, &run.graph, &cuts[i]));
                    if let (Some(f), true) = (self.tally.found.last_mut(), self.options.explain) {
                        f.requests = explain(run, requests, &cuts[i]);
                    }
                }
            }
            if self.done() {
                return;
            }
        }
    }

    fn depth(&self, i: usize) -> ExamineOptions {
        let alive = self.options.alive_every.max(1) as usize;
        let worn = self.case.mode == TortureMode::Wear;
        ExamineOptions {
            twice: true,
            alive: i.is_multiple_of(alive),
            worn,
            stop: CrashKind::Process,
            seed: self.seed(i as u64),
        }
    }

    /// Cuts the recovery of an image at every operation, and compares the contents after a second
    /// recovery.
    fn nested(
        &mut self,
        case: &TortureCase,
        stores: &[SharedMedium],
        want: &[crate::block::self_describing::Versions],
        depth: u32,
        only: &[u32],
    ) {
        let copies = copy(stores, self.target);
        let graph = match guarded(|| record_recovery(self.target, &copies, CrashKind::Process)) {
            Ok(g) => g,
            Err(v) => return self.found(case.clone(), v),
        };
        if graph.is_empty() {
            return;
        }
        let seed = self.seed(mix(400 + u64::from(depth)) ^ u64::from(case.cut.unwrap_or(0)));
        let most = if depth == 1 { NESTED } else { 6 };
        let cuts = nested_cuts(&graph, seed, most);
        for (i, cut) in cuts.iter().enumerate() {
            if only.first().is_some_and(|&o| o != i as u32) {
                continue;
            }
            let case = case.inner(i as u32);
            let mut applier = ImageBuilder::new(&graph, &copies, self.tearing());
            applier.apply(cut, 0);
            self.tally.nested += 1;
            match guarded(|| recover_and_read(self.target, &copies, want.len(), CrashKind::Process)) {
                Ok(up) if up.seen.versions == want => self.tally.image(&up.seen),
                Ok(up) => {
                    let what = describe_difference(want, &up.seen.versions);
                    self.found(case, Violation::new(Oracle::Converges, what));
                    return;
                }
                Err(v) => {
                    let what = format!("after a recovery that was cut off: {}", v.what);
                    self.found(case, Violation { what, ..v });
                    return;
                }
            }
            if depth == 1 && (i % 8 == 3 || only.len() > 1) {
                applier.apply(cut, 0);
                self.nested(&case, &copies, want, 2, only.get(1..).unwrap_or_default());
                for s in &copies {
                    s.lock().undo();
                }
            }
        }
    }
}

/// Describes the commands around a cut and the state of each.
fn explain(run: &RecordedRun, requests: &[ClientRequest], cut: &Cut) -> Vec<String> {
    let graph = &run.graph;
    let open = first_uncertain(graph, cut);
    let last = (0..graph.len()).rev().find(|&n| cut.set.has(n)).unwrap_or(0).max(open);
    let mut lines: Vec<String> = requests
        .iter()
        .enumerate()
        .map(|(i, r)| {
            let acked = graph.is_acknowledged(i, &cut.set);
            format!("request {i}: {r}{}", if acked { ", acknowledged" } else { "" })
        })
        .collect();
    for n in open.saturating_sub(12)..(last + 6).min(graph.len()) {
        let node = &graph.nodes[n];
        let state = match cut.torn.iter().find(|t| t.0 as usize == n) {
            Some((_, t)) => format!("torn: {t:?}"),
            None if graph.is_certain(n, &cut.set) => "done".into(),
            None if cut.set.has(n) => "done, not fenced".into(),
            None if node.before.within(&cut.set) => "might begin".into(),
            None => "not begun".into(),
        };
        let bytes: u32 = node.pieces.iter().map(|p| p.len).sum();
        lines.push(format!(
            "command {n}: {:?} {:?} at {} unit {}, {bytes} bytes: {state}",
            node.effect, node.cause, node.addr, node.unit
        ));
    }
    lines
}

/// Returns the violation with a description of the cut.
fn describe(v: &Violation, graph: &Graph, cut: &Cut) -> Violation {
    let done = cut.set.len();
    let missing = (0..graph.len()).rev().find(|&n| cut.set.has(n)).map_or(0, |last| last + 1 - done);
    let torn: Vec<String> = cut
        .torn
        .iter()
        .map(|&(n, t)| {
            format!("{:?} at {} {t:?}", graph.nodes[n as usize].effect, graph.nodes[n as usize].addr)
        })
        .collect();
    let what = format!(
        "{} [cut: {done} of {} commands, {missing} before the last missing; torn: {}; words: {:?}]",
        v.what,
        graph.len(),
        if torn.is_empty() { "none".into() } else { torn.join(", ") },
        cut.words
    );
    Violation { oracle: v.oracle, what }
}

/// Chooses the cuts of a recovery: at every operation, and some others.
fn nested_cuts(graph: &Graph, seed: u64, most: usize) -> Vec<Cut> {
    let mut cuts = choose_cuts(graph, seed, CutOptions { most: most * 4, exhaustive: false });
    let mut rng = SmallRng::seed_from_u64(seed);
    while cuts.len() > most {
        // The first quarter of the list stays: its cuts follow the recorded order, and matter most.
        let from = cuts.len() / 4;
        let i = rng.random_range(from..cuts.len());
        cuts.swap_remove(i);
    }
    if cuts.is_empty() {
        let set = crate::block::command_set::CommandSet::new(graph.len());
        cuts.push(Cut { set, torn: Vec::new(), words: PersistedWords::None, seed });
    }
    cuts
}
