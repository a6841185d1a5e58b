//! The shape of a PCM device.

use frit_core::{Error, Result};

/// The shape of a PCM device: channels of chips in lockstep.
///
/// An address lies on channel `(address / interleave_bytes) % channels`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PcmGeometry {
    /// Channels: the units.
    pub channels: u32,
    /// Chips on a channel, which work as one.
    pub chips_per_channel: u32,
    /// Bytes in a chip.
    pub chip_bytes: u64,
    /// The least that a channel writes, in bytes: 2 to 512, a power of two.
    pub write_unit: u32,
    /// Bytes for which wear is counted together.
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
    /// Refuses a shape that cannot be.
    ///
    /// # Errors
    /// The first value that is wrong, and what would be right.
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
        let strip = u128::from(self.interleave_bytes.max(self.line_bytes));
        if per_channel == 0 || !per_channel.is_multiple_of(strip) {
            let why = format!("times chips_per_channel has to be a multiple of {strip} bytes, and not zero");
            return Err(Error::param("chip_bytes", self.chip_bytes, why));
        }
        let all = per_channel * u128::from(self.channels);
        if all > 1 << 48 || all / u128::from(self.line_bytes) > u128::from(u32::MAX) {
            let why = "makes a device of more than 2^48 bytes or 2^32 lines; use less or larger lines";
            return Err(Error::param("chip_bytes", self.chip_bytes, why));
        }
        Ok(())
    }

    /// Refuses a refresh unit that cannot be.
    ///
    /// # Errors
    /// One that is not a power of two from the line up, or does not divide the device.
    pub fn check_refresh(&self, refresh_bytes: Option<u32>) -> Result<()> {
        let Some(bytes) = refresh_bytes else { return Ok(()) };
        power("refresh_bytes", bytes, self.line_bytes, 1 << 30)?;
        if !self.bytes().is_multiple_of(u64::from(bytes)) {
            let why = format!("has to divide the device of {} bytes", self.bytes());
            return Err(Error::param("refresh_bytes", bytes, why));
        }
        Ok(())
    }

    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.channels) * u64::from(self.chips_per_channel) * self.chip_bytes
    }

    /// Lines in all.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.bytes() / u64::from(self.line_bytes)
    }

    /// Its values by name, for views.
    #[must_use]
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("channels", u64::from(self.channels)),
            ("chips_per_channel", u64::from(self.chips_per_channel)),
            ("chip_bytes", self.chip_bytes),
            ("write_unit", u64::from(self.write_unit)),
            ("line_bytes", u64::from(self.line_bytes)),
            ("interleave_bytes", u64::from(self.interleave_bytes)),
            ("lines", self.lines()),
        ]
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
        for chip_bytes in [0, 100, 1 << 50] {
            assert_eq!(key(PcmGeometry { chip_bytes, ..ok }), "chip_bytes");
        }
        assert!(ok.check_refresh(Some(4096)).is_ok() && ok.check_refresh(None).is_ok());
        assert!(ok.check_refresh(Some(256)).is_err() && ok.check_refresh(Some(1 << 30)).is_err());
    }
}
