//! The worked example of `docs/reference/ntl.md`: the program reproduces its tables, row by row.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

const STACK: &str = "examples/ntl-example.toml";
const WORKLOAD: &str = "examples/ntl-dozen.csv";

/// Latencies of the example's memory, in microseconds.
const READ_US: f64 = 50.0;
const CLEAN_US: f64 = 200.0;
const DIRTY_US: f64 = 250.0;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn manual() -> String {
    std::fs::read_to_string(root().join("docs/reference/ntl.md")).unwrap()
}

/// A table of the manual, with its cells by column name.
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns the first table below a heading.
    fn below(heading: &str) -> Table {
        let text = manual();
        let mut lines = text
            .lines()
            .skip_while(|l| *l != heading)
            .skip_while(|l| !l.starts_with('|'))
            .take_while(|l| l.starts_with('|'))
            .map(|l| l.trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect());
        let columns = lines.next().unwrap_or_else(|| panic!("no table below {heading}"));
        Table { columns, rows: lines.skip(1).collect() }
    }

    fn cell(&self, row: usize, column: &str) -> &str {
        let i = self.columns.iter().position(|c| c == column).unwrap_or_else(|| panic!("no column {column}"));
        &self.rows[row][i]
    }

    fn number(&self, row: usize, column: &str) -> f64 {
        self.cell(row, column).parse().unwrap_or_else(|e| panic!("row {}, {column}: {e}", row + 1))
    }
}

/// Counts of the program after the first requests, with one of the three mappings.
struct Counted(serde_json::Value);

impl Counted {
    fn metric(&self, name: &str) -> f64 {
        let all = self.0["layers"][0]["metrics"].as_array().unwrap();
        all.iter().find(|m| m["name"] == name).unwrap()["value"].as_f64().unwrap()
    }

    fn busy(&self) -> Vec<f64> {
        let all = self.0["media"][0]["unit_busy"].as_array().unwrap();
        all.iter().map(|b| b.as_f64().unwrap()).collect()
    }
}

fn run(workload: &str, requests: usize) -> Vec<Counted> {
    let variant = |sets: &str| format!("{STACK}{sets}");
    let out = Command::new(env!("CARGO_BIN_EXE_frit"))
        .args(["run", STACK, &variant(",ntl.mapping=dynamic"), &variant(",ntl.log=full"), workload])
        .args(["--limit", &requests.to_string(), "--json", "-"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let all: Vec<serde_json::Value> = serde_json::from_slice(&out.stdout).unwrap();
    all.into_iter().map(Counted).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-3 * b.abs().max(1e-9)
}

/// Compares the counts so far, and the increase of a row, with the table.
fn check_row(table: &Table, row: usize, counted: &Counted) {
    let before = |column: &str| if row == 0 { 0.0 } else { table.number(row - 1, column) };
    for (one, column, metric) in [
        ("clean", "clean so far", "parallel_clean_writes"),
        ("dirty", "dirty so far", "parallel_dirty_writes"),
    ] {
        let so_far = table.number(row, column);
        assert!(close(so_far, counted.metric(metric)), "row {}, {metric}", row + 1);
        assert!(close(table.number(row, one), so_far - before(column)), "row {}, {one}", row + 1);
    }
    let us = counted.metric("parallel_time") * 1e6;
    assert!(close(table.number(row, "µs so far"), us), "row {}: {us} µs", row + 1);
}

/// Adds the busy time of a row's `page→chip` entries to each chip, in microseconds.
fn work(cells: &str, read: bool, busy: &mut [f64; 4]) {
    for (_, to) in cells.split_whitespace().filter_map(|c| c.split_once('→')) {
        let (chip, update) = to.strip_suffix('*').map_or((to, false), |chip| (chip, true));
        let chip: usize = chip.parse().unwrap();
        busy[chip] += match (read, update) {
            (true, _) => READ_US,
            (_, false) => CLEAN_US,
            (_, true) => DIRTY_US,
        };
    }
}

/// Returns `true` if the busy times of the chips have these ratios, relative to the first chip.
fn is_work(counted: &Counted, busy: &[f64; 4]) -> bool {
    let is = counted.busy();
    (1..4).all(|chip| close(is[chip] / is[0], busy[chip] / busy[0]))
}

#[test]
fn the_tables_of_the_example_are_what_the_program_counts() {
    let tables = ["### Static", "### Dynamic, round-robin", "### Static, with a full log"].map(Table::below);
    let [fixed, dynamic, log] = &tables;
    assert!(tables.iter().all(|t| t.rows.len() == 12));
    let mut busy = [[0.0; 4]; 2];
    for row in 0..12 {
        let counted = run(WORKLOAD, row + 1);
        for (table, counted) in tables.iter().zip(&counted) {
            check_row(table, row, counted);
        }
        for ((table, counted), busy) in [fixed, dynamic].into_iter().zip(&counted).zip(&mut busy) {
            let read = table.cell(row, "request").contains('r');
            work(table.cell(row, "page → chip"), read, busy);
            assert!(is_work(counted, busy), "row {}: {busy:?} µs", row + 1);
        }
        let with_log = &counted[2];
        for (column, metric) in
            [("merges", "merges"), ("refreshes", "refreshes"), ("pages in the log", "logged_pages")]
        {
            assert!(close(log.number(row, column), with_log.metric(metric)), "row {}, {metric}", row + 1);
        }
        let waiting = log.cell(row, "buffer then").split_whitespace().filter(|w| *w != "–").count() as f64;
        let m = |name| with_log.metric(name);
        assert!(close(waiting, m("updates") - m("buffer_hits") - m("log_writes")), "row {}", row + 1);
        if row == 11 {
            let text = manual();
            let sum = text.lines().find_map(|l| l.strip_prefix("T_merge = ")?.strip_suffix(" ms")).unwrap();
            let ms: f64 = sum.rsplit(" = ").next().unwrap().parse().unwrap();
            assert!(close(ms, m("merge_time") * 1e3), "Equation 1: {ms} ms");
        }
    }
}

/// Returns the clean and dirty shared rounds that the program counts under a rule.
fn shared_rounds(flag: &str) -> (f64, f64) {
    let stack = format!("{STACK},ntl.rounds=shared,ntl.round_flag={flag}");
    let out = Command::new(env!("CARGO_BIN_EXE_frit"))
        .args(["run", &stack, WORKLOAD, "--json", "-"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let counted = Counted(report.get(0).unwrap_or(&report).clone());
    (counted.metric("parallel_clean_writes"), counted.metric("parallel_dirty_writes"))
}

/// Each page of a round is on another chip, and the page that closes it is on one of them.
#[test]
fn the_shared_rounds_of_the_example_are_those_that_the_program_counts() {
    let table = Table::below("### Shared rounds");
    let last = table.rows.len() - 1;
    let chip = |cell: &str| cell.split_once('→').unwrap().1.trim_end_matches('*').to_owned();
    let mut pages = 0;
    for row in 0..=last {
        let mut chips: Vec<String> = table.cell(row, "pages → chip").split_whitespace().map(chip).collect();
        pages += chips.len();
        let closing = table.cell(row, "closed by").split_whitespace().next().unwrap();
        assert_eq!(closing == "–", row == last);
        assert!(row == last || chips.contains(&chip(closing)), "row {}", row + 1);
        chips.sort();
        chips.dedup();
        assert_eq!(
            chips.len(),
            table.cell(row, "pages → chip").split_whitespace().count(),
            "row {}",
            row + 1
        );
        if row < last {
            let next = table.cell(row + 1, "pages → chip").split_whitespace().next();
            assert_eq!(next, Some(closing), "row {}", row + 1);
        }
    }
    assert_eq!(pages, 35, "every page of the writes is in a round");
    for flag in ["lookup", "any", "most"] {
        let of = |kind: &str| {
            let column = format!("`{flag}`");
            (0..=last).filter(|&row| table.cell(row, &column) == kind).count() as f64
        };
        assert_eq!((of("clean"), of("dirty")), shared_rounds(flag), "{flag}");
    }
}

/// The round that is open at the end of a warm-up belongs to the warm-up, and no round is lost.
#[test]
fn a_warm_up_and_the_measured_part_have_all_rounds() {
    let run = |options: &[&str]| {
        let stack = format!("{STACK},ntl.rounds=shared");
        let mut frit = Command::new(env!("CARGO_BIN_EXE_frit"));
        frit.args(["run", &stack, WORKLOAD, "--json", "-"]).args(options).current_dir(root());
        let out = frit.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let report = report.get(0).unwrap_or(&report).clone();
        let all = report["layers"][0]["metrics"].as_array().unwrap().clone();
        let of = |name: &str, field: &str| {
            all.iter().find(|m| m["name"] == name).unwrap()[field].as_f64().unwrap()
        };
        ["parallel_clean_writes", "parallel_dirty_writes"].map(|name| (of(name, "value"), of(name, "change")))
    };
    let whole = run(&[]);
    let first = run(&["--limit", "2"]);
    let warmed = run(&["--warm", "2"]);
    for ((whole, first), warmed) in whole.into_iter().zip(first).zip(warmed) {
        assert_eq!((warmed.0, warmed.1), (whole.0, whole.0 - first.0));
    }
    // The third request makes the open round of pages 8 and 9 dirty.
    assert_eq!((first[0].0, first[1].0, warmed[0].1, warmed[1].1), (3.0, 0.0, 1.0, 8.0));
}

/// Returns the chip of each page, which never changes.
fn chips_of(table: &Table) -> BTreeMap<u32, usize> {
    let mut chips = BTreeMap::new();
    for row in 0..table.rows.len() {
        for cell in table.cell(row, "page → chip").split_whitespace() {
            let Some((page, chip)) = cell.trim_end_matches('*').split_once('→') else { continue };
            let (page, chip) = (page.parse().unwrap(), chip.parse().unwrap());
            assert_eq!(*chips.entry(page).or_insert(chip), chip, "row {}: page {page}", row + 1);
        }
    }
    chips
}

/// Each page is on the chip that the tables name: a read of it makes that chip busy.
#[test]
fn the_pages_of_the_example_lie_on_the_chips_that_its_tables_name() {
    let tables = ["### Static", "### Dynamic, round-robin"].map(Table::below);
    let csv = std::fs::read_to_string(root().join(WORKLOAD)).unwrap();
    let file = tempfile::NamedTempFile::with_suffix(".csv").unwrap();
    let chips = tables.each_ref().map(chips_of);
    assert!(chips.iter().all(|c| c.len() == 22));
    for page in chips[0].keys() {
        std::fs::write(file.path(), format!("{csv}20000,R,{},8,\n", page * 8)).unwrap();
        let counted = run(file.path().to_str().unwrap(), 13);
        for ((table, chips), counted) in tables.iter().zip(&chips).zip(&counted) {
            let mut busy = [0.0; 4];
            for row in 0..table.rows.len() {
                let read = table.cell(row, "request").contains('r');
                work(table.cell(row, "page → chip"), read, &mut busy);
            }
            busy[chips[page]] += READ_US;
            assert!(is_work(counted, &busy), "page {page} is not on chip {}", chips[page]);
        }
    }
}

/// Slots of the log are filled in turn, first writes go to their home pages, and a merge writes
/// back the pages that the tables name.
#[test]
fn the_log_of_the_example_is_filled_in_turn_and_merged_as_told() {
    let log = Table::below("### Static, with a full log");
    let homes = chips_of(&Table::below("### Static"));
    let pairs = |cells: &str| -> Vec<(u32, usize)> {
        let cells = cells.split_whitespace().filter_map(|c| c.split_once('→'));
        cells.map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).collect()
    };
    let mut slots = (0..8).cycle();
    for row in 0..log.rows.len() {
        let first = pairs(log.cell(row, "first writes, page → chip"));
        assert!(first.iter().all(|(page, chip)| homes[page] == *chip), "row {}", row + 1);
        let logged = pairs(log.cell(row, "to the log, page → slot"));
        assert!(logged.iter().all(|&(_, slot)| slots.next() == Some(slot)), "row {}", row + 1);
    }
    let merge = Table::below("### The merge");
    let counted = run(WORKLOAD, 12);
    let most = (0..4).map(|row| merge.number(row, "dirty writes")).fold(0.0, f64::max);
    let merged: f64 = (0..4).map(|row| merge.number(row, "dirty writes")).sum();
    assert!(close(merged, counted[2].metric("merged_pages")), "{merged} pages");
    assert!(close(most, counted[2].metric("merge_rounds")), "M is {most}");
    assert!(close(most, log.number(11, "dirty")), "M is {most}");
    for row in 0..4 {
        let pages: Vec<u32> = merge.cell(row, "pages").split(", ").map(|p| p.parse().unwrap()).collect();
        assert!(close(pages.len() as f64, merge.number(row, "dirty writes")), "chip {row}");
        assert!(pages.iter().all(|page| homes[page] == row), "chip {row}");
    }
}

#[test]
fn the_requests_of_the_example_are_those_of_its_file() {
    let csv = std::fs::read_to_string(root().join(WORKLOAD)).unwrap();
    let told: Vec<String> = csv
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let pages = |i: usize| fields[i].parse::<u64>().unwrap() / 8;
            format!("`{} {}, {}`", fields[1].to_lowercase(), pages(2), pages(3))
        })
        .collect();
    for heading in ["### Static", "### Dynamic, round-robin", "### Static, with a full log"] {
        let table = Table::below(heading);
        let shown: Vec<&str> = (0..table.rows.len()).map(|row| table.cell(row, "request")).collect();
        assert_eq!(shown, told, "{heading}");
    }
}

/// The paper's own example: "w 0 A0-3, 4" takes one write time by pages, four by blocks.
#[test]
fn block_level_mapping_writes_four_pages_one_after_the_other() {
    let out = Command::new(env!("CARGO_BIN_EXE_frit"))
        .args(["run", &format!("{STACK},ntl.mapping=block"), WORKLOAD, "--limit", "1", "--json", "-"])
        .current_dir(root())
        .output()
        .unwrap();
    let all: Vec<serde_json::Value> = serde_json::from_slice(&out.stdout).unwrap();
    let block = all.into_iter().map(Counted).next().unwrap();
    assert!(close(block.metric("parallel_clean_writes"), 4.0));
    let rounds = Table::below("### Static").number(0, "clean so far");
    assert!(close(rounds, 1.0));
}
