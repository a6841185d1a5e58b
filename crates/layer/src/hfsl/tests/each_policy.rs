//! Every registered policy by itself, so that a failure names the policy in a few lines. The
//! property tests mix all policies, and print each step of the search for a smaller case.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Requests in the test of one policy: several times the volume.
const REQUESTS: u64 = 1500;

/// Writes at random addresses, with reads, discards and idle work between them.
fn mixed(i: u64) -> Action {
    // SplitMix64.
    let mut x = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^= x >> 31;
    let (at, sectors) = ((x >> 8) % SECTORS, 1 + (x >> 40) % 8);
    match x % 16 {
        0 => Action::Read { at, sectors },
        1 => Action::Discard { at, sectors },
        2 => Action::Step,
        3..=6 => Action::Write { at: at % 64, sectors, metadata: false },
        _ => Action::Write { at, sectors, metadata: false },
    }
}

/// Runs one policy against the shadow model. Returns the reason of a failure.
fn failure(key: &'static str, name: &'static str) -> Option<String> {
    let run = || {
        let config = HfslConfig { over_provisioning: 0.1, heat_window: 40, ..HfslConfig::default() };
        let mut model = Model::new(layer(config, true, NandFaults::default()));
        model.act(&Action::Set(key, name)).map_err(|e| e.to_string())?;
        for i in 0..REQUESTS {
            let action = mixed(i);
            model.act(&action).map_err(|e| format!("request {i}, {action:?}: {e}"))?;
            model.layer.audit();
        }
        model.check_all();
        Ok(())
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => done.err(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Some(text.unwrap_or_else(|| "it panicked".to_owned()))
        }
    }
}

#[test]
fn every_policy_by_itself_gives_back_what_was_written() {
    let failed: Vec<String> = policies()
        .into_iter()
        .filter_map(|(key, name)| failure(key, name).map(|why| format!("{key} = {name}: {why}")))
        .collect();
    assert!(failed.is_empty(), "these policies fail:\n{}", failed.join("\n"));
}
