//! How a PCM is divided for wear leveling: stripes, banks, ranks.

use super::WearConfig;
use frit_core::{Error, Result, size};

/// Stripes in banks in ranks. Our PCM knows channels and chips only, so ranks and banks are parameters: a bank
/// is a contiguous part of the device, as the memory controller of the HALO paper sees it (section IV: 512
/// stripes in a bank, 16 banks in a rank, 8 ranks in a device). Physical stripe numbers count through a bank
/// first, then through the banks of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Bytes in a stripe.
    pub stripe_bytes: u32,
    /// Ranks.
    pub ranks: u32,
    /// Banks in a rank.
    pub banks: u32,
    /// Stripes in a bank.
    pub bank_stripes: u32,
}

impl Shape {
    /// The largest that fits `bytes`, where each stripe takes `per_stripe` bytes on top for registers, and `head`
    /// bytes go off once. What is left over is not used.
    ///
    /// # Errors
    /// A stripe that is no power of two from 64 bytes to 1 GiB, no ranks or banks, or less than two stripes a
    /// bank.
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
            let why = format!("makes more than 2^31 stripes of {}; use larger ones", size::show(bytes));
            return Err(Error::param("stripe_bytes", stripe, why));
        }
        if bank_stripes < 2 {
            let why = format!(
                "{} of PCM are less than two stripes for each of {all_banks} banks: use smaller stripes, \
                 fewer banks or more PCM",
                size::show(bytes)
            );
            return Err(Error::param("stripe_bytes", stripe, why));
        }
        Ok(Shape {
            stripe_bytes: stripe,
            ranks: config.ranks,
            banks: config.banks,
            bank_stripes: bank_stripes as u32,
        })
    }

    /// The whole device as a single bank of two stripes, for one that nothing levels.
    pub(crate) fn whole(bytes: u64) -> Result<Shape> {
        let half = bytes / 2;
        if half == 0 {
            return Err(Error::param("PCM", bytes, "has too few bytes"));
        }
        let stripe_bytes = 1 << half.ilog2().min(30);
        let bank_stripes = (bytes / u64::from(stripe_bytes)) as u32;
        Ok(Shape { stripe_bytes, ranks: 1, banks: 1, bank_stripes })
    }

    /// Banks of all ranks.
    #[must_use]
    pub fn all_banks(&self) -> u32 {
        self.ranks * self.banks
    }

    /// Stripes of all banks.
    #[must_use]
    pub fn stripes(&self) -> u32 {
        self.all_banks() * self.bank_stripes
    }

    /// The physical stripe at a place in a bank of a rank.
    #[inline]
    #[must_use]
    pub fn at(&self, rank: u32, bank: u32, stripe: u32) -> u32 {
        (rank * self.banks + bank) * self.bank_stripes + stripe
    }

    /// The bank of a physical stripe, counted through all ranks.
    #[inline]
    #[must_use]
    pub fn bank_of(&self, stripe: u32) -> u32 {
        stripe / self.bank_stripes
    }
}
