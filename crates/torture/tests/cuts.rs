//! Power cuts of small volumes, with figures.

mod common;

use frit_torture::campaign::{Options, run};
use frit_torture::case::Mode;

#[test]
fn smoke() {
    for (name, subject) in common::subjects() {
        let items = std::env::var("ITEMS").ok().and_then(|v| v.parse().ok()).unwrap_or(2);
        let modes = match std::env::var("MODES") {
            Ok(v) => v.split(',').map(|m| m.parse().unwrap()).collect(),
            Err(_) => vec![Mode::Cuts, Mode::Exhaustive],
        };
        if std::env::var("ONLY").is_ok_and(|n| n != name) {
            continue;
        }
        let options = Options { items: Some(items), modes, ..Options::default() };
        let r = run(&subject, &options, &|_| {});
        println!(
            "{name}: {} workloads {} cuts {} repeated {} images {} distinct {} states {} nested {:.1} s {:.0}/s, read {} KiB each",
            r.workloads,
            r.cuts,
            r.repeated,
            r.images,
            r.distinct_images,
            r.distinct_states,
            r.nested,
            r.seconds,
            r.images_per_second(),
            r.read_bytes / 1024 / r.images.max(1)
        );
        let mut kinds = std::collections::BTreeMap::new();
        for f in &r.violations {
            let words: Vec<&str> = f
                .violation
                .what
                .split_whitespace()
                .filter(|w| !w.contains(|c: char| c.is_ascii_digit()))
                .take(9)
                .collect();
            let e = kinds.entry((format!("{:?}", f.violation.oracle), words.join(" "))).or_insert((0, f));
            e.0 += 1;
        }
        for (k, (n, f)) in kinds {
            println!("  {n} x {k:?}: {} {}", f.case, f.violation.what);
        }
        println!("  {} violations", r.violations.len());
    }
}
