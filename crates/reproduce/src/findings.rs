//! Findings of an experiment: what its verdicts say, and what makes its runs doubtful.
//!
//! Verdicts are read from the tables, which every kind of experiment fills with typed cells. The
//! doubts about runs are those of `frit run` ([`frit_replay::findings`]).

use crate::outcome::{Cell, JudgedAspect, Judgement, Outcome, OutcomePart, OutcomeTable};
use frit_replay::findings::{Figure, Finding, FindingKind};

/// Maximum number of rows that a finding names.
const NAMES_MAX: usize = 4;

/// Mark of generated workloads in tables.
const GENERATED: &str = "(GENERATED)";

/// Headings of the columns that name what is judged.
const NAME_COLUMNS: [&str; 4] = ["claim", "workload", "variant", "view"];

/// Rules of `frit run` about the times of a run, or about what they do not cover. Counts of commands
/// do not depend on them.
const TIME_RULES: [&str; 9] = [
    "unwritten-reads",
    "overloaded",
    "depth-limits",
    "nothing-read",
    "never-reread",
    "no-cleaning",
    "too-short",
    "not-steady",
    "tail-mean",
];

/// A run of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RunDoubts {
    /// Workload, state and column, or workload, view and overrides.
    pub(crate) about: String,
    /// The doubts about the run.
    pub(crate) doubts: Vec<Finding>,
}

/// A verdict of a table.
#[derive(Debug)]
struct JudgedRow {
    /// Names of the row, and the section of the table.
    name: String,
    /// `true` if all judged parts agree; `None` if nothing could be judged.
    agrees: Option<bool>,
}

/// Returns the findings of an experiment with this number of claims: the verdicts, then the doubts.
/// Doubts about times are left out if no metric of the experiment depends on time.
pub(crate) fn of_experiment(
    claims: usize,
    about_time: bool,
    outcome: &Outcome,
    runs: &[RunDoubts],
) -> Vec<Finding> {
    if let Some(why) = &outcome.not_measured {
        return vec![finding("not-measured", FindingKind::Doubt, format!("Not measured: {why}."), &[])];
    }
    let rows = judged_rows(outcome);
    let mut found = Vec::new();
    found.extend(verdicts(&rows));
    found.extend(not_judged(claims, &rows, outcome));
    found.extend(generated_only(&rows));
    found.extend(nothing_differs(outcome));
    found.extend(doubtful_runs(runs, about_time));
    found
}

fn finding(
    rule: &'static str,
    kind: FindingKind,
    text: String,
    figures: &[(&'static str, usize)],
) -> Finding {
    let figures = figures.iter().map(|&(name, n)| Figure { name, value: n as f64, unit: "", stack: None });
    Finding { rule, kind, text, metric: None, figures: figures.collect() }
}

/// Returns the tables, each with the title of its section.
fn tables(outcome: &Outcome) -> impl Iterator<Item = (Option<&str>, &OutcomeTable)> {
    let mut section = None;
    outcome.parts.iter().filter_map(move |part| match part {
        OutcomePart::Section { title, .. } => {
            section = Some(title.as_str());
            None
        }
        OutcomePart::Table(table) => Some((section, table)),
        OutcomePart::Text(_) | OutcomePart::List { .. } => None,
    })
}

/// Returns the verdicts of all tables.
fn judged_rows(outcome: &Outcome) -> Vec<JudgedRow> {
    let mut out = Vec::new();
    for (section, t) in tables(outcome) {
        let named = |i: usize| i < t.names && NAME_COLUMNS.contains(&t.head[i].to_string().as_str());
        for row in &t.rows {
            let words = row.iter().enumerate().filter(|(i, c)| named(*i) && **c != Cell::Missing);
            let words: Vec<String> =
                words.map(|(_, c)| c.to_string()).chain(section.map(str::to_owned)).collect();
            let judged = row.iter().filter_map(claims_of).flatten();
            for claim in judged.filter(|c| !is_input(c)) {
                out.push(JudgedRow { name: words.join(", "), agrees: agrees(claim) });
            }
        }
    }
    out
}

fn claims_of(cell: &Cell) -> Option<&[Vec<Judgement>]> {
    match cell {
        Cell::Verdict(claims) => Some(claims),
        _ => None,
    }
}

/// Returns `true` if all judgements of a claim are about inputs.
fn is_input(claim: &[Judgement]) -> bool {
    !claim.is_empty() && claim.iter().all(|j| j.aspect == JudgedAspect::Input)
}

/// Returns the verdict of the judgements of a claim. An input agrees by construction, and is no
/// verdict.
fn agrees(claim: &[Judgement]) -> Option<bool> {
    let judged: Vec<bool> =
        claim.iter().filter(|j| j.aspect != JudgedAspect::Input).filter_map(|j| j.holds).collect();
    (!judged.is_empty()).then(|| judged.iter().all(|&holds| holds))
}

/// Returns names, each once, of which the last ones are only counted.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let mut each: Vec<&str> = Vec::new();
    for name in all.filter(|n| !n.is_empty()) {
        if !each.contains(&name) {
            each.push(name);
        }
    }
    let more = each.len().saturating_sub(NAMES_MAX);
    each.truncate(NAMES_MAX);
    let mut text = each.join("; ");
    if more > 0 {
        text += &format!("; {more} more");
    }
    text
}

/// How many verdicts agree, and which do not.
fn verdicts(rows: &[JudgedRow]) -> Option<Finding> {
    let of = |want: Option<bool>| rows.iter().filter(move |r| r.agrees == want);
    let (agree, differ, open) = (of(Some(true)).count(), of(Some(false)).count(), of(None).count());
    if agree + differ == 0 {
        return None;
    }
    let mut text = match differ {
        0 if agree == 1 => "The one verdict agrees with the paper".to_owned(),
        0 => format!("All {agree} verdicts agree with the paper"),
        _ => format!("{agree} of {} verdicts agree with the paper", agree + differ),
    };
    if differ > 0 {
        text += &format!("; {differ} {}", if differ == 1 { "differs" } else { "differ" });
        let which = names(of(Some(false)).map(|r| r.name.as_str()));
        if !which.is_empty() {
            text += &format!(" ({which})");
        }
    }
    if open > 0 {
        text += &format!("; {open} could not be judged: there is nothing to count");
    }
    let figures = [("agree", agree), ("differ", differ), ("nothing_to_count", open)];
    Some(finding("verdicts", FindingKind::Explanation, text + ".", &figures))
}

/// No claim has a verdict: none has a rule, no workload is there, or there is nothing to count.
fn not_judged(claims: usize, rows: &[JudgedRow], outcome: &Outcome) -> Option<Finding> {
    if claims == 0 || rows.iter().any(|r| r.agrees.is_some()) {
        return None;
    }
    let input =
        |c: &Cell| claims_of(c).is_some_and(|c| c.iter().flatten().any(|j| j.aspect == JudgedAspect::Input));
    if tables(outcome).flat_map(|(_, t)| &t.rows).flatten().any(input) {
        let text = "The published values are inputs: the profile is made from them, so that they agree says \
                    nothing."
            .to_owned();
        return Some(finding("inputs", FindingKind::Doubt, text, &[("claims", claims)]));
    }
    let why = match rows.len() {
        0 => "no rule judges the published text, or no workload is there",
        _ => "there is nothing to count in any row",
    };
    let text = format!("No claim of the paper is judged: {why}.");
    Some(finding("not-judged", FindingKind::Doubt, text, &[("claims", claims)]))
}

/// All verdicts are about generated workloads, which stand for recordings that are missing.
fn generated_only(rows: &[JudgedRow]) -> Option<Finding> {
    let judged: Vec<&JudgedRow> = rows.iter().filter(|r| r.agrees.is_some()).collect();
    if judged.is_empty() || judged.iter().any(|r| !r.name.contains(GENERATED)) {
        return None;
    }
    let text =
        "Every verdict is about a generated workload: it says whether the design behaves as the paper \
                describes for such requests, and not how often such requests occur."
            .to_owned();
    Some(finding("generated-only", FindingKind::Doubt, text, &[("verdicts", judged.len())]))
}

/// Rows in which every column has the value of the baseline.
fn nothing_differs(outcome: &Outcome) -> Option<Finding> {
    let (mut rows, mut same) = (0, Vec::new());
    for (section, t) in tables(outcome) {
        for row in &t.rows {
            let relative: Vec<f64> = row.iter().filter_map(relative_value).collect();
            // One column can have the baseline's value by chance.
            if relative.len() < 2 {
                continue;
            }
            rows += 1;
            if relative.iter().all(|&v| v == 1.0) {
                same.push(format!("{}, {}", row[0], section.unwrap_or_default()));
            }
        }
    }
    if same.is_empty() {
        return None;
    }
    let text = format!(
        "In {} of {rows} rows every column has the value of the baseline ({}): what the columns vary has no effect there.",
        same.len(),
        names(same.iter().map(String::as_str))
    );
    Some(finding("nothing-differs", FindingKind::Doubt, text, &[("rows", rows), ("same", same.len())]))
}

/// Returns a value that is relative to a baseline.
fn relative_value(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Number { value, decimals: 3, unit: "" } | Cell::Change(value) => Some(*value),
        _ => None,
    }
}

/// The doubts about the runs, each with the number of runs and an example.
fn doubtful_runs(runs: &[RunDoubts], about_time: bool) -> Vec<Finding> {
    let mut rules: Vec<(&Finding, &str, usize)> = Vec::new();
    for run in runs {
        for doubt in run.doubts.iter().filter(|d| about_time || !TIME_RULES.contains(&d.rule)) {
            match rules.iter_mut().find(|(f, ..)| f.rule == doubt.rule) {
                Some((.., count)) => *count += 1,
                None => rules.push((doubt, &run.about, 1)),
            }
        }
    }
    let all = runs.len();
    let text = |(f, about, count): (&Finding, &str, usize)| {
        let example = if count == 1 { String::new() } else { "for example ".to_owned() };
        let text = format!("In {count} of {all} runs, {example}{about}: {}", f.text);
        finding(f.rule, FindingKind::Doubt, text, &[("runs", count), ("of", all)])
    };
    rules.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(parts: &[Option<bool>]) -> Cell {
        Cell::verdict(parts.iter().map(|&holds| Judgement::of(JudgedAspect::Direction, holds)).collect())
    }

    fn outcome(rows: Vec<Vec<Cell>>) -> Outcome {
        let table = OutcomeTable::new(1, &["workload", "a", "b", "verdict"], rows);
        Outcome::of(vec![OutcomePart::section("new", None), OutcomePart::Table(table)])
    }

    fn row(name: &str, values: [f64; 2], verdict: Cell) -> Vec<Cell> {
        let [a, b] = values.map(|v| Cell::number(v, 3));
        vec![Cell::text(name), a, b, verdict]
    }

    fn rules(found: &[Finding]) -> Vec<&str> {
        found.iter().map(|f| f.rule).collect()
    }

    #[test]
    fn verdicts_are_counted_and_those_that_differ_are_named() {
        let rows = vec![
            row("a", [0.5, 0.4], verdict(&[Some(true), None])),
            row("b", [0.5, 0.4], verdict(&[Some(true), Some(false)])),
            row("c", [1.0, 1.0], verdict(&[None])),
        ];
        let found = of_experiment(1, true, &outcome(rows), &[]);
        assert_eq!(rules(&found), ["verdicts", "nothing-differs"]);
        assert!(found[1].text.starts_with("In 1 of 3 rows"), "{}", found[1].text);
        assert_eq!(
            found[0].text,
            "1 of 2 verdicts agree with the paper; 1 differs (b, new); 1 could not be judged: there is nothing to count."
        );
        let all = of_experiment(1, true, &outcome(vec![row("a", [0.5, 0.4], verdict(&[Some(true)]))]), &[]);
        assert_eq!(all[0].text, "The one verdict agrees with the paper.");
    }

    #[test]
    fn what_cannot_be_judged_is_said() {
        let nothing = outcome(vec![row("a", [0.5, 0.4], verdict(&[None]))]);
        let found = of_experiment(2, true, &nothing, &[]);
        assert_eq!(rules(&found), ["not-judged"]);
        assert!(found[0].text.contains("nothing to count"), "{}", found[0].text);
        assert!(of_experiment(2, true, &Outcome::default(), &[])[0].text.contains("no rule"));
        assert_eq!(of_experiment(0, true, &Outcome::default(), &[]), []);
        let input = Cell::verdict(vec![Judgement::of(JudgedAspect::Input, Some(true))]);
        assert_eq!(
            rules(&of_experiment(1, true, &outcome(vec![row("a", [0.5, 0.4], input)]), &[])),
            ["inputs"]
        );
        // Beside verdicts, inputs are not counted.
        let input = Cell::verdict(vec![Judgement::of(JudgedAspect::Input, Some(true))]);
        let both = vec![row("a", [0.5, 0.4], verdict(&[Some(true)])), row("b", [0.5, 0.4], input)];
        assert_eq!(
            of_experiment(1, true, &outcome(both), &[])[0].text,
            "The one verdict agrees with the paper."
        );
        let missing = Outcome { not_measured: Some("it needs a board".into()), ..Outcome::default() };
        let found = of_experiment(1, true, &missing, &[]);
        assert_eq!(rules(&found), ["not-measured"]);
        assert_eq!(found[0].text, "Not measured: it needs a board.");
        let generated = outcome(vec![row("gen-a (GENERATED)", [0.5, 0.4], verdict(&[Some(true)]))]);
        assert_eq!(rules(&of_experiment(1, true, &generated, &[])), ["verdicts", "generated-only"]);
    }

    #[test]
    fn doubts_about_runs_are_counted_with_an_example() {
        let doubt = |rule, text: &str| finding(rule, FindingKind::Doubt, text.into(), &[]);
        let run = |about: &str, doubts| RunDoubts { about: about.into(), doubts };
        let runs = [
            run("x", vec![doubt("too-short", "Only 3 rounds.")]),
            run("y", vec![doubt("too-short", "Only 2 rounds."), doubt("pcm-unused", "No PCM.")]),
            run("z", Vec::new()),
        ];
        let found = of_experiment(0, true, &Outcome::default(), &runs);
        let texts: Vec<&str> = found.iter().map(|f| f.text.as_str()).collect();
        assert_eq!(texts, ["In 2 of 3 runs, for example x: Only 3 rounds.", "In 1 of 3 runs, y: No PCM."]);
        let counts = of_experiment(0, false, &Outcome::default(), &runs);
        assert_eq!(rules(&counts), ["pcm-unused"]);
    }

    #[test]
    fn a_long_list_of_names_is_cut() {
        assert_eq!(names(["a", "b", "a", "c", "d", "e", "f"].into_iter()), "a; b; c; d; 2 more");
    }
}
