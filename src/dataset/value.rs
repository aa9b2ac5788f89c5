//! Values of any size: a head that names the author, then bytes generated from it.

use super::author::scramble;
use super::{Place, Template, body};

/// What values look like.
#[derive(Clone, Debug)]
pub enum ValuePattern {
    /// UUIDs that name their author.
    Uuid,
    /// A template, or a constant if it has no placeholder.
    Template(Template),
    /// Bytes generated from their author.
    Bytes {
        /// How long.
        sizes: Sizes,
        /// Of which letters.
        alphabet: Alphabet,
    },
}

/// The letters of a generated value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// Any byte.
    Binary,
    /// `0-9A-Za-z`.
    Alphanumeric,
    /// `0-9a-f`.
    Hex,
}

impl Alphabet {
    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Alphanumeric => "alphanumeric",
            Self::Hex => "hex",
        }
    }

    /// Its letters; none where any byte will do.
    pub(super) const fn letters(self) -> &'static [u8] {
        match self {
            Self::Binary => &[],
            Self::Alphanumeric => b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            Self::Hex => b"0123456789abcdef",
        }
    }

    /// Letters that hold 61 bits, the half of a seal.
    const fn half_len(self) -> usize {
        match self {
            Self::Binary => 8,
            Self::Alphanumeric => 11,
            Self::Hex => 16,
        }
    }
}

/// How long values are: one size, or several by weight. Chosen per key, so every version of a key is equally long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// (bytes, weights up to and including this one), ascending in the second.
    steps: Vec<(usize, u64)>,
}

impl Sizes {
    /// Every value has `bytes` bytes.
    pub fn fixed(bytes: usize) -> Self {
        Self { steps: vec![(bytes, 1)] }
    }

    /// Sizes by weight. `None` if there is none, or none with a weight above zero.
    pub fn weighted(weights: &[(usize, u32)]) -> Option<Self> {
        let mut sum = 0;
        let steps: Vec<_> = weights
            .iter()
            .filter(|(_, weight)| *weight > 0)
            .map(|&(bytes, weight)| {
                sum += u64::from(weight);
                (bytes, sum)
            })
            .collect();
        (!steps.is_empty()).then_some(Self { steps })
    }

    /// The size at `place`.
    pub fn of(&self, seed: u64, place: Place) -> usize {
        if let [(bytes, _)] = self.steps[..] {
            return bytes;
        }
        let total = self.steps.last().map_or(1, |step| step.1);
        let draw = scramble(seed ^ scramble(u64::from(place.client) << 40 ^ place.index ^ 0x73_697a_6573));
        // The upper half of the product spreads the draw evenly over 0 … total − 1.
        let at = ((u128::from(draw) * u128::from(total)) >> 64) as u64;
        self.steps.iter().find(|step| at < step.1).map_or(0, |step| step.0)
    }

    /// Each size with its weight, as in the scenario.
    pub fn weights(&self) -> Vec<(usize, u64)> {
        let mut below = 0;
        let weight = |&(bytes, upto)| (bytes, upto - std::mem::replace(&mut below, upto));
        self.steps.iter().map(weight).collect()
    }

    /// The smallest size that occurs.
    pub fn smallest(&self) -> usize {
        self.steps.iter().map(|step| step.0).min().unwrap_or(0)
    }

    /// The largest size that occurs.
    pub fn largest(&self) -> usize {
        self.steps.iter().map(|step| step.0).max().unwrap_or(0)
    }

    /// The mean size, by weight.
    pub fn mean(&self) -> f64 {
        let mut below = 0;
        let mut sum = 0.0;
        for &(bytes, upto) in &self.steps {
            sum += bytes as f64 * (upto - below) as f64;
            below = upto;
        }
        sum / below.max(1) as f64
    }
}

const HALF_BITS: u32 = 61;

/// How long a value must be to name its author.
pub const fn head_len(alphabet: Alphabet) -> usize {
    2 * alphabet.half_len()
}

/// Appends the value of `bytes` bytes that `sealed` begins.
pub fn write(sealed: u128, bytes: usize, alphabet: Alphabet, out: &mut Vec<u8>) {
    let end = out.len() + bytes;
    out.reserve(bytes.max(head_len(alphabet)));
    let (upper, lower) = halves(sealed);
    for half in [upper, lower] {
        write_half(half, alphabet, out);
    }
    if out.len() < end {
        body::append(body_key(upper, lower), alphabet, 0, end - out.len(), out);
    }
    // Shorter values are a prefix.
    out.truncate(end);
}

/// Whether `got` is the value of `bytes` bytes that `sealed` begins, told without generating it into memory. `scratch` is
/// overwritten.
pub fn matches(sealed: u128, bytes: usize, alphabet: Alphabet, got: &[u8], scratch: &mut Vec<u8>) -> bool {
    if got.len() != bytes {
        return false;
    }
    scratch.clear();
    write(sealed, bytes.min(head_len(alphabet)), alphabet, scratch);
    let (head, rest) = got.split_at(scratch.len());
    let (upper, lower) = halves(sealed);
    scratch == head && body::matches(body_key(upper, lower), alphabet, 0, rest)
}

/// Appends the bytes `from … to` of the value that `sealed` begins.
pub fn write_piece(sealed: u128, alphabet: Alphabet, from: usize, to: usize, out: &mut Vec<u8>) {
    let head = head_len(alphabet);
    if from < head {
        let begin = out.len();
        write(sealed, to.min(head), alphabet, out);
        out.drain(begin..begin + from);
    }
    if to > head {
        let (upper, lower) = halves(sealed);
        let at = from.max(head);
        body::append(body_key(upper, lower), alphabet, at - head, to - at, out);
    }
}

/// Whether `got` are the bytes from `from` on of the value that `sealed` begins. `scratch` is overwritten.
pub fn piece_matches(sealed: u128, alphabet: Alphabet, from: usize, got: &[u8], scratch: &mut Vec<u8>) -> bool {
    let (head, rest) = got.split_at(got.len().min(head_len(alphabet).saturating_sub(from)));
    if !head.is_empty() {
        scratch.clear();
        write_piece(sealed, alphabet, from, from + head.len(), scratch);
        if scratch != head {
            return false;
        }
    }
    let (upper, lower) = halves(sealed);
    let behind = (from + head.len()).saturating_sub(head_len(alphabet));
    rest.is_empty() || body::matches(body_key(upper, lower), alphabet, behind, rest)
}

fn halves(sealed: u128) -> (u64, u64) {
    ((sealed >> HALF_BITS) as u64, sealed as u64 & ((1 << HALF_BITS) - 1))
}

/// What the bytes behind the head are generated from.
fn body_key(upper: u64, lower: u64) -> u64 {
    scramble(upper ^ lower.rotate_left(32))
}

/// The seal at the head of `value`; `None` if it is too short or has other letters.
pub fn parse(value: &[u8], alphabet: Alphabet) -> Option<u128> {
    let half = alphabet.half_len();
    let head = value.get(..2 * half)?;
    let upper = parse_half(&head[..half], alphabet)?;
    let lower = parse_half(&head[half..], alphabet)?;
    Some(u128::from(upper) << HALF_BITS | u128::from(lower))
}

fn write_half(half: u64, alphabet: Alphabet, out: &mut Vec<u8>) {
    match alphabet {
        Alphabet::Binary => out.extend_from_slice(&half.to_be_bytes()),
        Alphabet::Alphanumeric => out.extend_from_slice(&digits::<62, 11>(half, alphabet.letters())),
        Alphabet::Hex => out.extend_from_slice(&digits::<16, 16>(half, alphabet.letters())),
    }
}

/// A number in so many digits. The base is known here, since dividing by a number that is not would cost more than comparing
/// a kilobyte.
fn digits<const BASE: u64, const LEN: usize>(mut number: u64, letters: &[u8]) -> [u8; LEN] {
    let mut digits = [0; LEN];
    for digit in digits.iter_mut().rev() {
        *digit = letters[(number % BASE) as usize];
        number /= BASE;
    }
    digits
}

fn parse_half(digits: &[u8], alphabet: Alphabet) -> Option<u64> {
    let half = if alphabet == Alphabet::Binary {
        u64::from_be_bytes(digits.try_into().ok()?)
    } else {
        let letters = alphabet.letters();
        digits.iter().try_fold(0u64, |sum, digit| {
            let at = letters.iter().position(|letter| letter == digit)?;
            sum.checked_mul(letters.len() as u64)?.checked_add(at as u64)
        })?
    };
    (half >> HALF_BITS == 0).then_some(half)
}
