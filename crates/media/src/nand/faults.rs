//! Fault model of NAND: factory bad blocks, failing programs and erases, wear-out.

use frit_core::split_mix::mix;
use frit_core::{Error, Result};

/// Injected faults of a device. Whether a page or block fails depends only on the seed, its address
/// and its erase count, so that a run can be repeated, and the same commands in another order meet
/// the same faults.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct NandFaults {
    /// Fraction of blocks that are bad from the factory.
    pub factory_bad: f64,
    /// Fraction of programs that fail.
    pub program_fail: f64,
    /// Fraction of erases that fail, of blocks within their endurance.
    pub erase_fail: f64,
    /// Seed that selects the failing pages and blocks.
    pub seed: u64,
}

/// Spread of the life of blocks beyond their endurance, as a fraction of the endurance; see
/// [`NandFaults::wears_out`].
const WEAR_SPREAD: f64 = 0.1;

const FACTORY: u64 = 1;
const PROGRAM: u64 = 2;
const ERASE: u64 = 3;
const WEAR: u64 = 4;

impl NandFaults {
    /// Checks that the fractions are valid.
    ///
    /// # Errors
    /// The first fraction that is not in the range from 0 up to, but not including, 1.
    pub fn check(&self) -> Result<()> {
        for (key, value) in [
            ("factory_bad", self.factory_bad),
            ("program_fail", self.program_fail),
            ("erase_fail", self.erase_fail),
        ] {
            if !(0.0..1.0).contains(&value) {
                return Err(Error::param(key, value, "must be a fraction of at least 0 and less than 1"));
            }
        }
        Ok(())
    }

    /// Returns `true` if programs or erases can fail before wear-out.
    pub(super) fn injects(&self) -> bool {
        self.program_fail > 0.0 || self.erase_fail > 0.0
    }

    /// Returns a number in [0, 1) that depends on the seed, the kind of fault, the address and the
    /// erase count.
    fn draw(&self, kind: u64, place: u32, age: u32) -> f64 {
        let key = u64::from(place) | u64::from(age) << 32;
        let h = mix(mix(self.seed ^ mix(kind)) ^ key);
        // The upper 53 bits, which a double represents exactly.
        (h >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns `true` if a block is bad from the factory.
    pub(super) fn is_factory_bad(&self, block: u32) -> bool {
        self.factory_bad > 0.0 && self.draw(FACTORY, block, 0) < self.factory_bad
    }

    /// Returns `true` if the program of this page fails after `erases` erases of its block.
    pub(super) fn program_fails(&self, page: u32, erases: u32) -> bool {
        self.draw(PROGRAM, page, erases) < self.program_fail
    }

    /// Returns `true` if the `erases`-th erase of a block fails by chance.
    pub(super) fn erase_fails(&self, block: u32, erases: u32) -> bool {
        self.draw(ERASE, block, erases) < self.erase_fail
    }

    /// Returns `true` if the `erases`-th erase of a block fails because of wear.
    ///
    /// An erase within the endurance E never fails for this reason. Beyond it, an erase fails with
    /// probability (n − E) / (w·E)², w = [`WEAR_SPREAD`]: the hazard grows linearly, so that the
    /// number of erases that a block survives beyond E has a Rayleigh distribution with its mode at
    /// w·E (mean 1.25 w·E). This model is our own: data sheets state E and nothing beyond it.
    pub(super) fn wears_out(&self, block: u32, erases: u32, endurance: u32) -> bool {
        let width = f64::from(endurance) * WEAR_SPREAD;
        let hazard = f64::from(erases - endurance) / (width * width).max(1.0);
        self.draw(WEAR, block, erases) < hazard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_met_and_seeds_differ() {
        let f = NandFaults { program_fail: 0.01, factory_bad: 0.02, erase_fail: 0.005, seed: 7 };
        let n = 200_000;
        let rate = |hits: usize| hits as f64 / f64::from(n);
        let programs: Vec<bool> = (0..n).map(|p| f.program_fails(p, 3)).collect();
        assert!((rate(programs.iter().filter(|&&b| b).count()) - 0.01).abs() < 0.001);
        assert!((rate((0..n).filter(|&b| f.is_factory_bad(b)).count()) - 0.02).abs() < 0.0015);
        assert!((rate((0..n).filter(|&b| f.erase_fails(b, 1)).count()) - 0.005).abs() < 0.0008);
        let other = NandFaults { seed: 8, ..f };
        assert_eq!(programs, (0..n).map(|p| f.program_fails(p, 3)).collect::<Vec<_>>());
        assert_ne!(programs, (0..n).map(|p| other.program_fails(p, 3)).collect::<Vec<_>>());
    }

    #[test]
    fn blocks_live_beyond_their_endurance_as_stated() {
        let (f, endurance) = (NandFaults::default(), 1000);
        let life = |b| (endurance + 1..).find(|&n| f.wears_out(b, n, endurance)).unwrap() - endurance;
        let lives: Vec<u32> = (0..4000).map(life).collect();
        let mean = lives.iter().map(|&l| f64::from(l)).sum::<f64>() / 4000.0;
        // Rayleigh with sigma = 100: mean 125.3.
        assert!((mean - 125.3).abs() < 4.0, "{mean}");
    }

    #[test]
    fn fractions_beyond_one_are_refused() {
        let e = NandFaults { erase_fail: 1.5, ..NandFaults::default() }.check().unwrap_err().to_string();
        assert!(e.contains("erase_fail = 1.5"), "{e}");
        assert!(NandFaults { factory_bad: f64::NAN, ..NandFaults::default() }.check().is_err());
    }
}
