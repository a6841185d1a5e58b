//! Stored forms of chunks.

use super::config::{Algorithm, CompressConfig};
use frit_core::{Error, Result};
use std::io::Write as _;

/// Numbers of the algorithms in entries.
const NONE: u8 = 0;
const LZ4: u8 = 1;
const ZSTD: u8 = 2;

/// Compresses and decompresses chunks.
#[derive(Default)]
pub(super) struct Codec {
    zstd: Option<(u32, zstd::bulk::Compressor<'static>)>,
    unzstd: Option<zstd::bulk::Decompressor<'static>>,
}

fn failed(e: std::io::Error) -> Error {
    Error::Io { what: "zstd".into(), source: e }
}

impl Codec {
    /// Writes the stored form of a chunk to `into`. Returns the number of its algorithm: contents
    /// that do not become shorter by a sector are stored as they are.
    ///
    /// # Errors
    /// A lack of memory.
    pub(super) fn compress(
        &mut self,
        config: &CompressConfig,
        chunk: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<u8> {
        into.clear();
        let number = match config.algorithm {
            Algorithm::None => NONE,
            Algorithm::Lz4 => {
                into.resize(lz4_flex::block::get_maximum_output_size(chunk.len()), 0);
                let n = lz4_flex::block::compress_into(chunk, into).unwrap_or(chunk.len());
                into.truncate(n);
                LZ4
            }
            Algorithm::Zstd => {
                if self.zstd.as_ref().is_none_or(|(level, _)| *level != config.level) {
                    let made = zstd::bulk::Compressor::new(config.level as i32).map_err(failed)?;
                    self.zstd = Some((config.level, made));
                }
                if let Some((_, zstd)) = &mut self.zstd {
                    into.resize(zstd::zstd_safe::compress_bound(chunk.len()), 0);
                    let n = zstd.compress_to_buffer(chunk, &mut into[..]).map_err(failed)?;
                    into.truncate(n);
                }
                ZSTD
            }
        };
        if number == NONE || into.len().div_ceil(512) >= chunk.len() / 512 {
            into.clear();
            into.write_all(chunk).map_err(failed)?;
            return Ok(NONE);
        }
        Ok(number)
    }

    /// Writes the contents of a chunk to `into`. Returns `false` if the stored form is damaged.
    pub(super) fn decompress(&mut self, algorithm: u8, stored: &[u8], into: &mut [u8]) -> bool {
        match algorithm {
            NONE if stored.len() == into.len() => {
                into.copy_from_slice(stored);
                true
            }
            LZ4 => lz4_flex::block::decompress_into(stored, into).is_ok_and(|n| n == into.len()),
            ZSTD => {
                if self.unzstd.is_none() {
                    self.unzstd = zstd::bulk::Decompressor::new().ok();
                }
                let Some(unzstd) = &mut self.unzstd else { return false };
                unzstd.decompress_to_buffer(stored, into).is_ok_and(|n| n == into.len())
            }
            _ => false,
        }
    }
}
