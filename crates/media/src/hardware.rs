//! The devices of a stack as the engine sees them: units, channels, and the cost of commands.

use crate::TimingModel;
use frit_core::{MediumKind, UnitId};

/// One device to be added to the [`Hardware`].
#[derive(Clone, Debug)]
pub struct Device {
    /// Name of the device in the stack.
    pub name: String,
    /// Kind of medium.
    pub kind: MediumKind,
    /// Timing model of its commands.
    pub model: TimingModel,
    /// Channel of each unit, counted from 0 within the device.
    pub unit_channel: Vec<u16>,
    /// Grouping of the units, if they are planes of dies that execute multi-plane commands.
    pub multi_plane: Option<MultiPlane>,
}

/// Dies that execute one command at a time, on one or several of their planes.
///
/// Unit `u` of the device is a plane of die `u % dies`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MultiPlane {
    /// Number of dies.
    pub dies: u16,
    /// Pages of a block: commands to the same page of their blocks are executed together.
    pub pages_per_block: u32,
}

/// All devices of a stack. Units and channels are numbered consecutively across the devices.
#[derive(Clone, Default, Debug)]
pub struct Hardware {
    devices: Vec<Device>,
    unit_device: Vec<u8>,
    unit_channel: Vec<u16>,
    channels: u16,
}

impl Hardware {
    /// Creates an empty list of devices.
    #[must_use]
    pub fn new() -> Hardware {
        Hardware::default()
    }

    /// Adds a device and returns the id of its first unit.
    ///
    /// # Errors
    /// More than 255 devices, or more than 65 535 units or channels in all.
    pub fn add(&mut self, device: Device) -> Result<UnitId, String> {
        let first = self.unit_device.len();
        let channels = device.unit_channel.iter().copied().max().map_or(0, |c| u32::from(c) + 1);
        if self.devices.len() >= 255
            || first + device.unit_channel.len() > usize::from(u16::MAX)
            || u32::from(self.channels) + channels > u32::from(u16::MAX)
        {
            return Err(format!(
                "device '{}' exceeds the limits of a stack: 255 devices, 65535 units, 65535 channels",
                device.name
            ));
        }
        let index = self.devices.len() as u8;
        for &c in &device.unit_channel {
            self.unit_device.push(index);
            self.unit_channel.push(self.channels + c);
        }
        self.channels += channels as u16;
        self.devices.push(device);
        Ok(UnitId(first as u16))
    }

    /// The devices, in the order in which they were added.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Copies of the timing models, in the same order. The engine keeps its own copies because a
    /// model has state (the position of a disk's arm).
    #[must_use]
    pub fn models(&self) -> Vec<TimingModel> {
        self.devices.iter().map(|d| d.model.clone()).collect()
    }

    /// Number of units of all devices.
    #[must_use]
    pub fn units(&self) -> usize {
        self.unit_device.len()
    }

    /// Number of channels of all devices.
    #[must_use]
    pub fn channels(&self) -> usize {
        usize::from(self.channels)
    }

    /// Device of a unit, as an index into [`Hardware::devices`].
    #[inline]
    #[must_use]
    pub fn device_of(&self, unit: UnitId) -> usize {
        usize::from(self.unit_device[unit.idx()])
    }

    /// Channel of a unit.
    #[inline]
    #[must_use]
    pub fn channel_of(&self, unit: UnitId) -> usize {
        usize::from(self.unit_channel[unit.idx()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DramTiming;
    use frit_core::Nanos;

    #[test]
    fn units_and_channels_are_numbered_through() {
        let model = TimingModel::Dram(DramTiming { latency: Nanos(50), ps_per_byte: 100 });
        let dev = |n: &str, unit_channel: Vec<u16>| Device {
            name: n.into(),
            kind: MediumKind::Dram,
            model: model.clone(),
            unit_channel,
            multi_plane: None,
        };
        let mut hw = Hardware::new();
        assert_eq!(hw.add(dev("a", vec![0, 1, 0, 1])), Ok(UnitId(0)));
        assert_eq!(hw.add(dev("b", vec![0, 0])), Ok(UnitId(4)));
        assert_eq!((hw.units(), hw.channels()), (6, 3));
        assert_eq!((hw.device_of(UnitId(5)), hw.channel_of(UnitId(5))), (1, 2));
        assert_eq!(hw.channel_of(UnitId(3)), 1);
    }
}
