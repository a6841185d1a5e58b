//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a 64-bit hash and a small random generator.

/// Step of the generator's state: 2⁶⁴ divided by the golden ratio.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns a 64-bit hash of `x`: the output of the generator in state `x`.
#[inline]
#[must_use]
pub fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(GAMMA);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns the next number of the generator. `state` starts with the seed.
#[inline]
pub fn next(state: &mut u64) -> u64 {
    let number = mix(*state);
    *state = state.wrapping_add(GAMMA);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs for seed 1234567, published with the reference implementation.
    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut state = 1_234_567;
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423_u64];
        for number in expected {
            assert_eq!(next(&mut state), number);
        }
    }
}
