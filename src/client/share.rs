//! Which of a client's keys belong to which of its connections: every connections-th one, so that no table is needed and no
//! key is ever touched by two connections.

use crate::dataset::{Order, Place, Walk};

/// The keys of one connection, as slots 0 … len − 1.
///
/// Slots are numbered as a pass over all of them visits them, whatever the order of the dataset, so that what is noted of
/// each lies side by side in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    client: u32,
    first: u64,
    stride: u64,
    /// Over all of its keys.
    walk: Walk,
    /// Over the first of them, if a pass is about those alone.
    part: Option<Walk>,
}

impl Share {
    /// The share of connection `connection` of `connections` of `client`, which owns `keys` keys and walks over them in `order`,
    /// seeded by `seed`.
    pub fn new(client: u32, connection: u32, connections: u32, keys: u64, order: Order, seed: u64) -> Self {
        let (first, stride) = (u64::from(connection), u64::from(connections));
        let walk = walk(order, seed, client, first, keys.saturating_sub(first).div_ceil(stride));
        Self { client, first, stride, walk, part: None }
    }

    /// Those among them that are of the client's first `keys` keys, in the same slots.
    pub fn among_first(self, keys: u64, order: Order, seed: u64) -> Self {
        let len = self.walk.indexes().min(keys.saturating_sub(self.first).div_ceil(self.stride));
        Self { part: Some(walk(order, seed, self.client, self.first, len)), ..self }
    }

    /// Its client.
    pub fn client(&self) -> u32 {
        self.client
    }

    /// Keys of a pass.
    pub fn len(&self) -> u64 {
        self.part.unwrap_or(self.walk).indexes()
    }

    /// The key at a slot.
    pub fn place(&self, slot: u64) -> Place {
        Place { client: self.client, index: self.first + self.walk.at(slot) * self.stride }
    }

    /// The slot that a pass visits at `position`.
    pub fn slot(&self, position: u64) -> u64 {
        self.part.map_or(position, |part| self.walk.position_of(part.at(position)))
    }

    /// The slot of the `nth` key, as keys are numbered.
    pub fn slot_of(&self, nth: u64) -> u64 {
        self.walk.position_of(nth)
    }
}

/// Each connection walks in an order of its own.
fn walk(order: Order, seed: u64, client: u32, first: u64, len: u64) -> Walk {
    Walk::new(order, seed ^ u64::from(client) << 32 ^ first, len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ORDERS: [Order; 2] = [Order::Written, Order::Shuffled];

    proptest! {
        #[test]
        fn every_key_belongs_to_exactly_one_connection(keys in 1u64..500, connections in 1u32..40, order in 0usize..2) {
            let mut owned: Vec<u64> = (0..connections)
                .map(|connection| Share::new(3, connection, connections, keys, ORDERS[order], 7))
                .flat_map(|share| (0..share.len()).map(move |slot| share.place(slot).index))
                .collect();
            owned.sort_unstable();
            prop_assert_eq!(owned, (0..keys).collect::<Vec<_>>());
        }

        #[test]
        fn the_first_keys_are_the_same_for_every_pass(
            keys in 1u64..500, some in 1u64..600, connections in 1u32..40, order in 0usize..2,
        ) {
            let order = ORDERS[order];
            let mut owned = Vec::new();
            for connection in 0..connections {
                let all = Share::new(3, connection, connections, keys, order, 7);
                let first = all.among_first(some, order, 7);
                // The slot of a key is the same in both, so that what was noted of it is found again.
                let visited: Vec<u64> = (0..first.len()).map(|position| first.slot(position)).collect();
                prop_assert!(visited.iter().all(|&slot| slot < all.len() && first.place(slot) == all.place(slot)));
                owned.extend(visited.into_iter().map(|slot| all.place(slot).index));
            }
            owned.sort_unstable();
            prop_assert_eq!(owned, (0..keys.min(some)).collect::<Vec<_>>());
        }

        #[test]
        fn the_nth_key_is_found(keys in 1u64..500, order in 0usize..2, nth in 0u64..500) {
            let (share, nth) = (Share::new(3, 0, 1, keys, ORDERS[order], 7), nth % keys);
            prop_assert_eq!(share.place(share.slot_of(nth)).index, nth);
        }
    }
}
