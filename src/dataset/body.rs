//! The bytes of a long value behind its head: a stream that can be entered anywhere, made in blocks so wide that the
//! compiler works on many letters at once, and compared without being stored.

use super::Alphabet;
use super::author::scramble;

/// Bytes of a block: eight words.
const BLOCK: usize = 64;
const WORDS: u64 = (BLOCK / 8) as u64;

/// Appends `bytes` bytes of the stream of `key`, from its byte `from` on.
pub fn append(key: u64, alphabet: Alphabet, from: usize, bytes: usize, out: &mut Vec<u8>) {
    let end = out.len() + bytes;
    out.reserve(bytes + BLOCK);
    let (mut number, inside) = ((from / BLOCK) as u64, from % BLOCK);
    if inside > 0 {
        out.extend_from_slice(&block(key, alphabet, number)[inside..]);
        number += 1;
    }
    while out.len() < end {
        out.extend_from_slice(&block(key, alphabet, number));
        number += 1;
    }
    // The last block may have gone past the end.
    out.truncate(end);
}

/// Whether `got` is the stream of `key` from its byte `from` on.
pub fn matches(key: u64, alphabet: Alphabet, from: usize, got: &[u8]) -> bool {
    let (mut number, inside) = ((from / BLOCK) as u64, from % BLOCK);
    let (first, rest) = got.split_at(got.len().min((BLOCK - inside) % BLOCK));
    if !first.is_empty() {
        if block(key, alphabet, number)[inside..][..first.len()] != *first {
            return false;
        }
        number += 1;
    }
    let (blocks, last) = rest.as_chunks::<BLOCK>();
    for got in blocks {
        if block(key, alphabet, number) != *got {
            return false;
        }
        number += 1;
    }
    last.is_empty() || block(key, alphabet, number)[..last.len()] == *last
}

fn block(key: u64, alphabet: Alphabet, number: u64) -> [u8; BLOCK] {
    let mut bytes = [0; BLOCK];
    let first = number * WORDS + 1;
    for (word, counter) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(first..) {
        *word = scramble(key.wrapping_add(counter.wrapping_mul(0x9e37_79b9_7f4a_7c15))).to_le_bytes();
    }
    // 256 values are spread over the letters; the slight bias harms nobody here.
    match alphabet {
        Alphabet::Binary => {}
        Alphabet::Alphanumeric => {
            for byte in &mut bytes {
                let at = ((u16::from(*byte) * 62) >> 8) as u8;
                *byte = at + b'0' + u8::from(at > 9) * (b'A' - b':') + u8::from(at > 35) * (b'a' - b'[');
            }
        }
        Alphabet::Hex => {
            for byte in &mut bytes {
                let at = *byte >> 4;
                *byte = at + b'0' + u8::from(at > 9) * (b'a' - b':');
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One byte of the stream, in the plainest way.
    fn byte(key: u64, letters: &[u8], at: usize) -> u8 {
        let counter = (at / 8) as u64 + 1;
        let word = scramble(key.wrapping_add(counter.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let byte = word.to_le_bytes()[at % 8];
        if letters.is_empty() { byte } else { letters[(usize::from(byte) * letters.len()) >> 8] }
    }

    proptest! {
        #[test]
        fn a_stream_is_the_same_wherever_it_is_entered(key: u64, from in 0usize..300, bytes in 0usize..300, spoil in 0usize..300) {
            let alphanumeric = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
            for (alphabet, letters) in [
                (Alphabet::Binary, &b""[..]),
                (Alphabet::Hex, b"0123456789abcdef"),
                (Alphabet::Alphanumeric, alphanumeric),
            ] {
                let mut out = b"before".to_vec();
                append(key, alphabet, from, bytes, &mut out);
                let expected: Vec<u8> = (from..from + bytes).map(|at| byte(key, letters, at)).collect();
                prop_assert_eq!(&out[..6], b"before");
                prop_assert_eq!(&out[6..], &expected[..]);
                prop_assert!(matches(key, alphabet, from, &expected));
                if bytes > 0 {
                    let mut wrong = expected;
                    wrong[spoil % bytes] ^= 1;
                    prop_assert!(!matches(key, alphabet, from, &wrong));
                }
            }
        }
    }
}
