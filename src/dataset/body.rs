//! The bytes of a long value behind its head: pages of one stock of letters, chosen by the value's author.
//!
//! The stock is made once and is small enough for a core's cache. So writing a value is copying, comparing one is comparing
//! memory, and neither needs the value whole: the stream can be entered anywhere.

use std::sync::LazyLock;

use super::Alphabet;
use super::author::{GOLDEN, scramble};

/// A value's body is made of pages of so many bytes.
const PAGE: usize = 4 * 1024;
/// Where a page may begin in the stock: at any of its bytes.
const BEGINNINGS: usize = 256 * 1024;

static BINARY: LazyLock<Box<[u8]>> = LazyLock::new(|| stock(Alphabet::Binary));
static ALPHANUMERIC: LazyLock<Box<[u8]>> = LazyLock::new(|| stock(Alphabet::Alphanumeric));
static HEX: LazyLock<Box<[u8]>> = LazyLock::new(|| stock(Alphabet::Hex));

/// The letters of the stream of `key`.
struct Body {
    stock: &'static [u8],
    key: u64,
}

impl Body {
    fn new(key: u64, alphabet: Alphabet) -> Self {
        let stock: &'static [u8] = match alphabet {
            Alphabet::Binary => &BINARY,
            Alphabet::Alphanumeric => &ALPHANUMERIC,
            Alphabet::Hex => &HEX,
        };
        Self { stock, key }
    }

    /// From byte `from` of the stream to the end of its page, but no more than `most`.
    fn piece(&self, from: usize, most: usize) -> &'static [u8] {
        let (page, inside) = ((from / PAGE) as u64, from % PAGE);
        let draw = scramble(self.key.wrapping_add((page + 1).wrapping_mul(GOLDEN)));
        let begin = draw as usize % BEGINNINGS + inside;
        &self.stock[begin..begin + most.min(PAGE - inside)]
    }
}

/// Appends `bytes` bytes of the stream of `key`, from its byte `from` on.
pub fn append(key: u64, alphabet: Alphabet, from: usize, bytes: usize, out: &mut Vec<u8>) {
    let (body, mut at, end) = (Body::new(key, alphabet), from, from + bytes);
    out.reserve(bytes);
    while at < end {
        let piece = body.piece(at, end - at);
        out.extend_from_slice(piece);
        at += piece.len();
    }
}

/// Whether `got` is the stream of `key` from its byte `from` on.
pub fn matches(key: u64, alphabet: Alphabet, from: usize, got: &[u8]) -> bool {
    let (body, mut at, mut got) = (Body::new(key, alphabet), from, got);
    while !got.is_empty() {
        let piece = body.piece(at, got.len());
        let (here, rest) = got.split_at(piece.len());
        if here != piece {
            return false;
        }
        (at, got) = (at + piece.len(), rest);
    }
    true
}

/// Letters without order, the same in every process.
fn stock(alphabet: Alphabet) -> Box<[u8]> {
    let words = (1..=((BEGINNINGS + PAGE) / 8) as u64).flat_map(|n| scramble(n.wrapping_mul(GOLDEN)).to_le_bytes());
    let letters = alphabet.letters();
    match letters.len() {
        0 => words.collect(),
        // 256 values are spread over the letters; the slight bias harms nobody here.
        len => words.map(|byte| letters[(usize::from(byte) * len) >> 8]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const ALL: [Alphabet; 3] = [Alphabet::Binary, Alphabet::Alphanumeric, Alphabet::Hex];

    fn stream(key: u64, alphabet: Alphabet, from: usize, bytes: usize) -> Vec<u8> {
        let mut out = Vec::new();
        append(key, alphabet, from, bytes, &mut out);
        out
    }

    proptest! {
        #[test]
        fn a_stream_is_the_same_wherever_it_is_entered(
            key: u64, alphabet in 0usize..3, from in 0usize..3 * PAGE, bytes in 0usize..3 * PAGE, spoil in 0usize..3 * PAGE,
        ) {
            let alphabet = ALL[alphabet];
            let expected = &stream(key, alphabet, 0, 6 * PAGE)[from..from + bytes];
            let mut out = b"before".to_vec();
            append(key, alphabet, from, bytes, &mut out);
            prop_assert_eq!(&out[..6], b"before");
            prop_assert_eq!(&out[6..], expected);
            prop_assert!(matches(key, alphabet, from, expected));
            if bytes > 0 {
                let mut wrong = expected.to_vec();
                wrong[spoil % bytes] ^= 1;
                prop_assert!(!matches(key, alphabet, from, &wrong));
            }
        }
    }

    #[test]
    fn only_letters_of_the_alphabet_and_all_of_them() {
        for alphabet in ALL {
            let seen: HashSet<u8> = stream(7, alphabet, 0, 100_000).into_iter().collect();
            let expected: HashSet<u8> = match alphabet.letters() {
                [] => (0..=255).collect(),
                letters => letters.iter().copied().collect(),
            };
            assert_eq!(seen, expected, "{alphabet:?}");
        }
    }

    #[test]
    fn pages_and_authors_differ() {
        let pages: Vec<_> = (0..50).map(|page| stream(7, Alphabet::Binary, page * PAGE, PAGE)).collect();
        assert_eq!(pages.iter().collect::<HashSet<_>>().len(), 50);
        assert_ne!(stream(7, Alphabet::Binary, 0, 100), stream(8, Alphabet::Binary, 0, 100));
    }

    #[test]
    fn shifted_by_a_byte_it_is_wrong() {
        let whole = stream(7, Alphabet::Hex, 0, 100_001);
        assert!(!matches(7, Alphabet::Hex, 0, &whole[1..]));
        assert!(matches(7, Alphabet::Hex, 1, &whole[1..]));
    }
}
