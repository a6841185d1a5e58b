//! Findings of comparisons.

use super::options;
use crate::findings::of_comparison;
use crate::report::compare::compare;
use crate::report::write_json;
use crate::tests::{run, small, small_without_pcm};
use frit_stack::Stack;

#[test]
fn a_comparison_in_which_nothing_differs_names_the_setting() {
    let load = "gen:uniform,count=6k,size=4K,span=512K,read=0.3";
    let one = |sets: &[&str]| run(&small(sets), load, &options(8, "fill"));
    let reports = [one(&["SSW=512"]), one(&["SSW=1024"])];
    let found = of_comparison(&reports);
    assert_eq!(found.of_runs[0].finding.rule, "nothing-differs");
    let shown = words(&compare(&reports, 2));
    assert!(shown.starts_with("doubt"), "{shown}");
    assert!(shown.contains("hfsl.SSW (512 and 1024) has no effect on this workload"), "{shown}");
    assert!(shown.contains("No stack is better"), "{shown}");
    let differ = [one(&["SSW=512"]), one(&["SSW=4096"])];
    assert!(of_comparison(&differ).of_runs.iter().all(|f| f.finding.rule != "nothing-differs"));
}

#[test]
fn a_comparison_ends_with_the_best_stack_and_its_ratio() {
    let load = "gen:zipf,count=20k,size=512,align=512,span=64K,read=0.3";
    let one = |stack: &Stack| run(stack, load, &options(4, "fill"));
    let reports = [one(&small_without_pcm(&[])), one(&small(&[]))];
    let rate = |i: usize| reports[i].throughput.requests_per_s;
    let shown = compare(&reports, 2);
    let end = shown.rsplit_once("relative to it (×)").unwrap().1;
    let ratio = crate::report::show::figure(rate(1) / rate(0));
    assert!(rate(1) > rate(0) && end.contains(&format!("{ratio}× better than no-pcm-small")), "{shown}");
    let reasons: Vec<_> = of_comparison(&reports).of_runs.iter().map(|f| f.finding.rule).collect();
    assert!(reasons.contains(&"partial-writes") && reasons.contains(&"pcm-absorbs"), "{shown}");
}

/// Returns a text without line breaks and indents.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_json_contains_the_findings_and_the_conclusion_of_the_text() {
    let run = |stack: &Stack, load: &str| run(stack, load, &options(4, "fill"));
    let loads = [
        "gen:zipf,count=8k,size=512,align=512,span=64K,read=0.3",
        "gen:uniform,count=4k,size=4K,span=512K,read=0.3",
    ];
    let stacks = [small_without_pcm(&[]), small(&[])];
    let reports: Vec<_> = loads.iter().flat_map(|load| stacks.iter().map(|s| run(s, load))).collect();
    let shown = compare(&reports, 2);
    let mut json = Vec::new();
    write_json(&reports, 2, &mut json).unwrap();
    let json: Vec<serde_json::Value> = serde_json::from_slice(&json).unwrap();
    let texts = |i: usize, list: &str| -> Vec<String> {
        let all = json[i]["comparison"][list].as_array().unwrap();
        let one = |f: &serde_json::Value| match f["runs"].as_str() {
            Some(runs) => {
                format!("{runs}: {} [{}]", f["text"].as_str().unwrap(), f["rule"].as_str().unwrap())
            }
            None => f["text"].as_str().unwrap().to_owned(),
        };
        all.iter().map(one).collect()
    };
    let head = shown.split("\n\n").next().unwrap();
    let label = |f: &serde_json::Value| if f["kind"] == "doubt" { "doubt" } else { "finding" };
    let labels = |i: usize| json[i]["comparison"]["findings"].as_array().unwrap().iter().map(label);
    let labelled = |i: usize| labels(i).zip(texts(i, "findings")).map(|(l, t)| format!("{l} {t}"));
    assert_eq!(words(head), labelled(0).chain(labelled(2)).collect::<Vec<_>>().join(" "));
    let end = shown.rsplit_once("relative to it (×)").unwrap().1;
    let concluded = |name: &str, i: usize| {
        let texts = texts(i, "conclusion").iter().map(|t| format!(" conclusion {t}")).collect::<String>();
        format!("{name}:{texts}")
    };
    assert_eq!(words(end), format!("{} {}", concluded("zipf", 0), concluded("uniform", 2)));
    assert!(json[1]["comparison"].is_null() && json[3]["comparison"].is_null());
    let rate = &json[0]["comparison"]["conclusion"][0];
    assert_eq!((rate["rule"].as_str(), rate["metric"].as_str()), (Some("best"), Some("requests/s")));
    let (best, next, ratio) = (&rate["figures"][0], &rate["figures"][1], &rate["figures"][2]);
    assert_eq!((best["stack"].as_str(), next["stack"].as_str()), (Some("hfsl-small"), Some("no-pcm-small")));
    let requests_per_s = |i: usize| json[i]["throughput"]["requests_per_s"].as_f64().unwrap();
    assert_eq!(best["value"].as_f64().unwrap(), requests_per_s(1));
    assert_eq!(next["value"].as_f64().unwrap(), requests_per_s(0));
    assert_eq!(ratio["value"].as_f64().unwrap(), requests_per_s(1) / requests_per_s(0));
}
