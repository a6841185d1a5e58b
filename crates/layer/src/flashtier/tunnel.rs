//! The tunnel of the prototype (Saxena et al., FAST 2013, section 3.2): a device with the interface of a disk
//! cannot answer that a block is not present, so it returns a pattern in the data of the read.
//!
//! The manager takes a clean block that has this pattern for a miss and reads the disk, which has the
//! same data. It knows which blocks are dirty, so a dirty block with the pattern is a hit. The
//! prototype would read an older version from the disk.

use super::layer::Flashtier;
use frit_core::{BlockDevice, CacheDevice, CacheRead, Cause, ReadTarget, Result, Sink, Tok};

/// The pattern of a miss, which repeats over the block.
pub(super) const PATTERN: [u8; 16] = *b"read miss: frit\n";

/// Result of a read from the device.
pub(super) enum DeviceRead {
    /// The block is present. The token is done when the data has arrived.
    Hit(Tok),
    /// The block is not present. The token is done when the manager knows it.
    Miss(Tok),
}

/// Returns `true` if all bytes, which begin at `offset` of a block, have the pattern.
fn is_pattern(bytes: &[u8], offset: u32) -> bool {
    // Reads begin and end at sectors.
    debug_assert!(offset.is_multiple_of(PATTERN.len() as u32));
    bytes.chunks(PATTERN.len()).all(|chunk| *chunk == PATTERN[..chunk.len()])
}

impl<C: CacheDevice, D: BlockDevice + ?Sized> Flashtier<C, D> {
    /// Reads part of a block from the device, from byte `offset` on.
    pub(super) fn read_device(
        &mut self,
        sink: &mut Sink,
        block: u32,
        offset: u32,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<DeviceRead> {
        let (start, len) = (sink.start(), into.len());
        let answer = self.ssc.read(sink, block, offset, into.part(0, len), cause, start)?;
        Ok(match answer {
            CacheRead::Hit(read) => {
                let seems_missing =
                    self.config.tunnel && into.bytes().is_some_and(|bytes| is_pattern(bytes, offset));
                if !seems_missing || self.dirty.contains(block) {
                    return Ok(DeviceRead::Hit(read));
                }
                self.stats.false_misses += 1;
                DeviceRead::Miss(read)
            }
            CacheRead::Miss if self.config.tunnel => {
                self.stats.useless_bytes += u64::from(len);
                let rate = self.config.tunnel_mb_per_s;
                DeviceRead::Miss(self.tunnel.transfer(sink, start, u64::from(len), rate))
            }
            CacheRead::Miss => DeviceRead::Miss(start),
        })
    }
}
