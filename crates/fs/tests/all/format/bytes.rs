//! Reader of image bytes and checksums, written from the format's definition without using the
//! crate.

/// CRC32C, bit by bit (RFC 3720: polynomial 0x1EDC6F41, reflected), continued from `crc`.
pub(crate) fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0x82F6_3B78))
    };
    !bytes.iter().fold(!crc, step)
}

/// CRC-64/NVME, bit by bit (polynomial 0xAD93D23594C93659, reflected).
pub(crate) fn crc64(bytes: &[u8]) -> u64 {
    let step = |crc: u64, byte: &u8| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0x9A6C_9329_AC4B_C9B5))
    };
    !bytes.iter().fold(!0, step)
}

/// An image with the salt of its checksums.
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    pub(crate) salt: u32,
}

impl Image {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let salt = crc32c(0, &bytes[16..32]);
        Self { bytes, salt }
    }

    pub(crate) fn at(&self, at: u64, len: u64) -> &[u8] {
        &self.bytes[at as usize..(at + len) as usize]
    }

    /// Reads a number of `len` bytes.
    pub(crate) fn number(&self, at: u64, len: u64) -> u64 {
        self.at(at, len).iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
    }

    pub(crate) fn word(&self, at: u64) -> u64 {
        self.number(at, 8)
    }

    /// Computes `crc(salt; words, bytes)`.
    pub(crate) fn check(&self, words: &[u64], bytes: &[u8]) -> u64 {
        let salted = words.iter().fold(self.salt, |crc, word| crc32c(crc, &word.to_le_bytes()));
        u64::from(crc32c(salted, bytes))
    }

    pub(crate) fn inode_at(&self, ino: u64) -> u64 {
        self.word(120) + 256 * (ino - 1)
    }

    /// Returns `true` if an inode matches its checksum.
    pub(crate) fn inode_is_sound(&self, ino: u64) -> bool {
        let at = self.inode_at(ino);
        self.number(at, 4) == self.check(&[ino, self.number(at + 4, 4)], self.at(at + 8, 248))
    }

    /// Returns the extents of an inode: first block in the file, length, `true` if written, and
    /// position.
    pub(crate) fn extents(&self, ino: u64) -> Vec<(u64, u64, bool, u64)> {
        let mut places: Vec<u64> = (0..8).map(|i| self.inode_at(ino) + 128 + 16 * i).collect();
        let mut block = self.word(self.inode_at(ino) + 80);
        while block != 0 {
            for line in (0..16).map(|line| block * 4096 + 256 * line) {
                assert_eq!(self.word(line), self.check(&[ino, line], self.at(line + 8, 248)), "a line");
                places.extend((0..15).map(|i| line + 16 + 16 * i));
            }
            block = self.word(block * 4096 + 8);
        }
        let decode = |place: u64| {
            let first = self.word(place);
            let len = first >> 40 & 0x7F_FFFF;
            (len > 0).then(|| (first & 0xFF_FFFF_FFFF, len, first >> 63 == 1, self.word(place + 8)))
        };
        let mut extents: Vec<_> = places.into_iter().filter_map(decode).collect();
        extents.sort_unstable();
        extents
    }

    /// Returns the contents of a file.
    pub(crate) fn contents(&self, ino: u64) -> Vec<u8> {
        let mut all = vec![0; self.word(self.inode_at(ino) + 24) as usize];
        for (first, len, written, block) in self.extents(ino) {
            let from = (first * 4096) as usize;
            let to = all.len().min(((first + len) * 4096) as usize);
            if written && from < to {
                all[from..to].copy_from_slice(self.at(block * 4096, (to - from) as u64));
            }
        }
        all
    }

    /// Returns the names of a directory with their slots, inodes and types.
    pub(crate) fn names(&self, dir: u64) -> Vec<(String, u64, u64, u64)> {
        let mut names = Vec::new();
        for (first, len, written, block) in self.extents(dir) {
            assert!(written);
            let mut slot = 0;
            while slot < len * 128 {
                let at = block * 4096 + slot * 32;
                if self.word(at) == 0 {
                    slot += 1;
                    continue;
                }
                let name = self.number(at + 7, 1);
                let slots = if name <= 16 { 1 } else { 1 + (name - 16).div_ceil(32) };
                let here = first * 128 + slot;
                let check = self.check(&[dir, here, self.word(at)], self.at(at + 16, slots * 32 - 16));
                assert_eq!(self.word(at + 8), check, "a name");
                assert!(self.at(at + 16 + name, slots * 32 - 16 - name).iter().all(|byte| *byte == 0));
                let text = String::from_utf8(self.at(at + 16, name).to_vec()).unwrap();
                names.push((text, here, self.number(at, 6), self.number(at + 6, 1)));
                slot += slots;
            }
        }
        names
    }
}
