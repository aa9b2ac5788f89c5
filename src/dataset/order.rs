//! The order in which a pass walks over keys: as written, or a seeded permutation that needs no table.

use super::author::scramble;

/// The order of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the first key to the last.
    Written,
    /// Every key once, in a seeded order.
    Shuffled,
}

impl Order {
    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Shuffled => "shuffled",
        }
    }

    /// The index that stands at `position` among `len`; a bijection on `0 … len − 1` for each `seed`.
    pub fn at(self, seed: u64, position: u64, len: u64) -> u64 {
        match self {
            Self::Written => position,
            Self::Shuffled => shuffled(seed, position, len),
        }
    }
}

/// Multipliers of the rounds; odd, so that multiplying can be undone.
const MULTIPLIERS: [u64; 3] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0x9e37_79b9_7f4a_7c15];

/// Adding, multiplying and folding within the next power of two, each of which can be undone; walked until it lands inside
/// (fewer than two steps on average).
pub fn shuffled(seed: u64, position: u64, len: u64) -> u64 {
    if len < 2 {
        return position;
    }
    let bits = 64 - (len - 1).leading_zeros();
    let mask = u64::MAX >> (64 - bits);
    let fold = bits.div_ceil(2);
    let key = scramble(seed);
    let mut at = position;
    loop {
        for (round, multiplier) in (0..).zip(MULTIPLIERS) {
            at = at.wrapping_add(key.rotate_left(21 * round)).wrapping_mul(multiplier) & mask;
            at ^= at >> fold;
        }
        if at < len {
            return at;
        }
    }
}
