//! Places of the fields of the structure.

use crate::outcome::Failure;

/// Size of the structure in bytes.
pub const STRUCTURE_BYTES: usize = 4096;
/// First bytes of the structure: its name and version.
pub const MAGIC: [u8; 8] = *b"fritISP1";
/// First bytes of the structure of any version. They decide the form of the result as well.
pub(crate) const NAME_OF_FORM: [u8; 7] = *b"fritISP";

/// Field of the structure: its first byte, and its size in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field(pub(super) usize, pub(super) usize);

impl Field {
    /// Element of a field that is an array.
    pub(super) fn element(self, index: usize, bytes: usize) -> Self {
        Self(self.0 + index * bytes, bytes)
    }
}

/// Bytes of a word: its length, and up to 31 bytes.
pub(super) const SLOT_BYTES: usize = 32;

// Command.
pub(super) const SIZE: Field = Field(8, 4);
pub(super) const COMMAND: Field = Field(12, 2);
pub(super) const FLAGS: Field = Field(14, 2);
pub(super) const COUNT: Field = Field(16, 4);
pub(super) const POSITIONS_MAX: Field = Field(20, 4);
pub(super) const MEMORY: Field = Field(24, 8);
const RESERVED_COMMAND: Field = Field(32, 32);
pub(super) const PARAMETERS: Field = Field(64, 2048);

// File information.
pub(super) const INODE: Field = Field(2112, 8);
pub(super) const OFFSET: Field = Field(2120, 8);
pub(super) const LENGTH: Field = Field(2128, 8);
const RESERVED_FILE: Field = Field(2136, 8);
pub(super) const NAME: Field = Field(2144, 512);

// Results.
pub(super) const COUNTS: Field = Field(2656, 512);
pub(super) const POSITION_COUNTS: Field = Field(3168, 256);
pub(super) const RESULT_BYTES: Field = Field(3424, 8);
pub(super) const BYTES_SCANNED: Field = Field(3432, 8);

// Status.
pub(super) const COMPLETE: Field = Field(3456, 4);
pub(super) const CODE: Field = Field(3460, 4);
pub(super) const RESULT_FLAGS: Field = Field(3464, 4);
pub(super) const YIELDS: Field = Field(3468, 4);
pub(super) const WALL_NS: Field = Field(3472, 8);
pub(super) const CPU_NS: Field = Field(3480, 8);
pub(super) const YIELDED_NS: Field = Field(3488, 8);
pub(super) const MESSAGE: Field = Field(3520, 576);

/// Structure of an instruction whose size, magic and reserved bytes are right.
pub(super) struct Structure<'a>(&'a [u8; STRUCTURE_BYTES]);

impl<'a> Structure<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, Failure> {
        let structure: &[u8; STRUCTURE_BYTES] = bytes.try_into().map_err(|_| {
            Failure::invalid(format!("the instruction has {} bytes; it has {STRUCTURE_BYTES}", bytes.len()))
        })?;
        if structure.starts_with(&NAME_OF_FORM) && structure[NAME_OF_FORM.len()] != MAGIC[NAME_OF_FORM.len()]
        {
            let version = char::from(structure[NAME_OF_FORM.len()]);
            return Err(Failure::invalid(format!(
                "the version {version:?} of the binary form is not known; this engine knows the version '1', whose \
                 structure begins with \"fritISP1\""
            )));
        }
        if !structure.starts_with(&MAGIC) {
            return Err(Failure::invalid(
                "the instruction does not begin with \"fritISP1\", the name and version of its form",
            ));
        }
        let new = Self(structure);
        if new.number(SIZE) != STRUCTURE_BYTES as u64 {
            return Err(super::wrong(SIZE, new.number(SIZE), "4096, the size of the structure"));
        }
        for reserved in [RESERVED_COMMAND, RESERVED_FILE] {
            super::zeros(reserved.0, new.bytes(reserved))?;
        }
        Ok(new)
    }

    pub(super) fn bytes(&self, field: Field) -> &'a [u8] {
        &self.0[field.0..field.0 + field.1]
    }

    pub(super) fn number(&self, field: Field) -> u64 {
        read(self.0, field)
    }
}

/// Reads a number of at most eight bytes.
pub(super) fn read(structure: &[u8], field: Field) -> u64 {
    let bytes = &structure[field.0..field.0 + field.1];
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Writes a number of at most eight bytes, or the largest one that fits.
pub(super) fn write(structure: &mut [u8], field: Field, value: u64) {
    let max = if field.1 >= 8 { u64::MAX } else { (1 << (8 * field.1)) - 1 };
    let bytes = value.min(max).to_le_bytes();
    structure[field.0..field.0 + field.1].copy_from_slice(&bytes[..field.1]);
}

/// Writes a text that ends with a zero, cut to fit.
pub(super) fn write_text(structure: &mut [u8], field: Field, text: &str) {
    let len = (0..field.1.min(text.len() + 1)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    structure[field.0..field.0 + len].copy_from_slice(&text.as_bytes()[..len]);
}

/// Clears the parts for results and status. The structure gets the version in which they are written.
pub(super) fn clear_results(structure: &mut [u8]) {
    if !structure.starts_with(&MAGIC) {
        structure[..MAGIC.len()].copy_from_slice(&MAGIC);
        write(structure, SIZE, STRUCTURE_BYTES as u64);
    }
    structure[COUNTS.0..STRUCTURE_BYTES].fill(0);
}
