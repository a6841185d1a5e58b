//! The examples of docs/reference/composition.md and of the pages of the composers work as described.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Media of the layer `ssd` that the pages of composers name, and the layer.
const SSD: &str = r#"
[media.ssd-nand]
profile = "slc-k9-2016"
blocks_per_plane = 64

[media.ssd-pcm]
profile = "pcm-p8p-2016"
chip_bytes = "256K"

[ssd]
kind = "hfsl"
nand = "ssd-nand"
pcm = "ssd-pcm"
"#;

/// A cache over the recording of docs/reference/composers/record.md.
const HALO: &str = r#"
[media.front]
profile = "pcm-halo-2012"
chip_bytes = "1M"

[cache]
pcm = "front"
disk = "rec"
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a page as text; its path starts at docs/reference.
fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs/reference").join(name)).unwrap()
}

/// Returns the pages of all composers.
fn composers() -> Vec<String> {
    let pages = std::fs::read_dir(root().join("docs/reference/composers")).unwrap();
    pages.map(|p| format!("composers/{}", p.unwrap().file_name().into_string().unwrap())).collect()
}

/// Returns the fenced blocks of a page: info string and text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    // Every second part is inside fences.
    let inside = page.split("\n```").skip(1).step_by(2);
    inside.map(|block| block.split_once('\n').unwrap()).collect()
}

/// Returns the stack in a page as a complete stack: each device that it names and does not describe
/// becomes a disk.
fn stack_of(page: &str) -> String {
    let (_, text) = blocks(page).into_iter().find(|(info, _)| *info == "toml").expect("a stack in the page");
    let tables: toml::Table = text.parse().unwrap();
    let media = |name: &str| tables.get("media").is_some_and(|m| m.get(name).is_some());
    let mut missing = BTreeSet::new();
    for layer in tables.values().filter_map(toml::Value::as_table) {
        let names = ["device", "devices"].iter().filter_map(|role| layer.get(*role));
        let names = names.flat_map(|v| v.as_array().cloned().unwrap_or_else(|| vec![v.clone()]));
        missing.extend(names.filter_map(|n| n.as_str().map(str::to_owned)));
    }
    missing.retain(|name| !tables.contains_key(name) && !media(name));
    let disk = |name: &String| format!("\n[media.{name}]\nprofile = \"st3500320as-2008\"\nbytes = \"64M\"\n");
    text.to_owned() + "\n" + &missing.iter().map(disk).collect::<String>()
}

fn frit(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).current_dir(dir).args(args).output().unwrap()
}

/// Runs frit, asserts that it succeeds, and returns its output.
#[track_caller]
fn good(dir: &Path, args: &[&str]) -> String {
    let out = frit(dir, args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Runs frit, asserts that it fails, and returns the message with single spaces.
#[track_caller]
fn refused(dir: &Path, args: &[&str]) -> String {
    let out = frit(dir, args);
    assert!(!out.status.success() && out.stdout.is_empty(), "{args:?}");
    let text = String::from_utf8(out.stderr).unwrap();
    text.split_whitespace().filter(|w| *w != "│").collect::<Vec<_>>().join(" ")
}

#[test]
fn the_drawing_in_the_page_is_that_of_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let page = page("composition.md");
    std::fs::write(dir.path().join("tree.toml"), stack_of(&page)).unwrap();
    let (_, drawing) = blocks(&page).into_iter().find(|(_, text)| text.contains("├─")).unwrap();
    let shown = good(dir.path(), &["check", "tree.toml"]);
    assert!(
        shown.contains(&format!("\n{drawing}\n")),
        "the page has\n{drawing}\nand frit check prints\n{shown}"
    );
}

#[test]
fn the_stacks_in_the_pages_of_composers_are_good() {
    let dir = tempfile::tempdir().unwrap();
    let pages = composers();
    assert!(pages.len() >= 8, "{pages:?}");
    for name in pages {
        std::fs::write(dir.path().join("stack.toml"), stack_of(&page(&name))).unwrap();
        let checked = good(dir.path(), &["check", "stack.toml"]);
        let kind = Path::new(&name).file_stem().unwrap().to_str().unwrap();
        assert!(checked.contains(kind) && checked.contains("iB"), "{name}: {checked}");
    }
}

#[test]
fn the_commands_in_the_pages_work() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    std::os::unix::fs::symlink(root().join("traces").canonicalize().unwrap(), d.join("traces")).unwrap();
    std::fs::write(d.join("tree.toml"), stack_of(&page("composition.md"))).unwrap();
    let record = page("composers/record.md");
    let (_, rec) = blocks(&record).into_iter().find(|(info, _)| *info == "toml").unwrap();
    std::fs::write(d.join("ssd.toml"), SSD).unwrap();
    std::fs::write(d.join("halo-over-ssd.toml"), [HALO, rec, SSD].concat()).unwrap();
    let mut ran = 0;
    for name in [vec!["composition.md".to_owned()], composers()].concat() {
        let text = page(&name);
        let lines = blocks(&text).into_iter().filter(|(info, _)| info.is_empty()).flat_map(|b| b.1.lines());
        for line in lines.filter_map(|l| l.strip_prefix("frit ")) {
            let words: Vec<&str> = line.split('#').next().unwrap().split_whitespace().collect();
            good(d, &words);
            ran += 1;
        }
    }
    assert_eq!(ran, 3, "commands in blocks");
    assert!(
        d.join("below.csv.zst").metadata().unwrap().len() > 1000,
        "a trace of the requests below the cache"
    );
}

#[test]
fn parameters_are_named_by_their_paths_or_by_their_keys() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    std::fs::write(d.join("tree.toml"), stack_of(&page("composition.md"))).unwrap();
    let small = ["media.nand-a.blocks_per_plane=16", "nand-b.blocks_per_plane=16", "write_us=500"];
    let sets = small.iter().flat_map(|set| ["--set", set]);
    let medium = ["--set", "media.nand-a.t_read=30 us"];
    good(d, &["check", "tree.toml"].into_iter().chain(medium).collect::<Vec<_>>());
    assert!(refused(d, &["check", "tree.toml", "--set", "a.nand.t_read=30 us"]).contains("a.nand"));
    good(d, &["create", "vol", "--stack", "tree.toml"].into_iter().chain(sets).collect::<Vec<_>>());
    assert_eq!(good(d, &["ctl", "vol", "set", "a.SSW=4K"]), "a.SSW: 2048 -> 4096\n");
    assert_eq!(good(d, &["ctl", "vol", "set", "write_us=700"]), "far.write_us: 500 -> 700\n");
    assert_eq!(good(d, &["ctl", "vol", "set", "write_us=700"]), "write_us: had this value already\n");
    // A key of the top layer alone.
    assert_eq!(good(d, &["ctl", "vol", "set", "threshold=0.5"]), "cache.threshold: 0.95 -> 0.5\n");
    let got: serde_json::Value =
        serde_json::from_str(&good(d, &["ctl", "vol", "get", "write_us", "--json"])).unwrap();
    assert_eq!((got[0]["key"].as_str(), got[0]["value"].as_str()), (Some("far.write_us"), Some("700")));
    for what in [&["get", "SSW"][..], &["set", "SSW=4K"]] {
        let e = refused(d, &[&["ctl", "vol"], what].concat());
        assert!(e.contains("'SSW' is a parameter of several layers; use a.SSW or b.SSW"), "{e}");
    }
    let e = refused(d, &["check", "tree.toml", "--set", "SSW=4K"]);
    assert!(e.contains("a.SSW or b.SSW"), "{e}");
    assert!(refused(d, &["ctl", "vol", "set", "far.SSW=4K"]).contains("unknown parameter 'far.SSW'"));
    let e = refused(d, &["ctl", "vol", "set", "write_us=1", "far.write_us=2"]);
    assert!(e.contains("far.write_us is given twice"), "{e}");
}
