//! The list of documented commands that no test runs, with the reasons, in
//! `docs/design/testing.md`.

use super::{Documented, documented_commands, root};

const BEGIN: &str = "<!-- commands without a test -->\n";
const END: &str = "<!-- end of commands -->\n";

/// Commands that tests other than that of the README run as written.
const RUN_ELSEWHERE: [&str; 10] = [
    // tests/all/fs_sim.rs compares the output with the page.
    "fs-sim --explain create",
    // tests/all/ntl.rs runs it up to each of its requests.
    "run examples/ntl-example.toml examples/ntl-example.toml,ntl.mapping=dynamic \
     examples/ntl-example.toml,ntl.log=full examples/ntl-dozen.csv --json -",
    // tests/all/composition.rs runs them with the stacks of the pages.
    "run tree.toml traces/mail-60k.csv.zst --wrap --verify",
    "run halo-over-ssd.toml traces/mail-60k.csv.zst --wrap",
    "run ssd.toml below.csv.zst",
    // tests/all/mqsim_model.rs.
    "mqsim examples/mqsim-ssdconfig.xml",
    "trace generate uniform,count=1000,read=0.7,size=8K,align=8K,span=64M --to mqsim",
    // tests/all/trace_commands.rs.
    "run ssc-small examples/cache-commands.csv --verify",
    "run zns-small,zns.recovery=scan examples/zone-commands.csv --open --verify",
    // tests/all/trace.rs.
    "trace stat gen:varmail,count=100k",
];

/// Commands of an example that need files, clients or rights, and the tests that run the same
/// subcommands on temporary ones.
const OF_A_SEQUENCE: [(&[&str], &str, &str); 6] = [
    (
        &["create", "check", "scrub", "recover", "grow", "export", "import"],
        "a volume of the user, some of gigabytes",
        "crates/cli/tests/all/volumes.rs",
    ),
    (&["serve", "ctl"], "a server and its clients", "crates/cli/tests/all/control.rs"),
    (
        &["mkfs", "mount", "unmount", "fsck", "defrag"],
        "FUSE, and a path of the user",
        "crates/cli/tests/all/mount.rs",
    ),
    (&["isp"], "a mount of the user, and files in it", "crates/cli/tests/all/isp.rs"),
    (&["exec"], "a mount of the user, and programs", "crates/cli/tests/all/direct.rs"),
    (&["attach", "detach"], "root, FUSE and a loop device", "crates/cli/tests/attach.rs"),
];

/// Long computations, and the tests that run the same subcommands with small workloads.
const LONG: [(&str, &str, &str); 6] = [
    ("run", "minutes without optimization", "crates/cli/tests/all/run.rs"),
    ("cache", "minutes without optimization", "crates/cli/tests/all/cache.rs"),
    ("calibrate", "minutes, and recordings", "crates/cli/tests/all/calibrate.rs"),
    ("fs-sim", "minutes without optimization", "crates/cli/tests/all/fs_sim.rs"),
    ("reproduce", "minutes, and recordings", "crates/cli/tests/all/reproduce.rs"),
    ("torture", "a minute", "crates/torture/tests/all/main.rs"),
];

/// Returns the arguments of a command as one text.
fn text(c: &Documented) -> String {
    c.words[1..].join(" ")
}

/// Returns `true` if a word names a file of the user: a stack file or a recording that does not come
/// with frit, or a placeholder in capitals.
fn is_file_of_the_user(word: &str) -> bool {
    let path = word.split(',').next().unwrap_or(word);
    let is_file = [".toml", ".zst", ".csv", ".spc"].iter().any(|end| path.ends_with(end));
    let placeholder = ["TRACE", "OUT", "FORMAT"].contains(&path);
    placeholder || is_file && !root().join(path).exists()
}

/// Returns the reason why no test runs a command, and the file of tests that runs its subcommand.
fn reason(c: &Documented) -> (&'static str, &'static str) {
    let subcommand = c.words[1].as_str();
    if c.words.iter().any(|w| is_file_of_the_user(w)) {
        let tests = match subcommand {
            "trace" => "crates/cli/tests/all/trace.rs",
            "create" | "grow" => "crates/cli/tests/all/volumes.rs",
            _ => LONG.iter().find(|l| l.0 == subcommand).map_or("", |l| l.2),
        };
        return ("a file of the user", tests);
    }
    let sequence = OF_A_SEQUENCE.iter().find(|s| s.0.contains(&subcommand)).map(|s| (s.1, s.2));
    let long = || LONG.iter().find(|l| l.0 == subcommand).map(|l| (l.1, l.2));
    sequence.or_else(long).unwrap_or_else(|| panic!("no reason is known for `frit {}`", text(c)))
}

/// Returns the table of the page: a row for each page, subcommand and reason.
fn table() -> String {
    let all: Vec<Documented> = documented_commands().into_iter().filter(|c| c.whole).collect();
    let in_readme = |c: &&Documented| {
        c.page == "README.md" && !["reproduce", "isp", "exec"].contains(&c.words[1].as_str())
    };
    let mut run: Vec<String> = all.iter().filter(in_readme).map(text).collect();
    run.extend(RUN_ELSEWHERE.map(str::to_owned));
    let mut rows: Vec<([String; 3], usize)> = Vec::new();
    for c in all.iter().filter(|c| !run.contains(&text(c))) {
        let (why, tests) = reason(c);
        assert!(root().join(tests).is_file(), "{tests} does not exist");
        let row = [format!("`{}`", c.page), format!("`{}`", c.words[1]), format!("{why} | `{tests}`")];
        match rows.iter_mut().find(|(key, _)| *key == row) {
            Some((_, count)) => *count += 1,
            None => rows.push((row, 1)),
        }
    }
    let mut out = String::from(
        "| page | subcommand | commands | what they need | tests of the subcommand |\n|---|---|---|---|---|\n",
    );
    for ([page, subcommand, why], count) in rows {
        out += &format!("| {page} | {subcommand} | {count} | {why} |\n");
    }
    out
}

/// With `UPDATE_DOCS=1` the test writes the list into the page.
#[test]
fn commands_that_no_test_runs_are_listed_with_reasons() {
    let path = root().join("docs/design/testing.md");
    let page = std::fs::read_to_string(&path).expect("a page");
    let (head, rest) = page.split_once(BEGIN).expect("the beginning of the list");
    let (_, tail) = rest.split_once(END).expect("the end of the list");
    let right = format!("{head}{BEGIN}{}{END}{tail}", table());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &right).expect("the page is writable");
    } else {
        assert!(
            page == right,
            "the list is out of date; UPDATE_DOCS=1 cargo test -p frit-cli documented writes it"
        );
    }
}
