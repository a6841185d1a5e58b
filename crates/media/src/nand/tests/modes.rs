//! Tests of blocks that change between one bit a cell and all bits.

use super::*;
use frit_core::{Cmd, Error, Nanos, Op, Sink, Tok};

/// A device of 12 blocks of 4 pages, or of 2 with one bit a cell.
fn changing() -> NandConfig {
    let mut c = config();
    c.geometry.slc = SlcArea { blocks: 0, pages: 2, dynamic: true };
    let times = PageTimes { read: Nanos(3), program: Nanos(7) };
    c.slc = Some(SlcMode { times, endurance: 10_000 });
    c
}

fn erase_as(n: &mut Nand, block: u32, one_bit: bool) -> Result<Tok> {
    n.erase_as(&mut Sink::untimed(), BlockId(block), one_bit, Cause::Gc, Tok::DONE)
}

#[test]
fn an_erase_sets_the_mode_of_a_block_and_another_keeps_it() {
    let mut n = in_memory(changing());
    assert_eq!((n.is_one_bit(BlockId(1)), n.pages_in(BlockId(1))), (false, 4));
    erase_as(&mut n, 1, true).unwrap();
    assert_eq!((n.is_one_bit(BlockId(1)), n.pages_in(BlockId(1))), (true, 2));
    program(&mut n, 4, 1).unwrap();
    program(&mut n, 5, 2).unwrap();
    assert!(matches!(program(&mut n, 6, 3), Err(Error::Rule { .. })));
    erase(&mut n, 1).unwrap();
    assert!(n.is_one_bit(BlockId(1)));
    erase_as(&mut n, 1, false).unwrap();
    (4..8).for_each(|page| {
        program(&mut n, page, 4).unwrap();
    });
    // The two erases that ended uses with one bit a cell.
    assert_eq!((n.erases(BlockId(1)), n.slc_erases(BlockId(1))), (3, 2));
    let mut fixed = in_memory(config());
    assert!(matches!(erase_as(&mut fixed, 1, true), Err(Error::Rule { .. })));
}

#[test]
fn modes_and_their_wear_are_in_the_store() {
    let mut n = in_memory(changing());
    for _ in 0..300 {
        erase_as(&mut n, 2, true).unwrap();
    }
    erase_as(&mut n, 3, true).unwrap();
    erase_as(&mut n, 3, false).unwrap();
    program(&mut n, 8, 9).unwrap();
    let again = on(changing(), n.into_store());
    assert_eq!((again.is_one_bit(BlockId(2)), again.is_one_bit(BlockId(3))), (true, false));
    assert_eq!((again.erases(BlockId(2)), again.slc_erases(BlockId(2))), (300, 299));
    assert_eq!((again.next_page(BlockId(2)), again.slc_erases(BlockId(3))), (1, 1));
    // A device whose blocks do not change their modes is another one.
    let mut other = changing();
    other.geometry.slc.dynamic = false;
    assert!(Nand::new(other, again.into_store(), &mut Hardware::new()).is_err());
}

#[test]
fn commands_to_a_block_with_one_bit_a_cell_have_its_latencies() {
    let model = changing().timing_model();
    let array = |op, mode: u64| {
        let unit = UnitId(0);
        let cmd = Cmd { addr: 5 | mode, len: 512, hazard: 1, unit, op, cause: Cause::Host };
        model.clone().phases(&cmd, Nanos::ZERO).array
    };
    assert_eq!((array(Op::NandRead, 0), array(Op::NandRead, Cmd::ONE_BIT)), (Nanos(10), Nanos(3)));
    assert_eq!((array(Op::NandProgram, 0), array(Op::NandProgram, Cmd::ONE_BIT)), (Nanos(20), Nanos(7)));
    assert_eq!((array(Op::NandErase, 0), array(Op::NandErase, Cmd::ONE_BIT)), (Nanos(30), Nanos(30)));
}

#[test]
fn blocks_with_one_bit_a_cell_have_their_own_endurance() {
    // Erases until a block fails: of 1 000 in one mode, of 10 000 in the other.
    let life = |one_bit: bool| {
        let mut c = changing();
        c.geometry.blocks_per_plane = 40;
        let mut n = on(c, crate::NoStore);
        let mut lives = Vec::new();
        for block in 0..n.geometry().blocks() {
            let erases = (1..).find(|_| erase_as(&mut n, block, one_bit).is_err()).unwrap();
            lives.push(f64::from(erases));
        }
        lives.iter().sum::<f64>() / lives.len() as f64
    };
    // Beyond the endurance a block lives for 125 cycles more on the average (`NandFaults::wears_out`); with
    // one bit a cell, ten erases are a cycle and each meets its chance to fail.
    let (all, one) = (life(false), life(true));
    assert!((all - 1_125.0).abs() < 20.0, "{all}");
    assert!((10_000.0..11_300.0).contains(&one), "{one}");
    // Half of each life.
    let mut n = on(changing(), crate::NoStore);
    for _ in 0..5_000 {
        erase_as(&mut n, 0, true).unwrap();
    }
    let rest = (1..).find(|_| erase_as(&mut n, 0, false).is_err()).unwrap();
    assert!((500..800).contains(&rest), "{rest}");
}
