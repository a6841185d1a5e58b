//! Integers in foreign bytes. A place outside the bytes reads as 0, so no input causes a panic.

fn at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let end = at.saturating_add(N);
    bytes.get(at..end).and_then(|b| b.try_into().ok()).unwrap_or([0; N])
}

macro_rules! readers {
    ($($name:ident: $type:ty = $from:ident, $order:literal;)*) => {$(
        #[doc = concat!("Returns the ", $order, "-endian integer at a place.")]
        #[inline]
        pub(super) fn $name(bytes: &[u8], place: usize) -> $type {
            <$type>::$from(at(bytes, place))
        }
    )*};
}

readers! {
    le16: u16 = from_le_bytes, "little";
    le32: u32 = from_le_bytes, "little";
    le64: u64 = from_le_bytes, "little";
    be16: u16 = from_be_bytes, "big";
    be32: u32 = from_be_bytes, "big";
    be64: u64 = from_be_bytes, "big";
}

/// Returns the byte at a place.
#[inline]
pub(super) fn byte(bytes: &[u8], place: usize) -> u8 {
    bytes.get(place).copied().unwrap_or(0)
}

/// Returns the UUID at a place.
#[inline]
pub(super) fn uuid(bytes: &[u8], place: usize) -> [u8; 16] {
    at(bytes, place)
}

/// Returns the part of `data`, which lies at address `at`, that begins at address `from`; `None` if
/// it does not contain `len` bytes there.
#[inline]
pub(super) fn slice_at(data: &[u8], at: u64, from: u64, len: usize) -> Option<&[u8]> {
    let begin = usize::try_from(from.checked_sub(at)?).ok()?;
    data.get(begin..begin.checked_add(len)?)
}

/// Returns the whole blocks of a write with their addresses.
#[inline]
pub(super) fn blocks(data: &[u8], at: u64, block_bytes: u64) -> impl Iterator<Item = (u64, &[u8])> {
    let first = at.next_multiple_of(block_bytes);
    let whole = data.get((first - at) as usize..).unwrap_or_default();
    (first..).step_by(block_bytes as usize).zip(whole.chunks_exact(block_bytes as usize))
}
