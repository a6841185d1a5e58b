//! Times of commands beside an independent model in Python (`scripts/models/nand_cells.py`), with
//! types of pages and suspensions: equal to the nanosecond, command by command.

use crate::common::*;
use frit_core::{Cause, Cmd, Nanos, Op, Sink};
use frit_engine::sched::{Fifo, ReadFirst};
use frit_engine::{Event, InOrder, LoopMode, SinkUsage};
use frit_media::{NandSuspend, SuspendTimes};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

const UNITS: u16 = 4;
const PAGES: u64 = 16;

/// Returns random commands, most of them reads, with times of arrival.
fn commands(seed: u64, count: usize, gap: u64) -> Vec<(u64, Cmd)> {
    let mut state = seed;
    let mut random = |below: u64| {
        // SplitMix64 (Steele et al., OOPSLA 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    };
    let mut at = 0;
    // An open loop counts times from the first arrival.
    let one = |i| {
        at += if i == 0 { 0 } else { random(gap) };
        let op = [Op::NandRead, Op::NandProgram, Op::NandErase]
            [[0, 0, 0, 0, 0, 0, 1, 1, 1, 2][random(10) as usize]];
        let (unit, block, offset) = (random(u64::from(UNITS)) as u16, random(8) as u32, random(PAGES));
        (at, Cmd { addr: u64::from(block) * PAGES + offset, ..page(op, unit, block) })
    };
    (0..count).map(one).collect()
}

/// Returns the times of the model.
fn model(commands: &[(u64, Cmd)], options: &str) -> Vec<u64> {
    let mut input = String::new();
    for (at, cmd) in commands {
        let op = match cmd.op {
            Op::NandRead => 'R',
            Op::NandProgram => 'P',
            _ => 'E',
        };
        writeln!(input, "{at},{},{op},{},{}", cmd.unit.0, cmd.hazard, cmd.addr % PAGES).unwrap();
    }
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut child = Command::new("python3")
        .current_dir(root)
        .args(["-B", "scripts/models/nand_cells.py"])
        .args(options.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{options}");
    String::from_utf8(out.stdout).unwrap().lines().map(|l| l.parse().unwrap()).collect()
}

/// Returns the options of the model for these rules.
fn options(rules: &NandSuspend) -> String {
    let program = rules.program.unwrap_or_default();
    format!(
        "--units {UNITS} --suspend {} --t-suspend-program {} --suspend-min-program {} --t-suspend-erase {} \
         --suspend-min-erase {} --t-resume {} --max-suspends {} --max-suspend-reads {}",
        if rules.program.is_some() { "program-erase" } else { "erase" },
        program.suspend.0,
        program.min_remaining.0,
        rules.erase.suspend.0,
        rules.erase.min_remaining.0,
        rules.resume.0,
        rules.max_suspends,
        rules.max_reads
    )
}

fn ends(engine: &mut Sink, mode: LoopMode, commands: &[(u64, Cmd)]) -> Vec<u64> {
    let requests: Vec<Request> = commands.iter().map(|&(at, cmd)| Request::at(at, &[cmd])).collect();
    run(engine, mode, &requests).0.iter().map(|t| t.acknowledged.0).collect()
}

#[test]
fn commands_end_at_the_times_of_the_model() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: no python3");
        return;
    }
    let times = |suspend, min| SuspendTimes { suspend: Nanos(suspend), min_remaining: Nanos(min) };
    let few = NandSuspend { max_suspends: 2, max_reads: 3, resume: Nanos(7_001), ..SUSPEND };
    let late = NandSuspend { program: Some(times(11_003, 90_000)), erase: times(0, 300_000), ..SUSPEND };
    let erase = NandSuspend { program: None, ..SUSPEND };
    let open = LoopMode::Open { speed: 1.0, depth: None };
    let types = TYPES.map(|(read, program)| (read.to_string(), program.to_string()));
    let types = format!(
        "--cell tlc --pages-per-block {PAGES} --t-read {} --t-prog {}",
        types.each_ref().map(|t| t.0.clone()).join(","),
        types.each_ref().map(|t| t.1.clone()).join(",")
    );
    let mut suspensions = 0;
    for (seed, rules) in [SUSPEND, few, late, erase].into_iter().enumerate() {
        let modes = [
            (open, "--open"),
            (LoopMode::Closed { depth: 3 }, "--depth 3"),
            (LoopMode::Closed { depth: 24 }, "--depth 24"),
        ];
        let devices = [([0, 0, 0, 0], true), ([0, 1, 0, 1], false), ([0, 1, 2, 3], true)];
        for (i, (mode, loop_options)) in modes.into_iter().enumerate() {
            let (channels, typed) = devices[(seed + i) % devices.len()];
            let list = commands(seed as u64 * 100, 300, 260_000);
            let hw = if typed {
                nand_typed(&channels, Some(rules))
            } else {
                nand_suspending(&channels, rules, 1_000)
            };
            let device = if typed { types.as_str() } else { "--t-command 1000" };
            let count = channels.iter().max().unwrap() + 1;
            let options = format!("{} {loop_options} --channels {count} {device}", options(&rules));
            let want = model(&list, &options);
            let mut in_order = Sink::new(InOrder::new(&hw));
            assert_eq!(ends(&mut in_order, mode, &list), want, "in-order {options}");
            assert_eq!(ends(&mut Sink::new(Event::new(&hw, Fifo)), mode, &list), want, "event {options}");
            let want = model(&list, &format!("{options} --scheduler read-first"));
            let mut event = Sink::new(Event::new(&hw, ReadFirst::default()));
            assert_eq!(ends(&mut event, mode, &list), want, "read-first {options}");
            suspensions += [Op::NandProgram, Op::NandErase]
                .map(|op| event.usage().unwrap().suspensions(op, Cause::Host))
                .iter()
                .sum::<u64>();
        }
    }
    assert!(suspensions > 500, "{suspensions}");
}
