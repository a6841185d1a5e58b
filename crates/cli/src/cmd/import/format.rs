//! Detection of images that are not raw, by their first bytes.

use std::path::Path;

/// Number of first bytes that are needed to detect the format.
pub(super) const HEAD_BYTES: usize = 512;

/// A format that is not raw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    /// A virtual disk image, with its format name in qemu-img.
    Disk(&'static str),
    /// A compressed image: the format name, and the command that unpacks it to standard output.
    Packed(&'static str, &'static str),
}

/// Offset and bytes of each magic number, and the format.
const MAGICS: [(usize, &[u8], Format); 17] = [
    (0, b"QFI\xfb", Format::Disk("qcow2")),
    (0, b"QED\0", Format::Disk("qed")),
    (0, b"KDMV", Format::Disk("vmdk")),
    (0, b"COWD", Format::Disk("vmdk")),
    (0, b"# Disk DescriptorFile", Format::Disk("vmdk")),
    (0, b"vhdxfile", Format::Disk("vhdx")),
    (0, b"conectix", Format::Disk("vpc")),
    (0x40, b"\x7f\x10\xda\xbe", Format::Disk("vdi")),
    (0, b"WithoutFreeSpace", Format::Disk("parallels")),
    (0, b"WithouFreSpacExt", Format::Disk("parallels")),
    (0, b"\x1f\x8b\x08", Format::Packed("gzip", "gzip -dc")),
    (0, b"\xfd7zXZ\0", Format::Packed("xz", "xz -dc")),
    (0, b"\x28\xb5\x2f\xfd", Format::Packed("zstd", "zstd -dc")),
    (0, b"BZh", Format::Packed("bzip2", "bzip2 -dc")),
    (0, b"\x04\x22\x4d\x18", Format::Packed("lz4", "lz4 -dc")),
    (0, b"PK\x03\x04", Format::Packed("zip", "unzip -p")),
    (0, b"7z\xbc\xaf\x27\x1c", Format::Packed("7z", "7z e -so")),
];

impl Format {
    /// Returns the format of an image with these first bytes; `None` for a raw one.
    pub(super) fn of(head: &[u8]) -> Option<Format> {
        let starts = |&&(at, magic, _): &&(usize, &[u8], Format)| {
            head.get(at..).is_some_and(|rest| rest.starts_with(magic))
        };
        MAGICS.iter().find(starts).map(|m| m.2)
    }

    /// Returns the name of the format.
    pub(super) fn name(self) -> &'static str {
        match self {
            Format::Disk(name) | Format::Packed(name, _) => name,
        }
    }

    /// Returns the command that converts an image of this format to a raw one.
    pub(super) fn hint(self, image: &Path, volume: &Path) -> String {
        let (from, volume) = (image.display(), volume.display());
        let convert = match self {
            Format::Disk(name) if image == Path::new("-") => {
                format!("qemu-img convert -f {name} -O raw IMAGE disk.img, and import disk.img")
            }
            Format::Disk(name) => {
                format!("qemu-img convert -f {name} -O raw {from} disk.img, and import disk.img")
            }
            Format::Packed(_, unpack) if image == Path::new("-") => {
                format!("{unpack} IMAGE | frit import {volume} -")
            }
            Format::Packed(_, unpack) => format!("{unpack} {from} | frit import {volume} -"),
        };
        format!("{convert}; --format raw takes the bytes of the file as they are")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        let mut vdi = b"<<< Oracle VM VirtualBox Disk Image >>>\n".to_vec();
        vdi.resize(0x40, 0);
        vdi.extend(0xbeda_107f_u32.to_le_bytes());
        assert_eq!(Format::of(&vdi).map(Format::name), Some("vdi"));
        assert_eq!(Format::of(b"QFI\xfb\0\0\0\x03").map(Format::name), Some("qcow2"));
        assert_eq!(Format::of(b"BZh91AY").map(Format::name), Some("bzip2"));
        for raw in [&b""[..], b"Q", &[0; HEAD_BYTES], b"LUKS\xba\xbe", b"\xeb\x63\x90"] {
            assert_eq!(Format::of(raw), None);
        }
        let hint = Format::of(b"\x1f\x8b\x08\0").unwrap().hint(Path::new("d.gz"), Path::new("vol"));
        assert!(hint.starts_with("gzip -dc d.gz | frit import vol -;"), "{hint}");
    }
}
