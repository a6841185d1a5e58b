//! Experiments on modelled machines, in quick form.

use frit_reproduce::kinds::{MachineVerdict, QueryOutcome};
use frit_reproduce::{Measured, ReproduceOptions, Reproduction, catalogue, reproduce};

fn quick(ids: &[&str]) -> Reproduction {
    let ids: Vec<String> = ids.iter().map(|i| (*i).to_owned()).collect();
    let options = ReproduceOptions { quick: true, ..ReproduceOptions::default() };
    reproduce(&catalogue::select(&ids).unwrap(), &options, &mut |_, _, _| {}).unwrap()
}

fn query(r: &Reproduction) -> &QueryOutcome {
    let Measured::Query(found) = &r.experiments[0].measured else { panic!("no query") };
    found
}

fn verdict<'v>(all: &'v [MachineVerdict], what: &str) -> &'v MachineVerdict {
    all.iter().find(|v| v.what == what).unwrap_or_else(|| panic!("no verdict on {what}"))
}

#[test]
fn a_word_query_has_both_ways_and_verdicts() {
    let r = quick(&["ispfs.f8"]);
    let found = query(&r);
    assert!(found.rows.iter().all(|row| row.query.isp.counts == row.query.software.counts));
    let rate = verdict(&found.verdicts, "MB/s of the engine");
    // Two units compare a byte in 10 ns, with the start and the inode before the contents.
    assert!((199.0..200.0).contains(&rate.value) && rate.holds == Some(false), "{rate:?}");
    assert_eq!(verdict(&found.verdicts, "engine: slowest / fastest file").holds, Some(true));
    let text = r.text();
    assert!(text.contains("74 MB/s on average") && text.contains("within 10 % of 74"), "{text}");
    assert_eq!(query(&quick(&["ispfs.f8"])), found, "the same again");
}

#[test]
fn only_the_rules_of_chosen_claims_are_judged() {
    let r = quick(&["ispfs.f9.cpu"]);
    let found = query(&r);
    assert_eq!(found.verdicts.len(), 3);
    assert!(found.verdicts.iter().all(|v| v.claim == "ispfs.f9.cpu"));
    assert_eq!(verdict(&found.verdicts, "processor, ISP").holds, Some(true));
}

#[test]
fn ratios_to_another_file_system_have_no_verdict() {
    let r = quick(&["ispfs.f7"]);
    let Measured::Patterns(found) = &r.experiments[0].measured else { panic!("no patterns") };
    let (judged, others): (Vec<_>, Vec<_>) = found.verdicts.iter().partition(|v| v.holds.is_some());
    assert!(judged.iter().all(|v| v.claim == "ispfs.f7.robust" && v.holds == Some(true)), "{judged:?}");
    assert!(others.len() >= 6 && others.iter().all(|v| v.rule.starts_with("not comparable: ")), "{others:?}");
    let of = |pattern: &str| found.rows.iter().find(|row| row.pattern == pattern).unwrap();
    // A record of 1 KiB is a row and 16 transfers over the link: 1024 bytes in 3413 ns.
    assert!((of("reread").mb_s[0] - 1024.0 / 3.413).abs() < 0.1, "{:?}", of("reread"));
}
