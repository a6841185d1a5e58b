//! Power cuts of small volumes, with figures.

mod common;

use frit_torture::campaign::{Options, run};
use frit_torture::case::Mode;

#[test]
fn smoke() {
    for (name, subject) in common::subjects() {
        let items = std::env::var("ITEMS").ok().and_then(|v| v.parse().ok()).unwrap_or(2);
        let options = Options { items: Some(items), modes: vec![Mode::Cuts, Mode::Exhaustive], ..Options::default() };
        let r = run(&subject, &options, &|_| {});
        println!(
            "{name}: {} workloads {} cuts {} repeated {} images {} distinct {} states {} nested {:.1} s {:.0}/s, read {} KiB each",
            r.workloads, r.cuts, r.repeated, r.images, r.distinct_images, r.distinct_states, r.nested, r.seconds,
            r.images_per_second(), r.read_bytes / 1024 / r.images.max(1)
        );
        for f in r.violations.iter().take(6) {
            println!("  {} {:?}: {}", f.case, f.violation.oracle, f.violation.what);
        }
        println!("  {} violations", r.violations.len());
    }
}
