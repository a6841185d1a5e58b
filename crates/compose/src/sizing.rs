//! Sizes of the devices of a composer that is to offer a given capacity.

use frit_core::{Error, Result, SECTOR_BYTES, size};

/// Sizes below a composer.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DeviceSizes {
    /// Capacity of each block device, in bytes, in the order of the composer's devices.
    pub devices: Vec<u64>,
    /// The store of objects, if the composer has one.
    pub store: Option<StoreSize>,
    /// Value of the parameter `size` of the composer, if it gives the capacity.
    pub own: Option<u64>,
}

impl DeviceSizes {
    /// Returns the same size for each of `count` devices.
    #[must_use]
    pub fn equal(count: usize, bytes: u64) -> DeviceSizes {
        DeviceSizes { devices: vec![bytes; count], ..DeviceSizes::default() }
    }
}

/// Size of a store of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreSize {
    /// Size of an object, in bytes.
    pub object_bytes: u32,
    /// Number of objects.
    pub objects: u64,
}

/// A layer whose capacity follows from the sizes of its devices.
pub trait Resizable {
    /// Returns the sizes with which the layer offers at least `bytes`, above zero, and not more than
    /// its rounding adds. `now` has the present sizes: a layer that offers more than its devices have
    /// keeps this ratio.
    ///
    /// # Errors
    /// A parameter that does not allow the capacity, or does not fit the present sizes.
    fn sizes_for(&self, now: &DeviceSizes, bytes: u64) -> Result<DeviceSizes>;
}

/// Implements [`Resizable`] for composers that offer what their only device has.
macro_rules! as_large_as_the_device {
    ($($config:ty),*) => {
        $(impl crate::sizing::Resizable for $config {
            fn sizes_for(
                &self,
                _: &crate::sizing::DeviceSizes,
                bytes: u64,
            ) -> frit_core::Result<crate::sizing::DeviceSizes> {
                Ok(crate::sizing::DeviceSizes::equal(1, bytes))
            }
        })*
    };
}

as_large_as_the_device!(
    crate::delay::DelayConfig,
    crate::host_link::HostLinkConfig,
    crate::dram_cache::DramCacheConfig,
    crate::flaky::FlakyConfig,
    crate::record::RecordConfig
);

/// Largest size of a device.
const BYTES_MAX: u64 = 1 << 60;

/// Returns the least number of sectors, in bytes, that is `enough`. An error counts as too little.
///
/// # Errors
/// No size is enough: the last error, if there is one.
pub(crate) fn least_bytes(enough: impl Fn(u64) -> Result<bool>) -> Result<u64> {
    let mut most = SECTOR_BYTES;
    loop {
        match enough(most) {
            Ok(true) => break,
            result if most >= BYTES_MAX => {
                let why = "is more than any device can have";
                return Err(result.err().unwrap_or_else(|| Error::param("size", size::format(most), why)));
            }
            _ => most *= 2,
        }
    }
    // `most` is enough, and `little` is not.
    let mut little = most / 2 / SECTOR_BYTES;
    let mut most = most / SECTOR_BYTES;
    while most - little > 1 {
        let middle = little + (most - little) / 2;
        if enough(middle * SECTOR_BYTES).unwrap_or(false) { most = middle } else { little = middle }
    }
    Ok(most * SECTOR_BYTES)
}

/// Returns `amount · of / per`, rounded up.
pub(crate) fn in_ratio(amount: u64, of: u64, per: u64) -> u64 {
    let scaled = (u128::from(amount) * u128::from(of)).div_ceil(u128::from(per.max(1)));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Returns a size rounded up to a multiple of `unit`.
///
/// # Errors
/// A size of more than 1 EiB.
pub(crate) fn round_up(bytes: u64, unit: u64) -> Result<u64> {
    if bytes > BYTES_MAX {
        return Err(Error::param("size", size::format(bytes), "is more than any device can have"));
    }
    Ok(bytes.next_multiple_of(unit.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_size_is_found_by_whole_sectors() {
        for wanted in [1, 512, 513, 4096, 1 << 20, (1 << 40) + 1] {
            let least = least_bytes(|bytes| Ok(bytes >= wanted)).unwrap();
            assert_eq!(least, wanted.next_multiple_of(SECTOR_BYTES));
        }
        let too_small = |bytes| if bytes < 5000 { Err(Error::param("size", bytes, "")) } else { Ok(true) };
        assert_eq!(least_bytes(too_small).unwrap(), 5120);
        let e = least_bytes(|bytes| Err(Error::param("chunk", bytes, "too many"))).unwrap_err();
        assert!(e.to_string().contains("too many"), "{e}");
        assert!(least_bytes(|_| Ok(false)).is_err());
    }
}
