//! The engine's own view of a file: it decodes the inode and the lines of extents from the memory, as
//! `docs/reference/format.md` describes them.

/// Bytes of an inode.
pub(super) const INODE: usize = 256;
/// Bytes of a block of the file system.
pub(super) const BLOCK: u64 = 4096;
/// Bytes of a line of extents.
const LINE: usize = 256;

/// A contiguous part of a file on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EngineExtent {
    /// Byte position in the file.
    pub(super) at: u64,
    /// Length in bytes.
    pub(super) len: u64,
    /// Byte position on the medium.
    pub(super) medium: u64,
}

/// Decoded place of a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct FileMap {
    /// Size in bytes.
    pub(super) size: u64,
    /// Next block of lines of extents; 0 for none.
    pub(super) next: u64,
    /// Written extents, in the order of their places.
    extents: Vec<EngineExtent>,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

impl FileMap {
    /// Decodes an inode.
    pub(super) fn of_inode(inode: &[u8]) -> FileMap {
        let mut map = FileMap { size: word(inode, 24), next: word(inode, 80), extents: Vec::new() };
        (0..8).for_each(|place| map.add(word(inode, 128 + 16 * place), word(inode, 136 + 16 * place)));
        map
    }

    /// Decodes a block of lines of extents.
    pub(super) fn add_block(&mut self, block: &[u8]) {
        self.next = word(block, 8);
        for line in block.chunks_exact(LINE) {
            (0..15).for_each(|place| self.add(word(line, 16 + 16 * place), word(line, 24 + 16 * place)));
        }
    }

    fn add(&mut self, first: u64, start: u64) {
        let (at, blocks) = (first & ((1 << 40) - 1), first >> 40 & ((1 << 23) - 1));
        if blocks > 0 && first >> 63 == 1 {
            let extent = EngineExtent { at: at * BLOCK, len: blocks * BLOCK, medium: start * BLOCK };
            self.extents.push(extent);
        }
    }

    /// Returns the extents in the order of the file, up to its size.
    pub(super) fn into_extents(self) -> Vec<EngineExtent> {
        let FileMap { size, mut extents, .. } = self;
        extents.sort_unstable_by_key(|e| e.at);
        extents.retain_mut(|e| {
            e.len = e.len.min(size.saturating_sub(e.at));
            e.len > 0
        });
        extents
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::format;
    use crate::{Devices, HostModel, SimMedium};
    use frit_core::Sink;
    use frit_fs::{Allocate, FileSystem, Fs, Ino};
    use frit_fs::{Caller, NewInode};

    /// Follows a file in an image, and returns its extents and the number of blocks of lines.
    fn followed(image: &[u8], inode_at: u64) -> (Vec<EngineExtent>, u64) {
        let mut map = FileMap::of_inode(&image[inode_at as usize..][..INODE]);
        let mut blocks = 0;
        while map.next != 0 {
            let block = &image[(map.next * BLOCK) as usize..][..BLOCK as usize];
            map.add_block(block);
            blocks += 1;
        }
        (map.into_extents(), blocks)
    }

    #[test]
    fn extents_are_those_of_the_file_system() {
        let host = HostModel::find("direct").unwrap();
        let parts = Devices::new("lpddr2-nvm-ispfs-2018", host, Some(16 << 20)).unwrap();
        let medium = SimMedium::new(parts, Sink::untimed()).unwrap();
        let fs = Fs::format(&medium, format(1, false)).unwrap();
        let make =
            |name: &[u8]| fs.create(&Caller::ROOT, Ino::ROOT, name, NewInode::file(0o644)).unwrap().ino;
        let files = [make(b"a"), make(b"b"), make(b"c")];
        // Two files grow in turns, one block at a time, and have more extents than an inode or a block
        // of lines has places.
        for i in 0..600 {
            fs.write(files[0], i * 4096, &[1; 4096]).unwrap();
            fs.write(files[1], i * 4096, &[2; 4000]).unwrap();
        }
        fs.write(files[2], 1 << 20, &[3; 100]).unwrap();
        fs.allocate(files[2], Allocate::Zero, 0, 8192).unwrap();
        let image = medium.image().unwrap();
        let mut chains = 0;
        for ino in files {
            let mut expected = Vec::new();
            let size = fs.attr(ino).unwrap().size;
            fs.pieces(ino, 0, &mut |e| {
                if e.written {
                    let len = e.len.min(size - e.at);
                    expected.push(EngineExtent { at: e.at, len, medium: e.medium });
                }
                true
            })
            .unwrap();
            let (found, blocks) = followed(&image, fs.geometry().inode_at(ino.0));
            assert_eq!(found, expected);
            chains += blocks;
        }
        assert!(chains >= 2, "{chains} blocks of lines");
    }
}
