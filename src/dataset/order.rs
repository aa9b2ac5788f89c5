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
}

/// A walk over `len` indexes: which one stands at a position, and where an index stands. A bijection on `0 … len − 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    len: u64,
    shuffle: Option<Shuffle>,
}

/// Adding, multiplying and folding within the next power of two, each of which can be undone; walked until it lands inside
/// (fewer than two steps on average).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shuffle {
    mask: u64,
    /// At least half of the bits, so that folding twice is folding not at all.
    fold: u32,
    keys: [u64; ROUNDS],
}

const ROUNDS: usize = 3;
/// Multipliers of the rounds; odd, so that multiplying can be undone.
const MULTIPLIERS: [u64; ROUNDS] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0x9e37_79b9_7f4a_7c15];
/// What undoes them.
const INVERSES: [u64; ROUNDS] = [inverse(MULTIPLIERS[0]), inverse(MULTIPLIERS[1]), inverse(MULTIPLIERS[2])];

/// The number that an odd one must be multiplied by for 1, in 64 bits: each of Newton's steps doubles the bits that are right.
const fn inverse(odd: u64) -> u64 {
    let (mut inverse, mut step) = (odd, 0);
    while step < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

impl Walk {
    /// The walk of `seed` over `len` indexes.
    pub fn new(order: Order, seed: u64, len: u64) -> Self {
        let shuffle = (order == Order::Shuffled && len > 1).then(|| {
            let bits = 64 - (len - 1).leading_zeros();
            let key = scramble(seed);
            let keys = [key, key.rotate_left(21), key.rotate_left(42)];
            Shuffle { mask: u64::MAX >> (64 - bits), fold: bits.div_ceil(2), keys }
        });
        Self { len, shuffle }
    }

    /// How many indexes.
    pub fn indexes(&self) -> u64 {
        self.len
    }

    /// The index at `position`, which is below `len`.
    #[inline]
    pub fn at(&self, position: u64) -> u64 {
        let Some(Shuffle { mask, fold, keys }) = self.shuffle else { return position };
        let mut at = position;
        loop {
            for (key, multiplier) in keys.into_iter().zip(MULTIPLIERS) {
                at = at.wrapping_add(key).wrapping_mul(multiplier) & mask;
                at ^= at >> fold;
            }
            if at < self.len {
                return at;
            }
        }
    }

    /// The position of `index`, which is below `len`.
    pub fn position_of(&self, index: u64) -> u64 {
        let Some(Shuffle { mask, fold, keys }) = self.shuffle else { return index };
        let mut at = index;
        loop {
            for (key, inverse) in keys.into_iter().zip(INVERSES).rev() {
                at ^= at >> fold;
                at = at.wrapping_mul(inverse).wrapping_sub(key) & mask;
            }
            if at < self.len {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_shuffled_walk_jumps_about() {
        for len in [1000, 20_000, 1_000_000] {
            let walk = |seed| {
                let walk = Walk::new(Order::Shuffled, seed, len);
                (0..1000).map(|position| walk.at(position)).collect::<Vec<_>>()
            };
            let order = walk(7);
            let jumps: u64 = order.windows(2).map(|pair| pair[0].abs_diff(pair[1])).sum();
            // Two places drawn at random are a third of the whole apart.
            let mean = jumps as f64 / 999.0 / len as f64;
            assert!((0.28..0.39).contains(&mean), "{mean} of {len}");
            let same = order.iter().zip(&walk(8)).filter(|(a, b)| a == b).count();
            assert!(same < 20, "{same} of {len}");
        }
    }

    proptest! {
        #[test]
        fn every_index_is_met_once_and_knows_its_position(seed: u64, len in 1u64..2000, shuffled: bool) {
            let walk = Walk::new(if shuffled { Order::Shuffled } else { Order::Written }, seed, len);
            let met: HashSet<_> = (0..len).map(|position| walk.at(position)).collect();
            prop_assert_eq!(met.len() as u64, len);
            prop_assert!(met.iter().all(|&index| index < len));
            prop_assert!((0..len).all(|position| walk.position_of(walk.at(position)) == position));
        }

        #[test]
        fn large_walks_can_be_undone(seed: u64, len in 1u64 << 32..1 << 45, part in 0.0f64..1.0) {
            let walk = Walk::new(Order::Shuffled, seed, len);
            let position = (part * len as f64) as u64;
            prop_assert_eq!(walk.position_of(walk.at(position)), position);
        }
    }
}
