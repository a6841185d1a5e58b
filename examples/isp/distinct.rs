//! Estimates the number of distinct lines by HyperLogLog with 4096 registers (standard error 1.6 %).
//!
//! The algorithm is that of Flajolet, Fusy, Gandouet and Meunier (*HyperLogLog*, AofA 2007), with
//! linear counting for small numbers. The hash is 64-bit FNV-1a with the finalizer of MurmurHash3.
//! Parts of the file are processed in parallel.

mod frit;

use frit::{CONTINUE, State, bytes, emit};

const BITS: u32 = 12;
const REGISTERS: usize = 1 << BITS;

static RANKS: State<[u8; REGISTERS]> = State::new([0; REGISTERS]);

fn hash(line: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in line {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

#[unsafe(no_mangle)]
extern "C" fn scan_lines(address: *const u8, len: usize, _offset: u64) -> i32 {
    let ranks = RANKS.get();
    for line in bytes(address, len).split_inclusive(|byte| *byte == b'\n') {
        let hash = hash(line.strip_suffix(b"\n").unwrap_or(line));
        let register = (hash >> (64 - BITS)) as usize;
        let rank = (hash << BITS).leading_zeros().min(64 - BITS) as u8 + 1;
        ranks[register] = ranks[register].max(rank);
    }
    CONTINUE
}

#[unsafe(no_mangle)]
extern "C" fn partial() {
    emit(RANKS.get());
}

#[unsafe(no_mangle)]
extern "C" fn merge(address: *const u8, len: usize) {
    for (rank, other) in RANKS.get().iter_mut().zip(bytes(address, len)) {
        *rank = (*rank).max(*other);
    }
}

#[unsafe(no_mangle)]
extern "C" fn finish() {
    let ranks = RANKS.get();
    let m = REGISTERS as f64;
    let sum: f64 = ranks.iter().map(|rank| 1.0 / (1_u64 << rank) as f64).sum();
    let estimate = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
    let zeros = ranks.iter().filter(|rank| **rank == 0).count();
    let small = estimate <= 2.5 * m && zeros > 0;
    let estimate = if small { m * (m / zeros as f64).ln() } else { estimate };
    emit(format!("{estimate:.0}\n").as_bytes());
}
