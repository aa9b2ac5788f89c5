//! Templates of keys and values: `key{n:07}`, `{client}:{i}`, `Test::{n}`. `{{` and `}}` stand for braces.

use std::fmt;

/// The numbers that a template can show.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Counts on from client to client.
    pub n: u64,
    /// Starts anew for each client.
    pub i: u64,
    /// The client, from 0.
    pub client: u64,
}

/// The numbers that a text shows, read through a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// `{n}`, if the template has it.
    pub n: Option<u64>,
    /// `{i}`, if the template has it.
    pub i: Option<u64>,
    /// `{client}`, if the template has it.
    pub client: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    N,
    I,
    Client,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    Number { field: Field, width: usize },
}

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    source: String,
    parts: Vec<Part>,
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Byte offset of the fault in the text.
    pub at: usize,
    /// What is wrong, and how to mend it.
    pub what: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for TemplateError {}

/// The widest padding that makes sense: the digits of the largest number.
const MAX_WIDTH: usize = 20;

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// Unbalanced braces, an unknown placeholder or a width that is no number.
    pub fn parse_source(source: &str) -> Result<Self, TemplateError> {
        let fail = |at: usize, what: String| Err(TemplateError { at, what });
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut rest = source;
        while let Some(next) = rest.chars().next() {
            let at = source.len() - rest.len();
            if let Some(after) = rest.strip_prefix("{{") {
                literal.push(b'{');
                rest = after;
            } else if let Some(after) = rest.strip_prefix("}}") {
                literal.push(b'}');
                rest = after;
            } else if next == '}' {
                return fail(at, "a `}` without its `{`; write `}}` for a brace of your own".into());
            } else if next == '{' {
                let Some(end) = rest.find('}') else {
                    return fail(at, "a `{` without its `}`; write `{{` for a brace of your own".into());
                };
                let inside = &rest[1..end];
                let (name, width) = inside.split_once(':').unwrap_or((inside, ""));
                let field = match name {
                    "n" => Field::N,
                    "i" => Field::I,
                    "client" => Field::Client,
                    _ => {
                        return fail(
                            at,
                            format!("no placeholder `{{{name}}}`; there are `{{n}}`, `{{i}}` and `{{client}}`"),
                        );
                    }
                };
                let width = match width {
                    "" if !inside.contains(':') => 0,
                    digits => match digits.parse::<usize>() {
                        Ok(width) if width <= MAX_WIDTH && digits.bytes().all(|b| b.is_ascii_digit()) => width,
                        _ => {
                            return fail(
                                at,
                                format!("`{digits}` is no width; write `{{{name}:07}}` for seven digits, at most 20"),
                            );
                        }
                    },
                };
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                }
                parts.push(Part::Number { field, width });
                rest = &rest[end + 1..];
            } else {
                literal.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[next.len_utf8()..];
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self { source: source.to_owned(), parts })
    }

    /// The text that was parsed.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it has no placeholder.
    pub fn is_constant(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, Part::Number { .. }))
    }

    /// Appends the template with `numbers` filled in.
    pub fn write(&self, numbers: Numbers, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text),
                Part::Number { field, width } => write_number(numbers.get(*field), *width, out),
            }
        }
    }

    /// The length of what [`Self::write`] appends.
    pub fn len(&self, numbers: Numbers) -> usize {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Literal(text) => text.len(),
                Part::Number { field, width } => digits(numbers.get(*field)).max(*width),
            })
            .sum()
    }

    /// Why two places could share a text, for `clients` clients of `keys` keys counted from `first`; `None` if none can.
    pub fn ambiguity(&self, clients: u32, keys: u64, first: u64) -> Option<String> {
        let has = |wanted| self.parts.iter().any(|p| matches!(p, Part::Number { field, .. } if *field == wanted));
        let complete = has(Field::N)
            || keys == 1 && has(Field::Client)
            || clients == 1 && has(Field::I)
            || has(Field::Client) && has(Field::I)
            || clients == 1 && keys == 1;
        if !complete {
            return Some(match (has(Field::I), has(Field::Client)) {
                (true, _) => "`{i}` starts anew for each client, so two clients would share keys; use `{n}`, or add `{client}`",
                (_, true) => "`{client}` alone is the same for all keys of a client; use `{n}`, or add `{i}`",
                _ => "it names no number, so all keys would be one; add `{n}`",
            }.to_owned());
        }
        // Numbers that touch can be cut in two ways ("1"+"11" and "11"+"1"), unless the left one has a fixed width.
        let last =
            Numbers { n: first + u64::from(clients) * keys - 1, i: first + keys - 1, client: u64::from(clients) - 1 };
        let mut open: Option<(Field, usize)> = None;
        for part in &self.parts {
            match part {
                Part::Number { field, width } => {
                    if let Some((left, left_width)) = open
                        && digits(last.get(left)) > left_width.max(1)
                    {
                        return Some(format!(
                            "`{{{}}}` and `{{{}}}` touch, so \"1\" + \"11\" and \"11\" + \"1\" are one key; put a letter or a `:` between them, or a width of {}",
                            left.name(),
                            field.name(),
                            digits(last.get(left)),
                        ));
                    }
                    open = Some((*field, *width));
                }
                Part::Literal(text) => {
                    // A literal of digits does not part two numbers.
                    if !text.iter().all(u8::is_ascii_digit) {
                        open = None;
                    }
                }
            }
        }
        None
    }

    /// The numbers that make `text` out of this template; `None` if there are none.
    pub fn parse(&self, text: &[u8]) -> Option<Found> {
        let mut found = Found::default();
        let mut rest = text;
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(literal) => rest = rest.strip_prefix(literal.as_slice())?,
                Part::Number { field, width } => {
                    let run = rest.iter().take_while(|b| b.is_ascii_digit()).count();
                    let touches = !matches!(self.parts.get(at + 1), Some(Part::Literal(l)) if !l[0].is_ascii_digit())
                        && at + 1 < self.parts.len();
                    let take = if touches { (*width).max(1).min(run) } else { run };
                    let (number, after) = rest.split_at(take);
                    let value: u64 = std::str::from_utf8(number).ok()?.parse().ok()?;
                    // Only the one way in which this template writes the number.
                    if number.len() != digits(value).max(*width) {
                        return None;
                    }
                    let slot = match field {
                        Field::N => &mut found.n,
                        Field::I => &mut found.i,
                        Field::Client => &mut found.client,
                    };
                    if slot.is_some_and(|earlier| earlier != value) {
                        return None;
                    }
                    *slot = Some(value);
                    rest = after;
                }
            }
        }
        rest.is_empty().then_some(found)
    }
}

impl Numbers {
    fn get(self, field: Field) -> u64 {
        match field {
            Field::N => self.n,
            Field::I => self.i,
            Field::Client => self.client,
        }
    }
}

impl Field {
    const fn name(self) -> &'static str {
        match self {
            Self::N => "n",
            Self::I => "i",
            Self::Client => "client",
        }
    }
}

/// 10⁰ … 10¹⁹.
const POWERS: [u64; MAX_WIDTH] = {
    let mut powers = [1; MAX_WIDTH];
    let mut at = 1;
    while at < MAX_WIDTH {
        powers[at] = 10 * powers[at - 1];
        at += 1;
    }
    powers
};

/// How many digits a number has. Asked for every key under load, so it is guessed from the bits (log₁₀ 2 ≈ 1233 / 4096).
fn digits(number: u64) -> usize {
    let number = number | 1;
    let guess = (((64 - number.leading_zeros()) * 1233) >> 12) as usize;
    guess + usize::from(number >= POWERS[guess])
}

const EIGHT: u64 = 100_000_000;

fn write_number(number: u64, width: usize, out: &mut Vec<u8>) {
    // A number that fills its width, as most do, is as long as that whatever it is: so nothing that is written behind it has to
    // wait until the number is known.
    if (1..=16).contains(&width) && number < POWERS[width] {
        out.extend_from_slice(&(sixteen_digits(number) >> (8 * (16 - width))).to_le_bytes());
        out.truncate(out.len() - (16 - width));
    } else {
        write_long_number(number, digits(number).max(width), out);
    }
}

#[inline(never)]
fn write_long_number(number: u64, len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    if len > 16 {
        out.resize(start + len - 16, b'0');
        let mut rest = number / (EIGHT * EIGHT);
        for digit in out[start..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
    out.extend_from_slice(&(sixteen_digits(number) >> (8 * 16usize.saturating_sub(len))).to_le_bytes());
    out.truncate(start + len);
}

/// The last sixteen digits of a number in a register, the first one lowest. Those that are too many can be shifted out; what is
/// appended then has a fixed length, which is cheap.
fn sixteen_digits(number: u64) -> u128 {
    let (upper, lower) = (eight_digits(number / EIGHT % EIGHT), eight_digits(number % EIGHT));
    u128::from(lower) << 64 | u128::from(upper)
}

/// The digits of a number below 10⁸, all at once in the lanes of one word, the first one lowest.
fn eight_digits(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    // Division by 100 and by 10 as a multiplication, exact below 10,000 and 100.
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | ((twos - 10 * tens) << 8);
    ones + 0x3030_3030_3030_3030
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_written_with_their_zeros(number: u64, cut in 0u32..64, width in 0usize..=MAX_WIDTH) {
            let number = number >> cut;
            let mut out = b"before".to_vec();
            write_number(number, width, &mut out);
            prop_assert_eq!(String::from_utf8(out).expect("text"), format!("before{number:0width$}"));
        }
    }
}
