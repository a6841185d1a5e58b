//! The detector is proved: bugs are planted, and each is found. The table says by what, and after how
//! many workloads ("seeds").
//!
//! The first kind needs no help: edges, fences and acknowledgements are deleted in the sink. The second
//! are hooks in the layer and the media, behind the feature `planted`.

mod common;

use frit_core::planted::{self, Bug};
use frit_torture::campaign::{Options, run};
use frit_torture::case::Mode;
use frit_torture::oracle::Oracle;
use frit_torture::subject::StackSubject;
use frit_torture::tape::{Class, Mutation};
use std::time::Instant;
use strum::IntoEnumIterator;

/// Workloads that are tried in each mode before a bug counts as missed.
const MOST: u32 = 40;

/// What found a bug: the oracle, the mode, and workloads needed.
struct Catch {
    oracle: Oracle,
    mode: Mode,
    stack: &'static str,
    workloads: u32,
}

fn hunt(
    subjects: &[(&'static str, StackSubject)],
    modes: &[Mode],
    mutation: Option<Mutation>,
) -> Option<Catch> {
    let mut workloads = 0;
    let mut items = 1;
    while items <= MOST {
        for &mode in modes {
            for (stack, subject) in subjects {
                let options = Options {
                    seed: u64::from(items),
                    modes: vec![mode],
                    items: Some(items),
                    cuts_most: Some(700),
                    first_only: true,
                    mutation,
                    ..Options::default()
                };
                let r = run(subject, &options, &|_| {});
                workloads += r.workloads;
                if let Some(f) = r.violations.first() {
                    return Some(Catch { oracle: f.violation.oracle, mode, stack, workloads });
                }
            }
        }
        items *= 3;
    }
    None
}

fn row(name: &str, caught: Option<&Catch>, seconds: f64) {
    match caught {
        Some(c) => {
            let (oracle, mode): (&str, &str) = (c.oracle.into(), c.mode.into());
            println!(
                "| {name:<34} | {oracle:<10} | {mode:<10} | {:<9} | {:>4} | {seconds:>5.1} s |",
                c.stack, c.workloads
            );
        }
        None => println!("| {name:<34} | MISSED     |            |           |      | {seconds:>5.1} s |"),
    }
}

fn mutations() -> Vec<(String, Mutation)> {
    let mut all: Vec<(String, Mutation)> = vec![
        ("no fences at all".into(), Mutation::DropFences),
        ("every third fence left out".into(), Mutation::DropEvery(3)),
        ("acknowledged at once".into(), Mutation::AckAtOnce),
        ("acknowledged before metadata".into(), Mutation::AckBeforeMeta),
        ("FUA ignored".into(), Mutation::IgnoreFua),
    ];
    for class in Class::iter() {
        let name: &str = class.into();
        all.push((format!("no `after` of {name}"), Mutation::DropAfter(class)));
        // Data is followed by its descriptor, and erases by nothing: no fence stands right behind either.
        if !matches!(class, Class::Erase | Class::PcmData) {
            all.push((format!("no fence behind {name}"), Mutation::DropFence(class)));
        }
    }
    all
}

/// Where a bug shows, when not under power cuts.
fn modes_of(bug: Bug) -> &'static [Mode] {
    match bug {
        Bug::FlushIgnored
        | Bug::FlushOneMedium
        | Bug::FlushMapFirst
        | Bug::EraseBeforeFlush
        | Bug::ReuseBeforeFlush
        | Bug::FlushedMapIgnored => &[Mode::Files],
        Bug::EntryCheckIgnored
        | Bug::DescCheckIgnored
        | Bug::NandDataUnchecked
        | Bug::PcmDataUnchecked
        | Bug::OwnerUnchecked
        | Bug::AdoptAnyVersion
        | Bug::StaleEntryUnseen => &[Mode::Damage],
        Bug::ProgramFailureIgnored => &[Mode::Wear],
        Bug::NotPoisoned => &[Mode::Errors],
        _ => &[Mode::Cuts],
    }
}

#[test]
fn every_planted_bug_is_found() {
    // Planted bugs may make the layer panic, which is one way to be found.
    std::panic::set_hook(Box::new(|_| {}));
    let subjects = ["both-4k", "level-2k", "none-4k"].map(|name| (name, common::subject(name)));
    println!("| planted                            | found by   | mode       | stack     | seeds | time  |");
    println!("|---|---|---|---|---|---|");
    let only = std::env::var("BUG").ok();
    let mut missed = Vec::new();
    let mut planted_bugs = 0;
    for (name, m) in mutations() {
        if only.is_some() {
            break;
        }
        let modes: &[Mode] = if m == Mutation::IgnoreFua { &[Mode::Files] } else { &[Mode::Cuts] };
        let begun = Instant::now();
        let caught = hunt(&subjects, modes, Some(m));
        row(&name, caught.as_ref(), begun.elapsed().as_secs_f64());
        planted_bugs += 1;
        missed.extend(caught.is_none().then_some(name));
    }
    for bug in Bug::iter() {
        let name: &str = bug.into();
        if only.as_deref().is_some_and(|o| o != name) {
            continue;
        }
        planted::set(Some(bug));
        let begun = Instant::now();
        let caught = hunt(&subjects, modes_of(bug), None);
        planted::set(None);
        row(name, caught.as_ref(), begun.elapsed().as_secs_f64());
        planted_bugs += 1;
        missed.extend(caught.is_none().then(|| name.to_string()));
    }
    println!("{planted_bugs} planted, {} missed: {missed:?}", missed.len());
    assert!(only.is_some() || planted_bugs >= 20);
    assert!(missed.is_empty(), "not found: {missed:?}");
}
