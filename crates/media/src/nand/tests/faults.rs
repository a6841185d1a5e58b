//! Tests of injected faults: factory bad blocks, failing programs and erases, wear-out.

use super::*;
use crate::NoStore;
use frit_core::{Error, Op};

fn faulty(seed: u64) -> NandConfig {
    let mut c = config();
    c.geometry.blocks_per_plane = 500;
    c.faults = NandFaults { factory_bad: 0.03, program_fail: 0.05, erase_fail: 0.04, seed };
    c
}

/// Returns the pages that fail to program, the blocks that fail to erase over three rounds, and the
/// number of factory bad blocks.
fn run(mut n: Nand) -> (Vec<u32>, Vec<u32>, u32) {
    let (mut programs, mut erases) = (Vec::new(), Vec::new());
    let bad = n.bad_blocks();
    for _ in 0..3 {
        for b in 0..n.geometry().blocks() {
            if n.is_bad(BlockId(b)) {
                continue;
            }
            match erase(&mut n, b) {
                Ok(_) => {}
                Err(Error::EraseFailed { block }) => {
                    erases.push(block);
                    assert!(matches!(program(&mut n, 4 * b + 3, 1), Err(Error::Rule { .. })));
                    n.retire(BlockId(b));
                    continue;
                }
                other => panic!("{other:?}"),
            }
            for p in 4 * b..4 * b + 4 {
                let before = n.next_page(BlockId(b));
                match program(&mut n, p, 1) {
                    Ok(_) => {}
                    Err(Error::ProgramFailed { ppn }) => programs.push(ppn),
                    other => panic!("{other:?}"),
                }
                assert_eq!(n.next_page(BlockId(b)), before + 1, "a failed program uses its page up");
            }
        }
    }
    let given = n.counts().of(Op::NandProgram).commands;
    assert!(given > 20_000, "failed programs are commands: {given}");
    (programs, erases, bad)
}

#[test]
fn faults_come_at_their_rates_and_depend_on_the_seed_alone() {
    let (programs, erases, bad) = run(on(faulty(1), NoStore));
    assert!((850..1450).contains(&programs.len()), "5 % of 23 000: {}", programs.len());
    assert!((150..330).contains(&erases.len()), "4 % of 5 700: {}", erases.len());
    assert!((30..95).contains(&bad), "3 % of 2 000: {bad}");
    assert_eq!(run(in_memory(faulty(1))), (programs.clone(), erases, bad));
    assert_ne!(run(on(faulty(2), NoStore)).0, programs);
}

#[test]
fn a_page_whose_program_failed_says_so() {
    let mut c = config();
    c.faults.program_fail = 0.5;
    let mut n = in_memory(c);
    let failed = (0..48).find(|&p| program(&mut n, p, 1).is_err()).unwrap();
    let e = read(&mut n, failed).unwrap_err().to_string();
    assert!(e.contains(&format!("at {failed} is damaged: its program had failed")), "{e}");
    assert!(n.spare(Ppn(failed)).is_err());
}

#[test]
fn a_failed_erase_leaves_the_data_and_forbids_programs() {
    let mut c = config();
    c.faults.erase_fail = 0.5;
    let mut n = in_memory(c);
    let block = (0..12u32).find(|&b| {
        program(&mut n, 4 * b, b as u8).unwrap();
        erase(&mut n, b).is_err()
    });
    let block = block.unwrap();
    assert_eq!(read(&mut n, 4 * block).unwrap(), [block as u8; PAGE]);
    assert!(program(&mut n, 4 * block + 1, 1).unwrap_err().to_string().contains("erase failed"));
    // A later erase may succeed, and makes the block usable again.
    while erase(&mut n, block).is_err() {}
    program(&mut n, 4 * block, 9).unwrap();
}

#[test]
fn blocks_wear_out_beyond_their_endurance_only() {
    let mut c = config();
    c.endurance = 200;
    let mut n = on(c, NoStore);
    for _ in 0..200 {
        erase(&mut n, 0).unwrap();
    }
    let more = (1..).find(|_| erase(&mut n, 0).is_err()).unwrap();
    // Rayleigh with sigma 20: one block in a hundred thousand survives more than 96 further erases.
    assert!(more < 100, "{more}");
}
