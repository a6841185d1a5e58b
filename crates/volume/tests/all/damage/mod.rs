//! Damage of closed volumes, read through every access path: each read returns the written data or
//! an error.
//!
//! The test combines every kind of volume, closed properly or not, every kind of damage, and every
//! access path. `make test` closes half of the kinds, and kills the others; with `LONG=1` or `EACH` it does both with
//! each. The environment variables `SEED` and `EACH` (damages of each kind) repeat and extend it; `ONLY` names a kind of
//! volume.

mod access_paths;
mod campaign;
mod damage_kind;
mod planted;
mod test_volume;

use crate::common;
use campaign::run;
use test_volume::{KINDS, ShutdownKind};

fn asked(key: &str, default: u64) -> u64 {
    std::env::var(key).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
fn damage_is_never_read_as_data() {
    let (seed, each) = (asked("SEED", 1), asked("EACH", 1));
    let only = std::env::var("ONLY").ok();
    println!("seed {seed}, {each} of each kind of damage");
    let mut violations = Vec::new();
    let is_long = ["LONG", "EACH"].iter().any(|name| std::env::var_os(name).is_some());
    for (n, kind) in KINDS.iter().enumerate().filter(|(_, k)| only.as_ref().is_none_or(|o| k.name == o)) {
        let both = [ShutdownKind::Closed, ShutdownKind::Killed];
        for &left in if is_long { &both[..] } else { &both[n % 2..][..1] } {
            let (dir, _) = common::place_in_memory();
            match run(kind, left, seed, each, dir.path()) {
                Ok(tally) => println!("{:<24} {left:?}: {tally:?}", kind.name),
                Err(what) => violations.push(what),
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}
