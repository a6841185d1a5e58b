//! Recognition of the units of sizes and addresses of a DiskSim ASCII file from its head.
//!
//! Sequential streams show the units: a request begins where one of the last few requests on its
//! device ended. That end depends on the units, so the units under which more requests continue
//! another one are the right ones. If no units are clearly ahead, sizes that are all multiples of 8
//! are assumed to be sectors (as pages, all sizes would be multiples of 32 KiB, which is unlikely).
//! Otherwise sectors are assumed.
//!
//! Files with byte addresses and byte sizes are in circulation too. Streams do not distinguish them
//! from sectors: both columns have one unit. Bytes show as sizes that are all multiples of 512. In
//! sectors, such sizes would be multiples of 256 KiB, which real requests rarely are, and the wrong
//! reading is wrong by a factor of 512. So these files are refused until the user states the unit.

use super::Head;
use super::disksim_units::{SampleRow, rows};
use crate::options::SizeUnit;
use crate::reading::FactSource;
use crate::{Error, Result};
use frit_core::SECTOR_BYTES;

/// Maximum distance, in requests, between a request and the one that it continues. It must be less
/// than 8: in a plain stream of requests of equal size in sectors, the eighth request back, if
/// counted in pages, ends exactly at the current one.
const WINDOW: usize = 7;
/// Number of continuations that count as evidence.
const ENOUGH: u32 = 4;

/// Units of sizes and addresses, and the source of each.
pub(super) struct SpaceUnits {
    pub(super) size: SizeUnit,
    pub(super) size_source: FactSource,
    pub(super) address: SizeUnit,
    pub(super) address_source: FactSource,
}

/// Returns the units of sizes and addresses: those that the user stated, the others recognised.
///
/// # Errors
/// The columns may be sectors or bytes, and the user stated neither.
pub(super) fn space(
    head: &Head<'_>,
    size: Option<SizeUnit>,
    address: Option<SizeUnit>,
) -> Result<SpaceUnits> {
    let sample = Sample { rows: rows(head) };
    let (size, size_source, address, address_source) = match (size, address) {
        (Some(s), Some(a)) => (s, FactSource::Stated, a, FactSource::Stated),
        (Some(s), None) => {
            let (a, how) = sample.address(s);
            (s, FactSource::Stated, a, how)
        }
        (None, Some(a)) => {
            let (s, how) = sample.size(a);
            (s, how, a, FactSource::Stated)
        }
        (None, None) => sample.both()?,
    };
    Ok(SpaceUnits { size, size_source, address, address_source })
}

struct Sample<'a> {
    rows: Vec<SampleRow<'a>>,
}

/// Returns `true` if `n` continuations are evidence against `other` continuations.
fn outweighs(n: u32, other: u32) -> bool {
    n >= ENOUGH && n > 2 * other
}

impl Sample<'_> {
    /// Counts the requests that continue one of the last few on their device, under these units.
    fn continued(&self, size: SizeUnit, address: SizeUnit) -> u32 {
        let (size, address) = (u64::from(size.0), u64::from(address.0));
        let end = |r: &SampleRow<'_>| r.size.checked_mul(size)?.checked_add(r.address.checked_mul(address)?);
        let follows = |(i, r): (usize, &SampleRow<'_>)| {
            let start = r.address.checked_mul(address);
            let before = &self.rows[i.saturating_sub(WINDOW)..i];
            start.is_some() && before.iter().any(|b| b.dev == r.dev && end(b) == start)
        };
        let n = self.rows.iter().enumerate().filter(|&row| follows(row)).count();
        u32::try_from(n).unwrap_or(u32::MAX)
    }

    fn sizes_are_multiples_of(&self, n: u64) -> bool {
        self.rows.iter().all(|r| r.size.is_multiple_of(n))
    }

    fn addresses_are_multiples_of(&self, n: u64) -> bool {
        self.rows.iter().all(|r| r.address.is_multiple_of(n))
    }

    /// Recognises the unit of addresses beside a stated unit of sizes.
    fn address(&self, size: SizeUnit) -> (SizeUnit, FactSource) {
        if size != SizeUnit::BYTES {
            return (SizeUnit::SECTORS, FactSource::Fixed);
        }
        let sectors = self.continued(size, SizeUnit::SECTORS);
        let bytes = self.continued(size, SizeUnit::BYTES);
        let n = self.rows.len();
        let seen = format!(
            "of {n} requests {bytes} continue another at byte addresses, {sectors} at sector addresses"
        );
        if outweighs(sectors, bytes) {
            (SizeUnit::SECTORS, FactSource::Recognised(seen))
        } else if outweighs(bytes, sectors) {
            (SizeUnit::BYTES, FactSource::Recognised(seen))
        } else if self.addresses_are_multiples_of(SECTOR_BYTES) {
            let why = "every address is a multiple of 512, as the sizes are bytes; see --address-unit";
            (SizeUnit::BYTES, FactSource::Assumed(why.into()))
        } else {
            let why = "DiskSim's convention, and not every address is a multiple of 512; see --address-unit";
            (SizeUnit::SECTORS, FactSource::Assumed(why.into()))
        }
    }

    /// Recognises the unit of sizes beside a stated unit of addresses.
    fn size(&self, address: SizeUnit) -> (SizeUnit, FactSource) {
        if address == SizeUnit::SECTORS {
            return self.sectors_or_pages();
        }
        let counts =
            [SizeUnit::BYTES, SizeUnit::SECTORS, SizeUnit::PAGES].map(|u| (u, self.continued(u, address)));
        let recognised = counts.iter().find(|(u, n)| {
            let other = counts.iter().filter(|(v, _)| v != u).map(|(_, n)| *n).max();
            outweighs(*n, other.unwrap_or(0))
        });
        match recognised {
            Some((unit, n)) => {
                let why = format!("{n} of {} requests continue another in this unit", self.rows.len());
                (*unit, FactSource::Recognised(why))
            }
            None => (address, FactSource::Assumed("the unit of the addresses; see --size-unit".into())),
        }
    }

    /// Recognises the unit of sizes beside addresses in sectors.
    fn sectors_or_pages(&self) -> (SizeUnit, FactSource) {
        let sectors = self.continued(SizeUnit::SECTORS, SizeUnit::SECTORS);
        let pages = self.continued(SizeUnit::PAGES, SizeUnit::SECTORS);
        let n = self.rows.len();
        let seen = format!("of {n} requests {sectors} continue another in sectors, {pages} in 4 KiB pages");
        if outweighs(sectors, pages) {
            (SizeUnit::SECTORS, FactSource::Recognised(seen))
        } else if outweighs(pages, sectors) {
            (SizeUnit::PAGES, FactSource::Recognised(seen))
        } else if n > 1 && self.sizes_are_multiples_of(8) {
            (SizeUnit::SECTORS, FactSource::Recognised("every size is a multiple of 8".into()))
        } else {
            (SizeUnit::SECTORS, FactSource::Assumed(format!("undecided: {seen}; see --size-unit")))
        }
    }

    /// Recognises both units.
    fn both(&self) -> Result<(SizeUnit, FactSource, SizeUnit, FactSource)> {
        let fixed = |(size, how)| (size, how, SizeUnit::SECTORS, FactSource::Fixed);
        if self.rows.is_empty() || !self.sizes_are_multiples_of(SECTOR_BYTES) {
            return Ok(fixed(self.sectors_or_pages()));
        }
        let sectors = self.continued(SizeUnit::SECTORS, SizeUnit::SECTORS);
        let pages = self.continued(SizeUnit::PAGES, SizeUnit::SECTORS);
        let bytes = self.continued(SizeUnit::BYTES, SizeUnit::SECTORS);
        let addresses = self.addresses_are_multiples_of(SECTOR_BYTES);
        // A stream in sectors is a stream in bytes too, if its addresses can be bytes.
        if !addresses && (outweighs(pages, sectors.max(bytes)) || outweighs(sectors, bytes)) {
            return Ok(fixed(self.sectors_or_pages()));
        }
        if outweighs(bytes, sectors) {
            let n = self.rows.len();
            let seen = format!("{bytes} of {n} requests continue another with sizes in bytes");
            return Ok(fixed((SizeUnit::BYTES, FactSource::Recognised(seen))));
        }
        Err(self.ambiguous(addresses))
    }

    /// Returns the refusal of columns that are sectors or bytes.
    fn ambiguous(&self, addresses: bool) -> Error {
        let sum = self.rows.iter().fold(0u64, |sum, r| sum.saturating_add(r.size));
        let columns = if addresses { "size and every address" } else { "size" };
        Error::spec(
            "unit of sizes",
            format!(
                "every {columns} in the first {} requests is a multiple of 512, so they may be sectors ({} of \
                 requests) or bytes ({}); state --size-unit sectors or --size-unit bytes",
                self.rows.len(),
                frit_core::size::format(sum.saturating_mul(SECTOR_BYTES)),
                frit_core::size::format(sum)
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Head<'_> {
        Head { bytes: text.as_bytes(), whole: true, judged: 256 }
    }

    #[test]
    fn streams_tell_the_size_unit() {
        let units = |address: u64, size: u64| {
            let text = lines(address, size);
            let u = space(&head(&text), None, None).unwrap();
            assert_eq!((u.address, u.address_source), (SizeUnit::SECTORS, FactSource::Fixed));
            (u.size, u.size_source)
        };
        assert_eq!(units(16, 2).0, SizeUnit::PAGES);
        assert!(matches!(units(3, 3), (SizeUnit::SECTORS, FactSource::Recognised(_))));
        assert!(matches!(units(7919, 3), (SizeUnit::SECTORS, FactSource::Assumed(_))));
        // A step of 8 sectors for sizes of 4096 shows bytes at sector addresses.
        assert!(matches!(units(8, 4096), (SizeUnit::BYTES, FactSource::Recognised(_))));
        // Requests of 1 MiB in a stream that no byte addresses have: it begins at sector 63.
        let odd: String = (0..20).map(|i| format!("{i}.5 0 {} 2048 1\n", 63 + i * 2048)).collect();
        assert_eq!(space(&head(&odd), None, None).unwrap().size, SizeUnit::SECTORS);
    }

    /// Returns a stream of requests of one size, with a fixed distance.
    fn lines(step: u64, size: u64) -> String {
        (0..20).map(|i| format!("{i}.5 0 {} {size} 1\n", i * step)).collect()
    }

    #[test]
    fn bytes_are_not_taken_for_sectors() {
        for (step, size, columns) in [(4096, 4096, "every address"), (7919, 4096, "every size in")] {
            let text = lines(step, size);
            let e = space(&head(&text), None, None).err().unwrap().to_string();
            for part in [columns, "40 MiB", "80 KiB", "--size-unit sectors or --size-unit bytes"] {
                assert!(e.contains(part), "{part}: {e}");
            }
        }
    }

    #[test]
    fn addresses_of_byte_sizes_are_bytes_unless_they_cannot_be() {
        let address = |step, size| {
            let text = lines(step, size);
            let u = space(&head(&text), Some(SizeUnit::BYTES), None).unwrap();
            (u.address, matches!(u.address_source, FactSource::Recognised(_)))
        };
        assert_eq!(address(4096, 4096), (SizeUnit::BYTES, true));
        assert_eq!(address(8, 4096), (SizeUnit::SECTORS, true));
        assert_eq!(address(8192, 4096), (SizeUnit::BYTES, false));
        assert_eq!(address(7919, 4096), (SizeUnit::SECTORS, false));
        let size = |step, size, unit| {
            let text = lines(step, size);
            space(&head(&text), None, Some(unit)).unwrap().size
        };
        assert_eq!(size(4096, 8, SizeUnit::BYTES), SizeUnit::SECTORS);
        assert_eq!(size(8192, 4096, SizeUnit::BYTES), SizeUnit::BYTES);
        assert_eq!(size(4096, 4096, SizeUnit::SECTORS), SizeUnit::SECTORS);
    }
}
