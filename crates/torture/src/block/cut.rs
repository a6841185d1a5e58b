//! Power cuts of a recorded run.
//!
//! A cut is a down-closed set of commands (it contains all predecessors of each of its commands)
//! and a torn frontier: commands that had begun. The words of PCM that persist, of those that no
//! fence made certain, are a separate choice.

use crate::block::command_set::CommandSet;
use crate::block::graph::{Effect, Graph};
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::collections::HashSet;

/// State of a NAND command that a power cut interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TornState {
    /// A program: the page and its spare area read as garbage.
    Unreadable,
    /// A program: some data bits are wrong.
    Flipped,
    /// A program: the page looks erased, and spoils data that is programmed over it.
    LooksErased,
    /// An erase: the pages are weak, but most contents are unchanged.
    Weak,
    /// An erase: some pages look erased, others read as garbage.
    Part,
    /// An erase: all pages look erased, and spoil data that is programmed before the next erase.
    AllLookErased,
}

impl TornState {
    /// Returns `true` for the states of an interrupted program.
    pub(crate) fn is_of_program(self) -> bool {
        PROGRAM.contains(&self)
    }
}

const PROGRAM: [TornState; 3] = [TornState::Unreadable, TornState::Flipped, TornState::LooksErased];
const ERASE: [TornState; 3] = [TornState::Weak, TornState::Part, TornState::AllLookErased];

/// Selection of the PCM words that persist, of those that no fence made certain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PersistedWords {
    /// No word.
    None,
    /// Every word.
    All,
    /// Each word with this chance in 256.
    Some(u8),
    /// A single word.
    One(u32),
    /// Every word except one.
    AllBut(u32),
    /// The first 64 words as the bits say; none of the others.
    Mask(u64),
}

/// State that a power cut leaves.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cut {
    /// Commands that are complete.
    pub set: CommandSet,
    /// NAND commands that had begun, and the state of each.
    pub torn: Vec<(u32, TornState)>,
    /// PCM words that persist.
    pub words: PersistedWords,
    /// Seed of the remaining random choices.
    pub seed: u64,
}

/// Parameters for choosing cuts.
#[derive(Clone, Copy, Debug)]
pub struct CutOptions {
    /// Largest number of cuts of a workload.
    pub most: usize,
    /// Take all down-closed sets, as long as they are few enough; otherwise take samples.
    pub exhaustive: bool,
}

struct Chooser<'a> {
    graph: &'a Graph,
    rng: SmallRng,
    cuts: Vec<Cut>,
    seen: HashSet<Cut>,
    most: usize,
}

/// Chooses the cuts of a recorded run. Equal graphs and seeds give equal cuts.
#[must_use]
pub fn choose_cuts(graph: &Graph, seed: u64, cutting: CutOptions) -> Vec<Cut> {
    let rng = SmallRng::seed_from_u64(seed);
    let mut c = Chooser { graph, rng, cuts: Vec::new(), seen: HashSet::new(), most: cutting.most };
    if cutting.exhaustive {
        c.exhaustive();
    } else {
        // Cumulative share of each method, in percent. A share that a method does not use goes to
        // the methods after it.
        c.most = cutting.most * 30 / 100;
        c.in_order();
        c.most = cutting.most * 50 / 100;
        c.minimal();
        c.most = cutting.most * 85 / 100;
        c.late();
        c.most = cutting.most;
        c.random_orders();
    }
    c.cuts
}

impl Chooser<'_> {
    fn full(&self) -> bool {
        self.cuts.len() >= self.most
    }

    fn add(&mut self, set: &CommandSet, torn: Vec<(u32, TornState)>, words: PersistedWords) {
        // Cuts are compared without their seed, so that a duplicate draws no random number.
        let cut = Cut { set: set.clone(), torn, words, seed: 0 };
        if !self.full() && self.seen.insert(cut.clone()) {
            let seed = self.rng.random();
            self.cuts.push(Cut { seed, ..cut });
        }
    }

    /// Returns the sets of torn NAND commands to try: each command of the frontier alone, in each
    /// way.
    fn torn_alone(&self, set: &CommandSet) -> Vec<(u32, TornState)> {
        self.graph
            .frontier(set)
            .into_iter()
            .flat_map(|n| kinds(self.graph.nodes[n].effect).iter().map(move |&k| (n as u32, k)))
            .collect()
    }

    fn torn_random(&mut self, set: &CommandSet) -> Vec<(u32, TornState)> {
        let mut torn: Vec<(u32, TornState)> = Vec::new();
        for n in self.graph.frontier(set) {
            let node = &self.graph.nodes[n];
            let kinds = kinds(node.effect);
            // A unit executes one command at a time, so at most one command of a unit is torn.
            let busy = torn.iter().any(|&(t, _)| self.graph.nodes[t as usize].unit == node.unit);
            if let Some(&kind) = kinds.choose(&mut self.rng).filter(|_| !busy)
                && self.rng.random_bool(0.6)
            {
                torn.push((n as u32, kind));
            }
        }
        torn
    }

    /// Returns `true` if the set has writes that a cut may tear.
    fn has_uncertain(&self, set: &CommandSet) -> bool {
        self.uncertain(set).next().is_some()
    }

    fn uncertain<'s>(&'s self, set: &'s CommandSet) -> impl Iterator<Item = usize> + 's {
        let g = self.graph;
        (0..g.len()).filter(move |&n| {
            g.nodes[n].effect == Effect::Write && !g.is_certain(n, set) && g.nodes[n].before.within(set)
        })
    }

    fn uncertain_words(&self, set: &CommandSet) -> u64 {
        let of = |n: usize| {
            let node = &self.graph.nodes[n];
            node.pieces.iter().map(|p| words_of(p.at, p.len, node.word_bytes)).sum::<u64>()
        };
        self.uncertain(set).map(of).sum()
    }

    fn some_words(&mut self) -> PersistedWords {
        match self.rng.random_range(0..6u8) {
            0 => PersistedWords::None,
            1 => PersistedWords::All,
            2 => PersistedWords::One(self.rng.random_range(0..64)),
            3 => PersistedWords::AllBut(self.rng.random_range(0..64)),
            _ => PersistedWords::Some(self.rng.random_range(16..240)),
        }
    }

    fn with_words(&mut self, set: &CommandSet, torn: &[(u32, TornState)], samples: u32) {
        if !self.has_uncertain(set) {
            self.add(set, torn.to_vec(), PersistedWords::None);
            return;
        }
        self.add(set, torn.to_vec(), PersistedWords::None);
        self.add(set, torn.to_vec(), PersistedWords::All);
        for _ in 0..samples {
            let words = self.some_words();
            self.add(set, torn.to_vec(), words);
        }
    }

    /// Returns the numbers below `n` in random order, so that a limited number of cuts covers the
    /// whole run.
    fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        all.shuffle(&mut self.rng);
        all
    }

    /// Cuts the run in its recorded order at every command, with the next command torn in every
    /// way.
    fn in_order(&mut self) {
        for upto in self.shuffled(self.graph.len() + 1) {
            if self.full() {
                return;
            }
            let set = CommandSet::below(self.graph.len(), upto);
            self.with_words(&set, &[], 3);
            let next: Vec<_> =
                self.torn_alone(&set).into_iter().filter(|&(n, _)| n as usize == upto).collect();
            for t in next {
                let words = self.some_words();
                self.add(&set, vec![t], words);
            }
        }
    }

    /// Cuts with the smallest set that an acknowledgement, or a command, needs.
    fn minimal(&mut self) {
        for r in self.shuffled(self.graph.acks.len()) {
            let set = self.graph.closure_of(&self.graph.acks[r].clone());
            self.with_words(&set, &[], 1);
            for t in self.torn_alone(&set) {
                self.add(&set, vec![t], PersistedWords::None);
            }
        }
        for n in self.shuffled(self.graph.len()) {
            if self.full() {
                return;
            }
            let set = self.graph.nodes[n].before.clone();
            let kinds = kinds(self.graph.nodes[n].effect);
            for &k in kinds {
                self.add(&set, vec![(n as u32, k)], PersistedWords::None);
            }
            let set = self.graph.closure(n);
            self.with_words(&set, &[], u32::from(kinds.is_empty()));
        }
    }

    /// Cuts in which one command is late: every command that does not depend on it is complete.
    fn late(&mut self) {
        let n = self.graph.len();
        for late in self.shuffled(n) {
            if self.full() {
                return;
            }
            // Commands up to 8, up to 40 and all after the late one are complete.
            for reach in [8, 40, n] {
                let mut set = CommandSet::below(n, (late + reach).min(n));
                set.remove_all(&self.graph.needed_by[late]);
                set.remove(late);
                let words = if reach == 8 { PersistedWords::None } else { self.some_words() };
                let torn = if reach == 8 { Vec::new() } else { self.torn_random(&set) };
                self.add(&set, torn, words);
            }
        }
    }

    /// Cuts random linear extensions at random places, until there are enough cuts.
    fn random_orders(&mut self) {
        let n = self.graph.len();
        let mut dry = 0;
        // A small graph has few distinct cuts: 64 rounds in a row without a new one end the search.
        while !self.full() && n > 0 && dry < 64 {
            let before = self.cuts.len();
            let mut set = CommandSet::below(n, self.rng.random_range(0..n));
            for _ in 0..self.rng.random_range(1..40) {
                let ready = self.graph.frontier(&set);
                let Some(&next) = ready.choose(&mut self.rng) else { break };
                set.add(next);
                if self.rng.random_bool(0.2) {
                    let (torn, words) = (self.torn_random(&set), self.some_words());
                    self.add(&set, torn, words);
                }
            }
            dry = if self.cuts.len() == before { dry + 1 } else { 0 };
        }
    }

    /// Takes every down-closed set, with every frontier command torn in every way, and every subset
    /// of up to six words.
    fn exhaustive(&mut self) {
        let n = self.graph.len();
        // Visits the lattice of down-closed sets depth first; `seen` keeps a set from being visited
        // twice.
        let mut seen: HashSet<CommandSet> = HashSet::new();
        let mut todo = vec![CommandSet::new(n)];
        while let Some(set) = todo.pop() {
            if self.full() {
                return;
            }
            let words = self.uncertain_words(&set);
            let masks = 1u64 << words.min(6);
            for mask in 0..masks {
                self.add(&set, Vec::new(), PersistedWords::Mask(mask));
            }
            if words > 6 {
                self.with_words(&set, &[], 8);
            }
            for t in self.torn_alone(&set) {
                let words = self.some_words();
                self.add(&set, vec![t], words);
            }
            for next in self.graph.frontier(&set) {
                let mut bigger = set.clone();
                bigger.add(next);
                if seen.insert(bigger.clone()) {
                    todo.push(bigger);
                }
            }
        }
    }
}

fn kinds(effect: Effect) -> &'static [TornState] {
    match effect {
        Effect::Program => &PROGRAM,
        Effect::Erase => &ERASE,
        Effect::Write | Effect::Fence => &[],
    }
}

/// Returns the number of aligned words that a range touches.
#[must_use]
pub fn words_of(at: u64, len: u32, word: u64) -> u64 {
    (at + u64::from(len)).div_ceil(word) - at / word
}
