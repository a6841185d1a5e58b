//! Metrics of wear leveling, and partitions of the logical space.

use super::{Leveled, Leveler};
use crate::life::{self, WearLifetime};
use frit_core::convert::to_f64;
use frit_core::visible::{MediumView, Metric};
use frit_core::{Op, Result};
use frit_media::Partition;

impl Leveled {
    /// Allocates a partition of `bytes` bytes from the free logical space: see
    /// [`Pcm::add_partition`](frit_media::Pcm::add_partition).
    ///
    /// # Errors
    /// As for `Pcm::add_partition`.
    pub fn add_partition(&mut self, name: &'static str, bytes: u64, align: u64) -> Result<Partition> {
        self.pcm.add_partition_within(self.bytes, name, bytes, align)
    }

    /// End of the allocated partitions: the space after it is free.
    #[must_use]
    pub fn partitioned_bytes(&self) -> u64 {
        self.pcm.partitioned_bytes()
    }

    /// Returns a partition by its name.
    #[must_use]
    pub fn partition(&self, name: &str) -> Option<Partition> {
        self.pcm.partition(name)
    }

    /// All partitions, in order of logical address.
    #[must_use]
    pub fn partitions(&self) -> &[(&'static str, Partition)] {
        self.pcm.partitions()
    }

    /// Number of writes to the line that currently holds a logical address, which must be in range.
    #[must_use]
    pub fn wear_of(&self, at: u64) -> u32 {
        self.pcm.wear_of(self.physical(at))
    }

    /// View of the device, with the geometry of the leveling added.
    #[must_use]
    pub fn view(&self) -> MediumView {
        let mut view = self.pcm.view();
        if !self.passthrough {
            // Partitions are ranges of logical addresses, which move.
            view.wear.areas.clear();
            view.geometry.extend([
                ("wear_logical_bytes", self.bytes),
                ("wear_stripe_bytes", u64::from(self.shape.stripe_bytes)),
                ("wear_regions", u64::from(self.leveler.regions())),
                ("wear_region_stripes", u64::from(self.leveler.region_stripes())),
                ("wear_register_bytes", self.area.bytes()),
                ("wear_unused_bytes", self.unused_bytes()),
            ]);
        }
        view
    }

    /// Number of line writes in each bank.
    #[must_use]
    pub fn bank_writes(&self) -> Vec<u64> {
        let line = u64::from(self.pcm.geometry().line_bytes);
        let bank = u64::from(self.shape.bank_stripes) * u64::from(self.shape.stripe_bytes) / line;
        (0..u64::from(self.shape.all_banks()))
            .map(|b| (b * bank..(b + 1) * bank).map(|l| u64::from(self.pcm.wear_of(l * line))).sum())
            .collect()
    }

    /// Evenness of wear and expected lifetime of the device, over all lines including registers.
    /// Refreshes cause wear, but are not bytes written by the host.
    #[must_use]
    pub fn life(&self) -> WearLifetime {
        let line = u64::from(self.pcm.geometry().line_bytes);
        let lines = self.pcm.bytes() / line;
        let most = (0..lines).map(|l| self.pcm.wear_of(l * line)).max().unwrap_or(0);
        let counts = self.pcm.counts();
        let all = counts.of(Op::PcmWrite).bytes + counts.of(Op::PcmWriteClean).bytes;
        let own = self.move_bytes();
        WearLifetime::new(
            &self.bank_writes(),
            all - own.min(all),
            u64::from(most),
            self.pcm.config().endurance,
        )
    }

    /// Bytes written by moves and register updates.
    #[must_use]
    pub fn move_bytes(&self) -> u64 {
        self.pcm.counts().get(Op::PcmWrite, frit_core::Cause::WearLevel).bytes
    }

    /// Number of moves since this object was created.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Metrics for reports.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        let life = self.life();
        let metric = |name, value, unit, help| Metric { name, value, unit, help };
        vec![
            metric("wear_moves", to_f64(self.moves), "", "stripes that wear leveling moved"),
            metric("wear_move_bytes", to_f64(self.move_bytes()), "B", "PCM written by wear leveling itself"),
            metric("wear_life_rate", life.rate, "", life::RATE_HELP),
            metric(
                "wear_bank_max_over_mean",
                life.max_over_mean,
                "",
                "writes of the most worn bank over the mean",
            ),
            metric(
                "wear_lifetime_bytes",
                life.host_until_worn.unwrap_or(0.0),
                "B",
                "bytes that the host will have written when the first line passes its endurance; 0: unknown",
            ),
        ]
    }
}
