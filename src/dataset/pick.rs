//! Which of its keys a connection asks for next in a mix. Seeded, and so the same in every run.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal, Zipf};

use super::order::{Order, Walk};

/// How the keys of a mix are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Each as often as any other.
    Uniform,
    /// By rank, the k-th most popular 1 / k^0.99 as often as the first. Popular keys lie scattered, not side by side.
    Zipf,
    /// Around the middle of the keys, with a sixth of them as standard deviation.
    Gaussian,
    /// A fifth of the keys, scattered, gets four fifths of the requests.
    Hot,
}

/// The exponent of [`Pick::Zipf`], as in YCSB.
const ZIPF_EXPONENT: f64 = 0.99;
/// [`Pick::Hot`]: which part of the keys is hot, and how often one of them is asked for.
const HOT_KEYS: f64 = 0.2;
const HOT_REQUESTS: f64 = 0.8;

impl Pick {
    /// Its name in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
            Self::Gaussian => "gaussian",
            Self::Hot => "hot",
        }
    }
}

/// Chooses among `0 … len − 1`.
#[derive(Clone, Debug)]
pub struct Picker {
    random: SmallRng,
    /// Which key has which rank of popularity.
    ranks: Walk,
    len: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    Zipf(Zipf<f64>),
    Gaussian(Normal<f64>),
    Hot { keys: u64 },
}

impl Picker {
    /// A chooser among `len` keys; `seed` decides which are popular, and in what order they come.
    pub fn new(pick: Pick, seed: u64, len: u64) -> Self {
        let many = len.max(1) as f64;
        // The parameters are constants within the bounds of both distributions; without one, all keys are alike.
        let kind = match pick {
            Pick::Uniform => Kind::Uniform,
            Pick::Zipf => Zipf::new(many, ZIPF_EXPONENT).map_or(Kind::Uniform, Kind::Zipf),
            Pick::Gaussian => Normal::new(many / 2.0, many / 6.0).map_or(Kind::Uniform, Kind::Gaussian),
            Pick::Hot => Kind::Hot { keys: ((many * HOT_KEYS) as u64).max(1) },
        };
        let ranks = Walk::new(Order::Shuffled, seed, len.max(1));
        Self { random: SmallRng::seed_from_u64(seed), ranks, len: len.max(1), kind }
    }

    /// The next one.
    pub fn draw(&mut self) -> u64 {
        let last = self.len - 1;
        match &self.kind {
            Kind::Uniform => self.random.random_range(0..self.len),
            Kind::Zipf(zipf) => {
                let rank = zipf.sample(&mut self.random) as u64;
                self.ranks.at((rank - 1).min(last))
            }
            Kind::Gaussian(normal) => loop {
                let at = normal.sample(&mut self.random);
                // One in four hundred lies outside.
                if (0.0..self.len as f64).contains(&at) {
                    break (at as u64).min(last);
                }
            },
            Kind::Hot { keys } => {
                let keys = *keys;
                let hot = keys == self.len || self.random.random_bool(HOT_REQUESTS);
                let rank =
                    if hot { self.random.random_range(0..keys) } else { self.random.random_range(keys..self.len) };
                self.ranks.at(rank)
            }
        }
    }

    /// `true` with this probability, which lies between 0 and 1.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pick: Pick, len: u64, draws: u64) -> Vec<u64> {
        let mut picker = Picker::new(pick, 7, len);
        let mut counts = vec![0; len as usize];
        (0..draws).for_each(|_| counts[picker.draw() as usize] += 1);
        counts
    }

    #[test]
    fn few_keys_are_no_problem() {
        for pick in [Pick::Uniform, Pick::Zipf, Pick::Gaussian, Pick::Hot] {
            for len in 1..10 {
                assert!(counts(pick, len, 2000).iter().all(|count| *count > 0), "{pick:?} {len}");
            }
        }
    }

    #[test]
    fn each_way_has_its_shape() {
        const DRAWS: u64 = 200_000;
        let sorted = |pick| {
            let mut counts = counts(pick, 1000, DRAWS);
            counts.sort_unstable_by(|a, b| b.cmp(a));
            counts
        };
        let uniform = sorted(Pick::Uniform);
        assert!(uniform[0] < 2 * uniform[999], "{} {}", uniform[0], uniform[999]);
        let zipf = sorted(Pick::Zipf);
        // The first of 1,000 ranks has a share of 1 / H(1000, 0.99), about 12.8 %; the tenth about a tenth of that.
        assert!((0.11..0.15).contains(&(zipf[0] as f64 / DRAWS as f64)), "{}", zipf[0]);
        assert!((8.0..12.0).contains(&(zipf[0] as f64 / zipf[9] as f64)), "{} {}", zipf[0], zipf[9]);
        let hot: u64 = sorted(Pick::Hot)[..200].iter().sum();
        assert!((0.79..0.81).contains(&(hot as f64 / DRAWS as f64)), "{hot}");
        let gaussian = counts(Pick::Gaussian, 1000, DRAWS);
        let middle: u64 = gaussian[333..667].iter().sum();
        assert!((0.66..0.71).contains(&(middle as f64 / DRAWS as f64)), "{middle}");
    }

    #[test]
    fn the_same_seed_chooses_the_same() {
        let draws = |seed| {
            let mut picker = Picker::new(Pick::Zipf, seed, 1_000_000);
            (0..100).map(|_| picker.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }
}
