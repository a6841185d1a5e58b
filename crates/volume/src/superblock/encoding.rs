//! Encoding of a superblock copy: little-endian, fixed fields, then records and texts, then CRC32C.

use super::{Backing, Features, MediumRecord, RecoveryRecord, Superblock, VERSION, VolumeState};
use frit_core::MediumKind;
use frit_media::FileAccess;
use strum::IntoEnumIterator;

const MAGIC: [u8; 8] = *b"fritVOL\0";
/// Size of the fixed fields before the media records, in bytes.
const FIXED: usize = 224;
/// Size of the fixed fields of a media record, in bytes.
const MEDIUM_FIXED: usize = 16;

/// Position of the access of each medium, one byte a medium.
const ACCESS: usize = 192;
/// Number of media, from the first one on, whose access is stored. The others use the page cache.
pub(crate) const ACCESS_MEDIA_MAX: usize = FIXED - ACCESS;

/// Reason why bytes are not a usable superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum DecodeError {
    /// No superblock, or a torn or damaged one: the other copy is used.
    Damaged(String),
    /// A valid superblock of another version of frit: the other copy must not be used instead.
    Refused(String),
}

fn damaged<T>(why: impl Into<String>) -> Result<T, DecodeError> {
    Err(DecodeError::Damaged(why.into()))
}

fn kind_number(kind: MediumKind) -> u8 {
    match kind {
        MediumKind::Nand => 1,
        MediumKind::Pcm => 2,
        MediumKind::Dram => 3,
        MediumKind::Disk => 4,
        MediumKind::Object => 5,
    }
}

fn access_number(access: FileAccess) -> u8 {
    match access {
        FileAccess::PageCache => 0,
        FileAccess::Direct => 1,
        FileAccess::IoUring => 2,
    }
}

/// Returns the access of a number. The page cache suits every file, so it stands for unknown ones.
fn access_of(number: u8) -> FileAccess {
    FileAccess::iter().find(|a| access_number(*a) == number).unwrap_or_default()
}

/// Returns the parameters as text, one a line.
fn params_text(params: &[(String, String)]) -> String {
    params.iter().map(|(k, v)| format!("{k}={v}\n")).collect()
}

pub(super) fn encode(s: &Superblock) -> Vec<u8> {
    let params = params_text(&s.params);
    let mut b = Vec::with_capacity(4096);
    b.extend(MAGIC);
    let u32s = |b: &mut Vec<u8>, all: &[u32]| all.iter().for_each(|n| b.extend(n.to_le_bytes()));
    let u64s = |b: &mut Vec<u8>, all: &[u64]| all.iter().for_each(|n| b.extend(n.to_le_bytes()));
    // The length is filled in at the end.
    u32s(&mut b, &[VERSION, 0]);
    u64s(&mut b, &[s.sequence]);
    let state = match s.state {
        VolumeState::Creating => 0,
        VolumeState::Clean => 1,
        VolumeState::Dirty => 2,
    };
    u32s(&mut b, &[s.features.compatible, s.features.read_only, s.features.incompatible, state]);
    b.extend(s.uuid);
    b.extend(s.boot_id);
    u64s(&mut b, &[s.created_unix]);
    b.extend(s.sha256);
    let lens = [s.media.len(), s.created_by.len(), s.name.len(), s.stack.len(), params.len()];
    lens.iter().for_each(|n| u32s(&mut b, &[*n as u32]));
    let r = s.recovery.unwrap_or_default();
    let flags = u32::from(s.recovery.is_some()) | u32::from(r.power_loss) << 1 | u32::from(r.from_flush) << 2;
    u32s(&mut b, &[flags]);
    u64s(&mut b, &[r.unix, r.pages, r.pages_in_pcm, r.bytes_read, r.micros]);
    u32s(&mut b, &[r.redone, r.padded, r.suspect_blocks, r.lost]);
    b.extend(s.media.iter().take(ACCESS_MEDIA_MAX).map(|m| access_number(m.access)));
    b.resize(FIXED, 0);
    for m in &s.media {
        let backing = match m.backing {
            Backing::File => 0,
            Backing::BlockDevice => 1,
            Backing::DaxFile => 2,
            Backing::ObjectStore => 3,
        };
        b.extend([kind_number(m.kind), backing]);
        b.extend((m.name.len() as u16).to_le_bytes());
        u32s(&mut b, &[m.path.len() as u32]);
        u64s(&mut b, &[m.bytes]);
        b.extend(m.name.as_bytes());
        b.extend(m.path.as_bytes());
    }
    for text in [&s.created_by, &s.name, &s.stack, &params] {
        b.extend(text.as_bytes());
    }
    let len = b.len() as u32 + 4;
    b[12..16].copy_from_slice(&len.to_le_bytes());
    let crc = frit_media::checksum::crc32c(&b);
    u32s(&mut b, &[crc]);
    b
}

/// Reader of fields from the front of a byte slice.
struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
    fn bytes(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let Some((now, rest)) = self.0.split_at_checked(n) else { return damaged("it is truncated") };
        self.0 = rest;
        Ok(now)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let bytes = self.bytes(N)?;
        bytes.try_into().map_err(|_| DecodeError::Damaged("it is truncated".into()))
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn text(&mut self, n: usize) -> Result<String, DecodeError> {
        let bytes = self.bytes(n)?;
        String::from_utf8(bytes.into())
            .map_err(|_| DecodeError::Damaged("a text in it is not valid UTF-8".into()))
    }
}

/// Returns the bytes that the checksum covers, if the checksum matches.
fn checked(b: &[u8]) -> Result<&[u8], DecodeError> {
    if !b.starts_with(&MAGIC) {
        return damaged("it does not start with the magic number of a superblock");
    }
    let mut f = FieldReader(&b[MAGIC.len()..]);
    let version = f.u32()?;
    let len = f.u32()? as usize;
    // A newer version may have another layout; only these fields and the checksum are fixed.
    let Some(copy) = b.get(..len).filter(|c| c.len() >= MAGIC.len() + 12) else {
        return damaged(format!("its length of {len} bytes is invalid"));
    };
    let (body, crc) = copy.split_at(len - 4);
    if crc != frit_media::checksum::crc32c(body).to_le_bytes() {
        return damaged("its checksum is wrong");
    }
    if version > VERSION {
        let why = format!(
            "format version {version} is newer than version {VERSION}, which this frit knows; use a newer frit"
        );
        return Err(DecodeError::Refused(why));
    }
    if version == 0 || len < FIXED + 4 {
        return damaged(format!("version {version} with {len} bytes is invalid"));
    }
    Ok(body)
}

pub(super) fn decode(b: &[u8]) -> Result<Superblock, DecodeError> {
    let body = checked(b)?;
    let mut f = FieldReader(&body[16..]);
    let sequence = f.u64()?;
    let features = Features { compatible: f.u32()?, read_only: f.u32()?, incompatible: f.u32()? };
    let unknown = features.incompatible & !Features::KNOWN;
    if unknown != 0 {
        let why = format!(
            "the volume has features that this frit does not know (bits {unknown:#x}); use a newer frit"
        );
        return Err(DecodeError::Refused(why));
    }
    let state = match f.u32()? {
        0 => VolumeState::Creating,
        1 => VolumeState::Clean,
        2 => VolumeState::Dirty,
        n => return damaged(format!("state {n} is invalid")),
    };
    let (uuid, boot_id) = (f.array()?, f.array()?);
    let created_unix = f.u64()?;
    let sha256 = f.array()?;
    let mut lens = [0usize; 5];
    for n in &mut lens {
        *n = f.u32()? as usize;
    }
    let recovery = recovery(&mut f)?;
    let mut f = FieldReader(&body[FIXED..]);
    // Every record takes some bytes, so a wrong count fails at the end of the input and cannot
    // allocate without limit.
    let mut media = (0..lens[0]).map(|_| medium(&mut f)).collect::<Result<Vec<_>, _>>()?;
    for (m, number) in media.iter_mut().zip(&body[ACCESS..FIXED]) {
        m.access = access_of(*number);
    }
    let created_by = f.text(lens[1])?;
    let name = f.text(lens[2])?;
    let stack = f.text(lens[3])?;
    let params = params(&f.text(lens[4])?)?;
    Ok(Superblock {
        sequence,
        features,
        state,
        uuid,
        boot_id,
        created_unix,
        created_by,
        name,
        stack,
        sha256,
        media,
        params,
        recovery,
    })
}

fn recovery(f: &mut FieldReader<'_>) -> Result<Option<RecoveryRecord>, DecodeError> {
    let flags = f.u32()?;
    let r = RecoveryRecord {
        power_loss: flags & 2 != 0,
        from_flush: flags & 4 != 0,
        unix: f.u64()?,
        pages: f.u64()?,
        pages_in_pcm: f.u64()?,
        bytes_read: f.u64()?,
        micros: f.u64()?,
        redone: f.u32()?,
        padded: f.u32()?,
        suspect_blocks: f.u32()?,
        lost: f.u32()?,
    };
    Ok((flags & 1 != 0).then_some(r))
}

fn medium(f: &mut FieldReader<'_>) -> Result<MediumRecord, DecodeError> {
    let [kind, backing] = f.array()?;
    let kind = match kind {
        1 => MediumKind::Nand,
        2 => MediumKind::Pcm,
        3 => MediumKind::Dram,
        4 => MediumKind::Disk,
        5 => MediumKind::Object,
        n => return damaged(format!("a medium of kind {n} is invalid")),
    };
    let backing = match backing {
        0 => Backing::File,
        1 => Backing::BlockDevice,
        2 => Backing::DaxFile,
        3 => Backing::ObjectStore,
        n => return damaged(format!("the backing {n} of a medium is invalid")),
    };
    let (name, path) = (usize::from(f.u16()?), f.u32()? as usize);
    let bytes = f.u64()?;
    let access = FileAccess::default();
    Ok(MediumRecord { kind, backing, bytes, name: f.text(name)?, path: f.text(path)?, access })
}

fn params(text: &str) -> Result<Vec<(String, String)>, DecodeError> {
    let pair = |line: &str| match line.split_once('=') {
        Some((k, v)) => Ok((k.to_owned(), v.to_owned())),
        None => damaged(format!("'{line}' is not a parameter with its value")),
    };
    text.lines().map(pair).collect()
}

const _: () = assert!(MEDIUM_FIXED == 1 + 1 + 2 + 4 + 8 && ACCESS + ACCESS_MEDIA_MAX == FIXED);
