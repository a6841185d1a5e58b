//! Geometry of a PCM device.

use frit_core::{Error, Result};

/// Geometry of a PCM device: channels of chips in lockstep.
///
/// An address lies on channel `(address / interleave_bytes) % channels`. The chips of a channel may
/// form groups with chip selects of their own, which share the channel's bus. The highest bits of
/// an address select the group, so that the first part of the device is the first group of every
/// channel. A group is the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PcmGeometry {
    /// Number of channels.
    pub channels: u32,
    /// Chips per channel; the chips of a group work in lockstep.
    pub chips_per_channel: u32,
    /// Groups of chips per channel; each group executes one command at a time. 1 if all chips of a
    /// channel work in lockstep.
    pub groups: u32,
    /// Bytes per chip.
    pub chip_bytes: u64,
    /// Smallest write of a channel in bytes: a power of two from 2 to 512.
    pub write_unit: u32,
    /// Bytes that share one wear counter.
    pub line_bytes: u32,
    /// Consecutive bytes on one channel.
    pub interleave_bytes: u32,
}

fn power(key: &str, value: u32, least: u32, most: u32) -> Result<()> {
    if value.is_power_of_two() && (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::param(key, value, format!("has to be a power of two from {least} to {most} bytes")))
}

impl PcmGeometry {
    /// Checks that the geometry is possible.
    ///
    /// # Errors
    /// The first value that is wrong, and the values that are allowed.
    pub fn check(&self) -> Result<()> {
        for (key, value) in [("channels", self.channels), ("chips_per_channel", self.chips_per_channel)] {
            if value == 0 || value > 4096 {
                return Err(Error::param(key, value, "has to be 1 to 4096"));
            }
        }
        power("write_unit", self.write_unit, 2, 512)?;
        power("line_bytes", self.line_bytes, self.write_unit, 1 << 20)?;
        power("interleave_bytes", self.interleave_bytes, self.write_unit, 1 << 30)?;
        let per_channel = u128::from(self.chips_per_channel) * u128::from(self.chip_bytes);
        // Stripe units and wear lines must not cross the end of a channel or of a group.
        let strip = u128::from(self.interleave_bytes.max(self.line_bytes));
        if per_channel == 0 || !per_channel.is_multiple_of(strip) {
            let why = format!("times chips_per_channel has to be a multiple of {strip} bytes, and not zero");
            return Err(Error::param("chip_bytes", self.chip_bytes, why));
        }
        let apart = u128::from(self.groups) * strip;
        if self.groups == 0 || !self.chips_per_channel.is_multiple_of(self.groups) || per_channel % apart != 0
        {
            let why = format!("has to divide chips_per_channel into groups of a multiple of {strip} bytes");
            return Err(Error::param("groups_per_channel", self.groups, why));
        }
        if u64::from(self.channels) * u64::from(self.groups) > u64::from(u16::MAX) {
            return Err(Error::param("groups_per_channel", self.groups, "makes more than 65535 units"));
        }
        let all = per_channel * u128::from(self.channels);
        if all > 1 << 48 || all / u128::from(self.line_bytes) > u128::from(u32::MAX) {
            let why = "makes a device of more than 2^48 bytes or 2^32 lines; use less or larger lines";
            return Err(Error::param("chip_bytes", self.chip_bytes, why));
        }
        Ok(())
    }

    /// Checks that the size of a refresh unit is possible.
    ///
    /// # Errors
    /// A size that is not a power of two of at least a line, or that does not divide the part of
    /// the device that one group of every channel holds.
    pub fn check_refresh(&self, refresh_bytes: Option<u32>) -> Result<()> {
        let Some(bytes) = refresh_bytes else { return Ok(()) };
        power("refresh_bytes", bytes, self.line_bytes, 1 << 30)?;
        if !self.group_bytes().is_multiple_of(u64::from(bytes)) {
            let why = format!("has to divide the {} bytes of a group of each channel", self.group_bytes());
            return Err(Error::param("refresh_bytes", bytes, why));
        }
        Ok(())
    }

    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.channels) * u64::from(self.chips_per_channel) * self.chip_bytes
    }

    /// Bytes of one group of every channel: a part of the device with one unit per channel.
    #[must_use]
    pub fn group_bytes(&self) -> u64 {
        self.bytes() / u64::from(self.groups)
    }

    /// Number of units: the groups of all channels.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.channels * self.groups
    }

    /// Number of lines of the device.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.bytes() / u64::from(self.line_bytes)
    }

    /// The values by name, for views.
    #[must_use]
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        let groups = (self.groups > 1).then_some(("groups_per_channel", u64::from(self.groups)));
        let rest = [
            ("chip_bytes", self.chip_bytes),
            ("write_unit", u64::from(self.write_unit)),
            ("line_bytes", u64::from(self.line_bytes)),
            ("interleave_bytes", u64::from(self.interleave_bytes)),
            ("lines", self.lines()),
        ];
        let mut named = vec![
            ("channels", u64::from(self.channels)),
            ("chips_per_channel", u64::from(self.chips_per_channel)),
        ];
        named.extend(groups.into_iter().chain(rest));
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_shapes_are_refused_by_key() {
        let ok = PcmGeometry {
            channels: 2,
            chips_per_channel: 8,
            groups: 1,
            chip_bytes: 16 << 20,
            write_unit: 16,
            line_bytes: 512,
            interleave_bytes: 512,
        };
        assert!(ok.check().is_ok());
        assert_eq!((ok.bytes(), ok.lines()), (256 << 20, 512 << 10));
        let key = |g: PcmGeometry| match g.check() {
            Err(Error::Param { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        for write_unit in [0, 1, 3, 48, 1024] {
            assert_eq!(key(PcmGeometry { write_unit, ..ok }), "write_unit");
        }
        assert_eq!(key(PcmGeometry { channels: 0, ..ok }), "channels");
        assert_eq!(key(PcmGeometry { line_bytes: 8, ..ok }), "line_bytes");
        assert_eq!(key(PcmGeometry { interleave_bytes: 8, ..ok }), "interleave_bytes");
        for groups in [0, 3, 16] {
            assert_eq!(key(PcmGeometry { groups, ..ok }), "groups_per_channel");
        }
        for chip_bytes in [0, 100, 1 << 50] {
            assert_eq!(key(PcmGeometry { chip_bytes, ..ok }), "chip_bytes");
        }
        assert!(ok.check_refresh(Some(4096)).is_ok() && ok.check_refresh(None).is_ok());
        assert!(ok.check_refresh(Some(256)).is_err() && ok.check_refresh(Some(1 << 30)).is_err());
    }
}
