//! Layout of a device in its store.
//!
//! ```text
//! 0            data, by address: so that it can be mapped directly
//! W = bytes    wear, 4 bytes a line, as of the last sync
//! H = W + wear header, 64 bytes
//! ```

use super::{Pcm, PcmGeometry};
use crate::Store;
use crate::header::{self, HEADER_BYTES, HeaderBytes};
use frit_core::Result;

const MAGIC: &[u8; 8] = b"fritPCM\0";
const VERSION: u32 = 1;

impl PcmGeometry {
    /// Size that a store must have, in bytes.
    #[must_use]
    pub fn store_bytes(&self) -> u64 {
        self.header_at() + HEADER_BYTES as u64
    }

    fn header_at(&self) -> u64 {
        self.bytes() + 4 * self.lines()
    }

    /// Magic (8), version (4), channels, chips, write unit, line, interleave (4 each), bytes of a
    /// chip (8), zeros (8), serial number (8), zeros (4), CRC32C (4). [`header::finish_header`]
    /// fills in the serial number and the checksum.
    fn header(&self) -> HeaderBytes {
        let mut h = [0; HEADER_BYTES];
        h[..8].copy_from_slice(MAGIC);
        let words = [
            VERSION,
            self.channels,
            self.chips_per_channel,
            self.write_unit,
            self.line_bytes,
            self.interleave_bytes,
        ];
        for (i, w) in words.iter().enumerate() {
            h[8 + 4 * i..12 + 4 * i].copy_from_slice(&w.to_le_bytes());
        }
        h[32..40].copy_from_slice(&self.chip_bytes.to_le_bytes());
        h
    }
}

impl Pcm {
    /// Initializes a new device, or recovers the one in the store.
    pub(super) fn load(&mut self) -> std::result::Result<(), String> {
        if !self.stores_bytes() {
            return Ok(());
        }
        if !self.store.is_blank() {
            let g = self.config.geometry;
            header::verify_header(
                &self.store,
                g.header_at(),
                g.header(),
                self.config.serial,
                "PCM of this geometry",
            )?;
        }
        self.load_wear().map_err(|e| e.to_string())
    }

    /// Writes the header of a new device, or reads the wear counters of an existing one.
    fn load_wear(&mut self) -> Result<()> {
        let g = self.config.geometry;
        if self.store.is_blank() {
            return self.store.write(g.header_at(), &header::finish_header(g.header(), self.config.serial));
        }
        let mut at = g.bytes();
        let mut part = vec![0; 64 << 10];
        for lines in self.wear.chunks_mut(part.len() / 4) {
            let bytes = &mut part[..4 * lines.len()];
            self.store.read(at, bytes)?;
            at += bytes.len() as u64;
            for (w, b) in lines.iter_mut().zip(bytes.chunks_exact(4)) {
                let n = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                // Counters of zero are not written, so that the memory of unused lines is never
                // touched.
                if n > 0 {
                    *w = n;
                }
            }
        }
        Ok(())
    }

    /// Saves the wear counters. Chunks of 16 Ki lines without wear are skipped.
    pub(super) fn save_wear(&mut self) -> Result<()> {
        if !self.stores_bytes() {
            return Ok(());
        }
        let mut at = self.bytes;
        let mut part = Vec::with_capacity(64 << 10);
        for lines in self.wear.chunks(16 << 10) {
            if lines.iter().any(|&w| w > 0) {
                part.clear();
                part.extend(lines.iter().flat_map(|w| w.to_le_bytes()));
                self.store.write(at, &part)?;
            }
            at += 4 * lines.len() as u64;
        }
        Ok(())
    }
}
