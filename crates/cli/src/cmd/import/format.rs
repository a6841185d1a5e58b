//! Detection of images that are not raw, by their first bytes.

use std::path::Path;

/// Number of first bytes that are needed to detect the format.
pub(super) const HEAD_BYTES: usize = 512;

/// A format that is not raw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ImageFormat {
    /// A virtual disk image, with its format name in qemu-img.
    Disk(&'static str),
    /// A compressed image: the format name, and the command that unpacks it to standard output.
    Packed(&'static str, &'static str),
}

/// Offset and bytes of each magic number, and the format.
const MAGICS: [(usize, &[u8], ImageFormat); 17] = [
    (0, b"QFI\xfb", ImageFormat::Disk("qcow2")),
    (0, b"QED\0", ImageFormat::Disk("qed")),
    (0, b"KDMV", ImageFormat::Disk("vmdk")),
    (0, b"COWD", ImageFormat::Disk("vmdk")),
    (0, b"# Disk DescriptorFile", ImageFormat::Disk("vmdk")),
    (0, b"vhdxfile", ImageFormat::Disk("vhdx")),
    (0, b"conectix", ImageFormat::Disk("vpc")),
    (0x40, b"\x7f\x10\xda\xbe", ImageFormat::Disk("vdi")),
    (0, b"WithoutFreeSpace", ImageFormat::Disk("parallels")),
    (0, b"WithouFreSpacExt", ImageFormat::Disk("parallels")),
    (0, b"\x1f\x8b\x08", ImageFormat::Packed("gzip", "gzip -dc")),
    (0, b"\xfd7zXZ\0", ImageFormat::Packed("xz", "xz -dc")),
    (0, b"\x28\xb5\x2f\xfd", ImageFormat::Packed("zstd", "zstd -dc")),
    (0, b"BZh", ImageFormat::Packed("bzip2", "bzip2 -dc")),
    (0, b"\x04\x22\x4d\x18", ImageFormat::Packed("lz4", "lz4 -dc")),
    (0, b"PK\x03\x04", ImageFormat::Packed("zip", "unzip -p")),
    (0, b"7z\xbc\xaf\x27\x1c", ImageFormat::Packed("7z", "7z e -so")),
];

impl ImageFormat {
    /// Returns the format of an image with these first bytes; `None` for a raw one.
    pub(super) fn of(head: &[u8]) -> Option<ImageFormat> {
        let starts = |&&(at, magic, _): &&(usize, &[u8], ImageFormat)| {
            head.get(at..).is_some_and(|rest| rest.starts_with(magic))
        };
        MAGICS.iter().find(starts).map(|m| m.2)
    }

    /// Returns the name of the format.
    pub(super) fn name(self) -> &'static str {
        match self {
            ImageFormat::Disk(name) | ImageFormat::Packed(name, _) => name,
        }
    }

    /// Returns the command that converts an image of this format to a raw one.
    pub(super) fn hint(self, image: &Path, volume: &Path) -> String {
        let (from, volume) = (image.display(), volume.display());
        let convert = match self {
            ImageFormat::Disk(name) if image == Path::new("-") => {
                format!("qemu-img convert -f {name} -O raw IMAGE disk.img, and import disk.img")
            }
            ImageFormat::Disk(name) => {
                format!("qemu-img convert -f {name} -O raw {from} disk.img, and import disk.img")
            }
            ImageFormat::Packed(_, unpack) if image == Path::new("-") => {
                format!("{unpack} IMAGE | frit import {volume} -")
            }
            ImageFormat::Packed(_, unpack) => format!("{unpack} {from} | frit import {volume} -"),
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
        assert_eq!(ImageFormat::of(&vdi).map(ImageFormat::name), Some("vdi"));
        assert_eq!(ImageFormat::of(b"QFI\xfb\0\0\0\x03").map(ImageFormat::name), Some("qcow2"));
        assert_eq!(ImageFormat::of(b"BZh91AY").map(ImageFormat::name), Some("bzip2"));
        for raw in [&b""[..], b"Q", &[0; HEAD_BYTES], b"LUKS\xba\xbe", b"\xeb\x63\x90"] {
            assert_eq!(ImageFormat::of(raw), None);
        }
        let hint = ImageFormat::of(b"\x1f\x8b\x08\0").unwrap().hint(Path::new("d.gz"), Path::new("vol"));
        assert!(hint.starts_with("gzip -dc d.gz | frit import vol -;"), "{hint}");
    }
}
