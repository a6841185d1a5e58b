//! Sizing of media to a workload, so that a short trace fills them and garbage collection has work.

use crate::describe::DeviceScale;

/// Blocks of a unit without data: HFSL reserves two for garbage collection and has up to three
/// open.
const BLOCKS_WITHOUT_DATA: u64 = 5;
/// Number of units of the paper's prototype.
const UNITS_MAX: u64 = 16;
/// Number of channels of the paper's prototype.
const CHANNELS_MAX: u64 = 8;
/// Number of chips of the paper's PCM.
const PCM_CHIPS: u64 = 16;
/// Chip sizes are multiples of this, in bytes.
const PCM_CHIP_STEP: u64 = 4096;

/// A device with the shape of the paper's prototype and another size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ScaledDevice {
    pub(super) volume: u64,
    channels: u64,
    chips: u64,
    blocks_per_plane: u64,
    block: u64,
    nand_per_pcm_milli: u64,
}

impl ScaledDevice {
    pub(super) fn new(scale: &DeviceScale, volume: u64) -> ScaledDevice {
        let block = scale.block;
        let data = (volume as f64 * (1.0 + scale.over_provisioning)) as u64;
        let blocks = data.div_ceil(block);
        let enough = |units: &u64| blocks / units >= u64::from(scale.blocks_per_unit);
        let units = std::iter::successors(Some(UNITS_MAX), |u| Some(u / 2).filter(|u| *u > 0))
            .find(enough)
            .unwrap_or(1);
        // One block more than the volume's share, so that garbage collection always frees space.
        let least = volume.div_ceil(units).div_ceil(block) + 1;
        let channels = units.min(CHANNELS_MAX);
        ScaledDevice {
            volume,
            channels,
            chips: units / channels,
            blocks_per_plane: blocks.div_ceil(units).max(least) + BLOCKS_WITHOUT_DATA,
            block,
            nand_per_pcm_milli: (scale.nand_per_pcm * 1000.0) as u64,
        }
    }

    /// Returns the overrides of any stack on NAND.
    pub(super) fn nand(&self) -> Vec<String> {
        vec![
            format!("media.nand.channels={}", self.channels),
            format!("media.nand.chips_per_channel={}", self.chips),
            format!("media.nand.blocks_per_plane={}", self.blocks_per_plane),
            format!("hfsl.capacity={}", self.volume),
        ]
    }

    /// Returns the overrides of a stack with PCM: `times` as much as the ratio gives.
    pub(super) fn pcm(&self, times: f64) -> Vec<String> {
        let nand = self.channels * self.chips * self.blocks_per_plane * self.block;
        let bytes = nand as f64 * 1000.0 / self.nand_per_pcm_milli.max(1) as f64 * times;
        let chip = (bytes as u64).div_ceil(PCM_CHIPS).next_multiple_of(PCM_CHIP_STEP);
        vec![format!("media.pcm.chip_bytes={chip}")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(volume: u64) -> ScaledDevice {
        let scale = DeviceScale {
            over_provisioning: 0.07,
            nand_per_pcm: 128.0,
            block: 128 << 10,
            blocks_per_unit: 64,
        };
        ScaledDevice::new(&scale, volume)
    }

    #[test]
    fn units_shrink_with_the_volume_and_blocks_are_enough() {
        for mb in [1, 3, 30, 240, 1000, 4000] {
            let s = sized(mb << 20);
            let data = s.channels * s.chips * (s.blocks_per_plane - BLOCKS_WITHOUT_DATA) * s.block;
            assert!(data as f64 >= (mb << 20) as f64 * 1.07, "{mb}: {s:?}");
            assert!(s.channels * s.chips == 1 || s.blocks_per_plane >= 64, "{mb}: {s:?}");
        }
        assert_eq!(sized(1 << 20).channels, 1);
        assert_eq!((sized(4 << 30).channels, sized(4 << 30).chips), (8, 2));
    }
}
