//! Checksums and histograms of bytes, compared with those of the whole range.

use crate::support::{Setting, data, setting};
use frit_isp::{Algorithm, Answer, Checksum, Command, Histogram};
use proptest::prelude::*;

const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Crc32c, Algorithm::Crc64Nvme, Algorithm::Sha256, Algorithm::Xxh3, Algorithm::Blake3];

/// CRC bit by bit: reflected, with all bits set at the begin and inverted at the end.
fn crc(data: &[u8], polynomial: u64, bits: u32) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let mut crc = mask;
    for byte in data {
        crc ^= u64::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ polynomial } else { crc >> 1 };
        }
    }
    !crc & mask
}

fn checksum(setting: &Setting, data: &[u8], algorithm: Algorithm) -> String {
    match setting.answer(data, Command::Checksum(Checksum { algorithm })) {
        Answer::Checksum(answer) => {
            assert_eq!((answer.bytes, answer.algorithm), (setting.range(data).len() as u64, algorithm));
            answer.checksum
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn checksums_are_those_of_the_whole_range(
        data in data(), algorithm in proptest::sample::select(&ALGORITHMS[..]), setting in setting(),
    ) {
        let bytes = &data[setting.range(&data)];
        let expected = match algorithm {
            Algorithm::Crc32c => format!("{:08x}", crc(bytes, 0x82f6_3b78, 32)),
            Algorithm::Crc64Nvme => format!("{:016x}", crc(bytes, 0x9a6c_9329_ac4b_c9b5, 64)),
            Algorithm::Sha256 => {
                let hash: [u8; 32] = <sha2::Sha256 as sha2::Digest>::digest(bytes).into();
                hash.iter().map(|byte| format!("{byte:02x}")).collect()
            }
            Algorithm::Xxh3 => format!("{:016x}", twox_hash::XxHash3_64::oneshot(bytes)),
            Algorithm::Blake3 => blake3::hash(bytes).to_string(),
        };
        prop_assert_eq!(checksum(&setting, &data, algorithm), expected);
    }

    #[test]
    fn a_histogram_counts_every_byte(data in data(), setting in setting()) {
        let mut expected = vec![0; 256];
        data[setting.range(&data)].iter().for_each(|byte| expected[usize::from(*byte)] += 1);
        let Answer::Histogram(answer) = setting.answer(&data, Command::Histogram(Histogram::Bytes)) else {
            panic!("another answer");
        };
        prop_assert_eq!(answer.bins, expected);
    }
}

#[test]
fn published_checksums_of_nine_digits() {
    let expected =
        ["e3069283", "ae8b14860a799888", "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"];
    for (algorithm, expected) in ALGORITHMS.into_iter().zip(expected) {
        assert_eq!(checksum(&Setting::plain(), b"123456789", algorithm), expected);
    }
}
