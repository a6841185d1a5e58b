//! Times of reads and writes with types of pages and suspensions beside an independent model in
//! Python (`scripts/models/nand_cells.py`): equal to the nanosecond, request by request.

use crate::models::{has_python, root};
use std::process::Command;

const MODEL: &str = "scripts/models/nand_cells.py";

const SUSPEND: &str = "suspend = 'program-erase'\nt_suspend_program = '5 us'\nt_suspend_erase = '20 us'\n\
                       t_resume = '3 us'\n";
const SUSPEND_OPTIONS: &str =
    "--suspend program-erase --t-suspend-program 5000 --t-suspend-erase 20000 --t-resume 3000";
const TYPES: &str =
    "cell = 'tlc'\nt_read = ['50 us', '75 us', '110 us']\nt_prog = ['0.5 ms', '1 ms', '2 ms']\n";
const TYPES_OPTIONS: &str = "--cell tlc --t-read 50000,75000,110000 --t-prog 500000,1000000,2000000";

/// Runs a stack with these keys of NAND and of the engine, and compares it with the model.
fn compare(nand: &str, engine: &str, workload: &str, options: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (stack, file) = (folder.path().join("stack.toml"), folder.path().join("requests.csv"));
    let text = format!(
        "[media.nand]\nprofile = 'slc-k9-2016'\nblocks_per_plane = 64\n{nand}\n[hfsl]\nFUSION_METHOD = 'none'\n\
         over_provisioning = 0.28\ngc = 'greedy'\nwear_leveling = 'none'\nheat = 'off'\n[engine]\n{engine}\n"
    );
    std::fs::write(&stack, text).unwrap();
    let (generator, mode) = workload.split_once(' ').unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_frit"))
        .arg("run")
        .arg(&stack)
        .arg(format!("gen:uniform,count=500,align=2K,{generator}"))
        .args(["--wrap", "--warm", "fill", "--quiet", "--requests"])
        .arg(&file)
        .args(mode.split(' '))
        .output()
        .unwrap();
    assert!(out.status.success(), "{nand}: {}", String::from_utf8_lossy(&out.stderr));
    let out = Command::new("python3")
        .current_dir(root())
        .args(["-B", MODEL, "--requests"])
        .arg(&file)
        .args(options.split_whitespace())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success() && said.contains(" 0 differ") && said.starts_with("50"),
        "{nand} {engine} {workload}: {said}{}",
        String::from_utf8_lossy(&out.stderr)
    );
}

#[test]
fn requests_take_the_times_of_the_model() {
    if !has_python() {
        return;
    }
    // One unit of 64 blocks, of which the volume takes 2950 pages: the model knows the place of each
    // write.
    let one = "channels = 1\nchips_per_channel = 1\n";
    for (engine, scheduler) in [
        ("kind = 'in-order'", "fifo"),
        ("kind = 'event'", "fifo"),
        ("scheduler = 'read-first'", "read-first"),
    ] {
        let options = format!("--pages 2950 --scheduler {scheduler} {SUSPEND_OPTIONS}");
        compare(
            &format!("{one}{SUSPEND}"),
            engine,
            "read=0.7,size=2K --qd 4",
            &format!("{options} --depth 4"),
        );
        compare(
            &format!("{one}{SUSPEND}{TYPES}t_command = '300 ns'\nmax_suspends = 2\n"),
            engine,
            "read=0.7,size=2K..8K --qd 8",
            &format!("{options} {TYPES_OPTIONS} --depth 8 --t-command 300 --max-suspends 2"),
        );
        compare(
            &format!("{one}{TYPES}{SUSPEND}suspend_min_program = '0.4 ms'\npage_order = 'word-line'\n"),
            engine,
            "read=0.8,size=2K,rate=3000 --open",
            &format!("{options} {TYPES_OPTIONS} --open --suspend-min-program 400000 --page-order word-line"),
        );
    }
    // Reads of pages of all types, of several units on two channels.
    let four = format!("channels = 2\nchips_per_channel = 2\n{TYPES}");
    compare(
        &four,
        "",
        "read=1,rsize=2K..16K --qd 8",
        &format!("--pages 11800 --depth 8 --channels 2 --units 4 {TYPES_OPTIONS}"),
    );
}
