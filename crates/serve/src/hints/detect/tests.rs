use super::Detector;
use super::fuzz::session;
use proptest::prelude::*;

const BYTES: u64 = 1 << 20;

/// A volume in memory with a detector.
struct TestVolume {
    bytes: Vec<u8>,
    detector: Detector,
}

impl TestVolume {
    fn new(len: u64) -> TestVolume {
        let mut volume = TestVolume { bytes: vec![0; len as usize], detector: Detector::new(len) };
        volume.learn();
        volume
    }

    fn learn(&mut self) {
        while let Some(r) = self.detector.wanted() {
            self.detector.supply(r.start, &self.bytes[r.start as usize..r.end as usize]);
        }
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        self.detector.observe(at, data, &mut |r| found.push((r.start, r.end)));
        self.bytes[at as usize..at as usize + data.len()].copy_from_slice(data);
        self.learn();
        found
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Returns the superblock of an ext4 file system of 1 MiB: blocks of 1 KiB, one group.
fn ext4() -> Vec<u8> {
    let mut b = vec![0; 1024];
    for (at, value) in
        [(0x0, 128u32), (0x4, 1024), (0x14, 1), (0x20, 8192), (0x28, 128), (0x4c, 1), (0x60, 0x2)]
    {
        put(&mut b, at, &value.to_le_bytes());
    }
    put(&mut b, 0x38, &0xef53u16.to_le_bytes());
    put(&mut b, 0x58, &128u16.to_le_bytes());
    b
}

/// Returns a group descriptor: bitmaps in blocks 3 and 4, inodes from block 5 on.
fn group() -> Vec<u8> {
    let mut b = vec![0; 32];
    [(0, 3u32), (4, 4), (8, 5)].iter().for_each(|(at, v)| put(&mut b, *at, &v.to_le_bytes()));
    b
}

/// Returns the start of a btrfs superblock with a UUID.
fn btrfs(uuid: u8) -> Vec<u8> {
    let mut b = vec![0; 4096];
    put(&mut b, 0x20, &[uuid; 16]);
    put(&mut b, 0x30, &65_536u64.to_le_bytes());
    put(&mut b, 0x40, b"_BHRfS_M");
    put(&mut b, 0x90, &4096u32.to_le_bytes());
    put(&mut b, 0x94, &16_384u32.to_le_bytes());
    b
}

fn tree_block(uuid: u8) -> Vec<u8> {
    let mut b = vec![0; 16_384];
    put(&mut b, 0x20, &[uuid; 16]);
    put(&mut b, 0x30, &16_384u64.to_le_bytes());
    put(&mut b, 0x50, &7u64.to_le_bytes());
    b
}

#[test]
fn places_are_known_before_the_descriptors_and_after_them() {
    let mut v = TestVolume::new(BYTES);
    let data = [7; 1024];
    assert_eq!(v.write(3 << 10, &data), []);
    assert_eq!(v.write(1 << 10, &ext4())[0], (1024, 2048), "the superblock itself");
    assert_eq!(v.write(3 << 10, &data), [], "no descriptor names the block yet");
    let mut table = vec![0; 1024];
    put(&mut table, 0, &group());
    assert!(!v.write(2 << 10, &table).is_empty(), "group descriptors");
    assert_eq!(v.write(3 << 10, &data), [(3072, 4096)], "bitmap of blocks");
    assert_eq!(
        v.write(20 << 10, &[data, data].concat()),
        [(20 << 10, 21 << 10)],
        "the end of the inode table"
    );
    // Descriptors outside the file system are ignored, and the known places stay.
    put(&mut table, 0, &[0xff; 12]);
    v.write(2 << 10, &table);
    assert_eq!(v.write(3 << 10, &data), [(3072, 4096)]);
}

/// The fields of groups of a journal device are not checked. A descriptor of size 0 was a division by
/// zero.
#[test]
fn a_journal_device_is_metadata_as_a_whole() {
    let mut v = TestVolume::new(BYTES);
    let mut superblock = ext4();
    put(&mut superblock, 0x20, &[0; 12]);
    put(&mut superblock, 0x5c, &[4]);
    put(&mut superblock, 0x60, &[0x88]);
    put(&mut superblock, 0xe0, &[8]);
    v.write(1024, &superblock);
    assert_eq!(v.detector.file_systems(), ["a journal device of ext4 with blocks of 1024 bytes"]);
    assert_eq!(v.write(1 << 19, &[7; 512]), [(1 << 19, (1 << 19) + 512)]);
}

/// The superblocks of the volume and of a partition at byte 512 overlap. A read for one was a reason
/// to read the other one again.
#[test]
fn overlapping_places_of_superblocks_are_read_once() {
    let mut v = TestVolume::new(BYTES);
    let mut mbr = vec![0; 512];
    mbr[446 + 4] = 0x83;
    put(&mut mbr, 446 + 8, &1u32.to_le_bytes());
    put(&mut mbr, 446 + 12, &1024u32.to_le_bytes());
    put(&mut mbr, 510, &[0x55, 0xaa]);
    v.detector.observe(0, &mbr, &mut |_| {});
    v.bytes[..512].copy_from_slice(&mbr);
    let mut reads = 0;
    while let Some(r) = v.detector.wanted() {
        v.detector.supply(r.start, &v.bytes[r.start as usize..r.end as usize]);
        reads += 1;
        assert!(reads < 20, "reads without end");
    }
}

#[test]
fn a_superblock_that_is_written_in_parts_is_read() {
    let mut v = TestVolume::new(BYTES);
    let superblock = ext4();
    v.write(1024, &superblock[..512]);
    assert_eq!(v.detector.file_systems().len(), 1, "the fields are in the first half");
    v.write(1024, &[0; 512]);
    assert!(v.detector.file_systems().is_empty(), "the file system is gone");
}

#[test]
fn a_file_system_that_is_discarded_is_forgotten() {
    let mut v = TestVolume::new(BYTES);
    v.write(1024, &ext4());
    v.detector.zeroed(2048, 1 << 16);
    assert_eq!(v.detector.file_systems().len(), 1);
    v.bytes.fill(0);
    v.detector.zeroed(0, BYTES);
    v.learn();
    assert!(v.detector.file_systems().is_empty());
}

#[test]
fn a_file_cannot_replace_the_file_system() {
    let mut v = TestVolume::new(BYTES);
    v.write(1024, &ext4());
    v.write(65_536, &btrfs(9));
    assert!(v.detector.file_systems()[0].starts_with("ext4"));
    assert_eq!(v.write(1 << 19, &tree_block(9)), [], "btrfs is not there");
}

#[test]
fn tree_blocks_are_followed_over_writes() {
    let mut v = TestVolume::new(BYTES);
    v.write(65_536, &btrfs(9));
    let at = 1 << 19;
    let block = tree_block(9);
    assert_eq!(v.write(at, &block[..4096]), [(at, at + 4096)]);
    assert_eq!(v.write(at + 4096, &block[4096..8192]), [(at + 4096, at + 8192)]);
    assert_eq!(v.write(at + 8192, &[1; 16_384]), [(at + 8192, at + 16_384)]);
    assert_eq!(v.write(at, &block[..4096]).len(), 1);
    assert_eq!(v.write(at + 8192, &[1; 4096]), [], "another place");
    assert_eq!(v.write(at, &tree_block(8)), [], "the UUID of another file system");
}

#[test]
fn a_file_system_in_a_partition_is_found() {
    let mut v = TestVolume::new(BYTES);
    let mut mbr = vec![0; 512];
    mbr[446 + 4] = 0x83;
    put(&mut mbr, 446 + 8, &256u32.to_le_bytes());
    put(&mut mbr, 446 + 12, &((BYTES / 512 - 256) as u32).to_le_bytes());
    put(&mut mbr, 510, &[0x55, 0xaa]);
    v.write(0, &mbr);
    let start = 256 * 512;
    let mut superblock = ext4();
    put(&mut superblock, 4, &512u32.to_le_bytes());
    v.write(start + 1024, &superblock);
    assert_eq!(v.detector.file_systems(), ["ext4 with blocks of 1024 bytes, 1 groups at byte 131072"]);
    v.write(start + 2048, &[group(), vec![0; 992]].concat());
    assert_eq!(v.write(start + 3072, &[7; 1024]), [(start + 3072, start + 4096)]);
    // The same disk with a GPT.
    let mut v = TestVolume::new(BYTES);
    mbr[446 + 4] = 0xee;
    let mut header = vec![0; 512];
    put(&mut header, 0, b"EFI PART");
    put(&mut header, 72, &2u64.to_le_bytes());
    put(&mut header, 80, &128u32.to_le_bytes());
    put(&mut header, 84, &128u32.to_le_bytes());
    let mut entry = vec![1; 16];
    entry.resize(32, 0);
    entry.extend_from_slice(&256u64.to_le_bytes());
    entry.extend_from_slice(&(BYTES / 512 - 34).to_le_bytes());
    entry.resize(512, 0);
    v.write(0, &[mbr, header, entry].concat());
    v.write(start + 1024, &superblock);
    assert_eq!(v.detector.file_systems().len(), 1);
}

proptest! {
    /// Bytes of any client: no panic, and ranges inside the write.
    #[test]
    fn any_writes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..4000)) {
        session(&bytes);
    }

    /// Superblocks with changed bytes, which pass more checks than random ones.
    #[test]
    fn changed_superblocks_are_survived(
        kind in 0u8..4,
        changes in proptest::collection::vec((0usize..1024, any::<u8>()), 0..12),
        rest in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = vec![kind];
        for (at, byte) in changes {
            bytes.extend_from_slice(&(at as u16).to_le_bytes());
            bytes.push(byte);
        }
        bytes.extend_from_slice(&[0xff, 0xff]);
        bytes.extend_from_slice(&rest);
        session(&bytes);
    }
}
