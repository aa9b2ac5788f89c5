//! Who wrote a value: (client, index, version) sealed into the 122 free bits of a UUID, and opened again.
//!
//! The seal is a keyed permutation of 122 bits (a balanced Feistel network over two halves of 61), so that no two authors
//! share a value and the bytes look random. 46 bits are left over (36 for hashes, which name a field); they are zero before
//! sealing, so a value that nobody wrote opens with probability 2⁻⁴⁶.

use super::{Place, Version};

/// Bits that name a client.
pub const CLIENT_BITS: u32 = 20;
/// Bits that name one of its keys.
pub const INDEX_BITS: u32 = 40;
const VERSION_BITS: u32 = 16;
/// Bits that name a field of a hash; all zero for strings.
pub const FIELD_BITS: u32 = 10;

/// Length of a UUID as text.
pub const UUID_LEN: usize = 36;

const HALF_BITS: u32 = 61;
const HALF: u64 = (1 << HALF_BITS) - 1;
const ROUNDS: usize = 4;
/// The golden ratio's fraction in 64 bits: odd, and far from any short pattern.
pub(super) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Who wrote a value, and which version of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Author {
    /// The key.
    pub place: Place,
    /// Its version.
    pub version: Version,
    /// Which field of a hash; 0 for strings.
    pub field: u16,
}

impl Author {
    /// The author at `place` in `version`.
    pub fn of(place: Place, version: Version) -> Self {
        Self { place, version, field: 0 }
    }

    /// Two halves of 61 bits; the bits that are left over are the check and stay zero.
    fn pack(self) -> (u64, u64) {
        let upper = u64::from(self.place.client) << VERSION_BITS | u64::from(self.version);
        (upper, u64::from(self.field) << INDEX_BITS | self.place.index)
    }

    fn unpack(upper: u64, lower: u64) -> Option<Self> {
        let version = (upper & ((1 << VERSION_BITS) - 1)) as Version;
        let client = upper >> VERSION_BITS;
        if client >> CLIENT_BITS != 0 || lower >> (INDEX_BITS + FIELD_BITS) != 0 {
            return None;
        }
        let place = Place { client: client as u32, index: lower & ((1 << INDEX_BITS) - 1) };
        Some(Self { place, version, field: (lower >> INDEX_BITS) as u16 })
    }
}

/// The permutation, keyed by seed and domain.
#[derive(Clone, Debug)]
pub struct Mix {
    keys: [u64; ROUNDS],
}

impl Mix {
    /// The permutation of `seed` in `domain`.
    pub fn new(seed: u64, domain: u64) -> Self {
        let mut state = scramble(seed ^ scramble(domain));
        let keys = std::array::from_fn(|_| {
            state = state.wrapping_add(GOLDEN);
            scramble(state)
        });
        Self { keys }
    }

    /// 122 bits that name `author`.
    pub fn seal(&self, author: Author) -> u128 {
        let (mut left, mut right) = author.pack();
        for key in self.keys {
            (left, right) = (right, left ^ round(right, key));
        }
        u128::from(left) << HALF_BITS | u128::from(right)
    }

    /// The author that `sealed` names, if any.
    pub fn open(&self, sealed: u128) -> Option<Author> {
        let (mut left, mut right) = ((sealed >> HALF_BITS) as u64 & HALF, sealed as u64 & HALF);
        for key in self.keys.iter().rev() {
            (left, right) = (right ^ round(left, *key), left);
        }
        Author::unpack(left, right)
    }
}

/// Both halves of a product, folded: one multiplication, since this runs four times for every UUID under load.
fn round(half: u64, key: u64) -> u64 {
    let product = u128::from(half ^ key) * u128::from(GOLDEN);
    ((product >> 64) as u64 ^ product as u64) & HALF
}

/// A bijective scrambler of 64 bits in which every input bit reaches every output bit (splitmix64's finisher).
pub fn scramble(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Where the 16 bytes of a UUID stand in its text.
const BYTE_AT: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// 122 bits as the text of a version 4 UUID.
pub fn uuid_text(bits: u128) -> [u8; UUID_LEN] {
    let [a, b, c, d] = uuid_digits(bits).map(u64::to_be_bytes);
    let mut text = [b'-'; UUID_LEN];
    text[..8].copy_from_slice(&a);
    text[9..13].copy_from_slice(&b[..4]);
    text[14..18].copy_from_slice(&b[4..]);
    text[19..23].copy_from_slice(&c[..4]);
    text[24..28].copy_from_slice(&c[4..]);
    text[28..].copy_from_slice(&d);
    text
}

/// Whether `text` is what [`uuid_text`] makes of `bits`, told word by word where it lies.
pub fn is_uuid(bits: u128, text: &[u8]) -> bool {
    let Some(text) = text.as_array::<UUID_LEN>() else { return false };
    let half = |at: usize| u64::from(u32::from_be_bytes([text[at], text[at + 1], text[at + 2], text[at + 3]]));
    let whole = |at: usize| half(at) << 32 | half(at + 4);
    let [a, b, c, d] = uuid_digits(bits);
    let dashes = [8, 13, 18, 23].iter().fold(0, |wrong, &at| wrong | text[at] ^ b'-');
    let wrong = a ^ whole(0)
        | b ^ (half(9) << 32 | half(14))
        | c ^ (half(19) << 32 | half(24))
        | d ^ whole(28)
        | u64::from(dashes);
    wrong == 0
}

/// The 32 digits of a version 4 UUID, eight in a word, the first of them highest.
fn uuid_digits(bits: u128) -> [u64; 4] {
    // 48 + 12 bits stand before the variant, 62 after it.
    let upper = (bits >> 62) as u64;
    let lower = bits as u64 & ((1 << 62) - 1);
    let high = (upper >> 12) << 16 | 0x4000 | (upper & 0xfff);
    let low = 1 << 63 | lower;
    [(high >> 32) as u32, high as u32, (low >> 32) as u32, low as u32].map(hex)
}

/// Appends 122 bits as a version 4 UUID.
pub fn write_uuid(bits: u128, out: &mut Vec<u8>) {
    out.extend_from_slice(&uuid_text(bits));
}

/// Eight hex digits, all at once in the lanes of one word: this runs twice for every request under load.
fn hex(word: u32) -> u64 {
    let mut lanes = u64::from(word);
    lanes = (lanes << 16 | lanes) & 0x0000_ffff_0000_ffff;
    lanes = (lanes << 8 | lanes) & 0x00ff_00ff_00ff_00ff;
    lanes = (lanes << 4 | lanes) & 0x0f0f_0f0f_0f0f_0f0f;
    // A nibble above 9 carries into bit 4 when 6 is added; it becomes a letter, 39 further on than a digit.
    let letters = (lanes + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    lanes + 0x3030_3030_3030_3030 + letters * 39
}

/// The 122 bits of a version 4 UUID exactly as [`write_uuid`] writes it; `None` for any other text.
pub fn parse_uuid(text: &[u8]) -> Option<u128> {
    let text: &[u8; UUID_LEN] = text.try_into().ok()?;
    if [8, 13, 18, 23].iter().any(|&at| text[at] != b'-') {
        return None;
    }
    let mut digits = 0;
    let mut half = |places: &[usize]| {
        places.iter().fold(0, |sum: u64, &at| {
            let (upper, lower) = (NIBBLES[usize::from(text[at])], NIBBLES[usize::from(text[at + 1])]);
            digits |= upper | lower;
            sum << 8 | u64::from(upper << 4 | lower)
        })
    };
    let (high, low) = (half(&BYTE_AT[..8]), half(&BYTE_AT[8..]));
    if digits & NO_DIGIT != 0 || high >> 12 & 0xf != 4 || low >> 62 != 2 {
        return None;
    }
    let upper = (high >> 16) << 12 | (high & 0xfff);
    Some(u128::from(upper) << 62 | u128::from(low & ((1 << 62) - 1)))
}

const NO_DIGIT: u8 = 0xf0;

/// What each letter is worth as a hex digit. The built-in responder parses a key for every reading, so all 32 letters are
/// judged at once in the end.
const NIBBLES: [u8; 256] = {
    let (mut nibbles, mut digit) = ([NO_DIGIT; 256], 0);
    while digit < 16 {
        nibbles[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    nibbles
};
