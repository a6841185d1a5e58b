//! Tests of compression over a device that loses unflushed writes.

use super::{Algorithm, Compress, CompressConfig};
use crate::composed::Composed;
use crate::devices::Devices;
use crate::testing::{LosesPower, TestDisk, exercise, findings, metric, read, step, write_bytes as write};
use frit_core::{
    BlockLayer, CrashKind, Durable, Error, Extent, Hints, MediumKind, Quiesce, ReadTarget, Sector, Sink,
    WriteData,
};
use proptest::prelude::*;

const CHUNK: u64 = 8192;
const SECTORS: u64 = CHUNK / 512;

type Layer = Composed<Compress>;

fn config(chunks: u64, algorithm: Algorithm) -> CompressConfig {
    CompressConfig {
        size: chunks * CHUNK,
        chunk: CHUNK,
        algorithm,
        buffer_chunks: 3,
        ..CompressConfig::default()
    }
}

fn open(disk: &TestDisk, config: &CompressConfig) -> Layer {
    Composed::new(Compress::new(config.clone(), Devices::new(vec![Box::new(disk.clone())])).unwrap())
}

/// A device with room for this many sectors of runs.
fn disk(config: &CompressConfig, sectors: u64) -> TestDisk {
    let table = (2 * (config.size / CHUNK).div_ceil(20) + 2) * 512;
    TestDisk::new((table.next_multiple_of(4096) + CHUNK + sectors * 512) as usize)
}

fn formatted(config: &CompressConfig, sectors: u64) -> (TestDisk, Layer) {
    let disk = disk(config, sectors);
    let mut l = open(&disk, config);
    l.format(&mut Sink::untimed()).unwrap();
    (disk, l)
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop_oneof![Just(Algorithm::None), Just(Algorithm::Lz4), Just(Algorithm::Zstd)]
}

/// Bytes that do not compress, or that compress to about this share of 256.
fn noise(seed: u64, len: usize, random: u64) -> Vec<u8> {
    let mut x = seed | 1;
    (0..len)
        .map(|i| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            if (i / 64) as u64 % 256 < random { (x >> 32) as u8 } else { 7 }
        })
        .collect()
}

fn flush(l: &mut Layer) {
    l.flush(&mut Sink::untimed()).unwrap();
}

fn recovered(disk: &TestDisk, config: &CompressConfig) -> Layer {
    let mut l = open(disk, config);
    l.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    l
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn contents_are_those_of_a_plain_array(
        steps in prop::collection::vec(step(50 * SECTORS, SECTORS), 1..120),
        room in prop_oneof![Just(60 * SECTORS), 6 * SECTORS..50 * SECTORS],
        algorithm in algorithm(),
        seed in any::<u64>(),
    ) {
        let config = config(50, algorithm);
        let disk = disk(&config, room);
        exercise(&disk, || open(&disk, &config), &steps, seed);
    }

    /// Overwrites of the same compressibility never fail, however fragmented the device is.
    #[test]
    fn a_full_device_can_be_overwritten(
        writes in prop::collection::vec((0..40u64, 1..256u64), 1..150),
        seed in any::<u64>(),
    ) {
        let config = config(40, Algorithm::Lz4);
        let (disk, mut l) = formatted(&config, 20 * SECTORS);
        let mut contents = vec![vec![0; CHUNK as usize]; 40];
        for (i, &(chunk, random)) in writes.iter().enumerate() {
            let data = noise(seed ^ i as u64, CHUNK as usize, random);
            match write(&mut l, chunk * SECTORS, &data) {
                Ok(()) => contents[chunk as usize] = data,
                Err(Error::NoSpace { .. }) => {}
                Err(e) => panic!("{e}"),
            }
            if i % 5 == 0 {
                flush(&mut l);
            }
        }
        flush(&mut l);
        // What is stored without compression does not grow.
        let full: Vec<u64> = (0..40)
            .filter(|&c| contents[c as usize].windows(64).step_by(64).all(|w| w.iter().any(|&b| b != w[0])))
            .collect();
        for c in full {
            let data = noise(seed ^ c, CHUNK as usize, 256);
            write(&mut l, c * SECTORS, &data).unwrap();
            contents[c as usize] = data;
        }
        flush(&mut l);
        disk.lose_power(&mut || false);
        let mut l = recovered(&disk, &config);
        prop_assert_eq!(findings(&mut l), [""; 0]);
        prop_assert!(read(&mut l, 0, 40 * SECTORS).unwrap() == contents.concat());
    }
}

#[test]
fn contents_compress_and_zeros_take_nothing() {
    for (algorithm, least) in [(Algorithm::None, 1.0), (Algorithm::Lz4, 3.0), (Algorithm::Zstd, 3.0)] {
        let config = config(8, algorithm);
        let (disk, mut l) = formatted(&config, 20 * SECTORS);
        let data = noise(9, 4 * CHUNK as usize, 40);
        write(&mut l, 0, &data).unwrap();
        write(&mut l, 5 * SECTORS, &[0; CHUNK as usize]).unwrap();
        flush(&mut l);
        assert!(metric(&l, "ratio") >= least, "{algorithm:?}: {}", metric(&l, "ratio"));
        assert!((metric(&l, "logical") - 4.0 * CHUNK as f64).abs() < f64::EPSILON);
        let mut extents = Vec::new();
        l.extents(Sector(0), 8 * SECTORS, &mut |e| extents.push(e)).unwrap();
        let extent = |chunks: u64, place| Extent { sectors: chunks * SECTORS, place };
        assert_eq!(extents, [extent(4, Some(MediumKind::Disk)), extent(4, None)]);
        let mut l = recovered(&disk, &config);
        assert_eq!(read(&mut l, 0, 4 * SECTORS).unwrap(), data);
        assert_eq!(read(&mut l, 4 * SECTORS, 4 * SECTORS).unwrap(), vec![0; 4 * CHUNK as usize]);
    }
}

#[test]
fn writes_to_one_chunk_between_flushes_are_one_write() {
    let (disk, mut l) = formatted(&config(8, Algorithm::None), 20 * SECTORS);
    let before = disk.lock().writes;
    for sector in 0..SECTORS {
        write(&mut l, sector, &noise(sector + 1, 512, 256)).unwrap();
    }
    assert_eq!(disk.lock().writes, before);
    flush(&mut l);
    assert_eq!(disk.lock().writes, before + 3, "the chunk, and both copies of its table sector");
}

#[test]
fn a_damaged_chunk_is_an_error_that_names_it() {
    for algorithm in [Algorithm::None, Algorithm::Lz4, Algorithm::Zstd] {
        let config = config(8, algorithm);
        let (disk, mut l) = formatted(&config, 20 * SECTORS);
        write(&mut l, 0, &noise(3, 2 * CHUNK as usize, 100)).unwrap();
        flush(&mut l);
        let first = (4096 + CHUNK) as usize / 512;
        disk.lock().bytes[first * 512 + 100] ^= 1;
        let mut l = recovered(&disk, &config);
        let e = read(&mut l, 1, 1).unwrap_err();
        let place = format!("from sector {first}");
        assert!(
            matches!(&e, Error::Corrupt { what, .. } if what.contains("chunk 0") && what.contains(&place)),
            "{e}"
        );
        assert_eq!(findings(&mut l), ["Major bad-data"]);
        // A write of a part needs the rest; a write of the whole chunk does not.
        assert!(matches!(write(&mut l, 0, &[1; 512]), Err(Error::Corrupt { .. })));
        write(&mut l, 0, &noise(4, CHUNK as usize, 100)).unwrap();
        flush(&mut l);
        assert_eq!(findings(&mut l), [""; 0]);
    }
}

#[test]
fn new_chunks_leave_space_for_overwrites() {
    let (_, mut l) = formatted(&config(40, Algorithm::None), 10 * SECTORS);
    let data = |n: u64| noise(n, CHUNK as usize, 256);
    let refused = (0..40).find(|&c| write(&mut l, c * SECTORS, &data(c + 1)).is_err()).unwrap();
    assert_eq!(refused, 8, "two of ten chunks stay free");
    let e = write(&mut l, 8 * SECTORS, &data(9)).unwrap_err();
    assert!(matches!(&e, Error::NoSpace { what } if what.contains("16 KiB of 80 KiB")), "{e}");
    for round in 1..20 {
        for c in 0..8 {
            write(&mut l, c * SECTORS, &data(round * 100 + c)).unwrap();
        }
    }
    flush(&mut l);
    l.discard(&mut Sink::untimed(), Sector(0), SECTORS).unwrap();
    write(&mut l, 8 * SECTORS, &data(9)).unwrap();
    assert_eq!(read(&mut l, 8 * SECTORS, SECTORS).unwrap(), data(9));
    assert_eq!(findings(&mut l), [""; 0]);
}

#[test]
fn runs_move_when_free_sectors_are_scattered() {
    let config = config(64, Algorithm::Lz4);
    let (disk, mut l) = formatted(&config, 32 * SECTORS);
    // Half of the space in short runs, of which every other one is discarded, again and again.
    let mut contents = vec![vec![0; CHUNK as usize]; 64];
    for round in 0..6u64 {
        for c in 0..64 {
            let data = noise(c ^ round << 20, CHUNK as usize, if round % 2 == 0 { 30 } else { 200 });
            if write(&mut l, c * SECTORS, &data).is_ok() {
                contents[c as usize] = data;
            }
        }
        for c in (round % 3..64).step_by(2) {
            l.discard(&mut Sink::untimed(), Sector(c * SECTORS), SECTORS).unwrap();
            contents[c as usize].fill(0);
        }
        flush(&mut l);
    }
    assert!(metric(&l, "moved") > 0.0, "fragmentation {}", metric(&l, "fragmentation"));
    disk.lose_power(&mut || false);
    let mut l = recovered(&disk, &config);
    assert!(read(&mut l, 0, 64 * SECTORS).unwrap() == contents.concat());
    assert_eq!(findings(&mut l), [""; 0]);
}

#[test]
fn without_bytes_the_ratio_is_that_of_the_model() {
    let config = CompressConfig { modelled_ratio: 4.0, ..config(8, Algorithm::Lz4) };
    let disk = disk(&config, 20 * SECTORS);
    disk.lock().without_bytes = true;
    let mut l = open(&disk, &config);
    let sink = &mut Sink::untimed();
    let write = |l: &mut Layer, at: u64, bytes: u64| {
        l.write(&mut Sink::untimed(), Sector(at), WriteData::Len(bytes as u32), Hints::NONE)
    };
    write(&mut l, 0, 6 * CHUNK).unwrap();
    write(&mut l, 7 * SECTORS, 512).unwrap();
    l.discard(sink, Sector(1), 1).unwrap();
    l.read(sink, Sector(0), ReadTarget::Len(8 * CHUNK as u32), Hints::NONE).unwrap();
    // There is no format, and a boot keeps what the media do not hold.
    l.halt(sink).unwrap();
    l.boot(sink).unwrap();
    assert!((metric(&l, "ratio") - 4.0).abs() < f64::EPSILON);
    assert!((metric(&l, "logical") - 7.0 * CHUNK as f64).abs() < f64::EPSILON);
    assert!(open(&disk, &config).boot(sink).is_err(), "another instance knows nothing");
}
