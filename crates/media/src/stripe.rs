//! Striping of byte addresses over channels, and splitting of accesses at channel boundaries.

/// Divides `n` by `d`, with a shift if `d` is a power of two. NAND with several bits per cell has
/// block sizes that are not.
#[inline]
pub(crate) fn div_fast(n: u32, d: u32) -> u32 {
    if d & d.wrapping_sub(1) == 0 { n >> d.trailing_zeros() } else { n / d }
}

/// Address striping over channels, with a stripe unit of `1 << shift` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stripe {
    channels: u32,
    shift: u32,
}

impl Stripe {
    /// Creates a striping. `interleave` must be a power of two.
    pub(crate) fn new(channels: u32, interleave: u32) -> Stripe {
        Stripe { channels, shift: interleave.trailing_zeros() }
    }

    /// Returns the channel of an address.
    #[inline]
    pub(crate) fn channel(&self, at: u64) -> u32 {
        let strip = at >> self.shift;
        if self.channels.is_power_of_two() {
            strip as u32 & (self.channels - 1)
        } else {
            (strip % u64::from(self.channels)) as u32
        }
    }

    /// Returns how many of the `len` bytes that start at `at` lie on one channel without a gap.
    #[inline]
    pub(crate) fn contiguous_len(&self, at: u64, len: u32) -> u32 {
        if self.channels == 1 {
            return len;
        }
        let strip = 1u64 << self.shift;
        let left = strip - (at & (strip - 1));
        left.min(u64::from(len)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_those_of_division() {
        for d in [1, 2, 3, 7, 64, 100, 1152, 1 << 31] {
            for n in [0, 1, 2, 63, 64, 65, 999, 1 << 20, u32::MAX] {
                assert_eq!(div_fast(n, d), n / d, "{n} / {d}");
            }
        }
    }

    #[test]
    fn pieces_end_where_the_channel_changes() {
        for channels in [1, 2, 3] {
            let s = Stripe::new(channels, 512);
            let (mut at, mut left) = (300u64, 5000u32);
            while left > 0 {
                let n = s.contiguous_len(at, left);
                assert!(n > 0 && s.channel(at) == s.channel(at + u64::from(n) - 1));
                if n < left && channels > 1 {
                    assert_ne!(s.channel(at), s.channel(at + u64::from(n)));
                }
                at += u64::from(n);
                left -= n;
            }
        }
    }
}
