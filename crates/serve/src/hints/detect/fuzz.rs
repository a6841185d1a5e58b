//! The property that fuzzing and tests share: no bytes that clients write can harm the detector.

use super::Detector;

/// Size of the volume of a session.
const BYTES: u64 = 1 << 20;
/// Number of reads that one write may cause: more than any layout of this size needs.
const READS_MAX: usize = 2000;

/// Interprets bytes as a template of a superblock with changes, followed by writes, zeros and
/// switches, and passes them to a detector.
///
/// The first byte selects the template. Changes follow, of three bytes each (place and value), up
/// to a place of 0xffff. Each further operation is a place (in sectors, 16 bits), a length in
/// sectors (8 bits, 0: a range is discarded), and one byte that fills the write.
///
/// # Panics
/// The detector breaks a promise: a range outside the write, a read outside the volume, or reads
/// without end.
#[allow(clippy::panic, reason = "a broken promise is what tests look for")]
pub fn session(bytes: &[u8]) {
    let Some((kind, mut rest)) = bytes.split_first() else { return };
    let (mut volume, at) = (vec![0u8; BYTES as usize], template_place(*kind));
    let mut superblock = template(*kind);
    while let [a, b, value, tail @ ..] = rest {
        let place = usize::from(u16::from_le_bytes([*a, *b]));
        rest = tail;
        if place == 0xffff {
            break;
        }
        let len = superblock.len();
        superblock[place % len] = *value;
    }
    let mut detector = Detector::new(BYTES);
    learn(&mut detector, &volume);
    write(&mut detector, &mut volume, at, &superblock);
    while let [a, b, sectors, fill, tail @ ..] = rest {
        let at = u64::from(u16::from_le_bytes([*a, *b])) * 512 % BYTES;
        let len = (u64::from(*sectors) * 512).min(BYTES - at);
        // Data of writes is taken from the input, so that it can be any structure.
        let data: Vec<u8> = tail.iter().copied().chain(std::iter::repeat(*fill)).take(len as usize).collect();
        if len == 0 {
            volume[at as usize..].fill(0);
            detector.zeroed(at, BYTES - at);
            learn(&mut detector, &volume);
        } else {
            write(&mut detector, &mut volume, at, &data);
        }
        rest = &tail[tail.len().min(usize::from(*fill))..];
    }
}

fn write(detector: &mut Detector, volume: &mut [u8], at: u64, data: &[u8]) {
    let end = at + data.len() as u64;
    detector.observe(at, data, &mut |r| {
        assert!(at <= r.start && r.start < r.end && r.end <= end, "{r:?} outside {at}..{end}");
    });
    volume[at as usize..end as usize].copy_from_slice(data);
    learn(detector, volume);
}

fn learn(detector: &mut Detector, volume: &[u8]) {
    for _ in 0..READS_MAX {
        let Some(r) = detector.wanted() else { return };
        assert!(r.start < r.end && r.end <= BYTES && (r.start | r.end).is_multiple_of(512), "{r:?}");
        detector.supply(r.start, &volume[r.start as usize..r.end as usize]);
    }
    assert!(detector.wanted().is_none(), "reads without end");
}

fn template_place(kind: u8) -> u64 {
    match kind % 4 {
        0 => 1024,
        1 => 65_536,
        _ => 0,
    }
}

/// Returns a superblock that the detector accepts: ext4, btrfs, XFS; or a partition table.
fn template(kind: u8) -> Vec<u8> {
    let fields: &[(usize, &[u8])] = match kind % 4 {
        0 => &[
            (0x0, &[128]),
            (0x4, &[0, 4]),
            (0x14, &[1]),
            (0x20, &[0, 1]),
            (0x28, &[128]),
            (0x38, &[0x53, 0xef]),
            (0x4c, &[1]),
            (0x58, &[128]),
            (0x5c, &[4]),
            (0xe0, &[8]),
            (0x3ff, &[0]),
        ],
        1 => &[
            (0x20, &[9; 16]),
            (0x32, &[1]),
            (0x40, b"_BHRfS_M"),
            (0x91, &[16]),
            (0x95, &[64]),
            (0xfff, &[0]),
        ],
        2 => &[
            (0, b"XFSB"),
            (6, &[4]),
            (14, &[4]),
            (32, &[9; 16]),
            (55, &[3]),
            (86, &[1]),
            (91, &[4]),
            (99, &[8]),
            (100, &[0, 5, 2]),
            (124, &[8]),
            (511, &[0]),
        ],
        _ => &[(450, &[0x83]), (455, &[1]), (459, &[4]), (510, &[0x55, 0xaa]), (1023, &[0])],
    };
    let len = fields.iter().map(|(at, b)| at + b.len()).max().unwrap_or(0);
    let mut bytes = vec![0; len.next_multiple_of(512)];
    fields.iter().for_each(|(at, b)| bytes[*at..at + b.len()].copy_from_slice(b));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_accepted() {
        for (kind, name) in [(0, "ext4"), (1, "btrfs"), (2, "XFS")] {
            let (mut volume, mut detector) = (vec![0; BYTES as usize], Detector::new(BYTES));
            learn(&mut detector, &volume);
            write(&mut detector, &mut volume, template_place(kind), &template(kind));
            assert!(detector.file_systems()[0].starts_with(name), "{name}: {:?}", detector.file_systems());
        }
    }
}
