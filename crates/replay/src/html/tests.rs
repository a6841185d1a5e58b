//! Tests of the page as a browser reads it: well formed, complete, safe, small and deterministic.

use super::{page, write};
use crate::tests::{mixed_trace, run, small, small_without_pcm};
use crate::{Report, RunOptions, sectors};
use frit_engine::LoopMode;
use frit_stack::Stack;
use frit_trace::WorkloadKind;
use scraper::{Html, Selector};
use std::collections::HashSet;

const LOAD: &str = "gen:mix,count=6k+zipf,weight=3,size=4K,read=0.4,span=800K,meta=0.1,flush=50+sequential,weight=1,size=16K,span=1M";

/// Text that would run a script if a name were not escaped.
const HOSTILE: &str = r#"</title><script>alert("x")</script><img src=x onerror='y'>&amp;"#;

fn reports() -> Vec<Report> {
    let options = RunOptions { mode: LoopMode::Closed { depth: 4 }, verify: true, ..RunOptions::default() };
    vec![run(&small_without_pcm(&[]), LOAD, &options), run(&small(&["engine.kind=event"]), LOAD, &options)]
}

/// Parses the page with a strict parser, which must find no error.
fn parsed(page: &str) -> Html {
    let html = Html::parse_document(page);
    assert!(html.errors.is_empty(), "{:?}", html.errors);
    html
}

fn select<'a>(html: &'a Html, what: &str) -> Vec<scraper::ElementRef<'a>> {
    html.select(&Selector::parse(what).unwrap()).collect()
}

/// Checks that elements with an end tag in HTML and SVG are closed as often as they are opened.
fn balanced(page: &str) {
    for tag in [
        "html", "head", "body", "main", "section", "figure", "div", "svg", "g", "path", "rect", "line",
        "circle", "text", "title", "table", "tr", "td", "th", "details", "ul", "li", "p", "pre", "span", "i",
    ] {
        let count = |what: String| {
            page.match_indices(&what).filter(|(at, m)| page[at + m.len()..].starts_with([' ', '>'])).count()
        };
        assert_eq!(count(format!("<{tag}")), page.matches(&format!("</{tag}>")).count(), "<{tag}>");
    }
}

#[test]
fn one_report_has_every_section() {
    let reports = reports();
    let text = page(&reports[1..]);
    balanced(&text);
    let html = parsed(&text);
    for id in ["latency", "writes", "commands", "channels", "residence", "wear", "steady", "layers", "stack"]
    {
        let section = select(&html, &format!("section#{id}"));
        assert_eq!(section.len(), 1, "{id}");
        assert!(section[0].children().count() > 1, "{id} is empty");
    }
    let field = |kind: &str| select(&html, &format!("rect[data-kind={kind}]")).len();
    assert_eq!(["distribution", "lanes", "places", "wear"].map(field), [2, 1, 1, 2]);
    assert_eq!(select(&html, ".badge.generated").len(), 1);
    assert_eq!(select(&html, ".badge.pass").len(), 1);
    for part in [
        &reports[1].stack.toml.replace('"', "&quot;"),
        reports[1].workload.identity.generator.as_ref().unwrap(),
        "pcm-write",
        "p99.9",
    ] {
        assert!(text.contains(part), "no {part}");
    }
    assert!(
        !text.contains("NaN") && !text.contains("inf\"") && !text.contains("-0.0"),
        "a figure is no number"
    );
}

#[test]
fn findings_precede_the_metrics() {
    let reports = reports();
    for (text, before) in [(page(&reports[1..]), "<dl class=\"id\""), (page(&reports), "<svg")] {
        let html = parsed(&text);
        assert!(!select(&html, "li.doubt[data-rule]").is_empty());
        let (finding, metrics) = (text.find("data-rule").unwrap(), text.find(before).unwrap());
        assert!(finding < metrics, "{finding} {metrics}");
    }
}

#[test]
fn several_reports_are_compared_and_linked() {
    let reports = reports();
    let text = page(&reports);
    balanced(&text);
    let html = parsed(&text);
    let ids: Vec<&str> = select(&html, "[id]").iter().filter_map(|e| e.attr("id")).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "an id occurs twice");
    for link in select(&html, "nav a") {
        let to = link.attr("href").and_then(|h| h.strip_prefix('#')).unwrap();
        assert!(ids.contains(&to), "{to}");
    }
    // There is one bar for each metric with a ratio, among them the ratio of requests/s.
    let ratio = reports[1].throughput.requests_per_s / reports[0].throughput.requests_per_s;
    let bars = select(&html, "#compare rect.bar");
    assert!(bars.len() > 8, "{}", bars.len());
    assert!(
        bars.iter().any(|b| b.text().collect::<String>().ends_with(&format!("{ratio:.3}×"))),
        "no {ratio:.3}×"
    );
    // Another workload forms another group.
    let mut other = reports.clone();
    other[1].workload.identity.kind = WorkloadKind::Real;
    assert_eq!(select(&parsed(&page(&other)), "#compare h3").len(), 2);
}

#[test]
fn names_are_text_and_nothing_else() {
    let mut r = reports().remove(1);
    r.stack.name = HOSTILE.into();
    r.stack.toml = HOSTILE.into();
    r.workload.identity.name = HOSTILE.into();
    r.workload.identity.generator = Some(HOSTILE.into());
    r.workload.reading.about = HOSTILE.into();
    r.workload.problems.notes.push(HOSTILE.into());
    for m in &mut r.media {
        m.name = HOSTILE.into();
    }
    for c in &mut r.counts {
        c.medium = HOSTILE.into();
    }
    for c in &mut r.channels.channels {
        c.medium = HOSTILE.into();
    }
    for l in &mut r.layers {
        l.name = HOSTILE.into();
    }
    for text in [page(std::slice::from_ref(&r)), page(&[r.clone(), r])] {
        balanced(&text);
        let html = parsed(&text);
        assert_eq!((select(&html, "script").len(), select(&html, "img").len()), (1, 0));
        assert!(select(&html, "h1")[0].text().count() > 0);
        assert!(!text.contains("<img") && !text.contains("<script>alert"));
    }
}

#[test]
fn the_page_needs_nothing_else() {
    let text = page(&reports());
    let html = parsed(&text);
    for what in ["link", "iframe", "object", "embed", "img", "image", "use", "[src]", "a:not([href^='#'])"] {
        assert_eq!(select(&html, what).len(), 0, "{what}");
    }
    for what in ["http://", "https://", "url(", "@import", "fetch(", "XMLHttpRequest", "innerHTML"] {
        assert!(!text.contains(what), "{what}");
    }
}

#[test]
fn the_paper_s_geometry_makes_a_small_page() {
    let stack = Stack::builtin("hfsl-paper", &[]).unwrap();
    let load = "gen:uniform,count=20k,size=2K,align=2K,span=20G,read=0.3";
    let mut r = run(&stack, load, &RunOptions::default());
    // A map is longest if the wear differs from cell to cell.
    for m in &mut r.media {
        m.wear.run.max = 9999;
        m.wear.map.mean.iter_mut().enumerate().for_each(|(i, v)| *v = ((i * 7919) % 9973) as f32 + 0.123);
        m.wear.map.max.iter_mut().enumerate().for_each(|(i, v)| *v = 90_000 + i as u32);
    }
    let one = page(std::slice::from_ref(&r));
    parsed(&one);
    assert!(one.len() < 400_000, "{}", one.len());
    let four = page(&vec![r; 4]);
    assert!(four.len() < 1_500_000, "{}", four.len());
}

#[test]
fn the_same_reports_give_the_same_page() {
    let reports = reports();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("page.html");
    write(&reports, &path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page(&reports));
    let e = write(&reports, &dir.path().join("none/page.html")).unwrap_err();
    assert!(e.to_string().contains("none/page.html"), "{e}");
}

#[test]
fn reports_of_little_are_pages_too() {
    parsed(&page(&[]));
    let dir = tempfile::tempdir().unwrap();
    let stack = small(&[]);
    let trace = mixed_trace(&dir, sectors(&stack).unwrap(), 1);
    let only = run(&stack, trace.to_str().unwrap(), &RunOptions::default());
    let reads = run(&stack, "gen:uniform,count=5,size=4K,span=1M,read=1", &RunOptions::default());
    let mut bare = only.clone();
    bare.media.clear();
    bare.layers.clear();
    bare.counts.clear();
    bare.command_times.clear();
    bare.channels = Default::default();
    bare.latency.clear();
    for r in [only, reads, bare] {
        let text = page(std::slice::from_ref(&r));
        balanced(&text);
        parsed(&text);
        let two = page(&[r.clone(), r]);
        parsed(&two);
        assert!(!text.contains("NaN") && !two.contains("NaN"));
    }
}

#[test]
fn mismatches_cannot_be_missed() {
    let mut r = reports().remove(1);
    let v = r.verification.as_mut().unwrap();
    v.mismatches = 3;
    let html = parsed(&page(&[r]));
    assert_eq!((select(&html, ".badge.fail").len(), select(&html, ".badge.pass").len()), (1, 0));
    assert!(select(&html, ".alarm")[0].text().collect::<String>().contains("3 sectors"));
}

/// The tests above rely on this: the parser must detect damage.
#[test]
fn a_page_that_is_damaged_is_noticed() {
    let text = page(&reports()[1..]);
    for (good, bad) in [("</section>", ""), ("</svg>", ""), ("</figure>", "</b>")] {
        assert!(text.contains(good));
        assert!(!Html::parse_document(&text.replacen(good, bad, 1)).errors.is_empty(), "{good}");
    }
}
