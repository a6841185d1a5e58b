//! Replays one case: `STACK=both-4k CASE=d1.0.3 cargo test -p frit-torture --test one -- --nocapture`.

mod common;

use frit_torture::campaign::{Options, replay};

#[test]
fn one() {
    let (Ok(stack), Ok(case)) = (std::env::var("STACK"), std::env::var("CASE")) else { return };
    let (_, subject) = common::subjects().into_iter().find(|(n, _)| *n == stack).unwrap();
    let r = replay(&subject, &Options { explain: true, ..Options::default() }, case.parse().unwrap());
    for f in &r.violations {
        println!("{} {:?}: {}", f.case, f.violation.oracle, f.violation.what);
        f.requests.iter().for_each(|l| println!("    {l}"));
    }
}
