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

/// A small Feistel network over the next even number of bits, walked until it lands inside (fewer than four steps on average).
pub fn shuffled(seed: u64, position: u64, len: u64) -> u64 {
    if len < 2 {
        return position;
    }
    let half_bits = (64 - (len - 1).leading_zeros()).div_ceil(2);
    let mask = (1u64 << half_bits) - 1;
    let mut at = position;
    loop {
        let (mut left, mut right) = (at >> half_bits, at & mask);
        for round in 1..=4u64 {
            (left, right) = (right, left ^ scramble(right ^ seed.wrapping_add(round << 56)) & mask);
        }
        at = left << half_bits | right;
        if at < len {
            return at;
        }
    }
}
