//! All experiments, in quick mode.

use frit_reproduce::caching::CacheMetric;
use frit_reproduce::kinds::{
    BreakEven, CachingOutcome, ComparedTable, ComparisonOutcome, FigureOutcome, FigureRow,
};
use frit_reproduce::{Measured, ReproduceOptions, Reproduction, catalogue, reproduce};

fn quick(ids: &[&str]) -> Reproduction {
    let ids: Vec<String> = ids.iter().map(|i| (*i).to_owned()).collect();
    let plan = ReproduceOptions { quick: true, ..ReproduceOptions::default() };
    reproduce(&catalogue::select(&ids).unwrap(), &plan, &mut |_, _, _| {}).unwrap()
}

fn figure<'a>(r: &'a Reproduction, id: &str) -> &'a FigureOutcome {
    let e = r.experiments.iter().find(|e| e.id == id).unwrap();
    let Measured::Figure(f) = &e.measured else { panic!("{id} is no figure") };
    f
}

fn row<'a>(f: &'a FigureOutcome, state: &str, workload: &str, hints: bool) -> &'a FigureRow {
    let t = f.tables.iter().find(|t| t.state == state).unwrap();
    t.rows.iter().find(|r| r.workload == workload && r.hints == hints).unwrap()
}

#[test]
fn figures_of_hfsl_have_the_paper_s_directions_where_writes_are_small() {
    let r = quick(&["hfsl.f15", "hfsl.f16", "hfsl.f17", "hfsl.f18", "hfsl.f19", "hfsl.f20"]);
    for id in ["hfsl.f15", "hfsl.f16", "hfsl.f18", "hfsl.f19"] {
        let row = row(figure(&r, id), "new", "gen-fin1", false);
        assert_eq!(row.verdicts[0].direction, Some(true), "{id}: {row:?}");
    }
    let erases = figure(&r, "hfsl.f17");
    assert!(erases.tables.iter().all(|t| t.state != "new"), "a new volume erases nothing");
    assert!(row(erases, "cleaning", "gen-fin2", false).values[0] > 0.0, "cleaning is active");
    // SSW = 512, compared with a strict "smaller", selects no write: sectors have 512 B.
    let writes = figure(&r, "hfsl.f16");
    let columns = &writes.tables[0].columns;
    let literal = columns.iter().position(|c| c == "<512").unwrap();
    for row in &writes.tables[0].rows {
        assert!(row.hints || row.values[literal] == row.values[0], "{row:?}");
    }
    // The recording has writes of 4 KiB and more, so nothing changes, and the reason is stated; its
    // metadata marks change something.
    let plain = row(writes, "new", "mail-60k", false);
    assert!(plain.values.iter().all(|v| *v == plain.values[0]), "{plain:?}");
    assert!(plain.why[0].contains("the smallest has 4096 B"), "{plain:?}");
    let hinted = row(writes, "new", "mail-60k", true);
    assert!(hinted.values[1] < hinted.values[0], "{hinted:?}");
    // With larger pages its writes are small.
    let large = row(figure(&r, "hfsl.f19"), "pages-8k", "mail-60k", false);
    assert!(large.values[2] > 0.0 && large.values[0] == 0.0, "{large:?}");
    let shown = r.text();
    // The findings come before the experiments: their verdicts, and the doubts about their runs.
    let head = shown.split("\n## hfsl.f15").next().unwrap();
    for part in [
        "## Findings",
        "hfsl.f15, finding: ",
        "[verdicts]",
        "hfsl.f15, hfsl.f16, ",
        ", doubt: In ",
        "[pcm-unused]",
    ] {
        assert!(head.contains(part), "no {part} in\n{head}");
    }
    for part in ["gen-fin1 (GENERATED)", "≤8192", "Differences and their reasons", "These are not results"]
    {
        assert!(shown.contains(part), "{part}");
    }
}

#[test]
fn the_same_comes_out_again() {
    let ids = ["wa.greedy", "hfsl.t7.*"];
    let json = || serde_json::to_string(&quick(&ids)).unwrap();
    assert_eq!(json(), json());
}

#[test]
fn inputs_agree_and_theory_holds() {
    let r = quick(&["hfsl.t7", "hfsl.f12.firmware", "wa"]);
    let mut seen = 0;
    for e in &r.experiments {
        match &e.measured {
            Measured::Input(latencies) => {
                seen += latencies.rows.len();
                assert!(latencies.rows.iter().all(|r| r.agrees), "{latencies:?}");
            }
            Measured::Theory(t) => {
                seen += t.cases.len();
                assert!(t.cases.iter().all(|c| c.settled && c.distance().abs() <= t.within), "{t:?}");
                assert!(t.cases.iter().all(|c| c.kolmogorov < 0.02), "{t:?}");
            }
            Measured::Nothing(nothing) => assert!(nothing.why.contains("board"), "{nothing:?}"),
            other => panic!("{}: {other:?}", e.id),
        }
    }
    assert_eq!(seen, 6 + 3 + 3);
}

#[test]
fn software_time_is_measured_and_what_cannot_be_is_said() {
    let r = quick(&["hfsl.f12.host"]);
    let Measured::Software(s) = &r.experiments[0].measured else { panic!("{r:?}") };
    assert!(s.paths.iter().all(|p| p.read_ns > 0.0 && p.write_ns > 0.0));
    match &s.skipped {
        Some(why) => {
            println!("the kernel's path is skipped: {why}");
            assert!(s.paths.iter().all(|p| !p.kernel) && r.text().contains("SKIPPED"));
        }
        None => assert!(s.paths.iter().any(|p| p.kernel)),
    }
}

fn caching<'a>(r: &'a Reproduction, id: &str) -> &'a CachingOutcome {
    let e = r.experiments.iter().find(|e| e.id == id).unwrap();
    let Measured::Caching(c) = &e.measured else { panic!("{id} is no study of caches") };
    c
}

#[test]
fn caches_are_compared_as_the_paper_does() {
    let r = quick(&["halo.f5", "halo.f6", "halo.f8", "halo.own"]);
    let f5 = caching(&r, "halo.f5");
    let column = |c: &CachingOutcome, name: &str| c.policies.iter().position(|p| p == name).unwrap();
    let (none, lru, halo) = (column(f5, "none"), column(f5, "lru"), column(f5, "halo"));
    for v in &f5.views {
        let row = v.rows.iter().find(|r| r.workload == "gen-randw").unwrap();
        let time: Vec<f64> = row.values(CacheMetric::Time).collect();
        assert!(time[halo] < time[lru], "{}: {time:?}", v.view);
        let judged = row.judged.unwrap();
        assert_eq!((judged.direction, judged.published), (Some(true), Some(-67.11)));
        assert!((judged.measured - (time[halo] / time[lru] - 1.0) * 100.0).abs() < 1e-9);
        for row in &v.rows {
            let traffic: Vec<f64> = row.values(CacheMetric::Traffic).collect();
            assert!((traffic[none] - 1.0).abs() < 1e-9, "all that is asked for goes to the disk: {row:?}");
            assert!(traffic[lru] < 1.0 && traffic[halo] < 1.0, "{row:?}");
            assert!(row.found[halo].turnovers > 1.0 && row.found[none].turnovers == 0.0, "{row:?}");
        }
    }
    // The distance is that of the same run, and a smaller cache has more traffic.
    let f8 = &caching(&r, "halo.f8").views[0];
    for (a, b) in f8.rows.iter().zip(&f5.views[0].rows) {
        assert_eq!((&a.workload, &a.found), (&b.workload, &b.found));
    }
    for pair in caching(&r, "halo.f6").views[0].rows.chunks(2) {
        let traffic = |i: usize| CacheMetric::Traffic.of(&pair[i].found[1]);
        assert!(pair[1].cache_bytes <= pair[0].cache_bytes && traffic(1) >= traffic(0), "{pair:?}");
    }
    let own = caching(&r, "halo.own");
    let direct = own.views.iter().find(|v| v.view == "direct").unwrap();
    let row = direct.rows.iter().find(|r| r.workload == "gen-randw/16").unwrap();
    let time: Vec<f64> = row.values(CacheMetric::Time).collect();
    let (sweep, plain) = (column(own, "sweep"), column(own, "no turns"));
    assert!(time[sweep] < time[column(own, "halo")] && time[sweep] < time[plain], "{time:?}");
    let shown = r.text();
    for part in ["gen-randw (GENERATED)", "Mean change over", "direction agrees", "Table II"] {
        assert!(shown.contains(part), "{part}");
    }
}

/// The views of halo.user replay the requests. Those of halo.f5 count the commands to the disk.
#[test]
fn runs_of_caches_that_are_replayed_contribute_their_doubts() {
    let r = quick(&["halo.user", "halo.f5"]);
    let doubts = |id: &str| {
        let e = r.experiments.iter().find(|e| e.id == id).unwrap();
        let of_runs = e.findings.iter().filter(|f| f.figures.iter().any(|f| f.name == "of"));
        of_runs.cloned().collect::<Vec<_>>()
    };
    let found = doubts("halo.user");
    let user = caching(&r, "halo.user");
    let runs: usize = user.views.iter().flat_map(|v| &v.rows).map(|row| row.found.len()).sum();
    assert!(!found.is_empty());
    for f in &found {
        let of = f.figures.iter().find(|f| f.name == "of").unwrap().value;
        assert_eq!(of, runs as f64, "{f:?}");
        // The policy `none` leaves PCM unused on purpose.
        assert!(!f.rule.ends_with("-unused"), "{f:?}");
    }
    // Doubts about times are kept, as the experiment measures times.
    assert!(found.iter().any(|f| f.rule == "not-steady"), "{found:?}");
    assert_eq!(doubts("halo.f5"), []);
}

#[test]
fn each_finding_is_printed_once() {
    let r = quick(&["hfsl.t7.*", "hfsl.f12.firmware", "hfsl.f15", "hfsl.f16"]);
    let shown = r.text();
    let printed = |text: &str| shown.matches(text).count();
    assert_eq!(printed("- hfsl.t7.pcm, hfsl.t7.nand, doubt: The published values are inputs"), 1, "{shown}");
    assert_eq!(printed("published values are inputs"), 1, "{shown}");
    assert_eq!(printed("- hfsl.f12.firmware, doubt: Not measured: "), 1, "{shown}");
    assert_eq!(printed("Not measured: "), 1, "{shown}");
    for f in r.experiments.iter().flat_map(|e| &e.findings).filter(|f| f.rule != "verdicts") {
        assert_eq!(printed(&f.text), 1, "{f:?}");
    }
    // Both figures are measured on the same runs.
    assert!(printed("- hfsl.f15, hfsl.f16, doubt: In ") > 0, "{shown}");
}

#[test]
fn wear_of_the_cache_is_counted_by_leveler() {
    let r = quick(&["halo.f9"]);
    let Measured::Wear(w) = &r.experiments[0].measured else { panic!("{r:?}") };
    assert!(
        w.rows.iter().all(|r| r.writes > 10_000 && r.rates.iter().all(|x| *x > 0.0 && *x <= 1.0)),
        "{w:?}"
    );
    let at = |name: &str| w.means[w.levelers.iter().position(|l| l == name).unwrap()];
    assert!(at("sfc") > at("start-gap"), "{w:?}");
    assert!(r.text().contains("published"));
}

#[test]
fn a_cache_comes_up_from_a_crash() {
    let r = quick(&["halo.recovery"]);
    let Measured::Recovery(found) = &r.experiments[0].measured else { panic!("no recovery") };
    let row = &found.rows[0];
    // Nine tenths of the blocks of 16 MiB, less those written twice: none of them was on the disk
    // before.
    assert!(row.dirty_bytes > 13 << 20 && row.dirty_bytes < 16 << 20, "{row:?}");
    assert_eq!(row.dirty_bytes, row.compared * 4096);
    // The recovery reads all records, at least.
    assert!(row.bytes_read >= row.compared * 32 && row.modelled_seconds > 0.0, "{row:?}");
    assert!(r.text().contains("s per dirty GB"));
}

fn comparison<'a>(r: &'a Reproduction, id: &str) -> &'a ComparisonOutcome {
    let e = r.experiments.iter().find(|e| e.id == id).unwrap();
    let Measured::Comparison(c) = &e.measured else { panic!("{id} is no comparison") };
    c
}

#[test]
fn variants_of_a_stack_are_compared_and_claims_judged() {
    let r = quick(&["ntl.f2", "ntl.block", "ntl.eq1", "ntl.f3"]);
    // A write of four pages takes exactly four write times on one chip.
    let block = &comparison(&r, "ntl.block").checks[0];
    assert_eq!((block.value, block.holds), (Some(4.0), Some(true)));
    // So few requests do not fill the log: a ratio without a merge says nothing about Equation 1.
    for c in &comparison(&r, "ntl.eq1").checks {
        assert_eq!((c.value.is_some(), c.holds), (true, None), "{c:?}");
    }
    // Within a request no mapping has fewer rounds than the static one; over all requests some do.
    let f2 = comparison(&r, "ntl.f2");
    let table = |about: &str| f2.tables.iter().find(|t| t.about.starts_with(about)).unwrap();
    let column = |t: &ComparedTable, head: &str| t.columns.iter().position(|c| c.0 == head).unwrap();
    let shared = table("Parallel writes as the paper counts them");
    let alone = table("Rounds of one request");
    let ratios = |t: &ComparedTable| -> Vec<f64> {
        let at = column(t, "total / static");
        t.rows.iter().map(|row| row.values[at].unwrap()).collect()
    };
    assert!(ratios(alone).iter().all(|r| *r >= 1.0), "{alone:?}");
    assert!(ratios(shared).iter().any(|r| *r < 1.0), "{shared:?}");
    for row in &shared.rows {
        let total =
            row.values[column(shared, "clean")].unwrap() + row.values[column(shared, "dirty")].unwrap();
        assert_eq!(row.values[column(shared, "total")], Some(total));
    }
    assert!(f2.checks.iter().any(|c| c.claim == "ntl.f2.ab"), "{:?}", f2.checks);
    // Trace C is missing, and reported as missing.
    assert!(f2.checks.iter().all(|c| c.claim != "ntl.f2.c.static"));
    let shown = r.text();
    for part in ["gen-twitter (GENERATED)", "nothing to count", "agrees", "within 0 % of 4"] {
        assert!(shown.contains(part), "{part}");
    }
}

#[test]
fn the_price_at_which_a_log_pays_is_that_at_which_both_cost_the_same() {
    let r = quick(&["ntl.log"]);
    let c = &comparison(&r, "ntl.log").crossings[0];
    let points: Vec<_> = c.lines.iter().flat_map(|l| &l.points).collect();
    assert!(!points.is_empty() && c.values == [4096, 8192]);
    for p in points {
        match p.even {
            BreakEven::At(price) => assert!(p.free < 1.0 && price > 0.0 && p.count > 0.0, "{p:?}"),
            BreakEven::Never => assert!(p.free >= 1.0 && p.ratios.iter().all(|r| *r >= 1.0), "{p:?}"),
            BreakEven::Always => assert!(p.count == 0.0 && p.ratios.iter().all(|r| *r < 1.0), "{p:?}"),
        }
    }
    let drawn = r.plots();
    assert_eq!(drawn[0].0, "ntl.log.svg");
    assert!(drawn[0].1.starts_with("<svg"));
}

#[test]
fn values_of_openssd_are_compared_with_those_of_other_variants_and_workloads() {
    let r = quick(&["ossd.base.randread", "ossd.f3", "ossd.f4", "ossd.t2"]);
    let checks = |id: &str| {
        let e = r.experiments.iter().find(|e| e.id == id).unwrap();
        let Measured::Comparison(c) = &e.measured else { panic!("{id} is no comparison") };
        c.checks.clone()
    };
    let value = |id: &str, what: &str, workload: &str, variant: &str| {
        let all = checks(id);
        let found =
            all.iter().find(|c| c.what == what && c.workload == workload && c.variant == variant).unwrap();
        (found.value.unwrap(), found.input)
    };
    // Random reads meet a volume that was filled: of a new one, they would take no time.
    let (reads, input) = value("ossd.base.randread", "requests/s, QD 1", "rand-read-4K", "baseline");
    assert!((reads - 2340.0).abs() < 10.0 && input, "{reads}");
    // Another variant, and another workload.
    let (faster, input) = value("ossd.f3", "new / baseline, QD 32", "rand-write-4K", "new");
    assert!((8.0..10.0).contains(&faster) && !input, "{faster}");
    let (same, _) = value("ossd.f3", "random / sequential, QD 32", "rand-write-4K", "new");
    assert!((same - 1.0).abs() < 0.05, "{same}");
    let (size, _) = value("ossd.t2", "MB/s / that of 32 KB", "rand-read-4K", "baseline");
    assert!((size - 0.125).abs() < 0.01, "{size}");
    // The rest of a virtual page takes the path that requests need.
    let of = |variant| value("ossd.f4", "new / baseline, QD 1", "rand-read-4K", variant).0;
    assert!((1.3..1.8).contains(&of("new")) && of("new, no read buffer") > 2.0);
    // Workloads of 64 KB are no part of the quick run.
    assert!(checks("ossd.t2").iter().all(|c| c.workload != "rand-write-64K"));
}
