//! Checksums and hashes of a range.

use super::{Answer, Kind, Report};
use crate::engine::Start;
use crate::outcome::Failure;
use crate::scan::{Begin, Finished, Flow, Operation, Unit, View};
use crate::text::Keys;
use crc_fast::CrcAlgorithm;
use serde::Serialize;
use serde_json::Value;
use sha2::Digest as _;
use std::hash::Hasher as _;

/// Function of a checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// CRC-32C (Castagnoli), as in iSCSI and ext4. Parallel.
    Crc32c,
    /// CRC-64 of NVMe. Parallel.
    Crc64Nvme,
    /// SHA-256. Sequential.
    Sha256,
    /// XXH3 with 64 bits. Sequential.
    Xxh3,
    /// BLAKE3 with 256 bits. Sequential.
    Blake3,
}

impl Algorithm {
    const NAMES: [(&'static str, Self); 5] = [
        ("crc32c", Self::Crc32c),
        ("crc64-nvme", Self::Crc64Nvme),
        ("sha256", Self::Sha256),
        ("xxh3", Self::Xxh3),
        ("blake3", Self::Blake3),
    ];

    /// CRC that can be computed of parts.
    fn crc(self) -> Option<CrcAlgorithm> {
        match self {
            Self::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
            Self::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
            Self::Sha256 | Self::Xxh3 | Self::Blake3 => None,
        }
    }
}

/// Computes a checksum or hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checksum {
    /// Function.
    pub algorithm: Algorithm,
}

/// Results of `Checksum`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ChecksumAnswer {
    /// Function.
    pub algorithm: Algorithm,
    /// Value in hexadecimal digits, the most significant first.
    pub checksum: String,
    /// Number of bytes.
    pub bytes: u64,
}

impl Report for ChecksumAnswer {}

impl Kind for Checksum {
    const NAME: &'static str = "checksum";

    fn parse(value: &Value, keys: &mut Keys<'_>) -> Result<Self, Failure> {
        Ok(Self { algorithm: keys.one_of("checksum", value, &Algorithm::NAMES)? })
    }

    fn start(&self, start: Start) -> Result<(), Failure> {
        start.with(Summing { algorithm: self.algorithm })
    }
}

/// Operation of `Checksum`.
struct Summing {
    algorithm: Algorithm,
}

struct Sum {
    state: State,
    bytes: u64,
}

enum State {
    /// CRC of a part.
    Crc(crc_fast::Digest),
    /// CRC of merged parts.
    Merged(u64),
    Sha256(sha2::Sha256),
    Xxh3(Box<twox_hash::XxHash3_64>),
    Blake3(Box<blake3::Hasher>),
}

impl Sum {
    fn crc(&self) -> u64 {
        match &self.state {
            State::Crc(digest) => digest.finalize(),
            State::Merged(crc) => *crc,
            State::Sha256(_) | State::Xxh3(_) | State::Blake3(_) => 0,
        }
    }
}

impl Operation for Summing {
    type Results = Sum;

    fn unit(&self) -> Unit {
        Unit::Positions { overlap: 0 }
    }

    fn sequential(&self) -> bool {
        self.algorithm.crc().is_none()
    }

    fn begin(&self, _: Begin) -> Sum {
        let state = match self.algorithm {
            Algorithm::Crc32c => State::Crc(crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi)),
            Algorithm::Crc64Nvme => State::Crc(crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme)),
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Xxh3 => State::Xxh3(Box::default()),
            Algorithm::Blake3 => State::Blake3(Box::default()),
        };
        Sum { state, bytes: 0 }
    }

    fn view(&self, sum: &mut Sum, view: View<'_>) -> Result<Flow, Failure> {
        sum.bytes += view.bytes.len() as u64;
        match (&mut sum.state, self.algorithm.crc()) {
            (State::Crc(digest), _) => digest.update(view.bytes),
            (State::Merged(crc), Some(algorithm)) => {
                let next = crc_fast::checksum(algorithm, view.bytes);
                *crc = crc_fast::checksum_combine(algorithm, *crc, next, view.bytes.len() as u64);
            }
            (State::Merged(_), None) => {}
            (State::Sha256(hash), _) => hash.update(view.bytes),
            (State::Xxh3(hash), _) => hash.write(view.bytes),
            (State::Blake3(hash), _) => _ = hash.update(view.bytes),
        }
        Ok(Flow::Continue)
    }

    fn merge(&self, total: &mut Sum, next: Sum) -> Result<Flow, Failure> {
        if let Some(algorithm) = self.algorithm.crc() {
            let combined = crc_fast::checksum_combine(algorithm, total.crc(), next.crc(), next.bytes);
            total.state = State::Merged(combined);
            total.bytes += next.bytes;
        }
        Ok(Flow::Continue)
    }

    fn finish(&self, total: Sum) -> Result<Finished, Failure> {
        let checksum = match (&total.state, self.algorithm) {
            (State::Sha256(hash), _) => hex(&hash.clone().finalize()),
            (State::Xxh3(hash), _) => format!("{:016x}", hash.finish()),
            (State::Blake3(hash), _) => hash.finalize().to_hex().to_string(),
            (_, Algorithm::Crc32c) => format!("{:08x}", total.crc()),
            _ => format!("{:016x}", total.crc()),
        };
        let answer = ChecksumAnswer { algorithm: self.algorithm, checksum, bytes: total.bytes };
        Ok(Finished::small(Answer::Checksum(answer)))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
