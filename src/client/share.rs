//! Which of a client's keys belong to which of its connections: every connections-th one, so that no table is needed and no
//! key is ever touched by two connections.

use crate::dataset::{Dataset, Place};

/// The keys of one connection, as slots 0 … len − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    client: u32,
    first: u64,
    stride: u64,
    len: u64,
}

impl Share {
    /// The share of connection `connection` of `connections` of `client`, which owns `keys` keys.
    pub fn new(client: u32, connection: u32, connections: u32, keys: u64) -> Self {
        let (first, stride) = (u64::from(connection), u64::from(connections));
        Self { client, first, stride, len: keys.saturating_sub(first).div_ceil(stride) }
    }

    /// Those among them that are of the client's first `keys` keys, in the same slots.
    pub fn among_first(self, keys: u64) -> Self {
        Self { len: self.len.min(keys.saturating_sub(self.first).div_ceil(self.stride)), ..self }
    }

    /// Keys of this connection.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The key at a slot.
    pub fn place(&self, slot: u64) -> Place {
        Place { client: self.client, index: self.first + slot * self.stride }
    }

    /// The slot that a pass visits at `position`.
    pub fn slot(&self, position: u64, dataset: &Dataset) -> u64 {
        // Each connection walks in an order of its own.
        let seed = dataset.seed() ^ u64::from(self.client) << 32 ^ self.first;
        dataset.order().at(seed, position, self.len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_key_belongs_to_exactly_one_connection(keys in 1u64..500, connections in 1u32..40) {
            let mut owned: Vec<u64> = (0..connections)
                .map(|connection| Share::new(3, connection, connections, keys))
                .flat_map(|share| (0..share.len()).map(move |slot| share.place(slot).index))
                .collect();
            owned.sort_unstable();
            prop_assert_eq!(owned, (0..keys).collect::<Vec<_>>());
        }

        #[test]
        fn the_first_keys_are_the_same_for_every_pass(keys in 1u64..500, some in 1u64..600, connections in 1u32..40) {
            let mut owned = Vec::new();
            for connection in 0..connections {
                let all = Share::new(3, connection, connections, keys);
                let first = all.among_first(some);
                owned.extend((0..first.len()).map(|slot| first.place(slot).index));
                prop_assert!((0..first.len()).all(|slot| first.place(slot) == all.place(slot)));
            }
            owned.sort_unstable();
            prop_assert_eq!(owned, (0..keys.min(some)).collect::<Vec<_>>());
        }
    }
}
