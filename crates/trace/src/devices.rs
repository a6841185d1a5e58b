//! Device names of a trace, and the layout of the devices in one address space.

use crate::DeviceRange;
use crate::problems::Reason;
use std::collections::HashMap;
use std::ops::Range;

/// Alignment of devices in the address space, in sectors (1 MiB). It keeps the alignment of
/// requests.
const ALIGN: u64 = 2048;

/// Slot of [`DeviceNames::small`] without a device.
const FREE: u16 = u16::MAX;

/// Device names in order of first appearance; a request holds the index.
#[derive(Clone, Debug)]
pub struct DeviceNames {
    names: Vec<String>,
    small: Vec<u16>,
    last: Vec<u8>,
    last_id: u16,
    map: HashMap<Vec<u8>, u16>,
}

impl Default for DeviceNames {
    fn default() -> Self {
        DeviceNames {
            names: Vec::new(),
            small: vec![FREE; 256],
            last: Vec::new(),
            last_id: FREE,
            map: HashMap::new(),
        }
    }
}

impl DeviceNames {
    /// Returns all names.
    #[must_use]
    pub fn list(&self) -> &[String] {
        &self.names
    }

    /// Returns the index of a device that is identified by a number.
    #[inline]
    pub(crate) fn number(&mut self, n: u64) -> Result<u16, Reason> {
        // Parsers call this for each line, so small numbers avoid the hash map.
        if let Some(&id) = self.small.get(n as usize)
            && n < 256
            && id != FREE
        {
            return Ok(id);
        }
        let id = self.name(n.to_string().as_bytes())?;
        if n < 256 {
            self.small[n as usize] = id;
        }
        Ok(id)
    }

    /// Returns the index of a device that is identified by a name.
    #[inline]
    pub(crate) fn name(&mut self, name: &[u8]) -> Result<u16, Reason> {
        // Consecutive lines mostly name the same device.
        if self.last_id != FREE && self.last == name {
            return Ok(self.last_id);
        }
        self.slow(name)
    }

    fn slow(&mut self, name: &[u8]) -> Result<u16, Reason> {
        let id = match self.map.get(name) {
            Some(&id) => id,
            None => {
                let id = u16::try_from(self.names.len()).ok().filter(|&id| id < FREE);
                let id = id.ok_or("more than 65535 devices")?;
                self.names.push(name.escape_ascii().to_string());
                self.map.insert(name.to_vec(), id);
                id
            }
        };
        self.last.clear();
        self.last.extend_from_slice(name);
        self.last_id = id;
        Ok(id)
    }
}

/// Returns the range of a device.
///
/// # Errors
/// A sentence about a device without one.
pub(crate) fn range_of(name: &str, ranges: &[DeviceRange]) -> Result<Range<u64>, String> {
    let found = ranges.iter().find(|r| r.name == name).map(|r| r.sectors.clone());
    found.ok_or_else(|| {
        let known: Vec<&str> = ranges.iter().map(|r| r.name.as_str()).collect();
        format!("there is no name space for its device '{name}'; there are {}", known.join(", "))
    })
}

/// Checks that a request of a device, which ends before sector `end`, lies in the range of the device.
///
/// # Errors
/// A sentence about the request.
pub(crate) fn check_end(name: &str, end: u64, range: &Range<u64>) -> Result<(), String> {
    let sectors = range.end - range.start;
    if end <= sectors {
        return Ok(());
    }
    Err(format!(
        "a request of its device '{name}' reaches sector {}, behind the name space, which has {sectors} sectors",
        end - 1
    ))
}

/// Start of each device in the one address space, in sectors.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DeviceLayout {
    base: Vec<u64>,
    end: u64,
}

impl DeviceLayout {
    /// Places the devices one after another. Each starts at the next MiB after the highest request
    /// of the device before it. `ends` holds the end of the highest request of each device.
    #[must_use]
    pub fn concat(ends: &[u64]) -> DeviceLayout {
        let mut at = 0u64;
        let mut end = 0;
        let mut base = Vec::with_capacity(ends.len());
        for &e in ends {
            base.push(at);
            end = at.saturating_add(e);
            at = end.div_ceil(ALIGN).saturating_mul(ALIGN);
        }
        DeviceLayout { base, end }
    }

    /// Places devices with these names in ranges. `ends` holds the end of the highest request of each.
    ///
    /// # Errors
    /// A sentence about a device that has no range, or one that is too small.
    pub(crate) fn of_ranges(
        names: &[String],
        ends: &[u64],
        ranges: &[DeviceRange],
    ) -> Result<DeviceLayout, String> {
        let mut base = Vec::with_capacity(names.len());
        for (i, name) in names.iter().enumerate() {
            let range = range_of(name, ranges)?;
            check_end(name, ends.get(i).copied().unwrap_or(0), &range)?;
            base.push(range.start);
        }
        let end = ranges.iter().map(|r| r.sectors.end).max().unwrap_or(0);
        Ok(DeviceLayout { base, end })
    }

    /// Returns the first sector of a device, or `None` for a device that did not occur when the
    /// layout was made.
    #[inline]
    #[must_use]
    pub fn base(&self, device: u16) -> Option<u64> {
        self.base.get(device as usize).copied()
    }

    /// Returns the sector after the highest one of all devices.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_interned_in_order_of_appearance() {
        let mut n = DeviceNames::default();
        assert_eq!(n.number(7), Ok(0));
        assert_eq!(n.name(b"sda"), Ok(1));
        assert_eq!(n.number(7), Ok(0));
        assert_eq!(n.number(1 << 40), Ok(2));
        assert_eq!(n.name(b"7"), Ok(0));
        assert_eq!(n.list(), ["7", "sda", "1099511627776"]);
    }

    #[test]
    fn devices_are_placed_in_ranges_by_name() {
        let range = |name: &str, sectors| DeviceRange { name: name.into(), sectors };
        let ranges = [range("a", 0..100), range("b", 100..300)];
        let names = |all: &[&str]| all.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let layout = DeviceLayout::of_ranges(&names(&["b", "a"]), &[200], &ranges).unwrap();
        assert_eq!((layout.base(0), layout.base(1), layout.base(2)), (Some(100), Some(0), None));
        let e = DeviceLayout::of_ranges(&names(&["a", "c"]), &[], &ranges).unwrap_err();
        assert!(e.contains("'c'") && e.contains("a, b"), "{e}");
        let e = DeviceLayout::of_ranges(&names(&["a", "b"]), &[100, 201], &ranges).unwrap_err();
        assert!(e.contains("'b' reaches sector 200") && e.contains("has 200 sectors"), "{e}");
    }

    #[test]
    fn devices_follow_each_other_at_whole_mebibytes() {
        let l = DeviceLayout::concat(&[10, 2048, 1]);
        assert_eq!((l.base(0), l.base(1), l.base(2), l.base(3)), (Some(0), Some(2048), Some(4096), None));
        assert_eq!(l.end(), 4097);
        assert_eq!(DeviceLayout::concat(&[77]).end(), 77);
    }
}
