//! Experiments on modelled machines and on this machine, in quick form.

use frit_reproduce::kinds::{LiveQueryOutcome, MachineVerdict, PatternsOutcome, QueryOutcome};
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
    assert!((199.0..200.0).contains(&rate.value.unwrap()) && rate.holds == Some(false), "{rate:?}");
    assert_eq!(verdict(&found.verdicts, "engine: slowest / fastest file").holds, Some(true));
    let text = r.text();
    assert!(text.contains("74 MB/s on average") && text.contains("within 10 % of 74"), "{text}");
    assert_eq!(query(&quick(&["ispfs.f8"])).rows, found.rows, "the same again");
}

/// Returns the verdict on a value of the machine that runs the test.
fn live<'v>(all: &'v [MachineVerdict], what: &str) -> &'v MachineVerdict {
    let own = |v: &&MachineVerdict| v.machine == "this machine" && v.what == what;
    all.iter().find(own).unwrap_or_else(|| panic!("no verdict on {what}"))
}

#[test]
fn a_word_query_is_measured_on_this_machine() {
    let r = quick(&["ispfs.f8"]);
    let found = query(&r);
    let LiveQueryOutcome { files, skipped, machine, .. } = found.live.as_ref().unwrap();
    assert!(skipped.is_none() && machine.processors > 0, "{skipped:?}");
    assert_eq!(files.iter().map(|f| f.file_bytes).collect::<Vec<_>>(), [100 << 10, 1 << 20]);
    for file in files {
        assert!(file.counts.iter().all(|n| *n > 0), "each word is there: {file:?}");
        for round in &file.rounds {
            assert!(round.engine.engine_ns > 0 && round.engine.engine_ns <= round.engine.total_ns);
            assert_eq!(round.engine.requests, 4, "open, write, read, close");
            // Open, the reads of 128 KiB, the read at the end, close.
            let reads = file.file_bytes.div_ceil(128 << 10);
            assert_eq!((round.software.requests, round.vector.requests), (reads + 3, reads + 3));
        }
    }
    let ratio = live(&found.verdicts, "engine / software");
    let (least, most) = ratio.range.unwrap();
    assert!(0.0 < least && least <= ratio.value.unwrap() && ratio.value.unwrap() <= most, "{ratio:?}");
    assert_eq!((ratio.rule.as_str(), ratio.holds), ("at least 19", Some(ratio.value.unwrap() >= 19.0)));
    assert_eq!(live(&found.verdicts, "MB/s of software").holds, None, "speeds of two machines");
    let impact = live(&found.verdicts, "p99 of host reads, engine running / idle");
    assert!(impact.value.is_none() && impact.rule.starts_with("not measured: "), "{impact:?}");
    let text = r.text();
    assert!(text.contains("this machine: ") && text.contains("engine, through a command file"), "{text}");
}

#[test]
fn requests_and_processor_shares_of_this_machine_are_judged() {
    let r = quick(&["ispfs.f9"]);
    let verdicts = &query(&r).verdicts;
    let requests = live(verdicts, "requests, ISP");
    assert_eq!((requests.value, requests.range, requests.holds), (Some(4.0), Some((4.0, 4.0)), Some(true)));
    // A quick run reads 1 MiB in 8 blocks: 4 calls instead of 11.
    let fewer = live(verdicts, "fewer requests");
    assert!((fewer.value.unwrap() - 7.0 / 11.0).abs() < 1e-9 && fewer.holds == Some(false), "{fewer:?}");
    for what in ["processor, ISP: the caller", "processor, software"] {
        assert!(live(verdicts, what).value.unwrap() > 0.0, "{what}");
    }
}

#[test]
fn record_sizes_are_measured_on_this_machine() {
    let r = quick(&["ispfs.f7"]);
    let Measured::Patterns(PatternsOutcome { live: found, verdicts, .. }) = &r.experiments[0].measured else {
        panic!("no patterns")
    };
    let found = found.as_ref().unwrap();
    assert_eq!(found.records, [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20]);
    let rows: Vec<(&str, &str)> = found.rows.iter().map(|row| (row.pattern, row.file)).collect();
    let patterns = ["rewrite", "reread", "random read", "random write"];
    assert_eq!(
        rows,
        patterns.map(|p| ["library", "library, image on tmpfs", "tmpfs"].map(|f| (p, f))).concat()
    );
    let speeds = found.rows.iter().flat_map(|row| row.mb_s.iter().flatten());
    assert_eq!(speeds.clone().count(), 12 * 6 * 2);
    assert!(speeds.clone().all(|v| v.is_finite() && *v > 0.0));
    // A quick run mounts nothing, and says so.
    let ratio = live(verdicts, "library / EXT4, mean of the record sizes");
    assert_eq!((ratio.value, ratio.holds), (None, None));
    assert!(ratio.rule.contains("quick") && r.text().contains("EXT4 was not measured: "), "{ratio:?}");
    let flat = live(verdicts, "reread: slowest / fastest record size");
    assert!(flat.value.is_some_and(|v| v > 0.0 && v <= 1.0) && flat.holds.is_some(), "{flat:?}");
}

#[test]
fn only_the_rules_of_chosen_claims_are_judged() {
    let r = quick(&["ispfs.f9.cpu"]);
    let found = query(&r);
    assert_eq!(found.verdicts.iter().filter(|v| v.machine == "board of the paper").count(), 3);
    assert!(found.verdicts.iter().all(|v| v.claim == "ispfs.f9.cpu"));
    assert_eq!(verdict(&found.verdicts, "processor, ISP").holds, Some(true));
}

#[test]
fn ratios_to_another_file_system_have_no_verdict() {
    let r = quick(&["ispfs.f7"]);
    let Measured::Patterns(found) = &r.experiments[0].measured else { panic!("no patterns") };
    let modelled = found.verdicts.iter().filter(|v| v.machine == "board of the paper");
    let (judged, others): (Vec<_>, Vec<_>) = modelled.partition(|v| v.holds.is_some());
    assert!(judged.iter().all(|v| v.claim == "ispfs.f7.robust" && v.holds == Some(true)), "{judged:?}");
    assert!(others.len() >= 6 && others.iter().all(|v| v.rule.starts_with("not comparable: ")), "{others:?}");
    let of = |pattern: &str| found.rows.iter().find(|row| row.pattern == pattern).unwrap();
    // A record of 1 KiB is a row and 16 transfers over the link: 1024 bytes in 3413 ns.
    assert!((of("reread").mb_s[0] - 1024.0 / 3.413).abs() < 0.1, "{:?}", of("reread"));
}
