//! Division of a PCM for wear leveling: stripes, banks, ranks.

use super::WearConfig;
use crate::numbers::PhysicalStripe;
use frit_core::convert::bounded_u32;
use frit_core::{Error, Result, size};

/// Division of a device into ranks, banks and stripes. The modelled PCM has channels and chips
/// only, so ranks and banks are parameters. A bank is a contiguous part of the device, as seen by
/// the memory controller of the HALO paper (section IV: 512 stripes in a bank, 16 banks in a rank,
/// 8 ranks in a device). Physical stripes are numbered through a bank first, then through the banks
/// of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Stripe size in bytes.
    pub stripe_bytes: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of banks in a rank.
    pub banks: u32,
    /// Number of stripes in a bank.
    pub bank_stripes: u32,
}

impl Shape {
    /// Returns the largest shape that fits `bytes`, where each stripe needs `per_stripe` additional
    /// bytes for registers, and `head` bytes are needed once. The remainder is not used.
    ///
    /// # Errors
    /// The stripe size is not a power of two from 64 bytes to 1 GiB, there are no ranks or banks,
    /// or a bank has fewer than two stripes.
    pub fn fit(config: &WearConfig, bytes: u64, per_stripe: u64, head: u64) -> Result<Shape> {
        let stripe = config.stripe_bytes;
        if !stripe.is_power_of_two() || !(64..=1 << 30).contains(&stripe) {
            let why = "has to be a power of two from 64 bytes to 1 GiB";
            return Err(Error::param("stripe_bytes", stripe, why));
        }
        for (key, value) in [("ranks", config.ranks), ("banks", config.banks)] {
            if value == 0 || value > 4096 {
                return Err(Error::param(key, value, "has to be 1 to 4096"));
            }
        }
        let all_banks = u64::from(config.ranks) * u64::from(config.banks);
        let bank_stripes = bytes.saturating_sub(head) / (all_banks * (u64::from(stripe) + per_stripe));
        if bank_stripes * all_banks > 1 << 31 {
            // Stripe numbers have 32 bits, and `Feistel` permutes at most 2^31 of them.
            let why = format!("makes more than 2^31 stripes of {}; use larger ones", size::format(bytes));
            return Err(Error::param("stripe_bytes", stripe, why));
        }
        if bank_stripes < 2 {
            let why = format!(
                "{} of PCM are less than two stripes for each of {all_banks} banks: use smaller stripes, \
                 fewer banks or more PCM",
                size::format(bytes)
            );
            return Err(Error::param("stripe_bytes", stripe, why));
        }
        Ok(Shape {
            stripe_bytes: stripe,
            ranks: config.ranks,
            banks: config.banks,
            bank_stripes: bounded_u32(bank_stripes),
        })
    }

    /// Shape of a device without leveling: a single bank of two or more stripes.
    pub(crate) fn whole(bytes: u64) -> Result<Shape> {
        let half = bytes / 2;
        if half == 0 {
            return Err(Error::param("PCM", bytes, "has too few bytes"));
        }
        let stripe_bytes = 1 << half.ilog2().min(30);
        let bank_stripes = bounded_u32(bytes / u64::from(stripe_bytes));
        Ok(Shape { stripe_bytes, ranks: 1, banks: 1, bank_stripes })
    }

    /// Number of banks in all ranks.
    #[must_use]
    pub fn all_banks(&self) -> u32 {
        self.ranks * self.banks
    }

    /// Number of stripes in all banks.
    #[must_use]
    pub fn stripes(&self) -> u32 {
        self.all_banks() * self.bank_stripes
    }

    /// Physical stripe by rank, bank and position in the bank.
    #[inline]
    #[must_use]
    pub fn at(&self, rank: u32, bank: u32, stripe: u32) -> PhysicalStripe {
        PhysicalStripe((rank * self.banks + bank) * self.bank_stripes + stripe)
    }

    /// Bank of a physical stripe, numbered through all ranks.
    #[inline]
    #[must_use]
    pub fn bank_of(&self, stripe: PhysicalStripe) -> u32 {
        stripe.0 / self.bank_stripes
    }
}
