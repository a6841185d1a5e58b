//! A disk behind a cache in PCM: every mode, every policy, every leveler.

#![allow(clippy::print_stdout)]

mod common;

use common::{complain, subject};
use frit_layer::cache::policy::Policy;
use frit_layer::wear::LevelerKind;
use frit_torture::campaign::{Options, Report, run};
use frit_torture::case::Mode;
use strum::VariantNames;

/// What is tortured, and the distinct images that it has to give.
fn variants() -> Vec<(String, usize)> {
    let mut all: Vec<(String, usize)> = [
        ("halo", 7_000),
        ("cleaning", 6_000),
        ("read-caching", 6_000),
        ("write-through", 6_000),
        // Nothing is cached there: all images are one to the recovery.
        ("write-around", 1),
        ("around-read-caching", 1_000),
        ("bypass", 6_000),
    ]
    .map(|(name, images)| (name.to_owned(), images))
    .into();
    // That one asks for the future.
    let policies = Policy::VARIANTS.iter().filter(|p| **p != "belady" && **p != "halo");
    all.extend(policies.map(|p| (format!("policy-{p}"), 2_000)));
    let levelers = LevelerKind::VARIANTS.iter().filter(|l| **l != "none");
    all.extend(levelers.map(|l| (format!("leveler-{l}"), 5_500)));
    all
}

fn torture(name: &str, options: Options) -> Report {
    let options = Options { nested_every: 256, alive_every: 32, ..options };
    let r = run(&subject(name), &options, &|_| {});
    println!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} / {} / {} | {:.1} |",
        r.workloads,
        r.requests,
        r.commands,
        r.images,
        r.nested,
        r.distinct_images,
        r.distinct_states,
        r.faults,
        r.faults_struck,
        r.faults_seen,
        r.seconds
    );
    complain(name, &r);
    r
}

/// Environment variables narrow a search by hand: `ONLY` a name, `SEED`, `MODES`, `ITEMS`.
fn asked<V: std::str::FromStr>(key: &str) -> Option<V> {
    std::env::var(key).ok()?.parse().ok()
}

#[test]
fn a_hundred_thousand_distinct_images_of_caches_hold() {
    println!(
        "| variant | workloads | requests | commands | images | of recoveries | distinct images | states | faults | s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let only: Option<String> = asked("ONLY");
    let modes: Option<String> = asked("MODES");
    let modes: Vec<Mode> = match modes {
        Some(m) => m.split(',').filter_map(|m| m.parse().ok()).collect(),
        None => vec![Mode::Cuts, Mode::Files, Mode::Cuts, Mode::Exhaustive],
    };
    let (mut distinct, mut images, mut violations, mut seconds) = (0, 0, 0, 0.0);
    for (name, wanted) in variants().into_iter().filter(|(n, _)| only.as_ref().is_none_or(|o| n.contains(o)))
    {
        let items = asked("ITEMS").unwrap_or(if wanted > 1 { 40 } else { 4 });
        let options = Options {
            seed: asked("SEED").unwrap_or(1),
            modes: modes.clone(),
            images: (wanted > 1).then_some(wanted),
            items: Some(items),
            ..Options::default()
        };
        let r = torture(&name, options);
        distinct += r.distinct_images;
        images += r.images;
        violations += r.violations.len();
        seconds += r.seconds;
    }
    println!("{distinct} distinct crash images of {images}, {violations} violations, {seconds:.0} s");
    assert_eq!(violations, 0);
    assert!(only.is_some() || distinct >= 100_000, "{distinct}");
}

/// A disk that fails and works again, PCM that fails, damage in PCM: the client is told, nothing that was
/// acknowledged is lost, and what can go on does.
#[test]
fn disks_that_fail_and_damaged_pcm_cost_nothing_that_was_acknowledged() {
    let (mut struck, mut seen, mut violations) = (0, 0, 0);
    for (name, _) in variants() {
        let modes = vec![Mode::Errors, Mode::Damage];
        let options = Options { modes, items: Some(asked("ITEMS").unwrap_or(4)), ..Options::default() };
        let r = torture(&name, Options { seed: asked("SEED").unwrap_or(1), ..options });
        struck += r.faults_struck;
        seen += r.faults_seen;
        violations += r.violations.len();
    }
    println!("{struck} faults struck, {seen} were told of, {violations} violations");
    assert_eq!(violations, 0);
    assert!(struck > 5_000 && seen * 4 > struck);
}
