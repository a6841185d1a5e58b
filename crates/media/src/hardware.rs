//! The devices of a stack as the engine sees them: units, channels, and the cost of commands.

use crate::TimingModel;
use frit_core::{Cmd, MediumKind, UnitId};

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
    /// Chips, dies and planes of the units of NAND.
    pub nand: Option<NandLayout>,
}

/// Chips, dies and planes of the units of a NAND device.
///
/// A unit is a die, or a plane of one. Units are numbered channel first, then by chips, dies and planes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NandLayout {
    /// Number of channels.
    pub channels: u16,
    /// Chips of a channel.
    pub chips: u16,
    /// Dies of a chip.
    pub dies: u16,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Pages that are programmed by one command.
    pub program_pages: u32,
    /// A die executes one command at a time, for several of its planes if the commands are equal and to
    /// the same page of their blocks.
    pub multi_plane: bool,
}

/// Place of a unit in a NAND device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NandPlace {
    /// Channel.
    pub channel: u16,
    /// Chip of the channel.
    pub chip: u16,
    /// Die of the chip.
    pub die: u16,
    /// Plane of the die; 0 if the die is the unit.
    pub plane: u16,
}

impl NandLayout {
    /// Number of dies.
    #[must_use]
    pub fn all_dies(&self) -> u16 {
        self.channels * self.chips * self.dies
    }

    /// Returns the place of a unit, counted from 0 within the device.
    #[must_use]
    pub fn place(&self, unit: u16) -> NandPlace {
        let (channel, rest) = (unit % self.channels, unit / self.channels);
        let (chip, rest) = (rest % self.chips, rest / self.chips);
        NandPlace { channel, chip, die: rest % self.dies, plane: rest / self.dies }
    }

    /// Returns the index of the program unit of a command in its block, with the mode of the block.
    /// Commands to several planes of a die are executed together if this is the same.
    #[inline]
    #[must_use]
    pub fn offset(&self, addr: u64) -> u64 {
        let page = addr & !Cmd::ONE_BIT;
        (addr & Cmd::ONE_BIT) | (page % u64::from(self.pages_per_block) / u64::from(self.program_pages))
    }
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
            nand: None,
        };
        let mut hw = Hardware::new();
        assert_eq!(hw.add(dev("a", vec![0, 1, 0, 1])), Ok(UnitId(0)));
        assert_eq!(hw.add(dev("b", vec![0, 0])), Ok(UnitId(4)));
        assert_eq!((hw.units(), hw.channels()), (6, 3));
        assert_eq!((hw.device_of(UnitId(5)), hw.channel_of(UnitId(5))), (1, 2));
        assert_eq!(hw.channel_of(UnitId(3)), 1);
    }
}
