//! Times of reads beside an independent model in Python (`scripts/models/nand_reads.py`): equal to
//! the nanosecond, request by request.

use crate::models::{has_python, root};
use std::process::Command;

const MODEL: &str = "scripts/models/nand_reads.py";

/// Overrides of the stack, workload and mode of the program, and options of the model.
const CASES: [[&str; 3]; 7] = [
    [
        ",media.nand.channels=1,media.nand.chips_per_channel=1",
        "rsize=2K --qd 4",
        "--depth 4 --channels 1 --units 1",
    ],
    [
        ",media.nand.channels=4,media.nand.chips_per_channel=1",
        "rsize=512..8K,align=512 --qd 8",
        "--depth 8 --channels 4 --units 4",
    ],
    [
        ",media.nand.channels=1,media.nand.chips_per_channel=4,media.nand.t_command=1us",
        "rsize=512..8K,align=512 --qd 8",
        "--depth 8 --channels 1 --chips 4 --units 4 --t-command 1000",
    ],
    [
        ",media.nand.channels=2,media.nand.chips_per_channel=2,media.nand.t_command=200ns",
        "rsize=2K..16K,rate=9000 --open",
        "--open --channels 2 --chips 2 --units 4 --t-command 200",
    ],
    [
        ",media.nand.channels=1,media.nand.chips_per_channel=1,media.nand.planes_per_die=4,media.nand.plane_ops=multi",
        "rsize=8K --qd 2",
        "--depth 2 --channels 1 --units 4 --planes multi",
    ],
    [
        ",media.nand.channels=1,media.nand.chips_per_channel=2,media.nand.planes_per_die=4,media.nand.plane_ops=multi,media.nand.t_command=300ns",
        "rsize=2K..16K --qd 8",
        "--depth 8 --channels 1 --chips 2 --units 8 --planes multi --t-command 300",
    ],
    [
        ",media.nand.channels=2,media.nand.chips_per_channel=1,media.nand.planes_per_die=2,media.nand.plane_ops=independent",
        "rsize=2K..16K,rate=5000 --open --qd 16",
        "--open --depth 16 --channels 2 --units 4",
    ],
];

#[test]
fn reads_take_the_times_of_the_model() {
    if !has_python() {
        return;
    }
    for [stack, workload, model] in CASES {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (generator, mode) = workload.split_once(' ').unwrap();
        let out = Command::new(env!("CARGO_BIN_EXE_frit"))
            .arg("run")
            .arg(format!("nand-only-bench,media.nand.blocks_per_plane=64{stack}"))
            .arg(format!("gen:uniform,count=500,read=1,{generator}"))
            .args(["--wrap", "--warm", "fill", "--quiet", "--requests"])
            .arg(file.path())
            .args(mode.split(' '))
            .output()
            .unwrap();
        assert!(out.status.success(), "{stack}: {}", String::from_utf8_lossy(&out.stderr));
        let out = Command::new("python3")
            .current_dir(root())
            .args(["-B", MODEL])
            .arg(file.path())
            .args(model.split(' '))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(
            out.status.success() && said.contains(" 0 differ") && said.starts_with("50"),
            "{stack} {workload}: {said}"
        );
    }
}
